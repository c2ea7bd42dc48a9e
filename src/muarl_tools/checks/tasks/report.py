"""All checks of a source of tasks, and what they found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.checking import LEVELS, CheckFinding, Level
from muarl.rewards.replay import ReplayError
from muarl_tools.checks.expert_plays import AskingCost, ExpertPlay
from muarl_tools.checks.tasks.checked_task import CheckedTask
from muarl_tools.checks.tasks.duplicates import duplicates
from muarl_tools.checks.tasks.experts import (
    Key,
    asking_unpaid,
    cost_of_not_asking,
    expert_fails,
    idle_earns,
    play_experts,
)
from muarl_tools.checks.tasks.gold_actions import gold_actions
from muarl_tools.checks.tasks.open_choices import open_choices
from muarl_tools.checks.tasks.rewards import AGENTS, earned, reward_parts
from muarl_tools.checks.tasks.rules import RULES
from muarl_tools.checks.tasks.scenarios import scenarios
from muarl_tools.checks.tasks.sources import TaskSource
from muarl_tools.checks.tasks.wrong_writes import wrong_writes


@dataclass(frozen=True)
class TaskReport:
    """What checks found. ``label``: of the source. ``tasks``: how many of each split. ``findings``: worst first, in the
    order of the tasks. ``earned``: by trivial agent, the reward of each task (by split and id), None where only a judge
    could say. ``played``: by scripted expert, what came of each task; empty where there is none. ``overall``: findings
    about all tasks together. ``asking``: what never asking costs; None where that cannot be measured."""

    label: str
    tasks: Mapping[str, int]
    findings: Sequence[CheckFinding]
    earned: Mapping[str, Mapping[tuple[str, str], float | None]]
    rules_declared: bool
    played: Mapping[str, Mapping[Key, ExpertPlay]] = field(default_factory=dict)
    overall: Sequence[CheckFinding] = ()
    asking: AskingCost | None = None

    @property
    def count(self) -> int:
        """How many tasks were looked at."""
        return sum(self.tasks.values())

    def of(self, *levels: Level) -> list[CheckFinding]:
        """The findings of these levels."""
        return [f for f in self.findings if f.level in levels]

    def flagged(self, *levels: Level) -> set[tuple[str, str]]:
        """The tasks (by split and id) with a finding of one of these levels."""
        return {(f.split, f.where) for f in self.of(*levels)}

    def rules(self) -> list[tuple[str, Level, int, int]]:
        """(rule, level, findings, tasks) of what was found, worst first."""
        seen = Counter((f.rule, f.level) for f in self.findings)
        tasks = Counter(key[:2] for key in {(f.rule, f.level, f.split, f.where) for f in self.findings})
        found = [(rule, level, seen[rule, level], tasks[rule, level]) for level in LEVELS for rule in RULES]
        return [row for row in found if row[2]]

    def baselines(self) -> list[tuple[str, int, int, int]]:
        """(agent, tasks with reward 1, tasks that only a judge can decide, tasks) of each trivial agent."""
        return [
            (name, sum(r == 1 for r in rewards.values()), sum(r is None for r in rewards.values()), len(rewards))
            for name, rewards in self.earned.items()
            if rewards
        ]

    def experts(self) -> list[tuple[str, int, int]]:
        """(expert, tasks with reward 1, tasks) of each scripted expert that was played."""
        return [(name, sum(one.reward == 1 for one in came.values()), len(came)) for name, came in self.played.items()]

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {
            "source": self.label,
            "tasks": dict(self.tasks),
            "domain_rules": self.rules_declared,
            "baselines": [
                {"agent": name, "solved": won, "judged": judged, "tasks": total}
                for name, won, judged, total in self.baselines()
            ],
            "experts": [{"agent": name, "solved": won, "tasks": total} for name, won, total in self.experts()],
            "never_asking": None
            if self.asking is None
            else {"due": self.asking.due, "lost": self.asking.lost, "unpaid": dict(self.asking.unpaid)},
            "overall": [finding.to_json() for finding in self.overall],
            "rules": [
                {"rule": rule, "level": level, "findings": n, "tasks": tasks, "about": RULES[rule]}
                for rule, level, n, tasks in self.rules()
            ],
            "findings": [f.to_json() for f in self.findings],
        }


def check_source(source: TaskSource, *, progress: Callable[[int], None] = lambda done: None) -> TaskReport:
    """Check all tasks of a source. ``progress``: told after each task how many are done.

    DataError, naming the task, for one whose world cannot be made.
    """
    found: list[CheckFinding] = []
    rewards: dict[str, dict[tuple[str, str], float | None]] = {name: {} for name in AGENTS}
    for number, (split, task) in enumerate(source.tasks, 1):
        checked = CheckedTask(source, split, task)
        try:
            own = earned(checked)
            found += _check_task(checked, own)
        except ReplayError as problem:
            raise DataError(f"task {task.id}: its history cannot be replayed: {problem}") from None
        for name, reward in own.items():
            rewards[name][split, task.id] = reward
        progress(number)
    found += duplicates(source)
    played = play_experts(source)
    found += expert_fails(source, played)
    cost = cost_of_not_asking(source, played)
    place = {(split, task.id): n for n, (split, task) in enumerate(source.tasks)}
    found.sort(key=lambda f: (LEVELS.index(f.level), place[f.split, f.where]))
    sizes = {split: len(tasks) for split, tasks in source.splits.items()}
    report = TaskReport(source.label, sizes, found, rewards, source.rules.declared, played, asking=cost)
    return replace(report, overall=[*idle_earns(report.baselines()), *asking_unpaid(cost)])


def _check_task(checked: CheckedTask, rewards: Mapping[str, float | None]) -> Iterator[CheckFinding]:
    """What is wrong with one task, looked at alone. ``rewards``: what trivial agents earn."""
    yield from gold_actions(checked)
    yield from reward_parts(checked, rewards)
    yield from wrong_writes(checked)
    yield from scenarios(checked)
    yield from open_choices(checked)
