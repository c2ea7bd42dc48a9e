"""The bank's tables, as TAU2 lays them out, and what a task lays over them.

TAU2 keeps each table as ``{"data": records, "notes": text}``. Here the records are the tables, and the notes, which no
tool reads but the hash covers, are a table of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.database import Database, View
from muarl.domains.frozen import _DELETED, _MISSING, canonical

TABLES = (
    "users", "accounts", "debit_cards", "referrals", "credit_card_applications", "user_discoverable_tools",
    "user_discoverable_tool_calls", "verification_history", "credit_card_transaction_history", "cash_back_disputes",
    "bank_account_transaction_history", "credit_card_accounts", "agent_discoverable_tools", "task_config",
    "human_transfer_requests", "transaction_disputes", "credit_card_orders", "debit_card_orders",
    "credit_card_closure_reasons", "credit_card_account_flags", "credit_limit_increase_requests", "payment_history",
    "debit_card_disputes",
)  # fmt: skip
"""TAU2's tables; each is there, if only empty."""

NOTES = "notes"


def banking_database(tables: Mapping[str, Any]) -> Database:
    """The database from TAU2's tables, each with "data" and "notes". DataError says what is malformed."""
    if not isinstance(tables, Mapping):
        raise DataError("banking database: it must be an object of tables")
    unknown = [name for name in tables if name not in TABLES]
    if unknown:
        raise DataError(f"banking database: there is no table {unknown[0]!r}")
    records: dict[str, dict[str, Any]] = {name: {} for name in TABLES}
    notes = dict.fromkeys(TABLES, "")
    for name, table in tables.items():
        records[name], notes[name] = _checked(name, table)
    return Database({**records, NOTES: notes})


def _checked(name: str, table: Any) -> tuple[dict[str, Any], str]:
    if not isinstance(table, Mapping):
        raise DataError(f"banking database: {name} must be an object, not {type(table).__name__}")
    data, notes = table.get("data", {}), table.get("notes", "")
    if not isinstance(data, Mapping) or not all(isinstance(r, Mapping) for r in data.values()):
        raise DataError(f"banking database: {name}.data must map keys to records")
    if not isinstance(notes, str):
        raise DataError(f"banking database: {name}.notes must be a string, not {type(notes).__name__}")
    return dict(data), notes


def laid_over(base: Database, partial: Mapping[str, Any]) -> Database:
    """A base with a task's partial tables over it: objects are merged key by key at every depth, all else replaced.

    DataError names what is malformed.
    """
    changes: dict[str, dict[str, Any]] = {}
    for name, table in partial.items():
        if name not in TABLES:
            raise DataError(f"banking database: there is no table {name!r}")
        data, _ = _checked(name, table)
        known = base.tables[name]
        changes[name] = {key: _merged(known.get(key), record) for key, record in data.items()}
        if "notes" in table:
            changes.setdefault(NOTES, {})[name] = table["notes"]
    return base.derive(changes)


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, Mapping):
        return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return new


class BankView(View):
    """A world's database, whose hash is that of TAU2's layout."""

    __slots__ = ()

    def full_hash(self) -> str:
        """TAU2's hash: sha256 over the canonical JSON of all tables with their notes."""
        base, touched = self._base, self._touched()
        parts = []
        for table in sorted(TABLES):
            own = touched.get(table, {})
            rows = []
            for key in sorted({**base.tables[table], **own}):
                record = own.get(key, _MISSING)
                if record is not _DELETED:
                    text = base.record_text(table, key) if record is _MISSING else canonical(record)
                    rows.append(f"{json.dumps(key)}: {text}")
            notes = json.dumps(base.tables[NOTES][table])
            parts.append(f'{json.dumps(table)}: {{"data": {{{", ".join(rows)}}}, "notes": {notes}}}')
        return hashlib.sha256(f"{{{', '.join(parts)}}}".encode()).hexdigest()
