"""Sessions for trainers whose code does not await: they live in one event loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.endpoints.connections import close_all
from muarl.environments.registry import load_task
from muarl.environments.results import PlayResult
from muarl.environments.session import Observation, Session
from muarl.types.chat import ToolSpec
from muarl_integrations.conversations import Conversations

OVER = "The conversation is over."
"""What the policy reads where nothing that it says or does counts any more."""

_LAST_SECONDS = 2.0
"""At exit, connections have so long to close."""

T = TypeVar("T")

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Begin ``work`` in the event loop of the background thread."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def run(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns, or raises; it runs in the background thread."""
    return submit(work).result()


def new_session(task: Task | str, **options: Any) -> Session:
    """A session of a task, or of the task at an address, that has not begun. ``options``: see ``Environment.start``."""
    found = load_task(task) if isinstance(task, str) else task
    if found.origin is None:
        raise ConfigError(f"task {found.id} does not say which environment it is of: take it from make_tasks")
    session: Session = found.origin.environment.start(found, **options)
    return session


async def opened(task: Task | str, *, retries: int = 0, **options: Any) -> Session:
    """A session that has begun. Where the user's model failed before anything was said, it is begun anew, up to
    ``retries`` times."""
    for left in range(retries, -1, -1):
        session = await new_session(task, **options)
        if session.failure is None or not session.failure.retryable or not left:
            break
    return session


class BlockingSession:
    """A session led by plain code. Several threads may each lead some."""

    def __init__(self, task: Task | str, *, retries: int = 0, **options: Any) -> None:
        """Begin. ``retries``, ``options``: see ``opened``."""
        self.session = run(opened(task, retries=retries, **options))
        close_with(self, self.session)

    def step(self, message: Any, **options: Any) -> Observation:
        """See ``Session.step``."""
        return run(self.session.step(message, **options))

    def finish(self) -> PlayResult:
        """What became of the conversation. A policy that stops before it is over has said what nobody hears, and gets
        0; so does one for whose words a benchmark voids it."""
        if not self.session.done:
            self.step("", stop="turn_length")
        return Conversations(void_is_zero=True).counted(self.session.result)

    def close(self) -> None:
        """End the conversation where it still runs. Harmless afterwards."""
        run(self.session.aclose())


def talk_tool(name: str) -> ToolSpec:
    """The user as a tool, for loops that know no user turns."""
    asked = {"message": {"type": "string", "description": "The text for the customer."}}
    text = "Say something to the customer, and get the answer. The customer hears nothing else."
    return ToolSpec(name, text, {"type": "object", "properties": asked, "required": ["message"]})


def close_with(leader: object, session: Session) -> None:
    """Let a session end where its leader is forgotten before its end."""
    weakref.finalize(leader, _close, session).atexit = False


def _close(session: Session) -> None:
    if not session.done:
        submit(session.aclose())


def _loop() -> asyncio.AbstractEventLoop:
    """This process's loop; a forked process, which has no threads of its parent, gets its own."""
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="muarl sessions", daemon=True).start()
            atexit.register(_close_connections, loop, os.getpid())
        return loop


def _close_connections(loop: asyncio.AbstractEventLoop, process: int) -> None:
    """Close what endpoints hold open in the background thread: at exit, which nobody who has such an endpoint sees
    coming. A forked process has no such thread."""
    if os.getpid() == process:
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(close_all(), loop).result(_LAST_SECONDS)
