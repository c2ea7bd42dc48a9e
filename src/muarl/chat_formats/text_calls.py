"""Tool calls as lines of text: ``CALL name(argument=value)``, the values as JSON.

For models whose tokenizers have no control tokens for calls. A reply is its text, then its calls, a line each; a call
begins a line. Text of which a line would begin like that is quoted by ``> ``, which reading takes away again.
"""

from __future__ import annotations

import json
import re
from typing import Any

from muarl.types.chat import Message, ToolCall
from muarl.types.toolcalls import argument_problem, strict_value

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
