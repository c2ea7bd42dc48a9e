"""Values that a user may name by mistake, or for a moment, instead of the right ones."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Mapping
from typing import Any

from muarl.domains.kit.service import Service
from muarl.language.values import normal


def another(service: Service, slot: str, goal: Mapping[str, Any], rng: random.Random) -> Any:
    """Another value that a slot of a request may have: of its list, a date soon after, an id with another digit. None
    where none is known that a user could say."""
    spec, right = service.slots[slot], goal[slot]
    kind = service.kind(spec)
    taken = {normal(value) for value in goal.values() if not isinstance(value, (Mapping, list, tuple))}
    if isinstance(right, (Mapping, list, tuple)) or not spec.weighed:
        return None
    if spec.draw is not None and spec.draw.values:
        found = [v for v in dict.fromkeys(spec.draw.values) if normal(v) not in taken]
    elif kind.choices:
        found = [v for v in kind.choices if normal(v) not in taken]
    elif spec.kind in ("date", "day_first"):
        found = [_later(str(right), days) for days in (1, 2, 3)]
        found = [day for day in found if normal(day) not in taken]
    elif kind.form:
        found = [v for v in _digits(str(right)) if re.fullmatch(kind.form, v) and normal(v) not in taken]
    else:
        found = []
    return rng.choice(found) if found else None


def misspelt(value: Any, rng: random.Random) -> Any:
    """A fact with another last digit; None for one without digits, or that is no text or number."""
    if isinstance(value, str) and (found := _digits(value)):
        return rng.choice(found)
    return None


def _later(day: str, days: int) -> str:
    return (datetime.date.fromisoformat(day) + datetime.timedelta(days=days)).isoformat()


def _digits(text: str) -> list[str]:
    """A text with each other last digit."""
    found = re.search(r"\d(?=\D*$)", text)
    if found is None:
        return []
    return [text[: found.start()] + str(n) + text[found.end() :] for n in range(10) if str(n) != found[0]]
