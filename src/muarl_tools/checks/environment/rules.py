"""All checks in their order, and how they are run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muarl.basics.errors import MuarlError
from muarl.domains.checking import Check, CheckReport, NotChecked, Problem, RuleTable
from muarl.environments.environment import Environment
from muarl.environments.registry import place_in_code
from muarl_tools.checks.environment import (
    conversations,
    declarations,
    documents,
    gold_and_tools,
    made_tasks,
    odd_replies,
    red_team,
)
from muarl_tools.checks.environment.samples import CheckContext

CHECKS = tuple(
    Check(name, " ".join((look.__doc__ or "").split()), look)
    for name, look in {
        "policy": declarations.policy,
        "tools": declarations.tools,
        "prompt": declarations.prompt,
        "sizes": declarations.sizes,
        "documents": documents.documents,
        "audit-rules": declarations.audit_rules,
        "vocabulary": declarations.vocabulary,
        "tasks": made_tasks.tasks,
        "another-process": made_tasks.another_process,
        "splits": made_tasks.splits,
        "data": made_tasks.data,
        "scenarios": made_tasks.scenarios,
        "gold": gold_and_tools.gold,
        "reward": gold_and_tools.reward,
        "coverage": gold_and_tools.coverage,
        "bad-calls": gold_and_tools.bad_calls,
        "floors": conversations.floors,
        "patience": conversations.patience,
        "expert": conversations.expert,
        "conduct": conversations.conduct,
        "user-texts": conversations.user_texts,
        "personas": conversations.personas,
        "same-again": conversations.same_again,
        "mistakes": conversations.mistakes,
        "asking": conversations.asking,
        "odd-replies": odd_replies.odd_replies,
        "red-team": red_team.red_team,
    }.items()
)
"""muarl's own checks, in the order in which they are run: what a later one needs, an earlier one has looked at."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What a check came to. ``skipped``: why it could not look, empty if it did; the rest as in ``CheckReport``."""

    check: Check
    measured: str = ""
    problems: tuple[Problem, ...] = ()
    skipped: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    rules: RuleTable | None = None

    @property
    def state(self) -> str:
        """How it went, in a word or two."""
        count = len(self.problems)
        return "not checked" if self.skipped else f"{count} problem{'s' * (count > 1)}" if count else "ok"

    def to_json(self) -> dict[str, Any]:
        """A plain dict: "check", "state", "measured", "skipped", "problems", each with "where", and "rows"."""
        return {
            "check": self.check.name,
            "state": self.state,
            "measured": self.measured,
            "skipped": self.skipped,
            "problems": [{"where": problem.where, **problem.to_json()} for problem in self.problems],
            "rows": [list(row) for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class EnvironmentReport:
    """What all checks of an environment came to."""

    name: str
    """Of the environment."""
    size: str
    """Empty where it comes in one."""
    split: str
    tasks: int
    """How many were to be drawn of the split."""
    seed: int
    outcomes: Sequence[CheckOutcome]

    def to_json(self) -> dict[str, Any]:
        """A plain dict; "checks" has the outcomes."""
        sample = {"environment": self.name, "size": self.size, "split": self.split, "tasks": self.tasks}
        return {**sample, "seed": self.seed, "checks": [outcome.to_json() for outcome in self.outcomes]}


def all_checks(environment: Environment) -> tuple[Check, ...]:
    """muarl's own checks, and those that the environment adds."""
    return (*CHECKS, *environment.own_checks())


def run_check(check: Check, context: CheckContext) -> CheckOutcome:
    """What one check finds. An error that its author can fix is a problem."""
    try:
        found: CheckReport = check.look(context)
    except NotChecked as reason:
        return CheckOutcome(check, skipped=str(reason))
    except MuarlError as problem:
        found = CheckReport("", (Problem(str(problem).rstrip(".")),))
    except Exception as bug:
        place = place_in_code(bug)
        if place is None:
            raise
        found = CheckReport("", (Problem(f"{type(bug).__name__}: {bug} ({place})", remedy="Fix the bug"),))
    problems = tuple(replace(problem, rule=check.name) for problem in found.problems)
    return CheckOutcome(check, found.measured, problems, rows=found.rows, rules=found.rules)


def run_checks(context: CheckContext) -> Iterator[CheckOutcome]:
    """What each check finds, one after another. One that meets nothing but what was told before could not look."""
    told: set[Problem] = set()
    for check in all_checks(context.environment):
        result = run_check(check, context)
        problems = {replace(problem, rule="") for problem in result.problems}
        known = bool(problems) and told.issuperset(problems)
        told |= problems
        yield CheckOutcome(check, skipped="stopped by a problem that is told above") if known else result
