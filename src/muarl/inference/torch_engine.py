"""``TorchEngine``: batched generation in this process, on a CPU or one GPU.

Coroutines call ``sample``; one scheduler task, alive only while there is work, batches whatever they ask for: it lets
every ready coroutine hand in its request, prefills what is new in their prompts, then takes one decode step for all of
them. Keys and values stay cached between a session's turns; a prefix that another slot holds is copied, not computed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.inference import sampling
from muarl.inference.base import Completion, FinishReason, OnTokens, SamplingParams, Weights
from muarl.inference.decode_state import DecodeState
from muarl.inference.fixed_steps import FixedSteps, StepKind, resolved
from muarl.inference.requests import EngineStats, SampleRequest, checked, next_chunk
from muarl.inference.slots import Placement, SlotTable
from muarl.learning.lora import AdaptedWeights, merged_in
from muarl.models.decoder_cached import CachedDecoder
from muarl.models.path import CachedModel, path_of
from muarl.models.weights import copy_weights

SHARE_AT_LEAST = 8
"""Waiting one prefill round for a neighbour's prefix must save at least this many tokens."""
SPAN_STEP = 32
"""Attention looks at this many positions or a multiple of it."""
PREFILL_TOKENS = 4096
"""Padded tokens in one prefill call, and so also the longest piece of one prompt that is computed at once; a GPU takes
four times as many."""
IN_PLACE_SHARE = 0.5
"""Attention reads the cache in place while at least this share of its rows is active; below, it gathers them first."""
PATIENCE = 6
"""Turns of the event loop without news after which the engine stops waiting for answered episodes to come back."""


class TorchEngine:
    """A ``Sampler`` over a Hugging Face model, on whichever path computes it (see ``models.path``).

    The engine copies the model's weights: changes take effect at ``weights_changed`` or ``update_weights``, which count
    ``version`` up; requests that are running then start again under the new weights, so every completion comes from one
    version. Use it from one event loop at a time and update it from that loop's thread.

    ``max_slots``: cache rows, so also the most requests decoded at once; more wait. ``max_context``: the most tokens of
    prompt and completion together; a request beyond it is refused with ConfigError. ``device`` and ``dtype`` default to
    the model's own; log-probabilities are float32 in any case. ``seed``: of the stream that serves requests without a
    seed. ``steps``: see ``StepKind``. ``adapters``: the model is what a learner puts adapters on, which come alone.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        max_slots: int = 256,
        max_context: int = 2048,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        seed: int = 0,
        steps: StepKind = "auto",
        adapters: bool = False,
    ) -> None:
        if max_slots < 1 or max_context < 2:
            raise ConfigError(f"max_slots={max_slots} and max_context={max_context} must be at least 1 and 2")
        first = next(model.parameters(), None)
        if first is None:
            raise CheckpointError("the model has no parameters to generate with")
        self.model = model
        self.version = 0
        self.stats = EngineStats()
        self.max_slots, self.max_context = max_slots, max_context
        self.device = torch.device(device) if device is not None else first.device
        kind = dtype or first.dtype
        path = path_of(model)
        how = resolved(steps, self.device, path.support)
        slots = max_slots if how == "none" else max_slots + 1  # steps of fixed shapes need a spare one
        self._adapters, self._lenient, self._how = adapters, steps == "auto", how
        self._make = partial(path.cached, slots=slots, positions=max_context, device=self.device, dtype=kind)
        self._table = SlotTable(max_slots, max_context)
        self._random = np.random.default_rng(seed)
        self._waiting: deque[SampleRequest] = deque()
        self._running: dict[int, SampleRequest] = {}
        self._scheduler: asyncio.Task[None] | None = None
        self._arrivals = 0
        self._streams = 0  # running calls of ``stream``
        self._away = 0  # episodes answered in this round that have neither come back nor closed
        self._state = DecodeState(slots, max_context, self.device)
        self._common = (0, 0)
        self._cached: CachedModel
        self._fixed: FixedSteps | None = None
        self.asleep = True
        self._wake()
        self._vocab = self._cached.vocab

    # ---- what callers use

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion:
        """Sample one completion; see ``Sampler``.

        ConfigError for a request that can never be served, InfrastructureError (boundary "agent") if the engine fails
        while it runs.
        """
        return await self._ask(prompt_ids, params, session, None)

    async def stream(
        self, prompt_ids: Sequence[int], params: SamplingParams, on_tokens: OnTokens, *, session: str | None = None
    ) -> Completion:
        """As ``sample``, and ``on_tokens`` is told of ids as they come; see ``StreamingSampler``."""
        self._streams += 1
        try:
            return await self._ask(prompt_ids, params, session, on_tokens)
        finally:
            self._streams -= 1

    async def _ask(
        self, prompt_ids: Sequence[int], params: SamplingParams, session: str | None, on_tokens: OnTokens | None
    ) -> Completion:
        prompt = checked(prompt_ids, params, vocab=self._vocab, max_context=self.max_context)
        loop = asyncio.get_running_loop()
        seed = int(self._random.integers(1 << 63)) if params.seed is None else params.seed
        request = SampleRequest(
            prompt, params, sampling.spread_seed(seed), session, loop.create_future(), on_tokens=on_tokens
        )
        self._waiting.append(request)
        self._arrivals += 1
        self._away -= 1
        if self._scheduler is None or self._scheduler.done():
            self._scheduler = loop.create_task(self._serve())
        try:
            return await request.future
        except asyncio.CancelledError:
            self._withdraw(request)
            raise

    def close_session(self, session: str) -> None:
        """Free the session's slot. Unknown sessions are ignored."""
        self._table.close(session)
        self._arrivals += 1
        self._away -= 1

    def weights_changed(self) -> int:
        """Take the model's present weights, drop every cached key and value, count ``version`` up and return it."""
        if not self.asleep:
            self._cached.refresh(self.model)
        self.version += 1
        self._table.invalidate()
        self._restart_running()
        return self.version

    def update_weights(self, weights: Mapping[str, Tensor]) -> int:
        """Copy named weights into the model, all or none, then ``weights_changed``.

        CheckpointError for a name that the model lacks or a shape that differs.
        """
        own = dict(self.model.named_parameters(remove_duplicate=False))
        wrong = [n for n, w in weights.items() if n not in own or own[n].shape != w.shape]
        if wrong:
            raise CheckpointError(f"weights that do not fit the model ({len(wrong)} in all), such as {wrong[0]!r}")
        with torch.no_grad():
            for name, value in weights.items():
                own[name].copy_(value)
        return self.weights_changed()

    async def update(self, weights: Weights, version: int) -> None:
        """Sample from these weights as ``version``. Where the learner trains this engine's own model they are there
        already; others are copied in, one after another. Of an adapter alone (``adapters``) the model stays as it is:
        what is sampled from is the model with the adapter merged into it.

        CheckpointError for a name that the model lacks or a shape that differs.
        """
        if self.asleep:
            self._wake()  # before the model changes: a request may come while weights arrive
        if self._adapters and isinstance(weights, AdaptedWeights):
            with merged_in(self.model, await asyncio.to_thread(weights.adapter), weights.settings):
                self.weights_changed()
        else:
            await asyncio.to_thread(lambda: copy_weights(weights(), self.model))
            self.weights_changed()
        self.version = version

    async def sleep(self) -> None:
        """Give back what weights, cache and recorded steps take, but not the model, until the next update or request;
        see ``SleepingSampler``. What is being generated starts again when it wakes."""
        if self.asleep:
            return
        self._table.invalidate()
        self._restart_running()
        self._how = self._how if self._fixed is None else self._fixed.kind
        self._fixed = None
        del self._cached
        self.asleep = True
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _wake(self) -> None:
        """Take the model's weights of this moment, and an empty cache."""
        self._cached = self._make()
        if self._how != "none" and isinstance(self._cached, CachedDecoder):
            with torch.no_grad():
                self._cached.weights.unpack(self.model)
            self._fixed = FixedSteps(self._cached, self._state, self._how, unit=SPAN_STEP, lenient=self._lenient)
        self.asleep = False

    async def aclose(self) -> None:
        """Nothing to do: what the engine holds goes with it."""

    @property
    def sessions(self) -> int:
        """How many sessions hold a slot of the cache."""
        return self._table.sessions

    def _withdraw(self, request: SampleRequest) -> None:
        """The caller gave up: forget its request wherever it is."""
        if self._running.get(request.slot) is request:
            del self._running[request.slot]
            self._state.stop(request.slot)
            self._table.release(request.slot)
        elif request in self._waiting:
            self._waiting.remove(request)

    def _restart_running(self) -> None:
        for slot, request in reversed(self._running.items()):
            self._table.release(slot)
            if request.starts_again():
                self._waiting.appendleft(request)
        self._running.clear()
        self._state.clear()

    def _forget_requests(self) -> None:
        """Drop all requests: the engine failed, or its event loop ends."""
        for slot in self._running:
            self._table.release(slot)
        self._running.clear()
        self._waiting.clear()
        self._state.clear()
        self._away = 0
        self._scheduler = None

    # ---- the scheduler

    async def _serve(self) -> None:
        """Steps until nothing is left to do; then the task ends, and the next request starts another."""
        try:
            while True:
                await self._settle()
                if not self._waiting and not self._running:
                    return
                if self.asleep:
                    self._wake()
                with torch.inference_mode():
                    if self._waiting:
                        self._admit()
                    if self._running:
                        self._step()
        except asyncio.CancelledError:
            self._fail(None)
            raise
        except Exception as error:  # whatever broke, nobody may wait for ever
            self._fail(error)

    def _fail(self, error: Exception | None) -> None:
        callers = [*self._waiting, *self._running.values()]
        self._forget_requests()
        self._table.invalidate()
        for request in callers:
            request.fail(error)

    async def _settle(self) -> None:
        """Let other coroutines run until all answered episodes are back, or nothing has come for ``PATIENCE`` turns."""
        quiet = 0
        while quiet < PATIENCE:
            before = self._arrivals
            await asyncio.sleep(0)
            quiet = 0 if self._arrivals != before else quiet + 1
            if self._away <= 0 and quiet:
                break
        self._away = 0

    def _admit(self) -> None:
        """Give waiting requests slots, and prefill, in rounds: who shares a prefix of this round waits for the next.

        Sessions that own a slot come first: they need little, and a newcomer might evict what they are about to use.
        """
        began, full = time.perf_counter(), False
        while self._waiting and not full:
            queue = sorted(self._waiting, key=lambda r: self._table.find(r.session) is None)
            batch: list[SampleRequest] = []
            copies: list[tuple[int, int, int]] = []
            later: list[SampleRequest] = []
            planned = np.zeros(len(self._table), dtype=np.int64)
            for number, request in enumerate(queue):
                fate = self._place(request, copies, planned)
                if fate == "placed":
                    batch.append(request)
                elif fate == "later":
                    later.append(request)
                else:
                    later.extend(queue[number:])
                    full = True
                    break
            self._waiting = deque(later)
            self._prefill(batch, copies)
        self.stats.prefill_seconds += time.perf_counter() - began

    def _place(self, request: SampleRequest, copies: list[tuple[int, int, int]], planned: np.ndarray) -> str:
        """Find a slot for a request: "placed", "later" (a neighbour is computing its prefix), or "full"."""
        placement = self._table.place(request.prompt, request.session, planned, at_least=SHARE_AT_LEAST)
        if not isinstance(placement, Placement):
            return placement
        self.stats.evictions += placement.evicted
        shared = self._cached.reusable(placement.source, placement.shared)
        if shared and placement.source != placement.slot:
            copies.append((placement.source, placement.slot, shared))
        request.slot, request.start = placement.slot, shared
        self._running[placement.slot] = request
        return "placed"

    def _prefill(self, batch: list[SampleRequest], copies: list[tuple[int, int, int]]) -> None:
        if copies:
            self._cached.copy(copies)
        most = PREFILL_TOKENS * (4 if self.device.type == "cuda" else 1)
        pending = [(r, r.start) for r in batch if r.start < len(r.prompt) - 1]
        while pending:
            pending.sort(key=lambda item: len(item[0].prompt) - item[1])
            chunk, rest = next_chunk(pending, most)
            pieces = [r.prompt[at : min(len(r.prompt) - 1, at + most)] for r, at in chunk]
            ends = [at + len(piece) for (_, at), piece in zip(chunk, pieces, strict=True)]
            where = torch.tensor([[r.slot for r, _ in chunk], [at for _, at in chunk]], device=self.device)
            tokens = [torch.from_numpy(piece.astype(np.int64)) for piece in pieces]
            self._cached.prefill(tokens, where[0], where[1], span=self._span(max(ends)))
            unfinished = [(r, end) for (r, _), end in zip(chunk, ends, strict=True) if end < len(r.prompt) - 1]
            pending = unfinished + rest
            self.stats.prefill_tokens += sum(map(len, pieces))
        for request in batch:
            self._table.valid[request.slot] = len(request.prompt) - 1
            self.stats.reused_tokens += request.start
        self._state.start(
            [r.slot for r in batch], [r.prompt for r in batch], [r.params for r in batch], [r.seed for r in batch]
        )

    def _span(self, positions: int) -> int:
        return min(-(-positions // SPAN_STEP) * SPAN_STEP, self.max_context)

    def _step(self) -> None:
        """One token for every running request."""
        began, state = time.perf_counter(), self._state
        if state.refresh():
            self._common = self._table.common(sorted(self._running), SPAN_STEP)
        count = len(state.active)
        finished = self._eager_step() if self._fixed is None else self._fixed.step(self._common)
        self.stats.decode_steps += 1
        self.stats.decode_tokens += count
        if self._streams:
            self._tell()
        if finished:
            self._finish(finished)
        self.stats.decode_seconds += time.perf_counter() - began

    def _eager_step(self) -> list[int]:
        """A step of exactly the size that the running rows need; the slots that are done."""
        state = self._state
        count, top = len(state.active), state.highest + 1
        tokens, positions = state.inputs(state.active)
        logits = self._cached.decode(
            tokens,
            state.active,
            positions,
            span=self._span(state.longest + 1),
            rows=top if IN_PLACE_SHARE * top <= count else 0,
            common=self._common,
        )
        return state.advance(logits)

    def _tell(self) -> None:
        """Whoever listens hears what is new."""
        requests = [r for r in self._running.values() if r.on_tokens is not None]
        if not requests:
            return
        new = self._state.collect([r.slot for r in requests], [len(r.prompt) + r.streamed for r in requests])
        for request, (ids, logprobs) in zip(requests, new, strict=True):
            request.streamed += len(ids)
            if request.on_tokens is not None:
                request.on_tokens(ids, logprobs)

    def _finish(self, finished: list[int]) -> None:
        requests = [self._running.pop(slot) for slot in finished]
        results = self._state.collect(finished, [len(r.prompt) for r in requests])
        for request, (ids, logprobs) in zip(requests, results, strict=True):
            begin = len(request.prompt)
            self._table.ids[request.slot, begin : begin + len(ids)] = ids
            self._table.valid[request.slot] = begin + len(ids) - 1  # the last token was sampled, never read
            self._table.release(request.slot)
            self.stats.requests += 1
            if not request.future.done():
                self._away += 1
                reason: FinishReason = "stop" if ids[-1] in request.params.stop_ids else "length"
                request.future.set_result(Completion(tuple(ids), tuple(logprobs), reason, self.version))
