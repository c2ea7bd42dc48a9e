"""What each of the five scenarios must offer: readable files, typed tools, answers that fit schemas, sound worlds."""

from __future__ import annotations

import json
import random
import re

import pytest
from jsonschema import Draft202012Validator

from muarl.chat import ToolCall
from muarl.domains import scenarios
from muarl.domains.base import Database
from muarl.domains.desk.people import Maker
from muarl.domains.desk.records import output_schema
from muarl.domains.generated import generated
from support.desk import SCENARIOS, made, script

everywhere = pytest.mark.parametrize("name", SCENARIOS)


def domain(name, size="medium"):
    return generated(f"{name}-generated").domain(size)


@everywhere
def test_a_scenario_is_a_folder_of_readable_files(name):
    desk = scenarios.desk(name)
    for file, least in (("policy.md", 300), ("policy_compact.md", 40), ("world.md", 200), ("intents.yaml", 500)):
        assert len((desk.folder / file).read_text(encoding="utf-8").split()) > least, file
    assert domain(name).policy_text.startswith("# Policy of the")
    assert desk.domain_class.name == name


@everywhere
def test_tools_are_eight_to_fifteen_and_documented(name):
    tools = domain(name).tool_specs()
    assert 8 <= len(tools) <= 15
    writes = [t.name for t in tools if domain(name).kind_of(t.name) == "write"]
    assert len(writes) >= 5
    for tool in tools:
        assert tool.description.endswith(".") and len(tool.description.split()) >= 3
        for argument, schema in tool.parameters["properties"].items():
            assert schema.get("description"), (tool.name, argument)


@everywhere
def test_every_tool_says_what_it_answers(name):
    kind = type(domain(name))
    for tool in domain(name).tool_names():
        schema = output_schema(getattr(kind, tool))
        Draft202012Validator.check_schema(schema)
        assert schema.get("type") == "string" or schema.get("additionalProperties") is False, tool


@everywhere
def test_what_an_audit_must_know_is_the_same_in_both_places(name):
    spec = script(name).spec
    assert scenarios.AUDIT[name] == (spec.identify.tool, spec.open_tools, spec.identify.id)
    assert set(scenarios.AUDIT[name][1]) <= set(domain(name).tool_names())


@everywhere
def test_answers_fit_the_schemas_and_are_the_same_again(name):
    """Whatever gold actions look up or write, in worlds of all sizes."""
    kind = type(domain(name))
    checks = {t: Draft202012Validator(output_schema(getattr(kind, t))) for t in domain(name).tool_names()}
    used = set()
    for size in ("small", "medium"):
        for task in made(name, size, count=50):
            world = domain(name, size).world(task)
            for action in task.actions:
                result = world.call("assistant", ToolCall("x", action.name, action.arguments))
                assert not result.error, result.content
                if action.name.startswith("transfer"):
                    continue
                checks[action.name].validate(json.loads(result.content))
                used.add(action.name)
    assert len(used) >= len(checks) - 3


@everywhere
def test_worlds_are_the_same_for_a_seed_and_hold_what_they_say(name):
    desk = scenarios.desk(name)

    def tables(seed, tiny=False):
        return desk.make_tables(Maker(random.Random(seed), 8, tiny, lambda first, last: True))

    assert tables(1) == tables(1) != tables(2)
    for tiny in (False, True):
        world = tables(3, tiny)
        json.dumps(world)
        Database(world)
        ids = [key for table in world.values() for key in table]
        assert len(ids) == len(set(ids))
        spec = desk.script.spec.identify
        for person in world[spec.table].values():
            assert all(person[f.field] for f in spec.fields.values())


ODD = ["", "x", "F-99999", "C-00000", "2026-13-40", "no such", "$5"]


@everywhere
def test_nonsense_becomes_an_error_to_read_and_changes_nothing(name):
    task = made(name, count=1)[0]
    for tool in domain(name).tool_specs():
        if tool.name.startswith(("transfer", "find_")):
            continue
        for odd in ODD:
            world = domain(name).world(task)
            before = world.digest()
            arguments = {}
            for argument, schema in tool.parameters["properties"].items():
                kinds = {schema.get("type"), *(s.get("type") for s in schema.get("anyOf", ()))}
                arguments[argument] = (
                    3 if "integer" in kinds else 2.5 if "number" in kinds else schema.get("enum", [odd])[0]
                )
            result = world.call("assistant", ToolCall("x", tool.name, arguments))
            if result.error:
                assert result.content.startswith("Error: ") and "Traceback" not in result.content
                assert not re.search(r"KeyError|TypeError|AttributeError", result.content), (tool.name, result.content)
            if result.error or domain(name).kind_of(tool.name) == "read":
                assert world.digest() == before
            missing = world.call("assistant", ToolCall("x", tool.name, dict(list(arguments.items())[1:])))
            assert missing.error or tool.name in ("find_doctors",)


@everywhere
def test_tiny_worlds_have_fewer_tools_and_all_tasks_fit_them(name):
    tiny = domain(name, "tiny")
    assert 8 <= len(tiny.tool_names()) <= len(domain(name).tool_names())
    for task in made(name, "tiny", count=40):
        assert {a.name for a in task.actions} <= set(tiny.tool_names())
