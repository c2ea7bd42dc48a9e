"""What either side understands of the other: acts, intents, slots; in the words of agents that are not ours, too."""

from __future__ import annotations

import random

import pytest

from muarl.audit.consent import names_action
from muarl.domains.kit import reading, templates
from muarl.domains.kit.declaration import several
from muarl.domains.kit.exploring import explored
from muarl.domains.kit.records import PLACE
from muarl.domains.kit.scenario import spoken_slots
from muarl.domains.kit.worlds import Worlds
from muarl.language.acts import hear
from muarl.language.consent import drops_request, is_affirmative
from muarl.language.values import normal
from support.environments import ON_SERVERS
from support.kit import SERVICES, env, made, service

everywhere = pytest.mark.parametrize("name", [*SERVICES, *ON_SERVERS])


def goals(name, count=20):
    for task in made(name, count=count, split="train"):
        for request in task.agenda["requests"]:
            for goal in (request["goal"], request["then"], request["fallback"]):
                if request["kind"] != "outside" and goal and not goal.get("drop"):
                    yield request["kind"], goal


def same(found, wanted):
    return {k: normal(v) for k, v in found.items()} == {k: normal(v) for k, v in wanted.items()}


def described(goal, slot):
    """The slot as it is told: by its id, or by its description."""
    key = f"described {slot}"
    return {key: goal[key]} if key in goal else {slot: goal[slot]}


@everywhere
def test_every_clause_of_every_request_is_read_back(name):
    """In every way to begin, with reasons and asides around it."""
    called, rng = service(name), random.Random(0)
    for kind, goal in goals(name):
        intent = called.intent(kind)
        slots = [slot.name for slot in intent.slots]
        for clause in intent.says:
            said = spoken_slots(called, goal, rng)
            opener = rng.choice(templates.OPENINGS[rng.choice(list(templates.OPENINGS))])
            text = templates.put(opener, PLACE.sub(lambda m, said=said: said[m[1]], clause))
            text = " ".join(
                [text, *([rng.choice(intent.because)] if intent.because else []), rng.choice(templates.ASIDES)]
            )
            parts = [p for p in reading.parts(called, text) if p[0]]
            assert [p[0] for p in parts] == [kind], text
            told = {k: v for slot, _ in PLACE.findall(clause) for k, v in described(goal, slot).items()}
            assert same(reading.read_slots(called, parts[0][1], slots), told), text


@everywhere
def test_every_answer_and_every_change_is_read_back(name):
    called, rng = service(name), random.Random(1)
    for kind, goal in goals(name):
        slots = [slot.name for slot in called.intent(kind).slots]
        for slot in slots:
            spec = called.slots[slot]
            if f"described {slot}" in goal:
                value = goal[f"described {slot}"]
                texts = [(t, slot, called.kind(spec.described)) for t in several(spec.described.say)]
            else:
                value = goal[slot]
                texts = [(t, slot, called.kind(spec)) for t in several(spec.say)]
                texts += [(t, "confirm", called.kind(spec)) for t in several(spec.change)]
            for template, waiting, value_kind in texts:
                text = template.replace("{}", value_kind.say(value, rng))
                taken = set() if waiting == "confirm" else set(slots) - {slot}
                found = reading.read_slots(called, text, slots, waiting=waiting, taken=taken)
                assert same(found, described(goal, slot)), text
                assert not drops_request(text) and not (waiting == "confirm" and is_affirmative(text)), text


@everywhere
def test_an_agents_questions_are_heard_as_what_they_are(name):
    called = service(name)
    for slot in called.slots.values():
        for question in several(slot.ask):
            assert called.asked[slot.name].search(question), question
            assert hear(question) == {"question"}, question
    identity = called.identity
    for question in (*several(identity.ask), *several(identity.retry)) if identity is not None else ():
        assert any(p.search(question) for p in called.asked_identity.values()), question
        assert "confirm" not in hear(question), question


@pytest.mark.parametrize("name", SERVICES)
def test_every_proposal_names_its_action_and_is_heard_as_a_proposal(name):
    spoken = env(name).audit_rules().spoken
    for shown in explored(Worlds(service(name))).values():
        for tool, texts in shown.notes.proposals.items():
            for text in texts:
                assert names_action(f"I will {text}", tool, spoken[tool]), text
    for template in templates.PROPOSALS:
        assert {"confirm", "question"} <= hear(template.format("do that")), template


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
def test_proposals_that_are_not_the_request(text, expected):
    assert reading.conflicts(service("food-delivery"), text, WISH) is expected


def test_who_does_not_know_the_id_goes_by_the_description():
    called = service("food-delivery")
    goal = {"order": "F-10001", "described order": "Golden Wok", "reason": "changed plans"}
    assert not reading.conflicts(called, "I'll cancel your order from Golden Wok, changed plans.", goal)
    assert reading.conflicts(called, "I'll cancel your order from Green Bowl, changed plans.", goal)
    only = {"order": "F-10001", "described order": "Golden Wok"}
    assert not reading.conflicts(called, "I'll cancel order F-55555. Shall I?", only)


def test_several_requests_in_one_message_are_told_apart():
    text = (
        "Hi there! I would like to cancel order F-10001. My tea is getting cold, but never mind. On top of that I need "
        "to add a tip of $5 to my order from Golden Wok."
    )
    parts = [p for p in reading.parts(service("food-delivery"), text) if p[0]]
    assert [p[0] for p in parts] == ["cancel_order", "add_tip"]
    slots = reading.read_slots(service("food-delivery"), parts[1][1], ("order", "amount"))
    assert slots == {"described order": "Golden Wok", "amount": 5}


def test_an_answer_is_no_new_request():
    text = "To my home address, please."
    assert [p[0] for p in reading.parts(service("food-delivery"), text, idle=False)] == [""]
    text = "Wait, I also want to cancel order F-10001."
    assert [p[0] for p in reading.parts(service("food-delivery"), text, idle=False)] == ["cancel_order"]


def test_identities_are_read():
    called = service("bank")
    found = reading.identity_in(called, "I'm Mia Berg, born on May 17, 1984, passcode 123456. Card 4242.")
    assert found == {"name": "Mia Berg", "date_of_birth": "1984-05-17", "passcode": "123456"}
    assert reading.identity_in(called, "I want to pay Oak Street Dental $2,400.") == {}
