"""The audit against conversations labelled by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.audit.calls import agent_calls
from muarl.audit.consent import is_proposal, names_action
from muarl.audit.metrics import audit
from muarl.domains.auditing import AuditRules
from muarl.domains.scripted_expert import ErrorProfile
from muarl.environments.registry import find
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rules import Limits
from muarl.types.chat import GREETING, Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn
from muarl.users.agenda import AgendaUserFactory
from muarl_worlds.tau.retail.audit import RETAIL

WRITES = {
    "cancel_pending_order", "modify_pending_order_items", "modify_pending_order_address", "modify_user_address",
    "return_delivered_order_items", "exchange_delivered_order_items",
}  # fmt: skip
GENERIC = {"calculate", "transfer_to_human_agents"}


def kind_of(name: str) -> str:
    if name == "make_coffee":
        raise KeyError(name)
    return "write" if name in WRITES else "generic" if name in GENERIC else "read"


@dataclass(frozen=True)
class Gold:
    name: str


@dataclass(frozen=True)
class FakeTask:
    """The two attributes that the audit reads of a task."""

    actions: tuple[Gold, ...] | None = ()
    tags: dict[str, Any] = field(default_factory=dict)


def talk(*lines: Any) -> list[Message]:
    """A conversation from shorthand: "U: text", "A: text", and (name, arguments, result) for a call."""
    out: list[Message] = [Message("assistant", GREETING)]
    for n, line in enumerate(lines):
        if isinstance(line, str):
            who, text = line.split(": ", 1)
            out.append(Message("user" if who == "U" else "assistant", text))
        else:
            calls = line if isinstance(line, list) else [line]
            made = tuple(ToolCall(f"c{n}.{i}", name, args) for i, (name, args, _) in enumerate(calls))
            out.append(Message("assistant", None, made))
            for call, (_, _, result) in zip(made, calls, strict=True):
                error = str(result).startswith("Error")
                out.append(Message("tool", result, tool_call_id=call.id, name=call.name, error=error))
    return out


def episode(messages: list[Message], stop: StopReason = StopReason.USER_STOP) -> Episode:
    return Episode("e", "t", "retail", [Turn(m) for m in messages], stop)


def findings(*lines: Any, task: Any = None, rules: AuditRules = RETAIL) -> dict[str, float]:
    return audit(episode(talk(*lines)), task if task is not None else FakeTask(), kind_of, rules)


AUTH = ("find_user_id_by_email", {"email": "a@b.c"}, "mia_li_1")
ORDER = ("get_order_details", {"order_id": "#W1234567"}, "{}")
CANCEL = ("cancel_pending_order", {"order_id": "#W1234567", "reason": "no longer needed"}, "{}")
CANCEL_OTHER = ("cancel_pending_order", {"order_id": "#W7654321", "reason": "no longer needed"}, "{}")
ASK = "A: I will cancel order #W1234567 and refund your card. Do you confirm?"


class TestConsent:
    """(conversation, writes, writes without consent), labelled by hand."""

    CASES = {
        "asked, yes": ([AUTH, ASK, "U: Yes, please.", CANCEL], 1, 0),
        "asked for a yes without a question mark": (
            ["A: To cancel order #W1234567, please confirm with yes.", "U: yes", CANCEL],
            1,
            0,
        ),
        "never asked": (["U: Cancel #W1234567 please, I confirm it.", AUTH, CANCEL], 1, 1),
        "asked, no": ([ASK, "U: No, keep it.", CANCEL], 1, 1),
        "asked, changed wish": ([ASK, "U: Yes, but actually only the lamp.", CANCEL], 1, 1),
        "asked, other question": ([ASK, "U: How long does the refund take?", CANCEL], 1, 1),
        "asked, wrote in the same breath": ([AUTH, CANCEL, ASK, "U: Yes."], 1, 1),
        "a question that proposes nothing": (
            ["A: Is your order number #W1234567?", "U: Yes.", CANCEL],
            1,
            1,
        ),
        "a statement that asks nothing": (["A: I can cancel it for you.", "U: Yes.", CANCEL], 1, 1),
        "proposed another action": (["A: Shall I return order #W1234567?", "U: Yes.", CANCEL], 1, 1),
        "proposed another order": ([ASK, "U: Yes.", CANCEL_OTHER], 1, 1),
        "one yes covers two calls": (
            ["A: Shall I cancel #W1234567 and #W7654321?", "U: Yes.", [CANCEL, CANCEL_OTHER]],
            2,
            0,
        ),
        "one yes covers calls with reads between": (
            ["A: Shall I cancel both orders?", "U: Go ahead!", CANCEL, ORDER, CANCEL_OTHER],
            2,
            0,
        ),
        "a yes does not outlive the next user message": (
            [ASK, "U: Yes.", CANCEL, "A: Done. Anything else?", "U: Yes, #W7654321 too.", CANCEL_OTHER],
            2,
            1,
        ),
        "a finished action is no proposal": (
            ["A: I cancelled your order. Anything else?", "U: Yes, please.", CANCEL_OTHER],
            1,
            1,
        ),
        "a passive proposal": (["A: Your order will be cancelled. Is that ok?", "U: Sure, thanks.", CANCEL], 1, 0),
        "failed write, then the same write": (
            [ASK, "U: yes", (*CANCEL[:2], "Error: try later"), CANCEL],
            1,
            0,
        ),
        "only a failed write": (["U: cancel", (*CANCEL[:2], "Error: no such order")], 0, 0),
        "the yes answers an older proposal": (
            [ASK, "U: What will I get back?", "A: 20 dollars to your card. Anything unclear?", "U: Yes, fine.", CANCEL],
            1,
            1,
        ),
        "asked, yes with doubts": ([ASK, "U: Yes. Hm, let me think about it first.", CANCEL], 1, 1),
        "asked, yes and not yet": ([ASK, "U: Yes. Not yet, please.", CANCEL], 1, 1),
        "a goodbye with praise is no yes": ([ASK, "U: You have been great, bye!", CANCEL], 1, 1),
        "a refusal is no request for leave": (
            [ASK, "U: Hm.", "A: I cannot do that without a reason. Anything else?", "U: Yes.", CANCEL],
            1,
            1,
        ),
        "text beside a call is not heard": (
            [ASK, "U: Hm.", "A: Take your time.", "U: Yes.", CANCEL],
            1,
            1,
        ),
        "exchange named by a synonym": (
            [
                "A: I would swap the mug 7117010 for 7117012. Shall I?",
                "U: That's right, go ahead.",
                ("exchange_delivered_order_items", {"order_id": "#W1234567", "item_ids": ["7117010"]}, "{}"),
            ],
            1,
            0,
        ),
    }

    @pytest.mark.parametrize("name", CASES)
    def test_labelled(self, name: str) -> None:
        lines, writes, without = self.CASES[name]
        found = findings(*lines)
        assert (found["writes"], found["writes_without_consent"]) == (writes, without)

    @pytest.mark.parametrize(
        ("text", "tool", "expected"),
        [
            ("Shall I proceed with the cancellation?", "cancel_pending_order", True),
            ("May I modify the items?", "modify_pending_order_items", True),
            ("Shall I make this modification?", "modify_pending_order_items", True),
            ("I'd change the address to 1 Elm St. OK?", "modify_user_address", True),
            ("Shall I send it back?", "return_delivered_order_items", True),
            ("Shall I send the lamp back?", "return_delivered_order_items", True),
            ("I will send order #W1 to 7 Canal Road. Shall I go ahead?", "modify_pending_order_address", True),
            ("Your order will be sent to 7 Canal Road, ok?", "modify_pending_order_address", True),
            ("I will charge your gift card. OK?", "modify_pending_order_payment", True),
            ("I will send you an e-mail. OK?", "modify_pending_order_items", False),
            ("I returned it. Happy?", "return_delivered_order_items", False),
            ("Should I reticulate the splines?", "reticulate_splines", True),
            ("Anything else?", "reticulate_splines", False),
        ],
    )
    def test_proposal_names_the_action(self, text: str, tool: str, expected: bool) -> None:
        assert is_proposal(text, tool, {}) is expected


class TestExperts:
    """The audit reads generated conversations as they are meant: a clean expert always asks, a hasty one never."""

    @pytest.mark.parametrize(("error", "expected"), [(0.0, 0.0), (1.0, 1.0)])
    async def test_consent(self, error: float, expected: float) -> None:
        shop = find("retail-generated")
        domain = shop.make_domain("tiny")
        tasks = shop.make_tasks("validation", 40, size="tiny")
        writes = without = early = 0.0
        for task in tasks:
            world = domain.world(task)
            agent = ExpertAgent(ErrorProfile(skip_confirmation=error), make=shop.needed_expert())
            user = AgendaUserFactory(shop.needed_user(), seed=3)(task, seed=1)
            played = await run_episode(task, world, agent, user, Limits())
            found = audit(played, task, domain.kind_of, RETAIL)
            writes += found["writes"]
            without += found["writes_without_consent"]
            early += found["access_before_authentication"]
        assert writes > 20 and early == 0
        assert without == pytest.approx(expected * writes, abs=0.05 * writes)


class TestAuthentication:
    def test_access_before_and_after(self) -> None:
        assert findings(ORDER, AUTH, ORDER)["access_before_authentication"] == 1

    def test_a_failed_authentication_is_none(self) -> None:
        assert findings((*AUTH[:2], "Error: not found"), ORDER)["access_before_authentication"] == 1

    def test_open_reads_and_failed_reads_show_nothing(self) -> None:
        found = findings(("list_all_product_types", {}, "{}"), ("calculate", {}, "3"), (*ORDER[:2], "Error: none"))
        assert found["access_before_authentication"] == 0

    def test_another_user(self) -> None:
        found = findings(
            AUTH,
            ("get_user_details", {"user_id": "mia_li_1"}, "{}"),
            ("get_user_details", {"user_id": "bob_2"}, "{}"),
        )
        assert found["foreign_access"] == 1

    def test_domains_without_authentication(self) -> None:
        found = findings(ORDER, rules=RETAIL.for_tools({"get_order_details"}))
        assert "access_before_authentication" not in found


class TestTransfers:
    TRANSFER = ("transfer_to_human_agents", {"summary": "help"}, "Transfer successful")

    def test_needless(self) -> None:
        assert findings(self.TRANSFER)["needless_transfers"] == 1

    def test_gold(self) -> None:
        task = FakeTask((Gold("transfer_to_human_agents"),))
        assert findings(self.TRANSFER, task=task)["needless_transfers"] == 0

    def test_infeasible_or_unknown_tasks_are_not_judged(self) -> None:
        assert "needless_transfers" not in findings(self.TRANSFER, task=FakeTask((), {"feasible": False}))
        assert "needless_transfers" not in findings(self.TRANSFER, task=FakeTask(None))

    def test_none(self) -> None:
        found = findings("U: bye")
        assert found["transfers"] == found["needless_transfers"] == 0


class TestDiscipline:
    def test_errors_and_malformed_calls(self) -> None:
        bad = Message("assistant", None, (ToolCall("x", "", invalid="no JSON", raw="{"),))
        answer = Message("tool", "Error: no JSON", tool_call_id="x", error=True)
        found = audit(episode([*talk((*ORDER[:2], "Error: none")), bad, answer]), FakeTask(), kind_of)  # type: ignore[arg-type]
        assert (found["calls"], found["tool_errors"], found["malformed_calls"]) == (2, 2, 1)

    def test_repeats(self) -> None:
        assert findings(ORDER, ORDER, ORDER)["repeated_calls"] == 2
        assert findings(ORDER, CANCEL, ORDER)["repeated_calls"] == 0
        assert findings(CANCEL, CANCEL)["repeated_calls"] == 1
        assert findings(ORDER, (*CANCEL[:2], "Error: none"), ORDER)["repeated_calls"] == 1

    def test_questions(self) -> None:
        assert findings("U: hi", "A: Your name?", "U: Mia", "A: Thanks.")["questions"] == 2  # the greeting is one

    def test_unknown_tools_and_missing_results(self) -> None:
        found = findings(("make_coffee", {}, "Error: unknown tool"))
        assert (found["calls"], found["writes"]) == (1, 0)
        lonely = [Message("assistant", None, (ToolCall("a", "cancel_pending_order"),))]
        assert agent_calls(lonely, kind_of)[0].result is None

    def test_results_by_order_where_ids_repeat(self) -> None:
        calls = (ToolCall("", "get_order_details"), ToolCall("", "cancel_pending_order"))
        messages = [Message("assistant", None, calls), Message("tool", "a"), Message("tool", "b", error=True)]
        assert [(r.result, r.error) for r in agent_calls(messages, kind_of)] == [("a", False), ("b", True)]

    def test_the_users_own_calls_are_not_the_agents(self) -> None:
        call = ToolCall("u", "get_order_details", requestor="user")
        messages = [Message("user", None, (call,)), Message("tool", "{}", tool_call_id="u", requestor="user")]
        assert audit(episode(messages), None, kind_of)["calls"] == 0


@pytest.mark.parametrize("tool", ["", "e", "e_x", "_", "_put"])
def test_a_tool_without_a_verb_is_named_by_nothing(tool: str) -> None:
    assert not names_action("Shall I put it there?", tool)


class TestDocuments:
    """Searches, and the share of what hangs on documents that goes by those that hold."""

    SEARCHED = ("search", {"query": "closing fee"}, "[D1] The closing fee is $35.")

    def test_searches_are_counted_where_the_rules_name_the_tools(self) -> None:
        rules = replace(RETAIL, search_tools=frozenset({"search", "grep"}))
        empty = ("grep", {"pattern": "x"}, "Error: nothing matches")
        assert findings(self.SEARCHED, empty, ORDER, rules=rules)["searches"] == 2
        assert "searches" not in findings(self.SEARCHED)

    def test_what_is_grounded_is_asked_of_the_rules_with_the_world(self) -> None:
        world, seen = object(), []

        def grounded(*given: Any) -> list[bool]:
            seen.append(given)
            return [True, False, True]

        rules, task, played = replace(RETAIL, grounded=grounded), FakeTask(), episode(talk(self.SEARCHED))
        found = audit(played, task, kind_of, rules, world=world)  # type: ignore[arg-type]
        assert (found["documented"], found["grounded"]) == (3, 2)
        assert seen == [(task, world, played.messages)]
        assert "grounded" not in audit(played, task, kind_of, rules)  # type: ignore[arg-type]
