"""How the callers of phones and travel desks understand agents: a language model's phrasings, and what is misheard."""

from __future__ import annotations

import pytest

from muarl.domains.acebench import phrases
from muarl.domains.acebench.attendant import ASK, IDENTITY, PROPOSE, REFUSE, WRONG_PASSWORD, WRONG_TRAVELLER
from muarl.users.agenda import PATIENCE
from support.acebench import (
    BAGS,
    BOOK,
    CABIN,
    CANCEL,
    DELETE,
    FORGET,
    MOVE,
    ORDER,
    REMIND,
    SEND,
    TODO,
    Talk,
    agrees,
    request,
)  # fmt: skip
from support.callers import ended


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("Could you please provide your user ID?", "ask_user_id"),
        ("May I have your username and password for the food platform?", "ask_password"),
        ("May I have your username and password for the food platform?", "ask_name"),
        ("The password is incorrect. Please try again.", "ask_password"),
        ("Who is sending this message?", "ask_name"),
        ("Memory is full, which message would you like to delete?", "ask_room"),
        ("Your inbox is full. Which message should I remove to make room?", "ask_room"),
        ("Which message should I delete?", "ask_number"),
        ("Who is the recipient?", "ask_to"),
        ("To whom should I send it?", "ask_to"),
        ("What would you like the message to say?", "ask_text"),
        ("Please provide the content of the message.", "ask_text"),
        ("What title should the reminder have?", "ask_title"),
        ("When should I remind you?", "ask_time"),
        ("At what time?", "ask_time"),
        ("What should the description be?", "ask_note"),
        ("Which restaurant would you like to order from?", "ask_merchant"),
        ("What would you like to eat? Which dish?", "ask_product"),
        ("How many portions would you like?", "ask_quantity"),
        ("Whose message do you want to read?", "ask_from"),
        ("Could you tell me your reservation ID?", "ask_reservation_id"),
        ("On which date would you like to travel?", "ask_date"),
        ("Would you prefer Economy Class or Business Class? Which cabin would you like?", "ask_cabin"),
        ("How many pieces of checked baggage will you bring?", "ask_bags"),
        ("Would you like to pay with cash or bank?", "ask_payment"),
        ("What payment method would you like to use?", "ask_payment"),
        ("Where will you be departing from?", "ask_origin"),
        ("What is your destination?", "ask_destination"),
        ("What layover city would you prefer?", "ask_via"),
        ("May I ask the reason for the cancellation?", "ask_reason"),
        ("There are two flights on that day. Which flight would you like?", "ask_flight"),
        ("I will send it now. Is that correct?", "confirm"),
        ("Here are the details. Shall I proceed?", "confirm"),
        ("Would you like to order it?", "confirm"),
        ("Insufficient balance. Would you like to change the order?", "unavailable"),
        ("Unfortunately, there are no available flights on July 21.", "unavailable"),
        ("Golden Wok does not have burritos.", "unavailable"),
        ("The receiver Omar does not exist.", "unavailable"),
        ("I'm sorry, but I'm unable to reduce the baggage.", "refuse"),
        ("Your message has been sent successfully. Is there anything else?", "done"),
        ("You are being transferred to a human agent.", "transferred"),
    ],
)
def test_a_language_models_phrasings_are_heard(text, act):
    heard = phrases.hear(text)
    assert act in heard
    assert ("question" in heard) == ("?" in text)
    assert "transferred" not in heard or act == "transferred"


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("I cannot change the destination. Anything else?", "ask_destination"),
        ("The reservation has been cancelled. Anything else?", "ask_reservation_id"),
        ("There is no extra fee for this flight. Shall I go ahead?", "unavailable"),
        ('He wrote: "Which dish would you like? It is not available." Anything else?', "ask_product"),
        ('He wrote: "Which dish would you like? It is not available." Anything else?', "unavailable"),
        ("Which dish would you like to order?", "confirm"),
        ("The password is correct. Shall I go ahead?", "ask_name"),
    ],
)
def test_statements_and_quotations_are_no_questions(text, act):
    assert act not in phrases.hear(text)


@pytest.mark.parametrize(("slot", "question"), ASK.items())
def test_the_experts_own_questions_are_heard(slot, question):
    assert f"ask_{slot}" in phrases.hear(question)


def test_the_experts_other_sentences_are_heard():
    for slots, question in IDENTITY.items():
        assert {f"ask_{slot}" for slot in slots} <= phrases.hear(question)
    assert "ask_password" in phrases.hear(WRONG_PASSWORD) & phrases.hear(WRONG_TRAVELLER)
    assert all("refuse" in phrases.hear(text) for text in REFUSE.values())
    for kind, text in PROPOSE.items():
        said = text.format(*["2 bags"] * 8)
        assert kind in phrases.spoken_kinds(said), said
        assert "confirm" in phrases.hear(f"{said}. Shall I go ahead?")


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on 2024-07-21", ["2024-07-21"]),
        ("from July 18 to July 21, 2024", ["2024-07-18", "2024-07-21"]),
        ("the 3rd of July", ["2024-07-03"]),
        ("7/21", ["2024-07-21"]),
        ("You may have 2 bags", []),
    ],
)
def test_days_are_read_in_many_forms(text, days):
    assert phrases.dates_in(text) == days


def test_times_counts_cabins_and_payments_are_read():
    assert phrases.times_in("at 08:30, 8:30 PM or 5 pm") == ["08:30", "20:30", "17:00"]
    for text in ("2 x fried rice", "two fried rice", "2 portions of fried rice", "fried rice x 2", "fried rice (2)",
                 "fried rice, quantity: 2", '2 "fried rice"'):  # fmt: skip
        assert phrases.counts_in(text, "fried rice") == {2}, text
    assert phrases.counts_in("fried rice at 35.0 yuan", "fried rice") == set()
    assert phrases.cabins_in("economy, then Business Class") == ["Economy Class", "Business Class"]
    assert phrases.payments_in("by bank transfer") == ["bank"]
    assert phrases.reservations_in("res_40 and reservation res_7") == ["res_40", "res_7"]


RIGHT = [
    ("send", SEND, 'I will send Omar the message "Dinner is at seven". Shall I go ahead?'),
    ("send", SEND, "I'm going to text Omar: Dinner is at seven. Is that correct? (yes/no)"),
    ("delete", DELETE, "I will delete message 4. Shall I go ahead?"),
    ("delete", DELETE, "Do you want me to delete the message that Petra sent?"),
    ("remind", REMIND, 'I will add the reminder "Dentist" at 2024-06-14 08:30 saying "Bring cash". Shall I go ahead?'),
    ("remind", REMIND, "A reminder titled Dentist for June 14, 8:30 AM: Bring cash. Shall I add it? Please confirm?"),
    ("order", ORDER, "I will order 2 x fried rice at 20.0 yuan from Golden Wok. Shall I go ahead?"),
    ("order", ORDER, "You would like two fried rice from Golden Wok for 40 yuan in total. Should I place the order?"),
    ("order", {**ORDER, "quantity": 1}, "I will order fried rice from Golden Wok for 20 yuan. Shall I go ahead?"),
    ("forget", FORGET, 'I will delete the reminder "Dentist". Shall I go ahead?'),
    ("todo", TODO, "I will order 2 x fried rice at 20.0 yuan from Golden Wok. Shall I go ahead?"),
    (
        "book",
        BOOK,
        "I will book Oslo to Rome on 2024-07-21 LN1021 in Economy Class at 700 yuan, with 2 bags, pay with bank. "
        "Shall I go ahead?",
    ),
    ("book", BOOK, "Shall I book LN1021 to Rome on July 21 in Economy Class with two checked bags, paid by bank?"),
    ("move", MOVE, "I will change res_40 to 2024-07-23 LN1021. Shall I go ahead?"),
    ("move", MOVE, "I can move your reservation to flight LN1021 on July 23. Would you like me to proceed?"),
    ("cabin", CABIN, "I will upgrade res_41 to Business Class for 1200 yuan in cash. Is that okay? Confirm?"),
    ("bags", BAGS, "I will add 2 bags to res_42, pay with bank. Shall I go ahead?"),
    ("bags", BAGS, "Two extra bags will be added to res_42, charged to your bank. Shall I proceed?"),
    ("cancel", CANCEL, "I will cancel res_43. Shall I go ahead?"),
]


@pytest.mark.parametrize(("kind", "wish", "proposal"), RIGHT)
def test_a_right_proposal_is_confirmed(kind, wish, proposal):
    for seed in range(4):
        assert agrees(Talk(request(kind, wish), seed=seed).hear(proposal))


@pytest.mark.parametrize(
    ("kind", "proposal"),
    [
        ("send", 'I will send Petra the message "Dinner is at seven". Shall I go ahead?'),
        ("send", 'I will send Omar the message "Dinner is at eight". Shall I go ahead?'),
        ("send", "I will take care of it. Shall I go ahead?"),
        ("delete", "I will delete message 3. Shall I go ahead?"),
        ("delete", "I will delete the oldest message. Shall I go ahead?"),
        ("remind", 'I will add the reminder "Dentist" at 2024-06-14 09:30 saying "Bring cash". Shall I go ahead?'),
        ("remind", 'I will add the reminder "Dentist" at 2024-06-15 08:30 saying "Bring cash". Shall I go ahead?'),
        ("remind", 'I will add the reminder "Dentist" at 2024-06-14 08:30 saying "Pay". Shall I go ahead?'),
        ("order", "I will order 2 x spring rolls at 20.0 yuan from Golden Wok. Shall I go ahead?"),
        ("order", "I will order 3 x fried rice at 20.0 yuan from Golden Wok. Shall I go ahead?"),
        ("order", "I will order 2 x fried rice at 20.0 yuan from Taco Stand. Shall I go ahead?"),
        ("forget", 'I will delete the reminder "Rent". Shall I go ahead?'),
        ("book", "I will book Oslo to Rome on 2024-07-22 LN1 in Economy Class, with 2 bags, pay with bank. Shall I?"),
        ("book", "I will book Oslo to Rome on 2024-07-21 LN1 in Business Class with 2 bags. Shall I go ahead?"),
        ("book", "I will book Oslo to Rome on 2024-07-21 LN1 in Economy Class with 1 bag. Shall I go ahead?"),
        ("book", "I will book Oslo to Rome on 2024-07-21 LN1 in Economy Class, pay with cash. Shall I go ahead?"),
        ("move", "I will change res_40 to 2024-07-24 LN1. Shall I go ahead?"),
        ("move", "I will change res_44 to 2024-07-23 LN1. Shall I go ahead?"),
        ("cabin", "I will change res_41 to Economy Class, pay with cash. Shall I go ahead?"),
        ("cabin", "I will change res_41 to Business Class, pay with bank. Shall I go ahead?"),
        ("bags", "I will add 3 bags to res_42, pay with bank. Shall I go ahead?"),
        ("cancel", "I will cancel res_44. Shall I go ahead?"),
        ("cancel", "I will change res_43 to 2024-07-23. Shall I go ahead?"),
    ],
)
def test_a_wrong_proposal_is_refused_and_the_wish_told_again(kind, proposal):
    said = Talk(request(kind)).hear(proposal if "ahead" in proposal else f"{proposal} Shall I go ahead?")
    assert said.startswith("No, ") and not agrees(said)


def test_a_reminder_for_now_may_be_proposed_in_words():
    wish = {**REMIND, "time": "2024-06-12 09:00"}
    for time in ("now", "the current time", "2024-06-12 09:00"):
        assert agrees(Talk(request("remind", wish)).hear(f'I will add the reminder "Dentist" at {time} saying "Bring '
                                                         'cash". Shall I go ahead?'))  # fmt: skip


def test_what_is_read_out_is_an_answer():
    talk = Talk(request("read", answer="The car is ready"))
    said = talk.hear('Petra wrote: "The car is ready". Would you like to reply, or to add it to a reminder?')
    assert ended(said)


def test_everybody_has_words_for_everything():
    assert set(phrases.OPENINGS) == set(PATIENCE)
    assert phrases.say_bags(1) == "1 bag" and phrases.say_bags(0) == "0 bags"
