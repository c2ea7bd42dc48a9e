"""Scenarios from folders, and from domains of ours."""

from __future__ import annotations

import json

import pytest

from muarl.basics.errors import DataError
from muarl.domains.imagined.scenario import read_scenario, scenario_of
from muarl.environments.registry import find
from support.imagined import TOOLS, folder
from support.kit import SERVICES, service
from support.kit import folder as folder_of


def changed(**changes):
    return json.dumps([{**TOOLS[0], **changes}, *TOOLS[1:]])


def test_a_folder_is_read(tmp_path):
    scenario = read_scenario(folder(tmp_path))
    assert scenario.name == tmp_path.name and scenario.policy.startswith("Move boxes")
    assert scenario.id_fields == {"box_id", "owner_id"}
    assert [t.creates for t in scenario.tools] == [None, None, None, None, None, None, "box_id", None]
    assert scenario.by_name["move_box"].arguments.check({"box_id": "B1"}).startswith("missing argument 'shelf'")


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a list of tools"),
        ('["x"]', "tool 0: must be an object with a name"),
        (changed(kind="guess"), "get_box.kind: must be one of read, write, generic, not 'guess'"),
        (changed(returns=[]), "get_box.returns: must be a JSON Schema object"),
        (changed(returns={"type": "goal"}), "get_box.returns: no JSON Schema"),
        (changed(parameters={"type": 3}), "get_box.parameters: no JSON Schema"),
        (changed(returns={"$ref": "https://example.com/box.json"}), "get_box.returns: the reference 'https://example"),
        (json.dumps([TOOLS[0], TOOLS[0]]), "the tool 'get_box' is listed twice"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, tools, words):
    with pytest.raises(DataError) as caught:
        read_scenario(folder(tmp_path, tools))
    assert words in str(caught.value) and "tools.json" in str(caught.value)


@pytest.mark.parametrize("missing", ["policy.md", "world.md", "tools.json"])
def test_a_missing_file_is_named(tmp_path, missing):
    (folder(tmp_path) / missing).unlink()
    with pytest.raises(DataError, match=missing):
        read_scenario(tmp_path)


@pytest.mark.parametrize("name", SERVICES)
def test_our_own_services_have_the_same_tools_and_policy(name):
    for size in ("tiny", "medium"):
        domain = find(f"{name}-generated").make_domain(size)
        scenario = scenario_of(domain, (folder_of(name) / "world.md").read_text(encoding="utf-8"))
        imagined = find(f"{name}-generated").imagined(size, object())
        assert imagined.tool_specs() == domain.tool_specs() == tuple(t.spec for t in scenario.tools)
        assert imagined.policy_text == domain.policy_text and imagined.tool_names() == domain.tool_names()
        assert all(imagined.kind_of(t) == domain.kind_of(t) for t in domain.tool_names())
        assert imagined.tool_specs("user") == () and imagined.tool_names("user") == ()
        owner = service(name).identity.key
        assert owner in scenario.id_fields
        creating = [t.spec.name for t in scenario.tools if t.creates]
        assert all(t.kind == "write" for t in scenario.tools if t.creates), creating
