"""One spelling of each tool, however a client writes it: a model reads letters, and a small one only those it learned.

Clients write the same tool in many ways: other orders of keys, nulls or none, switches such as ``strict`` that ask
something of the API and say nothing about the tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from muarl.types.chat import ToolSpec

_FIRST = ("name", "description", "parameters")
_SWITCHES = ("strict",)
"""Of a function: what it asks of the API, whatever the tool is."""
_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")
"""Keywords of JSON Schema whose value's keys are names."""
_VALUES = ("default", "const", "enum", "examples")
"""Those whose value is no schema."""


class ToolSpellings:
    """How tools are shown to the model. ``known``: as it saw them in training."""

    def __init__(self, known: Iterable[ToolSpec] = ()) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        for spec in known:
            document = spec.to_openai()
            if isinstance(document.get("function"), Mapping):
                self._known.setdefault(_identity(document["function"]), document)

    def spec(self, sent: Mapping[str, Any]) -> ToolSpec:
        """The tool that a client sent, in the chat API's form: spelled as a known one that says the same, else as it
        was sent, but for switches, nulls of the function and the order of its keys."""
        plain = _plain(sent["function"])
        document = self._known.get(_identity(plain)) or {"type": "function", "function": plain}
        function = document["function"]
        description, parameters = function.get("description", ""), function.get("parameters", {})
        return ToolSpec(function["name"], description, parameters, doc=document, as_documented=True)


def _plain(function: Mapping[str, Any]) -> dict[str, Any]:
    """A function without what says nothing about it."""
    ordered = (*_FIRST, *(key for key in function if key not in _FIRST))
    return {key: function[key] for key in ordered if key not in _SWITCHES and function.get(key) is not None}


def _identity(function: Mapping[str, Any]) -> str:
    """The same for functions that say the same."""
    parameters = {"type": "object", **_schema(function.get("parameters") or {})}
    said = {"description": "", **_plain(function), "parameters": parameters}
    return json.dumps(said, sort_keys=True)


def _schema(value: Any) -> Any:
    """A JSON Schema without what clients add or leave out: nulls, titles, empty lists of parameters, and that there are
    no others."""
    if isinstance(value, list):
        return [_schema(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    out: dict[str, Any] = {}
    for key, inner in value.items():
        if key == "title" or inner is None or (key == "additionalProperties" and inner is False):
            continue
        if key in _BY_NAME and isinstance(inner, Mapping):
            inner = {name: _schema(one) for name, one in inner.items()}
        elif key == "required" and isinstance(inner, list):
            inner = sorted(inner, key=str)
        elif key not in _VALUES:
            inner = _schema(inner)
        if inner or key not in ("properties", "required"):
            out[key] = inner
    return out
