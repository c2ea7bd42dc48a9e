"""Values of JSON that anybody may have written, read as figures, intervals and mappings, or as nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LARGEST = 1e200
"""Figures beyond this, or that are not finite, are no figures: sums and axes would overflow."""


def as_figure(value: Any) -> float | None:
    """The value as a number, None if it is none that could be drawn."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -LARGEST < value < LARGEST:
        return None
    return float(value)


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def bounds(interval: Any) -> tuple[float, float] | None:
    """(low, high) of an interval, None if it is none."""
    if not isinstance(interval, Sequence) or len(interval) != 2:
        return None
    low, high = map(as_figure, interval)
    return (low, high) if low is not None and high is not None else None
