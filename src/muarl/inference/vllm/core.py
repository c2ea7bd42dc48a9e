"""vLLM's asynchronous engine behind five verbs: sample, load, adapt, receive, sleep. Lives in one event loop.

Every completion comes from one version of the weights: what is being generated when weights change is dropped and
starts again under the new ones (with the same seed), and callers notice nothing but the time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.inference.base import Completion, FinishReason, OnTokens, SamplingParams
from muarl.inference.requests import EngineStats, checked
from muarl.inference.sampling import spread_seed
from muarl.inference.vllm.settings import (
    VllmSettings,
    engine_arguments,
    environ,
    environment,
    require_vllm,
    weights_alone,
)


class Core(Protocol):
    """What a server serves. ``VllmCore`` is the real one."""

    version: int
    stats: EngineStats
    broken: str | None
    """Why it can serve nobody any more."""

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, on_tokens: OnTokens | None = None
    ) -> Completion: ...

    async def load(self, paths: Sequence[str], version: int) -> None:
        """Take all weights from these safetensors files as ``version``; an adapter is dropped."""
        ...

    async def adapt(self, folder: str, version: int) -> None:
        """Put the adapter of this folder (peft's format) on the loaded weights, in place of another, as ``version``."""
        ...

    async def join(self, info: Mapping[str, Any]) -> None:
        """Join the learner's NCCL group."""
        ...

    async def receive(self, parts: AsyncIterator[Mapping[str, Any]], version: int) -> None:
        """Take all weights from the NCCL group as ``version``; each part names the tensors that come next."""
        ...

    async def sleep(self) -> None:
        """Give the GPUs' memory back until the next change of weights; requests wait until then."""
        ...

    async def check(self) -> None:
        """InfrastructureError if the engine is dead."""
        ...

    async def aclose(self) -> None: ...


class VllmCore:
    """A ``Core`` over vLLM's ``AsyncLLM``; made by ``start`` in the event loop that it will live in."""

    def __init__(self, engine: Any, settings: VllmSettings, vocab: int, *, unfiltered: bool) -> None:
        self.version = 0
        self.stats = EngineStats()
        self.settings = settings
        self._engine, self._vocab, self._unfiltered = engine, vocab, unfiltered
        self._numbers = itertools.count()
        self._open = asyncio.Event()
        self._open.set()
        self._changing = asyncio.Lock()
        self._changes = 0
        self._adapter: Any = None
        self._adapters = itertools.count(1)
        self._asleep = False
        self.broken: str | None = None

    @classmethod
    async def start(cls, settings: VllmSettings, *, log_level: str = "INFO") -> VllmCore:
        """Start vLLM. It is started from this thread and blocks its loop until it is up.

        ConfigError, CheckpointError: what was asked for cannot be. InfrastructureError: vLLM did not come up; its own
        words are in its log.
        """
        require_vllm()
        arguments = engine_arguments(settings)
        with environ(environment(settings, log_level=log_level)), weights_alone(Path(settings.model)) as folder:
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.v1.engine.async_llm import AsyncLLM

            try:
                engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**{**arguments, "model": str(folder)}))
            except Exception as problem:
                raise InfrastructureError(
                    f"vLLM did not start: {_first_line(problem)} (what it wrote before this says why; too little "
                    "memory is the usual reason: engine.memory, engine.cache_gib, engine.max_sequences)",
                    boundary="agent",
                    retryable=False,
                ) from problem
        try:
            unfiltered = await engine.collective_rpc("muarl_report_before_truncation")
            vocab = int(engine.model_config.get_vocab_size())
        except BaseException:
            engine.shutdown()
            raise
        core = cls(engine, settings, vocab, unfiltered=all(unfiltered))
        del engine  # vLLM keeps this frame, and its engine complains if it is still held when the interpreter ends
        return core

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, on_tokens: OnTokens | None = None
    ) -> Completion:
        """Sample one completion; see ``Sampler``, and ``StreamingSampler`` for ``on_tokens``. Never returns one of
        mixed versions."""
        prompt = checked(prompt_ids, params, vocab=self._vocab, max_context=self.settings.max_context).tolist()
        if (params.top_p < 1 or params.top_k > 0) and params.temperature > 0 and not self._unfiltered:
            raise ConfigError(
                "top_p and top_k: this version of vLLM reports log-probabilities only after these filters; leave them "
                "off, or use engine.kind=torch"
            )
        while True:
            await self._open.wait()
            if self.broken is not None:
                raise InfrastructureError(self.broken, boundary="agent")
            version, changes = self.version, self._changes
            output = await self._generate(prompt, params, on_tokens)
            if changes == self._changes and output.outputs[0].finish_reason != "abort":
                return self._sampled(output, params, version)
            if on_tokens is not None and output.outputs[0].token_ids:
                text = "the weights changed while a completion was streamed; tokens already sent cannot be withdrawn"
                raise InfrastructureError(text, boundary="agent")
            self.stats.evictions += 1

    async def load(self, paths: Sequence[str], version: int) -> None:
        async with self._change(version):
            missing = [name for part in await self._call("muarl_load", list(paths)) for name in part]
            if missing:
                raise CheckpointError(
                    f"the weights for version {version} lack {len(missing)} that vLLM has, or cannot replace while it "
                    f"runs, such as {missing[0]}"
                )
            self._adapter = None

    async def adapt(self, folder: str, version: int) -> None:
        if not self.settings.lora_rank:
            raise ConfigError("engine.lora_rank: this engine was started without room for an adapter")
        from vllm.lora.request import LoRARequest

        if not (Path(folder) / "adapter_config.json").is_file():
            raise CheckpointError(f"{folder}: is no adapter in peft's format (adapter_config.json is missing)")
        request = LoRARequest(f"version-{version}", next(self._adapters), folder)
        async with self._change(version, fatal=False):
            if self._adapter is not None:
                await self._engine.remove_lora(self._adapter.lora_int_id)
            try:
                await self._engine.add_lora(request)
            except Exception as problem:
                raise CheckpointError(f"{folder}: vLLM does not take this adapter: {_first_line(problem)}") from problem
            self._adapter = request

    async def join(self, info: Mapping[str, Any]) -> None:
        await self._call("shutdown_weight_transfer_engine")
        await self._call("init_weight_transfer_engine", dict(info))

    async def receive(self, parts: AsyncIterator[Mapping[str, Any]], version: int) -> None:
        async with self._change(version):
            await self._call("start_weight_update")
            async for part in parts:
                await self._call("update_weights", dict(part))
            await self._call("finish_weight_update")
            await self._call("muarl_repack")
            self._adapter = None

    async def sleep(self) -> None:
        if not self.settings.sleep:
            raise ConfigError("engine.sleep: this engine was started without it")
        async with self._changing:
            if self._asleep:
                return
            self._open.clear()
            self._changes += 1
            try:
                # What an adapter is put on must be there when it wakes; other weights come anew.
                await self._engine.sleep(level=1 if self.settings.lora_rank else 2)
                self._asleep = True
            except BaseException as problem:
                self.broken = f"vLLM could not be put to sleep: {_first_line(problem)}"
                self._open.set()
                raise

    async def check(self) -> None:
        if self.broken is None and self._engine.errored:
            self.broken = "vLLM's engine died; its log says why"
        if self.broken is not None:
            raise InfrastructureError(self.broken, boundary="agent")

    async def aclose(self) -> None:
        self.broken = self.broken or "the engine was closed"
        self._open.set()
        if self._engine is not None:
            self._engine.shutdown(1.0)  # in this thread: others can no longer be had while the interpreter ends
            self._engine = None

    @asynccontextmanager
    async def _change(self, version: int, *, fatal: bool = True) -> AsyncIterator[None]:
        """Nothing is generated within; afterwards the weights are ``version`` and no cached key or value is left.

        If what is within fails and ``fatal``, the weights are in no known state and the engine serves nobody.
        """
        async with self._changing:
            self._open.clear()
            self._changes += 1
            try:
                await self._engine.pause_generation(mode="abort", clear_cache=True)
                if self._asleep:
                    await self._engine.wake_up(tags=["weights"])
                yield
                await self._resume()
                self.version = version
            except BaseException as problem:
                if fatal:
                    self.broken = f"a change of weights failed half-way: {_first_line(problem)}"
                else:
                    await self._resume()
                raise
            finally:
                self._open.set()

    async def _resume(self) -> None:
        if self._asleep:
            await self._engine.wake_up(tags=["kv_cache"])
            self._asleep = False
        await self._engine.resume_generation()

    def _call(self, method: str, *arguments: Any) -> Awaitable[Any]:
        """One of the workers' methods, on all of them."""
        answer: Awaitable[Any] = self._engine.collective_rpc(method, args=arguments)
        return answer

    async def _generate(self, prompt: list[int], params: SamplingParams, on_tokens: OnTokens | None) -> Any:
        from vllm import SamplingParams as VllmParams
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.exceptions import EngineDeadError

        vllm_params = VllmParams(
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            top_p=params.top_p if params.temperature > 0 else 1.0,
            top_k=params.top_k if params.temperature > 0 else 0,
            stop_token_ids=list(params.stop_ids),
            seed=None if params.seed is None else spread_seed(params.seed) & ((1 << 63) - 1),
            ignore_eos=True,  # what ends a reply is said by stop_ids alone
            logprobs=0,  # the sampled token's
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY if on_tokens is None else RequestOutputKind.CUMULATIVE,
        )
        last = None
        streamed = 0
        try:
            async for output in self._engine.generate(
                {"prompt_token_ids": prompt}, vllm_params, str(next(self._numbers)), lora_request=self._adapter
            ):
                last = output
                if on_tokens is not None and output.outputs[0].finish_reason != "abort":
                    streamed = _tell(output.outputs[0], streamed, on_tokens)
        except EngineDeadError:
            self.broken = "vLLM's engine died; its log says why"
            raise InfrastructureError(self.broken, boundary="agent") from None
        except ValueError as problem:
            raise ConfigError(f"vLLM refused a request: {_first_line(problem)}") from problem
        except Exception as problem:
            text = f"vLLM could not complete a request: {_first_line(problem)}"
            raise InfrastructureError(text, boundary="agent") from problem
        if last is None:
            raise InfrastructureError("vLLM ended a request without an answer", boundary="agent")
        return last

    def _sampled(self, output: Any, params: SamplingParams, version: int) -> Completion:
        completion = output.outputs[0]
        ids = tuple(int(i) for i in completion.token_ids)
        logprobs = tuple(float(at[i].logprob) for i, at in zip(ids, completion.logprobs, strict=True))
        if not ids:
            raise InfrastructureError("vLLM sampled nothing", boundary="agent")
        reused = int(output.num_cached_tokens or 0)
        self.stats.requests += 1
        self.stats.reused_tokens += reused
        self.stats.prefill_tokens += len(output.prompt_token_ids) - reused
        self.stats.decode_tokens += len(ids)
        reason: FinishReason = "stop" if ids[-1] in params.stop_ids else "length"
        return Completion(ids, logprobs, reason, version)


def _tell(completion: Any, streamed: int, on_tokens: OnTokens) -> int:
    """``on_tokens`` hears of what came after its first ``streamed`` ids; how many it has heard of now."""
    ids = [int(i) for i in completion.token_ids[streamed:]]
    if ids:
        on_tokens(ids, [float(at[i].logprob) for i, at in zip(ids, completion.logprobs[streamed:], strict=True)])
    return streamed + len(ids)


def _first_line(problem: BaseException) -> str:
    text = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {text[0]}" if text else type(problem).__name__
