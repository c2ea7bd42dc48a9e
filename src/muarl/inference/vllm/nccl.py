"""Weights from the learner's GPU to the servers' by NCCL, with vLLM's own transfer at their end.

Tested where two GPUs are. Rank 0 is this process, then come the servers' devices. The group is made anew when a server
has come or gone: NCCL has no way to leave one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from muarl.basics.errors import ConfigError, InfrastructureError, MuarlError
from muarl.inference.base import Weights
from muarl.inference.vllm.link import Link
from muarl.inference.vllm.pool import Newest, VllmPool
from muarl.models.buckets import NamedTensor, dtype_name, parts

PART_BYTES = 512 << 20


def announcement(part: Sequence[NamedTensor]) -> dict[str, Any]:
    """What receivers must know of tensors that come one after another: names, types and shapes in that order."""
    return {
        "names": [n for n, _ in part],
        "dtype_names": [dtype_name(t) for _, t in part],
        "shapes": [list(t.shape) for _, t in part],
    }


class NcclGroup:
    """The learner's end. Used from the pool's event loop."""

    def __init__(self, pool: VllmPool, devices: int = 1, address: str = "127.0.0.1") -> None:
        """``devices``: of each server. ``address``: of this machine, as the servers reach it."""
        self._pool, self._devices, self._address = pool, devices, address
        self._members: list[Link] = []
        self._communicator: Any = None

    async def send(self, weights: Weights, version: int) -> None:
        """Give all servers that are up these weights as ``version``. InfrastructureError if that fails or takes longer
        than the pool's patience: the group is then given up, and its servers are started again."""
        pool = self._pool
        async with pool.updating:
            servers = [s for s in pool.servers if s.state in ("ready", "stale") and s.link is not None]
            links = [s.link for s in servers if s.link is not None]
            pool.newest = Newest(version, direct=True)
            try:
                async with asyncio.timeout(pool.patience.update):
                    if links != self._members:
                        await self._join(links)
                    await self._broadcast(links, weights, version)
            except BaseException as problem:
                self._members, self._communicator = [], None
                for link in links:  # their workers may be waiting inside NCCL for what never comes
                    link.break_off("an update by NCCL failed")
                if isinstance(problem, (TimeoutError, RuntimeError, OSError)):
                    raise InfrastructureError(
                        f"an update by NCCL failed: {problem or 'it took too long (engine.update_deadline)'}",
                        boundary="agent",
                    ) from problem
                raise
            for server in servers:
                server.state = "ready"
            pool.notify()

    async def _join(self, links: Sequence[Link]) -> None:
        from vllm.distributed.weight_transfer.nccl_common import trainer_init

        if self._communicator is not None:
            self._communicator.destroy()
        with socket.socket() as probe:
            probe.bind((self._address, 0))
            port = probe.getsockname()[1]
        size = 1 + len(links) * self._devices
        info = {"master_address": self._address, "master_port": port, "world_size": size, "packed": False}
        seconds = self._pool.patience.update
        asked = [
            link.ask("join", {"info": {**info, "rank_offset": 1 + n * self._devices}}, seconds=seconds)
            for n, link in enumerate(links)
        ]
        opened, *_ = await asyncio.gather(asyncio.to_thread(trainer_init, info), *asked)
        self._members, self._communicator = list(links), opened

    async def _broadcast(self, links: Sequence[Link], weights: Weights, version: int) -> None:
        with ExitStack() as stack:
            calls = [stack.enter_context(link.call("receive", {"version": version})) for link in links]
            stream = await asyncio.to_thread(lambda: iter(parts(weights(), PART_BYTES)))
            while (part := await asyncio.to_thread(next, stream, None)) is not None:
                for call in calls:
                    call.say("part", {"tensors": announcement(part)})
                await asyncio.to_thread(self._send, part)
            for call in calls:
                call.say("part", {"tensors": {}})
            try:
                await asyncio.gather(*(call.answer() for call in calls))
            except MuarlError as problem:
                raise InfrastructureError(str(problem), boundary="agent") from None

    def _send(self, part: Sequence[NamedTensor]) -> None:
        stream = torch.cuda.current_stream()
        sent = []
        for name, tensor in part:
            if tensor.device.type != "cuda":
                raise ConfigError(f"engine.update: nccl needs the learner's weights on a GPU, but {name} is not there")
            sent.append(tensor.contiguous())  # held until it has been sent
            self._communicator.broadcast(sent[-1], src=0, stream=stream)
        stream.synchronize()
