"""What each of the five services must offer: readable files, typed tools, answers that fit schemas, sound worlds."""

from __future__ import annotations

import json
import random

import pytest
from jsonschema import Draft202012Validator

from muarl.domains.database import Database
from muarl.domains.kit.people import Maker
from muarl.domains.schema import output_schema
from muarl.types.chat import ToolCall
from support.kit import SERVICES, env, folder, made, service

everywhere = pytest.mark.parametrize("name", SERVICES)


def domain(name, size="medium"):
    return env(name).make_domain(size)


@everywhere
def test_a_service_is_a_folder_of_readable_files(name):
    for file, least in (("policy.md", 300), ("policy_compact.md", 40), ("world.md", 200), ("intents.py", 500)):
        assert len((folder(name) / file).read_text(encoding="utf-8").split()) > least, file
    assert domain(name).policy_text.startswith("# Policy of the")
    assert service(name).name == name == service(name).domain.name


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
def test_answers_fit_the_schemas_and_are_the_same_again(name):
    """Whatever gold actions look up or write, in worlds of all sizes."""
    kind = type(domain(name))
    checks = {t: Draft202012Validator(output_schema(getattr(kind, t))) for t in domain(name).tool_names()}
    used = set()
    for size in ("small", "medium"):
        for task in made(name, size, count=25 if size == "small" else 8):
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
    called = service(name)

    def tables(seed, tiny=False):
        return called.tables(Maker(random.Random(seed), 8, tiny, lambda first, last: True))

    assert tables(1) == tables(1) != tables(2)
    for tiny in (False, True):
        world = tables(3, tiny)
        json.dumps(world)
        Database(world)
        ids = [key for table in world.values() for key in table]
        assert len(ids) == len(set(ids))
        for person in world[called.identity.table].values():
            assert all(person[fact.field or fact.name] for fact in called.facts)
