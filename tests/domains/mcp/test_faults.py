"""What becomes of an episode whose MCP server misbehaves: a clear reason, and the run goes on."""

from __future__ import annotations

import asyncio

import pytest

from muarl.agents.base import AgentTurn
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.mcp.client import ServerError
from muarl.domains.mcp.domain import discover
from muarl.domains.mcp.launch import over_http, over_stdio
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import StopReason, Verdict
from muarl.users.base import UserTurn
from support.mcp import call, faulty, needs_sdk, task
from support.waiting import until

pytestmark = needs_sdk


def broken(mode: str, tool: str = "break_write", **more) -> str:
    """The error of a call that breaks the server; a fresh world of the same domain then works."""
    domain = faulty(mode, **more)
    world = domain.world(task())
    try:
        with pytest.raises(InfrastructureError) as caught:
            call(world, tool)
        assert caught.value.boundary == "world" and caught.value.retryable
    finally:
        world.close()
    after = domain.world(task("whole"))
    assert call(after, "look").content == "whole"
    after.close()
    return str(caught.value)


def test_a_server_that_dies_is_told_with_its_exit_code_and_last_words():
    text = broken("die")
    assert text == (
        "the MCP server faulty broke off in break_write: it died (exit code 3); it last said: Traceback: out of cheese"
    )


def test_a_server_that_hangs_is_ended_after_the_time_for_a_call():
    assert broken("hang", call=0.5).endswith("no answer within 0.5 s")


@pytest.mark.parametrize("mode", ["flood", "lines", "noise"])
def test_a_server_that_floods_is_cut_off(mode):
    assert "floods" in broken(mode)


def test_a_server_that_talks_on_its_standard_output_is_cut_off_and_a_banner_is_let_pass():
    assert "writes something other than messages to its standard output: 'not json'" in broken("garbage")
    world = faulty("banner").world(task("fine"))
    assert call(world, "look").content == "fine"
    world.close()


def test_a_result_that_is_none_is_the_servers_failure():
    assert "failed in break_write: ValidationError" in broken("nonsense")


def test_a_server_that_changes_its_tools_loses_the_episode():
    domain = faulty("change")
    world = domain.world(task())
    assert call(world, "break").content == "changed"
    until(lambda: world._place.connection.stale)
    with pytest.raises(ServerError, match="changed its tools: the tool look takes other arguments than before"):
        call(world, "put", text="x")
    world.close()
    after = domain.world(task("again"))
    assert call(after, "look").content == "again"
    after.close()


def test_tools_that_change_between_episodes_are_noticed_too():
    domain = faulty("quiet-change")
    domain.lay_out = lambda database, folder: (folder / "listed").touch() if domain._offered else None
    first = domain.world(task())
    assert not call(first, "pid").error
    first.close()
    second = domain.world(task())
    with pytest.raises(ServerError, match="the tool look is gone"):
        call(second, "pid")
    second.close()


def test_a_server_that_never_says_hello_is_given_up():
    with pytest.raises(ServerError, match="did not say hello within 0.5 s"):
        faulty("mute", start=0.5).tool_names()


def test_a_program_that_is_missing_or_no_server_is_told():
    with pytest.raises(ServerError, match="is missing: there is no program '/nowhere/program' that can be run"):
        discover(over_stdio("lost", "/nowhere/program"))
    with pytest.raises(ServerError, match=r"could not be started: it died \(exit code 1\)"):
        discover(over_stdio("no-server", "false"))
    with pytest.raises(ServerError, match="could not be started"):
        discover(over_http("nobody", "http://127.0.0.1:9/mcp"))


def test_a_check_tells_what_is_missing_before_anything_is_played():
    domain = faulty()
    domain.check()
    domain.missing = lambda: "the server is not installed: run this"
    with pytest.raises(ConfigError, match="faulty: the server is not installed: run this"):
        domain.check()


def test_a_read_is_asked_again_of_a_new_process_over_the_same_files():
    domain = faulty("once:die")
    world = domain.world(task("kept"))
    call(world, "put", text="changed")
    before = call(world, "pid").content
    assert call(world, "break").content == "mended"
    assert call(world, "look").content == "changed"
    assert call(world, "pid").content != before
    world.close()


def test_a_write_is_never_asked_again():
    world = faulty("once:die").world(task())
    with pytest.raises(ServerError, match="died"):
        call(world, "break_write")
    world.close()


def test_state_in_a_servers_memory_cannot_be_had_back():
    world = faulty("once:die", keeps="process").world(task())
    with pytest.raises(ServerError, match="died"):
        call(world, "break")
    world.close()


def test_where_agents_can_keep_a_server_busy_a_slow_read_is_an_answer():
    world = faulty("once:hang", call=0.5, slow_reads="answer").world(task("kept"))
    slow = call(world, "break")
    assert slow.error and slow.content == "Error: break took longer than 0.5 seconds and was stopped"
    assert call(world, "look").content == "kept"
    world.close()


class _Agent:
    """Calls a tool that breaks the server in every second episode."""

    name = "breaker"

    def open(self, system, tools, *, seed, session):
        number = session.partition("#")[2][0]
        return _Session("break_write" if number in "13" else "put")


class _Session:
    tokens = None

    def __init__(self, tool):
        self.tool, self.done = tool, False

    async def act(self, new):
        if self.done:
            return AgentTurn(Message("assistant", "Done."))
        self.done = True
        arguments = {"text": "x"} if self.tool == "put" else {}
        return AgentTurn(Message("assistant", None, (ToolCall("1", self.tool, arguments),)))

    def close(self):
        pass


class _User:
    def __init__(self):
        self.said = 0

    async def reply(self, conversation):
        self.said += 1
        return UserTurn(Message("user", "Please." if self.said == 1 else "###STOP###"))


def _users(task, *, seed):
    return _User()


_users.name = "two words"


def test_a_run_goes_on_without_the_episodes_that_its_server_lost():
    domain = faulty("die", places=2)
    runner = EpisodeRunner(
        make_world=domain.world,
        agent=_Agent(),
        make_user=_users,
        score=lambda task, world, episode: Verdict(1.0),
        retries=1,
        backoff=0.01,
    )
    episodes = asyncio.run(rollout(requests_for([task()], 4, seed=0), LocalExecutor(runner.play))).episodes
    assert [e.stop for e in episodes] == [StopReason.USER_STOP, StopReason.INFRASTRUCTURE] * 2
    lost = episodes[1]
    assert lost.error.startswith("world: the MCP server faulty") and "out of cheese" in lost.error
    assert lost.tags["boundary"] == "world" and lost.tags["attempts"] == 2
