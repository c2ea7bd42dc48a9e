"""Requests to an engine: checked, counted, and cut into prefill calls. Host side only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.inference.base import Completion, OnTokens, SamplingParams
from muarl.inference.slots import Ids


@dataclass(slots=True)
class EngineStats:
    """Counters since the engine was made (or ``reset``).

    Prompt tokens computed, prompt tokens found in the cache, tokens sampled, decode steps, finished requests, sessions
    that lost their slot to others, and wall seconds spent in prefill and in decode.
    """

    prefill_tokens: int = 0
    reused_tokens: int = 0
    decode_tokens: int = 0
    decode_steps: int = 0
    requests: int = 0
    evictions: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0

    def reset(self) -> None:
        for field in fields(self):
            setattr(self, field.name, type(getattr(self, field.name))())


@dataclass(slots=True, eq=False)
class SampleRequest:
    """One call of ``sample``: what is asked, who waits, and once placed its slot and where prefill starts."""

    prompt: Ids
    params: SamplingParams
    seed: int
    session: str | None
    future: asyncio.Future[Completion]
    slot: int = -1
    start: int = 0
    on_tokens: OnTokens | None = None
    """Who is told of ids as they come."""
    streamed: int = 0
    """How many they have been told of."""

    def starts_again(self) -> bool:
        """It loses its slot. False if it cannot be restarted, since its caller has been told of tokens."""
        self.slot = -1
        if self.streamed and not self.future.done():
            text = "the weights changed while a completion was streamed; tokens already sent cannot be withdrawn"
            self.future.set_exception(InfrastructureError(text, boundary="agent"))
        return not self.streamed

    def fail(self, error: Exception | None) -> None:
        """Whoever waits hears what broke the engine; None: that nobody will answer."""
        if self.future.done():
            return
        if error is None:
            self.future.cancel()
        elif isinstance(error, ConfigError):
            self.future.set_exception(ConfigError(str(error)))
        else:
            failure = InfrastructureError(f"The engine failed: {type(error).__name__}: {error}", boundary="agent")
            failure.__cause__ = error
            self.future.set_exception(failure)


def checked(prompt_ids: Sequence[int], params: SamplingParams, *, vocab: int, max_context: int) -> Ids:
    """The prompt as an array. ConfigError if such a request can never be served."""
    prompt: Ids = np.asarray(prompt_ids, dtype=np.int32)
    if params.max_tokens < 1 or len(prompt) < 1:
        raise ConfigError(f"a prompt of {len(prompt)} tokens, max_tokens={params.max_tokens}: both must be at least 1")
    if len(prompt) + params.max_tokens > max_context:
        raise ConfigError(
            f"a prompt of {len(prompt)} tokens and max_tokens={params.max_tokens} exceed the engine's max_context="
            f"{max_context}: raise max_context, or lower the limits on tokens and turns"
        )
    if prompt.min() < 0 or prompt.max() >= vocab:
        raise ConfigError(f"a prompt id lies outside the model's vocabulary of {vocab}")
    if not params.temperature >= 0 or not 0 < params.top_p <= 1 or params.top_k < 0:
        raise ConfigError(
            f"temperature={params.temperature}, top_p={params.top_p}, top_k={params.top_k}: must be at least 0, in "
            "(0, 1], and at least 0"
        )
    return prompt


def next_chunk(
    pending: list[tuple[SampleRequest, int]], limit: int
) -> tuple[list[tuple[SampleRequest, int]], list[tuple[SampleRequest, int]]]:
    """The next prefill call's rows and the rest, of rows (request, next position) sorted by what they still lack.

    The longest come first, at most ``limit`` tokens of each, with as many others as keep the padded rectangle within
    ``limit`` places, and small or at least half full.
    """
    longest = min(len(pending[-1][0].prompt) - 1 - pending[-1][1], limit)
    take = real = 0
    for request, at in reversed(pending):
        real += min(len(request.prompt) - 1 - at, limit)
        area = longest * (take + 1)
        if take and (area > limit or area > max(2 * real, limit // 4)):
            break
        take += 1
    return pending[-take:], pending[:-take]
