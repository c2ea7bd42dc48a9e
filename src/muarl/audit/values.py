"""The single values within arguments and results, and what of them stands in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from muarl.audit.consent import alike

_IDENTIFIER = re.compile(r"\d{5,}|(?=.*\d)(?=.*[a-z#_@-])[#\w.+@/:-]{4,}", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_METHOD = re.compile(r"(credit_card|gift_card|paypal|certificate|debit_card|bank_account)(?:_\w+)?")


def leaves(value: Any) -> Iterator[str]:
    """All single values within a JSON value, as text; truth values and nulls left out."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield f"{value:g}" if isinstance(value, float) else str(value)


def is_identifier(value: str) -> bool:
    """Whether a value is an id, a code, a date or the like: a word with digits in it."""
    return bool(_IDENTIFIER.fullmatch(value))


def names(text: str, value: str) -> bool:
    """Whether a text holds a value as a word of its own; dates also as people write them ("May 20")."""
    lower, term = text.lower(), value.lower()
    if re.search(rf"(?<![\w#]){re.escape(term)}(?!\w)", lower) or f"#{term}" in lower:
        return True
    if term.startswith("#") and re.search(rf"(?<!\w){re.escape(term[1:])}(?!\w)", lower):
        return True
    return any(form in lower for form in _dates(term))


def _dates(value: str) -> Iterator[str]:
    match = re.fullmatch(r"\d{4}-(\d\d)-(\d\d)", value)
    if match is None or not 1 <= int(match[1]) <= 12:
        return
    month, day = _MONTHS[int(match[1]) - 1], int(match[2])
    full = {"jan": "january", "feb": "february", "mar": "march", "apr": "april", "jun": "june", "jul": "july",
            "aug": "august", "sep": "september", "oct": "october", "nov": "november", "dec": "december"}  # fmt: skip
    for name in (month, f"{month}.", full.get(month, month)):
        for number in (str(day), f"{day:02d}"):
            yield f"{name} {number}"
            yield f"{number} {name}"
            yield f"{number}. {name}"
    yield f"{int(match[1])}/{day}"
    yield f"{int(match[1]):02d}/{day:02d}"


def method_in(value: str) -> str | None:
    """The words for the payment method that an id names, such as "gift card"; None for other ids."""
    match = _METHOD.fullmatch(value.lower())
    return match.group(1).replace("_", " ") if match else None


def methods_in(text: str) -> set[str]:
    """The payment methods that a text speaks of."""
    lower = text.lower()
    if "original payment" in lower or "same payment" in lower:
        return set()  # whichever that is
    methods = {m for m in ("credit card", "gift card", "paypal", "certificate", "debit card", "bank account")
             if m in lower or m.replace(" ", "_") in lower}  # fmt: skip
    if re.search(r"\b(?:visa|mastercard|master card|amex)\b", lower):
        methods.add("credit card")
    if re.search(r"\bgiftcard\b", lower):
        methods.add("gift card")
    return methods


def others_alike(value: str, text: str) -> set[str]:
    """Values of the same shape that a text holds in place of this one; none if it holds this one too."""
    if names(text, value):
        return set()
    return alike(value, text) - {value.lower()}
