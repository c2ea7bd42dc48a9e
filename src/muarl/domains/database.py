"""A database that many worlds share: an immutable base, and for each world a copy-on-access view over it.

A database is tables of records: ``tables[table][key]`` is one JSON value (mostly an object). The base never changes.
A view copies a record when it is first taken, so that tool code may change plain dicts; what nobody touched costs
nothing. That makes a fresh world a matter of microseconds, and a digest a matter of the records touched. A table may
also be read on access (``overlay.LazyTable``; ``sql`` has those of a file).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.authoring import nearest
from muarl.domains.frozen import _DELETED, _MISSING, canonical, freeze, thaw
from muarl.domains.overlay import LazyTable, Overlay, strange_column, strange_key
from muarl.domains.table import Table

_MODULUS = 1 << 256


def _compared(names: Iterable[str] | None, tables: Mapping[str, Any]) -> frozenset[str]:
    """The tables that digests are of. ConfigError for one that there is not."""
    if isinstance(names, str):
        raise ConfigError(f"compared: must be a tuple of tables, such as ({names!r},)")
    compared = frozenset(tables if names is None else names)
    unknown = min(compared - tables.keys(), default=None)
    if unknown is not None:
        listed = ", ".join(tables) or "none"
        raise ConfigError(f"compared: there is no table {unknown!r}{nearest(unknown, list(tables))}; tables: {listed}")
    return compared


def _record_hash(table: str, key: str, text: str) -> int:
    head = json.dumps([table, key])
    return int.from_bytes(hashlib.sha256(f"{head}{text}".encode()).digest(), "big")


class Database:
    """A domain's database before anybody acts: tables of records, never changed, shared by all worlds made from it.

    ``tables`` is copied, so the caller's objects may change afterwards. ``models`` names, for tables whose records
    tools want as objects, the pydantic model of a record. ``lists`` names the tables that a benchmark holds as lists of
    records, without keys, which shows in ``full_hash``. ``compared``: the tables that ``digest`` is of, and with it the
    reward's DB; None: all. ``columns``: of tables that have them, which a changed record must keep to.
    TypeError if a table is not a mapping, ConfigError for a table to compare that there is not.
    """

    __slots__ = ("_digest", "_hashes", "_texts", "columns", "compared", "lists", "models", "sound", "tables")

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, Any]],
        *,
        models: Mapping[str, type[Any]] | None = None,
        lists: Iterable[str] = (),
        compared: Iterable[str] | None = None,
    ) -> None:
        for name, table in tables.items():
            if not isinstance(table, Mapping):
                raise TypeError(f"database table {name!r} must map keys to records, but is a {type(table).__name__}")
        self.tables: dict[str, Mapping[str, Any]] = {n: {k: freeze(r) for k, r in t.items()} for n, t in tables.items()}
        self.models: dict[str, type[Any]] = dict(models or {})
        self.lists = frozenset(lists)
        self.compared = _compared(compared, self.tables)
        self.columns: Mapping[str, tuple[str, ...]] = {}
        self._texts: dict[str, dict[str, str]] = {n: {} for n in self.tables}
        self._hashes: dict[tuple[str, str], int] = {}
        self._digest: int | None = None
        self.sound = False  # nobody has looked whether it is JSON

    @classmethod
    def over(
        cls,
        tables: Mapping[str, LazyTable],
        *,
        digest: int,
        columns: Mapping[str, tuple[str, ...]],
        compared: Iterable[str] | None = None,
    ) -> Database:
        """Over tables that are read on access and never change. ``digest`` stands for their contents, so that nobody
        has to go through all records for it."""
        new = cls({}, compared=())
        new.tables, new.columns, new.sound = dict(tables), dict(columns), True
        new.compared, new._digest = _compared(compared, new.tables), digest % _MODULUS
        return new

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
        """A new base that differs in the given records (a record None removes it) and shares all others. A table that
        there is not is added; digests leave it out."""
        new = object.__new__(Database)
        new.models, new.lists, new.compared, new.columns = self.models, self.lists, self.compared, self.columns
        new.tables = {n: dict(t) if isinstance(t, dict) else t for n, t in self.tables.items()}
        new._texts = {n: dict(t) for n, t in self._texts.items()}
        new._hashes, new.sound = dict(self._hashes), False
        total = self._digest
        for table, records in changes.items():
            counts = table in self.compared
            if counts and total is not None:
                total -= sum(self.record_hash(table, key) for key in records if key in self.tables[table])
            new._change(table, {key: None if record is None else freeze(record) for key, record in records.items()})
            if counts and total is not None:
                total += sum(new.record_hash(table, key) for key, record in records.items() if record is not None)
        new._digest = None if total is None else total % _MODULUS
        return new

    def _change(self, name: str, records: Mapping[str, Any]) -> None:
        if name not in self.tables:
            self.tables[name], self._texts[name] = {}, {}
        table = self.tables[name]
        if not isinstance(table, dict):
            self.tables[name] = Overlay(table, records)
            return
        for key, record in records.items():
            self._texts[name].pop(key, None)
            self._hashes.pop((name, key), None)
            if record is None:
                table.pop(key, None)
            else:
                table[key] = record

    def to_check(self) -> dict[str, Mapping[str, Any]]:
        """The records of which nobody knows yet whether they are JSON: all but those that are read on access."""
        unchecked: dict[str, Mapping[str, Any]] = {}
        for name, table in ({} if self.sound else self.tables).items():
            if isinstance(table, Overlay):
                unchecked[name] = {key: record for key, record in table.changes.items() if record is not None}
            elif not isinstance(table, LazyTable):
                unchecked[name] = table
        return unchecked

    def record_text(self, table: str, key: str) -> str:
        """The canonical JSON of one record; kept after the first time, but of tables that are read on access."""
        texts = self._texts.get(table)
        if texts is None:
            return canonical(self.tables[table][key])
        text = texts.get(key)
        if text is None:
            text = texts[key] = canonical(self.tables[table][key])
        return text

    def record_hash(self, table: str, key: str) -> int:
        """The record's share in ``digest``; kept as its text is."""
        value = self._hashes.get((table, key))
        if value is None:
            value = _record_hash(table, key, self.record_text(table, key))
            if table in self._texts:
                self._hashes[(table, key)] = value
        return value

    def digest(self) -> int:
        """The sum of the hashes of all compared records modulo 2**256: equal for equal contents, however they came
        about. Where tables are read on access, the sum begins with a number that stands for what was read from."""
        if self._digest is None:
            counted = ((t, k) for t, records in self.tables.items() if t in self.compared for k in records)
            self._digest = sum(self.record_hash(t, k) for t, k in counted) % _MODULUS
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
        table_view = self._tables.get(table)
        if table_view is None:
            if table not in self._base.tables:
                missing = KeyError(table)
                missing.add_note(f"The database has the tables {', '.join(self._base.tables) or 'none'}.")
                raise missing
            table_view = self._tables[table] = Table(self, table)
        return table_view

    def __getattr__(self, table: str) -> Table:
        try:
            return self[table]
        except KeyError:
            raise AttributeError(f"the database has no table {table!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._base.tables)

    def fork(self) -> View:
        """A copy that changes by itself. RuntimeError within a call of a tool."""
        if self._pending is not None:
            raise RuntimeError("a view is copied between the calls of tools")
        new = View(self._base)
        new._kept = deepcopy(self._kept, {id(_DELETED): _DELETED})
        return new

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
            committed, originals = self._kept.get(table, {}), self._base.tables[table]
            for key, record in records.items():
                before = committed.get(key, _MISSING)
                if before is _MISSING:
                    before = originals.get(key, _MISSING)
                    if hasattr(record, "model_dump") and before is not _MISSING:
                        before = type(record).model_validate(thaw(before))
                if record is not before and (record is _DELETED or before is _MISSING or record != before):
                    return table, key
        return None

    def check_columns(self) -> None:
        """KeyError names a column that a record changed since ``begin`` has, and its table has not."""
        columns = self._base.columns
        if not columns or not self._pending:
            return
        for table, table_columns in columns.items():
            for key, record in self._pending.get(table, {}).items():
                if not isinstance(key, str):
                    raise strange_key(table, key)
                strange = record.keys() - table_columns if isinstance(record, dict) else None
                if strange:
                    raise strange_column(table, min(strange, key=str), table_columns)

    def taken(self, table: str) -> dict[str, Any]:
        """The records of a table that this world holds copies of, changed or not; None for one that it has removed."""
        return {key: None if record is _DELETED else record for key, record in self[table]._held().items()}

    def digest(self) -> str:
        """64 hex digits, equal if and only if the contents of the compared tables are (whatever the bases, but where
        they are read on access); costs the touched records."""
        base, total = self._base, self._base.digest()
        for table, records in self._touched().items():
            if table not in base.compared:
                continue
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
