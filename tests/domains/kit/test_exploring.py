"""What trial runs show of plans: rules, tools, where arguments come from, and what is wrong with them."""

from __future__ import annotations

import pytest

from muarl.basics.errors import ConfigError, OwnCodeError
from muarl.domains.kit.exploring import explored
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.kit.worlds import Worlds
from support.environments import ON_SERVERS
from support.kit import DAYS, LIBRARY, LOAN, SERVICES, library, own_loan, planned, service


def test_the_rules_and_tools_of_a_plan():
    found = explored(Worlds(LIBRARY))
    extend, report, fee = (found[name] for name in ("extend", "report", "ask_fee"))
    assert [(rule.kind, rule.text) for rule in extend.rules] == [
        ("refuse", "somebody else waits for {l.title}"),
        ("unavailable", "days"),
        ("refuse", "loan {loan} is not yours"),
    ]
    assert (extend.reads, extend.writes) == ({"list_loans"}, {"extend_loan"})
    assert extend.argument_sources("extend_loan") == {"loan_id": ("loan", ""), "days": ("days", "")}
    assert extend.notes.proposals == {"extend_loan": {"extend {l.title}, loan {loan}, by {days} days"}}
    assert (report.ends, report.tools, fee.tools) == ({"transfer"}, {"list_loans"}, {"list_loans"})
    assert [extend.may_end(end) for end in ("done", "refuse", "unavailable", "transfer")] == [True] * 3 + [False]
    assert report.may_end("transfer") and not report.may_end("done") and fee.may_end("done")
    assert not extend.problems


@pytest.mark.parametrize("name", [*SERVICES, *ON_SERVERS])
def test_every_plan_of_a_service_can_be_served_without_a_mistake(name):
    for intent, shown in explored(Worlds(service(name))).items():
        assert shown.ends - {"unavailable"}, intent
        assert not shown.problems, intent


def test_an_argument_that_is_worked_out_comes_from_no_slot():
    def twice(it: Plan) -> None:
        own_loan(it)
        it.write("extend_loan", loan_id=it.l.loan_id, days=2 * it.days, propose="extend it", done="Extended.")

    shown = explored(Worlds(library(planned(twice))))["twice"]
    assert shown.argument_sources("extend_loan")["loan_id"] == ("loan", ""), "the record's id is what the user said"


def test_a_bug_that_only_some_requests_meet_is_a_problem_and_ends_the_making_of_tasks():
    def spoilt(it: Plan) -> None:
        own_loan(it)
        it.refuse_if(it.l.waiting and it.l.waiting_since, "somebody waits")
        it.answer("{l.fee|money}", tell="{l.fee|plain}")

    maker = TaskMaker(library(planned(spoilt, slots=[LOAN])))
    (problem,) = maker.explored["spoilt"].problems
    assert "intent spoilt: its plan has a bug: AttributeError: the record has no field 'waiting_since'" in problem
    assert __file__ in problem
    with pytest.raises(OwnCodeError, match="waiting_since"):
        [maker.task("train", index, size="small") for index in range(60)]


def extends(it: Plan, tool="extend_loan", **changes):
    it.write(tool, **{"loan_id": it.loan, "days": it.days, **changes}, propose="extend it", done="Extended.")


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (lambda it: extends(it, "extend"), "intent odd: its plan calls extend, which is not a tool that writes"),
        (lambda it: extends(it, "get_loan"), "calls get_loan, which is not a tool that writes; those of the domain"),
        (lambda it: it.look("extend_loan", loan_id=it.loan), "which is not a tool that reads"),
        (lambda it: extends(it, weeks=1), "its plan's call fails: extend_loan has no argument 'weeks'; it takes"),
        (lambda it: extends(it, days="many"), "its plan's call fails: Error: extend_loan: argument 'days' must be"),
        (lambda it: it.refuse("{who} waits"), "intent odd: the text '{who} waits' speaks of 'who'"),
        (lambda it: it.look("get_loan", loan_id="LN-0"), "no trial request came to an end: get_loan: Error"),
        (lambda it: None, "intent odd: its plan comes to its end and has done nothing"),
        (lambda it: extends(it, loan_id="LN-0"), "intent odd: no trial request came to an end: extend_loan: Error"),
        (lambda it: it.pick(3, 4).name, "intent odd: no trial request came to an end: intent odd: its plan has a bug"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_followed_is_named(plan, words):
    maker = TaskMaker(library(planned(plan, slots=[LOAN, DAYS], name="odd")))
    with pytest.raises(ConfigError) as caught:
        maker.task("train", 0, size="small")
    assert words in str(caught.value)


def test_slots_without_any_value_are_named():
    empty = library(tables=lambda make: {**LIBRARY.tables(make), "loans": {}})
    with pytest.raises(ConfigError, match="intent extend: no trial request came to an end: its slots have no values"):
        TaskMaker(empty).task("train", 0, size="small")
