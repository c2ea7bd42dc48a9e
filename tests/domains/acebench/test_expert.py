"""The scripted expert of phones and travel desks: what it reads, how it acts, and how a tiny model sees its words."""

from __future__ import annotations

import json
import statistics

import pytest

from muarl.chat import Message, ToolCall
from muarl.conversation import agent_view
from muarl.domains.acebench import reading
from muarl.domains.acebench.expert import AceExpert
from muarl.domains.acebench.generated import generated_acebench
from muarl.domains.acebench.gold import WRITES
from muarl.domains.acebench.texts import EN
from muarl.domains.base import Task
from muarl.domains.experts import Habits
from muarl.domains.generated import generated
from muarl.recipes.setting import GENERATED_RULES
from support.acebench import expert, made


def observed(task: Task, name: str, **arguments) -> tuple[str, str]:
    """What a tool shows in a tiny world and in a larger one."""
    shown = []
    for size in ("tiny", "small"):
        world = generated_acebench(size).world(task)
        world.call("assistant", ToolCall("", "login_device", {}))
        shown.append(world.call("assistant", ToolCall("", name, arguments)).content)
    return shown[0], shown[1]


def of_family(family: str) -> list[Task]:
    return [t for t in made("tiny", "train", 60) if t.tags["family"] == family]


def test_compact_and_full_observations_of_the_phone_say_the_same():
    for task in of_family("phone"):
        state = task.initial_data["state"]
        names = {p["user_id"]: n for n, p in state["MessageApi"]["user_list"].items()}
        for entry in state["MessageApi"]["inbox"].values():
            pair = {"sender_name": names[entry["sender_id"]], "receiver_name": names[entry["receiver_id"]]}
            short, full = map(reading.read_messages, observed(task, "view_messages_between_users", **pair))
            assert short == full and entry["message"] in [text for _, text in short]
        for tool in ("get_earliest_message_id", "get_latest_message_id"):
            short, full = map(reading.read_number, observed(task, tool))
            assert short == full and str(short) in state["MessageApi"]["inbox"]
        for merchant, about in state["FoodPlatform"]["merchant_list"].items():
            short, full = map(reading.read_menu, observed(task, "get_products", merchant_name=merchant))
            assert short == full == {d["product"]: str(d["price"]) for d in about["menu"]}


def test_compact_and_full_observations_of_the_travel_desk_say_the_same():
    for task in of_family("travel"):
        state, who = task.initial_data["state"]["Travel"], task.agenda["identity"]
        short, full = observed(task, "get_user_details", user_id=who["user_id"], password=who["password"])
        assert reading.read_traveller(short).level == reading.read_traveller(full).level
        for flight in state["flights"]:
            ends = {"origin": flight["origin"], "destination": flight["destination"]}
            short, full = observed(task, "get_flight_details", **ends)
            pairs = zip(reading.read_flights(short, **ends), reading.read_flights(full, **ends), strict=True)
            for one, other in pairs:
                assert (one.number, one.day, one.free) == (other.number, other.day, other.free)
                assert not one.free or one.fares == other.fares
        short, full = map(reading.read_reservations, observed(task, "get_reservation_details", user_id=who["user_id"]))
        assert [(r.reservation_id, r.cabin, r.bags, r.flight.number, r.flight.day) for r in short] == [
            (r.reservation_id, r.cabin, r.bags, r.flight.number, r.flight.day) for r in full
        ]


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("send_not_in", "device"), ("view_not_in", "device"), ("reminder_view_not_in", "device"),
        ("send_no_wifi", "wifi"), ("food_no_wifi", "wifi"), ("inbox_full", "full"), ("no_party", "missing"),
        ("none_between", "missing"), ("no_title", "missing"), ("food_password", "password"),
        ("travel_password", "password"), ("food_in_already", "known"), ("food_not_in", "account"),
        ("food_balance", "balance"), ("cash_balance", "balance"), ("baggage_balance", "balance"),
        ("no_flights", "missing"), ("no_transfers", "missing"), ("reminders_full", "other"), ("flown", "other"),
        ("fixed_full", "other"), ("sent", None), ("ordered", None), ("booked", None), ("flight_changed", None),
        ("cancelled_free", None), ("cancelled_fee", None), ("baggage_paid", None), ("cabin_refunded", None),
    ],
)  # fmt: skip
def test_a_refusal_is_told_from_a_success_in_both_forms(key, why):
    text = EN[key].format("x", "y")
    assert reading.refusal(text) == why
    assert reading.refusal(json.dumps({"status": why is None, "message": text})) == why


def test_what_a_message_says_is_no_refusal():
    assert reading.refusal('message from Omar number 4 says "Your book was not found"') is None
    assert reading.refusal('{"error": "there is no tool"}', error=True) == "other"


@pytest.mark.parametrize("size", ["tiny", "official"])
def test_it_makes_one_call_or_says_one_thing_at_a_time_and_asks_before_it_writes(size):
    tasks = made(size, "train", 60)
    for episode in expert(tasks, size):
        said, agreed = "", False
        for message in episode.messages[1:]:
            if message.role == "assistant":
                assert (len(message.tool_calls) == 1) != bool(message.content)
                said = message.content or said
                for call in message.tool_calls:
                    if call.name in WRITES.values():
                        room = call.name == "delete_message" and "Memory is full" in said
                        assert agreed or room, episode.task_id
            elif message.role == "user" and "Memory is full" not in said:
                agreed = "Shall I go ahead?" in said and message.content.startswith("Yes")


def test_it_leaves_wifi_and_the_lock_alone_until_a_tool_complains():
    for episode in expert(made("official", "train", 60), "official"):
        before = ""
        for message in episode.messages:
            for call in message.tool_calls:
                assert call.name != "turn_on_wifi" or "Wi-Fi" in before
                assert call.name != "login_device" or "not logged in" in before
            before = message.content or ""


def test_it_survives_any_words_and_observations():
    brain = AceExpert(seed=0, habits=Habits())
    for text in ("", "???", "I want to.", '"', "Yes.", "I want to send a message.", "order order cancel delete"):
        assert brain.act([Message("user", text)])


def mean(episodes):
    return sum(e.reward for e in episodes) / len(episodes)


@pytest.mark.parametrize(
    "habit",
    ["skip_confirmation", "forget_second", "needless_transfer", "transfer_if_unavailable", "try_forbidden", "guess"],
)
def test_each_bad_habit_costs_something(habit):
    assert mean(expert(made("small", "train", 400), "small", **{habit: 1.0})) < 1


def test_a_slip_is_mended():
    assert mean(expert(made("tiny", "train", 60), slip=0.5)) == 1


def test_all_bad_habits_together_leave_something_to_learn():
    habits = {
        "skip_confirmation": 0.5, "forget_second": 0.5, "needless_transfer": 0.08, "transfer_if_unavailable": 0.5,
        "transfer_if_forbidden": 0.3, "try_forbidden": 0.3, "guess": 0.25, "slip": 0.06,
    }  # fmt: skip
    assert 0.6 < mean(expert(made("tiny", "train", 400), **habits)) < 0.82


def test_an_episode_is_short_for_the_tiny_model():
    from muarl.recipes.tiny import make_tokenizer, pieces_of
    from muarl.tokens import ChatTokens

    world = generated("acebench-generated")
    episodes = expert(made("tiny", "train", 400)[:120])
    texts = [m.content or "" for e in episodes for m in e.messages]
    texts += [json.dumps(dict(c.arguments)) for e in episodes for m in e.messages for c in m.tool_calls]
    chat = ChatTokens(make_tokenizer(world, texts))
    lengths = [
        len(chat.training_tokens(e.system, e.tools, agent_view(e.messages, GENERATED_RULES)).ids) for e in episodes
    ]
    assert statistics.mean(lengths) < 260 and sorted(lengths)[-6] < 450
    pieces = set(pieces_of(world))
    assert len(pieces) == len(pieces_of(world))
    said = [m.content for e in episodes for m in e.messages[1:] if m.role == "assistant" and m.content]
    for text in said:
        tokens = [chat.tokenizer.decode([i]) for i in chat.tokenizer.encode(text)]
        assert " " not in tokens, tokens
        assert len(tokens) - sum(t in pieces for t in tokens) <= 1, tokens
