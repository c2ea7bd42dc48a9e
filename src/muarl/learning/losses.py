"""Losses as pure functions of flat vectors, one entry for each token that carries loss; and what is done about a
sampler whose tokens did not come from the policy that the learner holds.

Shapes: every vector is [n], the loss tokens of a (micro-)batch in any order; ``sequences`` [n] says which document each
token belongs to. Log-probabilities are natural logarithms at the sampling temperature.

Each loss is a *sum* of per-token terms times coefficients that already hold the global normaliser
(``token_coefficients``). So the losses and gradients of micro-batches simply add up to those of the whole batch,
however it was split; likewise the metrics, except that those named ``*_max`` and ``*_min`` combine by maximum and
minimum (``merge_metrics``).

Sources: PPO's clip, Schulman et al. 2017 (1707.06347); dual clip, Ye et al. 2020 (1912.09729); clip-higher and the
global token mean, DAPO, Yu et al. 2025 (2503.14476); constant length, Dr.GRPO, Liu et al. 2025 (2503.20783);
sequence-level ratio, GSPO, Zheng et al. 2025 (2507.18071); KL estimators, J. Schulman, "Approximating KL divergence".

Corrections (``correct``). Sampled tokens may come from an older version of the policy (asynchronous rollouts), or from
an engine with other arithmetic. Both show as a gap between two log-probabilities of the same token: the sampler's,
noted when it was sampled, and the learner's own, computed with its weights just before the step ("old"). Clipping PPO's
ratio against the *sampler's* would spend the trust region on that gap. The decoupled objective (Hilton et al. 2021,
arXiv 2110.00641; AReaL, Fu et al. 2025, arXiv 2505.24298) instead clips the ratio policy / old, and weighs it by
old / sampler, which does not depend on the weights being trained. Truncating that weight at a cap bounds its variance
at the price of a bias towards what the sampler prefers (Ionides 2008; for this gap: truncated importance sampling, Yao
et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training"). What is too far off even for
that is left out: IcePop (Ling team 2025, arXiv 2510.18855) masks tokens, ``correct`` whole sequences, by the geometric
mean of their ratios (Liu et al. 2025, "When speed kills stability: demystifying RL collapse from the training-inference
mismatch").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from muarl.learning.loss_options import Aggregation, KLEstimator, PolicyLossConfig, PolicyLossOptions

MAX_LOG_RATIO = 20.0
"""Log-ratios are limited to this size before exponentiation, so that one absurd token cannot make the loss infinite."""


@dataclass(frozen=True, slots=True)
class LossOutput:
    """What a loss gives."""

    loss: Tensor
    """Scalar with gradient."""
    metrics: dict[str, Tensor]
    """Detached scalars; see ``merge_metrics`` for how they combine."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The global normalisers of one optimiser step, computed over everything the step sees (all micro-batches, all
    processes)."""

    weight: float
    """Sum of the loss weights."""
    sequences: int
    """The number of sequences that carry any."""
    episodes: int | None = None
    """How many episodes those sequences are segments of; None: each is an episode by itself."""

    @classmethod
    def of(cls, weights: Tensor, sequences: Tensor, episodes: Tensor | None = None) -> Totals:
        count = None if episodes is None else int(torch.unique(episodes[weights != 0]).numel())
        return cls(float(weights.double().sum()), int(torch.unique(sequences[weights != 0]).numel()), count)


def merge_metrics(parts: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Combine the metrics of micro-batches: ``*_max`` by maximum, ``*_min`` by minimum, all others by sum."""
    merged: dict[str, Tensor] = {}
    for part in parts:
        for name, value in part.items():
            if name not in merged:
                merged[name] = value
            elif name.endswith("_max"):
                merged[name] = torch.maximum(merged[name], value)
            elif name.endswith("_min"):
                merged[name] = torch.minimum(merged[name], value)
            else:
                merged[name] = merged[name] + value
    return merged


def sequence_sums(values: Tensor, sequences: Tensor) -> Tensor:
    """Sums over each sequence [largest index + 1]; entry i is 0 where no token belongs to sequence i."""
    size = int(sequences.max()) + 1 if sequences.numel() else 0
    return torch.zeros(size, dtype=values.dtype, device=values.device).index_add(0, sequences, values)


def token_coefficients(
    weights: Tensor,
    sequences: Tensor,
    totals: Totals,
    aggregation: Aggregation,
    constant_length: int | None = None,
    whole: Tensor | None = None,
) -> Tensor:
    """What each token's loss is multiplied by before summing. A sequence must not be split between micro-batches.

    Where sequences are segments of episodes, an episode takes a sequence's place in what follows; its segments may then
    be in different micro-batches. ``whole`` [n]: the sum of the weights of each token's episode over the whole step.

    - ``token_mean``: weight / sum of all weights of the whole step. Every token counts the same; long sequences count
      more.
    - ``sequence_mean``: weight / (sum of the own sequence's weights) / number of sequences. Every sequence counts the
      same.
    - ``dr_grpo``: weight / ``constant_length`` / number of sequences: the sum over a sequence, divided by a constant
      (usually the generation limit), so that length changes no token's share.
    """
    if aggregation == "token_mean":
        return weights / max(totals.weight, 1e-12)
    count = max(totals.sequences if totals.episodes is None else totals.episodes, 1)
    if aggregation == "sequence_mean":
        own = sequence_sums(weights, sequences)[sequences] if whole is None else whole
        return weights / own.clamp_min(1e-12) / count
    if aggregation == "dr_grpo":
        if constant_length is None or constant_length < 1:
            raise ValueError("aggregation dr_grpo needs constant_length, the number of tokens to divide by")
        return weights / constant_length / count
    raise ValueError(f"unknown aggregation {aggregation!r}: token_mean, sequence_mean or dr_grpo")


def policy_gradient_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    weights: Tensor,
    sequences: Tensor,
    totals: Totals,
    options: PolicyLossConfig,
    *,
    factor: Tensor | None = None,
    whole: Tensor | None = None,
) -> LossOutput:
    """The clipped surrogate -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A), aggregated.

    ``clip_high > clip_low`` is DAPO's clip-higher. ``dual_clip`` c > 1 bounds the loss of tokens with negative
    advantage at -c A, however large the ratio. ``ratio="token"``: r = exp(logprob - old). ``ratio="sequence"`` (GSPO):
    the same r for all tokens of a sequence, exp of the weighted mean of its log-ratios; every token of the sequence
    then has the same loss, and with ``sequence_mean`` the gradient is GSPO's. (GSPO's clip range is about 3e-4, not
    0.2.) ``factor`` [n]: what each token's loss is multiplied by, as a constant (see ``corrections``). ``whole``: see
    ``token_coefficients``; the ratio of a sequence stays that of one segment.

    Metrics, as weighted means over all loss tokens of the step: ``policy_loss`` (aggregated like the loss),
    ``clip_fraction`` (the clip acts), ``clip_fraction_low`` / ``_high`` its parts, ``dual_clip_fraction``,
    ``approx_kl`` (k3 estimate of KL(old || new)), ``ratio_mean``, ``ratio_min``, ``ratio_max``.
    """
    clip_low, clip_high, dual_clip = options.clip_low, options.clip_high, options.dual_clip
    log_ratio = (logprobs - old_logprobs).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    if options.ratio == "sequence":
        means = sequence_sums(weights * log_ratio, sequences) / sequence_sums(weights, sequences).clamp_min(1e-12)
        r = means[sequences].exp()
    else:
        r = log_ratio.exp()
    clipped = r.clamp(1.0 - clip_low, 1.0 + clip_high)
    losses = torch.maximum(-r * advantages, -clipped * advantages)
    dual = torch.zeros_like(losses, dtype=torch.bool)
    if dual_clip is not None:
        bound = -dual_clip * advantages
        dual = (advantages < 0) & (losses > bound)
        losses = torch.where(dual, bound, losses)
    coefficients = token_coefficients(
        weights, sequences, totals, options.loss_aggregation, options.constant_length, whole
    )
    if factor is not None:
        coefficients = coefficients * factor.detach()
    loss = (coefficients * losses).sum()
    with torch.no_grad():
        share = weights / max(totals.weight, 1e-12)
        high = (r > 1.0 + clip_high) & (advantages > 0)
        low = (r < 1.0 - clip_low) & (advantages < 0)
        metrics = {
            "policy_loss": loss.detach(),
            "clip_fraction": (share * (high | low)).sum(),
            "clip_fraction_high": (share * high).sum(),
            "clip_fraction_low": (share * low).sum(),
            "dual_clip_fraction": (share * dual).sum(),
            "approx_kl": (share * (log_ratio.exp() - 1.0 - log_ratio)).sum(),
            "ratio_mean": (share * r).sum(),
        }
        if r.numel():
            metrics |= {"ratio_min": r.detach().min(), "ratio_max": r.detach().max()}
    return LossOutput(loss, metrics)


def kl_terms(
    logprobs: Tensor,
    reference: Tensor,
    estimator: KLEstimator = "k3",
    old_logprobs: Tensor | None = None,
) -> Tensor:
    """Per-token loss terms [n] for KL(policy || reference), from tokens that the policy itself sampled.

    With x = logprob - reference:

    - ``k1``: value x, the unbiased estimate. Its own gradient, d logprob, has expectation zero whatever the
      reference, so as a plain loss it would only add noise. Implemented instead: value x, gradient x * d logprob (the
      score-function gradient), which is the true gradient of KL(policy || reference) in expectation.
    - ``k2``: x**2 / 2. Biased value, and the same gradient as k1 here: x * d logprob.
    - ``k3``: exp(-x) - 1 + x, GRPO's "low-variance" term: never negative, unbiased value. Its plain gradient,
      (1 - exp(-x)) * d logprob, is in expectation that of KL(reference || policy): the same minimum, and equal to first
      order near it, but weaker far above the reference and much stronger far below it.

    ``old_logprobs``: if given, terms are weighted by the importance ratio exp(logprob - old), which keeps k1 and k3
    unbiased when the tokens come from an older policy (and makes k3's gradient that of KL(policy || reference)): for k1
    and k2 as a constant factor, for k3 with its gradient. Without it tokens count as on-policy.
    """
    x = (logprobs - reference).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    importance = None
    if old_logprobs is not None:
        importance = (logprobs - old_logprobs).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    if estimator == "k1":
        fixed = x.detach()
        terms = fixed + fixed * (logprobs - logprobs.detach())
    elif estimator == "k2":
        terms = 0.5 * x.square()
    elif estimator == "k3":
        terms = torch.exp(-x) - 1.0 + x
        return terms if importance is None else importance * terms
    else:
        raise ValueError(f"unknown KL estimator {estimator!r}: k1, k2 or k3")
    return terms if importance is None else importance.detach() * terms


def kl_loss(
    logprobs: Tensor,
    reference: Tensor,
    weights: Tensor,
    sequences: Tensor,
    totals: Totals,
    options: PolicyLossConfig,
    *,
    old_logprobs: Tensor | None = None,
    whole: Tensor | None = None,
) -> LossOutput:
    """``kl_terms`` by ``options.kl_estimator``, aggregated as the policy loss is; ``kl_coef`` is the caller's.

    Metrics: ``kl_loss`` (aggregated like the loss, before its coefficient), ``kl`` and ``kl_k3`` (means over loss
    tokens of the k1 and k3 values: two estimates of the divergence from the reference).
    """
    terms = kl_terms(logprobs, reference, options.kl_estimator, old_logprobs)
    coefficients = token_coefficients(
        weights, sequences, totals, options.loss_aggregation, options.constant_length, whole
    )
    loss = (coefficients * terms).sum()
    with torch.no_grad():
        share = weights / max(totals.weight, 1e-12)
        k1, k3 = kl_values(logprobs, reference)
        metrics = {"kl_loss": loss.detach(), "kl": (share * k1).sum(), "kl_k3": (share * k3).sum()}
    return LossOutput(loss, metrics)


def kl_values(logprobs: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    """The k1 and k3 values [n] of KL(policy || reference) in nats, from tokens that the policy sampled; no gradient."""
    x = (logprobs.detach() - reference).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return x, torch.exp(-x) - 1.0 + x


def cross_entropy_loss(
    logprobs: Tensor, weights: Tensor, totals: Totals, agent_share: Tensor | None = None
) -> LossOutput:
    """Supervised loss: - sum(weight * logprob) / sum of all weights of the step.

    ``agent_share`` [n]: each token's share in the mean over the agent's own tokens (they sum to 1 over the step).
    Metrics: ``nll`` (the loss) and, with ``agent_share``, ``agent_nll``: nats a token of the agent.
    """
    loss = -(weights * logprobs).sum() / max(totals.weight, 1e-12)
    metrics = {"nll": loss.detach()}
    if agent_share is not None:
        metrics["agent_nll"] = -(agent_share * logprobs.detach()).sum()
    return LossOutput(loss, metrics)


def logprob_gap(logprobs: Tensor, sampler_logprobs: Tensor, weights: Tensor, totals: Totals) -> dict[str, Tensor]:
    """How far sampler and learner disagree on the same tokens, in nats. Large values mean that "on-policy" is not: the
    tokens come from an older policy, or the two run different mathematics.

    Metrics: ``logprob_gap_mean`` and ``_max`` of |difference|, ``_kl`` (k3 estimate of KL(sampler || learner)), and two
    sums that ``gap_summary`` makes the effective sample size of.
    """
    log_ratio = (logprobs.detach() - sampler_logprobs) * (weights != 0)
    share = weights / max(totals.weight, 1e-12)
    ratio = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    gap = {
        "logprob_gap_mean": (weights * log_ratio.abs()).sum() / max(totals.weight, 1e-12),
        "logprob_gap_kl": (share * (ratio - 1.0 - log_ratio)).sum(),
        "logprob_gap_ratio": (share * ratio).sum(),
        "logprob_gap_square": (share * ratio.square()).sum(),
    }
    if log_ratio.numel():
        gap["logprob_gap_max"] = log_ratio.abs().max()
    return gap


def gap_summary(gap: Mapping[str, float]) -> dict[str, float]:
    """``logprob_gap``'s figures, summed over the whole step, as they are reported.

    ``logprob_gap_ess``: the effective sample size as a share, (mean ratio)^2 / mean ratio^2 over the loss tokens (Kong
    1992): 1 where sampler and learner agree, near 0 where few tokens carry all the importance.
    """
    out = dict(gap)
    ratio, square = out.pop("logprob_gap_ratio", None), out.pop("logprob_gap_square", None)
    if ratio is not None and square is not None:
        out["logprob_gap_ess"] = min(1.0, ratio**2 / square) if square > 0 else 0.0
    return out


@torch.no_grad()
def correct(
    options: PolicyLossOptions, old: Tensor, sampler: Tensor, weights: Tensor, sequences: Tensor, totals: Totals
) -> tuple[Tensor | None, dict[str, Tensor]]:
    """The factor of each token's policy loss (None: no correction is made), and figures about it. A sequence must not
    be split between micro-batches.

    - ``correction`` "token": each token's weight is min(exp(old - sampler), ``correction_cap``). Low variance; as an
      estimate for whole sequences it is biased, since it leaves out how likely the way to each token was.
    - "sequence": all tokens of a sequence share min(exp(sum of old - sampler), ``correction_cap``), the sequence's own
      importance ratio: unbiased where nothing is truncated, and of a variance that grows with length.
    - "none": weight 1.

    ``sequence_mask`` (low, high): sequences whose geometric mean of exp(old - sampler) lies outside get weight 0.

    Normalisers stay those of the whole step: what is masked counts in them with a loss of 0.

    Metrics (sums over micro-batches): ``correction_mean`` (mean factor of loss tokens), ``correction_truncated``
    (share of loss tokens whose ratio is above the cap; 0 under "none"), ``correction_masked`` (share of sequences).
    """
    kind, cap, mask = options.correction, options.correction_cap, options.sequence_mask
    if not options.corrects:
        return None, {}
    carries = (weights != 0).to(old.dtype)
    log_ratio = (old - sampler).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO) * carries
    sums = sequence_sums(log_ratio, sequences)
    if kind == "token":
        ratio = log_ratio.exp()
    elif kind == "sequence":
        ratio = sums.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()[sequences]
    else:
        ratio = torch.ones_like(old)
    factor = ratio.clamp(max=cap) if kind != "none" else ratio
    lengths = sequence_sums(carries, sequences)
    masked = torch.zeros_like(lengths, dtype=torch.bool)
    if mask is not None:
        mean = (sums / lengths.clamp_min(1.0)).exp()
        masked = ((mean < mask[0]) | (mean > mask[1])) & (lengths > 0)
        factor = factor.masked_fill(masked[sequences], 0.0)
    share = weights / max(totals.weight, 1e-12)
    truncated = ratio > cap if kind != "none" else torch.zeros_like(old, dtype=torch.bool)
    return factor, {
        "correction_mean": (share * factor).sum(),
        "correction_truncated": (share * truncated).sum(),
        "correction_masked": masked.sum().to(old.dtype) / max(totals.sequences, 1),
    }
