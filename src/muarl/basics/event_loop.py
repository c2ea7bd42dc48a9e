"""The event loop of a run. Its stages are plain code; what they await runs in one loop, from the first to the last.

    with event_loop() as loop:
        loop.closes(users, judge)            # at the end of the block, however it ends
        episodes = loop.run(play(...))

A block inside another one has the outer block's loop: so connections last from stage to stage. Ctrl-C and SIGTERM
cancel what runs, and come out of ``run`` as KeyboardInterrupt, as of ``asyncio.run`` (see stopping.py).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Closable(Protocol):
    """What holds connections or servers."""

    async def aclose(self) -> None:
        """Give them up; harmless where that was done before."""
        ...


class EventLoop:
    """The loop of a block, and what is closed at its end."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner, self._thread = runner, threading.get_ident()
        self._parts = AsyncExitStack()
        self._any = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` returns, or raises."""
        results: list[T] = []

        async def keep() -> None:
            results.append(await work)

        # Not as the result of the runner's task: putting the signal handler back, Python writes its repr twice, with
        # whatever it holds, such as all episodes of a step.
        self._runner.run(keep(), context=copy_context())
        return results[0]

    def closes(self, *parts: object) -> None:
        """Close these at the end of the block, the last one first. Parts that hold nothing (no ``aclose``) are fine."""
        for part in parts:
            if isinstance(part, Closable):
                self._parts.push_async_callback(part.aclose)
                self._any = True

    def _here(self) -> bool:
        return self._thread == threading.get_ident()

    def _close(self) -> None:
        if self._any:
            self.run(self._parts.aclose())


_open: ContextVar[EventLoop | None] = ContextVar("event loop", default=None)


@contextmanager
def event_loop() -> Iterator[EventLoop]:
    """The event loop for what the block awaits: that of the block around it in this thread, else a new one."""
    outer = _open.get()
    if outer is not None and outer._here():
        block = EventLoop(outer._runner)
        try:
            yield block
        finally:
            block._close()
        return
    with asyncio.Runner() as runner:
        block = EventLoop(runner)
        token = _open.set(block)
        try:
            yield block
        finally:
            _open.reset(token)
            block._close()
