"""The places where episodes run: a server process and a folder each, kept by one event loop in a thread of its own.

Processes outlive the event loops of single rollouts that way, and worlds can be used from plain code as well. A place
serves one episode at a time. Between two episodes its folder is emptied and laid out anew; after a failure, or when its
process has served its number of episodes, it is thrown away.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from muarl.basics.errors import InfrastructureError
from muarl.domains.mcp import pipes
from muarl.domains.mcp.client import Connection, ServerError, connect
from muarl.domains.mcp.launch import Launch

T = TypeVar("T")
LayOut = Callable[[Path], None]

RESERVE = max(2, os.cpu_count() or 1)
"""Places beyond the bound for work that is done while an episode keeps its own, such as replaying gold actions."""

PREFIX = "muarl-mcp-"


class _Thread:
    """The thread with the event loop, and the pools that live on it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.pools: dict[Launch, McpServerPool] = {}
        self.jobs: set[asyncio.Task[None]] = set()
        self.thread = threading.Thread(target=self._run, name="muarl-mcp", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


_thread: _Thread | None = None
_starting = threading.Lock()
_roots: set[Path] = set()


def _background() -> _Thread:
    global _thread
    with _starting:
        if _thread is None or _thread.process != os.getpid():  # a fork has no threads but its own
            if _thread is None:
                atexit.register(_at_exit)
                _sweep()
            else:  # what the parent started is the parent's
                pipes.running.clear()
                _roots.clear()
            _thread = _Thread()
        return _thread


def hand_over(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the servers' loop."""
    return asyncio.run_coroutine_threadsafe(work, _background().loop)


async def over_there(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the servers' loop and wait for it in this one."""
    return await asyncio.wrap_future(hand_over(work))


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the servers' loop and block until it is done."""
    if threading.current_thread() is _background().thread:
        raise RuntimeError("a blocking call on the servers' own thread would never end")
    return hand_over(work).result()


def default_places() -> int:
    """How many processes of one server run at most, unless a domain says otherwise."""
    return min(64, 4 * (os.cpu_count() or 1))


class ServerFolder:
    """A folder, and the server process that works in it. ``served``: how many episodes that process has had."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")).resolve()
        _roots.add(self.root)
        self.folder, self.home = self.root / "work", self.root / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.connection: Connection | None = None
        self.served = 0

    def empty(self) -> None:
        """Remove what is in the folder; the folder itself stays, since a server may stand in it."""
        for entry in os.scandir(self.folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                Path(entry.path).unlink()

    async def remove(self) -> None:
        """End the process and delete the folder."""
        if self.connection is not None:
            await self.connection.close()
        try:
            await asyncio.to_thread(shutil.rmtree, self.root, True)
        except RuntimeError:  # the program is ending and starts no threads any more
            shutil.rmtree(self.root, ignore_errors=True)
        _roots.discard(self.root)


class McpServerPool:
    """The places of one server. Use it on the servers' loop only."""

    def __init__(self, launch: Launch, most: int) -> None:
        self.launch = launch
        self._idle: list[ServerFolder] = []
        self._room = asyncio.Semaphore(most)
        self._reserve = asyncio.Semaphore(RESERVE)
        self._starts = asyncio.Semaphore(os.cpu_count() or 1)

    async def take(self, lay_out: LayOut, *, extra: bool = False) -> ServerFolder:
        """A place with a freshly laid out folder and a server that answers. ServerError if there is none to be had.

        ``extra``: take it from the reserve, for whoever holds a place already and would wait for itself otherwise.
        """
        gate = self._reserve if extra else self._room
        await gate.acquire()
        place: ServerFolder | None = None
        try:
            place = self._idle.pop() if self._idle else await asyncio.to_thread(ServerFolder)
            await self._prepare(place, lay_out)
        except BaseException as problem:
            gate.release()
            if place is not None:
                self._drop(place)
            if isinstance(problem, OSError):
                raise InfrastructureError(
                    f"the folder of an episode cannot be made: {problem}", boundary="world"
                ) from problem
            raise
        place_gates[place] = gate
        return place

    async def _prepare(self, place: ServerFolder, lay_out: LayOut) -> None:
        await asyncio.to_thread(_fresh, place, lay_out)
        if place.connection is not None:
            try:
                await place.connection.refresh()  # it may have died, or changed, since its last episode
            except ServerError:
                await self.restart(place)
        else:
            await self.restart(place)
        place.served += 1

    async def restart(self, place: ServerFolder) -> None:
        """Give a place a new process over the files as they are. ServerError if the server does not start."""
        if place.connection is not None:
            await place.connection.close()
            place.connection = None
        async with self._starts:
            place.connection = await connect(self.launch, place.folder, place.home)
        place.served = 0

    async def give(self, place: ServerFolder, *, good: bool = True) -> None:
        """Give a place back. ``good``: its server may serve another episode."""
        gate = place_gates.pop(place, None)
        if gate is None:
            return
        alive = place.connection is not None and place.connection.alive
        if good and alive and place.served < self.launch.episodes:
            self._idle.append(place)
        else:
            self._drop(place)
        gate.release()

    def _drop(self, place: ServerFolder) -> None:
        """Throw a place away, without making anybody wait for it."""
        jobs = _background().jobs
        job = asyncio.get_running_loop().create_task(place.remove())
        jobs.add(job)
        job.add_done_callback(jobs.discard)

    async def close(self) -> None:
        """End the processes that wait for an episode."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(place.remove() for place in idle))


place_gates: dict[ServerFolder, asyncio.Semaphore] = {}
"""Which bound each place in use counts against."""


async def pool_of(launch: Launch, most: int = 0) -> McpServerPool:
    """The pool of a server, made at its first use with ``most`` places (0: the machine's default)."""
    pools = _background().pools
    if launch not in pools:
        pools[launch] = McpServerPool(launch, most or default_places())
    return pools[launch]


def _fresh(place: ServerFolder, lay_out: LayOut) -> None:
    place.empty()
    lay_out(place.folder)


def _sweep() -> None:
    """Remove the folders of programs that were killed."""
    for root in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = root.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not _lives(int(owner)):
            shutil.rmtree(root, ignore_errors=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def shut_down() -> None:
    """End all servers that wait for an episode. They are started again when they are needed."""
    if _thread is None or _thread.process != os.getpid():
        return

    async def close_all() -> None:
        pools = _background().pools
        await asyncio.gather(*(pool.close() for pool in pools.values()))
        pools.clear()
        await asyncio.gather(*_background().jobs, return_exceptions=True)

    waited_for(close_all())


def _at_exit() -> None:
    if _thread is None or _thread.process != os.getpid():
        return
    pipes.kill_all()
    for root in tuple(_roots):
        with suppress(OSError):
            shutil.rmtree(root, ignore_errors=True)
