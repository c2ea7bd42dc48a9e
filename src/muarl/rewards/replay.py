"""Recorded conversations run again: how a benchmark comes from a transcript to the state it left behind (TAU2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from muarl.basics.untrusted import parse_json
from muarl.domains.base import World
from muarl.types.chat import Message, ToolCall

_PYDANTIC_URL = re.compile(r"https://errors\.pydantic\.dev/[0-9.]+/")


class ReplayError(ValueError):
    """A recorded conversation cannot be replayed: it is out of order, or a tool answers otherwise than recorded."""


def replay(world: World, messages: Sequence[Message], *, strict: bool = True, solo: bool = False) -> tuple[str, ...]:
    """Bring a fresh world to the state that a recorded conversation left it in.

    Only calls of writing tools run again, the failed ones too; reads, generic tools and unknown names are passed over,
    and the two sides are brought in step at the end, as TAU2 does. ReplayError if calls and results are not in order,
    or (``strict``) if a result differs from the recorded one; without ``strict`` the differences are returned.

    Results are compared as JSON where both are. The pydantic version that an error text names does not count.
    ``solo``: the agent worked alone, so that its calls of the user's tools are run as the user's; ReplayError if a user
    speaks nevertheless.
    """
    differences = []
    users_own = frozenset(world.domain.tool_names("user")) if solo else frozenset()
    if solo and any(m.role == "user" for m in messages):
        raise ReplayError("a user speaks, though the agent is said to have worked alone")
    for call, recorded, heard in _calls_with_results(messages):
        for message in heard:
            world.hear(message)
        try:
            kind = world.domain.kind_of(call.name)
        except KeyError:
            continue
        if kind != "write":
            continue
        result = world.call("user" if call.name in users_own else call.requestor, call)
        if _parsed(result.content) != _parsed(recorded.content):
            difference = (
                f"call {call.id or call.name}: {call.name} now answers {result.content[:300]!r}, "
                f"but the recorded answer is {(recorded.content or '')[:300]!r}"
            )
            if strict:
                raise ReplayError(difference)
            differences.append(difference)
    world.domain.sync(world)
    return tuple(differences)


def _calls_with_results(messages: Sequence[Message]) -> list[tuple[ToolCall, Message, list[Message]]]:
    """Every call with the tool message that answers it, which must follow at once and in order, and with what the user
    had said to the agent since the call before."""
    pairs: list[tuple[ToolCall, Message, list[Message]]] = []
    heard: list[Message] = []
    rest = iter(messages)
    for message in rest:
        if message.role == "user" and not message.tool_calls:
            heard.append(message)
        if message.role == "tool":
            raise ReplayError("a tool message without a preceding call")
        if message.role == "system":
            continue
        for call in message.tool_calls:
            answer = next(rest, None)
            if answer is None or answer.role != "tool":
                raise ReplayError(f"call {call.id or call.name}: no tool message follows it")
            if answer.tool_call_id != call.id:
                raise ReplayError(f"call {call.id!r} is followed by the result of call {answer.tool_call_id!r}")
            pairs.append((call, answer, heard))
            heard = []
    return pairs


def _parsed(content: str | None) -> Any:
    if content is None:
        raise ReplayError("a recorded tool message has no content")
    text = _PYDANTIC_URL.sub("https://errors.pydantic.dev/", content)
    try:
        return parse_json(text)
    except ValueError:
        return text
