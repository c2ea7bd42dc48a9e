"""The children that play: started when they are first needed, replaced where they die, ended with their pool.

A child that is lost costs no episode: what it had not sent is played again by another one, from the same seeds and
with the same weights. An error that a child raises ends what was asked of it, with the child's own words.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Any

from muarl.basics.errors import ConfigError, MuarlError
from muarl.inference.vllm.wire import WireError, receive, send
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.types.episode import Episode
from muarl.workers.cluster.calls import Failure, Lost
from muarl.workers.processes.child import LARGEST
from muarl.workers.processes.weights import SharedWeights

log = logging.getLogger(__name__)

TRIES = 3
"""Children that may be lost one after another, with no episode finished in between, before the run is given up."""
GRACE = 5.0
"""Seconds that children have to end when asked."""
TAIL = 2000
"""Characters of a lost child's last words that are told."""


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
        self._start = {**start, "op": "start", "threads": threads, "entries": [_row(e) for e in shared.entries]}
        self._children: list[_Child | None] = [None] * size
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
            done = await asyncio.gather(*(self._told(child) for child in running), return_exceptions=True)
        for problem in done:
            if isinstance(problem, BaseException) and not isinstance(problem, Lost):
                raise problem

    async def rest(self) -> None:
        """The children give up their samplers until there are weights again."""
        if self._loop is asyncio.get_running_loop():
            for child in self._children:
                if child is not None and child.lost is None:
                    child.say({"op": "rest"})
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
                except Lost as problem:
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

    async def _child(self, place: int) -> _Child:
        """The child at this place, started if there is none, with the newest weights. Lost if it dies at that."""
        async with self._locks[place]:
            child = self._children[place]
            if child is None or child.lost is not None:
                if child is not None:
                    child.end(time.monotonic())
                name = f"process {place + 1} of {self.size} (engine.processes)"
                child = self._children[place] = _Child(name, self._module, self._shared.descriptor, self._threads)
                try:
                    await child.begin(self._start)
                except BaseException:
                    child.end(time.monotonic())
                    self._children[place] = None
                    raise
            await self._told(child)
            return child

    async def _told(self, child: _Child) -> None:
        """Have a child take the newest weights, if it has not."""
        if child.serial != self._serial:
            serial, stage = self._serial, self.stage
            await child.take(self.version, fresh=child.stage != stage)
            child.serial, child.stage = serial, stage


class _Child:
    """One child process, its end of a socket pair, and a file with what it says. ``lost``: how it ended, if it did.
    ``stage`` and ``serial``: of the weights that it has."""

    def __init__(self, name: str, module: str, weights: int, threads: int) -> None:
        self.name = name
        self.lost: str | None = None
        self.stage = self.serial = -1
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Episode | Exception | None]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._mine, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `end`)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "OMP_NUM_THREADS": str(threads),
        }
        try:
            # A session of its own: an interrupt at the keyboard is the parent's to handle. Its standard input is its
            # lifeline: that ends when the parent does, however.
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno()), str(weights)],
                pass_fds=[theirs.fileno(), weights],
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                env=environment,
                start_new_session=True,
            )
        finally:
            theirs.close()

    async def begin(self, start: Mapping[str, Any]) -> None:
        """Wait until it is ready. Lost if it ends instead; the error that it raises."""
        reader, self._writer = await asyncio.open_connection(sock=self._mine)
        self._reading = asyncio.create_task(self._read(reader))
        await self._ask(0, start)

    async def take(self, version: int, *, fresh: bool) -> None:
        """Have it take new weights, and wait for that."""
        number = next(self._numbers)
        await self._ask(number, {"op": "weights", "id": number, "version": version, "fresh": fresh})

    async def play(
        self, requests: Sequence[RolloutRequest], cast: Mapping[str, Any], concurrency: int
    ) -> AsyncGenerator[Episode, None]:
        """Its episodes as they come. Lost if it ends; the error that it raises. Closed early, it stops playing them."""
        payload = _pickled(requests)
        number = next(self._numbers)
        queue = self._waiting[number] = asyncio.Queue()
        over = False
        try:
            self.say({"op": "play", "id": number, "cast": dict(cast), "concurrency": concurrency}, payload)
            while True:
                item = await queue.get()
                over = not isinstance(item, Episode)
                if isinstance(item, Exception):
                    raise item
                if item is None:
                    return
                yield item
        finally:
            del self._waiting[number]
            if not over:
                self.say({"op": "cancel", "id": number})

    async def _ask(self, number: int, value: Mapping[str, Any]) -> None:
        queue = self._waiting[number] = asyncio.Queue()
        try:
            self.say(value)
            answer = await queue.get()
            if isinstance(answer, Exception):
                raise answer
        finally:
            del self._waiting[number]

    def say(self, value: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a frame. Where it has ended, those who wait for an answer hear of that."""
        if self.lost is None and self._writer is not None:
            send(self._writer, value, payload)
        else:
            self._tell_all(Lost(self.lost or f"{self.name} has ended"))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        why: Exception | None = None
        try:
            while True:
                value, payload = await receive(reader, payloads=LARGEST)
                self._heard(value, payload)
        except (EOFError, OSError):
            pass
        except (WireError, ValueError) as problem:
            why = problem
        said = await asyncio.to_thread(self._last_words)
        self.lost = f"{self.name} {said}" if why is None else f"{self.name} sent what cannot be read: {why}"
        self._tell_all(Lost(self.lost))

    def _heard(self, value: Mapping[str, Any], payload: bytes) -> None:
        number = value.get("id")
        queue = self._waiting.get(0 if number is None else int(number))
        if queue is None:  # nobody waits any more
            return
        if value["op"] == "episode":
            queue.put_nowait(Episode.from_json(json.loads(payload)))
        elif value["op"] == "failed":
            queue.put_nowait(self._error(value))
        else:
            queue.put_nowait(None)

    def _error(self, value: Mapping[str, Any]) -> Exception:
        known = value.get("failure")
        if known is not None:
            return Failure(**known).error()
        return MuarlError(f"{self.name} failed:\n{str(value['traceback']).rstrip()}")

    def _tell_all(self, problem: Exception) -> None:
        for queue in self._waiting.values():
            queue.put_nowait(problem)

    def _last_words(self) -> str:
        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - TAIL))
        said = self._log.read().decode(errors="replace").strip()
        return f"{how}; its last words: {said}" if said else how

    def ask_to_end(self) -> None:
        """Close the connection, upon which it ends."""
        if self._reading is not None:
            with suppress(RuntimeError):  # its event loop has ended, and this task with it
                self._reading.cancel()
        if self._writer is not None:
            with suppress(RuntimeError):
                self._writer.close()
        with suppress(OSError):  # at once, not when the event loop comes to it
            self._mine.shutdown(socket.SHUT_RDWR)
        self._mine.close()

    def end(self, until: float) -> None:
        """See that it ends by then."""
        self.lost = self.lost or f"{self.name} was ended"
        self.ask_to_end()
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        self._log.close()


def _end(children: Sequence[_Child | None], shared: SharedWeights | None = None) -> None:
    """End these children, all at once; the memory for weights is closed, too, where they were the last."""
    running = [child for child in children if child is not None]
    for child in running:
        child.ask_to_end()
    until = time.monotonic() + GRACE
    for child in running:
        child.end(until)
    if shared is not None:
        shared.close()


def _row(entry: Any) -> list[Any]:
    return [entry.name, entry.dtype, list(entry.shape), entry.start, entry.size]


def _pickled(requests: Sequence[RolloutRequest]) -> bytes:
    try:
        return pickle.dumps(list(requests), protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as problem:
        task = requests[0].task
        raise ConfigError(
            f"engine.processes: a task of {task.domain} cannot be sent to another process ({problem}): set "
            "engine.processes=1"
        ) from None
