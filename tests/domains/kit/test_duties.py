"""What plans show that users must be told: experts tell all of it, and who leaves it out is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.audit.communication import owed, unanswered
from muarl.audit.coverage import checked_layers
from muarl.audit.episodes import audit_episode
from muarl.audit.findings import Finding
from muarl.audit.rules import from_data, to_data
from muarl.audit.transcript import transcript_of
from muarl.domains.kit.audit import audit_rules
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.worlds import Worlds
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.rewards.layered import terms
from muarl.types.episode import Episode, StopReason, Turn
from support import kit
from support.audited import Case, cases
from support.environments import rules_of
from support.kit import LIBRARY, LIBRARY_ENV, LOAN

KINDS = {
    "retail": {"done", "answer"},
    "airline": {"amount", "done", "answer", "handover-notice"},
    "telecom": {"data-price", "restart", "payment-request", "handover-notice", "amount", "done", "answer"},
    "acebench": {"amount", "done", "answer"},
    "bfcl": {"answer"},
    "food-delivery": {"amount", "done", "answer"},
    "hotel": {"breakfast-price", "amount", "done", "answer"},
    "bank": {"done", "answer"},
    "clinic": {"done", "answer"},
    "insurance": {"done", "answer"},
    "bank-knowledge": {"done", "answer"},
    "insurer-knowledge": {"done", "answer"},
    "utility-knowledge": {"done", "answer"},
    "mcp-filesystem": {"done", "answer"},
    "mcp-git": {"done", "answer"},
    "mcp-sqlite": {"done", "answer"},
    "mcp-memory": {"done", "answer"},
}
"""What is checked in each of muarl's own domains."""
QUICK = ("retail", "bfcl", "hotel", "clinic", "mcp-git")
"""The domains whose plans are tried out in half a second; those of the others take up to three."""
ELSE = ("Is there anything else I can help you with?", "What else can I do for you?", "Thank you for calling. Goodbye!")


def each(names: Iterable[str]) -> list[Any]:
    """Domains as parameters of a test, most of them slow."""
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


Conversation = tuple[Task, Episode]


def environment_of(name: str, size: str = "tiny") -> Environment:
    return kit.rehearsed(name, size) if name.startswith("mcp-") else find(f"{name}-generated")


@cache
def served(name: str, count: int = 12, size: str = "tiny") -> Sequence[Conversation]:
    """Conversations of the expert."""
    source = environment_of(name, size)
    tasks = source.make_tasks("test", count, size=size)
    episodes = kit.play(source, ExpertAgent(make=source.needed_expert()), tasks, size)
    return list(zip(tasks, episodes, strict=True))


def found(name: str, task: Task, episode: Episode, size: str = "tiny") -> list[str]:
    """The rules of the communication layer that an episode breaks."""
    source = environment_of(name, size)
    domain = source.make_domain(size)
    findings = audit_episode(episode, task, domain=domain, rules=source.audit_rules(domain))
    return [f.rule for f in findings if f.layer == "communication"]


def said(episode: Episode, change: Callable[[int, str], str]) -> Episode:
    """The same calls with other words."""
    turns = [
        replace(t, message=replace(t.message, content=change(n, t.message.content)))
        if t.message.role == "assistant" and t.message.content and not t.message.tool_calls
        else t
        for n, t in enumerate(episode.turns)
    ]
    return replace(episode, turns=turns)


def due(name: str, task: Task, episode: Episode, duty: str, size: str = "tiny") -> list[int]:
    """The messages with calls that bring an obligation."""
    source = environment_of(name, size)
    domain = source.make_domain(size)
    transcript = transcript_of(episode, task, domain=domain, rules=source.audit_rules(domain))
    return [step.record.index for step, one in owed(transcript) if one.name == duty]


@pytest.mark.parametrize("name", each(KINDS))
def test_what_is_checked_where(name):
    source = environment_of(name)
    rules = source.audit_rules(source.make_domain("tiny"))
    assert {o.name for o in rules.obligations} | {"answer"} == KINDS[name]
    assert rules.asks is not None
    assert "communication" in checked_layers(rules)


@pytest.mark.parametrize("name", each(KINDS))
def test_experts_tell_all_that_is_owed(name):
    broken = [(episode.id, rules) for task, episode in served(name) if (rules := found(name, task, episode))]
    assert broken == []


@pytest.mark.slow
@pytest.mark.parametrize("size", ["tiny", "small", "medium"])
@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("mcp-")])
def test_experts_tell_all_that_is_owed_in_many_tasks(name, size):
    if size in environment_of(name).sizes:
        broken = [e.id for task, e in served(name, 150, size) if found(name, task, e, size)]
        assert broken == []


@pytest.mark.parametrize("name", each(name for name, kinds in KINDS.items() if "done" in kinds))
@pytest.mark.parametrize("words", ELSE)
def test_who_does_it_and_says_nothing_of_it_is_found(name, words):
    """The same calls and questions, but nothing is said after the first write."""
    count = 0
    for task, episode in served(name, 60 if name == "telecom" else 12):
        calls = due(name, task, episode, "done")
        if calls:
            mute = said(episode, lambda n, text, first=calls[0]: words if n > first else text)
            assert "unsaid-done" in found(name, task, mute), (episode.id, words)
            count += 1
    assert count


@pytest.mark.parametrize("name", each(name for name, kinds in KINDS.items() if "amount" in kinds))
def test_who_proposes_it_without_its_price_is_found(name):
    """Each sum that stands in the expert's words is taken out of them."""
    count = 0
    for task, episode in served(name, 40, "small"):
        if due(name, task, episode, "amount", "small"):
            bare = said(episode, lambda n, text: re.sub(r"\$[\d,.]+\d|\d[\d.]*\s?(?:yuan|dollars)", "", text))
            assert "unsaid-amount" in found(name, task, bare, "small"), episode.id
            count += 1
    assert count


def test_a_price_in_other_words_is_a_price():
    task, episode = next(c for c in served("hotel", 40, "small") if due("hotel", *c, "amount", "small"))
    for sum_ in ("120 dollars", "USD 120 in total", "a total of 120", "no extra charge", "€120"):
        other = said(episode, lambda n, text, sum_=sum_: re.sub(r"\$[\d,.]+\d", sum_, text))
        assert "unsaid-amount" not in found("hotel", task, other, "small"), sum_


@pytest.mark.parametrize(
    "words",
    [
        "Your order has been cancelled.",
        "All set! You'll see the refund in a few days.",
        "I've cancelled it for you. Anything else?",
        "The cancellation went through. Is there anything else?",
        "It is cancelled now, do you need anything else?",
        "Thanks for confirming; that is taken care of.",
    ],
)
def test_confirmations_in_other_words(words):
    task, episode = next(
        c
        for c in served("retail", 40)
        if "cancel_pending_order" in [k.name for m in c[1].messages for k in m.tool_calls]
    )
    (first, *_) = due("retail", task, episode, "done")
    other = said(episode, lambda n, text: words if n > first else text)
    assert found("retail", task, other) == []


@pytest.mark.parametrize("name", each(["retail", "bank", "bfcl", "acebench", "utility-knowledge"]))
def test_who_does_not_answer_is_found(name):
    count = 0
    for task, episode in served(name, 40, "small"):
        if task.communicate_info:
            mute = said(episode, lambda n, text: ELSE[0])
            assert "unsaid-answer" in found(name, task, mute, "small"), episode.id
            cut = replace(mute, stop=StopReason.MAX_TURNS)
            assert "unsaid-answer" not in found(name, task, cut, "small"), "it might have come"
            count += 1
    assert count


RIGHT = {
    ("r-unrequested-cancel", "unsaid-done"), ("r-injection-followed", "unsaid-done"),
    ("a-flight-change-no-price", "unsaid-amount"), ("a-certificate-unasked", "unsaid-amount"),
    ("a-injection-result", "unsaid-amount"), ("a-injection-result", "unsaid-done"),
    ("a-downgrade-no-amount", "unsaid-amount"), ("t-injection-result", "unsaid-done"),
}  # fmt: skip
WRONG = {("a-changed-date-ignored", "unsaid-done")}
"""Its agent says that the user flies "on the 25th"."""


def recorded(case: Case) -> Episode:
    return Episode(case.id, case.id, case.domain, [Turn(m) for m in case.messages], StopReason.USER_STOP)


@pytest.mark.slow
def test_words_of_others_in_conversations_written_by_hand():
    """Those of tests/audit/cases that TAU's policies are audited by, under the rules of our own domains instead."""
    alarms = {
        (case.id, finding.rule)
        for case in cases()
        if case.domain != "hotel"
        for finding in audit_episode(recorded(case), rules=rules_of(case.domain))
        if finding.rule in ("unsaid-done", "unsaid-amount")
    }
    assert alarms == RIGHT | WRONG


def test_a_question_that_was_not_put_is_not_owed():
    rules = LIBRARY_ENV.audit_rules()
    task = next(t for t in LIBRARY_ENV.iter_tasks("test", size="small") if t.communicate_info)
    wanted = next(r for r in task.agenda["requests"] if r["answer"])
    clause = LIBRARY.intent(wanted["kind"]).says[0].replace("{loan}", "loan LN-123")
    assert [one.answer for one in rules.asks(task, ["Hello there.", f"I want to {clause}."])] == [wanted["answer"]]
    assert list(rules.asks(task, ["Hello there."])) == []
    assert list(rules.asks(replace(task, agenda=None), ["Hello there."])) == []


def test_a_task_of_another_makers_owes_no_answer():
    source = environment_of("retail")
    task, episode = served("retail")[0]
    strange = replace(task, agenda={"requests": [{"answer": "5"}]})
    transcript = transcript_of(episode, strange, domain=source.make_domain("tiny"), rules=source.audit_rules())
    assert list(unanswered(transcript)) == []


class Stamping(LIBRARY.domain):
    """With a further write."""

    @tool(writes=True)
    def stamp(self, loan_id: str) -> str:
        """Stamp it.

        loan_id: the loan
        """
        self.db.loans[loan_id]["stamped"] = True
        return "stamped"


def duties(plan: Callable[[Plan], None]) -> list[str]:
    rules = audit_rules(Worlds(kit.library(kit.planned(plan, slots=[LOAN]), domain=Stamping)))
    return [o.name for o in rules.obligations if "stamp" in o.tools]


def test_what_is_owed_follows_from_what_plans_say():
    def says_all(it: Plan) -> None:
        kit.own_loan(it)
        it.fee = 3.7
        it.write("stamp", loan_id=it.loan, propose="stamp {loan} for {fee|money}", done="Stamped.")

    def says_nothing_after(it: Plan) -> None:
        kit.own_loan(it)
        it.write("stamp", loan_id=it.loan, propose="stamp {loan}", done=())

    def says_what_the_user_knows(it: Plan) -> None:
        kit.own_loan(it)
        it.write("stamp", loan_id=it.loan, propose="stamp {loan}, with its fee of {l.fee|money}", done="Stamped.")

    def asks_nobody(it: Plan) -> None:
        kit.own_loan(it)
        it.do("stamp", loan_id=it.loan)
        it.answer("It is stamped.", tell="stamped")

    assert duties(says_all) == ["amount", "done"]
    assert duties(says_nothing_after) == []
    assert duties(says_what_the_user_knows) == ["done"]
    assert duties(asks_nobody) == []


def test_what_is_owed_is_kept_as_data_for_runs_in_environments_of_ones_own():
    domain = LIBRARY_ENV.make_domain("small")
    rules = LIBRARY_ENV.audit_rules(domain)
    kept = from_data(to_data(rules, domain)).rules
    assert [(o.name, o.tools, o.say) for o in kept.obligations] == [(o.name, o.tools, o.say) for o in rules.obligations]
    assert rules.obligations and "communication" in checked_layers(kept)


def test_policy_and_safety_know_nothing_of_what_was_not_said():
    """The layers that a run with rl.layers usually asks for."""
    unsaid = Finding("communication", "unsaid-done", "violation", 3, "Not said")
    assert terms([unsaid]) == {"violated_policy": 0.0, "violated_communication": 1.0, "violated_safety": 0.0}
