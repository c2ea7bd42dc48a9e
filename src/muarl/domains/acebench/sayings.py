"""What callers say about who they are and what they want: the other half behind ACEBench's agenda user."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from muarl.domains.acebench import catalogue as cat
from muarl.domains.acebench.phrases import CHANGES, Wish, pick, say_bags

SLOTS = (
    "reservation_id", "from", "to", "text", "number", "title", "note", "time", "merchant", "product", "quantity",
    "origin", "destination", "via", "date", "cabin", "bags", "payment", "reason", "room",
)  # fmt: skip
"""What an agent may ask for, in the order in which it is answered."""

_TOLD_AS = {"number": "which"}
"""A message's number is nothing that a caller knows: it is told what the message is."""


def say_identity(rng: random.Random, who: Mapping[str, str], asked: Sequence[str], password: str) -> str:
    """What is asked of who the caller is: "name" (phone) or "user_id" (travel desk), "password", or both."""
    if "user_id" in who:
        both = ("My user id is {} and my password is {}.", "User id {}, password {}.")
        return pick(rng, both).format(who["user_id"], password)
    if set(asked) == {"password"}:
        return pick(rng, ("My password is {}.", "It is password {}.")).format(password)
    if "password" not in asked:
        return pick(rng, ("I am {}.", "My name is {}.")).format(who["name"])
    both = ("I am {}, password {}.", "My name is {} and my password is {}.")
    return pick(rng, both).format(who["name"], password)


def say_wish(rng: random.Random, kind: str, wish: Wish, reveal: Sequence[str]) -> str:
    """A wish as a clause behind "I want to"; only the slots named in ``reveal`` are told."""
    if kind == "outside":
        return f"talk about {wish['topic']}"
    if kind in _ERRANDS:
        return _ERRANDS[kind](rng, wish, reveal)
    return _TRIPS[kind](rng, wish, reveal)


# the phone


def _send(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    if "text" not in reveal:
        return f"send a message to {wish['to']}" if "to" in reveal else "send a message"
    brackets = _brackets(wish)
    if "to" not in reveal:
        return f'send the message "{wish["text"]}"{brackets}'
    return f'send {wish["to"]} the message "{wish["text"]}"{brackets}'


def _brackets(wish: Wish) -> str:
    return " with the total in the brackets" if "filled" in wish else ""


def _delete(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    return f"delete {wish['which'] if 'number' in reveal else 'a message'}"


def _remind(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    title = f' "{wish["title"]}"' if "title" in reveal else ""
    time = f" at {say_time(wish['time'])}" if "time" in reveal else ""
    note = f' saying "{wish["note"]}"' if "note" in reveal else ""
    if "source" in wish:
        note = f" with the message from {wish['source']}"
    return f"add a reminder{title}{time}{note}"


def say_time(time: str) -> str:
    """The time of a reminder."""
    return "the current time" if time == cat.PHONE_NOW else time


def _read(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    return f"know what {wish['from']} wrote to me" if "from" in reveal else "know what somebody wrote to me"


def _order(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    if "source" in wish:
        return f"order the food that {wish['source']} asked me for in a message"
    merchant = f" from {wish['merchant']}" if "merchant" in reveal else ""
    if "cheapest" in wish:
        number = wish["quantity"] if "quantity" in reveal else "some"
        return f"order {number} of the cheapest dish{merchant}"
    if "product" not in reveal:
        return f"order food{merchant}"
    number = f"{wish['quantity']} x" if "quantity" in reveal else "some"
    return f"order {number} {wish['product']}{merchant}"


def _lend(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    ordered = f"order {wish['quantity']} x {wish['product']} from {wish['merchant']}"
    return f"{ordered} on the account of {wish['account']}"


_ERRANDS = {
    "send": _send,
    "delete": _delete,
    "remind": _remind,
    "read": _read,
    "order": _order,
    "lend": _lend,
    "snoop": lambda rng, wish, reveal: f"know what {wish['from']} wrote to {wish['to']}",
    "todo": lambda rng, wish, reveal: f'get the tasks in my reminder "{wish["title"]}" done',
    "note": lambda rng, wish, reveal: f'know what my reminder "{wish["title"]}" says',
    "forget": lambda rng, wish, reveal: f'delete my reminder "{wish["title"]}"',
    "balance": lambda rng, wish, reveal: "know the balance of my food account",
}

# the travel desk


def _trip(wish: Wish, reveal: Sequence[str]) -> str:
    if "reservation_id" in reveal:
        return f"reservation {wish['reservation_id']}"
    return f"my trip to {wish['described']}" if "described" in reveal and "described" in wish else "my reservation"


def _paying(wish: Wish, reveal: Sequence[str]) -> str:
    return f", pay with {wish['payment']}" if "payment" in reveal and "payment" in wish else ""


def _book(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    parts = ["book flights" if "via" in wish else "book a flight"]
    parts += [f"from {wish['origin']}"] if "origin" in reveal else []
    parts += [f"to {wish['destination']}"] if "destination" in reveal else []
    parts += [f"by way of {wish['via']}"] if "via" in wish and "via" in reveal else []
    parts += [f"on {wish['date']}"] if "date" in reveal else []
    parts += [f"in {wish['cabin']}"] if "cabin" in reveal else []
    bags = f", with {say_bags(wish['bags'])}" if "bags" in reveal else ""
    return " ".join(parts) + bags + _paying(wish, reveal)


def _move(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    day = f"{wish['date']} instead" if "date" in reveal else "another day"
    return f"{pick(rng, ('change', 'move'))} {_trip(wish, reveal)} to {day}"


def _cabin(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    if "cabin" not in reveal:
        return f"change the cabin of {_trip(wish, reveal)}{_paying(wish, reveal)}"
    return f"{pick(rng, ('change', 'switch'))} {_trip(wish, reveal)} to {wish['cabin']}{_paying(wish, reveal)}"


def _bags(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    number = say_bags(wish["bags"]) if "bags" in reveal else "bags"
    return f"add {number} to {_trip(wish, reveal)}{_paying(wish, reveal)}"


def _cancel(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    return f"cancel {_trip(wish, reveal)}" + (f", {wish['reason']}" if "reason" in reveal else "")


def _fare(rng: random.Random, wish: Wish, reveal: Sequence[str]) -> str:
    route = f"from {wish['origin']} to {wish['destination']} on {wish['date']}"
    return f"know the price of the cheapest flight {route} in {wish['cabin']}"


_TRIPS = {
    "book": _book,
    "connect": _book,
    "move": _move,
    "cabin": _cabin,
    "bags": _bags,
    "cancel": _cancel,
    "fare": _fare,
    "question": lambda rng, wish, reveal: f"know the flight number of {_trip(wish, reveal)}",
    "funds": lambda rng, wish, reveal: "know the balance of my bank account",
    "compensation": lambda rng, wish, reveal: f"get compensation for {_trip(wish, reveal)}, its flight was cancelled",
    "fewer_bags": lambda rng, wish, reveal: f"remove a bag from {_trip(wish, reveal)}",
    "destination": lambda rng, wish, reveal: (
        f"change the destination of {_trip(wish, reveal)} to {wish['destination']}"
    ),
}

# answers and changes


def say_slot(rng: random.Random, slot: str, wish: Wish, unknown: Sequence[str] = ()) -> str:
    """The answer to a question about one slot of a wish; about one that the caller does not know, what they do know."""
    if slot == "number" and "from" in wish:
        slot = "from"
    if slot in unknown or (slot == "number" and "source" in wish):
        if "source" in wish:
            return f"It is in the message from {wish['source']}."
        if "cheapest" in wish:
            return "I want the cheapest dish please."
        if slot == "reservation_id":
            return f"I do not remember. It is my trip to {wish['described']}."
        return f'It is in my reminder "{wish["title"]}".'
    value = wish[_TOLD_AS.get(slot, slot)]
    if slot in ("room", "number", "merchant", "product", "date", "cabin", "payment", "to"):
        return pick(rng, _PLEASE.get(slot, ("I want {} please.", "Make it {} please."))).format(value)
    if slot == "time":
        return f"At {say_time(value)} please."
    if slot == "bags":
        return f"Make it {say_bags(value)} please."
    if slot == "text":
        return f'It should say "{value}"{_brackets(wish)}.'
    if slot == "reason":
        return f"{value[0].upper()}{value[1:]}."
    return _SAID[slot].format(value)


_PLEASE = {
    "room": ("Delete {} please.", "Please delete {}."),
    "number": ("It is {}.", "I mean {}."),
    "merchant": ("From {} please.", "I want it from {} please."),
    "payment": ("Use {} please.", "With {} please."),
    "to": ("It is for {}.", "{} should get it."),
}
_SAID = {
    "reservation_id": "It is reservation {}.",
    "from": "I mean {}.",
    "title": 'The title is "{}".',
    "note": 'It should say "{}".',
    "quantity": "I want {} of it please.",
    "origin": "From {} please.",
    "destination": "To {} please.",
    "via": "By way of {} please.",
}


def say_change(rng: random.Random, kind: str, old: Wish, new: Wish) -> str:
    """How a caller who heard the proposal states the new wish: only what changed."""
    changed = [s for s in SLOTS if s in new and new[s] != old.get(s)]
    slot = changed[0] if changed else ""
    value = new.get(_TOLD_AS.get(slot, slot))
    if slot in ("reservation_id", "number", "title") and kind in ("cancel", "delete", "forget"):
        text = f"{say_wish(rng, kind, new, ('reservation_id', 'number', 'title'))} please."
    elif slot == "to":
        text = f"it is for {value}."
    elif slot in ("text", "note"):
        text = f'it should say "{value}".'
    elif slot == "quantity":
        text = f"I want {value} of it."
    elif slot == "bags":
        text = f"make it {say_bags(new['bags'])}."
    elif slot == "time":
        text = f"make it at {say_time(str(value))}."
    elif slot == "payment":
        text = f"I pay with {value}."
    elif slot == "date":
        text = f"make it {value} instead."
    else:
        text = f"make it {value}."
    opening = pick(rng, CHANGES)
    return opening.format(text if opening.startswith("Actually") else text[0].upper() + text[1:])
