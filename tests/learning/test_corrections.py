"""Corrections of the gap between sampler and learner: by hand, in exact expectation, and however a batch is split."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig, PolicyLossOptions
from muarl.learning.losses import Totals, correct, gap_summary, logprob_gap, merge_metrics, policy_gradient_loss
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig

KINDS = ("token", "sequence")
PLAIN = PolicyLossConfig(dual_clip=None)


def correcting(kind: Any = "none", cap: float = 2.0, mask: tuple[float, float] | None = None) -> PolicyLossOptions:
    """Options with this correction."""
    return PolicyLossOptions(correction=kind, correction_cap=cap, sequence_mask=mask)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def factors(
    correction: PolicyLossOptions, ratios: list[float], sequences: list[int], weights: list[float] | None = None
) -> Any:
    """The factors of tokens whose learner-to-sampler ratios are these, and the figures."""
    loss_weights = vector(*(weights or [1.0] * len(ratios)))
    numbers = torch.tensor(sequences)
    sampler = torch.full_like(loss_weights, -2.0)
    totals = Totals.of(loss_weights, numbers)
    factor, figures = correct(correction, sampler + vector(*ratios).log(), sampler, loss_weights, numbers, totals)
    assert factor is not None
    return factor.tolist(), {k: v.item() for k, v in figures.items()}


def test_token_weights_by_hand() -> None:
    factor, figures = factors(correcting("token", 2.0), [0.5, 3.0, 1.0, 1.5], [0, 0, 1, 1])
    assert factor == pytest.approx([0.5, 2.0, 1.0, 1.5])
    assert figures["correction_mean"] == pytest.approx(5.0 / 4)
    assert figures["correction_truncated"] == pytest.approx(0.25)
    assert figures["correction_masked"] == 0


def test_sequence_weights_by_hand() -> None:
    # Products: 0.5 * 3 = 1.5; 4 * 1.5 = 6, above the cap. A token without loss has no say.
    factor, figures = factors(correcting("sequence", 2.0), [0.5, 3.0, 4.0, 1.5, 9.0], [0, 0, 1, 1, 0], [1, 1, 1, 1, 0])
    assert factor == pytest.approx([1.5, 1.5, 2.0, 2.0, 1.5])
    assert figures["correction_truncated"] == pytest.approx(0.5)


def test_masks_by_hand() -> None:
    # Geometric means: sqrt(1.6 * 1.7) = 1.65 (their product is above 2); sqrt(4 * 4) = 4, out; 0.2, out.
    masked = correcting("none", mask=(0.5, 2.0))
    factor, figures = factors(masked, [1.6, 1.7, 4.0, 4.0, 0.2], [0, 0, 1, 1, 2])
    assert factor == [1, 1, 0, 0, 0]
    assert figures["correction_masked"] == pytest.approx(2 / 3)
    assert figures["correction_truncated"] == 0
    factor, _ = factors(correcting("token", 1.5, (0.5, 2.0)), [0.5, 2.0, 4.0, 4.0, 0.2], [0, 0, 1, 1, 2])
    assert factor == pytest.approx([0.5, 1.5, 0, 0, 0])


def test_nothing_is_done_unless_asked() -> None:
    ones, numbers = vector(1, 1), torch.tensor([0, 0])
    assert correct(correcting(), ones, ones, ones, numbers, Totals.of(ones, numbers)) == (None, {})


@given(
    kind=st.sampled_from(["none", *KINDS]),
    cap=st.floats(1.0, 5.0),
    masked=st.booleans(),
    logprobs=st.lists(st.floats(-30, 0), min_size=1, max_size=20),
    lengths=st.integers(1, 5),
)
def test_where_policies_agree_all_weights_are_one(
    kind: Any, cap: float, masked: bool, logprobs: list[float], lengths: int
) -> None:
    correction = correcting(kind, cap, (0.99, 1.01) if masked else None)
    old, weights = vector(*logprobs), torch.ones(len(logprobs), dtype=torch.float64)
    sequences = torch.arange(len(logprobs)) // lengths
    factor, figures = correct(correction, old, old, weights, sequences, Totals.of(weights, sequences))
    if kind == "none" and not masked:
        assert factor is None
    else:
        assert factor is not None and factor.tolist() == [1.0] * len(logprobs)
        assert figures["correction_truncated"] == figures["correction_masked"] == 0


def gradients(correction: PolicyLossOptions, steps: int) -> tuple[Tensor, Tensor]:
    """A bandit of ``steps`` pulls with 3 arms whose chances depend on the pull before: the corrected gradient in exact
    expectation over what the *sampler* would pull, and the true policy gradient of the learner's own policy."""
    generator = torch.Generator().manual_seed(4)
    shape = (steps, 4, 3)  # pull, the arm before (3: none), arm
    logits = torch.randn(shape, generator=generator, dtype=torch.float64)
    other = torch.randn(shape, generator=generator, dtype=torch.float64).log_softmax(-1)
    rewards = torch.randn([3] * steps, generator=generator, dtype=torch.float64)
    found = []
    for by_sampler in (True, False):
        z = logits.clone().requires_grad_()
        policy = z.log_softmax(-1)
        total = torch.zeros((), dtype=torch.float64)
        for arms in product(range(3), repeat=steps):
            where = [(t, 3 if t == 0 else arms[t - 1], arm) for t, arm in enumerate(arms)]
            mine = torch.stack([policy[w] for w in where])
            if by_sampler:
                theirs = torch.stack([other[w] for w in where])
                ones, sequences = torch.ones_like(theirs), torch.zeros(steps, dtype=torch.int64)
                totals = Totals(1.0, 1)  # so that the loss is the sum over the sequence
                factor, _ = correct(correction, mine.detach(), theirs, ones, sequences, totals)
                advantage = ones * rewards[arms]
                out = policy_gradient_loss(
                    mine, mine.detach(), advantage, ones, sequences, totals, PLAIN, factor=factor
                )
                total = total - theirs.sum().exp() * out.loss
            else:
                total = total + mine.sum().exp() * rewards[arms]
        total.backward()
        assert z.grad is not None
        found.append(z.grad)
    return found[0], found[1]


def test_untruncated_weights_give_the_learners_own_policy_gradient() -> None:
    for kind, steps in (("token", 1), ("sequence", 1), ("sequence", 3)):
        corrected, true = gradients(correcting(kind, math.inf), steps)  # type: ignore[arg-type]
        torch.testing.assert_close(corrected, true)


def test_what_is_left_out_is_a_bias() -> None:
    """No correction at all, truncation, and tokens that leave out the way to them do not have that expectation."""
    for correction, steps in (
        (correcting("none", mask=(0.0, math.inf)), 1),
        (correcting("token", 1.0), 1),
        (correcting("token", math.inf), 3),
    ):
        corrected, true = gradients(correction, steps)
        assert (corrected - true).abs().max() > 1e-3


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "dr_grpo"])
@pytest.mark.parametrize("kind", ["none", *KINDS])
def test_micro_batches_add_up_exactly(aggregation: Any, kind: Any) -> None:
    generator = torch.Generator().manual_seed(3)
    n = 60
    sequences = torch.randint(0, 9, (n,), generator=generator).sort().values
    old = -torch.rand(n, generator=generator, dtype=torch.float64) * 3
    sampler = old + 0.3 * torch.randn(n, generator=generator, dtype=torch.float64)
    weights = (torch.rand(n, generator=generator) < 0.8).double()
    advantages = torch.randn(9, generator=generator, dtype=torch.float64)[sequences]
    start = old + 0.1 * torch.randn(n, generator=generator, dtype=torch.float64)
    totals = Totals.of(weights, sequences)
    correction = correcting(kind, 1.2, (0.9, 1.1))

    def run(splits: list[Tensor]) -> tuple[Tensor, dict[str, float]]:
        logprobs = start.clone().requires_grad_()
        parts = []
        for at in splits:
            factor, figures = correct(correction, old[at], sampler[at], weights[at], sequences[at], totals)
            out = policy_gradient_loss(
                logprobs[at],
                old[at],
                advantages[at],
                weights[at],
                sequences[at],
                totals,
                PolicyLossConfig(loss_aggregation=aggregation, constant_length=20, dual_clip=None),
                factor=factor,
            )
            out.loss.backward()
            parts.append(out.metrics | figures | logprob_gap(old[at], sampler[at], weights[at], totals))
        assert logprobs.grad is not None
        return logprobs.grad, gap_summary({k: float(v) for k, v in merge_metrics(parts).items()})

    gradient, figures = run([torch.arange(n)])
    assert 0 < figures["correction_masked"] < 1
    pieces = [torch.isin(sequences, torch.tensor(some)).nonzero()[:, 0] for some in ([8], [1, 2, 4, 0], [5, 6, 7, 3])]
    split_gradient, split_figures = run(pieces)
    torch.testing.assert_close(split_gradient, gradient, rtol=1e-12, atol=1e-14)
    assert split_figures == pytest.approx(figures)


def test_gap_figures_by_hand() -> None:
    weights, sequences = vector(1, 1, 0), torch.tensor([0, 0, 0])
    totals = Totals.of(weights, sequences)
    sampler = vector(-1.0, -1.0, -1.0)
    gap = gap_summary(
        {k: float(v) for k, v in logprob_gap(sampler + vector(2, 0.5, 9).log(), sampler, weights, totals).items()}
    )
    assert gap["logprob_gap_mean"] == pytest.approx(math.log(2))
    assert gap["logprob_gap_kl"] == pytest.approx(((2 - 1 - math.log(2)) + (0.5 - 1 + math.log(2))) / 2)
    assert gap["logprob_gap_ess"] == pytest.approx(1.25**2 / ((4 + 0.25) / 2))
    assert set(gap) == {"logprob_gap_mean", "logprob_gap_max", "logprob_gap_kl", "logprob_gap_ess"}


@settings(max_examples=30)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=12))
def test_effective_sample_size_is_a_share(gaps: list[float]) -> None:
    ones, sequences = torch.ones(len(gaps), dtype=torch.float64), torch.zeros(len(gaps), dtype=torch.int64)
    found = logprob_gap(vector(*gaps), torch.zeros_like(ones), ones, Totals.of(ones, sequences))
    assert 1 / len(gaps) - 1e-9 <= gap_summary({k: float(v) for k, v in found.items()})["logprob_gap_ess"] <= 1


def test_settings_that_mean_nothing_are_refused() -> None:
    for wrong in (
        {"correction": "both"},
        {"correction_cap": 0.0},
        {"sequence_mask": (1.2, 2.0)},
        {"sequence_mask": (0.5, 0.9)},
    ):
        with pytest.raises(ValidationError):
            PolicyLossOptions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="correction needs old_logprobs=recompute"):
        PolicyLossConfig(correction="token")


# ---- in the learner


Build = Callable[..., TorchLearner]


@pytest.fixture
def build(make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast) -> Build:
    """``build(correcting(...), epochs=1, **learner fields)``."""

    def make(correction: PolicyLossOptions, epochs: int = 1, **fields: Any) -> TorchLearner:
        policy = PolicyLossConfig(
            **{**correction.model_dump(), "old_logprobs": "recompute", "epochs": epochs, "kl_coef": 0.0}
        )
        optimizer = OptimizerConfig(kind="adamw", lr=1e-2)
        return TorchLearner(make_model(), tokenizer, LearnerConfig(optimizer=optimizer, policy=policy, **fields))

    return make


def off_policy(seed: int = 0) -> list[Sample]:
    """Samples whose log-probabilities are nobody's in particular, a little above a uniform choice among 40."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for i in range(8):
        n = int(torch.randint(5, 14, (1,), generator=generator))
        ids = torch.randint(0, 40, (n,), generator=generator).tolist()
        logprobs = (-3.6 + 0.5 * torch.randn(n, generator=generator)).tolist()
        made.append(Sample.sampled(ids, [t > 2 for t in range(n)], logprobs, 1.0 if i % 2 else -1.0))
    return made


def moved(learner: TorchLearner, samples: list[Sample]) -> tuple[list[Tensor], dict[str, float]]:
    metrics = learner.policy_step(samples)
    return [p.detach().clone() for p in learner.model.parameters()], metrics


@pytest.mark.parametrize(
    "correction", [correcting("token"), correcting("sequence", 5.0), correcting("none", mask=(0.3, 3))]
)
def test_a_step_is_the_same_however_it_is_packed(build: Build, correction: PolicyLossOptions) -> None:
    samples = off_policy()
    weights, metrics = moved(build(correction), samples)
    plain, _ = moved(build(correcting()), samples)
    assert any(not torch.allclose(a, b) for a, b in zip(weights, plain, strict=True)), "the correction does something"
    for packing in ({"token_budget": 30}, {"token_budget": 64, "packing": "ffd"}):
        others, figures = moved(build(correction, **packing), samples)
        for a, b in zip(weights, others, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
        for name in ("correction_mean", "correction_truncated", "correction_masked", "logprob_gap_ess", "policy_loss"):
            assert figures[name] == pytest.approx(metrics[name], abs=1e-5), name


def test_on_policy_a_correction_changes_nothing(build: Build) -> None:
    learner = build(correcting("token", 2.0, (0.9, 1.1)))
    gap = learner.policy_step(off_policy())
    assert gap["logprob_gap_mean"] > 0.1 and gap["correction_masked"] > 0
    # The same samples with the log-probabilities that the learner's own forward pass gives them.
    samples = []
    for sample in off_policy():
        ids = torch.tensor([list(sample.ids)])
        with torch.no_grad():
            own = build(correcting()).model(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        mask = [w != 0 for w in sample.weights]
        samples.append(Sample.sampled(sample.ids, mask, [0.0, *own.tolist()], sample.advantage))
    corrected, metrics = moved(build(correcting("token", 2.0, (0.9, 1.1))), samples)
    plain, _ = moved(build(correcting()), samples)
    assert metrics["correction_mean"] == pytest.approx(1.0, abs=1e-5)
    assert metrics["correction_masked"] == metrics["correction_truncated"] == 0
    for a, b in zip(corrected, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_the_correction_is_that_of_the_weights_before_the_step(build: Build) -> None:
    """Later updates of a step move the policy, and with it PPO's ratio, but not the weights old / sampler."""
    samples = off_policy()
    _, once = moved(build(correcting("token")), samples)
    _, twice = moved(build(correcting("token"), epochs=2), samples)
    assert twice["updates"] == 2 and twice["approx_kl"] > 1e-4
    for name in ("correction_mean", "correction_truncated", "logprob_gap_mean", "logprob_gap_ess"):
        assert twice[name] == pytest.approx(once[name], abs=1e-5), name
