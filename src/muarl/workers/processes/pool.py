"""The children that play: started when they are first needed, replaced where they die, ended with their pool.

A child that is lost costs no episode: what it had not sent is played again by another one, from the same seeds and
with the same weights. An error that a child raises ends what was asked of it, with the child's own words.
"""

from __future__ import annotations

import asyncio
import json
import logging
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any

from muarl.basics.calls import Calls
from muarl.basics.child import GRACE, Child, end_all
from muarl.basics.errors import MuarlError
from muarl.basics.frames import LARGEST
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.types.episode import Episode
from muarl.workers.failures import Failure, ProcessLost
from muarl.workers.processes.child import packed

if TYPE_CHECKING:
    from muarl.models.buckets import SharedWeights

log = logging.getLogger(__name__)

TRIES = 3
"""Children that may be lost one after another, with no episode finished in between, before the run is given up."""


class ProcessPool:
    """``size`` children that run ``python -m module``, each told ``start`` first. ``shared``: the weights that they
    sample from. ``threads``: of each. Use it in one event loop at a time; in another one it starts other children.
    """

    def __init__(
        self, module: str, start: Mapping[str, Any], shared: SharedWeights, size: int, *, threads: int = 1
    ) -> None:
        if size < 1:
            raise ValueError(f"a pool needs at least one process, not {size}")
        self.size, self.stage, self.version = size, 0, 0
        self._shared, self._serial = shared, 0
        self._module, self._threads = module, threads
        self._start = {**start, "threads": threads, "weights": shared.bucket.table}
        self._children: list[_Player | None] = [None] * size
        self._loads = [0] * size
        self._locks: list[asyncio.Lock] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finalizer = weakref.finalize(self, _end, self._children, shared)

    @property
    def loads(self) -> tuple[int, ...]:
        """How many episodes each child has still to finish."""
        return tuple(self._loads)

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the children that run."""
        return tuple(child.process.pid for child in self._children if child is not None and child.lost is None)

    def begin(self, named: Callable[[], Any]) -> int:
        """A sampler begins with the weights that ``named`` gives, as version 0; the number of its stage. Nothing is
        being played meanwhile."""
        self.write(named())
        self.stage += 1
        self._serial += 1
        self.version = 0
        return self.stage

    def write(self, named: Any) -> None:
        """Copy these tensors into the shared memory; to be called by what ``update`` is given."""
        self._shared.write(named)

    async def update(self, write: Callable[[], Any], version: int) -> None:
        """``write`` changes the weights in the shared memory, to be sampled from as ``version``. Children that die over
        it take them when they are replaced."""
        self._enter()
        async with AsyncExitStack() as stack:
            for lock in self._locks:  # nobody reads the memory while it is written to
                await stack.enter_async_context(lock)
            await asyncio.to_thread(write)
            self.version = version
            self._serial += 1
            running = [child for child in self._children if child is not None and child.lost is None]
            done = await asyncio.gather(*(self._refresh(child) for child in running), return_exceptions=True)
        for problem in done:
            if isinstance(problem, BaseException) and not isinstance(problem, ProcessLost):
                raise problem

    async def rest(self) -> None:
        """The children give up their samplers until there are weights again."""
        if self._loop is asyncio.get_running_loop():
            for child in self._children:
                if child is not None and child.lost is None:
                    child.tell({"op": "rest"})
        self._serial += 1

    async def play(
        self, place: int, requests: Sequence[RolloutRequest], cast: Mapping[str, Any], concurrency: int
    ) -> AsyncGenerator[Episode, None]:
        """Have the child at ``place`` play these requests, at most ``concurrency`` at a time, and yield each one's
        episode as it is finished. ``cast``: see ``Players.playing``.

        MuarlError for an error in the child, and if ``TRIES`` children in a row are lost over the same episodes.
        """
        self._enter()
        left = {request.episode_id: request for request in requests}
        self._loads[place] += len(left)
        lost = 0
        try:
            while left:
                try:
                    child = await self._child(place)
                    async with aclosing(child.play([*left.values()], cast, concurrency)) as episodes:
                        async for episode in episodes:
                            del left[episode.id]
                            self._loads[place] -= 1
                            lost = 0
                            yield episode
                except ProcessLost as problem:
                    lost += 1
                    if lost >= TRIES:
                        raise MuarlError(
                            f"{problem}. The same happened to {lost} processes in a row (engine.processes): if memory "
                            "is short, lower engine.processes or rollout.concurrency"
                        ) from None
                    log.warning("%s; another one is started, and plays its %d episodes again", problem, len(left))
        finally:
            self._loads[place] -= len(left)

    def close(self) -> None:
        """End the children. Safe to call again."""
        self._finalizer()

    def _enter(self) -> None:
        """This event loop is the one that children are talked to in."""
        if not self._finalizer.alive:
            raise RuntimeError("the pool of processes is closed")
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            _end(self._children)
            self._children[:] = [None] * self.size
            self._locks = [asyncio.Lock() for _ in range(self.size)]
            self._loads = [0] * self.size
            self._loop = loop

    async def _child(self, place: int) -> _Player:
        """The child at this place, started if there is none, with the newest weights. ProcessLost if it dies at
        that."""
        async with self._locks[place]:
            child = self._children[place]
            if child is None or child.lost is not None:
                _end([child], seconds=0)
                name = f"process {place + 1} of {self.size} (engine.processes)"
                child = await _Player.start(name, self._module, self._shared.descriptor, self._threads)
                self._children[place] = child
                try:
                    await child.ask("start", self._start)
                except BaseException:
                    _end([child], seconds=0)
                    self._children[place] = None
                    raise
            await self._refresh(child)
            return child

    async def _refresh(self, child: _Player) -> None:
        """Have a child take the newest weights, if it has not."""
        if child.serial != self._serial:
            serial, stage = self._serial, self.stage
            await child.ask("weights", {"version": self.version, "fresh": child.stage != stage})
            child.serial, child.stage = serial, stage


class _Player(Calls):
    """One child process, and who waits for what it says. ``stage`` and ``serial``: of the weights that it has."""

    def __init__(self, process: Child, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(process.name, reader, writer, LARGEST)
        self.process = process
        self.stage = self.serial = -1

    @classmethod
    async def start(cls, name: str, module: str, weights: int, threads: int) -> _Player:
        """Start a child, which is then to be told how to play."""
        threaded = {"OMP_NUM_THREADS": str(threads)}
        process = Child.module(name, module, weights, environment=threaded, descriptors=[weights])
        try:
            return cls(process, *await asyncio.open_connection(sock=process.connection))
        except BaseException:
            process.end(0)
            raise

    async def play(
        self, requests: Sequence[RolloutRequest], cast: Mapping[str, Any], concurrency: int
    ) -> AsyncGenerator[Episode, None]:
        """Its episodes as they come. ProcessLost if it ends; the error that it raises. Closed early, it stops
        playing them."""
        fields = {"cast": dict(cast), "concurrency": concurrency}
        with self.call("play", fields, packed(requests)) as call:
            try:
                while (answer := await call.answer())[0]["op"] == "episode":
                    yield self._episode(answer[1])
            finally:
                call.say("cancel")  # what it is playing still, if anything

    def _episode(self, data: bytes) -> Episode:
        try:
            return Episode.from_json(json.loads(data))
        except ValueError as problem:
            self.hang_up(f"{self.name} sent what cannot be read: {problem}")
            raise self.failure() from None

    def failure(self) -> ProcessLost:
        """See ``Calls``."""
        return ProcessLost(self.lost or f"{self.name} has ended")

    def problem(self, value: Mapping[str, Any]) -> MuarlError | None:
        """See ``Calls``."""
        if value["op"] != "failed":
            return None
        if value["failure"] is not None:
            return Failure(**value["failure"]).error()
        return MuarlError(f"{self.name} failed:\n{str(value['traceback']).rstrip()}")

    async def fate(self, problem: Exception) -> str:
        """See ``Calls``."""
        said = await asyncio.to_thread(self.process.fate)
        closed = isinstance(problem, EOFError | OSError)
        return f"{self.name} {said}" if closed else f"{self.name} sent what cannot be read: {problem}"


def _end(children: Sequence[_Player | None], shared: SharedWeights | None = None, *, seconds: float = GRACE) -> None:
    """End these children, all at once; the memory for weights is closed, too, where they were the last."""
    running = [child for child in children if child is not None]
    for child in running:
        child.hang_up(f"{child.name} was ended")
    end_all((child.process for child in running), seconds)
    if shared is not None:
        shared.close()
