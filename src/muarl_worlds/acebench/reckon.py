"""Sums inside an argument, such as ``'costs ' + str(2 * 99.0)``, worked out without ever running code.

ACEBench hands them to Python's ``eval`` while it reads a message. Here constants, containers, operators, f-strings, and
a few built-in functions and methods of texts are worked out, within bounds of size; anything else is refused, as names
are upstream.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

MAX_BITS = 20_000
"""Longer whole numbers are refused, between two steps, too. (Python writes none of more than 4300 digits.)"""

MAX_SIZE = 1_000_000
"""What all steps in a message may make together: characters, and items of containers."""

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.BitAnd: operator.and_,
}  # fmt: skip
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs, "bool": bool, "float": float, "int": int, "len": len, "max": max, "min": min, "repr": repr,
    "round": round, "str": str,
}  # fmt: skip
_METHODS = ("format", "join", "lower", "replace", "strip", "upper")
_CONVERSIONS: Mapping[int, Callable[[Any], str]] = {ord("r"): repr, ord("s"): str, ord("a"): ascii}
_WIDE = re.compile(r"\d{5}|\*")


class UnsupportedExpression(ValueError):
    """What is not worked out."""


class Reckoner:
    """Works out the sums of one message. ``left``: what may still be made, see MAX_SIZE."""

    def __init__(self, left: int = MAX_SIZE) -> None:
        self.left = left

    def value(self, node: ast.expr) -> Any:
        """The value of an expression. UnsupportedExpression, or whatever Python raises for its operands."""
        match node:
            case ast.Constant():
                return node.value
            case ast.BinOp():
                return self._binary(node.op, self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                return self._made(_UNARY[type(node.op)](self.value(node.operand)))
            case ast.List():
                return self._made([self.value(item) for item in node.elts])
            case ast.Tuple():
                return self._made(tuple(self.value(item) for item in node.elts))
            case ast.Set():
                return self._made({self.value(item) for item in node.elts})
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                return self._made({self.value(_given(key)): self.value(value) for key, value in pairs})
            case ast.JoinedStr():
                return self._made("".join([str(self.value(part)) for part in node.values]))
            case ast.FormattedValue():
                return self._formatted(node)
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in _FUNCTIONS:
                return self._made(_FUNCTIONS[name](*[self.value(given) for given in node.args]))
            case ast.Call(func=ast.Attribute(value=owner, attr=name), keywords=[]) if name in _METHODS:
                return self._method(self.value(owner), name, [self.value(given) for given in node.args])
        raise UnsupportedExpression(type(node).__name__)

    def _binary(self, kind: ast.operator, left: Any, right: Any) -> Any:
        whole = isinstance(left, int) and isinstance(right, int)
        if isinstance(kind, ast.Pow) and whole and right > 0:
            self._expect(left.bit_length() * right, MAX_BITS)
        if isinstance(kind, ast.LShift) and whole:
            self._expect(right, MAX_BITS)
        if isinstance(kind, ast.Mult):
            for many, times in ((left, right), (right, left)):
                if not isinstance(many, int) and isinstance(times, int):
                    self._expect(self._size(many) * times, self.left)
        if isinstance(kind, ast.Mod) and isinstance(left, (str, bytes)):
            text = left if isinstance(left, str) else left.decode("latin-1")
            if _WIDE.search(text):
                raise UnsupportedExpression("a format too wide")
            self._expect(text.count("%") * self._size(right), self.left)
        if type(kind) not in _BINARY:
            raise UnsupportedExpression(type(kind).__name__)
        return self._made(_BINARY[type(kind)](left, right))

    def _formatted(self, node: ast.FormattedValue) -> Any:
        value = self.value(node.value)
        if node.conversion in _CONVERSIONS:
            value = _CONVERSIONS[node.conversion](value)
        wanted = "" if node.format_spec is None else str(self.value(node.format_spec))
        if _WIDE.search(wanted):
            raise UnsupportedExpression("a format too wide")
        return self._made(format(value, wanted))

    def _method(self, text: Any, name: str, given: list[Any]) -> Any:
        """A method of a text. Formats may not look into their values, nor be wide."""
        if not isinstance(text, str):
            raise UnsupportedExpression(f"{name} of what is no text")
        pieces = len(text) + 1
        if name == "format":
            for _, field, wanted, _ in Formatter().parse(text):
                if not (field or "0").isdigit() or _WIDE.search(wanted or "") or "{" in (wanted or ""):
                    raise UnsupportedExpression("a format like this")
            pieces = text.count("{")
        if name == "join":
            self._expect(len(text) * sum(self._size(item) for item in given), self.left)
        elif given:
            self._expect(pieces * max(self._size(item) for item in given), self.left)
        return self._made(getattr(text, name)(*given))

    def _made(self, value: Any) -> Any:
        """A value that a step has made, which counts towards what may be made."""
        if isinstance(value, int):
            self._expect(value.bit_length(), MAX_BITS)
        self.left -= self._size(value)
        return value

    def _expect(self, size: int, limit: int) -> None:
        if size > limit:
            raise UnsupportedExpression("a value too large")

    def _size(self, value: Any) -> int:
        """How large a value is when it is written. UnsupportedExpression if it exceeds what may still be made."""
        size, rest = 0, [value]
        while rest:
            one = rest.pop()
            if isinstance(one, (str, bytes)):
                size += len(one)
            elif isinstance(one, int):
                size += one.bit_length() // 32
            elif isinstance(one, dict):
                rest += [*one, *one.values()]
            elif isinstance(one, (list, tuple, set, frozenset)):
                self._expect(len(one), self.left)
                rest += one
            size += 1
            self._expect(size, self.left)
        return size


def _given(node: ast.expr | None) -> ast.expr:
    if node is None:
        raise UnsupportedExpression("**")
    return node
