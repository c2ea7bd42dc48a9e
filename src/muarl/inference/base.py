"""The ``Sampler`` protocol: token ids in, token ids out. Everything that generates stands behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from muarl import moved

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

FinishReason = Literal["stop", "length"]
Weights = Callable[[], "Iterable[tuple[str, Tensor]]"]
"""Yields every parameter whole (gathered from wherever it is sharded), under the name that checkpoints have for it:
experts of a mixture one by one, if the own path computes it."""
OnTokens = Callable[[Sequence[int], Sequence[float]], None]
"""Is told of ids and their log-probabilities as they are sampled."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to sample one completion."""

    max_tokens: int
    temperature: float = 1.0
    """0 means greedy."""
    top_p: float = 1.0
    """1 switches this filter off."""
    top_k: int = 0
    """0 switches this filter off."""
    stop_ids: tuple[int, ...] = ()
    """Generation ends after one of these is sampled (it is part of the completion)."""
    seed: int | None = None
    """Makes the completion a function of (weights, prompt, params) alone, whatever else is in the batch; None draws
    from the engine's own stream."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a sampler has generated for one prompt."""

    ids: tuple[int, ...]
    """The sampled ids, the stop id included."""
    logprobs: tuple[float, ...]
    """For each id the natural-log probability under the sampled distribution's untruncated softmax at the sampling
    temperature (temperature 0: at temperature 1)."""
    finish_reason: FinishReason
    version: int
    """The policy version whose weights produced the ids."""


@runtime_checkable
class Sampler(Protocol):
    """What generates: a protocol, token ids in, token ids and their log-probabilities out.

    ``version`` counts weight updates. ``session`` names the live episode a prompt belongs to, so that an engine can
    keep its key/value cache across turns; it is a hint and never changes the result. ``close_session``
    frees that cache.
    """

    version: int

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion: ...

    def close_session(self, session: str) -> None: ...


@runtime_checkable
class StreamingSampler(Sampler, Protocol):
    """A sampler that can tell of a completion while it makes it."""

    async def stream(
        self, prompt_ids: Sequence[int], params: SamplingParams, on_tokens: OnTokens, *, session: str | None = None
    ) -> Completion:
        """As ``sample``, and ``on_tokens`` is told of all the ids, in order, each once, before the completion is
        returned.

        ``on_tokens`` is called in the sampler's own thread and must neither wait nor raise. What was told cannot be
        taken back, so a completion that would have to start again (the weights changed) is an InfrastructureError.
        """
        ...


@runtime_checkable
class AdapterWeights(Protocol):
    """``Weights`` of a model with an adapter on it: a sampler that holds the model may take the adapter alone."""

    def __call__(self) -> Iterable[tuple[str, Tensor]]: ...

    def write_adapter(self, folder: Path) -> None:
        """Write the adapter into this folder, in peft's format."""
        ...


@runtime_checkable
class PolicySampler(Sampler, Protocol):
    """A sampler whose weights a learner moves."""

    async def update(self, weights: Weights, version: int) -> None:
        """Sample from these weights from now on, as policy ``version``.

        ``weights`` is not asked where the sampler can reach the learner's own memory. What is being generated may
        continue under the new weights or start again; every sample says which version it came from.
        """
        ...

    async def aclose(self) -> None:
        """Release processes and memory. Afterwards nothing can be sampled."""
        ...


@runtime_checkable
class SleepingSampler(PolicySampler, Protocol):
    """A sampler that can give its memory back while somebody else needs it, such as a learner on the same GPU."""

    async def sleep(self) -> None:
        """Give back what weights, cache and recorded steps take, until ``update``, which wakes it. Nothing is being
        generated meanwhile. Safe to call again."""
        ...


moved.keep_old_names(__name__)


moved.keep_old_names(__name__)
