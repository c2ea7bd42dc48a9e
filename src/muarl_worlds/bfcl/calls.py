"""Call strings, as BFCL's models write them: ``cd(folder='docs')``.

What BFCL does with one (multi_turn_utils): in its text every name of a known tool that stands before "(" gets the name
of the object that has the tool, also inside string literals, and blanks before "(" go; the text is then handed to
``eval``. Here it is parsed, and only tools and the harmless expressions of ``expressions`` are there to be called.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from muarl_worlds.bfcl.expressions import ExpressionReader
from muarl_worlds.bfcl.syntax import UnsupportedSyntax
from muarl_worlds.bfcl.syntax import parse as parse_expression

MAX_LENGTH = 250_000
"""The longest call string that is read, in characters."""

FORBIDDEN = frozenset(("kill", "exit", "quit", "remove", "unlink", "popen", "Popen", "run"))
"""What BFCL refuses to call, by its name."""

_BEFORE_PARENTHESIS = re.compile(r"\b([a-zA-Z_]\w*)\s*(?=\()")
_REMEMBERED = 2_000
_MARKS = tuple(f"muarl{number}object" for number in range(100))
"""One that a text does not have stands in it for the names of objects, which differ between episodes."""


_SOURCES: Mapping[str, str] = {
    "GorillaFileSystem": "gorilla_file_system", "MathAPI": "math_api", "MessageAPI": "message_api",
    "TwitterAPI": "posting_api", "TicketAPI": "ticket_api", "TradingBot": "trading_bot", "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}  # fmt: skip
_SOURCE_FOLDER = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"


@dataclass(frozen=True, slots=True)
class ToolRef:
    """A tool of one of the API classes."""

    owner: str
    tool: str

    @property
    def described(self) -> str:
        """How Python names it in errors about the packing of its arguments."""
        return f"{_SOURCE_FOLDER}.{_SOURCES.get(self.owner, self.owner)}.{self.owner}.{self.tool}()"


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The object of one of the API classes."""

    owner: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a call string says. Exactly one of ``problem``, ``plain`` and ``tree`` is not None.

    ``problem``: the error that reading it gives. ``plain``: a tool, its positional and its named arguments, where those
    are literals that cannot change. ``mark``: stands for the objects' names within the tree's strings and names, None
    if nothing does.
    """

    problem: str | None = None
    plain: tuple[ToolRef, Sequence[Any], Mapping[str, Any]] | None = None
    tree: ast.expr | None = None
    mark: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ToolNames:
    """The tools of an episode's classes. ``owners``: tool to class; ``classes``: the classes in their order;
    ``writers``: the tools that change a state.

    Two of them are equal only if they are the same object, so that what is parsed can be remembered with it.
    """

    classes: tuple[str, ...]
    owners: Mapping[str, str]
    writers: frozenset[str] = frozenset()


def parse(text: str, names: ToolNames, *, rewrite: bool = True) -> Parsed:
    """Read a call string. ``rewrite``: as BFCL does, string literals included; without, as it stands."""
    if len(text) > MAX_LENGTH:
        return Parsed(problem=f"the call is longer than {MAX_LENGTH} characters")
    return (_remembered if len(text) <= _REMEMBERED else _parse)(text, names, rewrite)


def _parse(text: str, names: ToolNames, rewrite: bool) -> Parsed:
    mark = None
    if rewrite:
        mark = next((m for m in _MARKS if m not in text), None)
        if mark is None:
            return Parsed(problem="the call cannot be read")
        text = _with_objects(text, names, mark)
    named = text.split("(")[0]
    named = named.split(".")[1] if "." in named else named
    if named in FORBIDDEN:
        return Parsed(problem=f"Function call {named} is not allowed.")
    try:
        tree = parse_expression(text)
        repeated = next(_repeated_keywords(tree), None)
    except Exception as error:
        return Parsed(problem=str(error))
    if repeated is not None:
        return Parsed(problem=f"keyword argument repeated: {repeated[0]} (<string>, line {repeated[1]})")
    plain = _plain_call(tree, names, mark)
    return Parsed(plain=plain) if plain is not None else Parsed(tree=tree, mark=mark)


_remembered = lru_cache(maxsize=8192)(_parse)


def _with_objects(text: str, names: ToolNames, mark: str) -> str:
    """The text with objects before the names of tools: the mark and the number of the class stand for them."""
    owners, place = names.owners, names.classes.index

    def put(match: re.Match[str]) -> str:
        name = match[1]
        return f"{mark}{place(owners[name])}.{name}" if name in owners else name

    return _BEFORE_PARENTHESIS.sub(put, text)


def _repeated_keywords(tree: ast.expr) -> Iterator[tuple[str, int]]:
    """Arguments that are named twice in one call, with the line: an error of Python's compiler, not of its parser."""
    for node in ast.walk(tree):
        seen: set[str] = set()
        for word in node.keywords if isinstance(node, ast.Call) else ():
            if word.arg in seen:
                yield word.arg, word.lineno
            seen |= {word.arg} if word.arg is not None else set()


def _plain_call(
    tree: ast.expr, names: ToolNames, mark: str | None
) -> tuple[ToolRef, Sequence[Any], Mapping[str, Any]] | None:
    """The tool and the arguments of a call of a tool with nothing but literals for its arguments."""
    if not isinstance(tree, ast.Call):
        return None
    called = tree.func
    if mark is None:
        if not (isinstance(called, ast.Name) and called.id in names.owners):
            return None
        tool = called.id
    else:
        if not (isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)):
            return None
        if not called.value.id.startswith(mark):
            return None
        tool = called.attr
    nodes = [*tree.args, *(word.value for word in tree.keywords)]
    if any(word.arg is None for word in tree.keywords) or not all(_is_plain(node, mark) for node in nodes):
        return None
    values = [node.value if isinstance(node, ast.Constant) else -node.operand.value for node in nodes]  # type: ignore
    count = len(tree.args)
    kwargs = {str(word.arg): value for word, value in zip(tree.keywords, values[count:], strict=True)}
    return ToolRef(names.owners[tool], tool), values[:count], kwargs


def _is_plain(node: ast.expr, mark: str | None) -> bool:
    """Whether an argument is a literal that cannot change and that names no object, or a number with a minus."""
    if isinstance(node, ast.Constant):
        return mark is None or not isinstance(node.value, str) or mark not in node.value
    if not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)):
        return False
    return type(node.operand.value) in (int, float)


class CallReader(ExpressionReader):
    """Reads a call string's tree.

    ``invoke(tool, args, kwargs)`` runs a tool; ``object_name(owner)`` is what BFCL calls the object of a class.
    """

    def __init__(
        self,
        names: ToolNames,
        mark: str | None,
        invoke: Callable[[ToolRef, Sequence[Any], Mapping[str, Any]], Any],
        object_name: Callable[[str], str],
    ) -> None:
        super().__init__()
        self._names, self._mark, self._invoke, self._object_name = names, mark, invoke, object_name

    def name(self, identifier: str) -> Any:
        """An object, a tool where the text is taken as it stands, or what every expression has."""
        if self._mark is not None and identifier.startswith(self._mark):
            return ObjectRef(self._names.classes[int(identifier.removeprefix(self._mark))])
        if self._mark is None and identifier in self._names.owners:
            return ToolRef(self._names.owners[identifier], identifier)
        return super().name(identifier)

    def attribute(self, value: Any, attribute: str) -> Any:
        """A tool of an object, or what every expression has."""
        if isinstance(value, ObjectRef):
            if self._names.owners.get(attribute) == value.owner:
                return ToolRef(value.owner, attribute)
            raise AttributeError(f"'{value.owner}' object has no attribute '{attribute}'")
        return super().attribute(value, attribute)

    def constant(self, value: Any) -> Any:
        """A literal, the objects' names put in where a tool's name stood before "("."""
        return self.named(value) if isinstance(value, str) else value

    def named(self, text: str) -> str:
        """A text with the names of objects where their marks stand."""
        if self._mark is None or self._mark not in text:
            return text
        classes = self._names.classes
        return re.sub(f"{self._mark}([0-7])", lambda m: self._object_name(classes[int(m[1])]), text)

    def call(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run a tool, or one of the functions that every expression has."""
        if any(isinstance(v, (ToolRef, ObjectRef)) or callable(v) for v in (*args, *kwargs.values())):
            raise UnsupportedSyntax("only values can be arguments")
        if isinstance(function, ToolRef):
            value = self._invoke(function, args, kwargs)
            return value if self._outermost else self.spent(value)
        return super().call(function, args, kwargs)

    def described(self, function: Any) -> str:
        """A function as Python names it in errors about the packing of its arguments."""
        return function.described if isinstance(function, ToolRef) else super().described(function)


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """The call string that BFCL makes of a native function call."""
    return f"{name}({','.join([f'{key}={value!r}' for key, value in arguments.items()])})"


def literal_call(text: str) -> tuple[str, dict[str, Any]] | None:
    """The name and the arguments of a call string, if it is one call whose arguments are named literals; else None."""
    try:
        tree = parse_expression(text) if len(text) <= MAX_LENGTH else None
        if not isinstance(tree, ast.Call):
            return None
        name = ast.unparse(tree.func)
    except Exception:
        return None
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
        return None
    values = argument_values(tree)
    return None if values is None or values[0] else (name, values[1])


def argument_values(call: ast.Call) -> tuple[list[Any], dict[str, Any]] | None:
    """The positional and the named arguments of a call, if all are literals; else None."""
    reader = _Literals()
    if any(word.arg is None for word in call.keywords):
        return None
    try:
        args = [reader.read(node) for node in call.args]
        return args, {word.arg: reader.read(word.value) for word in call.keywords if word.arg is not None}
    except Exception:
        return None


class _Literals(ExpressionReader):
    """Reads literals alone."""

    def name(self, identifier: str) -> Any:
        """No name stands for anything."""
        raise UnsupportedSyntax("not a literal")
