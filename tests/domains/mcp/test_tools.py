"""Which of a server's tools are offered, how, and when a server counts as changed. No server is needed."""

from __future__ import annotations

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.mcp.client import ServerTool
from muarl.domains.mcp.tools import OfferedTool, changed, from_json, to_json, toolbox

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "Arguments",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "deep": {"type": "boolean", "default": False},
    },
    "required": ["path"],
    "$defs": {"Line": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
}
LISTING = {
    "read": ServerTool("read", "Read a file.", SCHEMA, True),
    "write": ServerTool("write", "Write a file.", SCHEMA, False),
    "odd": ServerTool("odd", "", {}, None),
}


def test_everything_is_offered_unless_something_is_chosen():
    box = toolbox(LISTING, None)
    assert list(box) == ["read", "write", "odd"]
    assert [t.kind for t in box.values()] == ["read", "write", "write"]
    spec = box["read"].schema.spec
    assert "$schema" not in spec.parameters and spec.parameters["$defs"] and spec.parameters["required"] == ["path"]
    assert box["odd"].schema.spec.parameters == {"type": "object", "properties": {}, "required": []}


def test_an_offer_renames_describes_fixes_and_hides(tmp_path):
    offer = OfferedTool(
        "read", named="look", kind="generic", fixed={"path": "{folder}/a"}, hidden=("deep",), description="L."
    )
    (tool,) = toolbox(LISTING, [offer]).values()
    spec = tool.schema.spec
    assert (spec.name, spec.description, tool.kind) == ("look", "L.", "generic")
    assert list(spec.parameters["properties"]) == ["lines"] and spec.parameters["required"] == []
    assert tool.arguments({"lines": []}, tmp_path) == {"lines": [], "path": f"{tmp_path}/a"}
    assert "path" in LISTING["read"].parameters["properties"]  # the server's own schema is left alone


def test_arguments_are_checked_by_the_servers_schema():
    check = toolbox(LISTING, None)["read"].schema.check
    assert check({"path": "a", "lines": [{"text": "x"}]}) is None
    assert check({}) == "missing argument 'path'. Arguments: path, lines (optional), deep (optional)."
    assert check({"path": "a", "lines": [{}]}) == "argument 'lines[0]' lacks the field 'text'."
    assert check({"path": "a", "far": 1}).startswith("unexpected argument 'far'")


def test_a_schema_that_makes_no_sense_is_left_to_the_server():
    parameters = {"properties": {"a": {"$ref": "#/nowhere"}, "b": {"type": ["string", "null"]}, "c": True}}
    (tool,) = toolbox({"x": ServerTool("x", "", parameters)}, None).values()
    assert tool.schema.check({"a": 1, "b": None, "c": "anything"}) is None
    with pytest.raises(ConfigError, match="the server's schema has no properties"):
        toolbox({"x": ServerTool("x", "", {"properties": []})}, None)


@pytest.mark.parametrize(
    ("offers", "told"),
    [
        ([OfferedTool("eat")], "the server has no tool 'eat'; it has read, write, odd"),
        ([OfferedTool("read"), OfferedTool("write", named="read")], "two tools would be called 'read'"),
        ([OfferedTool("read", fixed={"far": 1})], "read has no argument 'far'; it has path, lines, deep"),
        ([OfferedTool("read", hidden=("path",))], "read needs the argument 'path': fix it instead of hiding it"),
    ],
)
def test_offers_that_cannot_be_met_are_told(offers, told):
    with pytest.raises(ConfigError, match=told):
        toolbox(LISTING, offers)


def test_a_server_has_changed_when_a_call_would_have_to_look_different():
    box = toolbox(LISTING, [OfferedTool("read")]).values()
    assert changed(box, LISTING) is None
    assert changed(box, {"write": LISTING["write"]}) == "the tool read is gone"
    other_words = {**SCHEMA, "title": "Other", "properties": {**SCHEMA["properties"], "path": {"type": "string"}}}
    assert changed(box, {"read": ServerTool("read", "Other.", other_words)}) is None
    more = {**SCHEMA, "required": ["path", "deep"]}
    assert changed(box, {"read": ServerTool("read", "", more)}) == "the tool read takes other arguments than before"


def test_an_argument_called_title_or_default_counts():
    first = {"properties": {"title": {"type": "string"}, "default": {"type": "string"}}}
    second = {"properties": {"default": {"type": "string"}}}
    box = toolbox({"x": ServerTool("x", "", first)}, None).values()
    assert changed(box, {"x": ServerTool("x", "", second)}) == "the tool x takes other arguments than before"


def test_a_listing_survives_a_file():
    assert from_json(to_json(LISTING.values())) == LISTING
