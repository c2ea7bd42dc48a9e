"""The ledger of an imagined world: what its tools have said so far, and what a new answer may therefore not say.

It knows records by the fields that the output schemas mark, with everything that was said of them. Reads must agree
with it; a write may change what the call names and nothing else (where its answer does not show that, the next look
may); what is created must be new; what was not found stays missing, and what was found is not lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.imagined.scenario import ImaginedTool, follow
from muarl.domains.schema import RECORD, VOLATILE

Key = tuple[str, str]
"""A record: the field that it is known by, and its id."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    what: str
    """"created", "changed" or "read"."""
    tool: str
    arguments: Mapping[str, Any]
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record in an answer."""

    key: Key
    fields: Mapping[str, Any]
    """Records within it stand here by their ids alone."""
    volatile: frozenset[str]


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.strip().casefold() == right.strip().casefold()
    return bool(left == right)


@dataclass
class Ledger:
    """What a model that plays tools has said of its world."""

    id_fields: frozenset[str] = frozenset()
    records: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """Everything known of each record."""
    events: list[Event] = field(default_factory=list)
    """What has happened, in order."""
    absent: dict[str, str] = field(default_factory=dict)
    """Calls that found nothing."""
    _answers: dict[str, Any] = field(default_factory=dict)
    _lists: dict[tuple[str, str, str], set[Key]] = field(default_factory=dict)
    _created: set[Key] = field(default_factory=set)
    _loose: set[Key] = field(default_factory=set)

    def answer_to(self, tool: ImaginedTool, arguments: Mapping[str, Any]) -> Any:
        """The answer that the same read has had since the last write, None if there was none."""
        return self._answers.get(_signature(tool, arguments)) if tool.kind == "read" else None

    # what is wrong with an answer

    def problems(self, tool: ImaginedTool, arguments: Mapping[str, Any], result: Any) -> list[str]:
        """What contradicts the ledger, or the call, in a result that fits the schema; empty if nothing does."""
        records = list(_records(result, tool.returns, tool.returns))
        wrong = _echoes(arguments, result)
        if _signature(tool, arguments) in self.absent and tool.kind == "read":
            wrong.append(
                f"this call has found nothing before ({self.absent[_signature(tool, arguments)]}); so it is now"
            )
        wrong += self._twice(records) + self._foreign(tool, arguments, records)
        about = set(_values(arguments))
        creates = tool.creates
        for number, one in enumerate(records):
            earlier = self.records.get(one.key)
            is_new = creates is not None and number == 0 and one.key[0] == creates
            if is_new and (earlier is not None or one.key[1] in about):
                wrong.append(f"{one.key[0]} {one.key[1]} exists already; what is created needs an id of its own")
            elif earlier is not None and not is_new:
                wrong += self._changed(tool, one, earlier, arguments, about)
        wrong += self._lists_kept(tool, arguments, records)
        return list(dict.fromkeys(wrong))

    def error_problem(self, tool: ImaginedTool, arguments: Mapping[str, Any]) -> str | None:
        """Why a call cannot fail: it reads what is known to exist. Writes may always fail."""
        if tool.kind != "read":
            return None
        ids = {k: v for k, v in arguments.items() if k in self.id_fields}
        if ids and len(ids) == len(arguments) and all(self._exists(k, v) for k, v in ids.items()):
            return f"{', '.join(map(str, ids.values()))} exists, so that reading it cannot fail"
        key = follow(tool.returns, tool.returns).get(RECORD)
        for (kind, name), fields in self.records.items():
            if kind == key and arguments and all(_same(fields.get(k), v) for k, v in arguments.items()):
                return f"{kind} {name} fits what was asked for, so that it must be found"
        return None

    def _exists(self, name: str, value: Any) -> bool:
        """Whether there is such a record, or another one names it."""
        return (name, str(value)) in self.records or any(_same(r.get(name), value) for r in self.records.values())

    def _twice(self, records: list[FoundRecord]) -> list[str]:
        seen: dict[Key, Mapping[str, Any]] = {}
        wrong = []
        for one in records:
            if one.key in seen and seen[one.key] != one.fields:
                wrong.append(f"{one.key[0]} {one.key[1]} stands there twice, with different fields")
            seen[one.key] = one.fields
        return wrong

    def _foreign(self, tool: ImaginedTool, arguments: Mapping[str, Any], records: list[FoundRecord]) -> list[str]:
        """Records of a read that belong to something else than was asked for."""
        if tool.kind != "read":
            return []
        return [
            f"{name} was asked for with {value!r}, but {one.key[0]} {one.key[1]} has {one.fields[name]!r}"
            for one in records
            for name, value in arguments.items()
            if name in self.id_fields and name in one.fields and not _same(one.fields[name], value)
        ]

    def _changed(
        self,
        tool: ImaginedTool,
        one: FoundRecord,
        earlier: Mapping[str, Any],
        arguments: Mapping[str, Any],
        about: set[str],
    ) -> list[str]:
        wrong = []
        for name, value in one.fields.items():
            if name in one.volatile or name not in earlier or _same(earlier[name], value):
                continue
            free = one.key in self._loose or (tool.kind == "write" and one.key[1] in about)
            if free and (name not in self.id_fields or name in arguments):
                continue
            why = "nothing has changed it since" if tool.kind == "read" else "the call is not about that"
            wrong.append(
                f"{one.key[0]} {one.key[1]}: {name} was {_short(earlier[name])} and {why}, but is {_short(value)} here"
            )
        return wrong

    def _lists_kept(self, tool: ImaginedTool, arguments: Mapping[str, Any], records: list[FoundRecord]) -> list[str]:
        """A list of all that somebody has stays whole: nothing is missing from it later, nothing appears by itself."""
        wrong = []
        for (name, owner, value), keys in self._lists.items():
            if (name, owner, value) == (tool.spec.name, *_owner(arguments)):
                kinds = {k[0] for k in keys}
                made = {k for k in self._created if k[0] in kinds and _same(self.records[k].get(owner), value)}
                lost = (keys | made) - {one.key for one in records}
                wrong += [f"{k[0]} {k[1]} belongs to this list and is missing from it" for k in sorted(lost)]
            kinds = {k[0] for k in keys}
            for one in records:
                mine = one.key[0] in kinds and _same(one.fields.get(owner), value)
                if mine and one.key not in keys and tool.kind == "read" and one.key not in self._created:
                    wrong.append(f"{one.key[0]} {one.key[1]} was not among what {name} listed for {value}")
        return wrong

    # what is remembered

    def keep(self, tool: ImaginedTool, arguments: Mapping[str, Any], result: Any) -> None:
        """Remember a result that has no problems."""
        records = list(_records(result, tool.returns, tool.returns))
        creates = tool.creates
        changed = []
        for number, one in enumerate(records):
            if number == 0 and creates is not None and one.key[0] == creates:
                self._created.add(one.key)
            remembered = self.records.setdefault(one.key, {})
            if any(not _same(remembered.get(k), v) for k, v in one.fields.items()):
                changed.append(one.key)
            remembered.update(one.fields)
        what = "read" if tool.kind == "read" else "created" if creates else "changed"
        self.events.append(Event(what, tool.spec.name, dict(arguments), tuple(one.key for one in records)))
        returned_keys = {one.key for one in records}
        self._loose -= returned_keys
        if tool.kind == "write":
            named = set(_values(arguments))
            self._loose |= {key for key in self.records if key[1] in named and key not in returned_keys}
            self._answers.clear()
            for one in records:
                for key in (s for s, _ in list(self.absent.items()) if f'"{one.key[1]}"' in s):
                    self.absent.pop(key, None)
        elif tool.kind == "read":
            self._answers[_signature(tool, arguments)] = result
            owner, value = _owner(arguments)
            if owner in self.id_fields and len(arguments) == 1 and RECORD not in follow(tool.returns, tool.returns):
                self._lists[(tool.spec.name, owner, value)] = {one.key for one in records}

    def keep_error(self, tool: ImaginedTool, arguments: Mapping[str, Any], text: str) -> None:
        """Remember that a read found nothing."""
        if tool.kind == "read":
            self.absent[_signature(tool, arguments)] = text

    def text(self, limit: int = 24_000) -> str:
        """The ledger for a prompt, at most so many characters: what was touched last is kept."""
        events = [f"{e.what} by {e.tool}({_short(dict(e.arguments), 300)})" for e in self.events if e.what != "read"]
        last: dict[Key, None] = {}
        for event in self.events:
            for key in event.keys:
                last.pop(key, None)
                last[key] = None
        lines: list[str] = []
        room = limit
        for key in reversed([*(k for k in self.records if k not in last), *last]):
            line = json.dumps(self.records[key], ensure_ascii=False, default=str)
            line += " (as it was before the last change that concerns it)" if key in self._loose else ""
            room -= len(line) + 1
            if room < 0:
                lines.append("(older records are left out)")
                break
            lines.append(line)
        missing = [f"{call}: {text}" for call, text in self.absent.items()]
        parts = [("Records", lines[::-1]), ("Changes so far, in order", events[-40:]), ("Not found", missing[-20:])]
        return "\n\n".join(f"{title}:\n" + "\n".join(some or ["(none)"]) for title, some in parts)


def _short(value: Any, limit: int = 80) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _signature(tool: ImaginedTool, arguments: Mapping[str, Any]) -> str:
    return f"{tool.spec.name}({json.dumps(dict(arguments), sort_keys=True, default=str)})"


def _owner(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """The first argument, by which lists are asked for."""
    return next(((k, str(v)) for k, v in arguments.items()), ("", ""))


def _values(value: Any) -> Iterator[str]:
    """All texts and numbers within a value, as text."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _values(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _values(inner)
    else:
        yield str(value)


def _echoes(arguments: Mapping[str, Any], result: Any) -> list[str]:
    """Fields of the result that are named like an argument, and say something else."""
    if not isinstance(result, Mapping):
        return []
    return [
        f"{name} is {_short(result[name])} in the answer, but the call says {_short(value)}"
        for name, value in arguments.items()
        if value is not None and name in result and not _same(result[name], value)
    ]


def _records(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[FoundRecord]:
    """The records in a valid value, outer ones first."""
    schema = follow(schema, root)
    for option in schema.get("anyOf") or schema.get("oneOf") or ():
        if isinstance(value, (Mapping, list)) and _is_like(value, follow(option, root)):
            yield from _records(value, option, root)
            return
    if isinstance(value, list):
        for one in value:
            yield from _records(one, schema.get("items") or {}, root)
    elif isinstance(value, Mapping):
        fields = schema.get("properties") or {}
        key = schema.get(RECORD)
        if isinstance(key, str) and key in value:
            volatile = frozenset(n for n, s in fields.items() if s.get(VOLATILE))
            plain = {n: _by_ids(v, fields.get(n) or {}, root) for n, v in value.items()}
            yield FoundRecord((key, str(value[key])), plain, volatile)
        for name, inner in value.items():
            yield from _records(inner, fields.get(name) or {}, root)


def _is_like(value: Any, schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == ("object" if isinstance(value, Mapping) else "array") or RECORD in schema


def _by_ids(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """A field's value with the records in it replaced by their ids, in the order of these."""
    schema = follow(schema, root)
    if isinstance(value, Mapping):
        key = schema.get(RECORD)
        if isinstance(key, str) and key in value:
            return value[key]
        fields = schema.get("properties") or {}
        return {n: _by_ids(v, fields.get(n) or {}, root) for n, v in value.items()}
    if isinstance(value, list):
        inner = [_by_ids(v, schema.get("items") or {}, root) for v in value]
        named = RECORD in follow(schema.get("items") or {}, root)
        return sorted(inner, key=str) if named else inner
    return value
