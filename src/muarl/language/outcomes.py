"""Whether people say that something works."""

from __future__ import annotations

import re

_WORKS = re.compile(r"\b(it works|that works|works (now|again)|fixed it|it is (working|solved|fixed))\b", re.IGNORECASE)
_FAILS = re.compile(r"\b(still|does not work|did not help|not working|doesn't work|didn't help)\b", re.IGNORECASE)


def tells_works(text: str) -> bool | None:
    """Whether a user says that it works (again), or that it does not; None if neither."""
    return False if _FAILS.search(text) else True if _WORKS.search(text) else None
