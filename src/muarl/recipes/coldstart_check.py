"""``muarl coldstart --check``: every kept conversation run again in a fresh world, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.event_loop import event_loop
from muarl.coldstart import dataset
from muarl.coldstart.dataset import SCENARIO
from muarl.domains.base import Domain
from muarl.domains.imagined.domain import ImaginedCall, ReplayedTeacher, goal_met
from muarl.domains.tasks import Task
from muarl.environments.place import PLAYED
from muarl.environments.registry import find
from muarl.recipes.coldstart import DRAWN
from muarl.rewards import outcome
from muarl.types.episode import Episode


def check_dataset(folder: Path) -> Iterator[str]:
    """A line for each conversation that does not come out as recorded, and one that sums up.

    What a model answered as the tools is said again in its place. Conversations of a scenario of one's own are only
    counted: its folder is not known here. DataError if the folder holds no dataset, or an episode does not say what it
    was drawn from.
    """
    counts: Counter[str] = Counter()
    for episode in dataset.read(folder):
        if episode.verdict is not None and "unscored" in episode.verdict.breakdown:
            counts["own"] += 1
            continue
        with event_loop() as loop:
            difference = loop.run(differs(episode))
        counts["same" if difference is None else "different"] += 1
        if difference is not None:
            yield f"{episode.id}: {difference}"
    parts = [f"{counts['same']} conversations came out as recorded", f"{counts['different']} did not"]
    if counts["own"]:
        parts.append(f"{counts['own']} have tools that a model played, and no world to be run in")
    yield ", ".join(parts)


async def differs(episode: Episode) -> str | None:
    """What comes out otherwise than recorded when an episode's calls are run again: a result, or the reward."""
    task, domain = _task(episode)
    world = domain.world(task)
    try:
        await world.aopen()
        messages = list(episode.messages)
        for index, message in enumerate(messages):
            if message.role == "user" and not message.tool_calls:
                world.hear(message)
            if not message.tool_calls:
                continue
            side: Any = "user" if message.role == "user" else "assistant"
            number = index
            async for result in world.answers(side, message.tool_calls):
                number += 1
                if result.content != messages[number].content:
                    name = message.tool_calls[number - index - 1].name
                    return (
                        f"{name} now answers {result.content[:120]!r}, not {(messages[number].content or '')[:120]!r}"
                    )
        if PLAYED in episode.tags:
            reward = float(bool(goal_met(task, world)))
        else:
            reward = (await outcome.score(task, world, messages, episode.stop)).reward
    finally:
        await world.aclose()
    if episode.verdict is None:
        raise DataError(f"episode {episode.id} has no verdict")
    return None if reward == episode.reward else f"the reward is now {reward}, not {episode.reward}"


def _task(episode: Episode) -> tuple[Task, Domain]:
    drawn = episode.tags.get(DRAWN)
    if not isinstance(drawn, dict):
        raise DataError(
            f"episode {episode.id} ({episode.tags.get(SCENARIO)}) does not say which task it was drawn from"
        )
    try:
        made = find(drawn["domain"])
        (task,) = made.make_tasks(drawn["split"], 1, size=drawn["size"], seed=drawn["seed"], start=drawn["index"])
        if PLAYED in episode.tags and made.imagined is not None:
            calls = [ImaginedCall.from_json(call) for call in episode.tags[PLAYED]]
            return task, made.imagined(drawn["size"], ReplayedTeacher(calls))
        return task, _domain(drawn["domain"], drawn["size"])
    except (KeyError, TypeError, ValueError, ConfigError) as problem:
        raise DataError(f"episode {episode.id}: its task cannot be drawn again: {problem}") from None


@lru_cache(maxsize=16)
def _domain(name: str, size: str) -> Domain:
    return find(name).make_domain(size)
