"""Processes that train one model together: how they find each other, and what they tell each other in plain JSON.

One process hosts a small store (``host_store``); all ``join`` it, check that they run the same muarl, and form a group
whose every wait has a deadline.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
import torch.distributed as dist

from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError, MuarlError
from muarl.basics.version import __version__

LOOPBACK = "127.0.0.1"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShardingConfig:
    """Where and how a sharded learner's processes work."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Either "cpu" (gloo), or "cuda" (NCCL; process number modulo the visible devices)."""
    offload_reference: bool = False
    """The reference model's weights stay in CPU memory, and come to the device layer by layer."""
    offload_optimizer: bool = False
    """The trained weights stay there too, with gradients and the optimiser's state."""
    deadline: float = 1800.0
    """Seconds that a process waits for the others, in whatever they do together."""

    def __post_init__(self) -> None:
        if not self.deadline > 0:
            raise ConfigError(f"learner.deadline: must be above 0, got {self.deadline}")


def host_store(host: str = LOOPBACK, port: int = 0, deadline: float = 300.0) -> tuple[dist.TCPStore, str]:
    """The meeting place of a group, and its address "HOST:PORT" (port 0: a free one). It lives as long as the store is
    held, which must be until all have joined. ConfigError if the port is in use."""
    try:
        store = dist.TCPStore(
            host, port, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=deadline), use_libuv=True
        )
    except (RuntimeError, OSError) as problem:
        if "EADDRINUSE" in str(problem) or "already in use" in str(problem):
            raise ConfigError(
                f"learner.port: port {port} of {host} is in use: name another one, or 0 for any that is free"
            ) from None
        raise InfrastructureError(
            f"no store at {host}:{port}: {problem}", boundary="learner", retryable=False
        ) from None
    return store, f"{host}:{store.port}"


def join(address: str, rank: int, world: int, sharding: ShardingConfig) -> torch.device:
    """Become process ``rank`` of ``world``, and return the device to work on. One alone needs no ``address``.

    InfrastructureError if the store cannot be reached or processes are missing after the deadline (it names them), or
    if another one runs another version of muarl or PyTorch.
    """
    patience = timedelta(seconds=sharding.deadline)
    hosted = None
    if world == 1 and not address:
        hosted, address = host_store()
    host, _, port = address.rpartition(":")
    try:
        store = dist.TCPStore(host, int(port), world, is_master=False, timeout=patience)
    except (RuntimeError, OSError, ValueError) as problem:
        raise _failure(f"process {rank} of {world} cannot reach the store at {address}: {problem}") from None
    store.set(f"muarl/{rank}", json.dumps(versions()))
    _meet(store, rank, world, sharding.deadline)
    device = torch.device("cpu")
    if sharding.device == "cuda":
        if not torch.cuda.is_available():
            raise _failure(f"process {rank} of {world} has no GPU: give it one, or use the device cpu")
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    backend = "gloo" if device.type == "cpu" else "cpu:gloo,cuda:nccl"
    group = dist.PrefixStore("group", store)
    dist.init_process_group(backend, store=group, rank=rank, world_size=world, timeout=patience)
    del hosted  # everybody has come
    return device


def leave() -> None:
    """Leave the group, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """What must be the same in all processes: muarl (and the very text of what computes), Python and PyTorch."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted([*root.glob("learning/*.py"), *root.glob("models/*.py")]):
        digest.update(file.name.encode() + file.read_bytes())
    python = ".".join(platform.python_version_tuple()[:2])
    return {
        "muarl": f"{__version__} ({digest.hexdigest()[:12]})",
        "torch": str(torch.__version__),
        "python": python,
    }


def gather(value: Any) -> list[Any]:
    """Every process's JSON value, by rank. All processes must ask together."""
    data = json.dumps(value).encode()
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([len(data)], dtype=torch.int64))
    longest = max(int(s) for s in sizes)
    own = torch.zeros(longest, dtype=torch.uint8)
    own[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    texts = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
    dist.all_gather(texts, own)
    return [json.loads(bytes(t[: int(n)].tolist())) for t, n in zip(texts, sizes, strict=True)]


def together(action: Callable[[], T]) -> T:
    """Do something that may fail in one process alone; then all fail, with the first one's words."""
    result: T | None = None
    problem: Exception | None = None
    try:
        result = action()
    except Exception as caught:  # whatever it was, the others wait for news
        problem = caught
    agree(problem)
    return result  # type: ignore[return-value]


def agree(problem: Exception | None) -> None:
    """All processes continue, or none does: raises each one's own problem, or the first other's."""
    kinds = {"ConfigError": ConfigError, "CheckpointError": CheckpointError}
    mine = None if problem is None else (type(problem).__name__, str(problem), isinstance(problem, MuarlError))
    others = gather(mine)
    if problem is not None:
        raise problem
    for rank, other in enumerate(others):
        if other is not None:
            name, text, clear = other
            message = text if clear else f"process {rank} of {len(others)}: {name}: {text}"
            raise kinds.get(name, MuarlError)(message)


def _meet(store: dist.TCPStore, rank: int, world: int, deadline: float) -> None:
    """Wait for all processes, and compare their versions."""
    keys = [f"muarl/{r}" for r in range(world)]
    try:
        store.wait(keys, timedelta(seconds=deadline))
    except (RuntimeError, OSError):
        missing = [str(r) for r, key in enumerate(keys) if not store.check([key])]
        raise _failure(
            f"process {rank} of {world} waited {deadline:.0f} seconds (learner.deadline) for process "
            f"{', '.join(missing) or '?'}, which did not come: look at its machine and its output"
        ) from None
    own = versions()
    for other, key in enumerate(keys):
        theirs = json.loads(store.get(key))
        for name, version in own.items():
            if theirs.get(name) != version:
                raise _failure(
                    f"process {rank} of {world} runs {name} {version}, but process {other} runs {theirs.get(name)}: "
                    "install the same version on every machine"
                )


def _failure(text: str) -> InfrastructureError:
    return InfrastructureError(f"learner: {text}", boundary="learner", retryable=False)


def use_loopback() -> None:
    """Make processes of one machine talk over its loopback interface, whatever its host name resolves to."""
    interface = next((n for n in ("lo", "lo0") if Path(f"/sys/class/net/{n}").exists()), None)
    if interface is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
