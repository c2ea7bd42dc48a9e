"""How the scripted expert reads: users' requests, what they add, the tools they bring, and what tools answer."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from muarl.domains.bfcl import pools
from muarl.domains.bfcl.recipes import Missing, Slots
from muarl.domains.bfcl.wishes import ALL, MANNERS, TINY_MANNERS


def _one_of(words: tuple[str, ...]) -> str:
    return "|".join(re.escape(w) for w in sorted(words, key=len, reverse=True))


_FILE, _ID, _WORD, _QUOTED = r"\w+\.\w+", r"\d+", r"\w+", r'[^"]+'
PATTERNS: Mapping[str, str] = {
    "folder": r"the root folder|\w+(?:/\w+)*", "file": _FILE, "new_file": _FILE, "into": _WORD, "new_folder": _WORD,
    "text": _QUOTED, "comment": _QUOTED, "title": _QUOTED, "resolution": _QUOTED, "password": _QUOTED,
    "place": _QUOTED, "name": r"[A-Z]\w+", "person": r"[A-Z]\w+ [A-Z]\w+", "handle": _WORD, "word": _WORD,
    "tag": r"#\w+", "user_id": r"USR\d+", "ticket": _ID, "order": _ID, "booking": _ID, "level": r"[1-5]",
    "amount": _ID, "dollars": _ID, "money": _ID, "price": r"\d+\.\d+", "card": r"card_\d+", "card_number": _ID,
    "expiry": r"\d\d/\d{4}", "code": _ID, "date": r"\d{1,2} [A-Z]\w+ \d{4}", "cabin": _one_of(pools.CLASSES),
    "city": _one_of(pools.CITIES), "to_city": _one_of(pools.CITIES), "company": _one_of(pools.COMPANIES),
    "insurance": _one_of(pools.INSURANCES), "currency": _one_of(tuple(pools.CURRENCIES.values())),
    "token": _WORD, "client": _WORD, "secret": _WORD, "refresh": _WORD, "gallons": r"\d+\.\d+", "liters": _ID,
    "speed": _ID, "meters": _ID, "switch": "on|off", "brake": "engage|release", "degrees": r"\d+\.\d+", "fan": _ID,
    "air": "cool|heat|defrost", "wheel": "front left|front right|rear left|rear right",
    "numbers": r"\d+(?:, \d+)* and \d+", "part": _ID, "whole": _ID,
}  # fmt: skip
"""What may stand in each slot of a request."""

_HEADS = sorted({m.split("{}")[0].lower() for m in (*TINY_MANNERS, *(m for ms in MANNERS.values() for m in ms))} - {""})
_BETWEEN = "(?:" + "|".join(map(re.escape, _HEADS)) + ")?"
_END = r"(?=[.?!](?:\s|$)|$)"
_FUNCTION = re.compile(r'^\{"type": "function", "function": \{"name": "(\w+)"', re.MULTILINE)


@dataclass(slots=True)
class Frame:
    """A request as it was understood. ``lacks``: the slot that was left out, empty if none was."""

    kind: str
    slots: Slots = field(default_factory=dict)
    lacks: str = ""


def _pattern(template: str) -> str:
    parts = re.split(r"\{(\w+)\}", template)
    out = ""
    for number, part in enumerate(parts):
        out += f"(?P<{part}>{PATTERNS[part]})" if number % 2 else re.escape(part)
    return out


def _clause(template: str) -> re.Pattern[str]:
    """A clause wherever it stands in a sentence: polite words may come after a folder that is named first."""
    folder = "in {folder}, "
    if template.startswith(folder):
        text = _pattern(folder) + f"(?i:{_BETWEEN})" + _pattern(template[len(folder) :])
    else:
        text = _pattern(template)
    if text[0].isalpha():
        text = f"[{text[0]}{text[0].upper()}]{text[1:]}"
    return re.compile(r'(?<![\w@/."-])' + text + _END)


@cache
def _clauses() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Kind, the slot that is left out, and pattern of every wording."""
    found = []
    for recipe in ALL.values():
        found += [(recipe.kind, "", _clause(c)) for c in recipe.clauses]
        for slot, missing in recipe.missing.items():
            found += [(recipe.kind, slot, _clause(c)) for c in missing.clauses]
    return tuple(found)


def read_requests(text: str) -> list[Frame]:
    """The requests in a user's words, in order."""
    hits = [(m, kind, lacks) for kind, lacks, pattern in _clauses() for m in pattern.finditer(text)]
    hits.sort(key=lambda hit: (hit[0].start(), -hit[0].end()))
    frames, last = [], -1
    for match, kind, lacks in hits:
        if match.start() >= last:
            frames.append(Frame(kind, dict(match.groupdict()), lacks))
            last = match.end()
    return frames


def read_reply(text: str, slot: str, missing: Missing) -> str | None:
    """The slot that a user was asked for, None if the words do not give it."""
    for template in missing.replies:
        match = re.search(_pattern(template.removesuffix(".")), text)
        if match:
            return match[slot]
    return None


def read_tools(text: str) -> list[str]:
    """The names of the tools whose documents stand in a user's words."""
    return _FUNCTION.findall(text)


def value_of(text: str) -> Any:
    """What a tool gave, from its text: JSON, or what Python writes."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def compact(tool: str, arguments: Mapping[str, Any], text: str) -> str:
    """A tool's answer in as few words as can be, for tiny worlds: an id that was looked up stands alone, so that a tiny
    model can learn to copy it."""
    value = value_of(text)
    if isinstance(value, dict) and "error" in value:
        return f"error: {value['error']}"
    if tool == "cd":
        return str(value.get("current_working_directory", "ok"))
    if tool == "get_user_id":
        return str(value["user_id"])
    if tool == "get_symbol_by_name":
        return str(value["symbol"])
    if tool == "get_stock_info":
        return f"{arguments['symbol']} at ${value['price']}"
    if tool == "place_order":
        return f"order {value['order_id']}"
    if tool == "create_ticket":
        return f"ticket {value['id']}"
    if tool == "search_tweets":
        return ", ".join(str(post["id"]) for post in value) or "none"
    return "ok"


_COMPACT: Mapping[str, tuple[str, str]] = {
    "get_user_id": (r"^(USR\d+)$", "user_id"), "get_symbol_by_name": (r"^([A-Z]+)$", "symbol"),
    "get_stock_info": (r" at \$([\d.]+)$", "price"), "place_order": (r"^order (\d+)$", "order_id"),
    "create_ticket": (r"^ticket (\d+)$", "id"),
}  # fmt: skip


def observed(tool: str, text: str) -> Any:
    """What a tool gave, in JSON or compact words, as far as a plan asks for it."""
    if tool == "search_tweets" and not text.startswith("["):
        return [{"id": int(n)} for n in re.findall(r"\d+", text)]
    if tool in _COMPACT and not text.startswith("{"):
        pattern, key = _COMPACT[tool]
        found = re.search(pattern, text)
        if found is None:
            return {}
        word = found[1]
        return {key: float(word) if key == "price" else int(word) if word.isdigit() else word}
    return value_of(text)
