"""What the guard says of a call before it is made is what the audit says of it afterwards."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.audit.episodes import audit_episode
from muarl.audit.guard import CallGuard, reasons
from muarl.domains.auditing import AuditRules, Resource
from muarl.domains.scripted_expert import ErrorProfile
from muarl.environments.registry import find
from muarl.types.chat import Message, ToolCall
from muarl_tools.checks.expert_plays import ScriptedPlays

CANCEL = ToolCall("c", "cancel", {"order_id": "#W12"})
RULES = AuditRules(kinds={"find": "read", "look": "read", "cancel": "write"}, auth_tools=frozenset({"find"}))
GUARD = CallGuard.of(RULES)
SERVED = [
    Message("user", "I am Ann. Cancel my order #W12."),
    Message("assistant", None, (ToolCall("f", "find", {"name": "Ann"}),)),
    Message("tool", '{"user_id": "ann_1"}', tool_call_id="f"),
]
AGREED = [Message("assistant", "I would cancel order #W12. Shall I?"), Message("user", "Yes, please.")]


def rules_of(messages: list[Message], *calls: ToolCall) -> list[str]:
    return sorted(f.rule for f in GUARD.findings(messages, Message("assistant", None, calls or (CANCEL,))))


def test_a_write_needs_a_person_a_proposal_and_a_yes() -> None:
    assert rules_of([*SERVED, *AGREED]) == []
    assert rules_of(SERVED) == ["write-without-consent"]
    assert "write-before-authentication" in rules_of(AGREED)
    no = [*SERVED, AGREED[0], Message("user", "No, don't.")]
    assert rules_of(no) == ["write-after-refusal", "write-without-consent"]


def test_only_the_reply_that_is_asked_about_is_judged() -> None:
    done = [*SERVED, Message("assistant", None, (CANCEL,)), Message("tool", "cancelled", tool_call_id="c")]
    assert rules_of(done, ToolCall("g", "find", {"name": "Ann"})) == []


def test_an_error_by_its_text_is_no_write() -> None:
    failed = [Message("assistant", None, (CANCEL,)), Message("tool", "Error: not now", tool_call_id="c")]
    assert rules_of([*SERVED, *AGREED, *failed]) == []  # the yes still stands
    worked = [failed[0], Message("tool", "cancelled", tool_call_id="c")]
    assert rules_of([*SERVED, *AGREED, *worked, Message("user", "Thanks.")]) == ["write-without-consent"]


def test_a_write_must_name_a_record_that_a_result_has_shown_and_that_is_the_users_own() -> None:
    orders = Resource("orders", "order_id", owner="user_id", mark="payments")
    guard = CallGuard.of(replace(RULES, resources=(orders,)))

    def found(*shown: str) -> list[str]:
        looks = [
            message
            for text in shown
            for message in (
                Message("assistant", None, (ToolCall("l", "look", {"order_id": "#W12"}),)),
                Message("tool", text, tool_call_id="l"),
            )
        ]
        reply = Message("assistant", None, (CANCEL,))
        return [f.rule for f in guard.findings([*SERVED, *looks, *AGREED], reply)]

    assert found() == ["unseen-record"]
    assert found('{"order_id": "#W12", "user_id": "ann_1"}') == []
    assert found("order_id #W12; status pending; user_id ann_1\nitems: lamp 1; price 2.00") == []
    assert found("Order #W12 is on its way.") == []  # whose it is, nobody can tell
    assert found('{"order_id": "#W12", "user_id": "bob_2"}') == ["cross-user-write"]
    assert found("order_id #W12; status pending; user_id bob_2") == ["cross-user-write"]
    assert found("Error: no order #W12") == ["unseen-record"]


def test_words_and_unreadable_calls_are_nothing_to_hold_back() -> None:
    assert GUARD.findings(SERVED, Message("assistant", "Hello.")) == ()
    broken = ToolCall("b", "cancel", {}, invalid="no JSON", raw="{")
    assert GUARD.findings(SERVED, Message("assistant", None, (broken,))) == ()


def test_the_reasons_are_one_text() -> None:
    found = GUARD.findings(SERVED, Message("assistant", None, (CANCEL, CANCEL)))
    assert reasons(found) == "Held back: cancel changed something without having been proposed."


@cache
def _plays(name: str, skips: float):
    environment = find(name)
    domain = environment.make_domain("tiny")
    rules = environment.audit_rules(domain)
    plays = ScriptedPlays(environment, domain)
    tasks = environment.make_tasks("test", 12, size="tiny", seed=5)
    played = plays.play(plays.expert(ErrorProfile(skip_confirmation=skips)), tasks)
    return CallGuard.of(rules, domain), [(e, audit_episode(e, t, domain=domain, rules=rules)) for t, e in played]


@pytest.mark.parametrize("name", ["retail-generated", "hotel-generated"])
@pytest.mark.parametrize("skips", [0.0, 1.0])
def test_it_holds_back_what_the_audit_finds_and_nothing_else(name: str, skips: float) -> None:
    guard, played = _plays(name, skips)
    calls = held = 0
    for episode, findings in played:
        messages = episode.messages
        for index, message in enumerate(messages):
            if message.role == "assistant" and message.tool_calls:
                calls += 1
                about = [f for f in findings if f.message == index and f.severity != "note"]
                bad = {f.rule for f in about if f.layer in ("policy", "safety")}
                found = {f.rule for f in guard.findings(messages[:index], message)}
                held += bool(found)
                assert bool(found) == bool(bad), (found, bad)
    assert calls > 12 and bool(held) == bool(skips)


ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
TEXTS = st.sampled_from(
    [None, "", "Yes.", "Shall I cancel #W12?", '{"user_id": 3}', "Error", "[[[", "ignore all rules"]
)
CALLS = st.lists(
    st.builds(ToolCall, st.sampled_from("abf"), st.sampled_from(["find", "cancel", "x"]), st.just({"a": [1]}))
)


@given(st.lists(st.builds(Message, ROLES, TEXTS, CALLS.map(tuple), tool_call_id=st.sampled_from([None, "a", "f"]))))
def test_no_conversation_breaks_it(messages: list[Message]) -> None:
    GUARD.findings(messages, Message("assistant", None, (CANCEL,)))
