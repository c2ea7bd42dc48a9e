"""What the scripted expert reads: observations (JSON or compact) into records, and callers' sentences into facts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.telecom import catalogue as cat
from muarl.domains.telecom.accounts import TODAY
from muarl.domains.telecom.hearing import BILL, PHONE_NUMBER
from muarl.domains.telecom.phrases import FACT_WORDS


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer's id and lines."""

    customer_id: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A line. ``number`` is empty where the observation does not show it; ``ended``: its contract is over."""

    line_id: str
    number: str
    status: str
    ended: bool
    plan: str
    roaming: bool


@dataclass(frozen=True, slots=True)
class Bill:
    """A bill. ``status`` in lower case; ``total``: dollars, as text with two decimals."""

    bill_id: str
    status: str
    total: str


def _json(text: str) -> Any:
    return json.loads(text) if text[:1] in "[{" else None


def read_customer(text: str) -> Customer | None:
    """An observation of a customer look-up; None if it found nobody."""
    data = _json(text)
    if isinstance(data, list):
        data = data[0] if data else {}
    if data is not None:
        return Customer(data["customer_id"], tuple(data["line_ids"])) if data else None
    found = re.search(r"\bC\d+", text)
    return Customer(found[0], tuple(re.findall(r"\bL\d+", text))) if found else None


def read_line(text: str) -> Line:
    """An observation of a line's details; ValueError if it is none."""
    data = _json(text)
    if data is not None:
        end = data["contract_end_date"]
        return Line(
            data["line_id"], data["phone_number"], data["status"], end is not None and end < TODAY, data["plan_id"],
            data["roaming_enabled"],
        )  # fmt: skip
    found = re.fullmatch(r"line (L\d+) (.+), contract (\w+), plan (P\d+), line roaming (\w+)(?:, note .*)?", text, re.S)
    if found is None:
        raise ValueError(f"no line: {text!r}")
    return Line(found[1], "", found[2], found[3] == "ended", found[4], found[5] == "enabled")


def read_bills(text: str) -> list[Bill]:
    """An observation of one bill, or of a customer's bills."""
    data = _json(text)
    if data is not None:
        rows = data if isinstance(data, list) else [data]
        return [Bill(b["bill_id"], b["status"].lower(), f"{float(b['total_due']):.2f}") for b in rows]
    return [Bill(b, s, t) for s, b, t in re.findall(r"([a-z]+(?: [a-z]+)?) bill (B\d+) of \$([\d.]+)", text)]


def read_price(text: str) -> str:
    """Dollars for a further GB, with two decimals, from a plan's details; ValueError if there is none."""
    data = _json(text)
    if data is not None:
        return f"{float(data['data_refueling_price_per_gb']):.2f}"
    found = re.search(r"at \$([\d.]+) per GB", text)
    if found is None:
        raise ValueError(f"no plan: {text!r}")
    return found[1]


def read_usage(text: str) -> tuple[str, bool]:
    """(GB used, as text; whether the limit is reached) from an observation of the data usage."""
    data = _json(text)
    if data is not None:
        used, limit = float(data["data_used_gb"]), float(data["data_limit_gb"]) + float(data["data_refueling_gb"])
        return str(used), used >= limit
    found = re.search(r"used ([\d.]+) GB", text)
    if found is None:
        raise ValueError(f"no usage: {text!r}")
    return found[1], "limit reached" in text


@dataclass(slots=True)
class Frame:
    """One request as the expert understands it: its kind, the slots that are known, and what has been done for it."""

    kind: str
    slots: dict[str, Any] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)


_WORDS = {word: (key, value) for key, words in FACT_WORDS.items() for value, word in words.items()}
_FACT = re.compile("|".join(rf"(?<!\w){re.escape(w)}(?!\w)" for w in sorted(_WORDS, key=len, reverse=True)), re.I)
_LOWER = {word.lower(): found for word, found in _WORDS.items()}

_WORKS = re.compile(r"\b(it works|that works|works (now|again)|fixed it|it is (working|solved|fixed))\b", re.I)
_FAILS = re.compile(r"\b(still|does not work|did not help|not working|doesn't work|didn't help)\b", re.I)
_DECLINES = re.compile(r"\b(do not|don't|will not|won't) (want|pay)", re.I)
_DROPS = re.compile(r"^(never mind|no, forget)|leave it as it is", re.I)
_NAME = re.compile(r"\bI am (\w+ \w+), born (\d{4}-\d\d-\d\d)")
_AMOUNT = re.compile(r"(?<![$\d.])(\d+(?:\.\d+)?) ?GB", re.I)

_REQUESTS: tuple[tuple[str, str], ...] = (
    ("outside", r"(?:talk|calling) about (.+?)[.!?]"),
    ("roaming_off", r"(?:switch|turn) off roaming|no more roaming"),
    ("roaming_on", r"(?:switch|turn) on roaming|need roaming"),
    ("suspend", r"suspend"),
    ("question", r"how much data (?:have i|i have) used|further gb costs?|(?:how much is|owe for) bill"),
    ("refuel", r"(?:add|need) (?:\S+ gb|some data)|refuel"),
    ("pay", r"\bpay (?:my overdue |the overdue )?bill\b"),
    ("no_service", r"no service"),
    ("mms", r"picture messages (?:are not|do not)|cannot send (?:picture|mms)|unable to send mms"),
    ("mobile_data", r"mobile (?:data|internet)"),
)


def read_facts(text: str) -> dict[str, str]:
    """What a caller says that the phone shows, by the keys of ``phrases.FACT_WORDS``."""
    return dict(_LOWER[m.lower()] for m in _FACT.findall(text))


def read_outcome(text: str) -> bool | None:
    """Whether a caller says that it works (again), or that it does not; None if neither."""
    return False if _FAILS.search(text) else True if _WORKS.search(text) else None


def declines(text: str) -> bool:
    """True if a caller will not pay."""
    return bool(_DECLINES.search(text))


def drops(text: str) -> bool:
    """True if a caller takes a wish back."""
    return bool(_DROPS.search(text))


def read_identity(text: str) -> dict[str, str] | None:
    """The phone number that a text gives, or else a name with a date of birth."""
    number, name = PHONE_NUMBER.search(text), _NAME.search(text)
    if number:
        return {"phone_number": number[0]}
    return {"full_name": name[1], "dob": name[2]} if name else None


def read_slots(text: str) -> dict[str, Any]:
    """Everything in a text that can fill a slot of a request."""
    slots: dict[str, Any] = {}
    amount = _AMOUNT.search(text)
    if amount:
        slots["amount"] = float(amount[1])
    lower = text.lower()
    if re.search(r"\babroad\b", lower):
        slots["abroad"] = "not abroad" not in lower
    elif "at home" in lower:
        slots["abroad"] = False
    reasons = [r for r in cat.REASONS if r in lower]
    if reasons:
        slots["reason"] = reasons[0]
    bill = BILL.search(text)
    if bill:
        slots["bill"] = bill[0]
    return slots


def read_requests(text: str) -> list[Frame]:
    """The requests that a caller's message brings up, in order."""
    frames = []
    for part in re.split(
        r"(?:There is something else|One more thing|There is still something|You forgot something)\.", text
    ):
        for kind, pattern in _REQUESTS:
            found = re.search(pattern, part, re.I)
            if found is None:
                continue
            slots = read_slots(part)
            if kind == "outside":
                slots = {"topic": found[1]}
            if kind == "question":
                topic = "usage" if "used" in found[0].lower() else "bill" if "bill" in found[0].lower() else "price"
                slots["topic"] = topic
            frames.append(Frame(kind, slots))
            break
    return frames
