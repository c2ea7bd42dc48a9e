"""The words of tiny worlds that the tiny model's tokenizer makes one token each (recipes/tiny.py)."""

from __future__ import annotations

from muarl.domains.acebench import attendant
from muarl.domains.acebench import catalogue as cat
from muarl.domains.acebench import phrases as said
from muarl.domains.acebench.texts import EN

OBSERVATION_PIECES = (
    "Wi-Fi on", "device logged in", "logged in", "sent", "deleted", "reminder added", "ordered", "booked", "cancelled",
    "changed", "earliest message ", "latest message ", "message from ", " number ", ' says "', '"', " yuan, ", " at ",
    ", regular member", ", silver member", ", gold member", "trip to ", " is ", " flight ", " from ", " to ", " on ",
    "on ", " in ", "in ", " yuan, in ", " yuan\non ", " yuan", "sold out", "sold out\non ", ", ", " bags", " bag",
    " bags\ntrip to ", " bag\ntrip to ", "Transfer successful",
)  # fmt: skip
PHRASE_PIECES = (
    '". Shall I go ahead?', ". Shall I go ahead?", "Done. Anything else?", " Anything else?", ". Anything else?",
    '". Anything else?', "How can I help you?", "I am sorry, ", "I am sorry, I cannot find ", ". Who should get it?",
    " is not available. There is ", ". Which dish would you like?",
    "is not available. Which other date would you like?", "Insufficient balance. Which other dish would you like?",
    "Insufficient balance. Which other payment would you like?", ' the message "', '" at ', ' saying "',
    " yuan, with ", ", with ", " and ", "pay with ", ", pay with ", " bags, pay with ", " bag, pay with ",
    " is on flight ", "I will add ", "I will change ", "I will book ", " x ",
    "You are being transferred to a human agent. Please hold on.",
    "send ", "delete ", "order ", "some ", "add a reminder ", "the oldest message", "the latest message",
    "the message from ", "know what ", " wrote to me", " wrote to ", "book a flight", "reservation ",
    "cancel reservation ", "the flight number of ", "change the destination of ", "remove a bag from ", " please.",
    "please.", "instead.", "my trip to ", "I do not remember. It is my trip to ", " on the account of ",
    'It should say "', 'The title is "', "User id ", ", password ", "My user id is ", " and my password is ",
    "My password is ", "It is password ", "I am ", "My name is ", "Make it ", "make it ", " should get it.",
    "It is for ", "it is for ", "I want ", " of it", "want to ", "need to ", "would like to ", "I also want to ",
    "Also, I need to ", "I still need to ", "You forgot that I want to ", "Please ", "Actually, ",
    "Wait, I changed my mind. ", "Sorry, no. ", "No, that is wrong. ",
    "The caller wants to talk about ", "The caller wants to cancel a flight that has left.", "The caller needs help.",
    "What the caller wants is not available.", "The caller asks for something that is not allowed.",
)  # fmt: skip
"""Stock phrases of the experts and the callers, and what stands around the values in compact observations."""
CALL_PIECES = (
    '\n{"name": "turn_on_wifi", "arguments": {}}\n', '\n{"name": "login_device", "arguments": {}}\n',
    '\n{"name": "get_latest_message_id", "arguments": {}}\n',
    '\n{"name": "get_earliest_message_id", "arguments": {}}\n',
    '\n{"name": "delete_message", "arguments": {"message_id": ', "}}\n",
    '", "items": [{"product": "', '", "quantity": ', "}]}}\n", '", "baggage_count": ', '", "add_baggage": ',
    ', "new_payment_method": "',
)  # fmt: skip
"""What joins the arguments of calls without arguments, or whose arguments are numbers or lists of objects."""

REFUSED = (
    "send_not_in", "send_no_wifi", "inbox_full", "no_party", "delete_not_in", "view_not_in", "none_between",
    "latest_not_in", "earliest_not_in", "reminder_add_not_in", "reminders_full", "food_no_wifi", "food_no_user",
    "food_password", "food_balance", "no_flights", "travel_password", "cash_balance", "bank_balance", "cabin_balance",
    "baggage_balance", "flown",
)  # fmt: skip
"""Refusals of tools that tiny worlds show as they are."""


def entities() -> list[str]:
    """What must be one token wherever it stands: names, texts, dishes, places, ids, days and prices of tiny worlds."""
    pieces: list[str] = [*cat.PEOPLE[: cat.TINY_PEOPLE], *cat.PASSWORDS[: cat.TINY_PASSWORDS]]
    merchants = list(cat.MENUS)[: cat.TINY_MERCHANTS]
    pieces += [*merchants, *(dish for m in merchants for dish in cat.MENUS[m][: cat.TINY_DISHES])]
    pieces += [*map(str, cat.DISH_PRICES), *cat.MESSAGES[: cat.TINY_MESSAGES], *cat.NOTES]
    pieces += [*cat.TITLES[: cat.TINY_TITLES], *cat.TIMES[: cat.TINY_TIMES]]
    pieces += [*cat.CITIES[: cat.TINY_CITIES], *cat.TRAVELLERS, *cat.RESERVATIONS, *cat.FLIGHTS[: cat.TINY_FLIGHTS]]
    # A day with its space is another token, so that in "2024-07-28 LN1784" the flight stands right behind its key.
    pieces += [f"{day}{end}" for day in (*cat.DAYS_AHEAD, *cat.DAYS_OVER) for end in ("", " ")]
    pieces += [*cat.CABINS, *cat.PAYMENTS]
    pieces += [*cat.REASONS, *(f"{r[0].upper()}{r[1:]}" for r in cat.REASONS)]
    pieces += [str(fare) for fares in cat.FARES.values() for fare in fares]
    pieces += [*map(str, range(10)), *cat.TOPICS_PHONE, *cat.TOPICS_TRAVEL]
    return list(dict.fromkeys(pieces))


def phrases() -> list[str]:
    """Fixed pieces of compact observations, and stock phrases of the experts and the callers."""
    pieces = [*OBSERVATION_PIECES, *CALL_PIECES, *(EN[key] for key in REFUSED)]
    pieces += [*attendant.ASK.values(), *attendant.REFUSE.values(), *attendant.IDENTITY.values()]
    pieces += [attendant.WRONG_PASSWORD, attendant.WRONG_TRAVELLER]
    pieces += [text.split("{}")[0] for text in attendant.PROPOSE.values()]
    return list(dict.fromkeys([*pieces, *PHRASE_PIECES, *said.YES, *said.DROPS, *said.ENDINGS]))
