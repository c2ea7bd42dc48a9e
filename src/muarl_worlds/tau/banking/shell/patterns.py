"""Regular expressions as grep and sed write them, for the ``regex`` package, which can be stopped."""

from __future__ import annotations

import re
import time
from functools import lru_cache

import regex

from muarl_worlds.tau.banking.shell.files import ShellError

SECONDS = 5.0
"""For all matching of one command line; an honest one takes milliseconds."""
LONGEST = 1000
_COUNT = re.compile(r"\{(\d*)(?:,(\d*))?\}")
MOST_COPIES = 5000
"""How often counted repeats may copy a piece of a pattern, multiplied: compiling takes time in proportion."""


class Clock:
    """What is left of a command line's time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds, above 0. TimeoutError if there are none."""
        self.check()
        return max(self._until - time.monotonic(), 1e-6)

    def check(self) -> None:
        """TimeoutError if nothing is left."""
        if time.monotonic() >= self._until:
            raise TimeoutError


def compiled(pattern: str, kind: str, *, ignore_case: bool = False, whole: str = "") -> regex.Pattern[str]:
    """A pattern of ``kind`` "basic", "extended", "perl" or "fixed". ``whole``: "w" matches whole words, "x" whole
    lines. ShellError if it is none, or so large that compiling it takes long."""
    try:
        return _compiled(pattern, kind, ignore_case, whole)
    except (regex.error, RecursionError, OverflowError) as problem:
        raise ShellError(f"Invalid regular expression: {problem}", 2) from None


@lru_cache(maxsize=256)
def _compiled(pattern: str, kind: str, ignore_case: bool, whole: str) -> regex.Pattern[str]:
    alternatives = pattern.split("\n") if kind != "perl" else [pattern]
    if kind == "fixed":
        made = "|".join(regex.escape(one) for one in alternatives)
    elif kind == "perl":
        made = pattern
    else:
        made = "|".join(translated(one, extended=kind == "extended") for one in alternatives)
    copies = 1
    for low, high in _COUNT.findall(made):
        copies *= max(1, int(low or 0), int(high or 0))
    if len(made) > LONGEST or copies > MOST_COPIES:
        raise ShellError("Regular expression too big", 2)
    if whole == "w":
        made = rf"(?<!\w)(?:{made})(?!\w)"
    elif whole == "x":
        made = rf"^(?:{made})$"
    return regex.compile(made, (regex.IGNORECASE if ignore_case else 0) | regex.MULTILINE)


def translated(pattern: str, *, extended: bool) -> str:
    """A POSIX regular expression (with GNU's ``\\w``, ``\\b``, ``\\<``, ``\\+`` and so on) in Python's syntax."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        c = pattern[at]
        if c == "[":
            piece, at = _bracket(pattern, at)
            out.append(piece)
            continue
        if c == "\\":
            escaped = pattern[at + 1 : at + 2]
            at += 2
            if escaped in ("<", ">"):
                out.append(r"\b(?=\w)" if escaped == "<" else r"\b(?<=\w)")
            elif (escaped and escaped in "wWsSbB") or (escaped.isdigit() and escaped != "0"):
                out.append("\\" + escaped)
            elif not extended and escaped and escaped in "(){}|+?":
                out.append(_operator(pattern, at - 1, escaped))
            else:
                out.append(regex.escape(escaped) if escaped else r"\\")
            continue
        first = not out or out[-1] in ("(", "|")
        if c == "*" and first:
            out.append(r"\*")
        elif c in "(){}|+?":
            out.append(_operator(pattern, at, c) if extended else "\\" + c)
        elif (c == "^" and not extended and not first) or (c == "$" and not extended and not _ends(pattern, at)):
            out.append("\\" + c)
        else:
            out.append(c if c in "*.^$" else regex.escape(c, special_only=True))
        at += 1
    return "".join(out)


def _ends(pattern: str, at: int) -> bool:
    return at + 1 == len(pattern) or pattern.startswith(("\\)", "\\|"), at + 1)


def _operator(pattern: str, at: int, c: str) -> str:
    """An operator, but that a brace which begins no count stands for itself."""
    if c == "{" and not re.match(r"\{\d*(,\d*)?\\?\}", pattern[at:]):
        return r"\{"
    return c


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """A bracket expression: within it only ``]``, ``^``, ``-`` and classes such as ``[:alpha:]`` mean anything."""
    start = at + 1
    negated = pattern[start : start + 1] == "^"
    start += negated
    end = start
    pieces: list[str] = []
    while end < len(pattern) and (pattern[end] != "]" or end == start):
        named = re.match(r"\[:\w+:\]", pattern[end:])
        if named is not None:
            pieces.append(named.group())
            end += named.end()
        else:
            c = pattern[end]
            pieces.append("\\" + c if c in "\\[]^&~|" else c)
            end += 1
    if end >= len(pattern):
        raise ShellError("Unmatched [, [^, [:, [., or [=", 2)
    return f"[{'^' if negated else ''}{''.join(pieces)}]", end + 1
