"""What a model needs to play tools: a policy, a description of the world, and tools with schemas of what they answer.

A scenario is a folder with ``policy.md``, ``world.md`` and ``tools.json``, or a domain of ours and a description of its
world. ``tools.json`` is a list of objects with ``name``, ``description``, ``parameters`` and ``returns`` (JSON Schemas)
and ``kind`` (read, write or generic).

Two keywords of our own in ``returns``: ``"x-record": "order_id"`` marks an object as a record that is known by that
field, so that the ledger can hold the model to what it said of it; ``"x-volatile": true`` marks a field that may differ
from one look to the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from muarl.basics.errors import DataError
from muarl.domains.base import Domain
from muarl.domains.schema import RECORD, ToolSchema, compile_check, output_schema
from muarl.domains.scripted_expert import TRANSFER
from muarl.domains.tooling import Kind
from muarl.types.chat import ToolSpec

KINDS = ("read", "write", "generic")


@dataclass(frozen=True)
class ImaginedTool:
    """A tool as a model plays it."""

    spec: ToolSpec
    kind: Kind
    returns: Mapping[str, Any]
    """The JSON Schema of what it answers."""

    @cached_property
    def arguments(self) -> ToolSchema:
        """The checker of the arguments, as any domain's tools have it."""
        parameters = self.spec.parameters
        definitions = parameters.get("$defs", {})
        fields = {n: compile_check(s, definitions) for n, s in parameters.get("properties", {}).items()}
        return ToolSchema(self.spec, fields, tuple(parameters.get("required", ())), {})

    @cached_property
    def validator(self) -> Draft202012Validator:
        """The checker of answers."""
        return Draft202012Validator(self.returns)

    @property
    def creates(self) -> str | None:
        """The field of the id of what a call makes new: a write that answers with a record and is not given its id."""
        key = follow(self.returns, self.returns).get(RECORD)
        properties = self.spec.parameters.get("properties", {})
        return key if self.kind == "write" and isinstance(key, str) and key not in properties else None


@dataclass(frozen=True)
class ServiceDescription:
    """What a model needs to play the tools of a domain."""

    name: str
    policy: str
    world: str
    tools: tuple[ImaginedTool, ...]
    transfer: str = TRANSFER
    """The tool that hands the user over to a person, which no model has to play."""

    @cached_property
    def by_name(self) -> Mapping[str, ImaginedTool]:
        """The tools by their names."""
        return {t.spec.name: t for t in self.tools}

    @cached_property
    def id_fields(self) -> frozenset[str]:
        """The fields by which records are known, over all tools."""
        return frozenset(key for t in self.tools for key in _keys(t.returns))


def scenario_of(domain: Domain, world: str, transfer: str = TRANSFER) -> ServiceDescription:
    """The scenario of a domain whose methods' return hints say what they answer. ``world``: its description.
    ``transfer``: see ``ServiceDescription``."""
    tools = []
    for spec in domain.tool_specs():
        returns = output_schema(getattr(type(domain), spec.name))
        tools.append(ImaginedTool(spec, domain.kind_of(spec.name), returns))
    return ServiceDescription(domain.name, domain.policy_text, world, tuple(tools), transfer)


def read_scenario(folder: Path) -> ServiceDescription:
    """A scenario from its folder, named after it. DataError says which file is wrong, where, and what to do."""
    texts = {}
    for name in ("policy.md", "world.md", "tools.json"):
        try:
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise DataError(f"{folder / name} cannot be read: {problem}") from None
    path = folder / "tools.json"
    try:
        rows = json.loads(texts["tools.json"])
    except ValueError as problem:
        raise DataError(f"{path} is not JSON: {problem}") from None
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{path} must be a list of tools: name, description, parameters, returns, kind")
    tools = tuple(_tool(path, number, row) for number, row in enumerate(rows))
    names = [t.spec.name for t in tools]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: the tool {twice!r} is listed twice")
    return ServiceDescription(folder.name, texts["policy.md"], texts["world.md"], tools)


def _tool(path: Path, number: int, row: Any) -> ImaginedTool:
    where = f"{path}: tool {number}"
    if not isinstance(row, dict) or not isinstance(row.get("name"), str) or not row["name"]:
        raise DataError(f"{where}: must be an object with a name")
    where = f"{path}: {row['name']}"
    if row.get("kind") not in KINDS:
        raise DataError(f"{where}.kind: must be one of {', '.join(KINDS)}, not {row.get('kind')!r}")
    for key in ("parameters", "returns"):
        schema = row.get(key)
        if not isinstance(schema, dict):
            raise DataError(f"{where}.{key}: must be a JSON Schema object")
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as problem:
            raise DataError(f"{where}.{key}: no JSON Schema: {problem.message}") from None
        foreign = next((r for r in _references(schema) if not r.startswith("#/")), None)
        if foreign is not None:
            raise DataError(f"{where}.{key}: the reference {foreign!r} leaves the schema; put what it names into $defs")
    spec = ToolSpec(row["name"], str(row.get("description", row["name"])), row["parameters"])
    return ImaginedTool(spec, row["kind"], row["returns"])


def follow(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference names, else the schema itself."""
    for _ in range(20):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        node: Any = root
        for part in reference.removeprefix("#/").split("/"):
            node = node.get(part, {}) if isinstance(node, Mapping) else {}
        schema = node if isinstance(node, Mapping) else {}
    return {}


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for inner in schema.values():
            yield from _references(inner)
    elif isinstance(schema, Sequence) and not isinstance(schema, str):
        for inner in schema:
            yield from _references(inner)


def _keys(schema: Any) -> Iterator[str]:
    """The fields named by the keyword for records, anywhere in a schema."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get(RECORD), str):
            yield schema[RECORD]
        for inner in schema.values():
            yield from _keys(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _keys(inner)
