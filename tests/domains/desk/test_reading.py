"""What either side understands of the other: acts, intents, slots; in the words of agents that are not ours, too."""

from __future__ import annotations

import random

import pytest

from muarl.audit.consent import is_affirmative, names_action
from muarl.domains.desk import reading, wording
from muarl.domains.desk.expert import _agrees, _drops
from muarl.domains.desk.scenario import spoken_slots
from muarl.domains.desk.spec import PLACE
from muarl.domains.desk.values import normal
from support.desk import SCENARIOS, made, script

everywhere = pytest.mark.parametrize("name", SCENARIOS)


def wishes(name, count=40):
    for task in made(name, count=count, split="train"):
        for request in task.agenda["requests"]:
            for wish in (request["wish"], request["then"], request["fallback"]):
                if request["kind"] != "outside" and wish and not wish.get("drop"):
                    yield request["kind"], wish


def same(found, wanted):
    return {k: normal(v) for k, v in found.items()} == {k: normal(v) for k, v in wanted.items()}


def described(wish, slot):
    """The slot as it is told: by its id, or by its description."""
    key = f"described {slot}"
    return {key: wish[key]} if key in wish else {slot: wish[slot]}


@everywhere
def test_every_clause_of_every_wish_is_read_back(name):
    """In every way to begin, with reasons and asides around it."""
    made_script, rng = script(name), random.Random(0)
    for kind, wish in wishes(name):
        intent = made_script.spec.intents[kind]
        for clause in intent.say:
            said = spoken_slots(made_script, wish, rng)
            opener = rng.choice(wording.OPENINGS[rng.choice(list(wording.OPENINGS))])
            text = wording.put(opener, PLACE.sub(lambda m, said=said: said[m[1]], clause))
            text = " ".join(
                [text, *([rng.choice(intent.because)] if intent.because else []), rng.choice(wording.ASIDES)]
            )
            parts = [p for p in reading.parts(made_script, text) if p[0]]
            assert [p[0] for p in parts] == [kind], text
            told = {k: v for slot, _ in PLACE.findall(clause) for k, v in described(wish, slot).items()}
            assert same(reading.read_slots(made_script, parts[0][1], intent.slots), told), text


@everywhere
def test_every_answer_and_every_change_is_read_back(name):
    made_script, rng = script(name), random.Random(1)
    for kind, wish in wishes(name):
        slots = made_script.spec.intents[kind].slots
        for slot in slots:
            spec = made_script.spec.slots[slot]
            if f"described {slot}" in wish:
                value = wish[f"described {slot}"]
                templates = [(t, slot, made_script.kinds[spec.described.kind]) for t in spec.described.say]
            else:
                value = wish[slot]
                templates = [(t, slot, made_script.kinds[spec.kind]) for t in spec.say]
                templates += [(t, "confirm", made_script.kinds[spec.kind]) for t in spec.change]
            for template, waiting, value_kind in templates:
                text = template.replace("{}", value_kind.say(value, rng))
                taken = set() if waiting == "confirm" else set(slots) - {slot}
                found = reading.read_slots(made_script, text, slots, waiting=waiting, taken=taken)
                assert same(found, described(wish, slot)), text
                assert not _drops(text) and not (waiting == "confirm" and _agrees(text)), text


@everywhere
def test_an_agents_questions_are_heard_as_what_they_are(name):
    made_script = script(name)
    for slot, spec in made_script.spec.slots.items():
        for question in spec.ask:
            assert made_script.asked[slot].search(question), question
            assert reading.hear(question) == {"question"}, question
    for question in (*made_script.spec.identify.ask, *made_script.spec.identify.retry):
        assert any(p.search(question) for p in made_script.asked_identity.values()), question
        assert "confirm" not in reading.hear(question), question


@everywhere
def test_every_proposal_names_its_action_and_is_heard_as_a_proposal(name):
    for intent in script(name).spec.intents.values():
        for step in intent.steps:
            for text in step.propose:
                assert names_action(f"I will {text}", step.write), text
    for template in wording.PROPOSALS:
        assert {"confirm", "question"} <= reading.hear(template.format("do that")), template


def test_yes_is_yes_and_the_end_is_no_yes():
    for several in wording.YES.values():
        for text in several:
            assert is_affirmative(text) and _agrees(text) and not _drops(text), text
    for text in wording.DROPS:
        assert _drops(text) and not is_affirmative(text), text


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("Before I proceed, could you please confirm that you want order F-10001 cancelled (yes/no)?", {"confirm"}),
        ("Would you like me to book that for you?", {"confirm"}),
        ("Do you want me to go ahead?", {"confirm"}),
        ("Should I change it to Friday?", {"confirm"}),
        ("May I ask for the reason?", set()),
        ("Could you please confirm your name and phone number?", set()),
        ("I'm sorry, but I am unable to do that.", {"refuse"}),
        ("That is against our policy.", {"refuse"}),
        ("The suite isn't available on those nights.", {"unavailable"}),
        ("Unfortunately that slot is already taken.", {"unavailable"}),
        ("Your order has been cancelled successfully.", {"done"}),
        ("Is there anything else I can help you with today?", {"done", "else"}),
        ("I'm transferring you to a human agent now.", {"transferred"}),
        ("I will transfer $200 to your savings account.", set()),
        ("The money has been transferred to your savings.", {"done"}),
        ("To get started, I need to verify your identity.", {"ask_identity"}),
    ],
)
def test_other_agents_are_understood(text, acts):
    assert reading.hear(text) - {"question"} == acts, reading.hear(text)


WISH = {"order": "F-10001", "dish": "Pad Thai", "new_dish": "Green Curry"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'll replace the Pad Thai in order F-10001 with the Green Curry. OK?", False),
        ("I'll swap Pad Thai for Green Curry.", False),
        ("I'll replace the Pad Thai in order F-10002 with the Green Curry.", True),
        ("I'll replace the Pad Thai with the Papaya Salad in order F-10001.", True),
        ("I'll do what you want.", True),
        ("I'll go ahead with order F-10001.", False),
    ],
)
def test_proposals_that_are_not_the_wish(text, expected):
    assert reading.conflicts(script("food-delivery"), text, WISH) is expected


def test_who_does_not_know_the_id_goes_by_the_description():
    made_script = script("food-delivery")
    wish = {"order": "F-10001", "described order": "Golden Wok", "reason": "changed plans"}
    assert not reading.conflicts(made_script, "I'll cancel your order from Golden Wok, changed plans.", wish)
    assert reading.conflicts(made_script, "I'll cancel your order from Green Bowl, changed plans.", wish)
    only = {"order": "F-10001", "described order": "Golden Wok"}
    assert not reading.conflicts(made_script, "I'll cancel order F-55555. Shall I?", only)


def test_several_wishes_in_one_message_are_told_apart():
    text = (
        "Hi there! I would like to cancel order F-10001. My tea is getting cold, but never mind. On top of that I need "
        "to add a tip of $5 to my order from Golden Wok."
    )
    parts = [p for p in reading.parts(script("food-delivery"), text) if p[0]]
    assert [p[0] for p in parts] == ["cancel_order", "add_tip"]
    slots = reading.read_slots(script("food-delivery"), parts[1][1], ("order", "amount"))
    assert slots == {"described order": "Golden Wok", "amount": 5}


def test_an_answer_is_no_new_wish():
    text = "To my home address, please."
    assert [p[0] for p in reading.parts(script("food-delivery"), text, idle=False)] == [""]
    text = "Wait, I also want to cancel order F-10001."
    assert [p[0] for p in reading.parts(script("food-delivery"), text, idle=False)] == ["cancel_order"]


def test_identities_are_read():
    made_script = script("bank")
    found = reading.identity_in(made_script, "I'm Mia Berg, born on May 17, 1984, passcode 123456. Card 4242.")
    assert found == {"name": "Mia Berg", "date_of_birth": "1984-05-17", "passcode": "123456"}
    assert reading.identity_in(made_script, "I want to pay Oak Street Dental $2,400.") == {}
