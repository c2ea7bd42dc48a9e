"""What a generated task tells an LLM user: the caller, the wishes, and when to change one's mind, in plain English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl.domains.acebench.phrases import say_bags
from muarl.domains.acebench.sayings import say_time
from muarl.domains.retail.scenario import PERSONA_TEXT

Wish = Mapping[str, Any]


def describe_wish(kind: str, wish: Wish, unknown: bool = False) -> str:
    """One wish as a clause that follows "you want to"."""
    if kind == "outside":
        return f"talk about {wish['topic']}"
    return _errand(kind, wish) or _trip(kind, wish, unknown)


def _errand(kind: str, wish: Wish) -> str:
    if kind == "send":
        room = f". If the inbox is full, {wish['room']} is to be deleted" if "room" in wish else ""
        total = " with the total of that order in place of the brackets" if "filled" in wish else ""
        return f'send {wish["to"]} exactly this message{total}: "{wish["text"]}"{room}'
    if kind == "delete":
        return f"delete {wish['which']}"
    if kind == "remind":
        time = say_time(wish["time"])
        if "source" in wish:
            text = f"the text of the message that {wish['source']} has sent you (you do not know it by heart)"
        else:
            text = f'exactly this text: "{wish["note"]}"'
        return f'add a reminder for {time} with the title "{wish["title"]}" and {text}'
    if kind == "read":
        return f"know what {wish['from']} has written to you"
    if kind == "order":
        return _food(wish)
    if kind == "todo":
        room = f" If the inbox is full, {wish['room']} is to be deleted." if "room" in wish else ""
        title = f'the reminder titled "{wish["title"]}"'
        return f"have the tasks in {title} done; you do not know them by heart, and agree to them.{room}".rstrip(".")
    return {
        "note": lambda: f'know what your reminder titled "{wish["title"]}" says',
        "forget": lambda: f'delete your reminder titled "{wish["title"]}"',
        "balance": lambda: "know the balance of your account on the food platform",
        "snoop": lambda: f"know what {wish['from']} has written to {wish['to']}",
        "lend": lambda: f"{_food(wish)}, on the account of {wish['account']}, whose password you do not know",
    }.get(kind, lambda: "")()


def _food(wish: Wish) -> str:
    if "source" in wish:
        return f"order the food that {wish['source']} asks for in a message to you (you do not know it by heart)"
    if "cheapest" in wish:
        return f"order {wish['quantity']} of the cheapest dish from {wish['merchant']}"
    return f"order {wish['quantity']} x {wish['product']} from {wish['merchant']}"


def _trip(kind: str, wish: Wish, unknown: bool) -> str:
    if kind == "funds":
        return "know the balance of your bank account"
    if kind in ("book", "connect", "fare"):
        route = f"from {wish['origin']} to {wish['destination']} on {wish['date']} in {wish['cabin']}"
        if kind == "fare":
            return f"know what the cheapest flight {route} costs"
        bags = f"with {say_bags(wish['bags'])}, paid with {wish['payment']}"
        if kind == "connect":
            return f"book two connecting flights {route}, changing in {wish['via']}, each {bags}"
        return f"book the cheapest flight {route}, {bags}"
    trip = f"reservation {wish['reservation_id']}"
    if unknown:
        trip = f"the reservation of your trip to {wish['described']} (you do not remember its number)"
    paying = f", paying or being refunded with {wish['payment']}" if "payment" in wish else ""
    return {
        "move": lambda: f"move {trip} to the cheapest flight on {wish['date']}",
        "cabin": lambda: f"change {trip} to {wish['cabin']} on the same flight{paying}",
        "bags": lambda: f"add {say_bags(wish['bags'])} to {trip}{paying}",
        "cancel": lambda: f"cancel {trip}; the reason: {wish['reason']}",
        "question": lambda: f"know the flight number of {trip}",
        "compensation": lambda: f"complain that the flight of {trip} was cancelled, and get compensation",
        "fewer_bags": lambda: f"take one bag off {trip}",
        "destination": lambda: f"change the destination of {trip} to {wish['destination']}",
    }[kind]()


def caller_text(agenda: Mapping[str, Any]) -> str:
    """The whole scenario of an agenda, for an LLM user's system prompt."""
    who = agenda["identity"]
    place = "a travel desk" if "user_id" in who else "your phone's assistant"
    account = f"your user id is {who['user_id']}" if "user_id" in who else f"your username is {who['name']}"
    lines = [
        f"Persona:\n\t{PERSONA_TEXT[agenda['persona']]}",
        f"Instructions:\n\tDomain: {place}",
        f"\tKnown info:\n\t\tYou are {who['name']}, {account}, and your password is {who['password']}.",
    ]
    if agenda["wrong_password"]:
        lines.append(
            f"\t\tAt first you give the password {agenda['wrong_password']} by mistake; you correct it if it fails."
        )
    lines.append("\tTask instructions:")
    for number, r in enumerate(agenda["requests"]):
        start = "You want to" if number == 0 else "You also want to"
        lines.append(f"\t\t{start} {describe_wish(r['kind'], r['wish'], bool(r['unknown']))}.")
        lines += _later(r, "then", "When the agent asks you to confirm this, you change your mind")
        lines += _later(r, "fallback", "If the agent says that this cannot be had or paid")
    if not agenda["upfront"] and len(agenda["requests"]) > 1:
        lines.append("\t\tYou mention the second wish only after the first is settled.")
    lines.append(
        "\t\tConfirm what the agent proposes only if it is what you want. "
        "Accept it if the agent says that something is not possible."
    )
    return "\n".join(lines)


def _later(request: Mapping[str, Any], slot: str, when: str) -> list[str]:
    wish = request[slot]
    if wish is None:
        return []
    if wish.get("drop"):
        return [f"\t\t{when}: you drop this wish and want nothing changed for it."]
    return [f"\t\t{when}: now you want to {describe_wish(request['kind'], wish, bool(request['unknown']))}."]
