"""How generated tasks sound, and that every wording is read back; what tools answer, in JSON and in a few words."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muarl.domains.kit.records import fill
from muarl_worlds.bfcl import requests
from muarl_worlds.bfcl.observations import compact, observed, value_of
from muarl_worlds.bfcl.parsing import form, lacks, read_reply, read_requests, read_tools
from muarl_worlds.bfcl.requests import ALL, LOGINS, RECIPES, STYLES
from muarl_worlds.bfcl.scenes import SIZES
from support.bfcl import made, serve

SLOTS = re.compile(r"\{(\w+)\}")


def said(clause, slots, persona="terse", seed=0, size="official"):
    return fill(requests.say(random.Random(seed), clause, SIZES[size], persona), slots)


@pytest.mark.parametrize("kind", [k for k in ALL if k != "travel_token"])
def test_every_wording_in_every_style_is_read_back(kind):
    recipe = ALL[kind]
    for seed in range(3):
        slots = serve(kind, seed).slots
        for clause in recipe.clauses:
            assert set(SLOTS.findall(clause)) == set(slots), "each wording tells all of a request"
            for persona in STYLES:
                for size in ("tiny", "official"):
                    text = said(clause, slots, persona, seed, size)
                    (frame,) = read_requests(text)
                    assert (frame.intent, frame.slots, lacks(frame)) == (kind, slots, None), text
                    assert text[0].isupper() or clause[0] == "{"
                    assert text[-1] in ".?"


@pytest.mark.parametrize("kind", [k for k, r in RECIPES.items() if r.missing])
def test_what_is_left_out_is_noticed_and_given_later(kind):
    recipe = RECIPES[kind]
    slots = serve(kind, 0).slots
    for name, clauses in recipe.missing.items():
        slot = recipe.slot(name)
        for clause in clauses:
            assert set(SLOTS.findall(clause)) == set(slots) - {name}
            for persona in STYLES:
                (frame,) = read_requests(said(clause, slots, persona))
                assert (frame.intent, lacks(frame)) == (kind, slot), clause
                assert frame.slots == {k: v for k, v in slots.items() if k != name}
        for reply in slot.say:
            assert read_reply(reply.replace("{}", slots[name]), slot) == slots[name]
            assert read_requests(reply.replace("{}", slots[name])) == []
        assert read_reply("I do not know.", slot) is None
        assert slot.ask.endswith("?")
        assert slot.guess and all(re.fullmatch(form(slot), guess) for guess in slot.guess)


def test_a_wording_leaves_out_one_slot_at_most():
    for recipe in ALL.values():
        used = [*recipe.clauses, *(clause for clauses in recipe.missing.values() for clause in clauses)]
        assert sorted(used) == sorted(recipe.says), recipe.name


def test_the_script_of_a_task_is_understood_as_it_was_meant():
    """Requests, logins and what comes before them, in the order in which they were written down."""
    for size in ("tiny", "small", "official"):
        for task in made(size, "train", 80):
            frames = [f for text in task.agenda["turns"] for f in read_requests(text)]
            mine = [(f.intent, f.slots) for f in frames if f.intent not in LOGINS]
            wanted = []
            for request in task.agenda["requests"]:
                slots = {k: v for k, v in request["slots"].items() if k != request["unknown"]}
                wanted.append((request["kind"], slots))
            assert mine == wanted, task.agenda["turns"]


def test_a_message_of_several_requests_is_taken_apart():
    rng = random.Random(1)
    parts = ["Please delete ledger.txt from barn.", "I would like you to close ticket 4103.", "{brake} it."]
    text = requests.join(rng, parts[:2], SIZES["official"])
    assert text.startswith(parts[0]) and "I would like you to close" in text
    assert [f.intent for f in read_requests(f"Hello. {text}")] == ["file_delete", "ticket_close"]
    assert requests.join(rng, parts[:1], SIZES["tiny"]) == parts[0]


@pytest.mark.parametrize(
    "text", ["", "Hello.", "What about now?", "I cannot do that.", "Delete it.", 'He said "close ticket 12', "{folder}"]
)
def test_what_is_no_request_is_none(text):
    assert read_requests(text) == []


@given(st.text(max_size=200))
@settings(max_examples=60)
@example("¹")
def test_any_text_can_be_read(text):
    read_requests(text)
    read_tools(text)
    value_of(text)
    observed("search_tweets", text)
    for tool in ("get_user_id", "place_order", "cat"):
        observed(tool, text)


def test_tools_that_a_user_brings_are_recognised_by_their_documents():
    (task,) = [t for t in made("small", "train", 80) if t.tags["intent"] == "missing_tool"][:1]
    brought = [read_tools(text) for text in task.agenda["turns"]]
    assert [names for names in brought if names] == list(task.agenda["brings"].values())
    assert read_tools('I say {"type": "function", "function": {"name": "cd"} in a line') == []


# what tools answer


@pytest.mark.parametrize(
    ("tool", "arguments", "value", "short"),
    [
        ("cd", {"folder": "barn"}, {"current_working_directory": "barn"}, "barn"),
        ("cd", {"folder": ".."}, {}, "ok"),
        ("get_user_id", {"user": "Bram"}, {"user_id": "USR104"}, "USR104"),
        ("get_symbol_by_name", {"name": "Apple"}, {"symbol": "AAPL"}, "AAPL"),
        ("get_stock_info", {"symbol": "AAPL"}, {"price": 46.33, "volume": 2.0}, "AAPL at $46.33"),
        ("place_order", {}, {"order_id": 30117, "status": "Pending"}, "order 30117"),
        ("create_ticket", {}, {"id": 4103, "title": "x"}, "ticket 4103"),
        ("mkdir", {}, None, "ok"),
        ("mv", {}, {"result": "'a' moved to 'b'"}, "ok"),
        ("get_user_id", {"user": "Bra"}, {"error": "not found"}, "error: not found"),
    ],
)
def test_short_answers_tell_what_is_needed(tool, arguments, value, short):
    text = "None" if value is None else json.dumps(value)
    assert compact(tool, arguments, text) == short
    if value and "error" not in value and tool != "mv" and short != "ok" and tool != "cd":
        seen = observed(tool, short)
        assert seen and all(seen[key] == {**arguments, **observed(tool, text)}[key] for key in seen)


def test_a_list_of_posts_is_read_in_both_forms():
    posts = [{"id": 211, "content": "The ferry has moved"}, {"id": 228, "content": "The ferry is late"}]
    short = compact("search_tweets", {"keyword": "ferry"}, str(posts))
    assert short == "211, 228"
    assert [p["id"] for p in observed("search_tweets", short)] == [
        p["id"] for p in observed("search_tweets", str(posts))
    ]
    assert compact("search_tweets", {"keyword": "ferry"}, "[]") == "none"
    assert observed("search_tweets", "none") == []
