"""The caller of a carrier: what it tells, does on its phone and agrees to. What all callers do: test_caller.py."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muarl.chat import GREETING, STOP_WORDS, Message, visible_to_agent
from muarl.domains.telecom import phrases
from muarl.errors import ConfigError
from muarl.users.agenda import PATIENCE, AgendaUserFactory
from muarl.users.agenda_telecom import REVEALS, AgendaUser
from support.callers import ended
from support.telecom import (
    IDENTITY,
    OTHER_PHONE,
    PLACE,
    Talk,
    agenda_task,
    agrees,
    fails,
    made,
    request,
    works,
)

ASK_NUMBER = "May I have your phone number?"
REFUEL = f"I will refuel line {PLACE.line} with 2.0 GB at $2.00 per GB. Shall I go ahead?"
PAY = "I will send a payment request for overdue bill B1 of $20.00. Shall I go ahead?"
ROAM = f"I will enable roaming for line {PLACE.line}. Shall I go ahead?"
SUSPEND = f"I will suspend line {PLACE.line} for lost phone. Shall I go ahead?"
LOOK = "Please check your network status."

# what it tells


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_a_persona_decides_what_is_told_at_once(persona):
    for seed in range(5):
        talk = Talk(request("mobile_data", {"abroad": "Peru"}), persona=persona, seed=seed)
        assert ("Peru" in talk.opening) == ("abroad" in REVEALS[persona])
        assert (IDENTITY["phone"] in talk.opening) == ("identity" in REVEALS[persona])
        told = Talk(request("refuel"), persona=persona, seed=seed).opening
        assert ("2.0 GB" in told) == ("amount" in REVEALS[persona]) and talk.did == []


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_it_answers_what_it_is_asked(persona):
    asked = {
        ("no_service", ASK_NUMBER): IDENTITY["phone"],
        ("no_service", "Could you give me your full name and phone number, please?"): IDENTITY["phone"],
        ("mms", "Are you abroad?"): "at home",
        ("mobile_data", "How much data would you like to add?"): "2.0 GB",
        ("refuel", "How many GB would you like?"): "2.0 GB",
        ("suspend", "What is the reason?"): "lost phone",
    }
    for (kind, question), answer in asked.items():
        talk = Talk(request(kind), persona=persona)
        assert answer in talk.hear(question), question
        assert talk.did == []
    assert "Peru" in Talk(request("mms", {"abroad": "Peru"}), persona=persona).hear("Are you traveling right now?")
    assert "bill B7" in Talk(request("pay", {"bill": "B7"}), persona=persona).hear("Which bill is it?")


def test_who_knows_no_number_tells_name_and_birthday():
    talk = Talk(request("pay"), identity={**IDENTITY, "phone": None})
    told = talk.hear(ASK_NUMBER)
    assert IDENTITY["name"] in told and IDENTITY["dob"] in told and "555" not in told


# what it does on the phone


def test_it_looks_and_tells_what_it_sees():
    talk = Talk(request("no_service"), faults=["sim_out"])
    said = talk.hear(LOOK)
    assert talk.did == ["check_network_status"]
    assert all(w in said for w in ("airplane mode off", "SIM missing", "no signal")) and not works(said)
    assert talk.hear("Please check your status bar.").count("no signal") == 1
    assert "SIM missing" in talk.hear("Could you check your SIM card?")


def test_it_does_what_it_is_told_and_sees_whether_that_helped():
    talk = Talk(request("no_service"), faults=["sim_out"])
    said = talk.hear("Please reseat your SIM card.")
    assert talk.did == ["reseat_sim_card", "check_status_bar"] and works(said)
    assert ended(talk.hear("Anything else?"))


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_what_did_not_help_is_told_and_some_look_again(persona):
    talk = Talk(request("no_service"), faults=["airplane_mode", "apn_broken"], persona=persona)
    said = talk.hear("Please turn off airplane mode.")
    assert fails(said) and ("no signal" in said) == (persona in ("chatty", "impatient"))
    said = talk.hear("Please reset your APN settings and restart your phone.")
    if said == phrases.HOW:
        assert persona == "confused"
        said = talk.hear("Please reset your APN settings and restart your phone.")
    assert works(said) and talk.did[:2] == ["reset_apn_settings", "reboot_device"]


def test_a_switch_is_only_turned_over_where_it_must_be():
    talk = Talk(request("no_service"), faults=["sim_out"])
    said = talk.hear("Please turn off airplane mode.")
    assert "toggle_airplane_mode" not in talk.did and talk.phone("airplane_mode") is False and fails(said)


@pytest.mark.parametrize(
    ("kind", "fault", "text", "field", "value"),
    [
        ("mobile_data", "data_off", "Please turn on mobile data.", "data_enabled", True),
        ("mobile_data", "data_saver", "Please switch Data Saver off.", "data_saver_mode", False),
        ("mobile_data", "slow_vpn", "Please disconnect your VPN.", "vpn_connected", False),
        (
            "mobile_data",
            "mode_2g",
            "Set your network mode to 4g_5g_preferred.",
            "network_mode_preference",
            "4g_5g_preferred",
        ),
        ("mms", "wifi_calling", "Please turn off wifi calling.", "wifi_calling_enabled", False),
        ("mms", "mms_apn", "Please reset your APN settings and reboot.", "sim_card_missing", False),
        ("mms", "app_both", "Please allow sms and storage for your messaging app.", "sim_card_missing", False),
        ("mobile_data", "roaming_off", "Please turn on data roaming.", "roaming_enabled", True),
    ],
)
def test_every_setting_can_be_mended(kind, fault, text, field, value):
    abroad = {"abroad": "Peru"} if fault == "roaming_off" else {}
    talk = Talk(request(kind, abroad), faults=[fault])
    assert works(talk.hear(text)) and talk.phone(field) == value


def test_a_slow_connection_does_not_content_it():
    talk = Talk(request("mobile_data"), faults=["data_saver", "slow_vpn"])
    said = talk.hear("Please turn off data saver.")
    assert fails(said) and "speed good" in said
    assert "speed good" in talk.hear("Please run a speed test.")
    assert works(talk.hear("Please disconnect from the VPN, then run a speed test."))


def test_a_bill_is_paid_where_one_has_been_requested():
    talk = Talk(request("no_service"), faults=["overdue_bill"])
    assert talk.hear("Please check the payment request and pay it.").startswith(phrases.NO_REQUEST)
    agent = talk.world.toolkit("assistant")
    agent.send_payment_request(PLACE.customer, PLACE.bill)
    talk.world.domain.sync(talk.world)
    said = talk.hear("I have sent you a payment request. Please check it and make the payment.")
    assert f"I have paid bill {PLACE.bill}." in said
    assert talk.did == ["check_payment_request", "make_payment"]


def test_who_will_not_pay_does_not():
    talk = Talk(request("no_service", {"pays": False}), faults=["unpaid_bill"])
    assert talk.hear(PAY) in phrases.REFUSES
    assert talk.hear("Please check the payment request and pay it.") in phrases.REFUSES
    assert talk.did == []
    talk = Talk(request("mobile_data", {"amount": None}), faults=["no_refuel"])
    assert talk.hear("How much data would you like to add?") in phrases.REFUSES


def test_the_agent_sees_words_only():
    talk = Talk(request("no_service"), faults=["sim_out"])
    talk.hear(LOOK)
    seen = visible_to_agent(talk.messages)
    assert [m.role for m in seen] == ["assistant", "user", "assistant", "user"] and all(m.content for m in seen)


def test_a_confused_caller_may_ask_how_but_only_once():
    asked = 0
    for seed in range(30):
        talk = Talk(request("no_service"), faults=["sim_out"], persona="confused", seed=seed)
        if talk.hear("Please reseat your SIM card.") == phrases.HOW:
            asked += 1
            assert talk.did == [] and works(talk.hear("Please reseat your SIM card."))
    assert 3 < asked < 20


# proposals


@pytest.mark.parametrize(
    ("kind", "proposal"),
    [
        ("refuel", REFUEL),
        ("pay", PAY),
        ("roaming_on", ROAM),
        ("suspend", SUSPEND),
        ("mobile_data", REFUEL),
        ("mms", ROAM),
    ],
)
def test_a_right_proposal_is_confirmed(kind, proposal):
    for seed in range(4):
        assert agrees(Talk(request(kind), seed=seed).hear(proposal))


@pytest.mark.parametrize(
    ("kind", "wish", "proposal"),
    [
        ("refuel", {}, REFUEL.replace("2.0 GB", "1.0 GB")),
        ("refuel", {}, SUSPEND),
        ("pay", {"bill": "B9"}, PAY),
        ("roaming_on", {}, ROAM.replace("enable", "disable")),
        ("roaming_off", {}, ROAM),
        ("suspend", {}, ROAM),
        ("mobile_data", {}, REFUEL.replace("2.0 GB", "1.5 GB")),
        ("no_service", {}, SUSPEND),
        ("mms", {}, SUSPEND),
        ("refuel", {}, f"I will refuel the line of {OTHER_PHONE} with 2.0 GB. Shall I go ahead?"),
    ],
)
def test_a_wrong_proposal_is_refused_and_the_wish_told_again(kind, wish, proposal):
    said = Talk(request(kind, wish)).hear(proposal)
    assert said.startswith("No, ") and not agrees(said)


def test_it_changes_its_mind_on_hearing_the_price():
    for kind in ("refuel", "mobile_data"):
        wish = request(kind)["wish"]
        talk = Talk(request(kind, then={**wish, "amount": 1.0}))
        said = talk.hear(REFUEL)
        assert "1.0 GB" in said and not agrees(said)
        assert talk.hear(REFUEL).startswith("No, ")
        assert agrees(talk.hear(REFUEL.replace("2.0 GB", "1.0 GB")))


def test_other_proposals_for_a_problem_do_not_change_its_mind():
    talk = Talk(request("mms", {"abroad": "Peru"}, then={"abroad": "Peru", "amount": 1.0, "pays": True}))
    assert agrees(talk.hear(ROAM)) and "1.0 GB" in talk.hear(REFUEL)


# bad news

LIMIT = "I cannot add more than 2.0 GB. How much data would you like to add?"


def test_what_is_too_much_is_replaced_by_the_fallback():
    talk = Talk(request("refuel", {"amount": 5.0}, fallback={"amount": 1.5}))
    assert "1.5 GB" in talk.hear(LIMIT)
    assert agrees(talk.hear(REFUEL.replace("2.0 GB", "1.5 GB")))
    talk = Talk(request("refuel", {"amount": 5.0}, fallback={"drop": True}))
    assert ended(talk.hear(LIMIT))


def test_a_refusal_and_a_transfer_end_it():
    assert ended(Talk(request("pay", {"bill": "B9"})).hear("I cannot do that, that is paid bill B9. Anything else?"))
    assert ended(Talk(request("no_service")).hear("I am sorry, but I cannot do that for you."))
    assert Talk(request("mms")).hear("YOU ARE BEING TRANSFERRED TO A HUMAN AGENT.") == "###TRANSFER###"


def test_an_answer_settles_a_question():
    talk = Talk(request("question", answer="2.5"))
    assert ended(talk.hear("You have used 2.5 GB. Anything else?"))


def test_who_is_told_that_all_is_done_tries_it_first():
    talk = Talk(request("no_service"), faults=["sim_out"])
    assert fails(talk.hear("Is there anything else?")) and talk.did == ["check_status_bar"]
    talk = Talk(request("no_service"))
    assert works(talk.hear("Done. Please try again.")) and ended(talk.hear("Anything else?"))


# two requests


def test_a_second_request_comes_at_once_or_later():
    both = Talk(request("no_service"), request("pay"), faults=["sim_out"])
    assert "service" in both.opening and "overdue bill" in both.opening
    later = Talk(request("no_service"), request("pay"), faults=["sim_out"], upfront=False)
    assert "overdue bill" not in later.opening
    assert works(later.hear("Please reseat your SIM card."))
    assert "overdue bill" in later.hear("Anything else?")
    assert agrees(later.hear(PAY)) and ended(later.hear("Done. Anything else?"))


# endings


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_it_gives_up_when_its_patience_is_spent(persona):
    for kind, wrong in (("pay", []), ("no_service", ["sim_out"])):
        talk = Talk(request(kind), faults=wrong, persona=persona)
        for _ in range(PATIENCE[persona]):
            assert not ended(talk.hear("Hmm, let me see."))
        assert talk.hear("Hmm, let me see.") == phrases.GIVES_UP


def test_looking_again_after_something_changed_is_no_nuisance():
    talk = Talk(request("no_service"), faults=["airplane_mode", "sim_out", "apn_broken"], persona="impatient")
    for step in ("Please turn off airplane mode.", "Please reseat your SIM card.", "Please reset your APN settings."):
        assert not ended(talk.hear(LOOK)) and not ended(talk.hear(step))
    assert works(talk.hear("Please restart your phone."))


LOOPS = [
    REFUEL, ASK_NUMBER, LOOK, "Please restart your phone.", "Please turn off airplane mode.", "OK.", "", "Done.", PAY,
    "Are you abroad?", LIMIT, "What is the reason?", "How can I help you?", "Please run a speed test.", ROAM,
    "Done. Please try again.", "Please check the payment request and pay it.", "I cannot do that.", "Anything else?",
]  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
def test_an_agent_in_a_loop_is_left_in_bounded_time(loop):
    for task in made("tiny", "test", 25):
        user = AgendaUser(task, seed=0)
        messages = [Message("assistant", GREETING)]
        for _ in range(90):
            reply = asyncio.run(user.reply(messages)).message
            messages.append(reply)
            if reply.tool_calls:
                result = "Status Bar: 📵 No Signal | 📵 Data Disabled | 🔋 80%"
                messages.append(Message("tool", result, tool_call_id=reply.tool_calls[0].id, requestor="user"))
            elif any(w in reply.content for w in STOP_WORDS):
                break
            else:
                messages.append(Message("assistant", loop))
        else:
            raise AssertionError((task.id, [m.content for m in messages][:6]))


WORDS = st.sampled_from(
    [
        "please", "check", "turn off", "turn on", "airplane mode", "SIM card", "APN settings", "speed test", "VPN", "?",
        "restart", "your phone", "roaming", "mobile data", "wifi calling", "permissions", "sms", "payment request", ".",
        "pay", "Shall I go ahead?", "I will refuel", "2.0 GB", "cannot", "Anything else?", "abroad", "number",
        "more than", "reason", "transferred", "it", "and", "then", "if", "done",
    ]
)  # fmt: skip
SAID = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=12).map(" ".join))
RESULTS = st.sampled_from(
    ["", "Error: no", "VPN is ON", "Mobile Data is now ON.", "Airplane Mode: ON", "a request for bill B12"]
)


@example(texts=["TURN:SPEEDAIRPLANE"], results=[""], index=0)
@given(st.lists(SAID, min_size=1, max_size=30), st.lists(RESULTS, min_size=1, max_size=9), st.integers(0, 79))
@settings(max_examples=120)
def test_no_text_and_no_phone_makes_it_stumble_and_it_always_ends(texts, results, index):
    user = AgendaUser(made("small", "train", 80)[index], seed=index)
    messages = [Message("assistant", GREETING)]
    spoken = 0
    for turn in range(1500):
        reply = asyncio.run(user.reply(messages)).message
        messages.append(reply)
        assert reply.role == "user" and bool(reply.content) is not bool(reply.tool_calls)
        if reply.tool_calls:
            result = Message(
                "tool", results[turn % len(results)], tool_call_id=reply.tool_calls[0].id, requestor="user"
            )
            messages.append(result)
            continue
        if any(w in reply.content for w in STOP_WORDS):
            break
        spoken += 1
        messages.append(Message("assistant", texts[spoken % len(texts)]))
    assert turn < 1499


def test_a_task_without_an_agenda_and_without_a_known_scenario_is_refused():
    plain = type(agenda_task())
    with pytest.raises(ConfigError, match="has no agenda"):
        AgendaUser(plain("x", "telecom", "Something else.", None), seed=0)
    make = AgendaUserFactory(seed=1, persona="chatty")
    for name in ("telecom", "telecom-workflow"):
        with pytest.raises(ConfigError, match="has no agenda"):
            make(plain("x", name, "", None), seed=0)
    assert isinstance(make(agenda_task(request("pay")), seed=3), AgendaUser)
