"""Patterns from outside: those that backtrack without end are an error, the others match as Python's do."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.basics import patterns
from muarl.basics.errors import DataError


def test_the_limit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.05)
    with pytest.raises(DataError, match=r"takes longer than 0.05 s: simplify it"):
        patterns.search(r"^(a|aa)+$", "a" * 60 + "!")


@given(
    st.sampled_from([r"#?\w+", r"\bref(?:und|er)\b", r"[A-Z]{2}-\d+", r"\$?\d+(?:\.\d\d)?"]),
    st.text(st.characters(max_codepoint=0x7E), max_size=60),
)
def test_others_match_as_pythons_do(pattern: str, text: str) -> None:
    theirs = re.search(pattern, text, re.IGNORECASE)
    assert patterns.search(pattern, text, ignore_case=True) == (theirs.group() if theirs else None)
    assert patterns.matches(pattern, text) == (re.fullmatch(pattern, text) is not None)


def test_what_is_no_expression_is_told() -> None:
    assert patterns.problem_of(r"\d+") is None
    assert patterns.problem_of("(") and patterns.problem_of(3)
