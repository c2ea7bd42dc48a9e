"""Operations against torch's own counter; rollouts against what must hold of any queue."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from muarl.learning.packing import Batch, Sample, pack
from muarl.learning.steps import selected_logprobs
from muarl.models.path import path_of
from muarl.planning import speed
from muarl.planning.assumptions import Assumptions
from muarl.planning.models import PUBLISHED
from planning.test_memory import MIXTURES, SIZES, shape_of
from support.tiny_qwen3 import tiny

LENGTHS, SCORED = (40, 40, 24), 10


def added_product(_sum: Any, left: Any, right: Any, **_others: Any) -> int:
    """Operations of a product, by the shapes of its factors."""
    return int(2 * left[0] * left[1] * right[1])


def counted(
    *,
    backward: bool,
    recompute: bool = False,
    kernel: SDPBackend = SDPBackend.FLASH_ATTENTION,
    layers: str = "dense",
) -> int:
    """What torch counts for these documents: in bfloat16, which a CPU attends in by the fused kernel alone, but for
    others in float32."""
    kind = torch.bfloat16 if kernel == SDPBackend.FLASH_ATTENTION else torch.float32
    model = tiny(**SIZES, **MIXTURES[layers]).to(kind)
    source = torch.Generator().manual_seed(0)
    documents = [
        Sample.supervised(
            torch.randint(0, 97, (n,), generator=source).tolist(), [False] * (n - SCORED) + [True] * SCORED
        )
        for n in LENGTHS
    ]
    rows = pack(Batch.of(documents), token_budget=1 << 20)
    in_place = {torch.ops.aten.addmm_: added_product}  # torch counts only those that are not
    with FlopCounterMode(display=False, custom_mapping=in_place) as counter, sdpa_kernel(kernel):
        scores = selected_logprobs(path_of(model), rows[0], recompute=recompute)
        if backward:
            scores.logprobs.sum().backward()
    return int(counter.get_total_flops())


@pytest.mark.parametrize("layers", MIXTURES)
def test_matrix_products_of_a_forward_pass_exactly(layers: str) -> None:
    shape = shape_of(tiny(**SIZES, **MIXTURES[layers]))
    # torch does not count a CPU's fused attention, so this is the matrices alone.
    assert counted(backward=False, layers=layers) == speed.matrix_flops(shape, sum(LENGTHS), SCORED * len(LENGTHS))


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("layers", MIXTURES)
def test_matrix_products_of_an_update_exactly(recompute: bool, layers: str) -> None:
    shape = shape_of(tiny(**SIZES, **MIXTURES[layers]))
    scored = SCORED * len(LENGTHS)
    predicted = speed.update_flops(shape, LENGTHS, scored, recompute=recompute)
    attention = speed.attention_flops(shape, LENGTHS) * (4 if recompute else 3)
    assert counted(backward=True, recompute=recompute, layers=layers) == predicted - attention


def test_attention_of_unfused_squares_exactly() -> None:
    shape = shape_of(tiny(**SIZES))
    whole = counted(backward=False, kernel=SDPBackend.MATH)
    # Documents of one rectangle are padded to the longest, and the plain kernel computes both halves of the square.
    squares = speed.attention_flops(shape, [40, 40, 40], causal=False)
    assert whole - counted(backward=False) == squares == 2 * speed.attention_flops(shape, [40, 40, 40])


def test_a_reference_model_is_one_forward_pass_more() -> None:
    shape = PUBLISHED["Qwen/Qwen3-8B"]
    plain, more = (speed.update_flops(shape, [8000.0], 2000, reference=r) for r in (False, True))
    assert more - plain == speed.matrix_flops(shape, 8000, 2000) + speed.attention_flops(shape, [8000.0])
    # A rule of thumb: two operations a parameter and token forward, four backward.
    assert plain == pytest.approx(6 * shape.parameters * 8000, rel=0.25)


A = Assumptions()
SHAPE = PUBLISHED["Qwen/Qwen3-8B"]
SERVING = speed.ServingSetup(engines=4, gpus=1, sequences=64, tokens=700_000.0)


def test_more_conversations_at_once_give_more_until_the_samplers_are_full() -> None:
    rates = [speed.rollouts(SHAPE, SERVING, n, A).per_second for n in (1, 4, 16, 64, 256, 1024, 4096)]
    assert all(b >= a * 0.999 for a, b in pairwise(rates))
    assert rates[2] == pytest.approx(16 * rates[0], rel=0.5), "few conversations do not hinder each other much"
    assert rates[-1] == pytest.approx(rates[-2], rel=0.01), "engines that are full give no more"


def test_conversations_are_conserved() -> None:
    for episodes in (8, 128, 2048):
        found = speed.rollouts(SHAPE, SERVING, episodes, A)
        # Little's law: how many are under way is how fast they finish times how long each takes.
        assert found.per_second * found.episode == pytest.approx(episodes)
        assert found.running <= SERVING.sequences


def test_a_small_cache_or_few_places_bind() -> None:
    free = speed.rollouts(SHAPE, SERVING, 512, A).running
    assert speed.rollouts(SHAPE, replace(SERVING, sequences=8), 512, A).running == pytest.approx(8)
    tight = replace(SERVING, tokens=10 * A.episode_tokens)
    assert speed.rollouts(SHAPE, tight, 512, A).running == pytest.approx(10)
    assert free > 10


def test_slow_users_lower_the_rate_of_few_and_not_of_many_conversations() -> None:
    slow = replace(A, user_seconds=20.0)
    few, many = ([speed.rollouts(SHAPE, SERVING, n, a).per_second for a in (A, slow)] for n in (16, 8192))
    assert few[1] < 0.5 * few[0]
    assert many[1] == pytest.approx(many[0], rel=0.02)


def test_decoding_is_bound_by_memory_for_few_and_by_computing_for_many_rows() -> None:
    alone, ten = (speed.decode_seconds(SHAPE, SERVING, n, 1.0, replace(A, decode_overhead=0.0)) for n in (1, 10))
    assert alone == pytest.approx(2 * SHAPE.parameters / (A.device.bandwidth * A.decode_share), rel=0.01)
    assert ten < 1.1 * alone
    crowd = speed.decode_seconds(SHAPE, SERVING, 10_000, 1.0, replace(A, decode_overhead=0.0))
    assert crowd == pytest.approx(2 * SHAPE.parameters * 10_000 / (A.device.flops * A.prefill_mfu))
