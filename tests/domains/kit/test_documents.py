"""Plans that read documents, and audits of the discoverable tools that they call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muarl import Environment, load_environment
from muarl.basics.errors import ConfigError
from muarl.domains.auditing import Occasion, Resource, spelled_out
from muarl.domains.kit.consulting import consult
from muarl.types.chat import ToolCall

CALL, BOOK = "call_discoverable_agent_tool", "book_winter_place_2283"
SHOWN = (
    "1. Winter places\n   ID: winter/places\n   Score: 3.5000\n   Content: # Winter places\n\nUp to 9 m.\n\n"
    "2. Crane\n   ID: crane\n   Score: 1.0000\n   Content: On Fridays.\n1. Not a document\n"
)


class Looking:
    """A plan's ``it`` whose search shows this."""

    def __init__(self, shown: Any) -> None:
        self.shown = shown

    def look(self, tool: str, **arguments: Any) -> Any:
        assert (tool, arguments) == ("KB_search", {"query": "winter"})
        return self.shown


@pytest.mark.parametrize(
    ("document", "find", "gives"),
    [
        ("winter/places", r"Up to (\d+) m", "9"),
        ("winter/places", r"to \d+", "to 9"),
        ("winter/places", "", "# Winter places\n\nUp to 9 m."),
        ("crane", "", "On Fridays.\n1. Not a document"),
    ],
)
def test_a_document_is_read_in_what_a_search_shows(document: str, find: str, gives: str) -> None:
    assert consult(Looking(SHOWN), document, "winter", find) == gives  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "document", "find", "said"),
    [
        (
            SHOWN,
            "winter/place",
            "",
            "does not show the document 'winter/place'.*it shows winter/places, crane: take other",
        ),
        ("No document has these words.", "crane", "", "it shows nothing"),
        (SHOWN, "crane", r"\$(\d+)", "nothing in the document 'crane' matches"),
    ],
)
def test_what_a_plan_goes_by_and_is_not_there(shown: str, document: str, find: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        consult(Looking(shown), document, "winter", find)  # type: ignore[arg-type]


def test_arguments_within_arguments() -> None:
    assert spelled_out({"a": 1, "b": ' {"c":2,"d":"x"}'}) == {"a": 1, "c": 2, "d": "x"}
    for odd in ("{", "{]", "[1]", "", "{" * 500):
        assert spelled_out({"a": odd}) == {"a": odd}
    berths = Resource("berths", "berth_id", owner="owner_id", pattern=r"B-\d{4}")
    assert list(berths.named({"tool": "x", "arguments": '{"berth_id":"B-1042"}'})) == ["B-1042"]


@pytest.fixture(scope="module")
def marina(repository: Path) -> Environment:
    return load_environment(f"{repository}/src/muarl/assets/starter_knowledge/marina.py:MARINA")


def test_audits_read_a_discoverable_tools_arguments_however_they_are_spaced(marina: Environment) -> None:
    rules, domain = marina.audit_rules(), marina.make_domain("small")
    made = marina.make_tasks("train", 40, size="small")
    tasks = [t for t in made if t.tags["intent"] == "winter" and (t.actions or ())[-1].name == CALL]
    for task in tasks[:3]:
        given = json.loads((task.actions or ())[-1].arguments["arguments"])
        tables = task.database.to_tables()  # type: ignore[union-attr]
        mine = tables["berths"][given["berth_id"]]["owner_id"]
        other = next(key for key, one in tables["berths"].items() if one["owner_id"] != mine)
        world = domain.world(task)

        for berth, why in ((given["berth_id"], None), (other, f"berth {other} is not yours")):
            for separators in ((",", ":"), (" , ", " : ")):
                text = json.dumps({"place": given["place"], "berth_id": berth}, separators=separators)
                call = ToolCall("1", CALL, {"agent_tool_name": BOOK, "arguments": text})
                occasion = Occasion(call, lambda table, key, held=tables: held[table].get(key), mine, world=world)
                assert rules.forbids[CALL](occasion) == why


def test_a_document_that_names_another_tool_is_told_at_once(marina: Environment, tmp_path: Path) -> None:
    from muarl.cli.init import MARINA, write_environment

    write_environment("pier", tmp_path / "pier", MARINA)
    page = tmp_path / "pier" / "documents" / "desk" / "booking-winter-places.md"
    page.write_text(page.read_text().replace("2283", "2284"))
    with pytest.raises(ConfigError, match=r"no tool 'book_winter_place_2284' to unlock.*pier.py, line \d+"):
        load_environment(f"{tmp_path}/pier/pier.py:PIER").make_tasks("train", 1)
