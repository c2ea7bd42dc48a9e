"""One table of a world's view of its database."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from typing import Any, Protocol

from muarl.domains.frozen import _DELETED, _MISSING, thaw
from muarl.domains.overlay import LazyTable, has_fields, matching


class RecordLayers(Protocol):
    """What a table needs of its view: the shared base, and the records that the world holds itself."""

    _base: Any
    _kept: dict[str, dict[str, Any]]
    _pending: dict[str, dict[str, Any]] | None


class Table(MutableMapping[str, Any]):
    """One table of a view. ``table[key]`` is this world's own copy; ``scan`` reads without copying."""

    __slots__ = ("_name", "_originals", "_view")

    def __init__(self, view: RecordLayers, name: str) -> None:
        self._view, self._name = view, name
        self._originals = view._base.tables[name]

    def _own(self, key: str) -> Any:
        """The record as this world holds it, ``_DELETED``, or ``_MISSING`` if only the base may have it."""
        pending = self._view._pending
        if pending:
            record = pending.get(self._name, {}).get(key, _MISSING)
            if record is not _MISSING:
                return record
        own = self._view._kept.get(self._name)
        return _MISSING if own is None else own.get(key, _MISSING)

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
                return self._take(key, self._originals[key])
            if record is not _DELETED:
                record = thaw(record)  # kept by an earlier call; this call may yet be rolled back
            layer[key] = record
        if record is _DELETED:
            raise KeyError(key)
        return record

    def _take(self, key: str, original: Any) -> Any:
        """This world's own copy of a record of the base."""
        record, model = thaw(original), self._view._base.models.get(self._name)
        if model is not None:
            record = model.model_validate(record)
        self._layer()[key] = record
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

    def _held(self) -> dict[str, Any]:
        """The records that this world holds itself, ``_DELETED`` for those that it has removed."""
        return {**self._view._kept.get(self._name, {}), **(self._view._pending or {}).get(self._name, {})}

    def _added(self) -> dict[str, Any]:
        """The records that only this world has."""
        return {k: r for k, r in self._held().items() if k not in self._originals and r is not _DELETED}

    def __len__(self) -> int:
        removed = sum(r is _DELETED and k in self._originals for k, r in self._held().items())
        return len(self._originals) - removed + len(self._added())

    def items(self) -> ItemsView[str, Any]:
        """(key, record) of every record. Of a table that is read on access they are as ``scan`` gives them."""
        return LazyTable.items(self) if isinstance(self._originals, LazyTable) else super().items()  # type: ignore[arg-type]

    def values(self) -> ValuesView[Any]:
        """Every record; see ``items``."""
        return LazyTable.values(self) if isinstance(self._originals, LazyTable) else super().values()  # type: ignore[arg-type]

    def where(self, /, **equal: Any) -> list[Any]:
        """This world's own copies of the records with these values in these fields, in the order of their keys.

        A table of an SQL database uses its indexes. KeyError for a column that such a table has not.
        """
        held, stored = self._held(), dict(self._found(equal))
        return [self[key] if key in held else self._take(key, stored[key]) for key in sorted(stored)]

    def reading(self) -> Mapping[str, Any]:
        """The records by their keys, for reading only and without copies; read on access where the base's are."""
        return _Reading(self) if isinstance(self._originals, LazyTable) else dict(self.scan())

    def _found(self, equal: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """(key, record) of the records with these values in these fields, without copies."""
        held = self._held()
        yield from ((key, record) for key, record in matching(self._originals, equal) if key not in held)
        for key, record in held.items():
            if record is not _DELETED and has_fields(record, equal):
                yield key, record

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


class _Reading(LazyTable):
    """A world's table for reading only."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def scan(self) -> Iterator[tuple[str, Any]]:
        return self._table.scan()

    def matching(self, equal: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """(key, record) of the records with these values in these fields."""
        return self._table._found(equal)

    def __getitem__(self, key: str) -> Any:
        return self._table.peek(key)

    def __contains__(self, key: object) -> bool:
        return key in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)
