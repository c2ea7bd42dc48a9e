"""Decode steps of fixed shapes give what steps of the needed size give, and can be recorded and repeated."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from muarl.basics.errors import ConfigError
from muarl.inference.base import Completion, SamplingParams
from muarl.inference.fixed_steps import FixedSteps, StepShape, padded, trimmed
from muarl.inference.torch_engine import TorchEngine
from support.tape import Tape, recorded
from support.tiny_qwen3 import tiny

Played = dict[tuple[int, int], Completion]
SYSTEM = [(7 * n) % 97 for n in range(70)]
"""Long enough for attention to read it once for all rows."""


def played(engine: TorchEngine, sessions: int = 20, turns: int = 3) -> Played:
    """Sessions of several turns side by side, which sample in every way, with more of them than slots."""
    found: Played = {}

    async def episode(number: int) -> None:
        rng = random.Random(number)
        context = [*SYSTEM[: 70 if number < 16 else 9], number]
        for turn in range(turns):
            params = SamplingParams(
                rng.randrange(1, 25),
                temperature=rng.choice([0.0, 1.0, 0.7]),
                top_p=rng.choice([1.0, 0.8]),
                top_k=rng.choice([0, 5]),
                stop_ids=tuple(range(20, 32)) if number % 5 == 0 else (3, 5),  # more of them than there is room for
                seed=10 * number + turn,
            )
            sampled = await engine.sample(context, params, session=str(number))
            found[number, turn] = sampled
            context += [*sampled.ids, turn]
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
        engine.close_session(str(number))

    async def everybody() -> None:
        await asyncio.gather(*(episode(n) for n in range(sessions)))

    asyncio.run(everybody())
    return found


def engine_of(model: Any, steps: Any, **options: Any) -> TorchEngine:
    return TorchEngine(model, **{"max_slots": 13, "max_context": 192, "steps": steps, **options})


def check_same(found: Played, expected: Played) -> None:
    assert found.keys() == expected.keys()
    for key, sampled in found.items():
        assert (sampled.ids, sampled.finish_reason) == (expected[key].ids, expected[key].finish_reason)
        torch.testing.assert_close(
            torch.tensor(sampled.logprobs), torch.tensor(expected[key].logprobs), atol=1e-5, rtol=0
        )


@pytest.fixture
def taped(monkeypatch: pytest.MonkeyPatch) -> list[Tape]:
    """Steps are recorded on first use and repeated from then on, as on a GPU."""
    tapes: list[Tape] = []

    def prepared(self: FixedSteps, shape: StepShape) -> Callable[[], torch.Tensor]:
        self._put(np.full(shape.rows, self._spare, dtype=np.int64))
        return recorded(lambda: self._take(shape), tapes)

    monkeypatch.setattr(FixedSteps, "_prepared", prepared)
    return tapes


@given(st.integers(1, 5000), st.sampled_from([1, 32]), st.integers(1, 6000))
def test_sizes_are_few_and_not_much_larger_than_needed(needed: int, unit: int, most: int) -> None:
    needed = min(needed, most)
    size = padded(needed, unit, most)
    assert needed <= size <= most
    assert size == most or (size % unit == 0 and size <= max(needed * 1.25 + unit, unit))
    assert padded(size, unit, most) == size
    below = trimmed(needed, unit)
    assert below <= needed < below + max(unit, needed // 4 + unit)
    assert trimmed(below, unit) == below
    sizes = {padded(n, unit, most) for n in range(1, most + 1, unit)}
    assert len(sizes) <= 9 + 4 * np.log2(most)


def test_steps_of_a_size_that_fits_are_the_same_to_the_last_bit() -> None:
    """8 rows from the first to the last step, and 96 positions."""
    found = []
    for steps in ("none", "fixed"):
        engine = engine_of(tiny(), steps, max_slots=8, max_context=96)

        async def together(engine: TorchEngine = engine) -> list[Completion]:
            prompts = [[*SYSTEM, n] for n in range(8)]
            return await asyncio.gather(*(engine.sample(p, SamplingParams(20, seed=n)) for n, p in enumerate(prompts)))

        found.append(asyncio.run(together()))
    assert found[0] == found[1]


def test_mixed_sessions_are_served_alike() -> None:
    model = tiny()
    expected = played(engine_of(model, "none"))
    engine = engine_of(model, "fixed")
    check_same(played(engine), expected)
    assert engine._fixed is not None
    assert engine._fixed.recorded < engine.stats.decode_steps / 2


def test_what_was_recorded_can_be_repeated(taped: list[Tape]) -> None:
    """No decision of the host is in a step: everything that changes lies in tensors that stay where they are."""
    model = tiny()
    expected = played(engine_of(model, "none"))
    engine = engine_of(model, "fixed")
    check_same(played(engine), expected)
    assert len(taped) < engine.stats.decode_steps / 2, "shapes come back"
    assert {word for tape in taped for word in tape.asked} == set()


def test_new_weights_reach_what_was_recorded(taped: list[Tape]) -> None:
    model = tiny()
    engine = engine_of(model, "fixed")
    before = played(engine, 8, 1)
    places = [t.data_ptr() for layer in engine._cached.weights.layers for t in (layer.qkv, layer.gain, layer.down)]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    count = len(taped)
    engine.weights_changed()
    assert places == [
        t.data_ptr() for layer in engine._cached.weights.layers for t in (layer.qkv, layer.gain, layer.down)
    ]
    after = played(engine, 8, 1)
    check_same(after, played(engine_of(model, "none"), 8, 1))
    assert after != before and len(taped) - count < 4


@pytest.mark.parametrize("rows", [0, 2])
def test_rows_that_do_not_run_are_left_alone(rows: int) -> None:
    """One of few rows runs; the others' keys and values stay, read in place or not."""
    engine = engine_of(tiny(), "fixed", max_slots=6)

    async def turns() -> None:
        for n in range(5):
            await engine.sample([*SYSTEM[:20], n], SamplingParams(3, seed=n), session=str(n))
        kept = [store.clone() for store in (*engine._cached.cache.keys, *engine._cached.cache.values)]
        await engine.sample([*SYSTEM[:20], rows, 1, 2], SamplingParams(30, seed=1), session=str(rows))
        for store, old in zip((*engine._cached.cache.keys, *engine._cached.cache.values), kept, strict=True):
            others = [n for n in range(6) if n != rows]
            assert torch.equal(store[others], old[others])
            assert torch.isfinite(store).all()

    asyncio.run(turns())


def test_the_spare_row_never_runs_out_of_positions() -> None:
    """Three of four rows are needed for many more steps than there are positions."""
    engine = engine_of(tiny(), "fixed", max_slots=4, max_context=16)

    async def turns() -> None:
        for n in range(12):
            await asyncio.gather(*(engine.sample([1, 2, n], SamplingParams(12, seed=n + m)) for m in range(3)))

    asyncio.run(turns())
    assert engine.stats.decode_steps > 100


async def test_bfloat16_reports_log_probabilities_near_those_of_float32() -> None:
    """The ids that were sampled are what counts; float32 weights give them nearly the probabilities reported."""
    model = tiny()
    for steps in ("none", "fixed"):
        engine = engine_of(model, steps, dtype=torch.bfloat16)
        assert engine._cached.cache.keys[0].dtype == engine._cached.weights.head.dtype == torch.bfloat16
        for temperature in (1.0, 0.6):
            sampled = await engine.sample(SYSTEM, SamplingParams(40, temperature=temperature, seed=3))
            with torch.no_grad():
                logits = model(torch.tensor([[*SYSTEM, *sampled.ids]])).logits[0, len(SYSTEM) - 1 : -1]
            scores = (logits / temperature).log_softmax(-1)
            expected = scores.gather(1, torch.tensor(sampled.ids)[:, None])[:, 0]
            torch.testing.assert_close(torch.tensor(sampled.logprobs), expected, atol=0.15, rtol=0)
            assert torch.tensor(sampled.logprobs).sub(expected).abs().mean() < 0.03


def test_graphs_are_refused_where_there_are_none() -> None:
    with pytest.raises(ConfigError, match=r"engine\.compile.*cuda-graphs.*cpu"):
        engine_of(tiny(), "cuda-graphs")
    assert engine_of(tiny(), "auto")._fixed is None


async def test_what_cannot_be_recorded_is_said_or_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda *a, **k: 1 / 0)
    model = tiny()
    engine = engine_of(model, "compile")
    with pytest.raises(ConfigError, match=r"engine\.compile is compile.*division.*engine\.compile=none"):
        await engine.sample([1, 2], SamplingParams(3))
    assert engine._fixed is not None
    engine._fixed._lenient = True  # as under auto
    expected = await engine_of(model, "none").sample([1, 2], SamplingParams(9, seed=1))
    assert (await engine.sample([1, 2], SamplingParams(9, seed=1))).ids == expected.ids


@pytest.mark.slow
async def test_compiled_steps_sample_the_same() -> None:
    """Rows that sample in every way, for as many tokens each, so that few shapes must be compiled."""
    model = tiny(num_hidden_layers=1)
    ways = [{}, {"temperature": 0.0}, {"temperature": 0.7, "top_p": 0.8}, {"top_k": 5}]
    found = []
    for steps in ("none", "compile"):
        engine = engine_of(model, steps, max_slots=4, max_context=96)
        asked = (engine.sample([*SYSTEM, n], SamplingParams(20, seed=n, **way)) for n, way in enumerate(ways))
        found.append({(n, 0): sampled for n, sampled in enumerate(await asyncio.gather(*asked))})
    check_same(found[1], found[0])
