"""Asking a process of the cluster: answers come before a deadline, and every way of not answering is one of two.

``ProcessLost``: the process or its machine is gone or silent; others may be asked. A MuarlError that the process
raised: it answered, and that is what it had to say. Anything else it raised is a defect, and passes through as Ray
reports it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from muarl.workers.failures import Failure, ProcessLost


async def answer(asked: Awaitable[Any], seconds: float, who: str) -> Any:
    """What a process answered. ProcessLost after so many seconds, or if it is gone; the MuarlError that it raised."""
    from ray import exceptions as ray

    try:
        reply = await asyncio.wait_for(_awaited(asked), seconds)
    except (TimeoutError, ray.RayError) as problem:
        raise lost_or_raised(problem, seconds, who) from None
    if isinstance(reply, Failure):
        raise reply.error()
    return reply


def answer_now(asked: Any, seconds: float, who: str) -> Any:
    """``answer`` for those who wait in a thread of their own. ``asked``: one reference, or a list of them."""
    import ray
    from ray import exceptions

    try:
        reply = ray.get(asked, timeout=seconds)
    except (exceptions.GetTimeoutError, exceptions.RayError) as problem:
        raise lost_or_raised(problem, seconds, who) from None
    for one in reply if isinstance(reply, list) else [reply]:
        if isinstance(one, Failure):
            raise one.error()
    return reply


def lost_or_raised(problem: Exception, seconds: float, who: str) -> Exception:
    """What to raise for what Ray raised."""
    from ray import exceptions as ray

    if isinstance(problem, ray.GetTimeoutError) or not isinstance(problem, ray.RayError):
        return ProcessLost(f"{who} did not answer within {seconds:.0f} s")
    if isinstance(problem, ray.ActorDiedError):
        return ProcessLost(f"{who} died: {_first_line(problem)}", final=True)
    if isinstance(problem, ray.RayTaskError):
        return problem
    if isinstance(problem, ray.ActorUnavailableError):
        return ProcessLost(f"{who} was lost: it died, or its machine or the network to it")
    return ProcessLost(f"{who} was lost: {_first_line(problem)}")


async def _awaited(asked: Awaitable[Any]) -> Any:
    return await asked


def _first_line(problem: Exception) -> str:
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
