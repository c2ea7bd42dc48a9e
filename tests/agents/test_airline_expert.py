"""The scripted airline expert: clean it serves everybody decently, each bad habit shows, it reads what it is shown."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.chat import Message
from muarl.domains.airline import phrases, reading
from muarl.domains.airline.attendant import ASK, PROPOSE, REFUSE
from muarl.domains.airline.expert import AirlineExpert
from muarl.domains.airline.generated import compact
from muarl.domains.airline.gold import WRITES
from muarl.domains.airline.network import SIZES, make_network
from muarl.domains.experts import Habits
from support.airline import IDENTITY, expert, made

QUICK = settings(max_examples=30)
PROFILE = "gold member, credit card credit_card_7, gift card gift_card_8, reservations K3M8T2, P4Q1R9"
SHOWN = (
    "K3M8T2 origin JFK destination SEA\ncabin economy, 1 bags with 0 paid, not insured, booked within 24 hours\n"
    "flight HAT012 on 2024-05-18 at $123\npassenger first name Ivan, last name Haas, born 1990-04-05"
)


def calls(episode, prefix=""):
    return [c for m in episode.messages for c in m.tool_calls if c.name.startswith(prefix)]


def said(episode):
    return [m.content for m in episode.messages if m.role == "assistant" and not m.tool_calls]


def mean(episodes):
    return sum(e.reward for e in episodes) / len(episodes)


def those(tasks, wanted):
    return tuple(t for t in tasks if wanted(t))


def first(task):
    return task.agenda["requests"][0]


# clean


@pytest.mark.parametrize("size", ["tiny", "official"])
def test_the_clean_expert_is_decent(size):
    tasks = made(size, "test", 150)
    for task, episode in zip(tasks, expert(tasks, size), strict=True):
        audit = episode.verdict.audit
        assert audit["writes_without_consent"] == 0, task.id
        assert audit["access_before_authentication"] == audit["foreign_access"] == audit["malformed_calls"] == 0
        assert audit.get("needless_transfers", 0) == 0
        assert audit["tool_errors"] == (task.agenda["wrong_id"] is not None), task.id
        assert audit["repeated_calls"] == 0, task.id
        assert not any(m.content and m.tool_calls for m in episode.messages), "it speaks or calls, never both"


def test_the_same_seed_gives_the_same_conversation():
    tasks = made("tiny", "test", 20)
    runs = [[[m.to_json() for m in e.messages] for e in expert(tasks, slip=0.5, guess=0.5)] for _ in range(2)]
    assert runs[0] == runs[1]


def test_it_does_not_need_a_caller_of_ours():
    brain = AirlineExpert(seed=0)
    assert brain.act([Message("user", "Hello.")]).content == "May I have your user id?"
    call = brain.act([Message("user", "It's mia_berg_1007, and I want to cancel reservation K3M8T2, I am sick.")])
    assert (call.tool_calls[0].name, call.tool_calls[0].arguments) == (
        "get_user_details",
        {"user_id": IDENTITY["user_id"]},
    )
    assert brain.act([Message("tool", PROFILE)]).tool_calls[0].arguments == {"reservation_id": "K3M8T2"}
    proposal = brain.act([Message("tool", SHOWN)])
    assert proposal.content == "I will cancel reservation K3M8T2. Shall I go ahead?"
    assert brain.act([Message("user", "Yes.")]).tool_calls[0].name == "cancel_reservation"


def started(text):
    brain = AirlineExpert(seed=0)
    brain.act([Message("user", f"I want to {text}. My user id is mia_berg_1007.")])
    return brain, brain.act([Message("tool", PROFILE)])


def test_a_trip_that_has_begun_is_handed_over_and_one_that_the_airline_cancelled_is_not():
    past = SHOWN.replace("05-18", "05-08").replace("within 24 hours", "earlier")
    for status, name in (("landed", "transfer_to_human_agents"), ("cancelled", None)):
        brain, _ = started("cancel reservation K3M8T2, the airline cancelled the flight")
        look = brain.act([Message("tool", past)])
        assert look.tool_calls[0].name == "get_flight_status"
        step = brain.act([Message("tool", status)])
        assert (step.tool_calls[0].name if step.tool_calls else None) == name


def test_the_cheapest_flight_with_seats_is_taken():
    offers = [
        {"flight_number": n, "prices": {"economy": p}, "available_seats": {"economy": s}}
        for n, p, s in (("HAT001", 90, 0), ("HAT002", 140, 3), ("HAT003", 120, 1))
    ]
    brain, _ = started("move reservation K3M8T2 to 2024-05-21, pay with gift card")
    search = brain.act([Message("tool", SHOWN)])
    assert search.tool_calls[0].arguments == {"origin": "JFK", "destination": "SEA", "date": "2024-05-21"}
    proposal = brain.act([Message("tool", json.dumps(offers))])
    assert "flight HAT003 on 2024-05-21 in economy at $120 pay with gift card gift_card_8" in proposal.content


# habits


def test_skip_confirmation_writes_without_consent():
    tasks = those(made("tiny", "train", 80), lambda t: any(a.name in WRITES.values() for a in t.actions))
    episodes = expert(tasks, skip_confirmation=1.0)
    assert not any("Shall I go ahead?" in s for e in episodes for s in said(e))
    written = [e.verdict.audit for e in episodes if e.verdict.audit["writes"]]
    assert sum(a["writes_without_consent"] for a in written) > 0.9 * sum(a["writes"] for a in written)
    changing = [e.reward for t, e in zip(tasks, episodes, strict=True) if first(t)["then"]]
    steady = [e.reward for t, e in zip(tasks, episodes, strict=True) if t.tags["difficulty"] == 1]
    assert sum(changing) < 0.2 * len(changing), "who never asks does not hear of the changed wish"
    assert sum(steady) == len(steady)


def test_forget_second_forgets_it():
    two = those(made("tiny", "train", 200), lambda t: len(t.agenda["requests"]) == 2)
    upfront = those(two, lambda t: t.agenda["upfront"] and not t.agenda["reminds"])
    assert mean(expert(upfront)) == 1
    assert mean(expert(upfront, forget_second=1.0)) < 0.4
    later = those(two, lambda t: not t.agenda["upfront"])
    assert mean(expert(later, forget_second=1.0)) > 0.9, "what is asked later cannot be forgotten"


def test_needless_transfer_hands_everybody_over():
    tasks = made("tiny", "train", 30)
    for task, episode in zip(tasks, expert(tasks, needless_transfer=1.0), strict=True):
        assert episode.stop == "transfer" and len(calls(episode, "transfer")) == 1
        right = first(task)["intent"] in ("outside", "flown")
        assert episode.verdict.audit.get("needless_transfers", 1) == (not right)


def test_transfer_if_unavailable_offers_nothing():
    tasks = those(made("tiny", "train", 200), lambda t: first(t)["fallback"])
    assert tasks
    for episode in expert(tasks, transfer_if_unavailable=1.0):
        assert episode.stop == "transfer" and not any("not available" in s for s in said(episode))
    assert all(any("is not available. Which other" in s for s in said(e)) for e in expert(tasks))


def test_forbidden_wishes_are_refused_handed_over_or_tried():
    tasks = those(made("tiny", "train", 300), lambda t: t.tags["intent"] == "forbidden")
    assert len(tasks) > 8
    for task, episode in zip(tasks, expert(tasks), strict=True):
        assert any(s.startswith(REFUSE[first(task)["kind"]]) for s in said(episode))
        assert not episode.verdict.audit["writes"]
    assert all(e.stop == "transfer" for e in expert(tasks, transfer_if_forbidden=1.0))
    tried = [
        e.reward
        for t, e in zip(tasks, expert(tasks, try_forbidden=1.0), strict=True)
        if first(t)["kind"] in ("cancel", "flights", "compensation")
    ]
    assert tried and sum(tried) < 0.3 * len(tried), "no tool refuses: the agent itself must"


def test_guess_fills_what_was_not_said():
    tasks = those(made("tiny", "train", 120), lambda t: first(t)["kind"] in ("cancel", "flights", "cabin"))
    asked = {True: 0, False: 0}
    for guessing in asked:
        for episode in expert(tasks, guess=float(guessing)):
            asked[guessing] += sum(s in (ASK["reason"], ASK["payment"]) for s in said(episode))
    assert asked[False] > 20 > asked[True]


def test_slips_are_seen_and_mended():
    tasks = made("tiny", "train", 80)
    episodes = expert(tasks, slip=0.5)
    assert sum(e.verdict.audit["tool_errors"] >= 1 for e in episodes) > 0.6 * len(episodes)
    assert mean(episodes) > 0.95
    for episode in expert(made("tiny", "train", 20), slip=1.0):
        assert episode.stop.chosen


def test_no_habit_breaks_the_conversation():
    tasks = made("small", "train", 80)
    everything = dict.fromkeys(Habits.__dataclass_fields__, 0.4)
    for episode in expert(tasks, "small", **everything):
        assert episode.stop.chosen, episode.stop


SAID = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "I want to", "cancel", "change", "to business", "reservation K3M8T2", "Yes.", "No,", "never mind",
                "Actually,", "my user id is mia_berg_1007", "gift card", "2024-05-21", "change of plan", "talk about",
                "also", "3 bags", "the passenger", "book a flight", "from JFK", "compensation", "my trip to SEA", ".",
            ]
        ),
        max_size=8,
    ).map(" ".join),
)  # fmt: skip


@given(st.lists(SAID, min_size=1, max_size=12))
@settings(max_examples=150)
def test_no_caller_makes_it_stumble(texts):
    brain = AirlineExpert(seed=0)
    replies = {
        "get_user_details": PROFILE,
        "get_reservation_details": SHOWN,
        "search_direct_flight": "flight HAT033 in economy at $140, in business at $300",
        "get_flight_status": "available",
    }
    for text in texts:
        message = brain.act([Message("user", text)])
        for _ in range(12):
            assert message.content or len(message.tool_calls) == 1
            if not message.tool_calls or message.tool_calls[0].name == "transfer_to_human_agents":
                break
            message = brain.act([Message("tool", replies.get(message.tool_calls[0].name, "ok"))])
        else:
            raise AssertionError("it calls tools without end")


def test_every_kind_of_write_has_its_words():
    assert set(PROPOSE) == set(WRITES)


# reading


@given(st.integers(0, 10**6).map(str), st.sampled_from(["tiny", "small", "medium"]))
@QUICK
def test_observations_are_read_back_as_they_were_written(seed, size):
    tables = make_network(seed, SIZES[size]).tables
    styles = (lambda name, value: json.dumps(value), compact) if size == "tiny" else (lambda _, v: json.dumps(v),)
    for write in styles:
        for r in list(tables["reservations"].values())[:20]:
            read = reading.read_reservation(write("get_reservation_details", r))
            assert (read.reservation_id, read.origin, read.destination) == (
                r["reservation_id"],
                r["origin"],
                r["destination"],
            )
            assert (read.cabin, read.bags, read.insured) == (r["cabin"], r["total_baggages"], r["insurance"] == "yes")
            assert read.recent == (r["created_at"] >= "2024-05-14T15:00:00")
            legs = [(g.number, g.origin, g.destination, g.date, g.price) for g in read.legs]
            assert legs == [
                (g["flight_number"], g["origin"], g["destination"], g["date"], g["price"]) for g in r["flights"]
            ]
            assert list(read.passengers) == r["passengers"]
        for user in list(tables["users"].values())[:20]:
            profile = reading.read_profile(user["user_id"], write("get_user_details", user))
            assert (profile.user_id, profile.membership) == (user["user_id"], user["membership"])
            assert profile.payments == {m["source"]: m["id"] for m in user["payment_methods"].values()}
            assert profile.reservations == tuple(user["reservations"])


def test_compact_searches_are_read_back():
    offer = {
        "flight_number": "HAT033",
        "available_seats": {"business": 0, "economy": 4, "basic_economy": 1},
        "prices": {"business": 300, "economy": 140, "basic_economy": 80},
    }
    shown = compact("search_direct_flight", [offer])
    assert shown == "flight HAT033 in business sold out, in economy at $140, in basic_economy at $80"
    (read,) = reading.read_offers(shown)
    assert read.number == "HAT033" and read.prices == {"economy": 140, "basic_economy": 80}
    assert "business" not in read.seats
    assert compact("search_direct_flight", []) == "none" and reading.read_offers("none") == ()


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_what_a_caller_says_is_read_back(size):
    """Every wish, told in full, comes back slot by slot."""
    for task in made(size, "train", 150):
        for request in task.agenda["requests"]:
            wish, kind = request["wish"], request["kind"]
            clause = phrases.say_wish(random.Random(0), kind, wish, [s for s in wish if s != "described"])
            (frame,) = reading.read_requests(f"I want to {clause}.")
            assert frame.kind == kind, clause
            for slot in set(wish) - {"described"}:
                assert frame.slots.get(slot) == wish[slot], (slot, clause, frame.slots)


def test_identities_are_read_in_every_phrasing():
    for seed in range(12):
        assert reading.read_identity(phrases.say_identity(random.Random(seed), "mia_berg_1007")) == "mia_berg_1007"
    assert reading.read_identity("Use my gift card please.") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "Error: Reservation X not found", "K3M8T2", '{"reservation_id": 3}'])
def test_what_is_no_reservation_is_an_error_and_no_nonsense(text):
    with pytest.raises((ValueError, KeyError)):
        reading.read_reservation(text)


def test_a_caller_is_transferred_once_where_that_does_not_end_the_episode():
    brain, step = started("talk about a lost suitcase")
    assert step.tool_calls[0].name == "transfer_to_human_agents"
    assert not brain.act([Message("tool", "Transfer successful")]).tool_calls
