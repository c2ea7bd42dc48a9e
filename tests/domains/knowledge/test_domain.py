"""Domains with documents: what an author may give, what agents may call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from muarl import Database, KnowledgeDomain, discoverable, tool
from muarl.basics.errors import ConfigError, DataError
from muarl.domains.base import World
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.search import Hit, Search
from muarl.types.chat import ToolCall, ToolResult

UNLOCK, CALL = "unlock_discoverable_agent_tool", "call_discoverable_agent_tool"


class Marina(KnowledgeDomain):
    """Berths."""

    name = "marina"
    policy = "Search the documents."
    documents = (
        Document("winter", "Winter", "Boats are moved with the tool move_boat_17."),
        Document("crane", "Crane", "The crane works on Fridays. A day of it costs $5."),
    )
    database = Database({"boats": {"a": {"place": "water"}}})

    @tool
    def get_boat(self, boat: str) -> dict[str, Any]:
        """A boat."""
        return self.db.boats[boat]

    @discoverable(writes=True)
    def move_boat_17(self, boat: str, place: Literal["hall", "yard"] = "yard") -> dict[str, Any]:
        """Move a boat.

        boat: its name.
        """
        if boat not in self.db.boats:
            raise ValueError(f"there is no boat {boat}")
        self.db.boats[boat]["place"] = place
        return self.db.boats[boat]

    @discoverable
    def count_boats_18(self) -> int:
        """How many boats there are."""
        return len(self.db.boats)


def call(world: World, name: str, **arguments: Any) -> ToolResult:
    return world.call("assistant", ToolCall("1", name, arguments))


def test_agents_are_told_of_the_searches_and_not_of_discoverable_tools() -> None:
    assert set(Marina().tool_names()) == {"KB_search", "grep", UNLOCK, CALL, "get_boat"}
    assert [spec.name for spec in Marina().discoverable_specs()] == ["move_boat_17", "count_boats_18"]


def test_an_instance_with_fewer_tools_can_still_unlock_all() -> None:
    domain = Marina(tools=("get_boat", UNLOCK, CALL))
    assert set(domain.tool_names()) == {"get_boat", UNLOCK, CALL}
    world = domain.world()
    call(world, UNLOCK, agent_tool_name="count_boats_18")
    assert call(world, CALL, agent_tool_name="count_boats_18").content == "1"


def test_without_discoverable_tools_there_is_nothing_to_unlock_them_with() -> None:
    class Plain(KnowledgeDomain):
        policy, documents, searches = "x", Marina.documents, ("grep",)

    assert Plain().tool_names() == ("grep",)

    class Wrong(KnowledgeDomain):
        policy, documents, searches = "x", Marina.documents, ("KB_serch",)

    with pytest.raises(ConfigError, match="no search 'KB_serch'"):
        Wrong()


def test_a_tool_works_once_it_is_unlocked_and_in_that_world_only() -> None:
    domain = Marina()
    world = domain.world()
    given = {"agent_tool_name": "move_boat_17", "arguments": json.dumps({"boat": "a", "place": "hall"})}
    assert "there is no tool" in call(world, "move_boat_17", boat="a").content
    assert "is locked: unlock it first" in call(world, CALL, **given).content
    told = call(world, UNLOCK, agent_tool_name="move_boat_17").content
    assert "Description: Move a boat." in told
    assert "- boat: string (required) - its name." in told
    assert "- place: one of 'hall', 'yard' (optional)" in told
    assert json.loads(call(world, CALL, **given).content) == {"place": "hall"}
    assert world.toolkit().db.boats["a"]["place"] == "hall"
    assert [done.name for done in world.writes] == [CALL]
    assert "is locked" in call(domain.world(), CALL, **given).content
    assert domain.world().toolkit().db.boats["a"]["place"] == "water"


def test_unlocking_leaves_the_state_as_it_is() -> None:
    world = Marina().world()
    before = world.digest()
    call(world, UNLOCK, agent_tool_name="count_boats_18")
    assert "(no parameters)" in call(world, UNLOCK, agent_tool_name="count_boats_18").content
    assert call(world, CALL, agent_tool_name="count_boats_18").content == "1"
    assert world.digest() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{'boat': 'a'}", "the arguments are no JSON"),
        ("[]", "the arguments must be a JSON object"),
        ("{}", "missing argument 'boat'"),
        ('{"boat": "a", "place": "water"}', "place"),
        ('{"boat": "a", "day": 1}', "unexpected argument 'day'"),
        ('{"boat": 3}', "boat"),
        ('{"boat": "z"}', "there is no boat z"),
        ("[" * 200, "nested deeper"),
    ],
)
def test_wrong_arguments_are_told_and_change_nothing(arguments: str, said: str) -> None:
    world = Marina().world()
    before = world.digest()
    call(world, UNLOCK, agent_tool_name="move_boat_17")
    answer = call(world, CALL, agent_tool_name="move_boat_17", arguments=arguments)
    assert answer.error and said in answer.content
    assert world.digest() == before


def test_only_discoverable_tools_can_be_unlocked() -> None:
    world = Marina().world()
    for name in ("get_boat", "KB_search", "prepare", "__init__", "move_boat_99"):
        assert "there is no tool" in call(world, UNLOCK, agent_tool_name=name).content
        assert call(world, CALL, agent_tool_name=name).error


def test_searches_show_what_fits_and_nothing_else() -> None:
    world = Marina().world()
    found = call(world, "KB_search", query="crane fridays").content
    assert found.startswith("1. Crane\n   ID: crane\n   Score: ") and "Winter" not in found
    assert call(world, "KB_search", query="helicopter").content == "No document has these words."
    assert "ID: winter" in call(world, "grep", pattern=r"move_\w+_\d+").content
    assert call(world, "grep", pattern="helicopter").content == "Nothing in the documents matches."


def test_another_search_in_place_of_bm25() -> None:
    asked = []

    class Last(Search):
        def __init__(self, knowledge: Knowledge) -> None:
            self.knowledge = knowledge

        def search(self, query: str, top_k: int = 10) -> list[Hit]:
            asked.append((query, top_k))
            return [Hit(self.knowledge.documents[-1], 0.0)]

    class Other(Marina):
        top_k = 4

        def make_search(self) -> Search:
            return Last(self.knowledge)

    assert call(Other().world(), "KB_search", query="no word of it").content.startswith("1. Crane\n   ID: crane")
    assert asked == [("no word of it", 4)]


def test_documents_from_a_folder_beside_the_class_or_given(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Fees\n\nFour dollars.")
    domain = Marina(documents=tmp_path)
    assert [one.id for one in domain.knowledge.documents] == ["a"]
    assert Marina(documents=str(tmp_path)).knowledge is domain.knowledge  # read once
    (tmp_path / "b.md").write_text("# More")
    assert len(Marina(documents=tmp_path).knowledge) == 2
    own = Knowledge([Document("x", "X", "text")])
    assert Marina(documents=own).knowledge is own

    class Beside(Marina):
        documents = Path("no such folder")

    with pytest.raises(
        DataError, match=r"Beside.documents: .*test_domain|Beside.documents: .*no such folder: there is"
    ):
        _ = Beside().knowledge


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (17, "must be a Path to a folder, or documents, not int"),
        ([{"id": "a"}], "is no Document"),
        ([Document("a", "A", "x"), Document("a", "B", "y")], "two documents have the id 'a'"),
    ],
)
def test_what_are_no_documents(given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        _ = Marina(documents=given).knowledge


def test_documents_that_are_not_set() -> None:
    class Bare(KnowledgeDomain):
        policy = "x"

    with pytest.raises(ConfigError, match=r'Bare.documents is not set: name a folder .* Path\("documents"\)'):
        _ = Bare().knowledge
