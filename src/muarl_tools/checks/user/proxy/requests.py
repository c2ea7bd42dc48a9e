"""A request for a simulated user's next message, read from the user's chair: its scenario, its tools, what was said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.basics.web.json_api import invalid
from muarl.domains.tasks import Task
from muarl.endpoints.replies import MalformedReply, read_reply
from muarl.types.chat import Message, Role, ToolSpec

_SCENARIO, _SCENARIO_END = (re.compile(tag, re.IGNORECASE) for tag in ("<scenario>", "</scenario>"))
_SIDES: Mapping[str, Role] = {"assistant": "user", "user": "assistant", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class AskedUser:
    """What a user is asked. ``task``: with its scenario, what stands between ``<scenario>`` tags of the system prompt,
    else all of it. ``said``: as a user sees it, the agent's words as role assistant. ``tools``: that it may call."""

    task: Task
    said: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]


def read_request(body: Mapping[str, Any]) -> AskedUser:
    """A chat completion's request whose model plays a user. ApiError for what is none, or asks for several replies."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, Mapping) for m in messages):
        raise invalid("must be a list of messages", "messages")
    if body.get("n") not in (None, 1):
        raise invalid("a guard checks one reply at a time; use 1", "n")
    system = "\n".join(_text(m.get("content")) for m in messages if m.get("role") in ("system", "developer"))
    scenario = _scenario(system)
    said = [one for m in messages if (one := _message(m)) is not None]
    task = Task(id="proxied", domain="", scenario=scenario, actions=None)
    return AskedUser(task, tuple(said), tuple(_tools(body.get("tools"))))


def _scenario(system: str) -> str:
    """What stands between the first ``<scenario>`` and the last ``</scenario>`` behind it; all of it where they are not
    there."""
    begin = _SCENARIO.search(system)
    ends = [] if begin is None else [end.start() for end in _SCENARIO_END.finditer(system, begin.end())]
    return system if begin is None or not ends else system[begin.end() : ends[-1]].strip()


def read_answer(body: Any) -> Message | None:
    """The user's message in an upstream's answer; None if it cannot be read."""
    try:
        reply = read_reply(body, requestor="user")
    except MalformedReply:
        return None
    return Message("user", reply.content, tool_calls=reply.tool_calls)


def asked_again(body: Mapping[str, Any], note: str) -> dict[str, Any]:
    """The same request with a note at the end of its system prompt, which some models want to be the first message and
    the only one of its kind."""
    messages = [dict(m) for m in body["messages"]]
    first = messages[0]
    if first.get("role") in ("system", "developer"):
        first["content"] = f"{_text(first.get('content'))}\n\n{note}"
    else:
        messages.insert(0, {"role": "system", "content": note})
    return {**body, "messages": messages}


def _message(raw: Mapping[str, Any]) -> Message | None:
    role = _SIDES.get(str(raw.get("role")))
    if role is None:
        return None
    text = _text(raw.get("content"))
    if role == "tool":
        return Message("tool", text, tool_call_id=str(raw.get("tool_call_id", "")), requestor="user")
    if role == "user" and raw.get("tool_calls"):
        return read_answer({"choices": [{"message": dict(raw)}]}) or Message("user", text)
    return Message(role, text)


def _tools(raw: Any) -> Sequence[ToolSpec]:
    functions = [t.get("function") for t in raw if isinstance(t, Mapping)] if isinstance(raw, list) else []
    names = [f.get("name") for f in functions if isinstance(f, Mapping)]
    return [ToolSpec(name, "", {"type": "object"}) for name in names if isinstance(name, str)]


def _text(content: Any) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        return "".join(str(p.get("text", "")) for p in content if isinstance(p, Mapping))
    return content if isinstance(content, str) else ""
