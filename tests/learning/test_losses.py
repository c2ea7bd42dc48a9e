from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.losses import (
    Totals,
    cross_entropy_loss,
    kl_loss,
    kl_terms,
    logprob_gap,
    merge_metrics,
    policy_gradient_loss,
    token_coefficients,
)

PLAIN = PolicyLossConfig(dual_clip=None)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def surrogate(ratios: list[float], advantages: list[float], **options: Any) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Loss, gradient with respect to the log-probabilities, and metrics for one sequence with these ratios."""
    old = torch.full((len(ratios),), -1.0, dtype=torch.float64)
    logprobs = (old + vector(*ratios).log()).requires_grad_()
    weights = torch.ones_like(old)
    sequences = options.pop("sequences", torch.zeros(len(ratios), dtype=torch.int64))
    totals = Totals.of(weights, sequences)
    chosen = PolicyLossConfig(**{"dual_clip": None, **options})
    out = policy_gradient_loss(logprobs, old, vector(*advantages), weights, sequences, totals, chosen)
    out.loss.backward()
    assert logprobs.grad is not None
    return out.loss.detach(), logprobs.grad, out.metrics


def test_clip_by_hand() -> None:
    # Ratio 1.5, A +1: clipped to 1.2 -> -1.2, no gradient.      Ratio 0.5, A +1: -0.5, gradient -0.5.
    # Ratio 1.5, A -1: max(1.5, 1.2) = 1.5, gradient +1.5.       Ratio 0.5, A -1: clipped to 0.8 -> 0.8, no gradient.
    loss, gradient, metrics = surrogate([1.5, 0.5, 1.5, 0.5], [1, 1, -1, -1])
    assert loss.item() == pytest.approx((-1.2 - 0.5 + 1.5 + 0.8) / 4)
    assert gradient.tolist() == pytest.approx([0, -0.125, 0.375, 0])
    assert metrics["clip_fraction"].item() == 0.5
    assert metrics["clip_fraction_high"].item() == 0.25
    assert metrics["clip_fraction_low"].item() == 0.25
    assert metrics["ratio_mean"].item() == pytest.approx(1.0)
    assert (metrics["ratio_min"].item(), metrics["ratio_max"].item()) == pytest.approx((0.5, 1.5))
    # k3 of (1.5, .5, 1.5, .5): r - 1 - log r = .5 - .405465 and -.5 + .693147.
    assert metrics["approx_kl"].item() == pytest.approx((0.0945349 + 0.1931472) / 2, abs=1e-6)


def test_clip_higher_by_hand() -> None:
    # Below, the clip stays where clip_low says: ratio 0.75, A -1 is clipped to 0.8, and has no gradient.
    loss, gradient, metrics = surrogate([1.25, 1.4, 0.75], [1, 1, -1], clip_low=0.2, clip_high=0.28)
    assert loss.item() == pytest.approx((-1.25 - 1.28 + 0.8) / 3)
    assert gradient.tolist() == pytest.approx([-1.25 / 3, 0, 0])
    assert metrics["clip_fraction"].item() == pytest.approx(2 / 3)
    assert metrics["clip_fraction_low"].item() == pytest.approx(1 / 3)


def test_dual_clip_by_hand() -> None:
    # Ratio 5, A -1: loss 5, bounded at 3, no gradient. Ratio 2, A -1: 2, below the bound. Positive A is never bounded.
    loss, gradient, metrics = surrogate([5.0, 2.0, 1.0], [-1, -1, 1], dual_clip=3.0)
    assert loss.item() == pytest.approx((3 + 2 - 1) / 3)
    assert gradient.tolist() == pytest.approx([0, 2 / 3, -1 / 3])
    assert metrics["dual_clip_fraction"].item() == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="dual_clip"):
        surrogate([1.0], [1], dual_clip=1.0)


def test_at_ratio_one_the_gradient_is_reinforce() -> None:
    _, gradient, metrics = surrogate([1.0, 1.0, 1.0], [2, -1, 0.5])
    assert gradient.tolist() == pytest.approx([-2 / 3, 1 / 3, -0.5 / 3])
    assert metrics["clip_fraction"].item() == 0


def test_gspo_by_hand() -> None:
    # Sequence 0: ratios 2 and 0.5, so the geometric mean is 1. Sequence 1: one token of ratio 1.1.
    sequences = torch.tensor([0, 0, 1])
    options = {"ratio": "sequence", "loss_aggregation": "sequence_mean", "sequences": sequences}
    loss, gradient, metrics = surrogate([2.0, 0.5, 1.1], [1, 1, -2], **options)
    assert loss.item() == pytest.approx((-1.0 + 2.2) / 2)
    # d/dlogp of -s A / 2 sequences: s A / length for each token.
    assert gradient.tolist() == pytest.approx([-0.25, -0.25, 1.1])
    assert metrics["clip_fraction"].item() == 0  # token ratios of 2 do not count here
    # Clipping acts on whole sequences.
    loss, gradient, _ = surrogate([2.0, 2.0, 1.1], [1, 1, 1], **options)
    assert loss.item() == pytest.approx((-1.2 - 1.1) / 2)
    assert gradient.tolist() == pytest.approx([0, 0, -0.55])


def test_aggregations_by_hand() -> None:
    # Sequence 0 has 3 tokens, one of them of weight 0.5; sequence 1 has one.
    weights, sequences = vector(1, 0.5, 1, 1), torch.tensor([0, 0, 0, 1])
    totals = Totals.of(weights, sequences)
    assert totals == Totals(3.5, 2)
    assert token_coefficients(weights, sequences, totals, "token_mean").tolist() == pytest.approx(
        [1 / 3.5, 0.5 / 3.5, 1 / 3.5, 1 / 3.5]
    )
    assert token_coefficients(weights, sequences, totals, "sequence_mean").tolist() == pytest.approx(
        [0.2, 0.1, 0.2, 0.5]
    )
    assert token_coefficients(weights, sequences, totals, "dr_grpo", 10).tolist() == pytest.approx(
        [0.05, 0.025, 0.05, 0.05]
    )
    with pytest.raises(ValueError, match="constant_length"):
        token_coefficients(weights, sequences, totals, "dr_grpo")


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "dr_grpo"])
@pytest.mark.parametrize("ratio", ["token", "sequence"])
def test_micro_batches_add_up_exactly(aggregation: Any, ratio: Any) -> None:
    generator = torch.Generator().manual_seed(3)
    n = 60
    sequences = torch.randint(0, 9, (n,), generator=generator).sort().values
    old = -torch.rand(n, generator=generator, dtype=torch.float64) * 3
    weights = (torch.rand(n, generator=generator) < 0.8).double()
    advantages = torch.randn(9, generator=generator, dtype=torch.float64)[sequences]
    reference = old + 0.3 * torch.randn(n, generator=generator, dtype=torch.float64)
    start = old + 0.3 * torch.randn(n, generator=generator, dtype=torch.float64)
    totals = Totals.of(weights, sequences)

    def run(splits: list[Tensor]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        logprobs = start.clone().requires_grad_()
        parts, total = [], torch.zeros((), dtype=torch.float64)
        for at in splits:
            shared = (weights[at], sequences[at], totals)
            options = PolicyLossConfig(loss_aggregation=aggregation, constant_length=20, ratio=ratio)
            out = policy_gradient_loss(logprobs[at], old[at], advantages[at], *shared, options)
            kl = kl_loss(logprobs[at], reference[at], *shared, options)
            (out.loss + 0.1 * kl.loss).backward()
            total = total + out.loss.detach() + 0.1 * kl.loss.detach()
            parts.append(out.metrics | kl.metrics)
        assert logprobs.grad is not None
        return total, logprobs.grad, merge_metrics(parts)

    whole = run([torch.arange(n)])
    # Whole sequences, in another order and unequal parts.
    split = run(
        [(sequences == s).nonzero()[:, 0] for s in (8, 3, 0)]
        + [torch.isin(sequences, torch.tensor(some)).nonzero()[:, 0] for some in ([1, 2, 4], [5, 6, 7])]
    )
    assert split[0].item() == pytest.approx(whole[0].item(), rel=1e-12)
    torch.testing.assert_close(split[1], whole[1], rtol=1e-12, atol=1e-14)
    for name, value in whole[2].items():
        assert split[2][name].item() == pytest.approx(value.item(), rel=1e-9, abs=1e-12), name


def test_tokens_of_weight_zero_change_nothing() -> None:
    weights, sequences = vector(1, 0, 1), torch.tensor([0, 0, 1])
    for junk in (-0.5, -30.0):
        logprobs = vector(-1.0, junk, -2.0).requires_grad_()
        out = policy_gradient_loss(
            logprobs, vector(-1, -1, -2), vector(1, 1, -1), weights, sequences, Totals.of(weights, sequences), PLAIN
        )
        out.loss.backward()
        assert logprobs.grad is not None
        assert out.loss.item() == pytest.approx(0)
        assert logprobs.grad.tolist() == pytest.approx([-0.5, 0, 0.5])


def test_kl_values_and_gradients_by_hand() -> None:
    x = math.log(2.0)  # the policy gives the token twice the reference's probability
    values = {"k1": x, "k2": x * x / 2, "k3": 0.5 - 1 + x}
    slopes = {"k1": x, "k2": x, "k3": 1 - 0.5}
    for estimator in ("k1", "k2", "k3"):
        logprob = vector(-1.0).requires_grad_()
        term = kl_terms(logprob, vector(-1.0 - x), estimator)  # type: ignore[arg-type]
        assert term.item() == pytest.approx(values[estimator])
        term.sum().backward()
        assert logprob.grad is not None
        assert logprob.grad.item() == pytest.approx(slopes[estimator])


def expected_gradient(
    logits: Tensor, reference: Tensor, estimator: Any, old: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Exact expectation, over tokens sampled from ``old`` (or the policy), of a term's value and of its gradient."""
    z = logits.clone().requires_grad_()
    logp = z.log_softmax(-1)
    behaviour = logp.detach() if old is None else old
    terms = kl_terms(logp, reference, estimator, old)
    value = (behaviour.exp() * terms).sum()
    (gradient,) = torch.autograd.grad(value, z)
    return value.detach(), gradient


def test_kl_gradients_in_expectation() -> None:
    generator = torch.Generator().manual_seed(0)
    logits, other, older = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    reference, old = other.log_softmax(-1), older.log_softmax(-1)

    z = logits.clone().requires_grad_()
    p = z.log_softmax(-1)
    reverse = (p.exp() * (p - reference)).sum()  # KL(policy || reference)
    (true,) = torch.autograd.grad(reverse, z, retain_graph=True)
    forward = (reference.exp() * (reference - p)).sum()  # KL(reference || policy)
    (true_forward,) = torch.autograd.grad(forward, z)

    value, gradient = expected_gradient(logits, reference, "k1")
    assert value.item() == pytest.approx(reverse.item())
    torch.testing.assert_close(gradient, true)
    _, gradient = expected_gradient(logits, reference, "k2")
    torch.testing.assert_close(gradient, true)
    value, gradient = expected_gradient(logits, reference, "k3")
    assert value.item() == pytest.approx(reverse.item())
    torch.testing.assert_close(gradient, true_forward)
    # With importance weights, tokens from an older policy serve as well, and k3's gradient becomes the reverse one.
    for estimator in ("k1", "k2", "k3"):
        value, gradient = expected_gradient(logits, reference, estimator, old)
        torch.testing.assert_close(gradient, true)
        if estimator != "k2":
            assert value.item() == pytest.approx(reverse.item())


def test_the_naive_k1_would_have_no_expected_gradient() -> None:
    logits = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    logp = logits.log_softmax(-1)
    naive = (logp.detach().exp() * (logp - torch.tensor([-0.5, -3.0, -1.0]))).sum()
    naive.backward()
    assert logits.grad is not None
    assert logits.grad.abs().max().item() < 1e-12


def test_absurd_ratios_stay_finite() -> None:
    logprobs = vector(-0.1, -500.0).requires_grad_()
    ones, sequences = vector(1, 1), torch.tensor([0, 0])
    totals = Totals.of(ones, sequences)
    out = policy_gradient_loss(logprobs, vector(-400, -0.1), vector(-1, 1), ones, sequences, totals, PLAIN)
    kl = kl_loss(logprobs, vector(-400, -0.1), ones, sequences, totals, PLAIN)
    (out.loss + kl.loss).backward()
    assert torch.isfinite(out.loss)
    assert torch.isfinite(kl.loss)
    assert logprobs.grad is not None
    assert torch.isfinite(logprobs.grad).all()


def test_cross_entropy_by_hand() -> None:
    logprobs, weights = vector(-1.0, -2.0, -4.0).requires_grad_(), vector(1, 1, 0.1)
    out = cross_entropy_loss(logprobs, weights, Totals.of(weights, torch.tensor([0, 0, 0])), vector(0.5, 0.5, 0))
    out.loss.backward()
    assert out.loss.item() == pytest.approx(3.4 / 2.1)
    assert out.metrics["agent_nll"].item() == pytest.approx(1.5)
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([-1 / 2.1, -1 / 2.1, -0.1 / 2.1])


def test_logprob_gap_by_hand() -> None:
    weights = vector(1, 1, 0)
    gap = logprob_gap(vector(-1, -2, -9), vector(-1.5, -2.1, 0), weights, Totals(2.0, 1))
    assert gap["logprob_gap_mean"].item() == pytest.approx(0.3)
    assert gap["logprob_gap_max"].item() == pytest.approx(0.5)
