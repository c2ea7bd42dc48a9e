"""The calculator gives what Python's own evaluation gives, without evaluating anything."""

from __future__ import annotations

import random
import warnings

import pytest

from muarl_worlds.tau.calculator import ALLOWED, calculate


def by_python(expression):
    """What TAU2 does: the reference."""
    if not all(char in ALLOWED for char in expression):
        raise ValueError("Invalid characters in expression")
    return str(round(float(eval(expression, {"__builtins__": None}, {})), 2))


def outcome(function, expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(expression)
        except Exception as problem:
            return f"{type(problem).__name__}: {problem}"


CASES = [
    "", "  ", " 1", "1/0", "1.0/0", "1//0", "()", "(1)(2)", "...", "... + 1", "(*1)", "1(*2)", "1(**2)", "(1", "1)",
    "01", "1..", "1 2", "9**999", "(-8)**.5", "-2**2", "2**-1", "0**-1", "10.005", "2.675", "9" * 400, "9" * 400 + ".0",
    "9" * 5000, "(" * 150 + "1" + ")" * 150, "-" * 150 + "1", "1" + "+1" * 800, "()*2", "()+()", "0.1+0.2",
    ["1", "+", "2"], ["12"], [5], 5, None, {"1": 2}, "2+2a", "__import__",
]  # fmt: skip


@pytest.mark.parametrize("expression", CASES, ids=lambda e: repr(e)[:20])
def test_known_oddities(expression):
    assert outcome(calculate, expression) == outcome(by_python, expression)


def test_random_expressions():
    rng = random.Random(7)
    parts = ["1", "23", "4.5", "0.1", "+", "-", "*", "/", "**", "//", "(", ")", " ", "."]
    for _ in range(4000):
        expression = "".join(rng.choice(parts) for _ in range(rng.randint(1, 7)))
        if expression.count("**") < 2:
            assert outcome(calculate, expression) == outcome(by_python, expression), expression


def test_expressions_made_to_eat_the_machine_are_refused_at_once():
    for expression in ("9**9**9", "9**9**9**9", "(9**999)**999", "*".join(["9**999"] * 50), "1**9**9", "(" * 5000):
        outcome(calculate, expression)
    with pytest.raises(ValueError, match="longer than"):
        calculate("1+" * 10_000 + "1")
    with pytest.raises(OverflowError):
        calculate("9**99999999")
