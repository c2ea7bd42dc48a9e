"""What telecom callers understand of an agent and of their phone, and what the expert reads."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.chat import ToolCall
from muarl.domains.telecom import hearing, phrases, reading, speech
from muarl.domains.telecom.customers import SIZES, make_carrier
from muarl.domains.telecom.generated import compact, generated_telecom
from muarl.domains.telecom.hearing import hear, instructions, phone_facts, spoken_kinds
from muarl.domains.telecom.official import official_agenda
from muarl.domains.telecom.records import telecom_database
from support.telecom import TROUBLE, agenda_task, made

# what an agent asks for

STEPS = {
    "look_network": [("read", "check_network_status")],
    "look_bar": [("read", "check_status_bar")],
    "look_calling": [("read", "check_wifi_calling_status")],
    "look_app": [("read", "check_app_permissions")],
    "look_apn": [("read", "check_apn_settings")],
    "test_speed": [("read", "run_speed_test")],
    "airplane": [("set", "airplane off")],
    "sim": [("sim", "")],
    "apn": [("apn", ""), ("reboot", "")],
    "restart": [("reboot", "")],
    "data": [("set", "data on")],
    "mode": [("mode", "4g_5g_preferred")],
    "roaming": [("set", "roaming on")],
    "saver": [("set", "saver off")],
    "vpn": [("set", "vpn off")],
    "calling": [("set", "wifi_calling off")],
    "sms": [("grant", "sms")],
    "storage": [("grant", "storage")],
    "both": [("grant", "sms"), ("grant", "storage")],
    "again": [("try", "")],
    "abroad": [],
    "pay": [("pay", "")],
}


def test_the_experts_own_words_are_understood():
    assert {step: instructions(text) for step, text in speech.SAY.items()} == STEPS
    for text in (*speech.ASK.values(), "Done. Anything else?", "You have used 2.0 GB.", "How can I help you?"):
        assert instructions(text) == [], text
    for text in speech.PROPOSE.values():
        assert instructions(f"{text}. Shall I go ahead?") == [], text


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Could you please check your status bar and tell me what you see?", [("read", "check_status_bar")]),
        ("Please toggle Airplane Mode OFF and let me know if service is restored.", [("set", "airplane off")]),
        ("If airplane mode is on, please turn it off.", [("set", "airplane off")]),
        ("Please check if Data Saver mode is on. If it is, turn it off.", [("set", "saver off")]),
        ("Please run the `check_network_status()` tool.", [("read", "check_network_status")]),
        ("Can you use toggle_airplane_mode() to turn off airplane mode?", [("set", "airplane off")]),
        ("Is your SIM card inserted properly?", [("read", "check_sim_status")]),
        ("Please remove and re-insert your SIM card, then restart your phone.", [("sim", ""), ("reboot", "")]),
        ("I'd like you to reset your APN settings and then reboot the device.", [("apn", ""), ("reboot", "")]),
        ("I have enabled roaming. Could you please run a speed test now?", [("read", "run_speed_test")]),
        ("Please make sure that Mobile Data is turned ON.", [("set", "data on")]),
        ("Please turn mobile data off.", [("set", "data off")]),
        ("Please check whether mobile data is turned on.", [("read", "check_network_status")]),
        ("Can you tell me your network mode preference?", [("read", "check_network_mode_preference")]),
        ("Please change the network mode preference to 4g_5g_preferred.", [("mode", "4g_5g_preferred")]),
        ("Set your network mode to 3g_only.", [("mode", "3g_only")]),
        ("Grant the storage and SMS permissions to the messaging app.", [("grant", "sms"), ("grant", "storage")]),
        ("Please check the app permissions (check_app_permissions).", [("read", "check_app_permissions")]),
        ("Are you able to send picture messages now?", [("read", "can_send_mms")]),
        ("I have sent a request. Please check your payment requests and make the payment.", [("pay", "")]),
        ("Please check your payment requests.", [("read", "check_payment_request")]),
        (
            "Please disconnect from the VPN and run another speed test.",
            [("set", "vpn off"), ("read", "run_speed_test")],
        ),
        ("Turn off Wi-Fi Calling.", [("set", "wifi_calling off")]),
        ("Please turn your phone off and on again.", [("reboot", "")]),
        ("1. Turn on data roaming\n2. Run a speed test", [("set", "roaming on"), ("read", "run_speed_test")]),
        ("Does the internet work now?", [("try", "")]),
        ("Would you like me to send a payment request?", []),
        ("I will now turn on roaming for your line.", []),
        ("Your line is suspended.", []),
        ("That is paid bill B1234 of $20.00. Anything else?", []),
    ],
)
def test_what_other_agents_say_is_understood_too(text, steps):
    assert instructions(text) == steps


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("May I have the phone number associated with your account?", {"ask_identity", "question"}),
        ("Are you currently traveling outside your home country?", {"ask_abroad", "question"}),
        ("How many GB would you like to add?", {"ask_amount", "question"}),
        ("I cannot add more than 2.0 GB.", {"limit", "refuse"}),
        ("I'm sorry to hear that you cannot send messages.", set()),
        ("I am sorry, but I cannot do that for you.", {"refuse"}),
        ("YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.", {"transferred"}),
        ("Is there anything else I can help you with?", {"done", "question"}),
        ("What seems to be the problem?", {"ask_help", "question"}),
    ],
)
def test_acts(text, acts):
    assert hear(text) == acts


def test_proposals_tell_their_kind():
    for kind in ("refuel", "roaming_on", "roaming_off", "pay", "suspend", "resume"):
        assert spoken_kinds(speech.PROPOSE[kind]) == {kind}
    assert spoken_kinds("Shall I lift the suspension of your line?") == {"resume"}
    assert hearing.proposed_amount("refuel line L12 with 1.5 GB at $2.00 per GB") == 1.5
    assert hearing.proposed_amount("at $2.00 per GB") is None


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_no_text_makes_anybody_stumble(text):
    instructions(text), hear(text), spoken_kinds(text), phone_facts(text)
    reading.read_facts(text), reading.read_requests(text), reading.read_slots(text), reading.read_identity(text)
    reading.read_outcome(text), reading.declines(text), reading.drops(text)


# what the phone says


def used(world, name, **arguments):
    return phone_facts(world.call("user", ToolCall("1", name, arguments, "user")).content)


def test_every_tool_of_the_phone_is_read():
    wrong = ["airplane_mode", "sim_out", "data_off", "mode_2g", "roaming_off"]
    world = generated_telecom("tiny").world(agenda_task(faults=wrong))
    assert used(world, "check_network_status") == {
        "airplane": "on", "sim": "missing", "signal": "none", "data": "off", "roaming": "off"
    }  # fmt: skip
    assert used(world, "check_status_bar") == {"airplane": "on", "vpn": "off"}
    assert used(world, "toggle_airplane_mode") == {"airplane": "off", "signal": "none", "vpn": "off"}
    assert used(world, "check_sim_status") == {"sim": "missing"}
    assert used(world, "run_speed_test") == {"speed": "none"}
    assert used(world, "check_network_mode_preference") == {"mode": "2g_only"}
    after = used(world, "reseat_sim_card")
    assert after == {"airplane": "off", "signal": "poor", "network": "2G", "data": "off", "vpn": "off"}
    assert used(world, "check_sim_status") == {"sim": "active"}
    assert used(world, "toggle_data")["data"] == "on"
    assert used(world, "toggle_roaming")["roaming"] == "on"
    assert used(world, "set_network_mode_preference", mode="4g_5g_preferred")["network"] == "5G"
    assert used(world, "run_speed_test") == {"speed": "excellent"}
    assert used(world, "can_send_mms") == {"mms": "on"}
    other = generated_telecom("tiny").world(agenda_task(faults=["data_saver", "slow_vpn"]))
    bar = used(other, "check_status_bar")
    assert (bar["saver"], bar["vpn"], bar["signal"]) == ("on", "on", "excellent")
    assert used(other, "check_data_restriction_status") == {"saver": "on"}
    assert used(other, "check_vpn_status") == {"vpn": "on"} and used(other, "disconnect_vpn")["vpn"] == "off"
    assert used(other, "run_speed_test") == {"speed": "good"}
    assert used(other, "toggle_data_saver_mode")["saver"] == "off"
    third = generated_telecom("tiny").world(agenda_task(faults=["wifi_calling", "app_storage", "mms_apn"]))
    assert used(third, "check_wifi_calling_status") == {"wifi_calling": "on"}
    assert used(third, "check_app_permissions", app_name="messaging") == {"sms": "on", "storage": "off"}
    assert used(third, "check_apn_settings") == {"apn": "internet", "mmsc": "off"}
    assert used(third, "can_send_mms") == {"mms": "off"}
    assert used(third, "grant_app_permission", app_name="messaging", permission="storage")["storage"] == "on"
    assert used(third, "check_wifi_status") == {"wifi": "off"} and used(third, "toggle_wifi")["wifi"] == "on"


def test_what_a_caller_tells_of_the_phone_is_read_back():
    for key, words in phrases.FACT_WORDS.items():
        for value in words:
            for persona in phrases.LEADS:
                text = phrases.say_facts(random.Random(1), persona, {key: value})
                assert reading.read_facts(text) == {key: value}
    everything = {key: next(iter(words)) for key, words in phrases.FACT_WORDS.items()}
    assert reading.read_facts(phrases.say_facts(random.Random(2), "chatty", everything)) == everything
    assert phrases.say_facts(random.Random(0), "terse", {"network": "none"}) == ""


def test_outcomes_are_told_apart():
    assert all(reading.read_outcome(t) is True for t in phrases.WORKS)
    assert all(reading.read_outcome(t) is False for t in phrases.FAILS)
    assert reading.read_outcome("It says no signal.") is None
    assert all(reading.declines(t) for t in phrases.REFUSES) and all(reading.drops(t) for t in phrases.DROPS)


# what callers want


def test_what_a_caller_wants_is_read_back():
    for task in [*made("tiny", "train", 120), *made("small", "train", 120)]:
        for request in task.agenda["requests"]:
            kind, wish = request["kind"], request["wish"]
            text = phrases.say_wish(random.Random(0), kind, wish, list(wish))
            (frame,) = reading.read_requests(text)
            assert frame.kind == kind, text
            expected = {k: v for k, v in wish.items() if v is not None}
            if "abroad" in wish:
                expected = {"abroad": True} if wish["abroad"] else {}
            assert frame.slots == expected, text


def test_identities_are_read_in_every_phrasing():
    who = {"name": "Mia Berg", "dob": "1985-06-15"}
    for seed in range(12):
        text = phrases.say_identity(random.Random(seed), who, "555-234-0001")
        assert reading.read_identity(text) == {"phone_number": "555-234-0001"}
    text = phrases.say_identity(random.Random(0), who, None)
    assert reading.read_identity(text) == {"full_name": "Mia Berg", "dob": "1985-06-15"}
    assert reading.read_identity("My phone has no service.") is None


# observations


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_observations_are_read_back_as_they_were_written(size):
    tables = telecom_database(make_carrier("r", SIZES[size]).tables).to_tables()
    lines = tables["lines"]
    next(iter(lines.values())).update(contract_end_date="2025-01-31", status="Suspended")
    for write in (lambda tool, value: json.dumps(value), compact):
        for customer in tables["customers"].values():
            for given_ in (customer, [customer]):
                read = reading.read_customer(write("get_customer_by_name", given_))
                assert read == reading.Customer(customer["customer_id"], tuple(customer["line_ids"]))
            bills = [tables["bills"][b] for b in customer["bill_ids"]]
            seen = reading.read_bills(write("get_bills_for_customer", bills))
            assert [(b.bill_id, b.status, float(b.total)) for b in seen] == [
                (b["bill_id"], b["status"].lower(), b["total_due"]) for b in bills
            ]
            assert reading.read_bills(write("get_details_by_id", bills[0])) == seen[:1]
        for number, line in enumerate(lines.values()):
            read = reading.read_line(write("get_details_by_id", line))
            assert (read.line_id, read.status, read.ended) == (line["line_id"], line["status"], number == 0)
            assert (read.plan, read.roaming) == (line["plan_id"], line["roaming_enabled"])
            assert read.number in ("", line["phone_number"])
        for plan in tables["plans"].values():
            assert float(reading.read_price(write("get_details_by_id", plan))) == plan["data_refueling_price_per_gb"]
    domain = generated_telecom("tiny")
    for value, full in ((3.0, False), (6.5, True)):
        usage = {"line_id": "L1", "data_used_gb": value, "data_limit_gb": 5.0, "data_refueling_gb": 1.5}
        assert reading.read_usage(compact("get_data_usage", usage)) == (str(value), full)
        assert reading.read_usage(json.dumps({k: str(v) for k, v in usage.items()})) == (str(value), full)
    assert reading.read_customer("nobody") is None and reading.read_customer("[]") is None
    assert domain.render("get_customer_by_name", []) == "nobody"


@pytest.mark.parametrize("text", ["", "line", "Error: Line not found", "plan P1", "[]"])
def test_what_is_no_line_price_or_usage_is_an_error_and_no_nonsense(text):
    for read in (reading.read_line, reading.read_price, reading.read_usage):
        with pytest.raises((ValueError, TypeError)):
            read(text)


def test_a_compact_device_and_deeds():
    assert compact("get_details_by_id", {"device_id": "D1", "model": "Nova 3"}) == "device D1 Nova 3"
    assert compact("enable_roaming", "Roaming enabled successfully") == "Roaming enabled successfully"
    assert compact("get_bills_for_customer", []) == "no bills"
    assert compact("refuel_data", {"message": "m", "new_data_refueling_gb": 1.5, "charge": 3.0}) == "refueled, 1.5 GB"


# a benchmark's scenario

SCENARIO = """Instructions:
	Domain: telecom
	Reason for call:
		You are unable to send MMS messages using your messaging app for the past few hours.
	Known info:
		You are Ann Doe with phone number 555-000-1111. You are currently abroad in France.
	Task instructions:
		You are willing to refuel 2.0 GB of data if necessary."""


def test_an_official_scenario_becomes_an_agenda():
    task = type(agenda_task())("x", "telecom", SCENARIO, None, tags={"persona": "Hard"})
    agenda = official_agenda(task)
    assert agenda is not None and json.loads(json.dumps(agenda)) == agenda
    assert agenda["identity"] == {"name": "Ann Doe", "phone": "555-000-1111", "dob": None}
    (request,) = agenda["requests"]
    assert request["kind"] == "mms" and request["wish"] == {**TROUBLE, "abroad": "France"}
    assert agenda["persona"] == "confused"
    assert official_agenda(type(task)("x", "telecom", "Cancel my order.", None)) is None
