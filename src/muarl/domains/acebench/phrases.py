"""How callers understand an agent, and their stock phrases: half of what is behind ACEBench's agenda user.

``hear`` turns the agent's text into acts, ``conflicts`` holds a proposal against a wish. Both work on plain English, so
an agent need not be one of ours. What callers say about their wishes: sayings.py.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.domains.acebench import catalogue as cat

Wish = Mapping[str, Any]

NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MERCHANTS = tuple(cat.MENUS)
DISHES = tuple(sorted((d for menu in cat.MENUS.values() for d in menu), key=len, reverse=True))

_CHANGING = r"\b(chang|mov|switch|updat|modif|rebook|reschedul)"
_KIND_WORDS: Mapping[str, str] = {
    "send": r"\b(send|text|reply)\b|\bmessage (to|for)\b",
    "delete": r"\b(delet|remov|eras)\w*[^.?]{0,30}\b(message|text|one|it)\b",
    "remind": r"\breminder|\bremind you\b",
    "read": r"\bwrote\b|\bmessages? from\b|\bsays\b",
    "order": r"\border",
    "todo": r"\border|\bsend\b|\breminder",
    "note": r"\breminder",
    "forget": r"\breminder",
    "balance": r"\bbalance\b",
    "book": r"\bbook|\breserve\b",
    "connect": r"\bbook|\breserve\b|\bflights\b",
    "move": _CHANGING,
    "cabin": _CHANGING + r"|\b(up|down)grad|\bcabin\b",
    "bags": r"\bbags?\b|baggage|suitcase|luggage",
    "cancel": r"\bcancel(?!led)|cancell?ing\b|cancellation",
    "compensation": r"compensat|voucher",
    "question": r"\bflight\b",
    "fare": r"\bpric|\bcosts?\b|\bfare\b|\byuan\b",
    "funds": r"\bbalance\b|\baccount\b",
}

_ACTS: Mapping[str, str] = {
    "transferred": r"transferred|transferring|human agent",
    "ask_password": r"password",
    "ask_name": r"\b(your|full|user|account)[ -]?name|who are you|who am i (speaking|talking)|\bsender\b"
    r"|who is sending",
    "ask_user_id": r"user.?id|verify|identif",
    "unavailable": r"\bno (direct |available |other |such |free |economy |business |class |more )*(flights?|seats?|dish"
    r"|product|merchant|contact|person)\b|(not|n['’]t) available|unavailable"
    r"|sold out|fully booked|out of stock|insufficient|not (enough|sufficient)|too expensive|cannot afford"
    r"|(not|n['’]t) (on|in|part of)[^.?!]{0,40}menu|(does not|doesn['’]t|do not|don['’]t) (exist|have|offer|sell|serve)"
    r"|(cannot|could not|couldn['’]t|can['’]t) find|not found|not in your contacts|(not|n['’]t) operate",
    "confirm": r"yes/no|\(yes|\bconfirm|shall i|should i|want me to|like me to|go ahead|proceed"
    r"|is (that|this) (right|correct|ok)"
    r"|(^|[.!?]\s+)(would|do) you (like|want) to (order|place|send|delete|add|book|change|upgrade|cancel|complete)",
    "ask_room": r"(memory|inbox|capacity|storage)[^?]{0,60}\bfull\b"
    r"|which message[^?]{0,40}(delete|remove)[^?]{0,60}(room|space)|(room|space)[^?]{0,60}which message",
    "ask_number": r"(which|what) (message|text|one)\b",
    "ask_to": r"\bwhom?\b[^?]{0,30}(get|send|receive|message)|recipient|to whom|\bwho (is it|it is) for",
    "ask_text": r"(what|which)[^?]{0,40}(message|text)[^?]{0,30}(say|be\b|send|contain)|content"
    r"|what would you like (to say|it to say)|(text|wording) of",
    "ask_title": r"\btitle|which[^?]{0,20} reminder|call(ed)? (the|it)",
    "ask_note": r"reminder[^?]{0,20}\bsay|what[^?]{0,30}(remind(ed)? you|be reminded)|descri(be|ption)|content",
    "ask_time": r"(what|which)[^?]{0,20}\btime|at what|\bwhen\b|\btime (for|of) the reminder",
    "ask_merchant": r"(which|what)[^?]{0,12} (merchant|restaurant|store|shop|place|vendor)"
    r"|(order(ed)?|food)[^?]{0,20} from[^?]{0,10}\?|(name of|provide)[^?.]{0,30}(merchant|restaurant)",
    "ask_product": r"(which|what)( other)? (dish|product|item|food|meal)|what would you like|(something|anything) else"
    r"[^?]{0,20}(instead|order)|another (dish|product|item)|change the order|modify (the|your) order",
    "ask_quantity": r"how (many|much of)(?![^?]{0,25}(bag|suitcase|piece))|quantit",
    "ask_from": r"whose (message|text)|from whom|\bwho (sent|wrote)|(which|what) (person|contact|sender)",
    "ask_reservation_id": r"which (reservation|booking|trip)|(reservation|booking) (id|number|code)",
    "ask_flight": r"(which|what)( of these| of the)? (flight|one)",
    "ask_date": r"(which|what)( other| new| travel| departure)? (date|day)|new date\?|\bwhen\b|(date|day) would you",
    "ask_cabin": r"(which|what)( other| new)? (cabin|class|seat)|(cabin|class)( class)? would you|economy[^?.]{0,20} or"
    r" business|business[^?.]{0,20} or economy",
    "ask_bags": r"how (many|much)[^?]{0,40}(bags?|suitcases|pieces|baggage|luggage)|(number|count) of[^?.]{0,20}bag"
    r"|checked (bags?|baggage)[^.]{0,40}\?",
    "ask_payment": r"cash or|bank or|(which|what|your|preferred) payment|payment method|pay(ing)? (with|by)\?"
    r"|how would you like to pay|refund method",
    "ask_origin": r"from where|where[^?]{0,30} from|\borigin\b|departure (city|location|place)|departure and",
    "ask_destination": r"to where|where[^?]{0,20} to\b|destination|arrival (city|location)",
    "ask_via": r"(which|what)[^?]{0,20}(city|airport)[^?]{0,20}(change|stop|transfer)|layover|transfer city|stopover"
    r"|by way of which",
    "ask_reason": r"(what|which|your|the).{0,20} reason\b|\bwhy\b|reason for",
    "refuse": r"cannot|can't|can’t|can not|unable|not allowed|not possible|not permitted|not eligible|against",
    "done": r"anything else|\bdone\b|has been|have been|completed|all set|is there more|successful",
}  # fmt: skip

_BEGGING = r"\?|please|provide|let me know|tell me|i need|need to know|could you|share"
_ASKED_ANYHOW = ("ask_room", "ask_password")


def hear(text: str) -> set[str]:
    """The acts an agent's message may be: a subset of ``_ACTS``' names, and "question" if it has a question mark.

    What it puts in quotes are not its own words. It asks for something only in a sentence that is a question or begs.
    """
    lower = re.sub(r'["“][^"”]*["”]', '""', text).lower()
    begging = " ".join(s for s in re.split(r"(?<=[.!?])\s+|\n", lower) if re.search(_BEGGING, s))
    acts = set()
    for name, pattern in _ACTS.items():
        narrow = name.startswith("ask_") and name not in _ASKED_ANYHOW
        if re.search(pattern, begging if narrow else lower):
            acts.add(name)
    return acts | ({"question"} if "?" in text else set())


def spoken_kinds(text: str) -> set[str]:
    """The kinds of request whose words stand in a text."""
    lower = re.sub(r'["“][^"”]*["”]', '""', text).lower()
    return {kind for kind, pattern in _KIND_WORDS.items() if re.search(pattern, lower)}


def reservations_in(text: str) -> list[str]:
    """The reservation ids in a text."""
    return re.findall(r"\bres_\d+\b", text)


def dates_in(text: str) -> list[str]:
    """The days named in a text, as YYYY-MM-DD: "2024-07-21", "July 21", "21st of July", "7/21"."""
    found = [(m.start(), m[0]) for m in re.finditer(r"\b20\d\d-\d\d-\d\d\b", text)]
    month = "(" + "|".join(_MONTHS) + r")[a-z]*\.?"
    for m in re.finditer(rf"\b{month} (\d\d?)(?:st|nd|rd|th)?\b", text.lower()):
        found.append((m.start(), f"2024-{_MONTHS.index(m[1]) + 1:02d}-{int(m[2]):02d}"))
    for m in re.finditer(rf"\b(\d\d?)(?:st|nd|rd|th)?(?: of)? {month}", text.lower()):
        found.append((m.start(), f"2024-{_MONTHS.index(m[2]) + 1:02d}-{int(m[1]):02d}"))
    for m in re.finditer(r"(?<![\d/])(\d\d?)/(\d\d?)(?![\d/])", text):
        found.append((m.start(), f"2024-{int(m[1]):02d}-{int(m[2]):02d}"))
    return [day for _, day in sorted(found)]


def times_in(text: str) -> list[str]:
    """The times of day named in a text, as HH:MM: "08:30", "8:30 AM", "5 pm"."""
    found = []
    for m in re.finditer(r"\b(\d\d?):(\d\d)(?::\d\d)?\s*([ap]\.?m)?|\b(\d\d?)\s*([ap]\.?m)\b", text.lower()):
        hour, minute, half = int(m[1] or m[4]), m[2] or "00", (m[3] or m[5] or "")[:1]
        hour = hour % 12 + (12 if half == "p" else 0) if half else hour
        found.append(f"{hour:02d}:{minute}")
    return found


def cabins_in(text: str) -> list[str]:
    """The cabins named in a text, in the database's spelling, each once."""
    found = re.findall(r"economy|business", text.lower())
    return list(dict.fromkeys(f"{f.capitalize()} Class" for f in found))


def payments_in(text: str) -> list[str]:
    """The ways of paying named in a text, in order."""
    return list(dict.fromkeys(re.findall(r"\b(cash|bank)\b", text.lower())))


def counts_in(text: str, thing: str) -> set[int]:
    """How many of a thing (a regular expression) a text names, in figures or words: before it, or "THING x 2"."""
    lower = text.lower()
    for number, word in enumerate(NUMBER_WORDS):
        lower = re.sub(rf"\b{word}\b", str(number), lower)
    filler = r"more|extra|checked|additional|portions?|servings?|orders?|of|the|units?|free"
    gap = rf"(?:\s?[x×])?(?: (?:{filler}))*\s?[\"']?"
    before = re.findall(rf"(?<![\d.:-])(\d\d?){gap}(?:{thing})", lower)
    after = re.findall(rf"(?:{thing})[\"']?s?\s?(?:[x×:,(]|quantity|count|\s)*\s?(\d\d?)(?![\d.:-])", lower)
    named = re.findall(r"quantity[^\d.]{0,5}(\d\d?)", lower)
    return {int(n) for n in (*before, *after, *named)}


def conflicts(text: str, kind: str, wish: Wish) -> bool:
    """True if an agent's proposal is not the wish: another person, text, dish, number, day, cabin or payment."""
    lower = text.lower().replace("’", "'")
    kinds = spoken_kinds(text)
    if kinds and kind not in kinds:
        return True
    check = _CHECKS.get(kind)
    return check is not None and check(text, lower, wish)


def _send(text: str, lower: str, wish: Wish) -> bool:
    said = str(wish.get("filled", wish["text"])).lower()
    return wish["to"].lower() not in lower or said not in lower


def _delete(text: str, lower: str, wish: Wish) -> bool:
    numbers = re.findall(r"\b(?:message|messages|id|number|no\.)(?: id| number)?(?: is)?:?\s?#?(\d+)\b|#(\d+)", lower)
    if numbers:
        return str(wish["number"]) not in {a or b for a, b in numbers}
    key = wish["which"].removeprefix("the ").removesuffix(" message").split(" ")[-1].lower()
    words = {"oldest": ("oldest", "earliest", "first"), "latest": ("latest", "newest", "most recent", "last")}
    return not any(word in lower for word in words.get(key, (key,)))


def _remind(text: str, lower: str, wish: Wish) -> bool:
    day, clock = wish["time"].split(" ")
    now = wish["time"] == cat.PHONE_NOW and re.search(r"\bnow\b|current time", lower)
    on_time = now or (day in dates_in(text) and clock in times_in(text))
    return wish["title"].lower() not in lower or not on_time or wish["note"].lower() not in lower


def _order(text: str, lower: str, wish: Wish) -> bool:
    if wish["product"] not in lower:
        return True
    named = [m for m in MERCHANTS if m.lower() in lower]
    if named and wish["merchant"] not in named:
        return True
    counts = counts_in(text, re.escape(wish["product"]))
    return wish["quantity"] not in counts and not (not counts and wish["quantity"] == 1)


def _title(text: str, lower: str, wish: Wish) -> bool:
    return wish["title"].lower() not in lower


def _todo(text: str, lower: str, wish: Wish) -> bool:
    return all(wish[s].lower() not in lower for s in ("product", "to", "title"))


def _other_reservation(text: str, lower: str, wish: Wish) -> bool:
    ids = reservations_in(text)
    if ids:
        return wish["reservation_id"] not in ids
    return False


def _booking(text: str, lower: str, wish: Wish) -> bool:
    named = wish["date"] in dates_in(text) or any(f in text for f in wish.get("flights", ()))
    if not named or wish["cabin"] not in cabins_in(text) or wish["destination"].lower() not in lower:
        return True
    counts = counts_in(text, r"bags?\b|baggage|suitcases?|luggage")
    if counts and wish["bags"] not in counts:
        return True
    return _other_payment(text, wish)


def _other_payment(text: str, wish: Wish) -> bool:
    payments = payments_in(text)
    return bool(payments) and wish["payment"] not in payments


def _move(text: str, lower: str, wish: Wish) -> bool:
    return _other_reservation(text, lower, wish) or wish["date"] not in dates_in(text)


def _cabin(text: str, lower: str, wish: Wish) -> bool:
    other = _other_reservation(text, lower, wish) or wish["cabin"] not in cabins_in(text)
    return other or _other_payment(text, wish)


def _bags(text: str, lower: str, wish: Wish) -> bool:
    counts = counts_in(text, r"bags?\b|baggage|suitcases?|luggage|pieces?")
    other = _other_reservation(text, lower, wish) or wish["bags"] not in counts
    return other or _other_payment(text, wish)


def _cancel(text: str, lower: str, wish: Wish) -> bool:
    if reservations_in(text):
        return _other_reservation(text, lower, wish)
    return wish.get("described", "reservation").lower() not in lower


_CHECKS: Mapping[str, Any] = {
    "send": _send, "delete": _delete, "remind": _remind, "order": _order, "forget": _title, "todo": _todo,
    "book": _booking, "connect": _booking, "move": _move, "cabin": _cabin, "bags": _bags, "cancel": _cancel,
}  # fmt: skip


def say_bags(count: int) -> str:
    """So many bags."""
    return "1 bag" if count == 1 else f"{count} bags"


def pick(rng: random.Random, choices: Sequence[str]) -> str:
    """One of the choices, by the rng."""
    return rng.choice(choices)


OPENINGS: Mapping[str, Sequence[str]] = {
    "terse": ("I want to {}.", "Please {}.", "I need to {}."),
    "chatty": (
        "Hello there! I hope you can help me. I would like to {}.",
        "Hi, how are you? I am calling because I would like to {}.",
    ),
    "confused": ("Hello, I am not sure how this works. I want to {}.", "Hi, I think I need to {}."),
    "impatient": ("Quick please, I need to {}.", "I have no time. I want to {}."),
}
YES = ("Yes.", "Yes, please.", "Yes, go ahead.", "Yes, that is right.")
ALSO = ("I also want to {}.", "Also, I need to {}.")
STILL = ("I still need to {}.", "You forgot that I want to {}.")
CHANGES = ("Actually, {}", "Wait, I changed my mind. {}", "Sorry, no. {}")
CORRECTIONS = ("No, I want to {}.", "No, that is wrong. I want to {}.")
DROPS = ("Never mind, leave it as it is.", "No, forget it, leave it as it is.")
ENDINGS = ("No, that is all. ###STOP###", "That is all, thank you. ###STOP###")
GIVES_UP = "This is not working for me. ###STOP###"
