"""Episodes from the side of a user model that is trained: its own tokens, what they are rewarded with, and samples.

Two objectives (``user_rl.objective``): ``hard`` rewards a user with whom the agent ends wrong, ``likely`` one that
speaks as a reference user model would. Under both an episode in which the user leaves its scenario is void
(users/constraints.py) and has the lowest reward of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from muarl.accounts.metrics import VIOLATIONS, is_success
from muarl.config.rl import RlConfig
from muarl.domains.tasks import Task
from muarl.environments.places import Places
from muarl.learning.advantages import group_samples
from muarl.learning.packing import Sample
from muarl.recipes.evaluation.auditing import audit_episodes
from muarl.rollouts.rollout import Group
from muarl.types.episode import USER_TOKENS, Episode, StopReason, TokenTrace
from muarl.users.constraints import VOID, breaches, void_rewards
from muarl.users.sampled import MakeCheck

REWARD = "user_reward"
"""The tag with what a user model was rewarded with for an episode, before voids are put below their group."""
CUT = (StopReason.MAX_TURNS, StopReason.CONTEXT_FULL)
"""Limits that a user reaches by never coming to an end: under ``hard`` they prove nothing of the agent."""

Likeness = Callable[[Sequence[TokenTrace]], Sequence[float]]
"""How near each conversation's tokens are to a reference user's."""


def user_side(episode: Episode) -> Episode:
    """The same episode as its user lived it: ``tokens`` and the turns' spans and versions are the user's, exactly as
    it sampled them; those of the agent are left out. ValueError if the user's tokens were not kept."""
    user_tokens = episode.tags.get(USER_TOKENS)
    if user_tokens is None:
        raise ValueError(f"episode {episode.id}: the user's tokens were not kept (SampledUserFactory.keeps_tokens)")
    trace, spans = TokenTrace.from_json(user_tokens["trace"]), iter(user_tokens["spans"])
    turns = []
    for turn in episode.turns:
        span = next(spans) if turn.message.role == "user" else None
        version = None if span is None else trace.versions[span[0]]
        turns.append(replace(turn, span=None if span is None else (span[0], span[1]), version=version, advantage=None))
    tags = {name: value for name, value in episode.tags.items() if name != USER_TOKENS}
    return replace(episode, turns=turns, tokens=trace, tags=tags)


def judge_episodes(
    places: Places,
    tasks: Sequence[Task],
    episodes: Sequence[Episode],
    checks: Mapping[str, MakeCheck],
    rules: Sequence[str],
) -> dict[str, frozenset[str]]:
    """Audit episodes, and note in their tags (``VOID``) where users left their scenarios. Returns, by the id of each
    episode, the rules of the audit that the agent violated. ``checks``: of goals, by the name of the place; ``rules``:
    of the guard. Episodes that infrastructure ended are left alone."""
    audited = audit_episodes(places, tasks, episodes)
    by_id = {task.id: task for task in tasks}
    for episode in episodes:
        if episode.stop is StopReason.INFRASTRUCTURE:
            continue
        task = by_id[episode.task_id]
        place, own = places.of(task), places.own(task)
        breached = breaches(own, episode.messages, check=checks[place.name](own), rules=rules)
        if breached:
            episode.tags[VOID] = [breach.to_json() for breach in breached]
    return {
        str(where["episode"]): frozenset(f.rule for f in findings if f.severity != "note" and f.layer != "outcome")
        for where, findings in audited.findings
    }


def is_void(episode: Episode) -> bool:
    """Whether its user left its scenario, as ``judge_episodes`` noted."""
    return bool(episode.tags.get(VOID))


def agent_fails(episode: Episode) -> bool:
    """Whether the agent ended wrong in an audited episode: its task was not done, or the audit found a violation. A
    conversation that only a limit of length cut (``CUT``) counts as no failure, since a user can bring that about by
    talking on."""
    violated = episode.verdict is not None and bool(episode.verdict.audit.get(VIOLATIONS))
    return violated or (not is_success(episode.reward) and episode.stop not in CUT)


@dataclass(frozen=True, slots=True)
class UserReward:
    """What the episodes of a step are worth to the user model."""

    likeness: Likeness | None = None
    """Of ``likely``: how near a user's tokens are to a reference user's; None for ``hard``."""

    margin: float = 1.0
    """How far a void episode's reward lies below the lowest of its group."""

    def own(self, episodes: Sequence[Episode]) -> list[float]:
        """The rewards of episodes from the user's side, whatever their groups, void or not."""
        if self.likeness is None:
            return [float(agent_fails(episode)) for episode in episodes]
        return list(self.likeness([episode.tokens or TokenTrace() for episode in episodes]))

    def samples(self, groups: Sequence[Group], rl: RlConfig) -> tuple[list[Sample], dict[str, float]]:
        """Groups of judged episodes from the user's side as samples for a learner, each with its advantage within its
        group; and figures: ``reward`` (the mean over episodes that are not void, where there are any),
        ``groups_kept`` and ``groups_equal`` (those without a gradient). Rewards are noted in the tags ``REWARD``."""
        episodes = [episode for group in groups for episode in group.episodes]
        rewards = dict(zip([e.id for e in episodes], self.own(episodes), strict=True))
        learned: list[float] = []
        equal = 0
        for group in groups:
            own = [rewards[e.id] for e in group.episodes]
            with_voids = void_rewards(own, [is_void(e) for e in group.episodes], margin=self.margin)
            equal += len(set(with_voids)) == 1
            learned += with_voids
        for episode in episodes:
            episode.tags[REWARD] = rewards[episode.id]
        samples = group_samples(
            episodes, rewards=learned, advantage=rl.advantage, drop_zero_variance=rl.drop_zero_variance
        )
        figures = {"groups_kept": float(len(groups)), "groups_equal": float(equal)}
        if valid := [rewards[e.id] for e in episodes if not is_void(e)]:
            figures["reward"] = fmean(valid)
        return samples, figures
