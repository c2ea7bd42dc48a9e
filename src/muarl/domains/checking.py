"""What a check of an environment is, for those who run checks and for authors and kits that add their own.

A check looks at the tasks of an environment and says what is wrong with it, where, and what to do about it
(``muarl domains check NAME``; muarl's own: ``muarl_tools.checks``). ``Environment.own_checks`` adds more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from muarl import moved
from muarl.domains.base import Domain
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.types.episode import Episode

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""error: it is wrong, and so is the score of such a task. warning: it may depend on luck, or on what nobody has
decided. note: to know when reading scores; many benchmarks mean it so."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A mechanical change of one task that removes a finding."""

    what: Literal["drop", "arguments", "basis", "say"]
    """"drop" (gold action ``index``), "arguments" (those of gold action ``index`` become ``value``), "basis" (the
    reward's components become ``value``), "say" (the sentence ``value`` is added to the scenario)."""

    value: Any = None
    index: int | None = None

    settled: bool = False
    """Whether it follows from policy and database; otherwise it takes the gold state for what was meant, which a person
    should confirm."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {"what": self.what, "value": self.value, "index": self.index, "settled": self.settled}


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """Something that a check has found, of an environment or of a task."""

    what: str
    """What is wrong, or what was seen of it, in one sentence without its full stop."""

    where: str = ""
    """The task, intent, tool or file; empty where it is the environment, or all tasks together."""

    remedy: str = ""
    """What to change, without the full stop."""

    rule: str = ""
    """The check or the rule that found it; whoever runs an environment's checks fills it in."""

    level: Level = "error"
    """How bad it is."""

    split: str = ""
    """Where the task is from, if ``where`` is a task's id."""

    fixes: tuple[Fix, ...] = ()
    """The change of the task, where it is mechanical."""

    def __str__(self) -> str:
        said = f"{self.where}: {self.what}" if self.where else self.what
        return f"{said}. {self.remedy}".rstrip() if self.remedy else said

    def to_json(self) -> dict[str, Any]:
        """A plain dict; of a finding about all tasks together without what only one of them has."""
        task = {"task": self.where, "split": self.split} if self.split else {}
        data = {"rule": self.rule, "level": self.level, **task, "evidence": self.what, "remedy": self.remedy}
        return {**data, "fixes": [fix.to_json() for fix in self.fixes]} if self.split else data


Problem = CheckFinding
"""What the checks of an environment call it: a finding that is an error."""


@dataclass(frozen=True, slots=True)
class RuleKeeper:
    """Something declared that keeps a rule of the policy."""

    what: str
    """Its name."""
    text: str
    """What is said there, or the slot that is chosen anew."""
    place: str
    """"FILE:LINE", empty where it has none."""
    tasks: int | None
    """How many of those drawn meet it, None where no task can."""
    audit: str | None
    """What an audit calls a breach, empty where only the reward tells, None where nothing looks."""


@dataclass(frozen=True, slots=True)
class KeptRule:
    """A numbered rule of the policy and what keeps it."""

    number: str
    text: str
    """The policy's own, empty where it has no such rule."""
    keepers: tuple[RuleKeeper, ...] = ()

    @property
    def practised(self) -> bool:
        """Whether some task meets it."""
        return any(keeper.tasks for keeper in self.keepers)

    @property
    def audited(self) -> bool:
        """Whether an audit would call a breach by a name."""
        return any(keeper.audit for keeper in self.keepers)

    @property
    def only_said(self) -> bool:
        """Whether nothing but a sentence of the author's keeps it."""
        return bool(self.keepers) and all(keeper.audit is None for keeper in self.keepers)


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The numbered rules of a policy, in its order, with what keeps each."""

    rules: tuple[KeptRule, ...]
    tasks: int
    """How many tasks were drawn."""

    @property
    def declared(self) -> bool:
        """Whether any declaration names a rule."""
        return any(rule.keepers for rule in self.rules)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check has found."""

    measured: str
    """What was looked at, with its figures, for the table."""
    problems: tuple[Problem, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    """A table of its own, its head first."""
    rules: RuleTable | None = None
    """The rows in full, where the check is of the policy's rules."""


class NotChecked(Exception):
    """Raised by a check that cannot look: its text says which part the environment lacks."""


class Samples(Protocol):
    """What a check may look at. Everything is made when it is first asked for, and shared by all checks.

    A method raises NotChecked where the environment has no such part.
    """

    seed: int

    @property
    def size(self) -> str | None:
        """The size that is looked at; None where the environment comes in one."""
        ...

    @property
    def domain(self) -> Domain:
        """The domain at that size."""
        ...

    def tasks(self, split: str | None = None, count: int | None = None) -> Sequence[Task]:
        """Tasks of a split. None: of the split that is measured on, and as many as the person asked for (of other
        splits a quarter)."""
        ...

    def expert_episodes(
        self,
        split: str | None = None,
        count: int | None = None,
        *,
        errors: ErrorProfile = ErrorProfile(),
        persona: str | None = None,
    ) -> Sequence[tuple[Task, Episode]]:
        """What the scripted expert does with these tasks, against the rule-based user, scored."""
        ...


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    """A word or two with dashes."""
    about: str
    """What holds if it passes, in one line."""
    look: Callable[[Any], CheckReport]
    """Finds the problems; raises NotChecked where it cannot look."""


def of_task(task: Task) -> str:
    """How a problem names a task: by id, with its intent."""
    intent = task.tags.get("intent")
    return f"task {task.id}" + (f" (intent {intent})" if intent else "")


def place_of(code: Any) -> str:
    """File and line of a class, function or method, as " (FILE, line N)"; empty where it has none."""
    try:
        lines, number = inspect.getsourcelines(code)
        file = inspect.getsourcefile(code)
    except (OSError, TypeError):
        return ""
    return f" ({Path(file).name}, line {number})" if file and lines else ""


def of_tool(domain: Domain, name: str) -> str:
    """How a problem names a tool: with file and line where it is a method of the domain's class."""
    method = getattr(type(domain), name, None)
    return f"tool {name}{'' if method is None else place_of(inspect.unwrap(method))}"


def for_each(problems: Iterable[Problem | None]) -> tuple[Problem, ...]:
    """The problems among what was found."""
    return tuple(problem for problem in problems if problem is not None)


moved.keep_old_names(__name__)
