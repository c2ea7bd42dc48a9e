"""Tools and calls of them as lines of text, for models whose tokenizers have no control tokens for calls.

A tool is shown as a signature: ``cancel_order(order_id: str, reason: "no longer needed" | "ordered by mistake"): Cancel
a pending order.`` A call is ``CALL name(argument=value)``, the values as JSON. A reply is its text, then its calls, a
line each; a call begins a line. Text of which a line would begin like that is quoted by ``> ``, which reading takes
away again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.toolcalls import argument_problem, strict_value

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
    required = schema.get("required")
    needed = set(required) if isinstance(required, (list, tuple)) else set()
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


CALL = "CALL"
RESULT = "RESULT"
_QUOTE = "> "
_CALLS = re.compile(rf"^{CALL}(?=\s|$)")
_QUOTED_CALL = re.compile(rf"^(?:{_QUOTE})*{CALL}(?=\s|$)")
_SPOKEN = re.compile(rf"^(?=(?:{CALL}|{RESULT})(?:\s|$))", re.MULTILINE)
_PLAIN_NAME = re.compile(r'[^\s()"=,]+')
_SPACE = re.compile(r"\s*")


def quoted(text: str) -> str:
    """What a user or a tool says, so that no line of it looks like a call or a result."""
    return _SPOKEN.sub(_QUOTE, text)


def call_line(call: ToolCall) -> str:
    """A call's line; of one that could not be read what was written, in one line."""
    if call.invalid is not None and call.raw is not None:
        raw = " ".join(call.raw.splitlines())
        return raw if _CALLS.match(raw) else f"{CALL} {raw}".rstrip()
    inside = ", ".join(f"{_name(k)}={json.dumps(v, ensure_ascii=False)}" for k, v in call.arguments.items())
    return f"{CALL} {_name(call.name)}({inside})"


def reply_text(message: Message) -> str:
    """An agent's message as the model would write it."""
    lines = [
        _QUOTE + line if _QUOTED_CALL.match(line) else line for line in (message.content or "").strip().split("\n")
    ]
    content = "\n".join(lines)
    return "\n".join([*([content] if content else []), *map(call_line, message.tool_calls)])


def read_reply(text: str, first_call: int = 0) -> Message:
    """The message that a reply's text stands for; never raises. What follows the first call and is none belongs to no
    message. A call that is not written as it should be has ``invalid`` set."""
    lines = text.strip().split("\n")
    begin = next((n for n, line in enumerate(lines) if _CALLS.match(line)), len(lines))
    said = [
        line[len(_QUOTE) :] if line.startswith(_QUOTE) and _QUOTED_CALL.match(line) else line for line in lines[:begin]
    ]
    made = [line.rstrip() for line in lines[begin:] if _CALLS.match(line)]
    calls = tuple(read_call(line, f"call_{first_call + n}") for n, line in enumerate(made))
    return Message("assistant", "\n".join(said).strip(), calls)


def read_call(line: str, call_id: str) -> ToolCall:
    """The call of one line, which begins with ``CALL``; never raises."""
    name = ""
    try:
        at = _SPACE.match(line, len(CALL)).end()  # type: ignore[union-attr]
        name, at = _read_name(line, at)
        if line[at : at + 1] != "(":
            raise ValueError(f"a call is written as {CALL} name(argument=value)")
        arguments = _read_arguments(line, at + 1)
        problem = argument_problem(arguments, escaped="\\u" in line)
        if problem is not None:
            raise ValueError(problem)
    except RecursionError:
        return ToolCall(call_id, name, invalid="the JSON is nested too deeply", raw=line)
    except ValueError as problem:
        return ToolCall(call_id, name, invalid=str(problem), raw=line)
    return ToolCall(call_id, name, arguments)


def _read_arguments(line: str, at: int) -> dict[str, Any]:
    """The arguments from behind the opening bracket; nothing may follow the closing one."""
    arguments: dict[str, Any] = {}
    at = _skip(line, at)
    while line[at : at + 1] != ")":
        key, at = _read_name(line, at)
        at = _skip(line, at)
        if not key or line[at : at + 1] != "=":
            raise ValueError("the arguments are written as name=value, and end with a closing bracket")
        if key in arguments:
            raise ValueError(f"the argument {key!r} is given twice")
        arguments[key], at = strict_value(line, _skip(line, at + 1))
        at = _skip(line, at)
        if line[at : at + 1] == ",":
            at = _skip(line, at + 1)
        elif line[at : at + 1] != ")":
            raise ValueError("the call does not end" if at >= len(line) else "a comma or a closing bracket is missing")
    if line[at + 1 :].strip():
        raise ValueError("something follows the closing bracket")
    return arguments


def _name(name: str) -> str:
    """A name as it stands, or as a JSON string where it could be taken for something else."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _read_name(line: str, at: int) -> tuple[str, int]:
    if line[at : at + 1] == '"':
        value, end = strict_value(line, at)
        return str(value), end
    match = _PLAIN_NAME.match(line, at)
    return (match[0], match.end()) if match else ("", at)


def _skip(line: str, at: int) -> int:
    return _SPACE.match(line, at).end()  # type: ignore[union-attr]
