"""All checks in their order, and how they are run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muarl.basics.errors import MuarlError
from muarl.domains.checking import Check, Checked, NotChecked, Problem, RuleTable
from muarl.environments.environment import Environment
from muarl.environments.registry import place_in_code
from muarl_tools.check_environment import documents, parts, playing, red_team, replies, tasks, worlds
from muarl_tools.check_environment.context import CheckContext

CHECKS = tuple(
    Check(name, " ".join((look.__doc__ or "").split()), look)
    for name, look in {
        "policy": parts.policy,
        "tools": parts.tools,
        "prompt": parts.prompt,
        "sizes": parts.sizes,
        "documents": documents.documents,
        "audit-rules": parts.audit_rules,
        "vocabulary": parts.vocabulary,
        "tasks": tasks.tasks,
        "another-process": tasks.another_process,
        "splits": tasks.splits,
        "data": tasks.data,
        "scenarios": tasks.scenarios,
        "gold": worlds.gold,
        "reward": worlds.reward,
        "coverage": worlds.coverage,
        "bad-calls": worlds.bad_calls,
        "floors": playing.floors,
        "patience": playing.patience,
        "expert": playing.expert,
        "conduct": playing.conduct,
        "user-texts": playing.user_texts,
        "personas": playing.personas,
        "same-again": playing.same_again,
        "mistakes": playing.mistakes,
        "asking": playing.asking,
        "odd-replies": replies.odd_replies,
        "red-team": red_team.red_team,
    }.items()
)
"""muarl's own checks, in the order in which they are run: what a later one needs, an earlier one has looked at."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What a check came to. ``skipped``: why it could not look, empty if it did; the rest as in ``Checked``."""

    check: Check
    measured: str = ""
    problems: tuple[Problem, ...] = ()
    skipped: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    rules: RuleTable | None = None


def all_checks(environment: Environment) -> tuple[Check, ...]:
    """muarl's own checks, and those that the environment adds."""
    return (*CHECKS, *environment.own_checks())


def run_check(check: Check, context: CheckContext) -> CheckOutcome:
    """What one check finds. An error that its author can fix is a problem."""
    try:
        found: Checked = check.look(context)
    except NotChecked as reason:
        return CheckOutcome(check, skipped=str(reason))
    except MuarlError as problem:
        return CheckOutcome(check, problems=(Problem(str(problem).rstrip(".")),))
    except Exception as bug:
        place = place_in_code(bug)
        if place is None:
            raise
        return CheckOutcome(check, problems=(Problem(f"{type(bug).__name__}: {bug} ({place})", remedy="Fix the bug"),))
    return CheckOutcome(check, found.measured, found.problems, rows=found.rows, rules=found.rules)


def run_checks(context: CheckContext) -> Iterator[CheckOutcome]:
    """What each check finds, one after another. One that meets nothing but what was told before could not look."""
    told: set[Problem] = set()
    for check in all_checks(context.environment):
        result = run_check(check, context)
        known = bool(result.problems) and told.issuperset(result.problems)
        told.update(result.problems)
        yield CheckOutcome(check, skipped="stopped by a problem that is told above") if known else result
