"""Conversations too long for a page: shown in part, so that what somebody else wrote cannot make a page endless."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, Turn

TEXT = 20_000
"""Characters of one text that are shown."""
NAME = 200
"""Characters of a name that are shown."""
MESSAGES, CALLS, PARTS = 600, 60, 60
"""Messages of a conversation that are shown, calls of a message, and entries of a verdict or of tags."""
WHOLE = 400_000
"""Characters of all messages together, up to which an episode is shown whole."""


def is_long(episode: Episode) -> bool:
    """Whether an episode is too long to be shown whole unasked."""
    messages = episode.messages
    if len(messages) > MESSAGES or any(len(m.tool_calls) > CALLS for m in messages):
        return True
    verdict = episode.verdict
    entries = [episode.tags, *((verdict.breakdown, verdict.audit) if verdict is not None else ())]
    if any(len(e) > PARTS for e in entries) or any(len(v) > PARTS for v in episode.tags.values() if _is_many(v)):
        return True
    texts = (episode.agent, episode.user, episode.system, episode.error, verdict.note if verdict is not None else None)
    size = sum(len(t) for t in texts if isinstance(t, str)) + sum(_size(m) for m in messages)
    return size > WHOLE


def shortened(episode: Episode) -> Episode:
    """The beginning of an episode: fewer messages and calls, the beginning of each text. Its tokens stay."""
    turns = [Turn(_message(t.message), t.seconds, t.span, t.version) for t in episode.turns[:MESSAGES]]
    verdict = episode.verdict
    if verdict is not None:
        breakdown, audit = _few(verdict.breakdown), _few(verdict.audit)
        verdict = replace(verdict, breakdown=breakdown, audit=audit, note=_cut(verdict.note))
    tags = {k: v[:PARTS] if isinstance(v, list) else _cut(v) for k, v in _few(episode.tags).items()}
    return replace(
        episode,
        agent=cut(episode.agent, NAME),
        user=cut(episode.user, NAME),
        turns=turns,
        verdict=verdict,
        tags=tags,
        system=_cut(episode.system),
        error=_cut(episode.error),
    )


def cut(text: str, most: int = TEXT) -> str:
    """The beginning of a text, and how long it is where that is not all of it."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def few_actions(actions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first of a task's gold actions, without arguments that are too long to be shown."""
    return [
        a if len(json.dumps(a.get("arguments"), default=str)) <= TEXT else {**a, "arguments": {"…": "too long to show"}}
        for a in actions[:CALLS]
    ]


def _size(message: Message) -> int:
    calls = sum(len(c.name) + len(c.raw or "") + len(str(c.arguments)) for c in message.tool_calls)
    return len(message.content or "") + len(message.reasoning or "") + calls


def _message(message: Message) -> Message:
    calls = tuple(_call(c) for c in message.tool_calls[:CALLS])
    return replace(message, content=_cut(message.content), reasoning=_cut(message.reasoning), tool_calls=calls)


def _call(call: ToolCall) -> ToolCall:
    arguments = call.arguments
    text = json.dumps(dict(arguments), ensure_ascii=False, default=str)
    if len(text) > TEXT:
        arguments = {"…": cut(text)}
    return replace(call, name=cut(call.name, NAME), arguments=arguments, raw=_cut(call.raw), invalid=_cut(call.invalid))


def _is_many(value: Any) -> bool:
    return isinstance(value, list | dict)


def _few(value: Mapping[str, Any]) -> dict[str, Any]:
    return {k: value[k] for k in list(value)[:PARTS]}


def _cut(value: Any) -> Any:
    return cut(value) if isinstance(value, str) else value
