"""What a child process does: it plays the requests that it is sent, and sends each episode as soon as it is finished.

Frames (``basics/frames.py``) travel over a socket that it inherited. The parent sends: ``start`` (how to make
``Players``), ``weights`` (there are new ones in the shared memory), ``play``, ``cancel``, ``rest``. The child answers
``ready``, ``took``, for each request of a ``play`` an ``episode`` (as JSON, as on disk) and then ``done``; or
``failed``, with the error.

Requests are objects of the parent's own, with tasks of any domain, and come pickled over a socket that nobody else has:
the one place where muarl pickles. What goes back never is.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, Protocol

from muarl.basics.child import Lifeline
from muarl.basics.errors import ConfigError, MuarlError
from muarl.basics.frames import LARGEST, WireError, receive, send
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rollout import LocalExecutor, PlayEpisode
from muarl.workers.failures import Failure


class Players(Protocol):
    """Who plays in a child: made once, by what the parent's ``start`` says."""

    async def take(self, version: int, *, fresh: bool) -> None:
        """Sample from the shared memory's weights of this moment from now on, as policy ``version``. ``fresh``: by a
        sampler that has seen nothing before."""
        ...

    async def rest(self) -> None:
        """Give the sampler's memory back, until ``take``."""
        ...

    def playing(self, cast: Mapping[str, Any]) -> PlayEpisode:
        """Who plays episodes with such an agent and such users. MuarlError if they cannot be made."""
        ...

    async def aclose(self) -> None:
        """The end: give up what is held open."""
        ...


def run(descriptor: int, make: Callable[[Mapping[str, Any]], Players]) -> None:
    """Serve the parent at the other end of this socket until it closes it; then the process ends."""
    Lifeline()
    asyncio.run(_serve(descriptor, make))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # without the seconds that an interpreter with torch takes to end


async def _serve(descriptor: int, make: Callable[[Mapping[str, Any]], Players]) -> None:
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
    serving: _Serving | None = None
    try:
        while True:
            value, payload = await receive(reader, payloads=LARGEST)
            try:
                if serving is None:
                    serving = _Serving(writer, make(value))
                    send(writer, {"op": "ready", "id": value["id"]})
                else:
                    await serving.hear(value, payload)
            except Exception as problem:
                send(writer, failed(problem, value.get("id")))
    except (EOFError, OSError, WireError):
        return  # the parent has closed the connection
    finally:
        if serving is not None:
            await serving.aclose()


class _Serving:
    def __init__(self, writer: asyncio.StreamWriter, players: Players) -> None:
        self._writer, self._players = writer, players
        self._playing: dict[int, asyncio.Task[None]] = {}

    async def hear(self, value: Mapping[str, Any], payload: bytes) -> None:
        """Do what one frame asks for; playing goes on after this returns."""
        kind, number = value["op"], int(value.get("id", 0))
        if kind == "play":
            requests: Sequence[RolloutRequest] = pickle.loads(payload)  # noqa: S301
            self._playing[number] = asyncio.create_task(self._play(number, value, requests))
        elif kind == "cancel":
            await self._cancel(number)
        elif kind == "weights":
            await self._players.take(int(value["version"]), fresh=bool(value["fresh"]))
            send(self._writer, {"op": "took", "id": number})
        elif kind == "rest":
            await self._players.rest()
        else:
            raise ValueError(f"there is no operation {kind!r}")

    async def _play(self, number: int, value: Mapping[str, Any], requests: Sequence[RolloutRequest]) -> None:
        try:
            executor = LocalExecutor(self._players.playing(value["cast"]), int(value["concurrency"]))
            async with aclosing(executor.run(iter(requests))) as episodes:
                async for episode in episodes:
                    text = json.dumps(episode.to_json(context=True))
                    send(self._writer, {"op": "episode", "id": number}, text.encode("ascii"))
            send(self._writer, {"op": "done", "id": number})
        except Exception as problem:
            send(self._writer, failed(problem, number))
        finally:
            self._playing.pop(number, None)

    async def _cancel(self, number: int) -> None:
        task = self._playing.get(number)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def aclose(self) -> None:
        for number in [*self._playing]:
            await self._cancel(number)
        await self._players.aclose()


def failed(problem: Exception, number: int | None) -> dict[str, Any]:
    """The frame that tells of an error: a MuarlError to be raised again, anything else with its traceback."""
    failure = asdict(Failure.of(problem)) if isinstance(problem, MuarlError) else None
    text = "" if failure else "".join(traceback.format_exception(problem))
    return {"op": "failed", "id": number, "failure": failure, "traceback": text}


def packed(requests: Sequence[RolloutRequest]) -> bytes:
    """The requests of a ``play``. ConfigError for a task that cannot be sent."""
    try:
        return pickle.dumps(list(requests), protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as problem:
        raise ConfigError(
            f"engine.processes: a task of {requests[0].task.domain} cannot be sent to another process ({problem}): set "
            "engine.processes=1"
        ) from None
