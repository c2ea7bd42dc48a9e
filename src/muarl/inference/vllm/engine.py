"""``VllmEngine``: vLLM in this process. Its model runs in a child process that vLLM starts and ends with it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from muarl.basics.errors import InfrastructureError
from muarl.inference.base import AdapterWeights, Completion, OnTokens, SamplingParams, Weights
from muarl.inference.requests import EngineStats
from muarl.inference.vllm.core import Core, VllmCore
from muarl.inference.vllm.loops import LoopThread
from muarl.inference.vllm.settings import VllmSettings
from muarl.inference.vllm.weights import WeightFiles

CLOSING = 30.0


class VllmEngine:
    """A ``PolicySampler`` over vLLM: token ids in, token ids and log-probabilities out.

    It begins with the weights of its model folder, as version 0. Any event loop may use it. What is being generated
    when weights change starts again under the new ones, so every completion comes from one version. vLLM is ended by
    ``aclose``, when nobody holds the engine any more, and with this process.

    A script that makes one needs an ``if __name__ == "__main__"`` guard: vLLM's child imports the script.
    ``deadline``: seconds that one completion may take, with waiting for its turn; ``update_deadline``: an update.
    """

    def __init__(
        self,
        settings: VllmSettings,
        *,
        deadline: float = 600.0,
        update_deadline: float = 600.0,
        update_folder: Path | None = None,
    ) -> None:
        self.version = 0
        self.deadline, self.update_deadline = deadline, update_deadline
        self._adapters = settings.lora_rank > 0
        self._thread = LoopThread("vLLM engine")
        try:
            self._files = WeightFiles(update_folder)
            self._core: Core = self._thread.run(
                VllmCore.start(settings, log_level="ERROR"), settings.start_deadline + 30, "starting vLLM"
            )
        except BaseException:
            self._thread.stop()
            if hasattr(self, "_files"):
                self._files.close()
            raise
        self._end = weakref.finalize(self, _close, self._thread, self._core, self._files)

    @property
    def stats(self) -> EngineStats:
        """Tokens computed, found in the cache and sampled. ``evictions`` counts completions restarted."""
        return self._core.stats

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion:
        """Sample one completion; see ``Sampler``. ConfigError for a request that can never be served,
        InfrastructureError (boundary "agent") if vLLM fails or the deadline passes."""
        return await self._ask(self._core.sample(tuple(prompt_ids), params))

    async def stream(
        self, prompt_ids: Sequence[int], params: SamplingParams, on_tokens: OnTokens, *, session: str | None = None
    ) -> Completion:
        """As ``sample``, and ``on_tokens`` is told of ids as they come; see ``StreamingSampler``."""
        return await self._ask(self._core.sample(tuple(prompt_ids), params, on_tokens))

    async def _ask(self, work: Coroutine[Any, Any, Completion]) -> Completion:
        try:
            return await self._thread.call(work, self.deadline, "a completion by vLLM (engine.deadline)")
        except InfrastructureError as problem:
            if self._core.broken is None:
                raise
            raise InfrastructureError(
                f"{problem}. Start the run again with resume; engine.servers=1 makes vLLM a server that is started "
                "again by itself",
                boundary="agent",
                retryable=False,
            ) from problem

    def close_session(self, session: str) -> None:
        """Nothing to do: vLLM's cache finds prefixes by itself, and forgets those that were used longest ago."""

    async def update(self, weights: Weights, version: int) -> None:
        """Take these weights as ``version``, through shared memory; see ``PolicySampler``. Of ``AdapterWeights`` the
        adapter alone, if there is room for one: it goes on the weights taken last without one."""
        if self._adapters and isinstance(weights, AdapterWeights):
            with self._files.adapter() as folder:
                await asyncio.to_thread(weights.write_adapter, folder)
                await self.update_adapter(folder, version)
            return
        paths = await asyncio.to_thread(lambda: self._files.write(weights()))
        try:
            await self._thread.call(
                self._core.load([str(p) for p in paths], version), self.update_deadline, "an update of vLLM's weights"
            )
            self.version = version
        finally:
            self._files.forget(paths)

    def load(self, weights: Weights, version: int) -> None:
        """``update`` for plain code; it waits."""
        self._thread.run(self.update(weights, version), 2 * self.update_deadline + 60, "an update of weights")

    async def update_adapter(self, folder: Path, version: int) -> None:
        """Sample with this adapter (a folder in peft's format) on the weights taken last, as ``version``."""
        await self._thread.call(
            self._core.adapt(str(Path(folder).absolute()), version), self.update_deadline, "an update of an adapter"
        )
        self.version = version

    async def sleep(self) -> None:
        """See ``SleepingSampler``; the settings must say ``sleep``."""
        await self._thread.call(self._core.sleep(), self.update_deadline, "putting vLLM to sleep")

    async def aclose(self) -> None:
        """End vLLM's processes."""
        await asyncio.to_thread(self._end)


def _close(thread: LoopThread, core: Core, files: WeightFiles) -> None:
    try:
        thread.run(core.aclose(), CLOSING, "closing vLLM")
    except InfrastructureError:
        pass  # its processes end with this one
    thread.stop()
    files.close()
    gc.collect()  # vLLM's engine is a cycle, and complains if it is collected while the interpreter ends
