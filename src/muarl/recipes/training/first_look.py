"""Groups that are looked at before they are played to their end (``rl.practice.first_look``).

The first rollouts of each group are played. If all of them succeed, the group is likely to be all correct and to teach
nothing: its other rollouts are not played, and the group of another task is looked at in its place, as far as the limit
(``rl.practice.looks``) allows. Groups whose first rollouts all fail are played to their end, since hard tasks are
learned from the few successes among many rollouts.

What is played to its end depends on its first rollouts, and so do the figures of all episodes together. The figures of
the tasks as they are drawn come from the first rollouts of the tasks that were drawn first alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from muarl.accounts.metrics import DOMAIN, by_domain, is_success, scored
from muarl.config.rl import PracticeConfig, RlConfig
from muarl.domains.tasks import Task
from muarl.recipes.training.pipeline import StepData
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.types.episode import Episode, StopReason

if TYPE_CHECKING:
    from muarl.recipes.training.practice import Practice, TaskChoice

DrawnTasks = tuple[Sequence[Task], "TaskChoice | None"]
"""Tasks, and how they were chosen, None if they are as they were drawn."""


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What looking first came to."""

    filled: list[Episode]
    """All episodes of the groups that were played to their end."""
    unfilled: list[Episode]
    """All episodes of the other groups."""
    rounds: list[tuple[TaskChoice | None, list[Episode]]]
    """By round, the choice of its tasks (None: as drawn), and their first rollouts."""
    tasks: list[Task]
    """All that were looked at."""


async def look_first(
    rl: RlConfig,
    draw: Callable[[int], DrawnTasks],
    play: Callable[[Sequence[RolloutRequest]], Awaitable[list[Episode]]],
    number: int,
    *,
    seed: int,
    label: str,
) -> FirstLook:
    """Look at groups until ``rl.tasks_per_step`` are worth playing, or ``rl.practice.looks`` rounds were made.

    ``draw``: the tasks of a draw, by its number, of which each round uses one. ``number``: of the step's draw.
    ``play``: plays requests. ``seed`` and ``label`` enter the requests. If no group is worth playing, the first is.
    """
    looks, first = rl.practice.looks, rl.practice.first_look
    seen: dict[str, Task] = {}
    worth: list[RolloutRequest] = []
    chosen_groups: dict[str, None] = {}
    looked: list[Episode] = []
    rounds: list[tuple[TaskChoice | None, list[Episode]]] = []
    for turn in range(looks):
        missing = rl.tasks_per_step - len(chosen_groups)
        drawn, choice = draw(number * looks + turn)
        tasks = [task for task in drawn if task.id not in seen][:missing]
        if not tasks:
            break
        seen |= {task.id: task for task in tasks}
        requests = requests_for(tasks, rl.group_size, seed=seed, label=f"{label}.{turn}")
        episodes = await play([r for r in requests if r.number < first])
        rounds.append((None if choice is None else replace(choice, tasks=tasks), episodes))
        looked += episodes
        dull = _all_right(episodes)
        new = list(dict.fromkeys(r.group for r in requests if r.group not in dull))
        if turn == 0:
            fallback = [r for r in requests if r.group == requests[0].group]
        chosen_groups |= dict.fromkeys(new)
        worth += [r for r in requests if r.group in new and r.number >= first]
        if len(chosen_groups) >= rl.tasks_per_step:
            break
    if not chosen_groups:
        chosen_groups = {fallback[0].group: None}
        worth = [r for r in fallback if r.number >= first]
    rest = await play(worth)
    by_group: dict[str, list[Episode]] = defaultdict(list)
    for episode in [*looked, *rest]:
        by_group[str(episode.group)].append(episode)
    filled = [e for group, own in by_group.items() if group in chosen_groups for e in own]
    return FirstLook(filled, [e for e in looked if e.group not in chosen_groups], rounds, [*seen.values()])


async def play_all(
    rl: RlConfig,
    draw: Callable[[int], DrawnTasks],
    play: Callable[[Sequence[RolloutRequest]], Awaitable[list[Episode]]],
    number: int,
    *,
    seed: int,
    label: str,
) -> FirstLook:
    """The same without looking first: all groups of a draw are played to their end."""
    tasks, choice = draw(number)
    episodes = await play(requests_for(tasks, rl.group_size, seed=seed, label=label))
    return FirstLook(episodes, [], [(choice, episodes)], list(tasks))


@dataclass(frozen=True, slots=True)
class StepRollouts:
    """What a step has played."""

    all: StepData
    """Its groups and episodes."""
    looked: list[FirstLook]
    """How it came to them, by draw."""
    config: PracticeConfig

    def figures(self, practice: Practice | None) -> dict[str, float]:
        """What ``practice``, which learns from it, and looking first have to say of the step; nothing where tasks are
        played as they are drawn.

        ``practice/groups_looked`` and ``practice/groups_filled``: groups looked at, and played to their end.
        """
        if not self.config.active:
            return {}
        from muarl.recipes.training.practice import PRACTICE, played_figures  # most runs play tasks as drawn

        rounds = [one_round for looked in self.looked for one_round in looked.rounds]
        out = played_figures(self.all.episodes)
        if self.config.first_look:
            filled = {e.group for looked in self.looked for e in looked.filled}
            out |= {
                f"{PRACTICE}/groups_looked": float(sum(len(looked.tasks) for looked in self.looked)),
                f"{PRACTICE}/groups_filled": float(len(filled)),
                **first_figures(rounds[0][1]),
            }
        if practice is not None:
            out |= practice.note([(choice, episodes) for choice, episodes in rounds if choice is not None])
        return out


def _all_right(episodes: Iterable[Episode]) -> set[str]:
    """The groups whose episodes all succeeded. One that infrastructure ended did not."""
    right: dict[str, bool] = {}
    for e in episodes:
        good = e.stop is not StopReason.INFRASTRUCTURE and is_success(e.reward)
        right[str(e.group)] = right.get(str(e.group), True) and good
    return {group for group, all_right in right.items() if all_right}


def first_figures(episodes: Sequence[Episode]) -> dict[str, float]:
    """``reward`` and ``success`` of first rollouts, each task counting the same; of several domains by domain, too."""
    out: dict[str, float] = {}
    for prefix, own in [("", episodes), *((f"{DOMAIN}/{name}/", own) for name, own in by_domain(episodes).items())]:
        groups: dict[str, list[float]] = defaultdict(list)
        for episode in scored(own):
            groups[str(episode.group)].append(episode.reward)
        if groups:
            out[f"{prefix}reward"] = fmean(fmean(rewards) for rewards in groups.values())
            out[f"{prefix}success"] = fmean(fmean(map(is_success, rewards)) for rewards in groups.values())
    return out
