"""How the scripted expert reads: users' requests, what they add, and the tools they bring."""

from __future__ import annotations

import re
from functools import cache

from muarl.domains.kit.declaration import Slot, several
from muarl.domains.kit.moves import Request
from muarl.domains.kit.records import PLACE
from muarl_worlds.bfcl.recipes import Recipe
from muarl_worlds.bfcl.requests import ALL, STYLES, TINY_STYLES

_HEADS = sorted({m.split("{}")[0].lower() for m in (*TINY_STYLES, *(m for ms in STYLES.values() for m in ms))} - {""})
_BETWEEN = "(?:" + "|".join(map(re.escape, _HEADS)) + ")?"
_END = r"(?=[.?!](?:\s|$)|$)"
_FUNCTION = re.compile(r'^\{"type": "function", "function": \{"name": "(\w+)"', re.MULTILINE)


def _pattern(template: str, recipe: Recipe) -> str:
    out, end = "", 0
    for place in PLACE.finditer(template):
        out += re.escape(template[end : place.start()]) + f"(?P<{place[1]}>{form(recipe.slot(place[1]))})"
        end = place.end()
    return out + re.escape(template[end:])


def form(slot: Slot) -> str:
    """The regular expression of a slot's values."""
    assert not isinstance(slot.kind, str)
    return slot.kind.form


def _clause(template: str, recipe: Recipe) -> re.Pattern[str]:
    """A clause wherever it stands in a sentence: polite words may come after a folder that is named first."""
    folder = "in {folder}, "
    if template.startswith(folder):
        text = _pattern(folder, recipe) + f"(?i:{_BETWEEN})" + _pattern(template[len(folder) :], recipe)
    else:
        text = _pattern(template, recipe)
    if text[0].isalpha():
        text = f"[{text[0]}{text[0].upper()}]{text[1:]}"
    return re.compile(r'(?<![\w@/."-])' + text + _END)


@cache
def _clauses() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Kind and pattern of every wording."""
    return tuple((recipe.name, _clause(clause, recipe)) for recipe in ALL.values() for clause in recipe.says)


def read_requests(text: str) -> list[Request]:
    """The requests in a user's words, in order, with the slots that they tell."""
    hits = [(match, kind) for kind, pattern in _clauses() for match in pattern.finditer(text)]
    hits.sort(key=lambda hit: (hit[0].start(), -hit[0].end()))
    frames, last = [], -1
    for match, kind in hits:
        if match.start() >= last:
            frames.append(Request(kind, dict(match.groupdict())))
            last = match.end()
    return frames


def lacks(request: Request) -> Slot | None:
    """The slot that a request has left out, None if none was."""
    return next((slot for slot in ALL[request.intent].slots if slot.name not in request.slots), None)


def read_reply(text: str, slot: Slot) -> str | None:
    """The slot that a user was asked for, None if the words do not give it."""
    for template in several(slot.say):
        head, _, tail = template.removesuffix(".").partition("{}")
        match = re.search(f"{re.escape(head)}({form(slot)}){re.escape(tail)}", text)
        if match:
            return match[1]
    return None


def read_tools(text: str) -> list[str]:
    """The names of the tools whose documents stand in a user's words."""
    return _FUNCTION.findall(text)
