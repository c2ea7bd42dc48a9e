"""Engines that tell of a completion while they make it: all of it, in order, once; what a change of weights does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from muarl.basics.errors import InfrastructureError
from muarl.inference.base import SamplingParams, StreamingSampler
from muarl.inference.torch_engine import TorchEngine
from support.tiny_qwen3 import tiny


def made(slots: int = 4) -> TorchEngine:
    return TorchEngine(tiny(), max_slots=slots, max_context=96)


class Ear:
    """Hears, and notes how much at a time."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.times = 0

    def __call__(self, ids: Sequence[int], logprobs: Sequence[float]) -> None:
        assert len(ids) == len(logprobs) > 0
        self.ids += ids
        self.logprobs += logprobs
        self.times += 1


async def test_what_is_heard_is_what_is_returned() -> None:
    engine = made()
    assert isinstance(engine, StreamingSampler)
    whole = made()
    ears = [Ear() for _ in range(6)]  # more than there are slots
    prompts = [[n + 1] * (3 + n) for n in range(6)]
    params = [SamplingParams(5 + 3 * n, seed=n, stop_ids=(7, 8)) for n in range(6)]
    told = await asyncio.gather(
        *(
            engine.stream(p, s, e, session=str(n))
            for n, (p, s, e) in enumerate(zip(prompts, params, ears, strict=True))
        ),
        engine.sample([9, 9], SamplingParams(4, seed=1)),
    )
    for ear, sampled, prompt, how in zip(ears, told[:-1], prompts, params, strict=True):
        assert tuple(ear.ids) == sampled.ids
        assert tuple(ear.logprobs) == sampled.logprobs
        assert ear.times == len(sampled.ids)  # each as soon as it was there
        assert (await whole.sample(prompt, how)).ids == sampled.ids


async def test_who_stops_listening_frees_the_slot() -> None:
    engine = made(slots=1)
    ear = Ear()
    task = asyncio.ensure_future(engine.stream([1, 2, 3], SamplingParams(80, seed=0), ear))
    while len(ear.ids) < 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    heard = len(ear.ids)
    sampled = await asyncio.wait_for(engine.sample([1, 2, 3], SamplingParams(3, seed=0)), 10)
    assert list(sampled.ids) == ear.ids[:3]
    assert len(ear.ids) == heard < 80


async def test_what_was_told_is_not_taken_back() -> None:
    engine = made()
    ear = Ear()
    streamed = asyncio.ensure_future(engine.stream([1, 2, 3], SamplingParams(60, seed=0), ear))
    silent = asyncio.ensure_future(engine.sample([4, 5], SamplingParams(60, seed=0)))
    while not ear.ids:
        await asyncio.sleep(0)
    engine.weights_changed()
    with pytest.raises(InfrastructureError, match="cannot be withdrawn"):
        await streamed
    assert (await silent).version == 1
    again = Ear()
    assert (await engine.stream([1, 2, 3], SamplingParams(5, seed=0), again)).ids == tuple(again.ids)
