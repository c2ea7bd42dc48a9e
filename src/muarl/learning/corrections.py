"""What is done about a sampler whose tokens did not come from the policy that the learner holds.

They come from an older version of the policy (asynchronous rollouts), or from an engine with other arithmetic. Both
show as a gap between two log-probabilities of the same token: the sampler's, noted when it was sampled, and the
learner's own, computed with its weights just before the step ("old"). Clipping PPO's ratio against the *sampler's*
would spend the trust region on that gap. The decoupled objective (Hilton et al. 2021, arXiv 2110.00641; AReaL, Fu et
al. 2025, arXiv 2505.24298) instead clips the ratio policy / old, and weighs it by old / sampler, which does not depend
on the weights being trained. Truncating that weight at a cap bounds its variance at the price of a bias towards what
the sampler prefers (Ionides 2008; for this gap: truncated importance sampling, Yao et al. 2025, "Your efficient RL
framework secretly brings you off-policy RL training"). What is too far off even for that is left out: IcePop (Ling team
2025, arXiv 2510.18855) masks tokens, this module whole sequences, by the geometric mean of their ratios (Liu et al.
2025, "When speed kills stability: demystifying RL collapse from the training-inference mismatch").

Shapes as in ``losses``: flat vectors [n], one entry for each loss token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from muarl.learning.loss_options import PolicyLossOptions
from muarl.learning.losses import MAX_LOG_RATIO, Totals, sequence_sums


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
