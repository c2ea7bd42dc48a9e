"""Regular expressions that somebody else wrote: matched within a time limit, so that none can hang an audit."""

from __future__ import annotations

from functools import lru_cache

import regex

from muarl.basics.errors import DataError

SECONDS = 2.0
"""For one match; an honest pattern takes microseconds."""


def search(pattern: str, text: str, *, ignore_case: bool = False) -> str | None:
    """The first part of ``text`` that matches, None if there is none. DataError if it takes too long."""
    match = _run(pattern, text, ignore_case, whole=False)
    return None if match is None else str(match.group())


def matches(pattern: str, text: str) -> bool:
    """Whether all of ``text`` matches. DataError if it takes too long."""
    return _run(pattern, text, False, whole=True) is not None


def problem_of(pattern: object) -> str | None:
    """What is wrong with a regular expression, None if nothing is."""
    try:
        _compiled(pattern, False)
    except (regex.error, TypeError, RecursionError, OverflowError) as problem:
        return str(problem) or type(problem).__name__
    return None


@lru_cache(maxsize=512)
def _compiled(pattern: str, ignore_case: bool) -> regex.Pattern[str]:
    return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)


def _run(pattern: str, text: str, ignore_case: bool, *, whole: bool) -> regex.Match[str] | None:
    compiled = _compiled(pattern, ignore_case)
    try:
        return (compiled.fullmatch if whole else compiled.search)(text, timeout=SECONDS)
    except TimeoutError:
        shortened = pattern if len(pattern) <= 80 else f"{pattern[:80]}..."
        raise DataError(
            f"audit rules: the pattern {shortened!r} takes longer than {SECONDS:g} s: simplify it"
        ) from None
