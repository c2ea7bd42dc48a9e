"""A tiny world's observations: records in few words, each value right behind its key, and their reading back.

A tiny model learns to copy a value from behind its key. One line for an object's own fields, and one for each object
within it: ``order_id F-10001; status placed``, then ``items: dish_id D-1001; name Pad Thai`` for each in a list and
``account> balance 20.00`` for a single one. A list of objects has a line for each behind a dash, in which the fields of
an object within it have names such as ``flight.origin``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_NUMBER = re.compile(r"\d{1,15}(?:\.\d\d)?")
_LINE = re.compile(r"(\w+)([:>]) (.*)")


def write(value: Any) -> str:
    """A tool's result in compact form; texts as they are, what has no such form as JSON."""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        flat = [_flat(one) for one in value]
        if not any(isinstance(field, Mapping) or _objects(field) for one in flat for field in one.values()):
            return "\n".join(f"- {_fields(one)}" for one in flat)
    if not isinstance(value, Mapping) or _is_deep(value):
        return value if isinstance(value, str) else json.dumps(value, default=str)
    lines = [_fields(value)]
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            lines.append(f"{key}> {_fields(inner)}")
        elif isinstance(inner, list) and inner and isinstance(inner[0], Mapping):
            lines += [f"{key}: {_fields(one)}" for one in inner]
    return "\n".join(line for line in lines if line)


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the fields of the objects within it as its own."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        found |= (
            {f"{key}.{name}": inner for name, inner in value.items()} if isinstance(value, Mapping) else {key: value}
        )
    return found


def _is_deep(value: Mapping[str, Any]) -> bool:
    """Whether it holds objects that hold objects."""
    inner = [one for one in value.values() if isinstance(one, Mapping)]
    inner += [
        one for several in value.values() if isinstance(several, list) for one in several if isinstance(one, Mapping)
    ]
    return any(isinstance(deep, Mapping) or _objects(deep) for one in inner for deep in one.values())


def _objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _scalar(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _fields(record: Mapping[str, Any]) -> str:
    """An object's own fields; lists only where they hold no objects."""
    own = {k: v for k, v in record.items() if not isinstance(v, Mapping)}
    plain = {k: v for k, v in own.items() if not (isinstance(v, list) and v and isinstance(v[0], Mapping))}
    return "; ".join(f"{k} {_scalar(v)}" for k, v in plain.items())


def read(text: str) -> Any:
    """An observation, JSON or compact, as data; a text that is neither stays one."""
    try:
        return json.loads(text)
    except ValueError:
        if text[:1] in ("{", "["):
            return text
    if text.startswith("- "):
        rows = [_read_fields(line.removeprefix("- ")) for line in text.split("\n")]
        return [_nested(row) for row in rows] if all(rows) else text
    found: dict[str, Any] = {}
    for line in text.split("\n"):
        inner = _LINE.fullmatch(line)
        fields = _read_fields(inner[3] if inner else line)
        if not fields:
            return text
        if inner is None:
            found |= fields
        elif inner[2] == ">":
            found[inner[1]] = fields
        else:
            found[inner[1]] = [*(found.get(inner[1]) or ()), fields]
    return found


def _read_fields(line: str) -> dict[str, Any]:
    pairs = [field.partition(" ") for field in line.split("; ")]
    return {key: _value(text) for key, space, text in pairs if space and _is_name(key)}


def _is_name(key: str) -> bool:
    return key.islower() and all(part.isidentifier() for part in key.split("."))


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """The opposite of ``_flat``."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        outer, dot, inner = key.partition(".")
        if dot:
            found.setdefault(outer, {})[inner] = value
        else:
            found[key] = value
    return found


def _value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [part for part in text[1:-1].split(", ") if part]
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return {"none": None, "yes": True, "no": False}.get(text, text)
