"""Declarations: what is wrong with one is said with its intent, slot and field."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.kit.records import Record
from muarl.kit import DrawContext, Fact, Slot, days, intent, names, of, one_of, own, pattern, rows, words
from support.kit import DAYS, IDENTITY, LIBRARY, LOAN, TODAY, WHY, library, planned

ASK = "Which one?"


def described(**changes):
    return replace(LOAN.described, **changes)


@pytest.mark.parametrize(
    ("declare", "words_of_it"),
    [
        (lambda: pattern("["), ("pattern: '['", "no regular expression")),
        (lambda: names([]), ("names: the list is empty",)),
        (lambda: words({}), ("words: there is no value",)),
        (lambda: Slot("a b", "date", ASK), ("slot 'a b'", "must be an identifier")),
        (lambda: Slot("user", "date", ASK), ("slot 'user'", "none of user")),
        (lambda: Slot("answer", "date", ASK), ("slot 'answer'", "none of user")),
        (lambda: Slot("day", "dat", ASK), ("slot day: kind", "'dat'", "date, day_first")),
        (lambda: Slot("day", "date", ()), ("slot day: ask",)),
        (lambda: Slot("day", "date", ""), ("slot day: ask",)),
        (lambda: Slot("day", "date", ASK, phrase="on a day"), ("slot day: 'on a day'", "write {}")),
        (lambda: Slot("day", "date", ASK, say="Soon."), ("slot day: 'Soon.'", "write {}")),
        (lambda: Slot("day", "date", ASK, change=["Later."]), ("slot day: 'Later.'", "write {}")),
        (lambda: Slot("day", "date", ASK, asked="("), ("slot day: asked", "no regular expression")),
        (lambda: Slot("day", "date", ASK, after="("), ("slot day: after", "no regular expression")),
        (lambda: Slot("day", "date", ASK), ("slot day: draw", "own(...)")),
        (lambda: Slot("id", pattern("X"), ASK), ("slot id: draw",)),
        (lambda: described(kind="titel"), ("described: kind", "'titel'")),
        (lambda: described(say="That one."), ("described: 'That one.'",)),
        (lambda: described(phrase="my loan"), ("described: 'my loan'",)),
        (lambda: planned(print, says=[]), ("intent print: says",)),
        (lambda: planned(print, says="lend {book}"), ("intent print: says", "'book', which is no slot")),
        (lambda: planned(print, share=0), ("intent print: share must be above 0",)),
        (lambda: planned(print, heard="("), ("intent print: heard", "no regular expression")),
        (lambda: planned(print, name="outside"), ("intent outside: the name",)),
        (lambda: planned(print, slots=[LOAN, LOAN]), ("intent print: slots: loan is there twice",)),
        (lambda: Fact("name", "name", tells="{name}"), ("fact name: kind", "'name'")),
        (lambda: Fact("name", "person", tells="I'm me."), ("fact name: tells", "{name}")),
        (lambda: Fact("name", "person", tells="{name}", asked="("), ("fact name: asked",)),
        (lambda: replace(IDENTITY, facts=()), ("identity: facts",)),
        (lambda: replace(IDENTITY, say="I'm {name}."), ("identity: say", "{phone}")),
        (lambda: library(planned(print, name="a"), planned(print, name="a")), ("library: two intents are called a",)),
        (lambda: replace(LIBRARY, intents=()), ("library: intents: there is none",)),
        (lambda: library(planned(print, slots=[replace(DAYS)]), LIBRARY.intent("extend")),
         ("library: two slots are called days",)),
        (lambda: library(open_tools=("list_books",)), ("library: open_tools", "'list_books'", "find_reader, list_lo")),
        (lambda: library(tiny_tools=("list_books",)), ("library: tiny_tools", "'list_books'")),
        (lambda: library(identity=replace(IDENTITY, tool="find")), ("library: identity: tool", "'find'")),
        (lambda: library(more_requests=(0.3, 1.5)), ("library: more_requests", "from 0 to 1", "1.5")),
        (lambda: library(variants={"dones": 1.0}), ("library: variants", "done, unavailable, refuse", "'dones'")),
        (lambda: library(variants={"refuse": 1.0}), ("library: variants", "more than 0 to done")),
        (lambda: library(variants={"done": 1.0, "refuse": -1.0}), ("library: variants", "0 or more")),
        (lambda: library(planned(print, slots=[replace(LOAN, described=described(look="look"))])),
         ("library: slot loan: described: look", "'look'")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(declare, words_of_it):
    with pytest.raises(ConfigError) as caught:
        declare()
    for word in words_of_it:
        assert word in str(caught.value)


def test_an_intent_is_called_as_its_plan_unless_it_says_otherwise():
    def lend(it):
        """Nothing."""

    assert intent(says="lend a book")(lend).name == "lend"
    assert intent(says="lend a book", name="borrow")(lend).name == "borrow"


TABLES = {"orders": {"O-1": {"id": "O-1", "items": [{"name": "Soup"}, {"name": "Tea"}]}, "O-2": {"id": "O-2"}}}


def drawn(draw, **slots):
    given = DrawContext(Record(TABLES), Record({"name": "Mia"}), TODAY, slots)
    records = list(draw.records(given))
    return [record[draw.field] if draw.field else record for record in records]


def test_what_slots_are_drawn_from():
    assert drawn(rows("orders", "id")) == drawn(own("orders", "id")) == ["O-1", "O-2"]
    assert drawn(one_of(2, 2, 3)) == [2, 2, 3]
    assert drawn(days(0, 2)) == ["2026-03-14", "2026-03-15", "2026-03-16"]
    order = Record(TABLES["orders"]["O-1"])
    assert drawn(of(lambda d: d.order.items, "name"), order=order) == ["Soup", "Tea"]
    assert drawn(of(lambda d: [d.user.name])) == ["Mia"]


def test_a_slot_is_drawn_from_those_before_it():
    with pytest.raises(AttributeError, match="no slot 'order' is drawn before; those before it: loan"):
        drawn(of(lambda d: d.order.items), loan="LN-1")


def test_values_are_said_in_the_words_of_either_side():
    assert LIBRARY.say("why", "lost") == "I lost it" and LIBRARY.show("why", "lost") == "lost"
    assert LIBRARY.spoken("extend", {"loan": "LN-100", "today": TODAY}) == {"loan": "LN-100"}
    assert [slot.name for slot in LIBRARY.slots.values()] == ["loan", "days", "why"] and LIBRARY.slots["why"] is WHY
