"""The calculator tool without ``eval``: an expression's syntax tree, walked by hand; and sums that are the same on
every interpreter.

Results and error texts are those that Python's own evaluation gives (TAU2 evaluates the text as Python); only numbers
too large to become a float are refused before they are computed.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Iterable
from typing import Any

ALLOWED = "0123456789+-*/(). "
MAX_LENGTH = 10_000
MAX_DEPTH = 200
MAX_BITS = 20_000

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def calculate(expression: Any) -> str:
    """The value of an arithmetic expression, rounded to two places, as text.

    Raises what Python raises: ValueError for characters other than digits, ``+-*/(). ``, SyntaxError,
    ZeroDivisionError, TypeError for something that is no number, OverflowError for what no float can hold.
    """
    if not all(char in ALLOWED for char in expression):
        raise ValueError("Invalid characters in expression")
    if not isinstance(expression, str):
        raise TypeError("eval() arg 1 must be a string, bytes or code object")
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"Expression is longer than {MAX_LENGTH} characters")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = compile(expression.lstrip(" \t"), "<string>", "eval", ast.PyCF_ONLY_AST)
        except SyntaxError as problem:  # Python 3.13 says more than 3.12, whose texts count
            raise SyntaxError(str(problem).replace("Invalid star expression", "invalid syntax")) from None
    return str(round(float(_value(tree.body, 0)), 2))  # type: ignore[attr-defined]


def _value(node: ast.expr, depth: int) -> Any:
    """The value of a subtree. Chains such as 1+1+1 and --1 are walked in loops, so only brackets add depth."""
    if depth > MAX_DEPTH:
        raise ValueError("Expression is nested too deeply")
    pending: list[ast.BinOp | ast.UnaryOp] = []
    while isinstance(node, (ast.BinOp, ast.UnaryOp)):
        pending.append(node)
        node = node.left if isinstance(node, ast.BinOp) else node.operand
    value = _atom(node, depth)
    while pending:
        step = pending.pop()
        if isinstance(step, ast.UnaryOp):
            value = _UNARY[type(step.op)](value)
        else:
            value = _binary(step.op, value, _value(step.right, depth + 1))
    return value


def _atom(node: ast.expr, depth: int) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(_value(item, depth + 1) for item in node.elts)
    if isinstance(node, ast.Call):  # "(1)(2)": no value here can be called, so this only ever raises
        function = _value(node.func, depth + 1)
        for item in node.args:
            if isinstance(item, ast.Starred):
                return function(*_value(item.value, depth + 1))
        for keyword in node.keywords:
            return function(**_value(keyword.value, depth + 1))
        return function(*[_value(item, depth + 1) for item in node.args])
    raise SyntaxError("invalid syntax")


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Pow):
        return _power(left, right)
    if isinstance(op, ast.Mult) and _bits(left) + _bits(right) > MAX_BITS:
        raise OverflowError("int too large to convert to float")
    return _BINARY[type(op)](left, right)


def _bits(value: Any) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _power(base: Any, exponent: Any) -> Any:
    """``base ** exponent``, refusing integers far beyond a float's range before they eat the machine."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and _bits(base) * exponent > MAX_BITS:
        if base in (0, 1, -1):
            return base if base != -1 or exponent % 2 else 1
        raise OverflowError("int too large to convert to float")
    return base**exponent


def compensated_sum(values: Iterable[float]) -> float:
    """``sum(values)`` as Python 3.12 and later compute it (Neumaier's compensation), to the last bit on 3.11 too.

    Integers are added exactly until the first float comes, as there; an empty sum is the integer 0.
    """
    rest = iter(values)
    total: float = 0
    for value in rest:
        total += value
        if isinstance(value, float):
            break
    lost = 0.0
    for value in rest:
        before, total = total, total + value
        if isinstance(value, float):
            larger, smaller = (before, value) if abs(before) >= abs(value) else (value, before)
            lost += (larger - total) + smaller
    return total + lost if lost and math.isfinite(lost) else total
