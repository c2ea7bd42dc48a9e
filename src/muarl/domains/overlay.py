"""Tables that are read on access, seen with some records changed, and what such a table must be able to do."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import Any, Protocol, runtime_checkable

from muarl.domains.authoring import nearest

SOME = 100
"""Records of a large table among which one is looked for that fits, where many do."""

POOL = 1000
"""Records of a large table that values are drawn from."""


@runtime_checkable
class Searchable(Protocol):
    """A table that finds records by the values of fields itself, faster than by going through all of them."""

    def matching(self, equal: Mapping[str, Any]) -> Iterator[tuple[str, Any]]: ...


def has_fields(record: Any, equal: Mapping[str, Any]) -> bool:
    """Whether a record (a dict or a pydantic model) has these values in these fields."""
    if isinstance(record, Mapping):
        return all(name in record and record[name] == value for name, value in equal.items())
    return all(hasattr(record, name) and getattr(record, name) == value for name, value in equal.items())


def matching(table: Mapping[str, Any], equal: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(key, record) of the records with these values in these fields."""
    if isinstance(table, Searchable):
        yield from table.matching(equal)
    else:
        yield from ((key, record) for key, record in table.items() if has_fields(record, equal))


def some(table: Mapping[str, Any], most: int = SOME) -> Iterator[tuple[str, Any]]:
    """(key, record) of all records; of a table that is read on access, of its first ``most``."""
    yield from itertools.islice(table.items(), most if isinstance(table, LazyTable) else None)


def sampled(table: Mapping[str, Any], salt: str = "") -> list[Any]:
    """Records that values are drawn from: all, or of a large table that is read on access some from all over it.
    ``salt``: where given, only ``SOME`` of them; which ones hangs on it."""
    if not isinstance(table, LazyTable):
        return list(table.values())
    records = [record for _, record in table.sample()]
    if not salt or len(table) <= POOL:
        return records
    start = zlib.crc32(salt.encode()) % len(records)
    return (records + records)[start : start + SOME]


class LazyTable(Mapping[str, Any]):
    """Base of tables whose records are read when they are asked for. ``scan`` yields (key, record) in order."""

    def scan(self) -> Iterator[tuple[str, Any]]:
        raise NotImplementedError

    def sample(self) -> Sequence[tuple[str, Any]]:
        """(key, record) of up to ``POOL`` records from all over the table, the same ones each time."""
        return list(itertools.islice(self.scan(), 0, None, -(-len(self) // POOL) or 1))

    def items(self) -> ItemsView[str, Any]:
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        return _Values(self)


class _Items(ItemsView[str, Any]):
    _mapping: Any

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._mapping.scan())


class _Values(ValuesView[Any]):
    _mapping: Any

    def __iter__(self) -> Iterator[Any]:
        return (record for _, record in self._mapping.scan())


class Overlay(LazyTable):
    """A lazy table with ``changes`` laid over it: other records, or None where one is removed. Neither may change."""

    __slots__ = ("below", "changes")

    def __init__(self, below: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
        self.below: Mapping[str, Any] = below.below if isinstance(below, Overlay) else below
        self.changes: dict[str, Any] = {**(below.changes if isinstance(below, Overlay) else {}), **changes}

    def __getitem__(self, key: str) -> Any:
        if key not in self.changes:
            return self.below[key]
        record = self.changes[key]
        if record is None:
            raise KeyError(key)
        return record

    def __contains__(self, key: object) -> bool:
        return self.changes.get(key) is not None if key in self.changes else key in self.below

    def __iter__(self) -> Iterator[str]:
        for key in self.below:
            if key not in self.changes or self.changes[key] is not None:
                yield key
        yield from self._added()

    def __len__(self) -> int:
        removed = sum(record is None and key in self.below for key, record in self.changes.items())
        return len(self.below) - removed + len(self._added())

    def sample(self) -> Sequence[tuple[str, Any]]:
        """Those of the table below, as they are now, and what has been added."""
        if not isinstance(self.below, LazyTable):
            return list(self.items())
        rows = [(key, self.changes.get(key, record)) for key, record in self.below.sample()]
        return [one for one in rows if one[1] is not None] + list(self._added().items())

    def scan(self) -> Iterator[tuple[str, Any]]:
        for key, record in self.below.items():
            record = self.changes.get(key, record)
            if record is not None:
                yield key, record
        yield from self._added().items()

    def matching(self, equal: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """(key, record) of the records with these values in these fields; the changed ones last."""
        yield from ((key, record) for key, record in matching(self.below, equal) if key not in self.changes)
        for key, record in self.changes.items():
            if record is not None and has_fields(record, equal):
                yield key, record

    def _added(self) -> dict[str, Any]:
        return {k: r for k, r in self.changes.items() if r is not None and k not in self.below}


def strange_column(table: str, name: str, names: Iterable[str]) -> ColumnError:
    """The error for a column that a table has not."""
    columns = list(names)
    hint = nearest(name, columns) or f"; it has {', '.join(columns)}"
    return ColumnError(f"the table {table!r} has no column {name!r}{hint}")


def strange_key(table: str, key: object) -> TypeError:
    """The error for a key that is no text."""
    return TypeError(f"records of {table!r} are known by text, not {key!r}: write {str(key)!r}")


class ColumnError(KeyError):
    """A table has no such column. Its text, unlike a KeyError's, is shown as it is written."""

    def __str__(self) -> str:
        return str(self.args[0])
