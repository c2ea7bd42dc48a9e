"""Tool specs as Python functions, for libraries that read a tool's schema out of signature, hints and docstring."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Any, Literal

from muarl.basics.errors import ConfigError
from muarl.types.chat import ToolSpec

_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "null": type(None),
}


def as_method(spec: ToolSpec, call: Callable[[Any, str, dict[str, Any]], str]) -> Callable[..., str]:
    """A method named as the tool, with a signature and a Google docstring that say what the spec says; it returns
    ``call(self, name, arguments)``. Wrong arguments are not refused, since the world answers them.

    What hints cannot say of nested objects is put into the parameter's description. ConfigError for a tool or a
    parameter whose name is no Python name.
    """

    def method(self: Any, /, **arguments: Any) -> str:
        return call(self, spec.name, arguments)

    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    for name in (spec.name, *properties):
        if not name.isidentifier() or name.startswith("_"):
            raise ConfigError(f"tool {spec.name}: {name!r} cannot be the name of a Python method or argument")
    required = set(spec.parameters.get("required", ()))
    hints = {name: _hint(schema) for name, schema in properties.items()}
    arguments = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[name],
            default=inspect.Parameter.empty if name in required else properties[name].get("default"),
        )
        for name in properties
    ]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__name__ = method.__qualname__ = spec.name
    method.__doc__ = _docstring(spec, properties)
    method.__annotations__ = hints
    method.__signature__ = inspect.Signature([itself, *arguments])  # type: ignore[attr-defined]
    return method


def _hint(schema: Any) -> Any:
    """A type hint for a JSON Schema, as near as hints come."""
    if not isinstance(schema, Mapping):
        return Any
    if "$ref" in schema:
        return dict
    if schema.get("enum"):
        return Literal[tuple(schema["enum"])]
    if "const" in schema:
        return Literal[schema["const"]]
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return _either([_hint(each) for each in several])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _either([_hint({**schema, "type": each}) for each in kind])
    if kind == "array":
        return list[_hint(schema["items"])] if schema.get("items") else list  # type: ignore[misc]
    return _TYPES.get(str(kind), Any)


def _either(hints: list[Any]) -> Any:
    return Any if Any in hints else reduce(or_, hints)


def _docstring(spec: ToolSpec, properties: Mapping[str, Any]) -> str:
    lines = [_text(spec.description) or spec.name]
    if properties:
        lines += ["", "Args:"]
        shared = spec.parameters.get("$defs", {})
        lines += [f"    {name}: {_described(name, schema, shared)}" for name, schema in properties.items()]
    return "\n".join(lines)


def _described(name: str, schema: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    """What a parameter is, in one line, with its schema where hints lose what objects in it are made of."""
    line = " ".join(_text(str(schema.get("description") or name)).split())
    bare = {key: value for key, value in schema.items() if key not in ("description", "title")}
    text = json.dumps(bare, ensure_ascii=False)
    if '"$ref"' in text:
        text = json.dumps({**bare, "$defs": shared}, ensure_ascii=False)
    elif '"properties"' not in text:
        return line
    return f"{line} JSON Schema: {_text(text)}"


def _text(text: str) -> str:
    """A text without the words that begin a section of a docstring."""
    return re.sub(r"\b(Args|Returns|Raises):", r"\1 -", text)
