"""A database that many worlds share: an immutable base, and for each world a copy-on-access view over it.

A database is tables of records: ``tables[table][key]`` is one JSON value (mostly an object). The base never changes.
A view copies a record when it is first taken, so that tool code may change plain dicts; what nobody touched costs
nothing. That makes a fresh world a matter of microseconds, and a digest a matter of the records touched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, NoReturn

_MISSING: Any = object()
_DELETED: Any = object()
_MODULUS = 1 << 256


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("this record is shared and read-only; take it with db.table[key] to change it")


class FrozenDict(dict[str, Any]):
    """A JSON object of the shared base. Reading is a dict's; every way of changing it raises TypeError."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> Any:
        return (FrozenDict, (dict(self),))

    def __deepcopy__(self, memo: Any) -> Any:
        return thaw(self)

    def __copy__(self) -> Any:
        return dict(self)


class FrozenList(list[Any]):
    """A JSON array of the shared base. Reading is a list's; every way of changing it raises TypeError."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> Any:
        return (FrozenList, (list(self),))

    def __deepcopy__(self, memo: Any) -> Any:
        return thaw(self)

    def __copy__(self) -> Any:
        return list(self)


def freeze(value: Any) -> Any:
    """A read-only deep copy of a JSON value."""
    if isinstance(value, dict):
        return FrozenDict({k: freeze(v) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([freeze(v) for v in value])
    return value


def thaw(value: Any) -> Any:
    """A plain deep copy of a JSON value; other values (pydantic models) are copied by their own means."""
    kind = type(value)
    if kind is FrozenDict or kind is dict:
        return {k: thaw(v) if isinstance(v, (dict, list)) else v for k, v in value.items()}
    if kind is FrozenList or kind is list:
        return [thaw(v) if isinstance(v, (dict, list)) else v for v in value]
    return value.model_copy(deep=True) if hasattr(value, "model_copy") else value


def canonical(value: Any) -> str:
    """Canonical JSON text: keys sorted, Python's default separators, ASCII. TAU2 hashes databases in this form.

    1 and 1.0 differ, as they do for TAU2. Values that JSON has no form for become ``str(value)``.
    """
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, default=str)


def _record_hash(table: str, key: str, text: str) -> int:
    head = json.dumps([table, key])
    return int.from_bytes(hashlib.sha256(f"{head}{text}".encode()).digest(), "big")


class Database:
    """An immutable base: tables of records, shared by all worlds made from it.

    ``tables`` is copied, so the caller's objects may change afterwards. ``models`` names, for tables whose records
    tools want as objects, the pydantic model of a record. ``lists`` names the tables that a benchmark holds as lists of
    records, without keys, which shows in ``full_hash``. TypeError if a table is not a mapping.
    """

    __slots__ = ("_digest", "_hashes", "_texts", "lists", "models", "sound", "tables")

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, Any]],
        *,
        models: Mapping[str, type[Any]] | None = None,
        lists: Iterable[str] = (),
    ) -> None:
        for name, table in tables.items():
            if not isinstance(table, Mapping):
                raise TypeError(f"database table {name!r} must map keys to records, but is a {type(table).__name__}")
        self.tables: dict[str, dict[str, Any]] = {n: {k: freeze(r) for k, r in t.items()} for n, t in tables.items()}
        self.models: dict[str, type[Any]] = dict(models or {})
        self.lists = frozenset(lists)
        self._texts: dict[str, dict[str, str]] = {n: {} for n in self.tables}
        self._hashes: dict[tuple[str, str], int] = {}
        self._digest: int | None = None
        self.sound = False  # nobody has looked whether it is JSON

    @classmethod
    def from_model(cls, model: Any) -> Database:
        """From a pydantic model whose fields are dicts of records; records of model type stay objects for the tools."""
        models: dict[str, type[Any]] = {}
        for name in type(model).model_fields:
            for record in getattr(model, name).values():
                if hasattr(record, "model_dump"):
                    models[name] = type(record)
                break
        return cls(model.model_dump(mode="json"), models=models)

    def derive(self, changes: Mapping[str, Mapping[str, Any]]) -> Database:
        """A new base that differs in the given records (a record None removes it) and shares all others."""
        new = object.__new__(Database)
        new.models, new.lists, new.sound = self.models, self.lists, False
        new.tables = {n: dict(t) for n, t in self.tables.items()}
        new._texts = {n: dict(t) for n, t in self._texts.items()}
        new._hashes = dict(self._hashes)
        total = self._digest
        for table, records in changes.items():
            for key, record in records.items():
                if total is not None and key in self.tables[table]:
                    total -= self.record_hash(table, key)
                new._texts[table].pop(key, None)
                new._hashes.pop((table, key), None)
                if record is None:
                    new.tables[table].pop(key, None)
                else:
                    new.tables[table][key] = freeze(record)
                    if total is not None:
                        total += new.record_hash(table, key)
        new._digest = None if total is None else total % _MODULUS
        return new

    def record_text(self, table: str, key: str) -> str:
        """The canonical JSON of one record; kept after the first time."""
        texts = self._texts[table]
        text = texts.get(key)
        if text is None:
            text = texts[key] = canonical(self.tables[table][key])
        return text

    def record_hash(self, table: str, key: str) -> int:
        """The record's share in ``digest``; kept after the first time."""
        value = self._hashes.get((table, key))
        if value is None:
            value = self._hashes[(table, key)] = _record_hash(table, key, self.record_text(table, key))
        return value

    def digest(self) -> int:
        """The sum of all records' hashes modulo 2**256: equal for equal contents, however they came about."""
        if self._digest is None:
            self._digest = sum(self.record_hash(t, k) for t, records in self.tables.items() for k in records) % _MODULUS
        return self._digest

    def to_tables(self) -> dict[str, dict[str, Any]]:
        """A plain deep copy of all tables."""
        return {n: {k: thaw(r) for k, r in t.items()} for n, t in self.tables.items()}

    def view(self) -> View:
        """A fresh view: one world's database."""
        return View(self)


class View:
    """One world's database: reads fall through to the base, taken records are this world's own copies.

    ``view.orders`` and ``view["orders"]`` are tables (mutable mappings). ``begin``, ``commit`` and ``rollback`` bracket
    a tool call, so that a failed write can be undone at the cost of the records it touched.
    """

    __slots__ = ("_base", "_kept", "_pending", "_tables")

    def __init__(self, base: Database) -> None:
        self._base = base
        self._kept: dict[str, dict[str, Any]] = {}
        self._pending: dict[str, dict[str, Any]] | None = None
        self._tables: dict[str, Table] = {}

    @property
    def base(self) -> Database:
        return self._base

    def __getitem__(self, table: str) -> Table:
        found = self._tables.get(table)
        if found is None:
            if table not in self._base.tables:
                missing = KeyError(table)
                missing.add_note(f"The database has the tables {', '.join(self._base.tables) or 'none'}.")
                raise missing
            found = self._tables[table] = Table(self, table)
        return found

    def __getattr__(self, table: str) -> Table:
        try:
            return self[table]
        except KeyError:
            raise AttributeError(f"the database has no table {table!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._base.tables)

    def begin(self) -> None:
        """Start to record changes aside. Nested calls are not needed and not allowed."""
        if self._pending is not None:
            raise RuntimeError("a transaction is already open")
        self._pending = {}

    def commit(self) -> None:
        """Keep what changed since ``begin``."""
        pending, self._pending = self._pending, None
        for table, records in (pending or {}).items():
            self._kept.setdefault(table, {}).update(records)

    def rollback(self) -> None:
        """Forget what changed since ``begin``."""
        self._pending = None

    def changed(self) -> tuple[str, str] | None:
        """(table, key) of a record that is not as it was at ``begin``; None if all are."""
        for table, records in (self._pending or {}).items():
            kept, originals = self._kept.get(table, {}), self._base.tables[table]
            for key, record in records.items():
                before = kept.get(key, _MISSING)
                if before is _MISSING:
                    before = originals.get(key, _MISSING)
                    if hasattr(record, "model_dump") and before is not _MISSING:
                        before = type(record).model_validate(thaw(before))
                if record is not before and (record is _DELETED or before is _MISSING or record != before):
                    return table, key
        return None

    def digest(self) -> str:
        """64 hex digits, equal if and only if the contents are (whatever the bases); costs the touched records."""
        base, total = self._base, self._base.digest()
        for table, records in self._touched().items():
            originals = base.tables[table]
            for key, record in records.items():
                if record is not _DELETED:
                    text = canonical(record)
                    if key in originals and text == base.record_text(table, key):
                        continue
                    total += _record_hash(table, key, text)
                if key in originals:
                    total -= base.record_hash(table, key)
        return f"{total % _MODULUS:064x}"

    def full_hash(self) -> str:
        """TAU2's hash: sha256 over the canonical JSON of the whole state."""
        base, touched = self._base, self._touched()
        parts = []
        for table in sorted(base.tables):
            own = touched.get(table, {})
            keys = {**base.tables[table], **own} if own else base.tables[table]
            rows, as_list = [], table in base.lists
            for key in keys if as_list else sorted(keys):
                record = own.get(key, _MISSING)
                if record is _DELETED:
                    continue
                text = base.record_text(table, key) if record is _MISSING else canonical(record)
                rows.append(text if as_list else f"{json.dumps(key)}: {text}")
            whole = f"[{', '.join(rows)}]" if as_list else f"{{{', '.join(rows)}}}"
            parts.append(f"{json.dumps(table)}: {whole}")
        return hashlib.sha256(f"{{{', '.join(parts)}}}".encode()).hexdigest()

    def to_tables(self) -> dict[str, dict[str, Any]]:
        """A plain deep copy of the current contents."""
        out: dict[str, dict[str, Any]] = {}
        for table in self._base.tables:
            out[table] = {k: json.loads(canonical(r)) for k, r in self[table].scan()}
        return out

    def _touched(self) -> dict[str, dict[str, Any]]:
        if not self._pending:
            return self._kept
        merged = {t: dict(r) for t, r in self._kept.items()}
        for table, records in self._pending.items():
            merged.setdefault(table, {}).update(records)
        return merged


class Table(MutableMapping[str, Any]):
    """One table of a view. ``table[key]`` is this world's own copy; ``scan`` reads without copying."""

    __slots__ = ("_name", "_originals", "_view")

    def __init__(self, view: View, name: str) -> None:
        self._view, self._name = view, name
        self._originals = view._base.tables[name]

    def _own(self, key: str) -> Any:
        """The record as this world holds it, ``_DELETED``, or ``_MISSING`` if only the base may have it."""
        pending = self._view._pending
        if pending:
            record = pending.get(self._name, {}).get(key, _MISSING)
            if record is not _MISSING:
                return record
        kept = self._view._kept.get(self._name)
        return _MISSING if kept is None else kept.get(key, _MISSING)

    def _layer(self) -> dict[str, Any]:
        view = self._view
        layers = view._kept if view._pending is None else view._pending
        layer = layers.get(self._name)
        if layer is None:
            layer = layers[self._name] = {}
        return layer

    def __getitem__(self, key: str) -> Any:
        layer = self._layer()
        record = layer.get(key, _MISSING)
        if record is _MISSING:
            record = self._own(key)
            if record is _MISSING:
                record = thaw(self._originals[key])
                model = self._view._base.models.get(self._name)
                if model is not None:
                    record = model.model_validate(record)
            elif record is not _DELETED:
                record = thaw(record)  # kept by an earlier call; this call may yet be rolled back
            layer[key] = record
        if record is _DELETED:
            raise KeyError(key)
        return record

    def __setitem__(self, key: str, record: Any) -> None:
        self._layer()[key] = record

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._layer()[key] = _DELETED

    def __contains__(self, key: object) -> bool:
        record = self._own(key)  # type: ignore[arg-type]
        return record is not _DELETED if record is not _MISSING else key in self._originals

    def __iter__(self) -> Iterator[str]:
        for key in self._originals:
            if self._own(key) is not _DELETED:
                yield key
        yield from self._added()

    def _added(self) -> dict[str, Any]:
        """The records that only this world has."""
        view, name = self._view, self._name
        own = {**view._kept.get(name, {}), **(view._pending or {}).get(name, {})}
        return {k: r for k, r in own.items() if k not in self._originals and r is not _DELETED}

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def scan(self) -> Iterator[tuple[str, Any]]:
        """(key, record) of every record in order, without copies. Read only: untouched records refuse changes."""
        view, name = self._view, self._name
        for key, original in self._originals.items():
            if name in view._kept or (view._pending and name in view._pending):
                record = self._own(key)
                if record is _DELETED:
                    continue
                yield key, original if record is _MISSING else record
            else:
                yield key, original
        for key, record in self._added().items():
            yield key, record

    def peek(self, key: str) -> Any:
        """The record without a copy, for reading only. KeyError if there is none."""
        record = self._own(key)
        if record is _MISSING:
            return self._originals[key]
        if record is _DELETED:
            raise KeyError(key)
        return record
