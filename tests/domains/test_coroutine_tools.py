"""Tools that are coroutines: waited for in conversations, run to their end in plain code."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muarl.agents.base import AgentTurn
from muarl.basics.errors import DataError, InfrastructureError
from muarl.domains.base import Domain, World
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.rewards.gold import check_tasks, gold_digest
from muarl.rewards.outcome import do_nothing, score
from muarl.rollouts.conversation import run_episode
from muarl.types.chat import Message, ToolCall
from muarl.users.scripted import ScriptedUser

BOOKS = {"books": {"b": {"title": "Emma", "lent": False}}}


def call(world: World, name: str, /, **arguments: Any) -> Any:
    return world.call("assistant", ToolCall("1", name, arguments))


class Slow(Domain):
    """Coroutines as tools."""

    database = BOOKS

    @tool
    async def get(self, book: str) -> dict[str, Any]:
        """Get a book."""
        await asyncio.sleep(0)
        return self.db.books[book]

    @tool(writes=True)
    async def lend(self, book: str, fail: bool = False) -> str:
        """Lend a book."""
        self.db.books[book]["lent"] = True
        await asyncio.sleep(0)
        if fail:
            raise ValueError("it is not allowed")
        return "lent"

    @tool(writes=True)
    async def hang(self) -> str:
        """Never answer."""
        self.db.books["b"]["lent"] = True
        await asyncio.Event().wait()
        return ""

    @tool
    async def down(self) -> str:
        """Something outside fails."""
        raise InfrastructureError("no connection", boundary="world")

    @tool
    async def peep(self, book: str) -> str:
        """Peep."""
        self.db.books[book]["peeped"] = True
        return "peeped"

    @tool
    def plain(self) -> int:
        """Answer at once."""
        return 7


class Says:
    """An agent that makes these calls, each in a message of its own."""

    tokens = None
    name = "says"

    def __init__(self, *calls: ToolCall) -> None:
        self.calls = list(calls)

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> Any:
        return self

    async def act(self, new: Any) -> Any:
        if self.calls:
            return AgentTurn(Message("assistant", None, (self.calls.pop(0),)))
        return AgentTurn(Message("assistant", "Done."))

    def close(self) -> None:
        pass


LENT = Task("lend", "slow", "", (Action("lend", {"book": "b"}),))


@pytest.mark.filterwarnings("ignore:tool peep:muarl.domains.authoring.AuthoringWarning")
def test_tools_that_are_coroutines_are_waited_for_in_a_conversation() -> None:
    domain = Slow()
    calls = [ToolCall("1", "get", {"book": "b"}), ToolCall("2", "plain"), ToolCall("3", "lend", {"book": "b"})]
    world = domain.world(LENT)
    user = ScriptedUser(["Lend me Emma.", "Bye. ###STOP###"])
    episode = asyncio.run(run_episode(LENT, world, Says(*calls), user))
    answers = [m.content for m in episode.messages if m.role == "tool"]
    assert answers == ['{"title": "Emma", "lent": false}', "7", "lent"]
    assert asyncio.run(score(LENT, world, episode.messages, episode.stop)).reward == 1.0
    assert asyncio.run(do_nothing(domain, LENT)).reward == 0.0
    assert check_tasks(domain, [LENT]) == 0
    unmarked = Task("u", "slow", "", (Action("peep", {"book": "b"}),))
    with pytest.raises(DataError, match="is undone, since the tool is not marked"):
        check_tasks(domain, [unmarked])
    with pytest.raises(DataError, match="raises ValueError: it is not allowed"):
        check_tasks(domain, [Task("f", "slow", "", (Action("lend", {"book": "b", "fail": True}),))])


def test_plain_code_may_call_them_too() -> None:
    world = Slow().world()
    assert call(world, "get", book="b").content == '{"title": "Emma", "lent": false}'
    assert call(world, "lend", book="b", fail=True).content == "Error: it is not allowed"
    assert '"lent": false' in call(world, "get", book="b").content, "undone, as with any write that raises"
    assert "must be a string" in call(world, "get", book=3).content and "no tool" in call(world, "gte").content
    assert call(world, "lend", book="b").content == "lent"
    assert [c.name for c in world.writes] == ["lend"]
    with pytest.raises(InfrastructureError):
        call(world, "down")
    assert call(world, "plain").content == "7"


async def test_also_where_an_event_loop_runs() -> None:
    world = Slow().world(LENT)
    assert call(world, "lend", book="b").content == "lent"
    assert (await world.acall("assistant", ToolCall("1", "get", {"book": "b"}))).content.endswith("true}")
    assert (await world.acall("assistant", ToolCall("1", "plain"))).content == "7"
    assert gold_digest(world.domain, LENT) == world.digest()


async def test_a_call_that_is_cancelled_is_undone() -> None:
    world = Slow().world()
    before = world.digest()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(world.acall("assistant", ToolCall("1", "hang")), 0.01)
    assert world.digest() == before and not world.writes
    assert (await world.acall("assistant", ToolCall("1", "lend", {"book": "b"}))).content == "lent"


async def test_a_history_of_such_calls_is_done_before_an_episode_begins() -> None:
    said = ToolCall("1", "lend", {"book": "b"})
    history: tuple[Message, ...] = (Message("user", "Lend me Emma."), Message("assistant", None, (said,)))
    history += (Message("tool", "lent", tool_call_id="1"), Message("assistant", "Done."))
    task = Task("h", "slow", "", (), history=history)
    world = Slow().world(task)
    await run_episode(task, world, Says(), ScriptedUser(["Bye. ###STOP###"]))
    assert '"lent": true' in (await world.acall("assistant", ToolCall("2", "get", {"book": "b"}))).content
