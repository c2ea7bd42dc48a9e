"""How weights reach samplers without passing the object store: two kinds of groups of one learner process and samplers.

``BroadcastGroup``: a process group of torch.distributed, NCCL between GPUs and gloo between CPUs. ``SharedGroup``: one
buffer that all see, on one GPU by CUDA IPC, on a CPU in shared memory. In both, weights travel in buckets: what is in
one (names, types, shapes) is announced in the group's store before its bytes are sent. Rank 0 sends. A group that has
lost a member is of no more use (``GroupBroken``); a new one is formed by those that are there.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from muarl.basics.system import shared_memory
from muarl.learning.process_group import LOOPBACK, use_loopback
from muarl.models.buckets import Bucket

GroupKind = Literal["broadcast", "ipc"]
BROKEN = "broken"
LOOK = 0.05
"""Seconds between two looks at whether somebody has given the group up."""
AT_EXIT = 5.0
"""Seconds that a process which exits leaves to groups that are being ended: a thread that comes back from PyTorch while
the interpreter goes down would abort the process."""
NEVER = timedelta(days=1)
"""PyTorch would end the whole process where NCCL waits longer than it is told; waiting ends here before that."""


class GroupBroken(Exception):
    """A member of the group is lost, too late, or could not do its part."""


class WeightGroup(ABC):
    """Process ``rank`` of ``world`` in a group that meets at the store ``address`` (HOST:PORT, see ``host_store``).

    ``device``: where weights lie, the same kind for all. ``seconds``: that any one bucket may take. GroupBroken from
    every method where another member is lost; the group is then of no more use. A set of weights may be sent when all
    have received the one before.
    """

    def __init__(self, address: str, rank: int, world: int, *, device: torch.device, seconds: float) -> None:
        self.rank, self.world, self.device, self.seconds = rank, world, device, seconds
        self.sent = 0  # bytes
        self._number = 0
        self._keys: list[str] = []  # announcements of the present set of weights
        self._read: list[str] = []  # those of the last one, which all have read
        host, _, port = address.rpartition(":")
        with self._given_up("it cannot reach the group's store"):
            self._store = dist.TCPStore(host, int(port), is_master=False, timeout=timedelta(seconds=seconds))

    def send(self, bucket: Bucket) -> None:
        """Rank 0: give all others one bucket."""
        with self._given_up("a bucket could not be sent"):
            flat = bucket.data.to(self.device)
            more = self._prepare(flat)
            self._announce({"table": bucket.table, "size": len(flat), **more})
            self._deliver(flat)
            self.sent += len(flat)

    def end(self) -> None:
        """Rank 0: that was all of this set of weights."""
        with self._given_up("the end could not be announced"):
            self._announce({})
            self._keys, self._read = [], self._keys

    def fail(self, why: str) -> None:
        """Give the group up: nobody shall wait for this member any more."""
        with contextlib.suppress(GroupBroken), self._given_up(why):
            raise GroupBroken(f"rank {self.rank}: {why}")

    def receive(self) -> Iterator[tuple[str, Tensor]]:
        """Every other rank: the next set of weights, bucket by bucket. The tensors are the caller's to keep."""
        while True:
            with self._given_up("a bucket could not be received"):
                announcement = self._announced()
                data = self._fetch(announcement) if announcement else None
            if data is None:
                return
            yield from Bucket.at(announcement["table"], data).tensors()

    # ---- what the kinds do

    @abstractmethod
    def close(self) -> None:
        """Leave the group. Safe to call again."""

    @abstractmethod
    def _prepare(self, flat: Tensor) -> Mapping[str, Any]:
        """What else receivers must know of the bucket that comes next."""

    @abstractmethod
    def _deliver(self, flat: Tensor) -> None:
        """Give the bucket to those that have heard of it."""

    @abstractmethod
    def _fetch(self, announcement: Mapping[str, Any]) -> Tensor:
        """The announced bucket's bytes, in memory of this member's own."""

    # ---- what they share

    def _announce(self, what: Mapping[str, Any]) -> None:
        for key in self._read:
            self._store.delete_key(key)
        self._read = []
        self._keys.append(f"bucket/{self._number}")
        self._store.set(self._keys[-1], json.dumps(what))
        self._number += 1

    def _announced(self) -> dict[str, Any]:
        key = f"bucket/{self._number}"
        self._until(lambda: self._store.check([key]), "the sender's announcement")
        announcement: dict[str, Any] = json.loads(self._store.get(key))
        self._number += 1
        return announcement

    def _until(self, done: Callable[[], bool], what: str) -> None:
        """Wait for something. GroupBroken after ``seconds``, or when somebody has given the group up."""
        began, looked, pause = time.monotonic(), 0.0, 1e-4
        while not done():
            now = time.monotonic()
            if now - looked >= LOOK:
                looked = now
                if self._store.check([BROKEN]):
                    raise GroupBroken(self._store.get(BROKEN).decode(errors="replace"))
            if now - began > self.seconds:
                raise GroupBroken(f"rank {self.rank} of {self.world} waited {self.seconds:.0f} s for {what}")
            time.sleep(pause)
            pause = min(2 * pause, 0.01)

    @contextlib.contextmanager
    def _given_up(self, what: str) -> Iterator[None]:
        """Whatever goes wrong within, all others are told, and it is a GroupBroken: in the words of whoever came first,
        since what others see of it is a closed connection."""
        try:
            yield
        except Exception as problem:
            text = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
            text = text if isinstance(problem, GroupBroken) else f"rank {self.rank}: {what}: {text}"
            if hasattr(self, "_store"):
                with contextlib.suppress(RuntimeError):  # the store is gone with its host
                    # Sets it only if it is not there, and gives what is.
                    text = self._store.compare_set(BROKEN, "", text).decode(errors="replace")
            self.close()
            raise GroupBroken(text) from problem


class BroadcastGroup(WeightGroup):
    """A process group of its own beside whatever else the processes use torch.distributed for: NCCL where ``device`` is
    a GPU (another one for each member), else gloo."""

    def __init__(self, address: str, rank: int, world: int, *, device: torch.device, seconds: float) -> None:
        super().__init__(address, rank, world, device=device, seconds=seconds)
        store = dist.PrefixStore("group", self._store)
        self._group: Any = None
        if address.startswith(f"{LOOPBACK}:"):
            use_loopback()
        with self._given_up("the process group could not be made"):
            # What follows waits for all of them, and cannot be called off.
            self._store.set(f"here/{rank}", "")
            everybody = [f"here/{r}" for r in range(world)]
            self._until(lambda: self._store.check(everybody), "the other members")
            self._group = _nccl(store, rank, world) if device.type == "cuda" else _gloo(store, rank, world, seconds)

    def close(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            ending = threading.Thread(target=_abort, args=(group,), name="end of a group of weights", daemon=True)
            del group  # so that it ends there: that lasts as long as a broadcast to a silent member may
            ending.start()
            atexit.register(ending.join, AT_EXIT)

    def _prepare(self, flat: Tensor) -> Mapping[str, Any]:
        return {}

    def _deliver(self, flat: Tensor) -> None:
        if self._group is None:
            raise GroupBroken("the group was closed")
        if not len(flat):
            return
        work = self._group.broadcast([flat], dist.BroadcastOptions())
        self._until(work.is_completed, "a broadcast")
        work.wait()
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()

    def _fetch(self, announcement: Mapping[str, Any]) -> Tensor:
        flat = torch.empty(announcement["size"], dtype=torch.uint8, device=self.device)
        self._deliver(flat)
        return flat


def _abort(group: Any) -> None:
    with contextlib.suppress(RuntimeError):
        group.abort()


def _gloo(store: dist.Store, rank: int, world: int, seconds: float) -> Any:
    return dist.ProcessGroupGloo(store, rank, world, timedelta(seconds=seconds))


def _nccl(store: dist.Store, rank: int, world: int) -> Any:
    kind: Any = dist.ProcessGroupNCCL
    options = kind.Options()
    options._timeout = NEVER
    return kind(store, rank, world, options)


class SharedGroup(WeightGroup):
    """One buffer in memory that all members see: each bucket is written there, and the next one when all have read it.

    Every member is on one machine, and where ``device`` is a GPU on that very GPU.
    """

    _buffer: Tensor | None = None
    _handle: Mapping[str, Any] | None = None
    _file: Path | None = None

    def close(self) -> None:
        self._buffer = self._handle = None
        self._unlink()

    def _prepare(self, flat: Tensor) -> Mapping[str, Any]:
        if self._buffer is None or len(self._buffer) < len(flat):
            self._unlink()
            if self.device.type == "cuda":
                self._buffer = torch.empty(len(flat), dtype=torch.uint8, device=self.device)
                self._handle = _cuda_handle(self._buffer)
            else:
                self._file, self._buffer = _shared_memory(len(flat))
                self._handle = {"file": str(self._file), "bytes": len(flat)}
        self._buffer[: len(flat)].copy_(flat)
        self._synchronize()
        assert self._handle is not None
        return {"handle": self._handle}

    def _deliver(self, flat: Tensor) -> None:
        key = f"read/{self._number - 1}"
        self._until(lambda: self._store.add(key, 0) >= self.world - 1, "the readers of a bucket")
        self._store.delete_key(key)
        self._unlink()  # all have it open, and it ends with the last of them

    def _fetch(self, announcement: Mapping[str, Any]) -> Tensor:
        handle = announcement["handle"]
        if self._buffer is None or handle != self._handle:
            self._buffer = _opened(handle, self.device)
            self._handle = handle
        flat = self._buffer[: announcement["size"]].clone()
        self._synchronize()
        self._store.add(f"read/{self._number - 1}", 1)
        return flat

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()

    def _unlink(self) -> None:
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._file = None


def _shared_memory(size: int) -> tuple[Path, Tensor]:
    descriptor, name = tempfile.mkstemp(dir=shared_memory(), prefix=f"muarl-buffer-{os.getpid()}-")
    path = Path(name)
    try:
        if hasattr(os, "posix_fallocate"):  # without it a full shared memory ends the process when it is written to
            os.posix_fallocate(descriptor, 0, max(size, 1))
        return path, torch.from_file(name, shared=True, size=size, dtype=torch.uint8)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _cuda_handle(buffer: Tensor) -> dict[str, Any]:
    """What another process on this GPU needs to see the buffer, as JSON values."""
    shared = buffer.untyped_storage()._share_cuda_()
    values = [base64.b64encode(v).decode() if isinstance(v, bytes) else v for v in shared[1:]]
    return {"gpu": _gpu(buffer.device), "cuda": values, "bytes": len(buffer)}


def _opened(handle: Mapping[str, Any], device: torch.device) -> Tensor:
    if "file" in handle:
        if not Path(handle["file"]).is_file():
            raise GroupBroken(f"{handle['file']} is not there: learner and sampler are not on one machine")
        return torch.from_file(handle["file"], shared=True, size=handle["bytes"], dtype=torch.uint8)
    here = _gpu(device)
    if here != handle["gpu"]:
        raise GroupBroken(f"the learner is on GPU {handle['gpu']} and this sampler on {here}: CUDA IPC needs the same")
    values = [base64.b64decode(v) if isinstance(v, str) else v for v in handle["cuda"]]
    index = torch.cuda.current_device() if device.index is None else device.index
    storage = torch.UntypedStorage._new_shared_cuda(index, *values)
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage)[: handle["bytes"]]


def _gpu(device: torch.device) -> str:
    return str(torch.cuda.get_device_properties(device).uuid)


KINDS: Mapping[GroupKind, type[WeightGroup]] = {"broadcast": BroadcastGroup, "ipc": SharedGroup}


def join_group(
    kind: GroupKind, address: str, rank: int, world: int, *, device: torch.device, seconds: float
) -> WeightGroup:
    """Become a member of a group; returns when all are there (``broadcast``), or at once. GroupBroken if that fails."""
    return KINDS[kind](address, rank, world, device=device, seconds=seconds)


def give_up(address: str, why: str, seconds: float = 5.0) -> None:
    """Tell all members of the group at this store that it is broken, so that nobody waits for who is lost. Somebody
    outside of it may do so; without effect if the store is gone."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(RuntimeError, ValueError):
        dist.TCPStore(host, int(port), is_master=False, timeout=timedelta(seconds=seconds)).compare_set(BROKEN, "", why)
