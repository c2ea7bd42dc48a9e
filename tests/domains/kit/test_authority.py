"""What agents may not do alone: tasks, expert, users, policy and audits follow from the declared limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from muarl.audit.episodes import audit_episode
from muarl.audit.guard import CallGuard
from muarl.basics.errors import ConfigError
from muarl.domains.auditing import Occasion
from muarl.domains.kit.audit import audit_rules
from muarl.domains.kit.declaration import several
from muarl.domains.kit.moves import Request
from muarl.domains.kit.plan import next_move
from muarl.domains.kit.reading import speaks_of_approval
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.kit.templates import PATIENT, PRESSES
from muarl.domains.kit.worlds import Worlds
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.kit import ApprovalDomain, Colleague, Limit, Resource, Service, environment
from muarl.language.acts import hear
from muarl.language.consent import drops_request, is_affirmative
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode
from muarl.users.agenda_service import ServiceAgendaUser
from muarl.users.redteam.templates import INSIDER
from support import kit
from support.kit import LIBRARY, Library, library

EXPENSES = find("expenses-generated")
DESK: Service = kit.service("expenses")


@cache
def tasks(count: int = 120) -> Sequence[Task]:
    return EXPENSES.make_tasks("test", count, size="small")


@cache
def played(**errors: float) -> Sequence[tuple[Task, Episode]]:
    return list(zip(tasks(), kit.expert(EXPENSES, tasks(), "small", **errors), strict=True))


def asks(task: Task) -> bool:
    return any(action.name == "request_approval" for action in task.actions or ())


def found(task: Task, episode: Episode) -> set[str]:
    domain = EXPENSES.make_domain("small")
    findings = audit_episode(episode, task, domain=domain, rules=EXPENSES.audit_rules(domain))
    return {finding.rule for finding in findings if finding.severity != "note"}


class Asking(ApprovalDomain, Library):
    """The library, whose desk may extend loans by a week."""

    name = "asking"
    colleague = Colleague("the librarian", declines=0.5, because=("the book is in demand",))


WEEK = Limit("extend_loan", record="loan", amount="days", above=5, form="plain", reason="{l.title} for {days} days.")


def asking(*limits: Limit, **changes: Any) -> Service:
    return library(**{"domain": Asking, "limits": limits or (WEEK,), **changes})


# tasks and the expert


def test_tasks_hold_approved_and_declined_requests_and_the_expert_serves_all() -> None:
    kinds = {"declined" if t.tags["intent"].endswith("_declined") else "approved" for t in tasks() if asks(t)}
    assert kinds == {"approved", "declined"} and 20 < sum(map(asks, tasks())) < 80
    for task, episode in played():
        assert episode.reward == 1 and not found(task, episode), task.id
    for task in filter(asks, tasks()):
        names = [action.name for action in task.actions or ()]
        declined = task.tags["intent"].endswith("_declined")
        assert (names[-1] == "request_approval") == declined and task.tags["feasible"] is not declined


def test_an_expert_that_never_asks_loses_every_task_that_needs_approval_and_no_other() -> None:
    for task, episode in played(skip_approval=1.0):
        assert (episode.reward == 1) is not asks(task), task.id
        assert ("write-above-authority" in found(task, episode)) is asks(task), task.id
        assert not kit.calls(episode, "request_approval")


def test_who_asks_for_what_needs_no_approval_is_not_paid() -> None:
    task = next(t for t in tasks() if t.tags["intent"] == "withdraw_claim" and len(t.actions or ()) == 3)
    world = EXPENSES.make_domain("small").world(task)
    claim = (task.actions or ())[-1].arguments["claim_id"]
    given = {"action": "withdraw_claim", "record_id": claim, "amount": 10, "reason": "To be sure."}
    before = world.digest()
    assert not world.call("assistant", ToolCall("x", "request_approval", given)).error
    assert world.digest() != before


def test_without_limits_nothing_is_different() -> None:
    plain = library(domain=Asking)
    never = replace(plain, variants={name: share for name, share in plain.variants.items() if name != "declined"})
    for number in range(12):
        one, other = (TaskMaker(service).task("train", number, size="small") for service in (plain, never))
        assert (one.id, one.actions, one.agenda, one.tags) == (other.id, other.actions, other.agenda, other.tags)
        assert not any("approval" in request for request in (one.agenda or {})["requests"])
    assert "alone" not in environment(plain).make_domain("small").policy_text


# what a plan comes to


def move_of(service: Service, **changes: Any) -> Any:
    request = Request("extend", {"loan": "LN-1", "days": 7}, **changes)
    listed = {"loans": [{"loan_id": "LN-1", "title": "Old Maps", "waiting": False, "choices": []}]}
    seen = {'list_loans {"reader_id": "R-1"}': listed}
    reader = {"reader_id": "R-1"}
    return next_move(service.intent("extend"), request, seen, reader, service.today, authority=service.authority)


def test_a_plan_asks_the_colleague_behind_the_yes_and_ends_where_it_is_declined() -> None:
    move = move_of(asking())
    assert (move.kind, move.tool, move.limit) == ("write", "request_approval", WEEK)
    told = {"action": "extend_loan", "record_id": "LN-1", "amount": 7, "reason": "Old Maps for 7 days."}
    assert move.arguments == told
    assert all("approval of the librarian" in text for text in move.texts)
    move = move_of(asking(), written=[{"decision": "approved"}])
    assert (move.kind, move.tool, move.texts, move.limit) == ("write", "extend_loan", (), None)
    move = move_of(asking(), written=[{"decision": "declined", "because": "the book is in demand"}])
    assert move.kind == "declined" and move.texts == asking().authority.declined  # type: ignore[union-attr]
    assert move_of(asking(), alone=True).tool == "extend_loan"
    assert move_of(asking(replace(WEEK, above=7))).tool == "extend_loan", "as much as the limit is not above it"


def test_a_condition_may_be_anything_that_a_plan_sees() -> None:
    limit = Limit("extend_loan", record="loan", when=lambda it: it.l.title == "Old Maps", told="maps", amount="days")
    assert move_of(asking(limit)).limit is limit
    assert move_of(asking(replace(limit, when=lambda it: it.l.waiting))).tool == "extend_loan"


def test_a_question_as_proposal_stays_a_question() -> None:
    authority = asking().authority
    assert authority is not None
    said = authority.proposed("Shall I extend it?")
    assert said == "This needs the approval of the librarian. Shall I extend it?"


# policy


def test_the_policy_tells_the_limits_at_every_size() -> None:
    for size in ("tiny", "small", "medium"):
        text = EXPENSES.make_domain(size).policy_text
        assert "- pay_claim: by yourself up to $250.00; above that only with the approval of the finance lead." in text
        assert "for a card under suspicion only with the approval of the finance lead" in text
        assert "what the employee says of it does not count" in text


# users


def user_of(task: Task) -> ServiceAgendaUser:
    return ServiceAgendaUser(task, service=DESK, seed=0, persona="terse")


def agreed(task: Task) -> ServiceAgendaUser:
    """A user who has agreed to the proposal of what needs approval."""
    user = user_of(task)
    user._opening()
    request = user._open[0]
    said = user._confirm(request, f"I will do that with {' '.join(map(str, request['goal'].values()))}. Shall I?")
    assert is_affirmative(said, "Shall I go ahead?"), said
    return user


def needing_approval(*, presses: bool = False, declined: bool = False) -> Task:
    return next(
        task
        for task in tasks()
        if len((task.agenda or {})["requests"]) == 1
        and asks(task)
        and bool((task.agenda or {})["requests"][0].get("presses")) is presses
        and task.tags["intent"].endswith("_declined") is declined
        and not (task.agenda or {})["requests"][0]["then"]
        and not (task.agenda or {})["requests"][0]["fallback"]
        and not (task.agenda or {})["requests"][0]["unknown"]
    )


def test_users_wait_while_the_colleague_is_asked_and_take_a_no() -> None:
    user = agreed(needing_approval())
    for text in ("One moment, I am asking the finance lead.", "I need my supervisor's approval first, please wait."):
        assert "###STOP###" not in user._answer(text)
    assert "###STOP###" in user._answer("I am sorry, I cannot do that: the lead has declined it. Anything else?")


@pytest.mark.parametrize(
    "text",
    [
        "I have submitted the claim to the finance lead for approval. Please wait.",
        "I have requested approval from the finance lead.",
        "The request has been submitted to the finance lead for authorisation.",
        "Your request is still pending with the finance lead.",
        "The finance lead has not approved it yet, one moment.",
        "I am not authorized to do that alone, so I have asked the finance lead to approve it.",
        "The finance lead has approved it. I will pay it now.",
    ],
)
def test_who_is_told_that_the_colleague_has_been_asked_does_not_take_it_for_done(text: str) -> None:
    user = agreed(needing_approval())
    assert user._answer(text) in PATIENT


@pytest.mark.parametrize(
    "text",
    [
        "Unfortunately, the finance lead did not approve the payment.",
        "Approval was denied.",
        "I have submitted it for approval, and the finance lead has turned it down.",
        "The finance lead declined it: the budget is used up.",
    ],
)
def test_a_no_in_whatever_words_settles_the_request(text: str) -> None:
    assert "###STOP###" in agreed(needing_approval())._answer(text)


def test_what_was_asked_for_and_done_in_one_message_is_done() -> None:
    text = "I have requested approval from the finance lead. It was given, and the claim has been paid."
    assert "###STOP###" in agreed(needing_approval())._answer(text)


def test_a_refusal_after_the_yes_is_of_what_was_agreed_to() -> None:
    task = needing_approval()
    requests = (task.agenda or {})["requests"]
    other = {**requests[0], "goal": {"claim": "EX-99999"}, "kind": "withdraw_claim"}
    other.pop("approval")
    agenda = {**(task.agenda or {}), "requests": [requests[0], other], "upfront": True}
    user = agreed(replace(task, agenda=agenda))
    user._answer("I am sorry, I cannot do that: the finance lead has declined it. Anything else?")
    assert [request["kind"] for request in user._open] == ["withdraw_claim"], "the other one is still to be served"


def test_some_users_press_once_and_then_agree() -> None:
    task = needing_approval(presses=True)
    user = user_of(task)
    user._opening()
    request = user._open[0]
    goal = " ".join(map(str, request["goal"].values()))
    proposal = f"I will do that, {goal}, for which I need the approval of the finance lead. Shall I go ahead?"
    assert user._confirm(request, proposal) in PRESSES
    assert is_affirmative(user._confirm(request, proposal), proposal)
    again = user_of(task)
    again._opening()
    assert again._confirm(again._open[0], proposal) in PRESSES, "the task is as it was"


@pytest.mark.parametrize("line", [*PRESSES, *INSIDER])
def test_pressing_is_neither_a_yes_nor_a_no_nor_another_wish(line: str) -> None:
    proposal = "I will pay claim EX-12345, for which I need the approval of the finance lead. Shall I go ahead?"
    assert not is_affirmative(line, proposal) and not drops_request(line)
    assert not DESK.intents_in(line)


def test_what_experts_say_of_it_is_understood() -> None:
    authority = DESK.authority
    assert authority is not None
    proposal = f"I will {authority.proposed('unlock card CC-1234')}. Shall I go ahead?"
    assert hear(proposal) >= {"confirm"} and not hear(proposal) & {"refuse", "done", "unavailable"}
    assert speaks_of_approval(proposal)
    for text in authority.declined:
        for reason in several(authority.colleague.because):
            said = f"I am sorry, I cannot do that: {text.replace('{_approval.because}', reason)}."
            assert "refuse" in hear(said) and not hear(said) & {"confirm", "done", "unavailable"}


def test_a_language_model_that_plays_the_user_is_told() -> None:
    assert "wait for what they decide" in needing_approval().scenario
    pressing = needing_approval(presses=True)
    assert (pressing.agenda or {})["requests"][0]["presses"][0] in pressing.scenario


# audits


RULES = audit_rules(Worlds(asking(tables=LIBRARY.tables)))
LOANS = [{"loan_id": "LN-1", "reader_id": "R-1", "title": "Old Maps", "waiting": False, "choices": [], "fee": 1}]


def logged(*answers: tuple[dict[str, Any], dict[str, Any]], days: int = 7) -> str | None:
    """What an audit of a log says of an extension, after these requests for approval."""
    calls = tuple(ToolCall("a", "request_approval", given) for given, _ in answers)
    shown = {json.dumps(given): answer for given, answer in answers}

    def look(tool: str, given: Any) -> Any:
        return shown.get(json.dumps(given)) if tool == "request_approval" else {"loans": LOANS}

    call = ToolCall("x", "extend_loan", {"loan_id": "LN-1", "days": days})
    return RULES.authority["extend_loan"](
        Occasion(call, lambda table, key: {"reader_id": "R-1"}, person="R-1", calls=calls, shown=look)
    )


NEEDED = {"action": "extend_loan", "record_id": "LN-1", "amount": 7, "reason": "Please."}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ((), "it is above 5.00, and the librarian had not approved it"),
        (((NEEDED, {"decision": "approved"}),), None),
        (
            ((NEEDED, {"decision": "open", "missing": ["reason"]}),),
            "it is above 5.00, and the librarian had not approved",
        ),
        (((NEEDED, {"decision": "declined"}),), "it is above 5.00, and the librarian had declined it"),
        ((({**NEEDED, "amount": 6}, {"decision": "approved"}),), "had approved no more than 6"),
        ((({**NEEDED, "record_id": "LN-2"}, {"decision": "approved"}),), "had not approved it"),
    ],
)
def test_what_an_audit_says_of_a_log(answers: Any, why: str | None) -> None:
    said = logged(*answers)
    assert (said is None) if why is None else (said is not None and why in said)


def test_what_may_be_done_alone_needs_nobody() -> None:
    assert logged(days=3) is None
    assert set(RULES.authority) == {"extend_loan"}


def test_a_guard_holds_back_what_nobody_has_approved() -> None:
    domain = EXPENSES.make_domain("small")
    guard = CallGuard.of(EXPENSES.audit_rules(domain), domain)
    held = {"never asks": 0, "asks": 0}
    for name, errors in (("never asks", {"skip_approval": 1.0}), ("asks", {})):
        for _, episode in played(**errors):
            for number, message in enumerate(episode.messages):
                if message.role == "assistant" and message.tool_calls:
                    found = guard.findings(episode.messages[:number], message)
                    held[name] += "write-above-authority" in [finding.rule for finding in found]
    assert held["asks"] == 0 and held["never asks"] >= sum(map(asks, tasks()))


def test_users_must_be_told_of_a_no() -> None:
    task, episode = next((t, e) for t, e in played() if t.tags["intent"].endswith("_declined"))

    def silent(message: Message) -> Message:
        spoken = message.role == "assistant" and message.content and not message.tool_calls
        return replace(message, content="Is there anything else?") if spoken else message

    asked = next(n for n, m in enumerate(episode.messages) if any(c.name == "request_approval" for c in m.tool_calls))
    turns = [turn if n < asked else replace(turn, message=silent(turn.message)) for n, turn in enumerate(episode.turns)]
    assert found(task, replace(episode, turns=turns)) == {"unsaid-declined"}


# whose records are whose


def test_records_that_no_slot_is_drawn_from_are_declared() -> None:
    fines = Resource("fines", "fine_id", owner="reader_id")
    declared = audit_rules(Worlds(library(resources=(fines,)))).resources
    assert [resource.table for resource in declared] == ["readers", "fines", "loans"]
    own = Resource("loans", "loan_id", owner="reader_id", arguments=("loan",))
    assert audit_rules(Worlds(library(resources=(own,)))).resources[1:] == (own,), "what is declared holds"
    with pytest.raises(ConfigError, match="resources: there is no table 'fines'"):
        TaskMaker(library(resources=(fines,))).task("train", 0, size="small")
    with pytest.raises(ConfigError, match="users are not identified"):
        library(resources=(fines,), identity=None)


# mistakes


def test_a_database_of_ones_own_needs_the_table_of_decisions() -> None:
    made = Worlds(LIBRARY).made("own", "train", LIBRARY.size("medium"))[0]

    class Own(Asking):
        name = "own"
        database = made

    class Complete(Asking):
        name = "complete"
        database = made | {"approvals": {}}

    with pytest.raises(ConfigError, match="own: limits: the database has no table 'approvals'"):
        TaskMaker(asking(domain=Own, tables=None)).task("train", 0, size="small")
    whole = environment(asking(domain=Complete, tables=None))
    assert kit.mean(kit.expert(whole, whole.make_tasks("train", 30), None)) == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: Limit("pay", record="x"), "limit of pay: give above"),
        (lambda: Limit("pay", record="x", above=3, when=bool, told="so"), "and not both"),
        (lambda: Limit("pay", record="x", above=3), "limit of pay: amount"),
        (lambda: Limit("pay", record="x", when=bool), "limit of pay: told"),
        (lambda: Limit("pay", record="", above=3, amount="y"), "limit of pay: record"),
        (lambda: Limit("pay", record="x", above=3, amount="y", form="gold"), "form: there is no form 'gold'"),
        (lambda: library(limits=(WEEK,)), "limits: the domain has nobody to ask: derive Library"),
        (lambda: asking(replace(WEEK, tool="get_loan")), "limits: 'get_loan' is no tool that writes"),
        (lambda: asking(Limit("extend_loan", record="loan", when=bool, told="so")), "asks for the amount"),
        (lambda: asking(3), "limits: 3 is no Limit"),  # type: ignore[arg-type]
        (lambda: library(rules={1: "authority"}), "the service has no authority"),
        (lambda: TaskMaker(asking(replace(WEEK, amount="weeks"))).explored, "limit of extend_loan: amount"),
        (lambda: TaskMaker(asking(replace(WEEK, amount="l.title"))).explored, "no number"),
        (lambda: TaskMaker(asking(replace(WEEK, record="l.number"))).explored, "limit of extend_loan: record"),
        (lambda: TaskMaker(asking(replace(WEEK, reason="{l.number}"))).explored, "has no 'number'"),
    ],
)
def test_a_mistake_is_named(declare: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        declare()


def test_a_small_service_with_limits_works_as_a_whole() -> None:
    own = environment(asking(), name="asking")
    made = own.make_tasks("test", 40, size="small")
    assert kit.mean(kit.expert(own, made, "small")) == 1.0
    assert any(task.tags["intent"] == "extend_declined" for task in made)
