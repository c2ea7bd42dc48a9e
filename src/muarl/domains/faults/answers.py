"""Answers of tools that are altered: a list that is cut, a field with another name.

An answer is a text, as the agent is shown it: JSON, or the compact form of tiny worlds (``kit.compact``). One that is
neither has nothing that could be altered.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from muarl.domains.kit import compact

NEW_VERSION = "_v2"
"""What the new name of a field ends in."""


def cut(text: str, rng: random.Random, *, marked: bool) -> tuple[str, str] | None:
    """The answer with its longest list cut, and "2 of 5 entries"; None where no list has two entries.

    ``marked``: a last line says so.
    """
    value, in_json = _parsed(text)
    rows = max(_lists(value), key=len, default=[])
    if len(rows) < 2:
        return None
    count, remaining = len(rows), rng.randint(1, len(rows) - 1)
    del rows[remaining:]
    said = f"{remaining} of {count} entries"
    written = json.dumps(value, ensure_ascii=False) if in_json else compact.write(value)
    if not in_json and compact.read(written) != value:
        return None
    return (f"{written}\n[truncated: {said}]" if marked else written), said


def field_to_rename(text: str, rng: random.Random) -> str | None:
    """A field of an answer's record, or of its records; None where it has none."""
    value, _ = _parsed(text)
    row = value[0] if isinstance(value, list) and value else value
    names = [name for name in row if _is_name(name)] if isinstance(row, dict) else []
    return rng.choice(names) if names else None


def renamed(text: str, name: str) -> str | None:
    """The answer with this field of its record, or of its records, under its new name; None where it has no such
    field."""
    value, in_json = _parsed(text)
    rows = [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict) and name in row]
    if not rows:
        return None
    changed = [{_new(key, name): one for key, one in row.items()} for row in rows]
    for row, new in zip(rows, changed, strict=True):
        row.clear()
        row.update(new)
    written = json.dumps(value, ensure_ascii=False) if in_json else compact.write(value)
    return written if in_json or compact.read(written) == value else None


def restored(text: str, name: str) -> str:
    """The answer with the field of this name as it was called before it was ``renamed``."""
    value, in_json = _parsed(text)
    rows = [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)]
    new = name + NEW_VERSION
    for row in rows:
        before = dict(row)
        row.clear()
        row.update({name if key == new else key: one for key, one in before.items()})
    return text if isinstance(value, str) else json.dumps(value) if in_json else compact.write(value)


def _new(key: str, name: str) -> str:
    return key + NEW_VERSION if key == name else key


def _is_name(key: Any) -> bool:
    """Whether a key is a field's name, and no id that a record is found by."""
    return isinstance(key, str) and re.fullmatch(r"[a-z][a-z_]*", key) is not None


def _parsed(text: str) -> tuple[Any, bool]:
    """An answer's value, and whether it is JSON rather than in compact form; the text itself where it is neither."""
    try:
        return json.loads(text), True
    except (ValueError, RecursionError):
        value = compact.read(text)
        return (value if compact.write(value) == text else text), False


def _lists(value: Any, depth: int = 4) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield value
    if depth and isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _lists(inner, depth - 1)
