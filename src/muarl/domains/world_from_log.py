"""The world that a conversation took place in, put together from what its tools answered.

A log holds no database. But what reads have shown is the state that the agent worked in, as far as the conversation
touched it; and whether that is enough can be tried: run in the new world, every call must answer what it answered then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.base import World
from muarl.domains.database import Database
from muarl.types.chat import Message, ToolCall

Tables = dict[str, dict[str, Any]]
Sighting = tuple[str, str, Mapping[str, Any]]
"""(table, key, what was seen of the record)."""
See = Callable[[str, Mapping[str, Any], Any], Iterable[Sighting]]


@dataclass(frozen=True)
class Observer:
    """How a domain's results show its records.

    ``seen(tool, arguments, result)``: what a successful read shows; ``result`` is parsed JSON, or text.
    """

    tables: tuple[str, ...]
    seen: See
    implied: See
    """The same for what any successful call implies, such as that a payment method exists; it fills in what no read has
    shown."""
    complete: Callable[[Tables], Database]
    """A database of partial tables; what was never seen gets values that stand for nothing. It may raise what a
    malformed record raises (KeyError, TypeError, ValueError, DataError)."""
    strict: bool = False
    """Whether worlds are refused that do not answer the writes of a conversation as they were answered then."""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call with its answer."""

    message: int
    """Index of the message that carries the call."""
    call: ToolCall
    result: str
    error: bool


@dataclass
class Assembly:
    """What is known of the records before the conversation changed any."""

    tables: Tables
    late: list[tuple[str, str]] = field(default_factory=list)
    """(table, key) of records that were first seen after a write that may have changed them."""
    implied: list[Sighting] = field(default_factory=list)
    """What fills in where neither reads nor a snapshot tell."""

    def over(self, snapshot: Mapping[str, Mapping[str, Any]]) -> Tables:
        """The records that were seen or implied, laid over those of a snapshot, which may be of another day. One that
        was seen late only counts where the snapshot has none."""
        tables: Tables = {table: {} for table in self.tables}
        for table, records in self.tables.items():
            for key, record in records.items():
                snapshot_record = snapshot.get(table, {}).get(key)
                late = (table, key) in self.late
                tables[table][key] = (
                    merged(merged(None, snapshot_record), record) if late else merged(record, snapshot_record or {})
                )
        for table, key, record in self.implied:
            snapshot_record = tables[table].get(key) or snapshot.get(table, {}).get(key)
            tables[table][key] = merged(merged(None, snapshot_record), record)
        return tables


def answered_calls(messages: Sequence[Message]) -> Iterator[AnsweredCall]:
    """The calls of both sides that were answered, in order. Logs mark errors by their text alone ("Error...")."""
    for index, message in enumerate(messages):
        if not message.tool_calls:
            continue
        answers: list[Message] = []
        for later in messages[index + 1 :]:
            if later.role != "tool":
                break
            answers.append(later)
        by_id = {a.tool_call_id: a for a in answers}
        whole = len(by_id) == len(answers)
        for number, call in enumerate(message.tool_calls):
            answer = by_id.get(call.id) if whole and call.id in by_id else None
            if answer is None and number < len(answers):
                answer = answers[number]
            if answer is not None:
                text = answer.content or ""
                yield AnsweredCall(
                    index, call, text, answer.error or call.invalid is not None or text.startswith("Error")
                )


def assemble(observer: Observer, calls: Iterable[AnsweredCall], kind_of: Callable[[str], str]) -> Assembly:
    """Records as they were before the first write to them, from what was seen. What was seen first counts. A record may
    have been written to if a write or its answer names it."""
    assembly = Assembly({name: {} for name in observer.tables})
    written: list[str] = []
    for answered in calls:
        if answered.error:
            continue
        call, result = answered.call, parsed(answered.result)
        assembly.implied += observer.implied(call.name, call.arguments, result)
        if _kind(call.name, kind_of) == "write":
            written.append(f"{json.dumps(dict(call.arguments))} {answered.result}")
            continue
        for table, key, record in observer.seen(call.name, call.arguments, result):
            earlier = assembly.tables[table].get(key)
            touched = any(_names(text, key) for text in written)
            if earlier is None and touched:
                assembly.late.append((table, key))
            if earlier is None or not touched:
                assembly.tables[table][key] = merged(earlier, record)
    return assembly


def put_together(parts: Iterable[Assembly]) -> Tables:
    """The records that several conversations have shown before any of them changed one, without those of which two have
    shown different things."""
    tables: Tables = {}
    torn: set[tuple[str, str]] = set()
    for part in parts:
        late = set(part.late)
        for table, records in part.tables.items():
            for key, record in records.items():
                earlier = tables.setdefault(table, {}).get(key)
                if (table, key) in late:
                    continue
                if earlier is not None and any(f in earlier and earlier[f] != v for f, v in record.items()):
                    torn.add((table, key))
                tables[table][key] = merged(earlier, record)
    return {table: {k: r for k, r in records.items() if (table, k) not in torn} for table, records in tables.items()}


def _names(text: str, key: str) -> bool:
    return json.dumps(key) in text


def _kind(name: str, kind_of: Callable[[str], str]) -> str:
    try:
        return kind_of(name)
    except KeyError:
        return "generic"


def merged(old: Any, new: Any) -> Any:
    """``new`` under ``old``: objects are put together key by key, of everything else the old value stays."""
    if old is None:
        return json.loads(json.dumps(new))
    if isinstance(old, dict) and isinstance(new, Mapping):
        return {**old, **{k: merged(old.get(k), v) for k, v in new.items() if v is not None}}
    return old


def parsed(text: str) -> Any:
    """The text as JSON, else itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def differences(world: World, calls: Iterable[AnsweredCall]) -> list[tuple[AnsweredCall, str]]:
    """Run the calls in a fresh world; those that answer otherwise than then, each with what they answer now.

    Errors count as equal whatever they say, since the live system has its own words for them, and lists of the same in
    another order. Calls of generic tools are passed over.
    """
    changed = []
    for answered in calls:
        call = answered.call
        if _kind(call.name, world.domain.kind_of) == "generic":
            continue
        result = world.call(call.requestor, call)
        same = result.error == answered.error and (
            result.error or _in_order(parsed(result.content)) == _in_order(parsed(answered.result))
        )
        if not same:
            changed.append((answered, result.content))
    return changed


def _in_order(value: Any) -> Any:
    """A value with its lists in an order of their own, so that it does not matter in which they came."""
    if isinstance(value, Mapping):
        return {name: _in_order(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return sorted((_in_order(inner) for inner in value), key=lambda inner: json.dumps(inner, sort_keys=True))
    return value
