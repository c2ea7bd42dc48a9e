"""Searches of the bank's tables by constraints on fields, and the text that tells what was found (TAU2's)."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from muarl.domains.database import View
from muarl_worlds.tau.banking.parsing import parsed

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "contains": lambda a, b: a is not None and b in a,
    "startswith": lambda a, b: a is not None and str(a).startswith(str(b)),
    "endswith": lambda a, b: a is not None and str(a).endswith(str(b)),
    "in": lambda a, b: a in b,
    "nin": lambda a, b: a not in b,
}
_TAKEN = ("db", "return_ids")


def _matches(record: Mapping[str, Any], constraints: Mapping[str, Any]) -> bool:
    """Whether all constraints (``field`` or ``field__operator``) hold; values that cannot be compared do not match."""
    for key, expected in constraints.items():
        field, operation = key.rsplit("__", 1) if "__" in key else (key, "eq")
        try:
            if not _COMPARE.get(operation, operator.eq)(record.get(field), expected):
                return False
        except (TypeError, ValueError):
            return False
    return True


def found(view: View, table: str, constraints: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(key, record) of the records that match, in order. Read only."""
    return ((key, record) for key, record in view[table].scan() if _matches(record, constraints))


def listing(table: str, rows: Iterable[tuple[str, Any]]) -> str:
    """Records as text: a number, the key, and a line for each field."""
    numbered = list(enumerate(rows, 1))
    lines = [f"Found {len(numbered)} record(s) in '{table}':\n"]
    for number, (key, record) in numbered:
        lines.append(f"{number}. Record ID: {key}")
        lines += [f"   {field}: {value}" for field, value in record.items()]
        lines.append("")
    return "\n".join(lines)


def report(view: View, table: str, constraints: Mapping[str, Any]) -> str:
    """What a search found, or that it found nothing."""
    rows = list(found(view, table, constraints))
    return listing(table, rows) if rows else f"No records found in '{table}'."


def report_of_text(view: View, table: str, constraints: str) -> str:
    """The same for constraints as JSON text, into which TAU2 pastes what it is given: quotes in it change the search,
    and the names of the search's own parameters meet Python's errors."""
    try:
        try:
            wanted = dict(parsed(constraints))
        except json.JSONDecodeError as problem:
            return f"Error: Invalid JSON: {problem}"
        for name in wanted:
            if name in _TAKEN:
                home = "tau2.domains.banking_knowledge.db_query"
                raise TypeError(f"{home}.query_db() got multiple values for keyword argument '{name}'")
        if "db_name" in wanted:
            raise TypeError("query_db() got multiple values for argument 'db_name'")
        limit = wanted.pop("limit", None)
        rows = []
        for row in found(view, table, wanted):
            rows.append(row)
            if limit is not None and len(rows) >= limit:
                break
        return listing(table, rows) if rows else f"No records found in '{table}'."
    except Exception as problem:
        return f"Error querying database: {problem}"


def nothing(text: str) -> bool:
    """Whether a report tells that nothing was found; by its words, as TAU2 decides it."""
    return "No records found" in text or "No results found" in text
