"""Tools as a model that was never taught a way to call them is shown them: one signature a line.

``cancel_order(order_id: str, reason: "no longer needed" | "ordered by mistake"): Cancel a pending order.``
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.types.chat import ToolSpec

_WORDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}
_WORDS |= {"null": "null", "dict": "dict", "float": "float", "tuple": "list", "any": "any"}
_SENTENCE = re.compile(r"(?<=[.!?])\s")
_DEEPEST = 4
"""Objects in objects beyond this depth are shown as ``dict``."""


def signature(tool: ToolSpec) -> str:
    """Name, arguments with their types (``?`` where they may be left out), and the first sentence of what it does."""
    inside = _fields(tool.parameters, _DEEPEST)
    what = first_sentence(tool.description)
    return f"{tool.name}({inside})" + (f": {what}" if what else "")


def first_sentence(text: str) -> str:
    """The first sentence of a description, in one line."""
    return " ".join(_SENTENCE.split(text.strip(), maxsplit=1)[0].split())


def _fields(schema: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ""
    wanted = schema.get("required")
    needed = set(wanted) if isinstance(wanted, (list, tuple)) else set()
    return ", ".join(f"{name}{'' if name in needed else '?'}: {_kind(s, depth)}" for name, s in properties.items())


def _kind(schema: Any, depth: int) -> str:
    """A JSON Schema as a type; ``any`` where it does not say."""
    if not isinstance(schema, Mapping):
        return "any"
    if "const" in schema:
        return _value(schema["const"])
    values = schema.get("enum")
    if isinstance(values, (list, tuple)) and values:
        return " | ".join(map(_value, values))
    for either in ("anyOf", "oneOf"):
        choices = schema.get(either)
        if isinstance(choices, (list, tuple)) and choices:
            return _one_of([_kind(c, depth) for c in choices])
    kind = schema.get("type")
    if isinstance(kind, (list, tuple)):
        return _one_of([_kind({**schema, "type": k}, depth) for k in kind])
    if kind == "array" and isinstance(schema.get("items"), Mapping) and depth:
        return f"[{_kind(schema['items'], depth - 1)}]"
    if kind in ("object", "dict") and schema.get("properties") and depth:
        return f"{{{_fields(schema, depth - 1)}}}"
    return _WORDS.get(str(kind), "any")


def _one_of(kinds: Sequence[str]) -> str:
    return " | ".join(dict.fromkeys(kinds))


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
