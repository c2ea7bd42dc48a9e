"""The four scenarios on their real servers, where those are installed (``muarl mcp install``)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.domains.mcp.tools import to_json
from muarl.domains.tasks import Action
from muarl.environments.registry import find
from muarl.rewards import outcome
from muarl.types.chat import ToolCall
from muarl.types.episode import StopReason
from support.environments import ON_SERVERS
from support.kit import made, service
from support.marks import first_of
from support.mcp import call, needs_server, play

everywhere = pytest.mark.parametrize("name", first_of(ON_SERVERS))


@everywhere
def test_the_server_has_the_tools_that_are_written_down(name):
    needs_server(name)
    domain = find(name).make_domain("medium")
    domain.check()
    found = {row["name"]: row for row in to_json(domain.ask().values())}
    written = {row["name"]: row for row in json.loads((domain.folder / "tools.json").read_text())}
    assert found == written


@everywhere
@pytest.mark.parametrize(("split", "size"), [("validation", "tiny"), ("test", "medium")])
def test_the_expert_solves_everything_and_doing_nothing_does_not(name, split, size):
    needs_server(name)
    tasks = made(name, size, split, 3)
    episodes = play(name, ExpertAgent(make=find(name).expert), tasks, size, concurrency=2)
    assert [e.reward for e in episodes] == [1.0] * len(tasks)
    audits = [e.verdict.audit for e in episodes]
    assert sum(a["writes_without_consent"] + a["tool_errors"] + a["repeated_calls"] for a in audits) == 0


def read_of(name, text):
    """What plans read of an answer, which for git is not all of it."""
    if name != "mcp-git":
        return text
    changes = re.findall(r"^Changes .*:|^\t.+", text, re.MULTILINE)
    listed = re.findall(r"^[* ] [^ ]+$|^Author: .+|^ {4}[^ ].*", text, re.MULTILINE)
    return re.findall(r"On branch .+", text), changes, listed


@everywhere
def test_the_rehearsal_answers_as_the_server_does(name):
    needs_server(name)
    domain, rehearsal = find(name).make_domain("medium"), service(name).rehearsal(policy="-")
    looked = 0
    for task in find(name).make_tasks("validation", 6, size="medium", seed=8):
        world, rehearsed = domain.world(task), rehearsal.world(task)
        before = world.digest(), rehearsed.digest()
        for action in task.actions:
            real, own = (call(one, action.name, **action.arguments) for one in (world, rehearsed))
            assert not real.error and not own.error
            if domain.kind_of(action.name) == "read":
                assert read_of(name, own.content) == read_of(name, real.content), (task.id, action)
                looked += 1
        assert (world.digest() != before[0]) == (rehearsed.digest() != before[1])
        world.close()
    assert looked >= 6


@everywhere
def test_a_server_that_is_killed_in_an_episode_is_started_again_for_a_read(name):
    needs_server(name)
    domain = find(name).make_domain("medium")
    task = next(t for t in find(name).iter_tasks("train", size="medium") if t.actions)
    read = next(a for a in task.actions if domain.kind_of(a.name) == "read")
    world = domain.world(task)
    expected = call(world, read.name, **read.arguments)
    state = world.digest()
    os.kill(world._place.connection._pipes._process.pid, signal.SIGKILL)
    assert call(world, read.name, **read.arguments) == expected
    assert world.digest() == state
    world.close()


def test_the_filesystem_server_stays_in_its_folder():
    needs_server("filesystem")
    domain = find("mcp-filesystem").make_domain("medium")
    (task,) = find("mcp-filesystem").make_tasks("train", 1, size="medium")
    world = domain.world(task)
    for path in ("/etc/passwd", "../../etc/passwd", "~/x"):
        found = call(world, "read_file", path=path)
        assert found.error and "root:" not in found.content
    assert call(world, "list_directory", path="/files").content == call(world, "list_directory", path=".").content
    world.close()


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH DATABASE '/tmp/other.db' AS other", "VACUUM INTO '/tmp/copy.db'", "DROP TABLE books", "PRAGMA foo",
        "INSERT INTO sqlite_master VALUES (1)", "SELECT 1",
    ],
)  # fmt: skip
def test_the_library_lets_nothing_through_but_changes_of_rows(query):
    needs_server("sqlite")
    world = find("mcp-sqlite").make_domain("tiny").world()
    refused = call(world, "update_database", query=query)
    assert refused.error and "give one INSERT, UPDATE or DELETE statement" in refused.content
    broken = call(world, "update_database", query="UPDATE books SET colour = 1")
    assert broken.error and broken.content.startswith("Database error: no such column")
    two = call(world, "update_database", query="UPDATE books SET shelf = 'A1'; DROP TABLE books")
    assert two.error and world.writes == []
    world.close()


@pytest.mark.slow
def test_a_query_without_end_is_stopped_and_told():
    needs_server("sqlite")
    endless = "SELECT count(*) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c)"
    world = find("mcp-sqlite").make_domain("tiny").world()
    stopped = call(world, "read_query", query=endless)
    assert stopped.error and "took longer than 10 seconds and was stopped" in stopped.content
    assert call(world, "read_query", query="SELECT 1 AS one").content == "[{'one': 1}]"
    world.close()


def test_loans_in_another_order_are_the_same_state():
    needs_server("sqlite")
    domain = find("mcp-sqlite").make_domain("medium")
    (task,) = find("mcp-sqlite").make_tasks("train", 1, size="medium")
    rows = [f"INSERT INTO loans (book_id, member_id, due) VALUES ({n}, {n}, '2026-04-01')" for n in (1, 2)]
    digests = set()
    for order in (rows, rows[::-1]):
        world = domain.world(task)
        for row in order:
            assert not call(world, "update_database", query=row).error
        digests.add(world.digest())
        world.close()
    assert len(digests) == 1


def test_a_commit_is_the_same_whenever_it_is_made():
    needs_server("git")
    domain = find("mcp-git").make_domain("medium")
    task = next(t for t in find("mcp-git").iter_tasks("train", size="medium") if t.tags["intent"] == "commit")
    hashes = set()
    for _ in range(2):
        world = domain.world(task)
        hashes.add(
            next(r.content for a in task.actions if (r := call(world, a.name, **a.arguments)) and a.name == "commit")
        )
        world.close()
    (told,) = hashes
    assert told.startswith("Changes committed successfully with hash ")


def test_scores_need_no_more_than_the_world_and_its_server():
    needs_server("memory")
    domain = find("mcp-memory").make_domain("tiny")
    task = next(t for t in find("mcp-memory").iter_tasks("train", size="tiny") if t.tags["intent"] == "note")

    async def play_gold(actions):
        world = domain.world(task)
        await world.aopen()
        try:
            for action in actions:
                async for _ in world.answers("assistant", [ToolCall("c", action.name, action.arguments)]):
                    pass
            return (await outcome.score(task, world, [], StopReason.USER_STOP)).reward
        finally:
            await world.aclose()

    assert asyncio.run(play_gold(task.actions)) == 1.0
    assert asyncio.run(play_gold(())) == 0.0
    wrong = Action("delete_entities", {"entityNames": [task.agenda["requests"][0]["goal"]["person"]]})
    assert asyncio.run(play_gold((*task.actions, wrong))) == 0.0


def test_a_server_that_is_not_installed_costs_the_episode_and_not_the_run(monkeypatch, tmp_path):
    monkeypatch.setenv("MUARL_MCP_SERVERS", str(tmp_path))
    world = find("mcp-git")
    agent = ExpertAgent(make=world.expert)
    episodes = play("mcp-git", agent, world.make_tasks("test", 2, size="tiny"))
    assert all(e.stop is StopReason.INFRASTRUCTURE for e in episodes)
    assert episodes[0].error == "world: the MCP server git is not installed: run `muarl mcp install git`"
