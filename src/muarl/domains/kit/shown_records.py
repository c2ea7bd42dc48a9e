"""Which records a service's tools show, learned by calling them in worlds whose tables are known.

A tool may rename fields, nest records, or show nothing but ids. So the read tools are called as the gold actions of
some tasks call them, and what they answer is compared with the tables: an object that always holds the key of a record
of one table shows that record, and each of its fields that always equals one of the record's is that field. With this,
worlds are put together from logs (``world_from_log``).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from muarl.domains.database import Database
from muarl.domains.frozen import thaw
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.overlay import some
from muarl.domains.world_from_log import Observer, Sighting, Tables
from muarl.types.chat import ToolCall

TASKS = 60
"""Tasks whose look-ups are learned from."""
SURE = 5
"""Sightings from which on what was always the same counts as a rule of the tool."""
MOSTLY = 0.6
"""The share of sightings in which a field of a part of a record is equal, at least."""
_ARGUMENT = "argument "
"""What stands before a call's arguments, and what is around an object, among the object's fields."""
_ITSELF = ""
"""The name of a value that is no object, among its own fields."""

Place = tuple[str, tuple[str, ...]]
"""A tool, and the way from its result to an object in it; "*" is any element of a list."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whose record an object may show."""

    table: str
    """The record's table."""
    key: str
    """The object's field that holds the record's key."""
    part: str = ""
    """The record's field in which the object stands, where it is a part of the record."""
    part_key: str = ""
    """The object's field that holds its key within ``part``."""


@dataclass
class LinkEvidence:
    """What a place's objects have shown of a target."""

    target: Target
    times: int = 0
    """How often it was there at all."""
    names: Counter[str] = field(default_factory=Counter)
    """Each field of the objects."""
    equal: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Each field of the objects with each field of the record that was equal."""
    fixed: dict[str, Any] = field(default_factory=dict)
    """Fields of the record that had the same value in all."""

    def see(self, fields: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        """Take note of one object, and the record that it shows."""
        self.times += 1
        if self.target.part:  # what stands around an object says nothing of a part of a record
            fields = {name: value for name, value in fields.items() if not name.startswith(_ARGUMENT)}
        self.names.update(fields.keys())
        self.equal.update((n, f) for n, value in fields.items() for f, v in record.items() if _same(v, value))
        fixed = self.fixed if self.times > 1 else record
        self.fixed = {f: v for f, v in fixed.items() if f in record and _same(record[f], v)}

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """Fields of the objects that are fields of the record: always, or, of a part, mostly, since it may be shown
        as it is behind what others did to it; whether that is so, shows when the conversation is run again."""
        least = MOSTLY if self.target.part else 1.0
        out: dict[str, str] = {}
        for name, seen in self.names.items():
            fits = {f: times / seen for (n, f), times in self.equal.items() if n == name and times >= least * seen}
            plain = name.removeprefix(_ARGUMENT)
            best = max(fits.values(), default=0.0)
            only = [f for f, share in fits.items() if share == best]
            if plain in fits or (len(only) == 1 and self.times >= SURE):
                out[name] = plain if plain in fits else only[0]
        return out


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def objects(tool: str, arguments: Mapping[str, Any], result: Any) -> Iterator[tuple[Place, dict[str, Any]]]:
    """All objects within a result, and single values in lists or alone, in their order; beside their fields, those of
    what they stand in, and the call's arguments."""
    prefixed = {f"{_ARGUMENT}{name}": value for name, value in arguments.items()}
    todo: list[tuple[tuple[str, ...], dict[str, Any], Any]] = [((), prefixed, result)]
    while todo:
        way, around, value = todo.pop()
        inner: list[tuple[tuple[str, ...], dict[str, Any], Any]] = []
        if isinstance(value, Mapping):
            yield (tool, way), {**around, **value}
            flat = {f"{_ARGUMENT}{n}": v for n, v in value.items() if not isinstance(v, (Mapping, list))}
            within = {**around, **flat}
            inner = [((*way, str(n)), within, v) for n, v in value.items() if isinstance(v, (Mapping, list))]
            if value and all(isinstance(v, Mapping) for v in value.values()):  # records by their keys
                inner += [((*way, "*"), within, v) for v in value.values()]
        elif isinstance(value, list):
            inner = [((*way, "*"), around, v) for v in value]
        elif isinstance(value, str) and value:
            yield (tool, way), {**around, _ITSELF: value}
        todo += reversed(inner)


@dataclass
class Fields:
    """The fields of a table's records."""

    like: dict[str, Any]
    """An empty value of its kind for each that all records have."""
    first: Mapping[str, Any]
    """The values of the first record."""
    vary: set[str] = field(default_factory=set)
    """The fields whose values differ."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Fields:
        """Those of the first record."""
        return cls({f: _empty(v) for f, v in record.items()}, record)

    def see(self, record: Mapping[str, Any]) -> None:
        """Take note of a record."""
        for name in [f for f in self.like if f not in record]:
            del self.like[name]
        self.vary |= {name for name, value in record.items() if not _same(self.first.get(name), value)}


def _empty(value: Any) -> Any:
    """A value of the same kind that stands for nothing."""
    return type(value)() if isinstance(value, (str, int, float, list, dict)) else None


class _Learned:
    """What is known of a domain's tables (and of the parts of their records, as "TABLE PART"), and of what its tools
    show."""

    def __init__(self) -> None:
        self.tables: dict[str, Fields | None] = {}
        self.parts: dict[tuple[str, str], Fields] = {}
        self.links: dict[Place, dict[Target, LinkEvidence]] = {}
        self.times: Counter[Place] = Counter()

    def note_tables(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        """Take note of the fields of a world's records."""
        for table, records in tables.items():
            fields = self.tables.setdefault(table, None)
            for _, frozen in some(records):
                record = thaw(frozen)
                if not isinstance(record, dict):
                    break
                if fields is None:
                    fields = self.tables[table] = Fields.of(record)
                fields.see(record)
                for part, inner in record.items():
                    for one in inner.values() if isinstance(inner, dict) else ():
                        if isinstance(one, dict):
                            self.parts.setdefault((table, part), Fields.of(one)).see(one)

    def note_result(
        self, tool: str, arguments: Mapping[str, Any], result: Any, tables: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Compare the objects of a result with the records whose keys stand in them."""
        for place, fields in objects(tool, arguments, result):
            self.times[place] += 1
            links = self.links.setdefault(place, {})
            keys = {n: str(v) for n, v in fields.items() if isinstance(v, (str, int)) and not isinstance(v, bool)}
            for name, key in keys.items():
                for table, records in tables.items():
                    record = thaw(records[key]) if key in records else None
                    if not isinstance(record, dict):
                        continue
                    links.setdefault(target := Target(table, name), LinkEvidence(target)).see(fields, record)
                    for part, inner in record.items():
                        for other, part_key in keys.items() if isinstance(inner, dict) else ():
                            if other != name and part_key in inner:
                                target = Target(table, name, part, other)
                                links.setdefault(target, LinkEvidence(target)).see(fields, _as_record(inner[part_key]))

    def chosen(self) -> dict[Place, list[LinkEvidence]]:
        """For each place the link that tells the most of a record, of those that all its objects had, and of each part
        of a record."""
        out: dict[Place, list[LinkEvidence]] = {}
        for place, links in self.links.items():
            best: dict[tuple[str, str], LinkEvidence] = {}
            for link in links.values():
                target = link.target
                if not link.fields or (link.times < (SURE if target.part else self.times[place])):
                    continue
                kind = (target.table, target.part) if target.part else ("", "")
                if kind not in best or _told(link) > _told(best[kind]):
                    best[kind] = link
            if (whole := best.get(("", ""))) is not None:
                fields = self.tables[whole.target.table]
                vary = set() if fields is None else fields.vary
                whole.fixed = {f: v for f, v in whole.fixed.items() if f in vary and whole.times >= SURE}
            out[place] = list(best.values())
        return out


def _told(link: LinkEvidence) -> tuple[int, int, bool]:
    """How much a link tells."""
    return len(set(link.fields.values())), link.times, not link.target.key.startswith(_ARGUMENT)


def _as_record(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {_ITSELF: value}


def _learn(maker: TaskMaker) -> _Learned:
    """Call the read tools as gold actions of some tasks do. ConfigError where the service has no tasks."""
    service, domain = maker.service, maker.worlds.domain
    size = next((s.name for s in service.sizes if not s.tiny), service.smallest.name)
    out = _Learned()
    looked_at: list[Database] = []
    for task in itertools.islice(maker.iter_tasks("train", size=size), TASKS):
        database = task.database or domain.base
        if not any(database is other for other in looked_at):
            looked_at.append(database)
            out.note_tables(database.tables)
        world = domain.world(task)
        for action in task.actions or ():
            if action.requestor == "assistant" and domain.kind_of(action.name) == "read":
                answer = world.call("assistant", ToolCall("learn", action.name, action.arguments))
                if not answer.error:
                    result = service.parsed(action.name, answer.content)
                    out.note_result(action.name, action.arguments, result, database.tables)
    return out


def observer_of(maker: TaskMaker) -> Observer:
    """What the tools of a service show of its records. Worlds that do not answer as a log did are refused."""
    service, base = maker.service, maker.worlds.domain.base
    learned = _learn(maker)
    links = learned.chosen()
    compared = base.compared if base.tables else None

    def seen(tool: str, arguments: Mapping[str, Any], result: Any) -> Iterator[Sighting]:
        if isinstance(result, str):
            result = service.read(tool, result)  # in few words, as in tiny worlds
        for place, values in objects(tool, arguments, result):
            for link in links.get(place, ()):
                target, record = link.target, {f: values[n] for n, f in link.fields.items() if n in values}
                key, part_key = values.get(target.key), values.get(target.part_key)
                if not record or not isinstance(key, (str, int)):
                    continue
                if not target.part:
                    yield target.table, str(key), {**link.fixed, **record}
                elif isinstance(part_key, (str, int)):
                    one = record.get(_ITSELF, record)
                    yield target.table, str(key), {target.part: {str(part_key): one}}

    def complete(tables: Tables) -> Database:
        whole: Tables = {}
        for table, fields in learned.tables.items():
            like = {} if fields is None else fields.like
            whole[table] = {key: {**like, **one} for key, one in tables.get(table, {}).items()}
            for (of, part), parts in learned.parts.items():
                for record in whole[table].values() if of == table else ():
                    if isinstance(inner := record.get(part), dict):
                        record[part] = {
                            k: {**parts.like, **one} if isinstance(one, dict) else one for k, one in inner.items()
                        }
        return Database(whole, compared=compared)

    return Observer(tuple(learned.tables), seen, lambda tool, arguments, result: (), complete, strict=True)
