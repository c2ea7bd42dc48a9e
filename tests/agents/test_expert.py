"""The scripted expert: clean it serves everybody decently, each bad habit shows, and it reads what it is shown."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.agents.expert import ExpertAgent
from muarl.chat import Message
from muarl.domains.experts import SLOPPY, Habits
from muarl.domains.retail import phrases, reading
from muarl.domains.retail.expert import ASK, NEEDS, PROPOSE, RetailExpert
from muarl.domains.retail.generated import compact
from muarl.domains.retail.shop import SIZES, make_shop
from muarl.domains.retail.wishes import WRITES
from support.generated import IDENTITY, expert, made

QUICK = settings(max_examples=30)


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
        assert audit["tool_errors"] == (task.agenda["wrong_zip"] is not None), task.id
        assert audit["repeated_calls"] == 0, task.id
        assert not any(m.content and m.tool_calls for m in episode.messages), "it speaks or calls, never both"


def test_the_same_seed_gives_the_same_conversation():
    tasks = made("tiny", "test", 20)
    runs = [[[m.to_json() for m in e.messages] for e in expert(tasks, slip=0.5, guess=0.5)] for _ in range(2)]
    assert runs[0] == runs[1]


def test_it_does_not_need_a_caller_of_ours():
    """Told everything in one breath, asked again, and told nothing at all."""
    brain = RetailExpert(seed=0)
    assert brain.act([Message("user", "Hello.")]).content == "May I have your name and zip code?"
    call = brain.act(
        [Message("user", "I am Mia Berg, 12345. I want to cancel order #W1111111, it is no longer needed.")]
    )
    assert call.tool_calls[0].name == "find_user_id_by_name_zip"
    assert call.tool_calls[0].arguments == {"first_name": "Mia", "last_name": "Berg", "zip": "12345"}
    look = brain.act([Message("tool", "mia_berg_1000")])
    assert look.tool_calls[0].arguments == {"order_id": "#W1111111"}
    shown = "#W1111111 pending\nmug 7 at $8.05 (red, product 9)\npaid paypal paypal_1"
    proposal = brain.act([Message("tool", shown)])
    assert proposal.content == "I will cancel order #W1111111 (no longer needed). Shall I go ahead?"
    assert brain.act([Message("user", "Yes.")]).tool_calls[0].name == "cancel_pending_order"


def test_names_of_agents():
    assert ExpertAgent().name == "expert" and ExpertAgent(SLOPPY).name == "expert with bad habits"
    session = ExpertAgent().open("", (), seed=0, session="s")
    assert session.tokens is None
    session.close()


# habits


def test_skip_confirmation_writes_without_consent():
    tasks = those(
        made("tiny", "train", 80), lambda t: t.tags["feasible"] and any(a.name in WRITES.values() for a in t.actions)
    )
    episodes = expert(tasks, skip_confirmation=1.0)
    assert not any("Shall I go ahead?" in s for e in episodes for s in said(e))
    written = [e.verdict.audit for e in episodes if e.verdict.audit["writes"]]
    assert len(written) > 0.9 * len(episodes)
    assert sum(a["writes_without_consent"] for a in written) > 0.9 * sum(a["writes"] for a in written)
    changing = [e.reward for t, e in zip(tasks, episodes, strict=True) if first(t)["then"]]
    steady = [e.reward for t, e in zip(tasks, episodes, strict=True) if t.tags["difficulty"] == 1]
    assert sum(changing) < 0.2 * len(changing), "who never asks does not hear of the changed wish"
    assert sum(steady) == len(steady)


def test_forget_second_forgets_it():
    two = those(made("tiny", "train", 200), lambda t: len(t.agenda["requests"]) == 2)
    upfront = those(two, lambda t: t.agenda["upfront"] and not t.agenda["reminds"])
    assert mean(expert(upfront)) == 1
    assert mean(expert(upfront, forget_second=1.0)) < 0.3
    later = those(two, lambda t: not t.agenda["upfront"])
    assert mean(expert(later, forget_second=1.0)) > 0.9, "what is asked later cannot be forgotten"


def test_needless_transfer_hands_everybody_over():
    tasks = made("tiny", "train", 30)
    for task, episode in zip(tasks, expert(tasks, needless_transfer=1.0), strict=True):
        assert episode.stop == "transfer" and len(calls(episode, "transfer")) == 1
        assert episode.verdict.audit.get("needless_transfers", 1) == (first(task)["kind"] != "outside")


def test_transfer_if_unavailable_offers_nothing():
    tasks = those(made("tiny", "train", 200), lambda t: first(t)["fallback"])
    assert tasks
    for episode in expert(tasks, transfer_if_unavailable=1.0):
        assert episode.stop == "transfer" and not any("not available" in s for s in said(episode))
    assert all(any("is not available. Available are" in s for s in said(e)) for e in expert(tasks))


def test_forbidden_wishes_are_refused_handed_over_or_tried():
    tasks = those(made("tiny", "train", 200), lambda t: t.tags["intent"] == "forbidden")
    assert len(tasks) > 5
    for episode in expert(tasks):
        assert any(s.startswith("I cannot do that, order #W") for s in said(episode))
        assert not episode.verdict.audit["tool_errors"] - 1 > 0 and not episode.verdict.audit["writes"]
    for episode in expert(tasks, transfer_if_forbidden=1.0):
        assert episode.stop == "transfer"
    tried = expert(tasks, try_forbidden=1.0)
    errors = [[m.content for m in e.messages if m.role == "tool" and m.error] for e in tried]
    assert sum(any("Non-" in text for text in texts) for texts in errors) > 0.8 * len(tried)
    assert mean(tried) == 1 and not any(e.verdict.audit["writes"] for e in tried), "the tools refuse as well"


def test_guess_fills_what_was_not_said():
    tasks = those(made("tiny", "train", 120), lambda t: first(t)["kind"] in ("cancel", "exchange", "modify_items"))
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
    for episode in episodes:
        messages = episode.messages
        for n, message in enumerate(messages):
            if message.role == "tool" and message.error:
                assert "not found" in message.content.lower()
                assert messages[n + 1].role == "assistant"


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
                "I want to", "cancel", "return", "the mug", "order #W1111111", "Yes.", "No,", "never mind", "Actually,",
                "I am Mia Berg, 12345.", "paypal", "a blue one", "no longer needed", "talk about", "also", "#W2", ".",
            ]
        ),
        max_size=8,
    ).map(" ".join),
)  # fmt: skip


@given(st.lists(SAID, min_size=1, max_size=12))
@settings(max_examples=150)
def test_no_caller_makes_it_stumble(texts):
    brain = RetailExpert(seed=0)
    replies = {
        "find_user_id_by_name_zip": "mia_berg_1000",
        "get_order_details": "#W1111111 pending\nmug 7 at $8.05 (red, product 9)\npaid paypal paypal_1",
        "get_user_details": "paypal paypal_1 orders #W1111111",
        "get_product_details": "mug in red 7, blue 8",
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
    assert set(PROPOSE) == set(WRITES) and set(NEEDS) == {*WRITES, "question"}
    for needs in NEEDS.values():
        assert set(needs) <= set(ASK)


# reading

SHOPS = st.tuples(st.integers(0, 10**6).map(str), st.sampled_from(["tiny", "small", "medium"]))


@given(SHOPS)
@QUICK
def test_observations_are_read_back_as_they_were_written(which):
    seed, size = which
    tables = make_shop(seed, SIZES[size]).tables
    for write in (json.dumps, compact):
        for order in list(tables["orders"].values())[:20]:
            read = reading.read_order(write(order) if write is json.dumps else compact("get_order_details", order))
            assert (read.order_id, read.status) == (order["order_id"], order["status"])
            assert read.paid_with == order["payment_history"][0]["payment_method_id"]
            assert len(read.items) == len(order["items"])
            for mine, theirs in zip(read.items, order["items"], strict=True):
                assert (mine.name, mine.item_id) == (theirs["name"].lower(), theirs["item_id"])
                assert mine.product_id == theirs["product_id"]
                assert [o.lower() for o in mine.options] == [o.lower() for o in theirs["options"].values()]
                assert float(mine.price) == pytest.approx(theirs["price"], abs=0.005)
        for product in tables["products"].values():
            text = json.dumps(product) if write is json.dumps else compact("get_product_details", product)
            read = [(tuple(o.lower() for o in options), number) for options, number in reading.read_variants(text)]
            assert read == [
                (tuple(o.lower() for o in v["options"].values()), v["item_id"] if v["available"] else None)
                for v in product["variants"].values()
            ]
        for user in list(tables["users"].values())[:20]:
            text = json.dumps(user) if write is json.dumps else compact("get_user_details", user)
            profile = reading.read_profile(text)
            assert profile.orders == tuple(user["orders"])
            assert profile.payments == {m["source"]: m["id"] for m in user["payment_methods"].values()}


def test_what_a_caller_says_is_read_back():
    """Every wish, told in full, comes back slot by slot."""
    for task in [*made("tiny", "train", 80), *made("small", "train", 80)]:
        for request in task.agenda["requests"]:
            if request["kind"] == "outside":
                continue
            wish = request["wish"]
            clause = phrases.say_wish(random.Random(0), request["kind"], wish, [s for s in wish if s != "described"])
            frames = reading.read_requests(f"I want to {clause}.")
            assert [f.kind for f in frames] == [request["kind"]], clause
            for slot, value in frames[0].slots.items():
                given = [v.lower() for v in wish[slot]] if slot in ("items", "to") else wish[slot]
                assert value == given, (slot, clause)
            told = set(wish) - {"described"} - ({"payment"} if request["kind"] == "return" else set())
            assert set(frames[0].slots) == told, clause


def test_identities_are_read_in_every_phrasing():
    for seed in range(12):
        text = phrases.say_identity(random.Random(seed), IDENTITY, "54321")
        assert reading.read_identity(text) == {"first_name": "Mia", "last_name": "Berg", "zip": "54321"}
    assert reading.read_identity("Send it to 12 Elm Street, Suite 1, Boston, MA 54321.") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "Error: Order not found", "#W1", '{"order_id": 3}'])
def test_what_is_no_order_is_an_error_and_no_nonsense(text):
    with pytest.raises((ValueError, KeyError, IndexError)):
        reading.read_order(text)


def test_a_slip_does_not_happen_twice_in_a_row():
    for episode in expert(made("tiny", "train", 20), slip=1.0):
        assert episode.stop.chosen


def test_a_caller_is_transferred_once_where_that_does_not_end_the_episode():
    brain = RetailExpert(seed=0)
    brain.act([Message("user", "I am Mia Berg, 12345. I want to talk about a price match.")])
    assert brain.act([Message("tool", "mia_berg_1000")]).tool_calls[0].name == "transfer_to_human_agents"
    assert not brain.act([Message("tool", "Transfer successful")]).tool_calls


def test_a_name_is_no_request():
    assert reading.read_requests("I am Mia Costa, 12345.") == []
