"""An event loop in a thread of its own, for what must outlive the caller's loops: recipes run one after another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from muarl.basics.errors import InfrastructureError

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for callers of any thread and any event loop, each within a deadline in seconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], seconds: float, what: str) -> T:
        """The coroutine's result, waited for in this thread. InfrastructureError after ``seconds``."""
        future = self._submit(work)
        try:
            return future.result(seconds)
        except FutureTimeout:
            if future.done():  # the coroutine's own
                raise
            future.cancel()
            raise InfrastructureError(
                f"{what} took longer than {seconds:g} seconds", boundary="agent", retryable=False
            ) from None

    async def call(self, work: Coroutine[Any, Any, T], seconds: float, what: str) -> T:
        """The coroutine's result, awaited in the caller's loop; it is cancelled with the caller, and after
        ``seconds``, which is an InfrastructureError."""
        future = self._submit(work)
        try:
            async with asyncio.timeout(seconds) as limit:
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if not limit.expired():
                raise
            raise InfrastructureError(f"{what} took longer than {seconds:g} seconds", boundary="agent") from None

    def soon(self, work: Callable[[], None]) -> None:
        """Call it in the loop, some time soon; nothing if the loop has ended."""
        if not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(work)
            except RuntimeError:  # it ended meanwhile
                pass

    def stop(self) -> None:
        """End the loop; what still runs in it is cancelled. Waits a little for the thread."""
        self.soon(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop.is_closed() or not self._thread.is_alive():
            work.close()
            raise InfrastructureError(f"{self.name} is closed", boundary="agent", retryable=False)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.wait(tasks, timeout=2.0))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
