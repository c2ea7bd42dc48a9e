"""What the values of SQL columns become in records, and the text that a primary key becomes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from muarl.basics.untrusted import parse_json
from muarl.domains.frozen import FrozenDict, freeze

Kind = Literal["plain", "boolean", "decimal", "json"]

_KINDS: tuple[tuple[Kind, str], ...] = (
    ("boolean", r"BOOL"),
    ("json", r"JSONB?\b"),
    ("decimal", r"(?:DEC(?:IMAL)?|NUMERIC)\s*\(\s*\d+\s*,\s*[1-9]\d*\s*\)"),
)
"""Declared types whose values are read as something else than SQLite keeps them."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    declared: str = ""
    """Its type as the schema writes it."""

    @property
    def kind(self) -> Kind:
        return next((k for k, p in _KINDS if re.match(p, self.declared.strip(), re.IGNORECASE)), "plain")

    @property
    def untyped(self) -> bool:
        """Whether SQLite compares it with a text without looking what the text means."""
        declared = self.declared.upper()
        return not declared or ("BLOB" in declared and "INT" not in declared)


def value_of(kind: Kind, raw: Any) -> Any:
    """A value of SQLite as a JSON value. ValueError, half a sentence, for one that JSON has no form for."""
    if isinstance(raw, bytes):
        raw = raw.hex() if kind != "json" else raw.decode()
    if kind == "json" and isinstance(raw, str):
        try:
            return freeze(parse_json(raw))
        except ValueError as problem:
            raise ValueError(f"is declared as JSON and is none: {problem}") from None
    if kind == "boolean" and raw in (0, 1):
        return bool(raw)
    if kind == "decimal" and isinstance(raw, int):
        return float(raw)
    if isinstance(raw, float) and not math.isfinite(raw):
        raise ValueError(f"is {raw}, which JSON has no form for")
    return raw


def record_of(columns: Sequence[tuple[str, Kind]], row: Sequence[Any]) -> FrozenDict:
    """A row as a record. ValueError names the column of a value that JSON has no form for."""
    out: dict[str, Any] = {}
    for (name, kind), raw in zip(columns, row, strict=True):
        if raw is None or (kind == "plain" and (type(raw) is str or type(raw) is int)):
            out[name] = raw
        else:
            try:
                out[name] = value_of(kind, raw)
            except ValueError as problem:
                raise ValueError(f"column {name!r} {problem}") from None
    return FrozenDict(out)


def key_of(*parts: Any) -> str:
    """The text by which a record with this primary key is known: the value itself, bytes in hexadecimal digits. Those
    of several columns are joined by "/"; a "/" within one of them is then "%2F", and "%" is "%25"."""
    texts = [part.hex() if isinstance(part, bytes) else str(part) for part in parts]
    return texts[0] if len(texts) == 1 else "/".join(t.replace("%", "%25").replace("/", "%2F") for t in texts)


def candidates(key: str, columns: Sequence[Column]) -> list[list[Any]] | None:
    """For each column of a primary key, the values that may stand behind its part of a text; None if none can."""
    parts = [key] if len(columns) == 1 else [unquote(part) for part in key.split("/")]
    if len(parts) != len(columns):
        return None
    return [_values(part, column) for part, column in zip(parts, columns, strict=True)]


def _values(text: str, column: Column) -> list[Any]:
    values: list[Any] = [text]
    with suppress(ValueError):
        values.append(bytes.fromhex(text))
    if column.untyped:
        for kind in (int, float):
            with suppress(ValueError):
                number = kind(text)
                if not isinstance(number, int) or number.bit_length() < 64:
                    values.append(number)
    return values
