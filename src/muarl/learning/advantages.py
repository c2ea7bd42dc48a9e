"""Advantages from the rewards of groups of rollouts of one task, and groups of scored episodes as samples for a
learner.

The baseline of a rollout is what its own group achieved, so no value network is needed (GRPO: Shao et al. 2024,
arXiv 2402.03300). Dividing by the group's standard deviation weighs easy and hard tasks up; Dr.GRPO (Liu et al. 2025,
arXiv 2503.20783) leaves that out. The leave-one-out baseline is RLOO's (Ahmadian et al. 2024, arXiv 2402.14740).
``group_advantages`` is a pure function on arrays, and whether a group is large enough to be used is for its caller to
decide. ``group_samples`` applies it to episodes, with their exact ids and log-probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from muarl.learning.branches import Credit, turn_credits
from muarl.learning.packing import Sample
from muarl.types.episode import ADVANTAGE, BRANCH, Episode

ByTurn = Callable[[Sequence[float], Sequence[Episode]], Sequence[Credit]]
"""From the rewards and episodes of one group to the credit of each episode's turns."""
Baseline = Literal["mean", "leave_one_out"]
Scale = Literal["std", "none"]

EPS = 1e-6
"""Added to a standard deviation before anything is divided by it."""
SAME_REWARD = 1e-9
"""Rewards of a group that lie no further apart than this count as equal: the group has nothing to say."""


@dataclass(frozen=True, slots=True)
class Advantages:
    """The advantages of n rollouts, each within its group."""

    values: npt.NDArray[np.float64]
    """float64 [n], one for each rollout."""
    kept: npt.NDArray[np.bool_]
    """bool [n]: False where the rollout's group was dropped."""
    zero_variance: tuple[Hashable, ...]
    """The groups whose rewards are all equal (dropped or not), in order of first appearance."""


def group_advantages(
    rewards: Sequence[float] | npt.NDArray[np.floating],
    groups: Sequence[Hashable],
    *,
    baseline: Baseline = "mean",
    scale: Scale = "std",
    unbiased: bool = True,
    eps: float = EPS,
    drop_zero_variance: bool = False,
) -> Advantages:
    """The advantage of each rollout within its group.

    ``rewards`` [n] and ``groups`` [n] (any hashable name; members need not be adjacent).

    - ``baseline="mean"``: reward minus the group's mean. ``"leave_one_out"``: minus the mean of the *other* members.
    - ``scale="std"``: divided by (the group's standard deviation + ``eps``), over n-1 if ``unbiased`` (GRPO's published
      code), else over n. ``"none"``: not divided (Dr.GRPO).
    - ``drop_zero_variance``: members of groups with equal rewards are marked False in ``kept``. Otherwise they stay
      with advantage 0: they add no policy gradient, but do carry a KL term and do count in a token mean.

    A group of one has advantage 0 and counts as of zero variance. ValueError if the lengths differ or a reward is not
    finite.
    """
    values = np.asarray(rewards, dtype=np.float64)
    if values.ndim != 1 or len(values) != len(groups):
        raise ValueError(f"rewards {values.shape} and groups ({len(groups)}) must be of one length")
    if not np.isfinite(values).all():
        raise ValueError(f"reward {int(np.flatnonzero(~np.isfinite(values))[0])} is not finite")
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)

    advantages = np.zeros_like(values)
    informative = np.ones(len(values), dtype=np.bool_)
    flat: list[Hashable] = []
    for group, indices in members.items():
        own = values[indices]
        if np.ptp(own) <= SAME_REWARD:
            flat.append(group)
            informative[indices] = not drop_zero_variance
            continue
        n = len(own)
        centred = own - own.mean()
        if baseline == "leave_one_out":
            centred = centred * n / (n - 1)  # r - mean(others) = (r - mean(all)) * n / (n - 1)
        if scale == "std":
            centred = centred / (own.std(ddof=1 if unbiased else 0) + eps)
        advantages[indices] = centred
    return Advantages(advantages, informative, tuple(flat))


Advantage = Literal["group_std", "group_mean", "leave_one_out"]

KINDS: Mapping[Advantage, Mapping[str, Any]] = {
    "group_std": {"baseline": "mean", "scale": "std"},
    "group_mean": {"baseline": "mean", "scale": "none"},
    "leave_one_out": {"baseline": "leave_one_out", "scale": "none"},
}


def group_samples(
    episodes: Sequence[Episode],
    *,
    rewards: Sequence[float] | None = None,
    advantage: Advantage = "group_std",
    drop_zero_variance: bool = True,
    oldest: int | None = None,
    by_turn: ByTurn | None = None,
) -> list[Sample]:
    """Scored episodes as samples for ``TorchLearner.policy_step``, each with its advantage within its group.

    The advantage is noted in the episode's tags, too. Episodes of one ``Episode.group`` are compared with each other.
    ``rewards``: instead of the episodes' own.
    ``advantage``: ``group_std`` (GRPO: reward minus the group's mean, divided by its standard deviation),
    ``group_mean`` (Dr.GRPO: not divided) or ``leave_one_out`` (RLOO). ``drop_zero_variance``: leave out groups whose
    rewards are all the same. ``oldest``: episodes with tokens of an older policy version than this count in their
    group's baseline, and are left out.

    Episodes that were not scored, those that a user spoiled, and those in which nothing was sampled, are left out. An
    episode whose context was written anew is one sample a segment, each with the episode's advantage (see
    ``Sample.episode``). In groups with branches every turn has an advantage of its own, against its siblings
    (learning/branches.py), divided as the others' are; the mean of those is then noted. ``by_turn`` gives the credit of
    every group's turns, undivided, from its rewards and episodes; None: only groups with branches have any.
    """
    pairs = list(zip(episodes, [e.reward for e in episodes] if rewards is None else rewards, strict=True))
    pairs = [(e, r) for e, r in pairs if e.learnable]
    advantages = group_advantages(
        [reward for _, reward in pairs],
        [e.group or e.task_id for e, _ in pairs],
        drop_zero_variance=drop_zero_variance,
        **KINDS[advantage],
    )
    credits_ = _turns_of(pairs, KINDS[advantage]["scale"], by_turn)
    samples = []
    for number, ((episode, _), value, usable) in enumerate(zip(pairs, advantages.values, advantages.kept, strict=True)):
        t = episode.tokens
        if (credit := credits_.get(number)) is not None:
            episode.tags[ADVANTAGE] = sum(credit.values) / max(1, len(credit.values))
            version = credit.oldest_version(episode)
            if usable and version is not None and (oldest is None or version >= oldest):
                samples += credit.samples(episode, number)
            continue
        episode.tags[ADVANTAGE] = float(value)  # for whoever reads the episode; the learner has its own
        if usable and t is not None and t.sampled_count and (oldest is None or t.oldest_version >= oldest):
            own = number if t.restarts else None
            samples += [Sample.sampled(s.ids, s.loss_mask, s.logprobs, float(value), own) for s in t.segments()]
    return samples


def _turns_of(pairs: Sequence[tuple[Episode, float]], scale: Scale, by_turn: ByTurn | None) -> dict[int, Credit]:
    """The credit of episodes whose turns have one each, by their number."""
    members: dict[Hashable, list[int]] = {}
    for number, (episode, _) in enumerate(pairs):
        members.setdefault(episode.group or episode.task_id, []).append(number)
    out: dict[int, Credit] = {}
    for numbers in members.values():
        own = [pairs[n] for n in numbers]
        give = by_turn or (turn_credits if any(BRANCH in episode.tags for episode, _ in own) else None)
        if give is not None:
            rewards = [reward for _, reward in own]
            by = float(np.std(rewards, ddof=1)) + EPS if scale == "std" and len(own) > 1 else 1.0
            out |= {n: c.divided(by) for n, c in zip(numbers, give(rewards, [e for e, _ in own]), strict=True)}
    return out
