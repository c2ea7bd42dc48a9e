"""Expressions that a model may write where Python's ``eval`` would be asked: read from the syntax tree, with bounds.

Literals, containers, arithmetic, comparisons, subscripts, f-strings, a few pure built-in functions and methods. The
results and the texts of errors are Python's. Whatever else Python could do there (comprehensions, lambdas, names of
modules, attributes) is an error, and so is what would take unbounded time or memory.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from muarl_worlds.bfcl.syntax import UnsupportedSyntax

MAX_DEPTH = 60
"""How deep an expression may be nested."""

MAX_BITS = 100_000
"""How large a whole number may get."""

MAX_WEIGHT = 2_000_000
"""How much all intermediate results of one expression may weigh together (see ``weight``)."""

_WIDE = re.compile(r"\d{5,}|\*")
"""In a format: a width or precision that is large, or taken from an argument."""


def weight(value: Any, limit: int = MAX_WEIGHT) -> int:
    """About how many characters a value takes in writing; counting stops beyond ``limit``."""
    total, waiting = 0, [value]
    while waiting and total <= limit:
        item = waiting.pop()
        if isinstance(item, (str, bytes)):
            total += len(item)
        elif isinstance(item, int):
            total += item.bit_length() // 3
        elif isinstance(item, Mapping):
            waiting += item.keys()
            waiting += item.values()
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting += item
        total += 2
    return total


def _check_bits(bits: int) -> None:
    if bits > MAX_BITS:
        raise UnsupportedSyntax("the number is too large")


def _bits(value: Any) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        _check_bits(_bits(base) * max(exponent, 0) if abs(base) > 1 else 0)
    return base**exponent


def _shift_left(value: Any, by: Any) -> Any:
    if isinstance(value, int) and isinstance(by, int) and value:
        _check_bits(_bits(value) + by)
    return value << by


def _times(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(_bits(left) + _bits(right))
    for many, count in ((left, right), (right, left)):
        if isinstance(many, (str, bytes, list, tuple)) and isinstance(count, int) and count > 1:
            if len(many) and weight(many) * count > MAX_WEIGHT:
                raise UnsupportedSyntax("the result is too long")
    return left * right


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, (str, bytes)) and _WIDE.search(left if isinstance(left, str) else left.decode("latin-1")):
        raise UnsupportedSyntax("the format is too wide")
    return left % right


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: _times, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: _modulo, ast.Pow: _power, ast.LShift: _shift_left,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}  # fmt: skip

_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert
}  # fmt: skip

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: operator.contains(b, a), ast.NotIn: lambda a, b: not operator.contains(b, a),
}  # fmt: skip


def _sum(values: Any, /, start: Any = 0) -> Any:
    """Python 3.11's: from left to right, without the compensation that 3.12 has for floats."""
    if isinstance(start, (str, bytes)):
        raise TypeError("sum() can't sum strings [use ''.join(seq) instead]")
    for value in values:
        if not isinstance(value, (int, float, complex)):
            raise UnsupportedSyntax("sum: only numbers are added here")
        start = start + value
    return start


def _round(number: Any, ndigits: Any = None) -> Any:
    if isinstance(ndigits, int) and abs(ndigits) > 1000:
        raise UnsupportedSyntax("round: too many digits")
    return round(number, ndigits)


def _pow(base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is not None:
        raise UnsupportedSyntax("pow: a modulus cannot be used here")
    return _power(base, exp)


def _print(*values: Any, **options: Any) -> None:
    """Nothing is printed."""
    unknown = next((name for name in options if name not in ("sep", "end", "file", "flush")), None)
    if unknown is not None:
        raise TypeError(f"'{unknown}' is an invalid keyword argument for print()")


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict, "tuple": tuple, "set": set,
    "len": len, "abs": abs, "round": _round, "min": min, "max": max, "sorted": sorted, "sum": _sum,
    "any": any, "all": all, "repr": repr, "ord": ord, "chr": chr, "hex": hex, "bin": bin, "oct": oct, "divmod": divmod,
    "pow": _pow, "print": _print,
}  # fmt: skip
"""The built-in functions that are there: none has an effect."""

METHODS: Mapping[type[Any], frozenset[str]] = {
    str: frozenset(
        [
            "capitalize",
            "count",
            "endswith",
            "find",
            "index",
            "isdigit",
            "islower",
            "isupper",
            "join",
            "lower",
            "lstrip",
            "replace",
            "rstrip",
            "split",
            "splitlines",
            "startswith",
            "strip",
            "title",
            "upper",
        ]
    ),
    dict: frozenset(("get", "items", "keys", "values")),
    list: frozenset(("count", "index")),
    tuple: frozenset(("count", "index")),
}
"""The methods that are there, by the exact type of the object: none changes it."""


class ExpressionReader:
    """Reads one expression. Subclasses say what names and calls of their own mean."""

    def __init__(self) -> None:
        self._left = MAX_WEIGHT
        self._outermost = False

    def read(self, node: ast.expr, depth: int = 0) -> Any:
        """The value of an expression. Raises what Python would, or UnsupportedSyntax."""
        if depth > MAX_DEPTH:
            raise UnsupportedSyntax("the expression is too deeply nested")
        handler = self._HANDLERS.get(type(node))
        if handler is None:
            raise UnsupportedSyntax("an expression of this kind cannot be used here")
        return handler(self, node, depth + 1)

    def name(self, identifier: str) -> Any:
        """What a name stands for. NameError if for nothing."""
        if identifier in FUNCTIONS:
            return FUNCTIONS[identifier]
        raise NameError(f"name '{identifier}' is not defined")

    def attribute(self, value: Any, attribute: str) -> Any:
        """An attribute of a value, which can only be one of METHODS. AttributeError if it is none."""
        if attribute in METHODS.get(type(value), ()):
            return getattr(value, attribute)
        raise AttributeError(f"'{type(value).__name__}' object has no attribute '{attribute}'")

    def constant(self, value: Any) -> Any:
        """A literal's value."""
        return value

    def call(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A call of what ``name`` or ``attribute`` gave."""
        known = any(function is one for one in FUNCTIONS.values())
        bound = type(getattr(function, "__self__", None))
        if not known and getattr(function, "__name__", None) not in METHODS.get(bound, ()):
            raise TypeError(f"'{type(function).__name__}' object is not callable")
        text = function.__self__ if bound is str else None
        if text is not None and function.__name__ in ("join", "replace"):
            longest = max((len(a) for a in args if isinstance(a, (str, list, tuple))), default=0)
            if (len(text) + 1) * (longest + 1) > MAX_WEIGHT:
                raise UnsupportedSyntax("the result is too long")
        return self.spent(function(*args, **kwargs))

    def described(self, function: Any) -> str:
        """A function as Python names it in errors about the packing of its arguments."""
        name = getattr(function, "__name__", None)
        return f"{type(function).__name__} object" if name is None else f"{name.lstrip('_')}()"

    def spent(self, value: Any) -> Any:
        """The value, its weight counted. UnsupportedSyntax if all together is too much."""
        self._left -= weight(value, self._left)
        if self._left < 0:
            raise UnsupportedSyntax("the expression is too long")
        return value

    def _constant(self, node: ast.Constant, depth: int) -> Any:
        return self.constant(node.value)

    def _name(self, node: ast.Name, depth: int) -> Any:
        return self.name(node.id)

    def _attribute(self, node: ast.Attribute, depth: int) -> Any:
        return self.attribute(self.read(node.value, depth), node.attr)

    def _unary(self, node: ast.UnaryOp, depth: int) -> Any:
        return _UNARY[type(node.op)](_plain(self.read(node.operand, depth)))

    def _binary(self, node: ast.BinOp, depth: int) -> Any:
        left, right = self.read(node.left, depth), self.read(node.right, depth)
        return self.spent(_BINARY[type(node.op)](_plain(left), _plain(right)))

    def _boolean(self, node: ast.BoolOp, depth: int) -> Any:
        wanted = isinstance(node.op, ast.Or)
        value = None
        for part in node.values:
            value = self.read(part, depth)
            if bool(_plain(value)) is wanted:
                break
        return value

    def _compare(self, node: ast.Compare, depth: int) -> Any:
        left, result = _plain(self.read(node.left, depth)), None
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = _plain(self.read(part, depth))
            result = _COMPARED[type(op)](left, right)
            if not result:
                break
            left = right
        return result

    def _choice(self, node: ast.IfExp, depth: int) -> Any:
        return self.read(node.body if self.read(node.test, depth) else node.orelse, depth)

    def _items(self, nodes: Sequence[ast.expr], depth: int, what: str = "Value") -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                many = self.read(node.value, depth)
                if not isinstance(many, (str, bytes, list, tuple, set, dict)):
                    raise TypeError(f"{what} after * must be an iterable, not {type(many).__name__}")
                found += self.spent(many)
            else:
                found.append(self.read(node, depth))
        return found

    def _list(self, node: ast.List, depth: int) -> Any:
        return self._items(node.elts, depth)

    def _tuple(self, node: ast.Tuple, depth: int) -> Any:
        return tuple(self._items(node.elts, depth))

    def _set(self, node: ast.Set, depth: int) -> Any:
        return set(self._items(node.elts, depth))

    def _dict(self, node: ast.Dict, depth: int) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                more = self.read(value, depth)
                if not isinstance(more, dict):
                    raise TypeError(f"'{type(more).__name__}' object is not a mapping")
                found.update(self.spent(more))
            else:
                name = self.read(key, depth)
                found[name] = self.read(value, depth)
        return found

    def _subscript(self, node: ast.Subscript, depth: int) -> Any:
        value, key = self.read(node.value, depth), self.read(node.slice, depth)
        if not isinstance(value, (str, bytes, list, tuple, dict)):
            raise TypeError(f"'{type(value).__name__}' object is not subscriptable")
        return self.spent(value[key])

    def _slice(self, node: ast.Slice, depth: int) -> Any:
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.read(part, depth) for part in parts))

    def _text(self, node: ast.JoinedStr, depth: int) -> Any:
        return self.spent("".join([str(self.read(part, depth)) for part in node.values]))

    def _formatted(self, node: ast.FormattedValue, depth: int) -> Any:
        value = self.spent(_plain(self.read(node.value, depth)))
        form = "" if node.format_spec is None else self.read(node.format_spec, depth)
        if _WIDE.search(form):
            raise UnsupportedSyntax("the format is too wide")
        change: Mapping[int, Callable[[Any], Any]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}
        return format(change.get(node.conversion, lambda v: v)(value), form)

    def _call(self, node: ast.Call, depth: int) -> Any:
        function = self.read(node.func, depth)
        args = self._items(node.args, depth, f"{self.described(function)} argument") if node.args else []
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.read(keyword.value, depth)
            if keyword.arg is None and not isinstance(value, dict):
                kind = type(value).__name__
                raise TypeError(f"{self.described(function)} argument after ** must be a mapping, not {kind}")
            for key, item in value.items() if keyword.arg is None else ((keyword.arg, value),):
                if not isinstance(key, str):
                    raise TypeError("keywords must be strings")
                if key in kwargs:
                    raise TypeError(f"{self.described(function)} got multiple values for keyword argument '{key}'")
                kwargs[key] = item
        self._outermost = depth == 1
        return self.call(function, args, kwargs)

    _HANDLERS: ClassVar[Mapping[type[ast.AST], Callable[..., Any]]] = {
        ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.UnaryOp: _unary, ast.BinOp: _binary,
        ast.BoolOp: _boolean, ast.Compare: _compare, ast.IfExp: _choice, ast.List: _list, ast.Tuple: _tuple,
        ast.Set: _set, ast.Dict: _dict, ast.Subscript: _subscript, ast.Slice: _slice, ast.JoinedStr: _text,
        ast.FormattedValue: _formatted, ast.Call: _call,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """Values that operators may be applied to: not tools, nor objects of a world."""
    if (
        value is None
        or isinstance(value, (str, bytes, int, float, complex, list, tuple, set, dict, slice))
        or value is ...
    ):
        return value
    if type(value).__name__ in ("mpf", "Decimal"):
        return value
    raise UnsupportedSyntax(f"a value of type {type(value).__name__} cannot be used here")
