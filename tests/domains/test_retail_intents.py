"""Retail's requests: what its tasks are, what is said about them, and what the policy leads to."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import Any

import pytest

from muarl.domains.kit.expert import ServiceExpert
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.language.consent import is_affirmative
from muarl.types.chat import Message
from muarl.users.agenda_service import ServiceAgendaUser
from muarl_worlds.tau.retail.intents import SERVICE
from support import kit
from support.callers import Conversation
from support.kit import calls, mean, said

made, expert = partial(kit.made, "retail"), partial(kit.expert, "retail", size="tiny")
ADDRESS = {
    "address1": "12 Elm Street", "address2": "Suite 1", "city": "Boston", "country": "USA", "state": "MA",
    "zip": "54321",
}  # fmt: skip
WHERE = "12 Elm Street, Suite 1, Boston, MA 54321"
SAID = "I am Mia Berg, 12345."


def item(name: str, number: int, price: float, **options: str) -> dict[str, Any]:
    return {"name": name, "item_id": str(number), "price": price, "options": options, "product_id": f"9{number}"}


def order(*items: dict[str, Any], status: str = "pending", paid: str = "paypal_7", owner: str = "mia_berg_1000") -> Any:
    payment = {"payment_method_id": paid, "amount": 1.0, "transaction_type": "payment"}
    return {
        "order_id": "#W1111111", "user_id": owner, "status": status, "items": list(items), "payment_history": [payment],
    }  # fmt: skip


MUG, LAMP = item("Mug", 11, 10.0, color="red"), item("Lamp", 22, 20.0, size="small")
MIA = {
    "user_id": "mia_berg_1000", "orders": ["#W1111111"],
    "payment_methods": {
        "paypal_7": {"source": "paypal", "id": "paypal_7"},
        "gift_card_8": {"source": "gift_card", "id": "gift_card_8", "balance": 30.0},
    },
}  # fmt: skip
MUGS = {
    "name": "Mug", "product_id": "911",
    "variants": {
        str(n): {"item_id": str(n), "options": {"color": color}, "available": there, "price": price}
        for n, color, there, price in ((11, "red", True, 10.0), (12, "blue", True, 80.0), (13, "green", False, 5.0))
    },
}  # fmt: skip


class Call:
    """A conversation with the expert, who is shown what a test says."""

    def __init__(self, wish: str, shown: Any = None) -> None:
        self.brain = ServiceExpert(SERVICE, seed=0, error_profile=ErrorProfile())
        self.first = self.brain.act([Message("user", f"I want to {wish}. {SAID}")])
        self.step = self.shown("mia_berg_1000")
        if shown is not None:
            self.step = self.shown(shown)

    def shown(self, result: Any) -> Message:
        content = result if isinstance(result, str) else json.dumps(result)
        self.step = self.brain.act([Message("tool", content)])
        return self.step

    def hears(self, text: str) -> Message:
        self.step = self.brain.act([Message("user", text)])
        return self.step


# tasks


@pytest.mark.slow
def test_every_request_has_its_share_and_some_occur_in_larger_shops_only():
    kinds = {
        size: Counter(t.agenda["requests"][0]["kind"] for t in made(size, "train", 400)) for size in ("tiny", "small")
    }
    assert set(kinds["tiny"]) == {*SERVICE.tiny_intents, "outside"}
    assert set(kinds["small"]) == {*(i.name for i in SERVICE.intents), "outside"}
    assert all(0.04 < kinds["tiny"][name] / 400 < 0.3 for name in SERVICE.tiny_intents)
    wrote = {a.name for t in made("small", "train", 400) for a in t.actions if a.name in kit.writes("retail")}
    assert wrote == kit.writes("retail")
    intents = Counter(t.tags["intent"] for t in made("tiny", "train", 400))
    assert {"exchange_unavailable", "modify_items_unavailable", "two_requests", "impostor"} <= set(intents)
    assert 0.04 < intents["forbidden"] / 400 < 0.14
    described = [t for t in made("tiny", "train", 400) if any(r["unknown"] for r in t.agenda["requests"])]
    assert 0.02 < len(described) / 400 < 0.1


def test_the_scenario_tells_an_llm_user_all_that_matters():
    for task in made("small", "test", 60):
        who = task.agenda["identity"]
        assert " ".join(who["name"].values()) in task.scenario and who["zip"] in task.scenario
        for request in task.agenda["requests"]:
            for goal in (g for g in (request["goal"], request["then"], request["fallback"]) if g and "drop" not in g):
                for slot in ("item", "option", "reason"):
                    assert goal.get(slot, "") in task.scenario
                assert all(name in task.scenario for name in goal.get("items", ()))
                assert all(part in task.scenario for part in goal.get("address", {}).values() if part != "USA")
                assert request["unknown"] or goal.get("order_id", "") in task.scenario
            if request["unknown"]:
                assert request["goal"]["order_id"] not in task.scenario


# what is read


@pytest.mark.parametrize(
    ("slot", "text"),
    [
        ("order_id", "Could you tell me which order you are referring to?"),
        ("order_id", "What's the order number, please?"),
        ("order_id", "Can you please provide the order ID?"),
        ("items", "Which item would you like to return?"),
        ("item", "What items from this order would you like to exchange?"),
        ("option", "Which color would you prefer instead?"),
        ("reason", "What's the reason for the cancellation: no longer needed, or ordered by mistake?"),
        ("reason", "May I ask why you want to cancel it?"),
        ("payment", "Which payment method would you like to use for the difference?"),
        ("payment", "How would you like to pay the difference?"),
        ("address", "What is the new shipping address?"),
        ("address", "Where should we send it?"),
    ],
)
def test_a_language_models_questions_are_heard(slot, text):
    assert SERVICE.asked[slot].search(text)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks for reaching out! Could you please share your first name, last name and zip code?",
        "For verification purposes, may I have the email address on your account?",
        "Could you please confirm your full name and zip code?",
    ],
)
def test_a_question_about_identity_is_answered_and_is_no_proposal(text):
    assert all(fact in Talk("cancel").hear(text) for fact in ("Mia Berg", "12345"))


@pytest.mark.parametrize(
    ("slot", "text", "values"),
    [
        ("order_id", "order #W1234567, not W12", ["#W1234567"]),
        ("item", "The Desk Fan and a mug.", ["desk fan", "mug"]),
        ("items", "the mug 12 and the Lamp 13", [["lamp", "mug"]]),
        ("items", "deskside and smug", []),
        ("option", "from red to Blue, size M, I'm small", ["red", "blue", "M", "small"]),
        ("option", "the same in 1.7 litres", ["1.7 litres"]),
        ("payment", "your PayPal or gift_card_1 or the credit card", ["paypal", "credit_card"]),
        ("reason", "it was ordered by mistake, no longer needed", ["ordered by mistake", "no longer needed"]),
        ("address", f"to {WHERE}.", [ADDRESS]),
    ],
)
def test_values_are_found_among_others(slot, text, values):
    assert [m.value for m in SERVICE.kind(SERVICE.slots[slot]).find(text)] == values


def test_the_zip_code_of_an_address_is_nobodys():
    call = Call(f"send order #W1111111 to a new address, to {WHERE}")
    assert call.first.tool_calls[0].arguments == {"first_name": "Mia", "last_name": "Berg", "zip": "12345"}
    assert f"send order #W1111111 to {WHERE}" in (call.shown(order(MUG)).content or "")


# proposals

GOALS: dict[str, dict[str, Any]] = {
    "cancel": {"order_id": "#W1111111", "reason": "no longer needed"},
    "return": {"order_id": "#W2222222", "items": ["lamp", "mug"]},
    "exchange": {"order_id": "#W3333333", "item": "mug", "option": "blue", "payment": "credit_card"},
    "modify_items": {"order_id": "#W3333333", "item": "mug", "option": "blue", "payment": "paypal"},
    "modify_address": {"order_id": "#W4444444", "address": ADDRESS},
    "modify_payment": {"order_id": "#W5555555", "payment": "gift_card"},
}


class Talk(Conversation):
    """A conversation with a user of one request."""

    def __init__(self, kind: str, seed: int = 0, persona: str = "terse", **more: Any) -> None:
        plain = {"kind": kind, "intent": kind, "then": None, "fallback": None, "unknown": [], "answer": None}
        who = {"name": {"first_name": "Mia", "last_name": "Berg"}, "zip": "12345"}
        agenda = {
            "persona": persona, "identity": who, "wrong": {}, "upfront": True, "impostor": False, "reminds": False,
            "requests": [{**plain, "goal": GOALS[kind], **more}],
        }  # fmt: skip
        task = Task("made-up", "retail", "", None, agenda=agenda)
        super().__init__(ServiceAgendaUser(task, service=SERVICE, seed=seed))


@pytest.mark.parametrize(
    ("kind", "proposal"),
    [
        ("cancel", "I will cancel order #W1111111, no longer needed. Shall I go ahead?"),
        ("cancel", "To confirm: I'll cancel order #W1111111 and refund your PayPal. Is that correct? (yes/no)"),
        ("return", "I will return from order #W2222222: mug 1 and lamp 2 refund to paypal paypal_3. Shall I go ahead?"),
        ("return", "I'm about to return the lamp and the mug. Do you want me to proceed?"),
        ("exchange", "I will exchange in order #W3333333: mug 1 for blue 2 pay with credit card x. Shall I go ahead?"),
        ("exchange", "I will replace your red mug with the blue one and charge your credit card. Should I proceed?"),
        ("modify_items", "I'll change the mug in #W3333333 to the blue one, payment method PayPal. Is that okay?"),
        ("modify_address", f"I will send order #W4444444 to {WHERE}. Shall I go ahead?"),
        ("modify_payment", "I will change the payment of order #W5555555 to gift card x. Shall I go ahead?"),
    ],
)
def test_a_right_proposal_is_confirmed(kind, proposal):
    assert all(is_affirmative(Talk(kind, seed).hear(proposal)) for seed in range(3))


@pytest.mark.parametrize(
    ("kind", "proposal"),
    [
        ("cancel", "I will cancel order #W9999999. Shall I go ahead?"),
        ("cancel", "I will cancel order #W1111111, ordered by mistake. Shall I go ahead?"),
        ("cancel", "I will return order #W1111111. Shall I go ahead?"),
        ("cancel", "I will take care of it. Shall I go ahead?"),
        ("return", "I will return from order #W2222222: mug 1. Shall I go ahead?"),
        ("return", "I will exchange the mug and the lamp of #W2222222. Shall I go ahead?"),
        ("exchange", "I will exchange in order #W3333333: mug 1 for green 2. Shall I go ahead?"),
        ("exchange", "I will exchange mug 1 for blue 2 pay with gift card gift_card_3. Shall I go ahead?"),
        ("exchange", "I will cancel order #W3333333. Shall I go ahead?"),
        ("modify_address", "I will send order #W4444444 to 7 Canal Road, Apt 5, Miami, FL 12345. Shall I go ahead?"),
        ("modify_payment", "I will change the payment of order #W5555555 to paypal x. Shall I go ahead?"),
    ],
)
def test_a_wrong_proposal_is_refused(kind, proposal):
    assert not any(is_affirmative(Talk(kind, seed).hear(proposal)) for seed in range(3))


def test_bad_news_may_be_contracted():
    talk = Talk("exchange", fallback={**GOALS["exchange"], "option": "green"})
    assert "green" in talk.hear("I'm sorry, the blue one isn't available right now. What should we do?")


@pytest.mark.parametrize("persona", ["terse", "chatty", "confused", "impatient"])
def test_a_forgotten_order_is_described_and_its_number_never_said(persona):
    goal = {**GOALS["exchange"], "described order_id": "mug"}
    talk = Talk("exchange", persona=persona, goal=goal, unknown=["order_id"])
    told = [talk.opening, talk.hear("Which order is it?"), talk.hear("Hmm.")]
    assert "the order with the mug in it" in told[1] and not any("#W" in text for text in told)


# the policy


@pytest.mark.parametrize(
    ("wish", "status", "served"),
    [
        ("cancel order #W1111111, it is no longer needed", "pending", True),
        ("cancel order #W1111111, it is no longer needed", "processed", False),
        ("return the mug from order #W1111111", "delivered", True),
        ("return the mug from order #W1111111", "pending", False),
        (f"send order #W1111111 to a new address, to {WHERE}", "delivered", False),
        ("change the mug in order #W1111111 to a blue one", "pending (item modified)", False),
    ],
)
def test_the_status_of_an_order_decides(wish, status, served):
    said_ = Call(wish, order(MUG, status=status)).step.content or ""
    assert (f"order #W1111111 is {status}" in said_) is not served


def test_somebody_elses_order_is_left_alone():
    call = Call("cancel order #W1111111, it is no longer needed", order(MUG, owner="ivan_haas_1001"))
    assert "order #W1111111 is not yours" in (call.step.content or "")


def test_a_swap_takes_what_is_on_stock_and_a_gift_card_must_have_enough():
    call = Call("exchange the mug from order #W1111111 for a green one", order(MUG, LAMP, status="delivered"))
    assert call.step.content == "Which payment method should I use?"
    assert call.hears("With my gift card please.").tool_calls[0].name == "get_user_details"
    assert call.shown(MIA).tool_calls[0].arguments == {"product_id": "911"}
    assert call.shown(MUGS).content == "green is sold out. Available: blue. Which option would you like?"
    assert "gift card is not available" in call.hears("I want a blue one.").content
    proposal = call.hears("Use my paypal please.").content
    assert proposal == "blue 12: exchange mug 11 of order #W1111111, pay with paypal paypal_7. Shall I go ahead?"
    write = call.hears("Yes.").tool_calls[0]
    assert write.name == "exchange_delivered_order_items"
    assert write.arguments == {
        "order_id": "#W1111111", "item_ids": ["11"], "new_item_ids": ["12"], "payment_method_id": "paypal_7",
    }  # fmt: skip


def test_an_order_with_one_item_needs_no_question_and_a_refund_goes_where_it_came_from():
    told = Call("return an item from order #W1111111", order(LAMP, status="delivered", paid="gift_card_8")).step.content
    assert "return from order #W1111111: lamp 22 refund to gift card gift_card_8" in told


def test_a_described_order_is_looked_for():
    call = Call("cancel the order with the lamp in it, it was ordered by mistake")
    assert call.step.tool_calls[0].name == "get_user_details"
    assert call.shown({**MIA, "orders": ["#W2222222", "#W1111111"]}).tool_calls[0].arguments["order_id"] == "#W2222222"
    assert call.shown({**order(MUG), "order_id": "#W2222222"}).tool_calls[0].arguments["order_id"] == "#W1111111"
    assert "cancel order #W1111111, ordered by mistake" in call.shown(order(LAMP)).content


def test_the_experts_errors_show():
    tasks = made("tiny", "train", 32)
    bold = expert(tasks, skip_confirmation=1.0)
    assert sum(e.verdict.audit["writes_without_consent"] for e in bold) > 12
    assert mean([e for t, e in zip(tasks, bold, strict=True) if t.tags["changes_mind"]]) < 0.2
    two = [t for t in made("tiny", "train", 120) if len(t.agenda["requests"]) > 1 and t.agenda["upfront"]]
    assert mean(expert(two, forget_second=1.0)) < 0.9
    forbidden = [t for t in made("tiny", "train", 120) if t.tags["intent"] == "forbidden"]
    assert forbidden and mean(expert(forbidden, try_forbidden=1.0)) < 1, (
        "an order that is somebody else's is no obstacle to the tools"
    )
    assert all(calls(e, "transfer") for e in expert(tasks[:20], needless_transfer=1.0))
    gone = [t for t in made("tiny", "train", 120) if t.tags["intent"].endswith("unavailable")]
    assert mean(expert(gone, transfer_if_unavailable=1.0)) < 0.2
    wrong = expert(tasks, wrong_id=1.0)
    assert mean(wrong) == 1 and sum(m.error for e in wrong for m in e.messages) > 60
    assert len(kit.env("retail").make_domain("official").tool_names()) == 16
    assert any("Which order is it?" in text for e in expert(tasks) for text in said(e))
