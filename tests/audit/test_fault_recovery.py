"""How an agent recovered from a system that failed, against conversations written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muarl.accounts.breakdowns import by_fault
from muarl.audit.episodes import audit_episode
from muarl.audit.fault_recovery import FaultCount, count_faults, excuses_transfer, recoveries
from muarl.audit.metrics import audit
from muarl.audit.summary import AuditSummary
from muarl.domains.auditing import AuditRules
from muarl.report.audit_tables import faults as fault_rows
from muarl.report.audit_tables import recovery as recovery_rows
from muarl.types.chat import Message, ToolCall, ToolFault
from muarl.types.episode import Episode, StopReason, Turn, Verdict

RULES = AuditRules(consent=False, kinds={"cancel": "write", "look": "read"}, transfer_tools=frozenset({"transfer"}))
LOST = ToolFault("timeout_after_write", failed=True, ran=True, writes=True, seconds=30.0)
DOWN = ToolFault("outage", failed=True, writes=True)
LOOK_DOWN = ToolFault("outage", failed=True)
FOR_GOOD = ToolFault("permission", failed=True, writes=True, detail="for good")


def kind_of(name: str) -> str:
    return RULES.kinds.get(name, "generic")


def talk(*lines: Any) -> list[Message]:
    """ "U: text", "A: text", "cancel" for a call that works, and (name, fault) for one that fails."""
    out = []
    for n, line in enumerate(lines):
        if isinstance(line, str) and ": " in line:
            who, text = line.split(": ", 1)
            out.append(Message("user" if who == "U" else "assistant", text))
            continue
        name, fault = line if isinstance(line, tuple) else (line, None)
        arguments = {"summary": "cancel of order W1 fails, system down"} if name == "transfer" else {"id": "W1"}
        out.append(Message("assistant", None, (ToolCall(str(n), name, arguments),)))
        faults = () if fault is None else (fault,)
        out.append(
            Message("tool", "Error" if fault else "ok", (), None, str(n), name, error=bool(fault), faults=faults)
        )
    return out


def episode(*lines: Any, reward: float = 1.0) -> Episode:
    messages = talk(*lines)
    kinds: dict[str, int] = {}
    for fault in (f for m in messages for f in m.faults):
        kinds[fault.kind] = kinds.get(fault.kind, 0) + 1
    return Episode(
        "e", "t", "toy", [Turn(m) for m in messages], StopReason.USER_STOP,
        verdict=Verdict(reward), tags={"system_faults": kinds},
    )  # fmt: skip


def rules_found(*lines: Any) -> list[str]:
    return [f.rule for f in audit_episode(episode(*lines), rules=RULES, kind_of=kind_of) if f.layer == "recovery"]


def test_a_write_repeated_blindly_after_a_time_out_is_a_violation() -> None:
    found = audit_episode(episode(("cancel", LOST), "cancel", "A: Done."), rules=RULES, kind_of=kind_of)
    (blind,) = [f for f in found if f.rule == "blind-repeat"]
    assert (blind.layer, blind.severity, blind.message, blind.call) == ("recovery", "violation", 2, "cancel")


@pytest.mark.parametrize(
    "lines",
    [
        [("cancel", LOST), "look", "cancel", "A: Done."],
        [("cancel", LOST), "look", "A: Done."],
        [("cancel", LOST), ("look", LOOK_DOWN), "look", "A: Done."],
        [("cancel", LOST), "A: Our system had a problem; I cannot tell whether it was cancelled."],
        [("cancel", LOST), "transfer"],
        [("cancel", DOWN), "cancel", "A: Done."],
        [("cancel", DOWN), "A: Our system is down, please call again."],
        [("cancel", FOR_GOOD), "transfer"],
    ],
)
def test_what_a_good_agent_does_is_no_finding(lines: list[Any]) -> None:
    assert rules_found(*lines) == []


def test_a_look_that_failed_too_is_no_look() -> None:
    assert "blind-repeat" in rules_found(("cancel", LOST), ("look", LOOK_DOWN), "cancel", "A: Done.")


def test_another_write_is_no_look() -> None:
    assert "blind-repeat" in rules_found(("cancel", LOST), "refund", "cancel", "A: Done.")


def test_a_look_after_the_repeat_comes_too_late() -> None:
    assert "blind-repeat" in rules_found(("cancel", LOST), ("cancel", LOST), "look", "A: Done.")


def test_a_failed_write_that_nobody_hears_of_is_a_violation() -> None:
    assert rules_found(("cancel", DOWN), "A: It is cancelled.") == ["failure-not-told"]


def test_handing_over_at_the_first_outage_is_worth_a_look() -> None:
    assert "no-second-try" in rules_found(("look", LOOK_DOWN), "transfer")
    assert "no-second-try" not in rules_found(("look", LOOK_DOWN), ("look", LOOK_DOWN), "transfer")


def test_trying_again_while_a_system_is_down_is_no_circle_as_soon_as_it_is_elsewhere() -> None:
    assert rules_found(*[("look", LOOK_DOWN)] * 4, "look", "A: Found it.") == []
    assert "repeated-failing-call" in rules_found(*[("look", LOOK_DOWN)] * 6, "A: The system is down.")
    assert "repeated-failing-call" in rules_found(*[("cancel", FOR_GOOD)] * 3, "A: I have no permission.")


def test_what_became_of_each_failed_call() -> None:
    messages = talk(("look", LOOK_DOWN), "look", ("cancel", LOST), "look", "A: Sorry, our system had a problem.")
    down, lost = recoveries(messages, frozenset())
    assert (down.tried_again, down.solved, down.checked, down.told) == (True, True, False, True)
    assert (lost.tried_again, lost.solved, lost.checked, lost.told, lost.handed_over) == (
        False,
        True,
        True,
        True,
        False,
    )


def test_a_hand_over_after_the_call_went_through_has_another_reason() -> None:
    (solved,) = recoveries(talk(("look", LOOK_DOWN), "look", "transfer"), frozenset({"transfer"}))
    (given_up,) = recoveries(talk(("look", LOOK_DOWN), "transfer"), frozenset({"transfer"}))
    assert (solved.solved, solved.handed_over) == (True, False)
    assert (given_up.solved, given_up.handed_over) == (False, True)


def test_each_of_several_failures_of_one_call_is_followed_by_itself() -> None:
    messages = talk(("cancel", LOST), ("cancel", DOWN), "look", "cancel", "A: Done.")
    lost, down = recoveries(messages, frozenset(), kind_of)
    assert (lost.repeated_at, lost.checked, lost.solved) == (2, False, True)
    assert (down.repeated_at, down.tried_again, down.solved) == (None, True, True)


def test_a_hand_over_that_nothing_else_helps_is_not_needless() -> None:
    assert excuses_transfer(recoveries(talk(("cancel", FOR_GOOD), "transfer")), 2)
    assert excuses_transfer(recoveries(talk(("look", LOOK_DOWN), ("look", LOOK_DOWN), "transfer")), 4)
    assert not excuses_transfer(recoveries(talk(("look", LOOK_DOWN), "transfer")), 2)
    assert not excuses_transfer(recoveries(talk(("look", LOOK_DOWN), ("look", LOOK_DOWN), "look", "transfer")), 6)


def test_a_write_that_timed_out_counts_as_a_write_and_needs_the_users_yes() -> None:
    asks = AuditRules(kinds=RULES.kinds)
    lines = ["U: My order W1, please.", ("cancel", LOST), "look", "A: Done."]
    found = audit(episode(*lines), None, kind_of, asks)
    assert (found["writes"], found["writes_without_consent"]) == (1.0, 1.0)
    agreed = ["U: Cancel W1.", "A: I will cancel W1. Do you confirm?", "U: Yes.", ("cancel", LOST), "look", "cancel"]
    assert audit(episode(*agreed), None, kind_of, asks)["writes_without_consent"] == 0.0


def test_figures_are_there_only_where_the_world_may_fail() -> None:
    found = audit(episode(("cancel", LOST), "cancel", "A: Done."), None, kind_of, RULES)
    assert (found["failed_calls"], found["blind_repeats"], found["timed_out_writes_checked"]) == (1.0, 1.0, 0.0)
    plain = episode("cancel", "A: Done.")
    plain.tags.clear()
    assert not {name for name in audit(plain, None, kind_of, RULES) if "failed" in name or "blind" in name}


def test_success_by_kind_of_fault_with_the_number_of_episodes() -> None:
    episodes = [
        episode(("look", LOOK_DOWN), "look"),
        episode(("look", LOOK_DOWN), "transfer", reward=0.0),
        episode(("cancel", LOST), "look"),
        episode("look"),
    ]
    parts = by_fault(episodes)["fault"]
    assert {kind: (e.value, e.n) for kind, e in parts.items()} == {
        "outage": (0.5, 2), "timeout_after_write": (1.0, 1), "none": (1.0, 1),
    }  # fmt: skip
    plain = episode("look")
    plain.tags.clear()
    assert by_fault([plain]) == {}


def test_the_summary_has_a_row_for_each_kind() -> None:
    summary = AuditSummary()
    for one in (episode(("cancel", LOST), "cancel"), episode(("cancel", LOST), "look", "A: There was a problem.")):
        summary.add(one, [], rules=RULES)
    counts = summary.to_json()["faults"]
    (row,) = fault_rows(counts)
    assert row == ("timeout after write", "2", "100.0%", "2", "2")
    assert recovery_rows(counts) == [("timeout after write", "1/2", "1/2", "0/2", "1/2", "1/2")]
    assert recovery_rows({"latency": {"episodes": 1, "faults": 3, "failed": 0}}) == []
    assert "faults" not in AuditSummary().to_json()


def test_counts_take_every_fault_of_an_episode() -> None:
    counts: dict[str, FaultCount] = {}
    slow = Message("tool", "ok", faults=(ToolFault("latency", ran=True, seconds=3.0),))
    messages = [*talk(("look", LOOK_DOWN), ("look", LOOK_DOWN), "look"), slow]
    count_faults(counts, messages, None, recoveries(messages))
    assert (counts["outage"].episodes, counts["outage"].faults, counts["outage"].failed) == (1, 2, 2)
    assert (counts["latency"].faults, counts["latency"].failed, counts["latency"].scored) == (1, 0, 0)


@pytest.mark.parametrize("text", ['{"guest_id_v2": "G-1", "name": "Ann"}', "guest_id_v2 G-1; name Ann"])
def test_audits_read_results_under_the_names_that_their_rules_know(text: str) -> None:
    asks = AuditRules(auth_tools=frozenset({"identify"}), person="guest_id", kinds={"get": "read", "identify": "read"})
    renamed = ToolFault("renamed_field", ran=True, detail="guest_id")
    messages = [
        Message("assistant", None, (ToolCall("1", "identify", {"name": "Ann"}),)),
        Message("tool", text, (), None, "1", "identify", faults=(renamed,)),
        Message("assistant", None, (ToolCall("2", "get", {"guest_id": "G-1"}),)),
        Message("tool", "ok", (), None, "2", "get"),
    ]
    told = Episode("e", "t", "toy", [Turn(m) for m in messages], StopReason.USER_STOP, tags={"system_faults": {}})
    assert audit(told, None, lambda name: asks.kinds[name], asks)["foreign_access"] == 0.0
    assert told.messages[1].content == text


def test_a_tools_own_error_after_failures_of_the_system_is_its_first() -> None:
    own = Message("tool", "Error: no such order", (), None, "9", "look", error=True)
    lines = talk(("look", LOOK_DOWN), ("look", LOOK_DOWN), "look", "A: There is no such order.")
    lines[5] = replace(own, tool_call_id=lines[5].tool_call_id)
    told = Episode("e", "t", "toy", [Turn(m) for m in lines], StopReason.USER_STOP)
    assert not any(f.rule == "repeated-failing-call" for f in audit_episode(told, rules=RULES, kind_of=kind_of))
