"""Episodes on an MCP server that behaves: tools, folders, processes, state, and how places are shared."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.database import Database
from muarl.domains.mcp import pipes, pool
from muarl.domains.mcp.domain import McpDomain
from muarl.domains.mcp.folders import folder_state, inside
from muarl.domains.mcp.launch import Launch, ServerLimits, over_http, over_stdio
from muarl.domains.mcp.tools import OfferedTool
from muarl.domains.tasks import Action, Task
from muarl.rewards import outcome
from muarl.types.chat import ToolCall
from muarl.types.episode import StopReason
from support.mcp import Faulty, call, faulty, needs_sdk, task
from support.waiting import alive, until

pytestmark = needs_sdk


@pytest.fixture(scope="module")
def domain():
    return faulty()


@pytest.fixture
def world(domain):
    made = domain.world(task("hello"))
    yield made
    made.close()


def test_the_agent_gets_the_servers_tools(domain):
    assert domain.tool_names() == (
        "look", "put", "fail", "big", "picture", "structured", "pid", "break", "break_write",
    )  # fmt: skip
    assert domain.tool_specs("user") == () and domain.tool_names("user") == ()
    put = domain.tool_specs()[1]
    assert put.description == "Put." and put.parameters["required"] == ["text"]
    assert [domain.kind_of(n) for n in ("look", "put", "break_write")] == ["read", "write", "write"]
    with pytest.raises(KeyError):
        domain.kind_of("nothing")


def test_what_is_wrong_with_a_call_is_an_answer(world):
    assert call(world, "put").content == "Error: put: missing argument 'text'. Arguments: text."
    assert call(world, "put", text=1).content == "Error: put: argument 'text' must be a string, not a whole number (1)."
    assert "there is no tool 'eat'. Tools: look, put" in call(world, "eat").content
    unread = world.call("assistant", ToolCall("c", "put", {}, invalid="no JSON"))
    assert unread.error and unread.content == "Error: the tool call could not be read: no JSON"
    assert "Tools: none" in world.call("user", ToolCall("c", "look", {})).content
    failed = call(world, "fail")
    assert failed.error and failed.content == "it does not work"
    assert world.writes == []


def test_answers_are_text_and_no_longer_than_the_bound(world):
    assert call(world, "big").content == "z" * 1000 + "\n[cut here: 5000 characters in all, the first 1000 are shown]"
    assert call(world, "picture").content == "[image image/png, 4 characters of base64]"
    assert call(world, "structured").content == '{"a": 1}'


def test_the_agent_never_sees_where_its_folder_is(domain):
    world = domain.world(task())
    assert call(world, "look").content == "nothing in /files"
    world.close()


def test_state_is_what_the_folder_holds(domain, world):
    other = domain.world(task("hello"))
    assert world.digest() == other.digest()
    call(world, "put", text="changed")
    assert [c.name for c in world.writes] == ["put"]
    assert world.digest() != other.digest() == domain.world(task("hello")).digest()
    call(world, "put", text="hello")
    assert world.digest() == other.digest()
    other.close()


def test_a_process_serves_one_episode_after_the_other_each_in_a_fresh_folder():
    domain = faulty(reuse=2)
    pids = []
    for _ in range(3):
        world = domain.world(task())
        assert call(world, "look").content == "nothing in /files"
        call(world, "put", text="left behind")
        pids.append(call(world, "pid").content)
        world.close()
    assert pids[0] == pids[1] != pids[2]


def test_a_server_that_keeps_state_in_its_memory_gets_a_process_for_every_episode():
    domain = faulty(keeps="process")
    pids = set()
    for _ in range(2):
        world = domain.world(task())
        pids.add(call(world, "pid").content)
        world.close()
    assert len(pids) == 2


def test_episodes_at_the_same_time_have_processes_of_their_own_up_to_the_bound():
    domain = faulty(places=2)

    async def episode(number):
        world = domain.world(task())
        await world.aopen()
        await asyncio.sleep(0.1)
        (pid,) = [r.content async for r in world.answers("assistant", [ToolCall("c", "pid", {})])]
        await world.aclose()
        return pid

    async def several():
        return await asyncio.gather(*(episode(n) for n in range(5)))

    assert len(set(asyncio.run(several()))) == 2


def test_the_calls_of_a_message_are_answered_in_order(world):
    async def ask():
        calls = [ToolCall("a", "put", {"text": "one"}), ToolCall("b", "look", {}), ToolCall("c", "eat", {})]
        return [r.content async for r in world.answers("assistant", calls)]

    put, look, eat = asyncio.run(ask())
    assert (put, look) == ("put", "one") and "no tool" in eat


def test_gold_actions_are_replayed_beside_the_episode_even_when_all_places_are_taken():
    domain = faulty(places=1)
    gold = Task("g", "faulty", "", (Action("put", {"text": "x"}),), database=Database({}))

    async def play(acts):
        world = domain.world(gold)
        await world.aopen()
        if acts:
            async for _ in world.answers("assistant", [ToolCall("c", "put", {"text": "x"})]):
                pass
        verdict = await outcome.score(gold, world, [], StopReason.USER_STOP)
        await world.aclose()
        return verdict.reward

    assert asyncio.run(play(True)) == 1.0 and asyncio.run(play(False)) == 0.0
    assert asyncio.run(outcome.do_nothing(domain, gold)).reward == 0.0
    assert outcome.gold_digest(domain, gold) == outcome.gold_world(domain, gold).digest()


def test_a_world_that_is_forgotten_gives_its_place_back():
    domain = faulty(places=1)
    lost = domain.world(task())
    pid = int(call(lost, "pid").content)
    del lost
    gc.collect()
    world = domain.world(task())
    assert int(call(world, "pid").content) != pid
    world.close()


def test_a_closed_world_cannot_be_used(domain):
    world = domain.world(task())
    world.close()
    with pytest.raises(InfrastructureError, match="closed already"):
        call(world, "look")


def test_a_process_that_was_killed_between_episodes_is_replaced():
    domain = faulty()
    world = domain.world(task())
    pid = int(call(world, "pid").content)
    world.close()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid))
    again = domain.world(task("there"))
    assert call(again, "look").content == "there"
    again.close()


def test_an_episode_that_is_cancelled_in_a_call_takes_its_server_with_it():
    domain = faulty("hang", call=30)

    async def cancelled():
        world = domain.world(task())
        await world.aopen()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(world.answers("assistant", [ToolCall("c", "break", {})])), 0.3)
        await world.aclose()

    asyncio.run(cancelled())
    world = domain.world(task("next"))
    assert call(world, "look").content == "next"
    world.close()


def test_shutting_down_ends_the_processes_and_removes_their_folders(domain):
    world = domain.world(task())
    call(world, "look")
    root = world._place.root
    world.close()
    pool.shut_down()
    until(lambda: not root.exists() and not pipes.running)


def test_folders_of_programs_that_were_killed_are_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(pool.tempfile, "gettempdir", lambda: str(tmp_path))
    dead, alive = tmp_path / "muarl-mcp-999999999-x", tmp_path / f"muarl-mcp-{os.getpid()}-y"
    dead.mkdir()
    alive.mkdir()
    pool._sweep()
    assert not dead.exists() and alive.exists()


def test_blocking_on_the_servers_own_thread_is_refused():
    async def inside_the_thread():
        work = asyncio.sleep(0)
        try:
            pool.waited_for(work)
        finally:
            work.close()

    with pytest.raises(RuntimeError, match="never end"):
        pool.hand_over(inside_the_thread()).result()


def test_offers_choose_rename_and_fill_in():
    chosen = Faulty(
        launch=faulty().server,
        offers=[OfferedTool("put", named="write", fixed={"text": "{folder}"}), OfferedTool("look", kind="generic")],
    )
    assert chosen.tool_names() == ("write", "look") and chosen.kind_of("look") == "generic"
    assert chosen.tool_specs()[0].parameters == {"type": "object", "properties": {}, "required": []}
    world = chosen.world(task())
    call(world, "write")
    assert call(world, "look").content == "/files"
    assert world._place.folder.joinpath("state.txt").read_text() == str(world._place.folder)
    world.close()
    with pytest.raises(ConfigError, match="faulty has no tool 'eat'; it has look"):
        Faulty(launch=faulty().server, tools=["eat"]).tool_names()


def test_the_agents_name_for_its_folder_is_put_right_in_arguments(domain):
    world = domain.world(task())
    call(world, "put", text="/files/notes")
    assert world._place.folder.joinpath("state.txt").read_text() == f"{world._place.folder}/notes"
    call(world, "put", text="/filesystem /files")
    assert call(world, "look").content == "/filesystem /files"
    world.close()


def test_a_task_cannot_write_outside_its_folder(domain, tmp_path):
    with pytest.raises(ConfigError, match="leads out of the episode's folder"):
        inside(tmp_path, "../x")
    with pytest.raises(ConfigError, match="leads out"):
        inside(tmp_path, "/etc/passwd")
    outside = Task("t", "faulty", "", (), database=Database({"files": {"../../x": {"text": ""}}}))
    world = domain.world(outside)
    with pytest.raises(ConfigError, match="leads out"):
        call(world, "look")
    world.close()


def test_the_state_of_a_folder_tells_text_bytes_links_and_empty_folders_apart(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.txt").write_text("x")
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
    (tmp_path / "c").symlink_to("/etc/passwd")
    found = folder_state(tmp_path)
    assert found["a/"] == {} and found["a/x.txt"] == {"text": "x"} and found["c"] == {"link": "/etc/passwd"}
    assert set(found["b.bin"]) == {"sha256"}


def test_bad_launches_are_told():
    with pytest.raises(ConfigError, match="either a command or a url"):
        Launch("x")
    with pytest.raises(ConfigError, match="must begin with http"):
        over_http("x", "ftp://a")
    with pytest.raises(ConfigError, match="reuse must be at least 1"):
        over_stdio("x", "true", reuse=0)
    with pytest.raises(ConfigError, match="must be positive"):
        ServerLimits(call=0)
    with pytest.raises(ConfigError, match="needs a launch"):
        McpDomain(policy="none")
    assert over_stdio("x", "true", keeps="folder", reuse=7).episodes == 7
    assert over_stdio("x", "true").episodes == over_http("x", "http://a").episodes == 1


def test_a_server_gets_no_keys_from_the_environment(monkeypatch, tmp_path):
    from muarl.domains.mcp.launch import environment

    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    found = environment(over_stdio("x", "true", env={"A": "{folder}/b"}), tmp_path, tmp_path / "home")
    assert "secret" not in found.values()
    assert found["A"] == f"{tmp_path}/b" and found["HOME"] == str(tmp_path / "home")


def test_without_the_sdk_the_remedy_is_told(monkeypatch):
    from muarl.domains.mcp import sdk

    monkeypatch.setattr(sdk, "find_spec", lambda name: None)
    assert not sdk.available()
    with pytest.raises(ConfigError, match=r"pip install 'muarl\[mcp\]'"):
        sdk.sdk("mcp")
