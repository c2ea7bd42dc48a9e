"""Whether a figure that an agent must tell follows from what the gold actions show, as far as simple sums go."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from muarl_tools.checks.tasks.checked_task import CheckedTask, leaves

NUMBER = re.compile(r"-?\$?\d[\d,]*(?:\.\d+)?")
LARGEST_COUNT = 100
MOST = 60
"""Sums that are combined two by two."""


def derivable(checked: CheckedTask, info: str) -> bool:
    """Whether a figure stands in a gold action, its result or the user's records; or is a count of what stands there,
    a sum of one field over what stands together there, or a sum or difference of two of these."""
    records = [_parsed(s.result) for s in checked.steps] + [dict(s.action.arguments) for s in checked.steps]
    records += checked.own_records
    plain = {str(v) for record in records for v in leaves(record)}
    if info.strip() in plain or any(info.strip() in text for text in plain if len(text) > 40):
        return True
    wanted = _value(info)
    single = {round(float(v), 2) for v in _numbers(records)}
    summed = {round(v, 2) for record in records for v in _sums(record)} | set(_sums(records))
    if _near(wanted, single | summed):
        return True
    if wanted.is_integer() and 0 < wanted < LARGEST_COUNT and int(wanted) in _counts(records):
        return True
    used = sorted(set(_numbers([dict(s.action.arguments) for s in checked.steps])) | summed)[:MOST]
    cents = not wanted.is_integer()
    others = single | summed if cents else set(used)
    return any(_near(wanted - v, others) or _near(wanted + v, others) for v in (single | summed if cents else used))


def _near(wanted: float, known: set[float]) -> bool:
    return any(round(wanted + cent, 2) in known for cent in (0, 0.01, -0.01)) or round(-wanted, 2) in known


def _value(text: str) -> float:
    return round(float(text.strip().replace("$", "").replace(",", "")), 2)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _numbers(value: Any) -> Iterator[float]:
    for leaf in leaves(value):
        if isinstance(leaf, bool):
            continue
        if isinstance(leaf, (int, float)):
            yield round(float(leaf), 2)
        elif isinstance(leaf, str) and not re.search(r"[A-Za-z_#-]\d|\d[A-Za-z_-]", leaf):
            yield from (_value(n) for n in NUMBER.findall(leaf) if len(n) < 12)


def _sums(value: Any) -> Iterator[float]:
    """For each place of nested records, the sum of each field of numbers over all that stands below it; and the same
    by kind where what stands there says its ``source``."""
    if isinstance(value, (Mapping, list, tuple)):
        totals: dict[tuple[str, str], float] = defaultdict(float)
        for name, kind, number in _fields(value, ""):
            totals[name, ""] += number
            if kind:
                totals[name, kind] += number
        yield from (round(total, 2) for total in totals.values())
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _sums(inner)


def _fields(value: Any, kind: str) -> Iterator[tuple[str, str, float]]:
    if isinstance(value, Mapping):
        kind = str(value.get("source") or kind)
        for name, inner in value.items():
            if isinstance(inner, (int, float)) and not isinstance(inner, bool):
                yield str(name), kind, float(inner)
            else:
                yield from _fields(inner, kind)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _fields(inner, kind)


def _counts(value: Any) -> set[int]:
    """How many things stand together, all of them and those that are available."""
    found: set[int] = set()
    if isinstance(value, (Mapping, list, tuple)):
        inner = list(value.values()) if isinstance(value, Mapping) else list(value)
        found.add(len(inner))
        found.add(sum(isinstance(v, Mapping) and v.get("available") is True for v in inner))
        for one in inner:
            found |= _counts(one)
    return found
