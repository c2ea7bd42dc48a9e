"""The simulated users of an evaluation, looked at by rules and by a judge: which conversations did a user spoil?"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.episode import Episode
from muarl.errors import InfrastructureError
from muarl.observe.progress import Progress
from muarl.recipes.common import judge_endpoint
from muarl.recipes.setting import Setting
from muarl.rewards.judge import make_judge
from muarl.rewards.user_errors import UserError, find_user_errors
from muarl.rewards.user_judge import UserJudge
from muarl.rollout import Budget

TAG = "user_errors"
"""Where an episode's findings stand among its tags: a list of {"rule", "turn", "detail"}, absent if there are none."""

JUDGED = "user_judged"


@dataclass(frozen=True)
class UserReview:
    """How the users did. ``by_rule``: rule to the number of scored episodes with such an error. ``flagged``: ids of the
    scored episodes with any. ``unjudged``: scored episodes that the judge should have seen and did not."""

    by_rule: dict[str, int] = field(default_factory=dict)
    flagged: frozenset[str] = frozenset()
    unjudged: int = 0


async def review_users(
    config: RunConfig,
    setting: Setting,
    tasks: Sequence[Task],
    episodes: Sequence[Episode],
    budget: Budget,
    progress: Progress,
) -> UserReview:
    """Look at the users of the scored episodes, write the findings into the episodes' tags, and sum them up.

    Where the judge of users fails or the budget is spent, the rules' findings stand alone.
    """
    if setting.rules.solo or (setting.official is not None and setting.official.fixed_users):
        return UserReview()
    known = {task.id: task for task in tasks}
    seen = [e for e in episodes if e.verdict is not None]
    look_at_users(setting, known, seen)
    unjudged = 0
    if config.eval.user_judge is not None:
        unjudged = await _judge(config.eval.user_judge, known, seen, budget, config.rl.concurrency, progress)
    counts: Counter[str] = Counter()
    flagged = set()
    for episode in seen:
        rules = {e["rule"] for e in episode.tags.get(TAG, ())}
        counts.update(rules)
        if rules:
            flagged.add(episode.id)
    return UserReview(dict(sorted(counts.items())), frozenset(flagged), unjudged)


def look_at_users(setting: Setting, tasks: Mapping[str, Task], episodes: Sequence[Episode]) -> dict[str, float]:
    """What the rules find of the users of these episodes, written into their tags; ``tasks`` by id. Returns figures:
    ``user_errors``, the share of episodes with any, and ``user_errors/RULE``."""
    counts: Counter[str] = Counter()
    for episode in episodes:
        task = tasks[episode.task_id]
        found = find_user_errors(task, episode.messages, user_tools=setting.user_tools(task))
        judged = [e for e in episode.tags.get(TAG, ()) if e["rule"] == "judge"]
        _write(episode, [*(e.to_json() for e in found), *judged])
        counts.update({e.rule for e in found})
        counts["any"] += bool(found)
    if not episodes:
        return {}
    shares = {rule: n / len(episodes) for rule, n in sorted(counts.items())}
    return {TAG: shares.pop("any", 0.0), **{f"{TAG}/{rule}": share for rule, share in shares.items()}}


async def _judge(
    spec: str, tasks: dict[str, Task], episodes: Sequence[Episode], budget: Budget, concurrency: int, progress: Progress
) -> int:
    """Ask the judge about every conversation that it has not seen; how many it could not be asked about."""
    judge = UserJudge(getattr(make_judge(spec), "model"))  # noqa: B009  a judge of that name is an endpoint's
    room = asyncio.Semaphore(concurrency)
    waiting = [e for e in episodes if not e.tags.get(JUDGED)]
    failures: list[str] = []
    if not waiting:
        return 0
    with progress.phase("judging the users", len(waiting), "episodes") as phase:

        async def look(episode: Episode) -> None:
            async with room, budget.turn() as affordable:
                if not affordable:
                    failures.append("the budget is spent")
                    return
                try:
                    found: Sequence[UserError] = await judge(tasks[episode.task_id], episode.messages)
                except InfrastructureError as problem:
                    failures.append(str(problem))
                    return
                finally:
                    phase.advance()
            _write(episode, [*episode.tags.get(TAG, ()), *(e.to_json() for e in found)])
            episode.tags[JUDGED] = True

        try:
            await asyncio.gather(*(look(e) for e in waiting))
        finally:
            endpoint = judge_endpoint(spec)
            if endpoint is not None:
                await endpoint.aclose()
    if failures:
        progress.say(f"The judge of users did not answer for {len(failures)} conversations. First: {failures[0]}")
    return len(failures)


def _write(episode: Episode, found: list[dict[str, Any]]) -> None:
    if found:
        episode.tags[TAG] = sorted(found, key=lambda e: e["turn"])
    else:
        episode.tags.pop(TAG, None)
