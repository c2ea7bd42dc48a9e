"""The simulated users of an evaluation, looked at by rules and by a judge: which conversations did a user spoil?"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.accounts.budgets import Budget
from muarl.accounts.metrics import DOMAIN, by_domain
from muarl.basics.errors import InfrastructureError
from muarl.domains.tasks import Task
from muarl.environments.places import Places
from muarl.observe.progress import Progress
from muarl.rewards.judge import Completer
from muarl.types.episode import Episode
from muarl.user_errors.errors import UserError, find_user_errors
from muarl.user_errors.judge import UserJudge
from muarl.users.traits.levels import GAVE_UP, SLIPS

TAG = "user_errors"
"""Where an episode's findings stand among its tags: a list of {"rule", "turn", "detail"}, absent if there are none."""

JUDGED = "user_judged"


@dataclass(frozen=True)
class UserReview:
    """How the users did."""

    by_rule: dict[str, int] = field(default_factory=dict)
    """Rule to the number of scored episodes with such an error."""
    flagged: frozenset[str] = frozenset()
    """Ids of the scored episodes with any."""
    unjudged: int = 0
    """Scored episodes that the judge should have seen and did not."""


async def review_users(
    places: Places,
    tasks: Sequence[Task],
    episodes: Sequence[Episode],
    budget: Budget,
    progress: Progress,
    judge: Completer | None = None,
    *,
    concurrency: int = 16,
) -> UserReview:
    """Look at the users of the scored episodes, write the findings into the episodes' tags, and sum them up.

    ``judge``: a model that is asked as well; where it fails or the budget is spent, the rules' findings stand alone.
    """
    if not places.reviews_users:
        return UserReview()
    tasks_by_id = {task.id: task for task in tasks}
    seen = [e for e in episodes if e.verdict is not None and places.of(e).reviews_users]
    look_at_users(places, tasks_by_id, seen)
    unjudged = 0
    if judge is not None:
        unjudged = await _judge(judge, tasks_by_id, seen, budget, concurrency, progress)
    counts: Counter[str] = Counter()
    flagged = set()
    for episode in seen:
        rules = {e["rule"] for e in episode.tags.get(TAG, ())}
        counts.update(rules)
        if rules:
            flagged.add(episode.id)
    return UserReview(dict(sorted(counts.items())), frozenset(flagged), unjudged)


def look_at_users(places: Places, tasks: Mapping[str, Task], episodes: Sequence[Episode]) -> dict[str, float]:
    """What the rules find of the users of these episodes, written into their tags; ``tasks`` by id. Returns figures:
    ``user_errors``, the share of episodes with any, and ``user_errors/RULE``; of several domains also each domain's."""
    for episode in episodes:
        task = tasks[episode.task_id]
        errors = find_user_errors(task, episode.messages, user_tools=places.of(task).user_tools(task))
        unintended = [e for e in errors if not _meant(e, episode)]
        judged = [e for e in episode.tags.get(TAG, ()) if e["rule"] == "judge"]
        _write(episode, [*(e.to_json() for e in unintended), *judged])
    out = _shares(episodes)
    for name, own in by_domain(episodes).items():
        out |= {f"{DOMAIN}/{name}/{figure}": share for figure, share in _shares(own).items()}
    return out


def _meant(error: UserError, episode: Episode) -> bool:
    """Whether a finding is what a user with traits (users/traits) is there for: a wrong value that it put right, or
    leaving for lack of patience."""
    if error.rule == "stops_early":
        return bool(episode.tags.get(GAVE_UP))
    slips = episode.tags.get(SLIPS, ()) if error.rule in ("contradicts", "invents") else ()
    detail = "".join(c for c in error.detail.casefold() if c.isalnum())
    return any(detail.endswith("".join(c for c in str(slip).casefold() if c.isalnum())) for slip in slips)


def _shares(episodes: Sequence[Episode]) -> dict[str, float]:
    """The shares of episodes with what the rules have found."""
    counts: Counter[str] = Counter()
    for episode in episodes:
        rules = {e["rule"] for e in episode.tags.get(TAG, ())} - {"judge"}
        counts.update(rules)
        counts["any"] += bool(rules)
    if not episodes:
        return {}
    shares = {rule: n / len(episodes) for rule, n in sorted(counts.items())}
    return {TAG: shares.pop("any", 0.0), **{f"{TAG}/{rule}": share for rule, share in shares.items()}}


async def _judge(
    model: Completer,
    tasks: dict[str, Task],
    episodes: Sequence[Episode],
    budget: Budget,
    concurrency: int,
    progress: Progress,
) -> int:
    """Ask the judge about every conversation that it has not seen; how many it could not be asked about."""
    judge = UserJudge(model)
    room = asyncio.Semaphore(concurrency)
    waiting = [e for e in episodes if not e.tags.get(JUDGED)]
    failures: list[str] = []
    if not waiting:
        return 0
    with progress.phase("judging the users", len(waiting), "episodes") as phase:

        async def look(episode: Episode) -> None:
            async with room, budget.turn() as affordable:
                if not affordable:
                    failures.append("the budget is spent, or cannot be kept")
                    return
                try:
                    errors: Sequence[UserError] = await judge(tasks[episode.task_id], episode.messages)
                except InfrastructureError as problem:
                    failures.append(str(problem))
                    return
                finally:
                    phase.advance()
            _write(episode, [*episode.tags.get(TAG, ()), *(e.to_json() for e in errors)])
            episode.tags[JUDGED] = True

        await asyncio.gather(*(look(e) for e in waiting))
    if failures:
        progress.say(f"The judge of users did not answer for {len(failures)} conversations. First: {failures[0]}")
    return len(failures)


def _write(episode: Episode, errors: list[dict[str, Any]]) -> None:
    if errors:
        episode.tags[TAG] = sorted(errors, key=lambda e: e["turn"])
    else:
        episode.tags.pop(TAG, None)
