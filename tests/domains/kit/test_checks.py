"""What `muarl domains check` says of a service that is declared wrongly in one place."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from muarl.domains.checking import CheckReport
from muarl.domains.kit import checks
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.service import Service
from muarl.environments.service import environment
from muarl_tools.checks.environment.rules import CHECKS, run_check
from muarl_tools.checks.environment.samples import CheckContext
from support.kit import DAYS, LIBRARY, LOAN, ask_fee, extend, library, own_loan, planned


@cache
def context_of(service: Service) -> CheckContext:
    return CheckContext(environment(service, name="library"), count=60)


def looked_at(service: Service, name: str) -> CheckReport:
    """What one of the kit's checks finds."""
    context = context_of(service)
    check = next(check for check in context.environment.own_checks() if check.name == name)
    found: CheckReport = check.look(context)
    return found


def test_nothing_is_wrong_with_the_library() -> None:
    assert not looked_at(LIBRARY, "intents").problems
    assert looked_at(LIBRARY, "rules") == CheckReport("5 rules of 3 plans")
    assert not looked_at(LIBRARY, "slots").problems
    of_tasks = [check for check in CHECKS if check.name in ("gold", "reward", "expert")]
    assert [str(p) for c in of_tasks for p in run_check(c, context_of(LIBRARY)).problems] == []


def test_a_plan_whose_write_fails_is_named_with_its_intent() -> None:
    def lengthen(it: Plan) -> None:
        own_loan(it)
        it.write("extend_loan", loan_id=it.l.title, days=it.days, propose="extend {loan} by {days} days", done="Done.")

    (problem,) = looked_at(library(planned(lengthen, name="lengthen"), ask_fee), "intents").problems[:1]
    assert problem.where.startswith("intent lengthen (test_checks.py, line ")
    assert "its plan fails: extend_loan: " in problem.what


def test_a_plan_that_only_refuses_serves_nobody() -> None:
    def close(it: Plan) -> None:
        own_loan(it)
        it.refuse("loans such as {loan} cannot be closed here")

    problems = looked_at(library(planned(close, [LOAN], "close a loan"), extend), "intents").problems
    assert [p.what for p in problems] == ["its plan serves nobody: it comes to refuse"]


@pytest.fixture
def few_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "WORLDS", 5)
    monkeypatch.setattr(checks, "MOST_WORLDS", 100)


def test_a_rule_that_nothing_in_the_worlds_meets(few_worlds: None) -> None:
    def lengthen(it: Plan) -> None:
        own_loan(it)
        it.refuse_if(it.l.fee > 1000, "{l.title} has cost too much")
        it.write("extend_loan", loan_id=it.loan, days=it.days, propose="extend {loan} by {days} days", done="Done.")

    (problem,) = looked_at(library(planned(lengthen), ask_fee), "rules").problems
    assert problem.what == "no request of 600 meets its rule '{l.title} has cost too much' (refuse)"
    assert problem.remedy.endswith("or remove the rule if the policy has none such")


def test_a_rule_that_is_rarely_met_is_met(few_worlds: None) -> None:
    def lengthen(it: Plan) -> None:
        own_loan(it)
        it.refuse_if(25.5 < it.l.fee < 25.75, "{l.title} has cost too much")  # of fees from 1 to 40
        it.write("extend_loan", loan_id=it.loan, days=it.days, propose="extend {loan} by {days} days", done="Done.")

    assert not looked_at(library(planned(lengthen), ask_fee), "rules").problems


def test_words_of_an_intent_that_stand_in_a_value() -> None:
    def lose(it: Plan) -> None:
        own_loan(it)
        it.write("extend_loan", loan_id=it.loan, days=1, propose="note that {loan} is lost at night", done="Noted.")

    found = looked_at(library(planned(lose, [LOAN], "report {loan} lost", heard="maps|lost"), ask_fee), "words")
    (problem,) = found.problems
    assert problem.where.startswith("intent lose (test_checks.py, line ")
    assert problem.what.startswith("its words stand in 'Old Maps', which users say for the slot loan (task library-")
    assert not looked_at(LIBRARY, "words").problems


def test_a_slot_that_nobody_asks_for() -> None:
    def lengthen(it: Plan) -> None:
        own_loan(it)
        it.write("extend_loan", loan_id=it.loan, days=7, propose="extend {loan} by a week", done="Done.")

    (problem,) = looked_at(library(planned(lengthen), ask_fee), "slots").problems
    assert problem.what.startswith("its plan never asks for the slot days, which the user of task library-tiny-test-0-")


@pytest.mark.parametrize("say", ["{}th.", "{}x of them"])
def test_an_answer_that_is_not_understood(say: str) -> None:
    def lengthen(it: Plan) -> None:
        own_loan(it)
        it.write("extend_loan", loan_id=it.loan, days=it.days, propose="extend {loan} by {days} days", done="Done.")

    changes: dict[str, Any] = {"say": say}
    slot = replace(DAYS, **changes)
    (problem,) = looked_at(library(planned(lengthen, [LOAN, slot]), ask_fee), "slots").problems
    assert "is not understood as" in problem.what and problem.where.startswith("slot days, task library-tiny-test-0-")
