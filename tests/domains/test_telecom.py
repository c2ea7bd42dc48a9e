"""Telecom's accounts on a small carrier: TAU2's texts and oddities, both sides in step, and what tasks set up."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from muarl.basics.errors import DataError
from muarl.domains.database import Database
from muarl.domains.tasks import Action
from muarl.rewards.gold import gold_world
from muarl.types.chat import ToolCall
from muarl_worlds.tau.telecom.domain import Telecom, TelecomWorkflow, telecom_policy
from muarl_worlds.tau.telecom.records import phone_database, telecom_database
from support.carrier import PHONE, action, agent, around, carrier, device, tables, task, user, world

BOTH = pytest.mark.parametrize("semantics", ["official", "fixed"])


def test_records_are_shown_as_tau2_shows_them():
    ann = agent(world(), "get_customer_by_id", customer_id="C1").content
    assert ann.startswith('{"customer_id": "C1", "full_name": "Ann \\u00d6hm", "date_of_birth"')
    assert ann.endswith(
        '"bill_ids": ["B1", "B2", "B3"], "created_at": "2025-01-01", "last_extension_date": null, '
        '"goodwill_credit_used_this_year": 0.0}'
    )
    for name, arguments in [
        ("get_customer_by_phone", {"phone_number": PHONE}),
        ("get_customer_by_phone", {"phone_number": "555-0102"}),
        ("get_details_by_id", {"id": "C1"}),
    ]:
        assert agent(world(), name, **arguments).content == ann
    found = agent(world(), "get_customer_by_name", full_name="ann öhm", dob="1985-06-15").content
    assert found == f"[{ann}]"
    assert agent(world(), "get_customer_by_name", full_name="Ann", dob="1985-06-15").content == "[]"
    assert agent(world(), "get_details_by_id", id="D1").content == (
        '{"device_id": "D1", "device_type": "phone", "model": "X", "imei": null, "is_esim_capable": true, '
        '"activated": false, "activation_date": "2025-01-20 14:30:00", "last_esim_transfer_date": null}'
    )
    assert '"status": "Pending Activation"' in agent(world(), "get_details_by_id", id="L2").content
    shown = json.loads(agent(world(), "get_bills_for_customer", customer_id="C1", limit=2).content)
    assert [b["bill_id"] for b in shown] == ["B2", "B3"] and shown[0]["total_due"] == 40.0


def test_numbers_outside_records_become_strings():
    assert agent(world(), "get_data_usage", customer_id="C1", line_id="L1").content == (
        '{"line_id": "L1", "data_used_gb": "4.5", "data_limit_gb": "5.0", "data_refueling_gb": "0.0", '
        '"cycle_end_date": "2025-02-28"}'
    )
    assert agent(world(), "refuel_data", customer_id="C1", line_id="L1", gb_amount=2).content == (
        '{"message": "Successfully added 2 GB of data for line L1 for $4.00", "new_data_refueling_gb": "2.0", '
        '"charge": "4.0"}'
    )
    plain = carrier(render=lambda name, value: f"{name} {value['charge']}")
    assert (
        agent(plain.world(), "refuel_data", customer_id="C1", line_id="L1", gb_amount=1.5).content == "refuel_data 3.0"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("get_customer_by_phone", {"phone_number": "9"}, "Customer with phone number 9 not found"),
        ("get_customer_by_id", {"customer_id": ["C1"]}, "Customer with ID ['C1'] not found"),
        ("get_customer_by_name", {"full_name": 3, "dob": "x"}, "'int' object has no attribute 'lower'"),
        ("get_details_by_id", {"id": "L9"}, "Line with ID L9 not found"),
        ("get_details_by_id", {"id": "B"}, "Bill with ID B not found"),
        ("get_details_by_id", {"id": "x"}, "Unknown ID format or type: x"),
        ("get_details_by_id", {"id": None}, "'NoneType' object has no attribute 'startswith'"),
        ("suspend_line", {"customer_id": "C1", "line_id": "L3", "reason": ""}, "Line L3 not found for customer C1"),
        ("suspend_line", {"customer_id": "C1", "line_id": "L2", "reason": ""}, "Line must be active to suspend"),
        ("resume_line", {"customer_id": "C2", "line_id": "L3"}, "Line must be suspended to resume"),
        ("send_payment_request", {"customer_id": "C2", "bill_id": "B1"}, "Bill B1 not found for customer C2"),
        ("refuel_data", {"customer_id": "C1", "line_id": "L1", "gb_amount": 0}, "Refuel amount must be positive"),
        (
            "get_bills_for_customer",
            {"customer_id": "C1", "limit": "2"},
            "slice indices must be integers or None or have an __index__ method",
        ),
        (
            "refuel_data",
            {"customer_id": "C1", "line_id": "L1", "gb_amount": "2"},
            "'<=' not supported between instances of 'str' and 'int'",
        ),
        (
            "enable_roaming",
            {"customer_id": "C1"},
            "TelecomTools.enable_roaming() missing 1 required positional argument: 'line_id'",
        ),
        ("toggle_data", {}, "Tool 'toggle_data' not found."),
        ("set_data_usage", {}, "Tool 'set_data_usage' not found."),
    ],
)
def test_official_errors_are_tau2s(name, arguments, text):
    result = agent(world(), name, **arguments)
    assert (result.content, result.error) == (f"Error: {text}", True)


@BOTH
def test_lines_are_suspended_and_resumed_and_the_phone_learns_of_it_at_once(semantics):
    live = world(semantics=semantics)
    shown = json.loads(agent(live, "suspend_line", customer_id="C1", line_id="L1", reason="lost").content)
    assert shown["message"] == "Line suspended successfully. $5/month holding fee will apply."
    assert (shown["line"]["status"], shown["line"]["suspension_start_date"]) == ("Suspended", "2025-02-25")
    assert around(live, "line_active") is False
    assert device(live, "network_connection_status") == "connected"  # until the phone looks for a network again
    assert "No Signal" in user(live, "toggle_data")
    shown = json.loads(agent(live, "resume_line", customer_id="C1", line_id="L1").content)
    assert (shown["message"], shown["line"]["suspension_start_date"]) == ("Line resumed successfully", None)
    assert "Excellent | 5G" in user(live, "reboot_device")
    assert agent(live, "resume_line", customer_id="C1", line_id="L2").content.startswith('{"message"')


@BOTH
def test_roaming_and_used_up_data_reach_the_phone(semantics):
    live = world(action("user", "set_user_location", abroad=True), semantics=semantics)
    line = {"customer_id": "C1", "line_id": "L1"}
    assert agent(live, "disable_roaming", **line).content == "Roaming was already disabled"
    assert agent(live, "enable_roaming", **line).content == "Roaming enabled successfully"
    assert agent(live, "enable_roaming", **line).content == "Roaming was already enabled"
    assert user(live, "run_speed_test") == "Speed test failed: No Connection."
    user(live, "toggle_roaming")
    assert user(live, "run_speed_test").startswith("Speed Test Result: 275.00 Mbps (Excellent).")
    used_up = world(action("assistant", "set_data_usage", **line, data_used_gb=5.0), semantics=semantics)
    assert user(used_up, "run_speed_test") == "Speed test failed: No Connection."
    agent(used_up, "refuel_data", **line, gb_amount=0.5)
    assert user(used_up, "run_speed_test").startswith("Speed Test Result")


@BOTH
def test_a_bill_is_asked_for_paid_by_the_user_and_settled(semantics):
    live = world(semantics=semantics)
    assert user(live, "make_payment") == "You do not have a payment request."
    ask = {"customer_id": "C1", "bill_id": "B3"}
    assert agent(live, "send_payment_request", **ask).content == "Payment request sent to the customer for bill B3"
    again = agent(live, "send_payment_request", **{**ask, "bill_id": "B2"})
    assert again.content == "Error: A bill is already awaiting payment for this customer"
    assert user(live, "check_payment_request") == "You have a payment request for bill B3 of 40.0 USD."
    assert user(live, "make_payment") == "Payment of 40.0 USD has been made for bill B3."
    assert live.toolkit().db.bills.peek("B3")["status"] == "Paid" and around(live, "payment_request") is None
    assert user(live, "check_payment_request") == "No payment request has been made."


def test_gold_actions_run_out_of_step_officially_and_in_step_when_fixed():
    actions = (
        Action("send_payment_request", {"customer_id": "C1", "bill_id": "B3"}),
        Action("make_payment", {}, "user"),
        Action("nonsense", {}),
    )
    states = []
    for semantics in ("official", "fixed"):
        gold = gold_world(carrier(semantics=semantics), task(actions=actions))
        states.append(gold.toolkit().db.bills.peek("B3")["status"])
    assert states == ["Awaiting Payment", "Paid"]


def test_a_charge_goes_to_the_draft_bill_or_opens_one():
    live = world()
    agent(live, "refuel_data", customer_id="C1", line_id="L1", gb_amount=1.5)
    draft = live.toolkit().db.bills.peek("B2")
    assert draft["total_due"] == 43.0
    assert draft["line_items"] == [
        {"description": "Data refueling: 1.5 GB at $2.0/GB", "amount": 3.0, "date": "2025-02-25", "item_type": "Charge"}
    ]
    digests = {}
    for semantics in ("official", "fixed"):
        worlds = [world(semantics=semantics) for _ in range(2)]
        for each in worlds:
            agent(each, "refuel_data", customer_id="C2", line_id="L3", gb_amount=1)
        digests[semantics] = {w.digest() for w in worlds}
        opened = list(worlds[0].toolkit().db.customers.peek("C2")["bill_ids"])
        bill = json.loads(agent(worlds[0], "get_details_by_id", id=opened[0]).content)
        assert (bill["customer_id"], bill["status"], bill["total_due"]) == ("C2", "Draft", 2.0)
        assert [bill[f] for f in ("period_start", "period_end", "due_date")] == [
            "2025-03-01",
            "2025-03-31",
            "2025-03-15",
        ]
        assert re.fullmatch(r"B[0-9a-f]{8}" if semantics == "official" else "B1004", opened[0])
    assert [len(d) for d in digests.values()] == [2, 1]


def test_amounts_that_are_no_number_are_refused_when_fixed():
    call = {"customer_id": "C1", "line_id": "L1", "gb_amount": float("nan")}
    assert '"charge": "nan"' in agent(world(), "refuel_data", **call).content
    fixed = world(semantics="fixed")
    before = fixed.digest()
    assert agent(fixed, "refuel_data", **call).content == "Error: Refuel amount must be positive"
    assert fixed.digest() == before


def test_an_overdue_bill_suspends_the_line():
    late = {"customer_id": "C1", "line_id": "L1", "new_bill_id": "B9", "contract_ended": True}
    live = world(action("assistant", "suspend_line_for_overdue_bill", **late))
    kit = live.toolkit()
    line, bill = kit.db.lines.peek("L1"), kit.db.bills.peek("B9")
    assert (line["status"], line["contract_end_date"], around(live, "line_active")) == (
        "Suspended",
        "2025-01-31",
        False,
    )
    assert (bill["status"], bill["issue_date"], bill["due_date"], bill["total_due"]) == (
        "Overdue",
        "2025-01-01",
        "2025-01-15",
        40.0,
    )
    assert kit.assert_overdue_bill_exists("C1", "B9") and not kit.assert_no_overdue_bill("B9")
    assert kit.assert_line_status("C1", "L1", "Suspended") and kit.assert_data_refueling_amount("C1", "L1", 0)
    agent(live, "send_payment_request", customer_id="C1", bill_id="B9")
    user(live, "make_payment")
    assert kit.assert_no_overdue_bill("B9") and kit.assert_no_overdue_bill("B10")
    with pytest.raises(ValueError, match="Overdue bill B9 is not overdue"):
        kit.assert_overdue_bill_exists("C1", "B9")
    with pytest.raises(DataError, match="'suspend_line_for_overdue_bill': ValueError: Line must be active"):
        world(action("assistant", "suspend_line_for_overdue_bill", **{**late, "line_id": "L2"}))


@pytest.mark.parametrize("name", ["nonsense", "_bar", "world", "tool_specs"])
def test_initial_actions_are_functions_of_the_domain_only(name):
    with pytest.raises(DataError, match=f"telecom task 't1': initial action {name!r}: ValueError: there is no such"):
        world(action("user", name))


def test_a_user_without_a_line_is_named():
    with pytest.raises(DataError, match="'set_user_info': ValueError: Line with phone number 9 not found"):
        world(action("user", "set_user_info", name="Nobody", phone_number="9"), user=False)


def test_initial_data_are_laid_over_both_sides():
    lines = {"L1": {"data_used_gb": 9}}
    phone = {"device": {"data_saver_mode": True, "active_apn_settings": {"mms_port": 80}}}
    fixed = world(semantics="fixed", initial_data={"agent_data": {"lines": lines}, "user_data": phone})
    assert fixed.toolkit().db.lines.peek("L1")["data_used_gb"] == 9.0
    assert around(fixed, "mobile_data_usage_exceeded") is True
    settings = device(fixed, "active_apn_settings")
    assert (settings["mms_port"], settings["apn_name"], device(fixed, "data_saver_mode")) == (80, "internet", True)
    whole = {"lines": [{"line_id": "L1", "phone_number": PHONE, "plan_id": "P1"}]}
    fixed = world(semantics="fixed", initial_data={"assistant": whole, "user": None})
    assert list(fixed.toolkit().db.lines) == ["L1"]
    with pytest.raises(DataError, match=r"initial data: DataError: telecom database: lines\.0\.nonsense"):
        world(semantics="fixed", initial_data={"agent_data": {"lines": {"L1": {"nonsense": 1}}}})
    with pytest.raises(DataError, match="no table 'surroundings'"):  # TAU2 then gives the user the agent's database
        world(initial_data={"agent_data": {"lines": lines}})


def test_the_hash_is_that_of_tau2s_lists():
    database = telecom_database(tables())
    plain = {name: list(table.values()) for name, table in database.to_tables().items()}
    expected = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    live = carrier().world()
    assert live.full_hash() == database.view().full_hash() == expected
    by_id = {n: {r[n[:-1] + "_id"]: r for r in t} for n, t in tables().items()}
    assert telecom_database(by_id).view().full_hash() == expected
    new = {"bill_id": "B9", "customer_id": "C1"}
    changed = database.derive({"bills": {"B1": None, "B9": new}})
    plain["bills"] = [*plain["bills"][1:], new]
    expected = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    view = database.view()
    del view.bills["B1"]
    view.bills["B9"] = new
    assert changed.view().full_hash() == view.full_hash() == expected
    assert changed.view().digest() == view.digest()


def test_tables_keep_their_order_and_lists_show_no_keys():
    records = {"b": {"n": 1}, "a": {"n": 2}}
    hashes = {Database({"t": records}, lists=lists).view().full_hash() for lists in ((), ("t",))}
    texts = ('{"t": {"a": {"n": 2}, "b": {"n": 1}}}', '{"t": [{"n": 1}, {"n": 2}]}')
    assert hashes == {hashlib.sha256(text.encode()).hexdigest() for text in texts}


def test_of_two_records_with_one_id_the_first_is_found_and_both_are_kept():
    doubled = tables()
    doubled["bills"].append({**doubled["bills"][0], "total_due": 7})
    kit = carrier(database=doubled).world().toolkit()
    assert kit.get_details_by_id("B1")["total_due"] == 40.0 and len(kit.db.bills) == 4
    with pytest.raises(ValueError, match="Bill with ID B1' not found"):
        kit.get_details_by_id("B1'")


@pytest.mark.parametrize(
    ("read", "given", "text"),
    [
        (telecom_database, {"lines": [{"line_id": "L1"}]}, r"telecom database: lines\.0\.phone_number: Field required"),
        (telecom_database, {"nonsense": []}, "telecom database: nonsense: Extra inputs are not permitted"),
        (telecom_database, [], "telecom database: it must be tables of records, not list"),
        (phone_database, {"device": {"battery_level": "full"}}, r"phone database: device\.battery_level: Input"),
    ],
)
def test_a_malformed_database_is_named(read, given, text):
    with pytest.raises(DataError, match=text):
        read(given)


def test_the_policy_is_put_together_from_its_parts(tmp_path, monkeypatch):
    assert telecom_policy("a", "b") == (
        "<main_policy>\na\n</main_policy>\n<tech_support_policy>\nb\n</tech_support_policy>"
    )
    assert carrier().policy_text == "Be exact." and TelecomWorkflow(database=tables()).name == "telecom-workflow"
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    for make in (lambda: Telecom().policy_text, lambda: Telecom().base, lambda: Telecom()._user.base):
        with pytest.raises(DataError, match="muarl data add tau2"):
            make()


def test_wrong_sides_and_arguments_are_explained_when_fixed():
    fixed = world(semantics="fixed")
    assert "there is no tool 'toggle_data'" in agent(fixed, "toggle_data").content
    assert "there is no tool 'refuel_data'" in user(fixed, "refuel_data")
    assert (
        "argument 'gb_amount' must be a number"
        in agent(fixed, "refuel_data", customer_id="C1", line_id="L1", gb_amount="2").content
    )
    assert fixed.call("user", ToolCall("1", "set_apn_settings", {"apn_settings": "x"}, "user")).error
