"""The rules of the policies, checked against the worlds that tasks end in rather than against the plans.

Each check knows a policy's rules by heart, in Python of its own: a plan that forgot one would fail it.
"""

from __future__ import annotations

from collections import Counter

import pytest

from muarl.domains.generated import Infeasible
from muarl.domains.kit import gold
from muarl.domains.kit.moves import Request
from muarl.domains.kit.requests import split
from muarl.types.chat import ToolCall
from support.kit import SERVICES, env, made, service

TODAY, SOON = "2026-03-14", "2026-03-16"


def owner_of(tables, arguments):
    """Whose records a call names."""
    for value in arguments.values():
        for table in tables:
            record = tables[table].get(value) if isinstance(value, str) else None
            if record is not None:
                for key in ("customer_id", "guest_id", "patient_id", "member_id"):
                    if key in record:
                        yield record[key]


def food(name, a, t):
    order = t["orders"].get(a.get("order_id"))
    if name == "cancel_order":
        return order["status"] == "placed"
    if name == "replace_item":
        dishes = t["restaurants"][order["restaurant_id"]]["dishes"]
        return order["status"] == "placed" and dishes[a["new_dish_id"]]["available"]
    if name == "change_delivery_address":
        customer = t["customers"][order["customer_id"]]
        zone = next(x["zone"] for x in customer["addresses"] if x["address_id"] == a["address_id"])
        return order["status"] in ("placed", "preparing") and zone in t["restaurants"][order["restaurant_id"]]["zones"]
    if name == "set_delivery_instruction":
        return order["status"] not in ("delivered", "cancelled")
    if name == "add_tip":
        return order["status"] != "cancelled" and a["amount"] <= 20
    if name == "refund_item":
        item = next(i for i in order["items"] if i["dish_id"] == a["dish_id"])
        return order["delivered_on"] >= "2026-03-13" and item["price"] <= 20 and not item["refunded"]
    restaurant = t["restaurants"][a["restaurant_id"]]
    dish = restaurant["dishes"][a["dish_id"]]
    customer = t["customers"][a["customer_id"]]
    zone = next(x["zone"] for x in customer["addresses"] if x["address_id"] == a["address_id"])
    enough = dish["price"] * a["quantity"] >= restaurant["minimum"]
    return restaurant["open"] and dish["available"] and zone in restaurant["zones"] and enough


def hotel(name, a, t):
    booking = t["bookings"].get(a.get("booking_id"))
    if name == "book_room":
        room = t["hotels"][a["hotel_id"]]["rooms"][a["room_type"]]
        return a["nights"] <= 14 and a["people"] <= room["sleeps"] and a["check_in"] not in room["full"]
    flexible = booking["status"] == "confirmed" and booking["rate"] == "flexible"
    if name == "cancel_booking":
        return flexible and booking["check_in"] >= SOON and booking["total"] <= 1500
    if name == "change_dates":
        return flexible and booking["check_in"] >= SOON and a["nights"] <= 14
    if name == "change_room":
        other = a["room_type"] != booking["room_type"]
        return (
            flexible
            and other
            and booking["people"] <= t["hotels"][booking["hotel_id"]]["rooms"][a["room_type"]]["sleeps"]
        )
    if booking["status"] not in ("confirmed", "checked in"):
        return False
    if name == "set_late_checkout":
        tier = t["guests"][booking["guest_id"]]["tier"]
        return a["until"] <= {"silver": "14:00", "gold": "16:00"}.get(tier, "00:00")
    return name != "add_breakfast" or not booking["breakfast"]


def bank(name, a, t):
    card, account = t["cards"].get(a.get("card_id")), t["accounts"].get(a.get("account_id"))
    if name == "move_money":
        return a["amount"] <= 2000 and a["amount"] <= t["accounts"][a["from_account_id"]]["balance"]
    if name == "send_payment":
        return a["amount"] <= 2000 and account["kind"] != "savings"
    if name in ("lock_card", "set_card_limit"):
        return card["status"] == "active" and a.get("daily_limit", 0) <= 3000
    if name == "unlock_card":
        return card["locked_by"] == "customer" and not card["replacement"]
    if name == "replace_card":
        return card["status"] != "expired" and not card["replacement"]
    if name == "dispute_transaction":
        payment = t["transactions"][a["transaction_id"]]
        return payment["date"] >= "2026-01-13" and payment["amount"] <= 1000 and payment["status"] == "posted"
    return t["standing_orders"][a["standing_order_id"]]["status"] == "active"


def clinic(name, a, t):
    if name in ("book_appointment", "add_to_waiting_list"):
        doctor, patient = t["doctors"][a["doctor_id"]], t["patients"][a["patient_id"]]
        referred = not doctor["referral"] or doctor["specialty"] in patient["referrals"]
        return referred and (name == "book_appointment" or doctor["waiting_list"])
    if name in ("reschedule_appointment", "cancel_appointment"):
        visit = t["appointments"][a["appointment_id"]]
        return visit["status"] == "booked" and visit["kind"] == "visit" and visit["date"] >= SOON
    if name == "renew_prescription":
        rx = t["prescriptions"][a["prescription_id"]]
        return not rx["controlled"] and rx["refills_left"] > 0 and rx["days_since_issued"] >= 25
    return name == "update_phone"


def insurance(name, a, t):
    claim, policy = t["claims"].get(a.get("claim_id")), t["policies"].get(a.get("policy_id"))
    if name == "file_claim":
        timely = "2026-02-12" <= a["date_of_loss"] <= TODAY
        covered = policy["status"] == "active" and a["cause"] in policy["covers"]
        return timely and covered and policy["deductible"] < a["amount"] <= 10_000
    if name == "add_document":
        return claim["status"] in ("open", "waiting for documents") and a["document"] not in claim["documents"]
    if name == "withdraw_claim":
        return claim["status"] in ("open", "waiting for documents")
    if name == "appeal_claim":
        return claim["status"] == "rejected" and claim["decided_on"] >= "2026-01-13"
    if name == "schedule_inspection":
        never = ("lost luggage", "cancelled trip", "medical emergency", "surgery", "poisoning")
        return claim["status"] in ("open", "waiting for documents") and claim["cause"] not in never
    if name == "set_payout_method":
        live = claim["status"] in ("open", "waiting for documents", "approved")
        return live and (a["method"] != "prepaid card" or claim["amount"] <= 500)
    other = a.get("deductible") != policy["deductible"]
    return policy["status"] == "active" and policy["ends_on"] >= "2026-04-13" and other


RULES = {"food-delivery": food, "hotel": hotel, "bank": bank, "clinic": clinic, "insurance": insurance}


@pytest.mark.parametrize("name", SERVICES)
def test_every_gold_write_keeps_the_policy(name):
    domain = env(name).make_domain("medium")
    seen = Counter()
    for task in (*made(name, count=100), *made(name, count=100, split="train")):
        world = domain.world(task)
        caller = None
        for action in task.actions:
            tables, kind = world.toolkit().db, domain.kind_of(action.name)
            if kind == "write":  # the rules look at the world as it is before
                seen[action.name] += 1
                assert set(owner_of(tables, action.arguments)) <= {caller}, (task.id, action)
                assert RULES[name](action.name, action.arguments, tables), (task.id, action)
            result = world.call("assistant", ToolCall("x", action.name, action.arguments))
            assert not result.error
            if caller is None:
                caller = next(owner_of(tables, {"x": result.content.split('": "')[1].split('"')[0]}))
    writes = {t for t in domain.tool_names() if domain.kind_of(t) == "write"}
    assert set(seen) == writes, f"no task uses {writes - set(seen)}"


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_refused_would_break_a_rule_or_meet_an_error(name):
    """The request of a forbidden task, done all the same: the tool refuses, or a rule of the policy is broken."""
    domain, called = env(name).make_domain("medium"), service(name)
    done = 0
    for task in (*made(name, count=100), *made(name, count=100, split="train")):
        if task.tags["intent"] != "forbidden":
            continue
        assert not any(domain.kind_of(a.name) == "write" for a in task.actions) and task.reward_basis == ("DB",)
        world = domain.world(task)
        tables = world.toolkit().db.to_tables()
        shown = gold.call(world, task.actions[0].name, task.actions[0].arguments)
        slots, described = split(task.agenda["requests"][0]["goal"])
        slots = {k: v for k, v in slots.items() if k not in described}
        request = Request(task.agenda["requests"][0]["kind"], slots, described, over=True)
        try:
            gold.run(called, lambda world=world: world, shown, request)
        except Infeasible:
            continue
        for call in world.writes:
            done += 1
            mine = set(owner_of(tables, call.arguments)) <= {shown[called.identity.key]}
            assert not (mine and RULES[name](call.name, call.arguments, tables)), (task.id, call)
    assert done >= 3
