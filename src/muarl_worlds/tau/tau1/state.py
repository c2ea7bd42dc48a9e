"""TAU1's identity of a state: sha256 over the text of nested tuples, and an incremental digest in the same terms.

TAU1 turns every object into a tuple of (key, value) pairs sorted by key and every list into a tuple, and hashes the
result's ``str``. So 51 and 51.0 differ, and an empty list and an empty object do not.
"""

from __future__ import annotations

import hashlib
from typing import Any

from muarl.domains.database import Database, View
from muarl.domains.frozen import _DELETED

_MODULUS = 1 << 256


def state_text(value: Any) -> str:
    """The ``str`` of a JSON value in TAU1's hashable form."""
    if isinstance(value, dict):
        return _tuple([f"({k!r}, {state_text(v)})" for k, v in sorted(value.items(), key=_key)])
    if isinstance(value, list):
        return _tuple([state_text(v) for v in value])
    return repr(value)


def _key(item: tuple[str, Any]) -> str:
    return item[0]


def _tuple(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _share(table: str, key: str, text: str) -> int:
    """One record's share in the digest."""
    return int.from_bytes(hashlib.sha256(f"{table!r}{key!r}{text}".encode()).digest(), "big")


class StateTexts:
    """The texts of a base's records, made when first needed and kept, so that a world pays for what it touched."""

    __slots__ = ("_digest", "_texts", "base")

    def __init__(self, base: Database) -> None:
        self.base = base
        self._texts: dict[str, dict[str, str]] = {name: {} for name in base.tables}
        self._digest: int | None = None

    def record(self, table: str, key: str) -> str:
        """The text of one of the base's records."""
        texts = self._texts[table]
        text = texts.get(key)
        if text is None:
            text = texts[key] = state_text(self.base.tables[table][key])
        return text

    def full_hash(self, view: View) -> str:
        """TAU1's hash of the whole state: 64 hex digits."""
        touched, tables = view._touched(), []
        for table in sorted(self.base.tables):
            own = touched.get(table, {})
            rows = []
            for key in sorted({**self.base.tables[table], **own}):
                record = own.get(key)
                if record is not _DELETED:
                    text = state_text(record) if key in own else self.record(table, key)
                    rows.append(f"({key!r}, {text})")
            tables.append(f"({table!r}, {_tuple(rows)})")
        return hashlib.sha256(_tuple(tables).encode()).hexdigest()

    def digest(self, view: View) -> str:
        """64 hex digits, equal if and only if TAU1's hashes are; costs the touched records."""
        if self._digest is None:
            tables = self.base.tables.items()
            self._digest = sum(_share(t, k, self.record(t, k)) for t, records in tables for k in records)
        total = self._digest
        for table, records in view._touched().items():
            originals = self.base.tables[table]
            for key, record in records.items():
                if record is not _DELETED:
                    text = state_text(record)
                    if key in originals and text == self.record(table, key):
                        continue
                    total += _share(table, key, text)
                if key in originals:
                    total -= _share(table, key, self.record(table, key))
        return f"{total % _MODULUS:064x}"
