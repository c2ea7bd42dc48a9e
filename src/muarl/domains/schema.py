"""JSON Schema of a tool from its type hints and docstring, fast checks of arguments against it, and typed records, of
which a schema of what a tool answers is made.

The schema is pydantic's for the parameters, which is what the OpenAI API and TAU2 use. A record is a ``TypedDict``
marked with ``@record("order_id")``: an object of the world, known by that field. What is marked ``Volatile`` may differ
from one look to the next.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
    with_config,
)
from typing_extensions import TypedDict

from muarl.basics.errors import ConfigError
from muarl.domains.docstrings import parse_docstring
from muarl.types.chat import ToolSpec

Check = Callable[[Any, str], str | None]

_COMMON = ("str", "int", "float", "bool", "list", "dict", "Any", "Literal", "Annotated", "date", "datetime")
_OBJECTS = (
    BaseModel, Enum, date, time, timedelta, Decimal, UUID, PurePath, bytes, tuple, set, frozenset,
)  # fmt: skip
"""Types of hints that JSON values are converted to (datetime is a date)."""


@dataclass(frozen=True)
class ToolSchema:
    """A tool's spec with its argument checker.

    ``check(arguments)`` gives None or a sentence that says what is wrong. ``convert(arguments)`` turns JSON values into
    what the method's hints ask for (pydantic models, dataclasses, enums, dates, sets); plain hints get the JSON value
    itself.
    """

    spec: ToolSpec
    _fields: Mapping[str, Check]
    _required: tuple[str, ...]
    _converters: Mapping[str, TypeAdapter[Any]]
    documented: tuple[str, ...] = ()
    """The parameters that the docstring names."""
    unhinted: tuple[str, ...] = ()
    """The parameters without a type hint."""

    def check(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with the arguments, as one sentence for the model to read; None if nothing is."""
        fields = self._fields
        for name in self._required:
            if name not in arguments:
                return f"missing argument '{name}'. {self._usage()}"
        for name, value in arguments.items():
            check = fields.get(name)
            if check is None:
                return f"unexpected argument '{name}'. {self._usage()}"
            problem = check(value, name)
            if problem is not None:
                return problem
        return None

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Checked arguments as the method wants them. ValueError, in a sentence, for a value that the schema cannot
        rule out, such as the date 2026-02-31."""
        if not self._converters:
            return dict(arguments)
        out = dict(arguments)
        for name, adapter in self._converters.items():
            if name in out:
                try:
                    out[name] = adapter.validate_python(out[name])
                except ValidationError as problem:
                    raise ValueError(_sentence(name, problem)) from None
        return out

    def _usage(self) -> str:
        names = [n if n in self._required else f"{n} (optional)" for n in self._fields]
        return f"Arguments: {', '.join(names)}." if names else "It takes no arguments."


def tool_schema(method: Callable[..., Any]) -> ToolSchema:
    """The schema of a method; its first parameter (self) is left out.

    TypeError if a parameter has no name (*args). ConfigError, naming the tool, for a hint that means nothing in its
    module, or that JSON has no form for.
    """
    description, documented = parse_docstring(method.__doc__ or "")
    hints = _hints(method)
    fields: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {method.__name__}: parameter {name!r} must be an ordinary named parameter")
        default = ... if parameter.default is parameter.empty else parameter.default
        if name in documented:
            default = Field(default, description=documented[name])
        fields[name] = (hints.get(name, Any), default)
    parameters = _parameters(method, fields)
    definitions = parameters.get("$defs", {})
    return ToolSchema(
        spec=ToolSpec(method.__name__, description or method.__name__, parameters),
        _fields={n: compile_check(s, definitions) for n, s in parameters.get("properties", {}).items()},
        _required=tuple(parameters.get("required", ())),
        _converters={n: TypeAdapter(h) for n, (h, _) in fields.items() if _wants_objects(h)},
        documented=tuple(documented),
        unhinted=tuple(n for n in fields if n not in hints),
    )


def place(method: Callable[..., Any]) -> str:
    """ "tool refund (shop.py, line 31)", for messages."""
    code = getattr(inspect.unwrap(method), "__code__", None)
    where = "" if code is None else f" ({Path(code.co_filename).name}, line {code.co_firstlineno})"
    return f"tool {method.__name__}{where}"


def _hints(method: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(method, include_extras=True)
    except NameError as problem:
        wrong = [n for n, h in method.__annotations__.items() if re.search(rf"\b{problem.name}\b", str(h))]
        of = f"parameter {wrong[0]!r}" if wrong and wrong[0] != "return" else "its result"
        near = get_close_matches(str(problem.name), _COMMON, 1, 0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ", or classes at the top level of the module"
        raise ConfigError(
            f"{place(method)}: {of} has the type hint {problem.name!r}, which is not defined: hints must be types that "
            f"the module imports{hint}"
        ) from None
    except Exception as problem:
        raise ConfigError(f"{place(method)}: its type hints cannot be read: {problem}") from None


def _parameters(method: Callable[..., Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of the parameters."""
    try:
        model: type[BaseModel] = create_model("parameters", **fields)
        return model.model_json_schema()
    except Exception as problem:
        for name, (hint, _) in fields.items():
            try:
                TypeAdapter(hint).json_schema()
            except Exception as wrong:
                if type(wrong) is PydanticUserError:  # it knows a remedy
                    advice = str(wrong).partition("\n")[0]
                    raise ConfigError(f"{place(method)}: parameter {name!r}: {advice}") from None
                shape = getattr(hint, "__qualname__", None) or str(hint)
                raise ConfigError(
                    f"{place(method)}: parameter {name!r} has the type hint {shape}, which JSON has no form for: use "
                    "str, int, float, bool, list, dict, Literal, an Enum, a date, a dataclass, a TypedDict or a "
                    "pydantic model"
                ) from None
        reason = str(problem).partition("\n")[0]
        raise ConfigError(f"{place(method)}: no schema can be made of its parameters: {reason}") from None


def _sentence(name: str, problem: ValidationError) -> str:
    """The first thing that pydantic found wrong with an argument."""
    first = problem.errors()[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    return f"argument '{name}{path}': {text[:1].lower()}{text[1:]}, not {first['input']!r}"


def _wants_objects(hint: Any) -> bool:
    """Whether JSON's own values are not what a hint asks for."""
    kind = get_origin(hint) or hint
    if isinstance(kind, type) and (issubclass(kind, _OBJECTS) or is_dataclass(kind)):
        return True
    return any(_wants_objects(a) for a in get_args(hint) if a is not hint)


_KINDS: dict[str, tuple[type[Any] | tuple[type[Any], ...], str]] = {
    "string": (str, "a string"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
    "null": (type(None), "null"),
}


def _show(value: Any) -> str:
    """What a value is, in JSON's words, short enough for an observation."""
    for kind, (types, words) in _KINDS.items():
        if isinstance(value, types) and (kind == "boolean") == isinstance(value, bool):
            text = repr(value)
            return words if kind in ("array", "object", "null") else f"{words} ({text[:60]})"
    return type(value).__name__


def compile_check(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Check:
    """A function (value, path) -> None or what is wrong. Keywords that pydantic does not write are ignored."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        compiled: list[Check] = []

        def by_name(value: Any, path: str) -> str | None:  # compiled when first used: models may refer to themselves
            if not compiled:
                compiled.append(compile_check(definitions[name], definitions))
            return compiled[0](value, path)

        return by_name
    if "anyOf" in schema or "oneOf" in schema:
        return _check_any([compile_check(s, definitions) for s in schema.get("anyOf") or schema["oneOf"]])
    if "enum" in schema or "const" in schema:
        return _check_enum(list(schema.get("enum", [schema.get("const")])))
    kind = schema.get("type")
    if kind not in _KINDS:
        return lambda value, path: None
    types, words = _KINDS[kind]
    inner = _inner_check(kind, schema, definitions)

    def check(value: Any, path: str) -> str | None:
        if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
            return f"argument '{path}' must be {words}, not {_show(value)}."
        return None if inner is None else inner(value, path)

    return check


def _inner_check(kind: str, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Check | None:
    if kind == "array" and schema.get("items"):
        item = compile_check(schema["items"], definitions)

        def check_items(value: Any, path: str) -> str | None:
            for i, v in enumerate(value):
                problem = item(v, f"{path}[{i}]")
                if problem is not None:
                    return problem
            return None

        return check_items
    if kind == "object":
        return _check_object(schema, definitions)
    if kind in ("number", "integer"):
        return _check_bounds(schema)
    return None


def _check_object(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Check:
    fields = {n: compile_check(s, definitions) for n, s in schema.get("properties", {}).items()}
    required = tuple(schema.get("required", ()))
    extra = schema.get("additionalProperties", True)
    others = compile_check(extra, definitions) if isinstance(extra, Mapping) else None

    def check(value: Any, path: str) -> str | None:
        for name in required:
            if name not in value:
                return f"argument '{path}' lacks the field '{name}'."
        for name, v in value.items():
            one = fields.get(name, others)
            if one is None and extra is False:
                return f"argument '{path}' has no field '{name}'."
            problem = None if one is None else one(v, f"{path}.{name}")
            if problem is not None:
                return problem
        return None

    return check


def _check_any(checks: list[Check]) -> Check:
    def check(value: Any, path: str) -> str | None:
        problems = [c(value, path) for c in checks]
        return None if None in problems else problems[0]

    return check


def _check_enum(allowed: list[Any]) -> Check:
    def check(value: Any, path: str) -> str | None:
        if any(type(value) is type(a) and value == a for a in allowed):
            return None
        return f"argument '{path}' must be one of {', '.join(map(repr, allowed))}, not {_show(value)}."

    return check


def _check_bounds(schema: Mapping[str, Any]) -> Check | None:
    tests: list[tuple[Callable[[Any], bool], str]] = []
    if "minimum" in schema:
        tests.append((lambda v: v >= schema["minimum"], f"at least {schema['minimum']}"))
    if "exclusiveMinimum" in schema:
        tests.append((lambda v: v > schema["exclusiveMinimum"], f"more than {schema['exclusiveMinimum']}"))
    if "maximum" in schema:
        tests.append((lambda v: v <= schema["maximum"], f"at most {schema['maximum']}"))
    if "exclusiveMaximum" in schema:
        tests.append((lambda v: v < schema["exclusiveMaximum"], f"less than {schema['exclusiveMaximum']}"))
    if not tests:
        return None

    def check(value: Any, path: str) -> str | None:
        for passes, words in tests:
            if not passes(value):
                return f"argument '{path}' must be {words}, not {value!r}."
        return None

    return check


T = TypeVar("T")
RECORD, VOLATILE = "x-record", "x-volatile"
"""Keywords of output schemas: the field that an object is known by; a field that may differ from look to look."""

Date = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$", description="a date, such as 2026-03-14")]
Time = Annotated[str, Field(pattern=r"^\d\d:\d\d$", description="a time of day, such as 14:30")]
Money = Annotated[float, Field(ge=0, description="US dollars")]


def Id(prefix: str, digits: int) -> Any:
    """The field of an id: a prefix and so many digits."""
    example = f"{prefix}{'123456789'[:digits]}"
    return Field(pattern=f"^{prefix}\\d{{{digits}}}$", description=f"an id, such as {example}")


Volatile = Field(json_schema_extra={VOLATILE: True})


def record(key: str | None = None) -> Callable[[type[T]], type[T]]:
    """Mark a ``TypedDict``: closed to other fields, and, where ``key`` is given, a record known by that field."""
    extra: dict[str, Any] = {} if key is None else {RECORD: key}
    return with_config(ConfigDict(extra="forbid", json_schema_extra=extra))


@cache
def output_schema(method: Any) -> dict[str, Any]:
    """The JSON schema of what a tool's method returns, from its hint; a method without one may return anything."""
    hint = get_type_hints(method, include_extras=True).get("return", Any)
    return TypeAdapter(hint).json_schema()


__all__ = [
    "RECORD", "VOLATILE", "Date", "Id", "Money", "Time", "TypedDict", "Volatile", "output_schema", "record",
]  # fmt: skip
