"""``VllmServers``: a sampler over vLLM servers, our own child processes or somebody else's."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from muarl.basics.child import Child
from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.basics.keys import read_secret
from muarl.basics.system import usable_cores
from muarl.inference.base import AdapterWeights, Completion, SamplingParams, Weights
from muarl.inference.vllm.loops import LoopThread
from muarl.inference.vllm.nccl import NcclGroup
from muarl.inference.vllm.pool import Newest, Patience, ServerPlan, VllmPool
from muarl.inference.vllm.process import start_server, vllm_command
from muarl.inference.vllm.server import TOKEN
from muarl.inference.vllm.settings import VllmSettings, environment, on_cpu, require_vllm
from muarl.inference.vllm.weights import WeightFiles

Transfer = Literal["shared_memory", "file", "stream", "nccl"]
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
Launch = Callable[[int, str, Path], Child]
"""Starts server number n at a socket's path, with this log."""


@dataclass(frozen=True, slots=True)
class Transport:
    """How weights get to servers."""

    kind: Transfer = "shared_memory"
    folder: Path | None = None
    """Where files are written that the servers can read too, None: shared memory."""
    dtype: torch.dtype | None = None
    """The type they are written in, None: as they are."""
    devices: int = 1
    """Of each server, for nccl."""


class VllmServers:
    """A ``PolicySampler`` over several servers.

    A session stays with its server as long as that is up, so that its turns find their prefixes cached; new sessions go
    where the least is to do. A request whose server is lost fails with an InfrastructureError that may be retried: the
    rollout then plays that episode again. Any event loop and any thread may use it. Our own servers end with
    ``aclose``, when nobody holds this any more, and with this process, however it ends.
    """

    def __init__(
        self, pool: VllmPool, transport: Transport | None = None, own: Path | None = None, *, adapters: bool = False
    ) -> None:
        """Over a pool that is not started; ``start_servers`` and ``connect_servers`` make one. ``own``: a folder that
        is deleted at the end. ``adapters``: the servers have room for one."""
        self.transport = transport or Transport()
        self._takes_adapters = adapters
        self.version = 0
        self._pool = pool
        self._thread = LoopThread("vLLM servers")
        self._files: WeightFiles | None = None
        self._group: NcclGroup | None = None
        self._adapters = 0
        try:
            self._files = WeightFiles(self.transport.folder, self.transport.dtype)
            self._thread.run(pool.start(), pool.patience.start + 60, "starting the servers (engine.start_deadline)")
        except BaseException:
            _close(self._thread, pool, self._files, own)
            raise
        self._end = weakref.finalize(self, _close, self._thread, pool, self._files, own)

    @property
    def addresses(self) -> list[str]:
        """Where the servers listen; with ``token``, what ``connect_servers`` needs in another process."""
        return [plan.address for plan in self._pool.plans]

    @property
    def token(self) -> str:
        """What clients of these servers must know."""
        return self._pool.token

    @property
    def restarted(self) -> int:
        """How often a server of ours was started again."""
        return self._pool.restarted

    @property
    def pids(self) -> list[int | None]:
        """The process ids of our servers, None for those that are down or somebody else's."""
        return [None if s.process is None else s.process.pid for s in self._pool.servers]

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion:
        """Sample one completion; see ``Sampler``. ConfigError for a request that can never be served;
        InfrastructureError (boundary "agent") if its server is lost, hangs or answers too late."""
        patience = self._pool.patience
        work = self._pool.sample(tuple(prompt_ids), params, session)
        sampled = await self._thread.call(work, patience.start + patience.deadline + 10, "a completion")
        self.version = max(self.version, sampled.version)  # somebody else may move the weights
        return sampled

    def close_session(self, session: str) -> None:
        """Forget which server the session belongs to. Unknown sessions are ignored."""
        self._thread.soon(partial(self._pool.forget, session))

    async def update(self, weights: Weights, version: int) -> None:
        """Give every server these weights as ``version``; see ``PolicySampler``. An adapter is dropped.

        Servers that are down get them when they come up, unless they travel by NCCL: then with the next update.
        CheckpointError, ConfigError: the weights do not fit. InfrastructureError: no server took them, or there is no
        room for them. Of ``AdapterWeights`` the adapter alone, if the servers have room for one: it goes on the weights
        taken last without one, and never by NCCL, by which servers that start again get nothing.
        """
        patience = self._pool.patience
        if self._takes_adapters and self.transport.kind != "nccl" and isinstance(weights, AdapterWeights):
            with self._weight_files().adapter() as folder:
                await asyncio.to_thread(weights.write_adapter, folder)
                await self.update_adapter(folder, version)
            return
        if self.transport.kind == "nccl":
            self._group = self._group or NcclGroup(self._pool, self.transport.devices)
            work = self._group.send(weights, version)
            await self._thread.call(work, 2 * patience.update, "an update of weights (engine.update_deadline)")
            self.version = version
            return
        files = self._weight_files()
        paths = await asyncio.to_thread(lambda: files.write(weights()))
        await self._give(Newest(version, paths))

    def load(self, weights: Weights, version: int) -> None:
        """``update`` for plain code; it waits."""
        self._thread.run(self.update(weights, version), 2 * self._pool.patience.update + 60, "an update of weights")

    async def update_adapter(self, folder: Path, version: int) -> None:
        """Put this adapter (a folder in peft's format) on the weights given last, as ``version``. The folder may be
        deleted afterwards. CheckpointError if it is none or does not fit."""
        self._adapters += 1
        own = self._weight_files().folder / f"adapter-{self._adapters:06d}"
        try:
            own.mkdir(mode=0o700)
            for name in ADAPTER_FILES:
                shutil.copyfile(Path(folder) / name, own / name)
        except OSError as problem:
            shutil.rmtree(own, ignore_errors=True)
            raise CheckpointError(f"{folder}: is no adapter in peft's format: {problem}") from problem
        await self._give(replace(self._pool.newest, adapter=own, version=version))

    async def figures(self) -> list[dict[str, int]]:
        """Each server's counters as of its last answer to an update or health check; see ``EngineStats``."""
        return [dict(s.link.figures) if s.link is not None else {} for s in self._pool.servers]

    async def sleep(self) -> None:
        """See ``SleepingSampler``; the servers' settings must say ``sleep``."""
        patience = self._pool.patience
        await self._thread.call(self._pool.sleep(), 2 * patience.update, "putting the servers to sleep")

    async def aclose(self) -> None:
        """End the connections, and the servers that are ours."""
        await asyncio.to_thread(self._end)

    def _weight_files(self) -> WeightFiles:
        assert self._files is not None
        return self._files

    async def _give(self, newest: Newest) -> None:
        before, patience = self._pool.newest, self._pool.patience
        work = self._pool.update(newest)
        useless = newest
        try:
            await self._thread.call(work, 2 * patience.update + 30, "an update of weights (engine.update_deadline)")
            self.version, useless = newest.version, before
        finally:
            current = newest if useless is before else before
            if list(useless.paths) != list(current.paths):
                self._weight_files().forget(useless.paths)
            if useless.adapter is not None and useless.adapter != current.adapter:
                shutil.rmtree(useless.adapter, ignore_errors=True)


def start_servers(
    settings: VllmSettings,
    count: int,
    *,
    patience: Patience | None = None,
    transport: Transport | None = None,
    launch: Launch | None = None,
) -> VllmServers:
    """Start ``count`` servers on this machine, each on ``tensor_parallel`` devices after the last one's.

    ``launch``: how one is started, by default vLLM's. InfrastructureError says why one did not come up.
    """
    transport = transport or Transport()
    folder = Path(tempfile.mkdtemp(prefix="muarl-servers-"))
    token = secrets.token_hex(32)
    if launch is None:
        require_vllm()
        launch = partial(_launch, replace(settings, nccl=transport.kind == "nccl"), count, token)
    plans = [
        ServerPlan(
            f"vLLM server {n + 1} of {count}",
            str(folder / f"{n}.sock"),
            partial(launch, n, str(folder / f"{n}.sock"), folder / f"{n}.log"),
        )
        for n in range(count)
    ]
    try:
        pool = VllmPool(plans, token, patience or Patience(start=settings.start_deadline))
        return VllmServers(pool, transport, folder, adapters=settings.lora_rank > 0)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def connect_servers(
    addresses: Sequence[str],
    *,
    token: str | None = None,
    patience: Patience | None = None,
    transport: Transport | None = None,
    adapters: bool = False,
) -> VllmServers:
    """Use servers that somebody else started, at HOST:PORT each. ``token``: None for the environment's. ``adapters``:
    they were started with room for one.

    They are connected to again when they are lost, and given the newest weights. ConfigError for addresses that are
    none; InfrastructureError if one does not answer within ``patience.start``.
    """
    for address in addresses:
        host, colon, port = address.rpartition(":")
        if not address.startswith("/") and not (colon and host and "/" not in host and port.isdecimal()):
            raise ConfigError(f"engine.urls: {address!r} is no HOST:PORT")
    transport = transport or Transport("stream")
    shares = transport.kind != "stream"
    plans = [ServerPlan(f"the vLLM server at {a}", a, shares_files=shares) for a in addresses]
    pool = VllmPool(plans, read_secret(TOKEN) if token is None else token, patience or Patience())
    return VllmServers(pool, transport, adapters=adapters)


def _launch(settings: VllmSettings, count: int, token: str, number: int, address: str, log: Path) -> Child:
    first = settings.first_device + number * settings.tensor_parallel
    threads = settings.threads
    if on_cpu() and not threads:
        threads = max(1, int(usable_cores()) // count)
    own = replace(settings, first_device=first, threads=threads, seed=settings.seed + number)
    # The devices are chosen here: in the child's own numbering its first is 0.
    command = vllm_command(replace(own, first_device=0), address)
    return start_server(command, {**environment(own), TOKEN: token}, log)


def _close(thread: LoopThread, pool: VllmPool, files: WeightFiles | None, folder: Path | None) -> None:
    seconds = (pool.patience.grace + 6) * max(1, len(pool.plans))
    try:
        thread.run(pool.aclose(), seconds, "stopping the servers")
    except InfrastructureError:
        pass  # they notice the end of this process
    thread.stop()
    if files is not None:
        files.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
