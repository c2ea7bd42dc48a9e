"""Groups of scored episodes as samples for a learner: exact ids and log-probabilities, and an advantage each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from muarl.learning.advantages import group_advantages
from muarl.learning.packing import Sample
from muarl.types.episode import Episode

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
    ``Sample.episode``).
    """
    pairs = list(zip(episodes, [e.reward for e in episodes] if rewards is None else rewards, strict=True))
    pairs = [(e, r) for e, r in pairs if e.learnable]
    found = group_advantages(
        [reward for _, reward in pairs],
        [e.group or e.task_id for e, _ in pairs],
        drop_zero_variance=drop_zero_variance,
        **KINDS[advantage],
    )
    samples = []
    for number, ((episode, _), value, kept) in enumerate(zip(pairs, found.values, found.kept, strict=True)):
        t = episode.tokens
        episode.tags["advantage"] = float(value)  # for whoever reads the episode; the learner has its own
        if kept and t is not None and t.sampled_count and (oldest is None or t.oldest_version >= oldest):
            own = number if t.restarts else None
            samples += [Sample.sampled(s.ids, s.loss_mask, s.logprobs, float(value), own) for s in t.segments()]
    return samples
