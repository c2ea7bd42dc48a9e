"""On a GPU: recorded steps give what steps taken kernel by kernel give, and what a CPU gives, also after an update.

Run by ``pytest -m gpu`` where there is a CUDA device; benches/gpu.py says how fast it is.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

import pytest
import torch

from muarl.inference.base import Completion, SamplingParams
from muarl.inference.torch_engine import TorchEngine
from muarl.models.decoder import token_logprobs
from muarl.models.scoring import linear_logprobs
from support.tiny_qwen3 import tiny

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

SYSTEM = [(7 * n) % 97 for n in range(80)]


@pytest.fixture(autouse=True)
def exact_products() -> Any:
    """No TensorFloat-32: float32 results shall be those of a CPU but for the order of sums."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


def played(
    engine: TorchEngine, sessions: int = 24, turns: int = 3
) -> dict[tuple[int, int], tuple[list[int], Completion]]:
    """What sessions of several turns side by side were asked and answered."""
    found: dict[tuple[int, int], tuple[list[int], Completion]] = {}

    async def episode(number: int) -> None:
        rng = random.Random(number)
        context = [*SYSTEM[: 80 if number < 18 else 9], number]
        for turn in range(turns):
            params = SamplingParams(
                rng.randrange(1, 30),
                temperature=rng.choice([0.0, 1.0, 0.7]),
                top_p=rng.choice([1.0, 0.8]),
                top_k=rng.choice([0, 5]),
                stop_ids=(3, 5),
                seed=10 * number + turn,
            )
            sampled = await engine.sample(context, params, session=str(number))
            found[number, turn] = ([*context], sampled)
            context += [*sampled.ids, turn]
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
        engine.close_session(str(number))

    async def everybody() -> None:
        await asyncio.gather(*(episode(n) for n in range(sessions)))

    asyncio.run(everybody())
    return found


def engine_of(model: Any, steps: Any, device: str = "cuda", **options: Any) -> TorchEngine:
    return TorchEngine(model, **{"max_slots": 16, "max_context": 256, "device": device, "steps": steps, **options})


def share_of_same(found: Any, expected: Any) -> float:
    same = [found[k][1].ids == expected[k][1].ids for k in expected if k in found]
    return sum(same) / len(expected)


def gaps(model: Any, found: Any) -> torch.Tensor:
    """How far reported log-probabilities are from those of the Hugging Face model on the CPU (temperature 1 only)."""
    all_gaps = []
    for context, sampled in found.values():
        with torch.no_grad():
            logits = model(torch.tensor([[*context, *sampled.ids]])).logits[0, len(context) - 1 : -1]
        per_temperature = []
        for temperature in (1.0, 0.7):
            scores = (logits / temperature).log_softmax(-1).gather(1, torch.tensor(sampled.ids)[:, None])[:, 0]
            per_temperature.append((scores - torch.tensor(sampled.logprobs)).abs())
        all_gaps.append(min(per_temperature, key=lambda g: float(g.max())))
    return torch.cat(all_gaps)


@pytest.fixture(params=[8, 32])
def model(request: pytest.FixtureRequest) -> Any:
    """Heads of 32 numbers are computed by kernels of our own, smaller ones by PyTorch's."""
    return tiny(head_dim=request.param)


@pytest.mark.parametrize(
    "steps",
    ["none", "fixed", "cuda-graphs", pytest.param("compile", marks=pytest.mark.slow)],  # minutes of compiling
)
def test_float32_samples_what_a_cpu_samples(model: Any, steps: str) -> None:
    found, expected = played(engine_of(model, steps)), played(engine_of(model, "none", "cpu"))
    # Where two tokens meet at the drawn number, rounding decides, and the rest of that session differs.
    assert share_of_same(found, expected) > 0.9
    assert float(gaps(model, found).max()) < 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_graphs_repeat_what_single_kernels_do(model: Any, dtype: torch.dtype, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        engine = engine_of(model, "auto", dtype=dtype)
        found = played(engine)
    assert not caplog.records, "auto did not have to do without graphs"
    assert engine._fixed is not None and engine._fixed.kind == "cuda-graphs"
    assert 0 < engine._fixed.recorded < engine.stats.decode_steps
    expected = played(engine_of(model, "fixed", dtype=dtype))
    assert share_of_same(found, expected) > (0.95 if dtype == torch.float32 else 0.8)


def test_bfloat16_reports_log_probabilities_near_those_of_float32(model: Any) -> None:
    engine = engine_of(model, "auto", dtype=torch.bfloat16)
    assert engine._cached.cache.keys[0].dtype == torch.bfloat16
    found = gaps(model, played(engine))
    assert float(found.max()) < 0.3 and float(found.mean()) < 0.03


def test_an_update_takes_effect_in_recorded_steps(model: Any) -> None:
    engine = engine_of(model, "cuda-graphs")
    played(engine)
    assert engine._fixed is not None
    recorded = dict(engine._fixed._steps)
    other = tiny(seed=1, head_dim=model.config.head_dim)
    asyncio.run(engine.update(other.named_parameters, 7))
    found = played(engine)
    assert float(gaps(other, found).max()) < 1e-3
    assert {sampled.version for _, sampled in found.values()} == {7}
    # Other weights make conversations of other lengths, and so some new shapes; the old recordings are still in use.
    assert {shape: engine._fixed._steps.get(shape) for shape in recorded} == recorded


def test_a_learner_may_work_while_steps_are_recorded() -> None:
    """Allocations of another thread must not break a recording, nor a recording that thread."""
    model = tiny()
    engine = engine_of(model, "cuda-graphs")
    stop = False
    # A recording claims the device's default generator for itself, so a learner leaves that alone.
    own = torch.Generator("cuda").manual_seed(0)

    def work() -> None:
        sizes = iter(range(1, 10**9))
        while not stop:
            a = torch.randn(64 + next(sizes) % 4096, 256, device="cuda", generator=own)
            (a @ a.T).sum().item()

    async def both() -> dict[int, Completion]:
        nonlocal stop
        learner = asyncio.create_task(asyncio.to_thread(work))
        try:
            found = {n: await engine.sample([*SYSTEM[:n], 1], SamplingParams(8, seed=n)) for n in range(1, 80, 8)}
        finally:
            stop = True
            await learner
        return found

    assert len(asyncio.run(both())) == 10


@pytest.mark.parametrize("recompute", [False, True])
def test_a_learner_may_take_steps_while_steps_are_recorded(recompute: bool) -> None:
    model, other = tiny(), tiny(seed=1).to("cuda")
    engine = engine_of(model, "cuda-graphs")
    stop, taken = False, 0
    ids = torch.arange(60, device="cuda")[None]

    def work() -> None:
        nonlocal taken
        while not stop:
            scores, _ = token_logprobs(other, ids, ids, None, ids > 9, recompute=recompute)
            scores.sum().backward()
            taken += 1

    async def both() -> int:
        nonlocal stop
        learner = asyncio.create_task(asyncio.to_thread(work))
        try:
            found = [await engine.sample([*SYSTEM[:n], 1], SamplingParams(8, seed=n)) for n in range(1, 80, 8)]
        finally:
            stop = True
            await learner
        return len(found)

    assert asyncio.run(both()) == 10
    assert taken


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_loss_is_that_of_a_cpu(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(300, 64) * 0.5, torch.randn(5000, 64) * 0.2
    targets = torch.randint(0, 5000, (300,))
    results = []
    for device in ("cpu", "cuda"):
        kind = torch.float32 if device == "cpu" else dtype
        h = hidden.detach().to(device, kind).requires_grad_()
        w = weight.detach().to(device, kind).requires_grad_()
        logprobs, spread = linear_logprobs(h, w, targets.to(device), temperature=0.8)
        (logprobs.mean() + 0.1 * spread.mean()).backward()
        assert h.grad is not None and w.grad is not None
        results.append([t.detach().float().cpu() for t in (logprobs, spread, h.grad, w.grad)])
    tolerance = 1e-4 if dtype == torch.float32 else 0.05
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(theirs, ours, atol=tolerance * max(1.0, float(ours.abs().max())), rtol=tolerance)


@pytest.mark.parametrize("autocast", [False, True])
def test_log_probabilities_and_gradients_are_those_of_a_cpu(model: Any, autocast: bool) -> None:
    ids = torch.randint(0, 97, (3, 50), generator=torch.Generator().manual_seed(4))
    positions, wanted = torch.arange(50).repeat(3, 1), torch.zeros_like(ids, dtype=torch.bool)
    wanted[:, 20:] = True
    documents = torch.arange(3)[:, None].repeat(1, 50)
    documents[0, 40:] = -1  # so that places differ from rows
    wanted[0, 40:] = False
    results = []
    for device in ("cpu", "cuda"):
        here = model.to(device)
        here.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast and device == "cuda"):
            args = [x.to(device) for x in (ids, positions, documents, wanted)]
            scores, spread = token_logprobs(here, *args, 0.8, recompute=True)
        (scores.sum() + 0.1 * spread.sum()).backward()
        found = [scores, spread, *(p.grad for p in here.parameters() if p.grad is not None)]
        results.append([t.detach().to("cpu", copy=True) for t in found])  # moving the model moves its gradients
    model.to("cpu")
    for ours, theirs in zip(*results, strict=True):
        assert float((ours - theirs).norm() / ours.norm()) < (0.03 if autocast else 1e-4)
