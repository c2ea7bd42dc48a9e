"""Domains offered as MCP servers, used by our own client."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from types import SimpleNamespace

import pytest

from muarl.agents.idle import IdleAgent
from muarl.basics.errors import ConfigError, MuarlError
from muarl.domains.base import Domain
from muarl.domains.database import Database
from muarl.domains.mcp import pool
from muarl.domains.mcp.client import ServerError
from muarl.domains.mcp.domain import McpDomain, discover
from muarl.domains.mcp.launch import ServerLimits, over_http, over_stdio
from muarl.domains.mcp.serve import DomainServer, SessionEndedError, serve_http
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.environments.registry import find
from muarl.rewards import outcome
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.chat import ToolCall
from muarl.types.episode import StopReason, Verdict
from muarl.users.scripted import ScriptedUserFactory
from support.mcp import needs_sdk

pytestmark = needs_sdk
TOKEN = "open-sesame"


class Bell(Domain):
    """A bell."""

    name = "bell"
    policy = "Ring once."
    database = {"bells": {"b1": {"rings": 0}}}

    @tool(writes=True)
    def ring(self, bell: str) -> int:
        """Ring a bell.

        bell: its number.
        """
        self.db.bells[bell]["rings"] += 1
        return self.db.bells[bell]["rings"]

    @tool
    def count(self, bell: str) -> int:
        """Say how often a bell was rung."""
        return self.db.bells[bell]["rings"]


class Remote(McpDomain):
    """The bell, from afar."""

    name = "remote"
    policy = "none"


@contextlib.contextmanager
def served(domain, task=None, **options):
    """The address of a domain that is served from a thread."""
    box = DomainServer(domain, task, **options)
    loop = pool._background().loop  # any loop that runs in another thread will do
    ready = asyncio.run_coroutine_threadsafe(_event(), loop).result()
    job = asyncio.run_coroutine_threadsafe(_serve(box, ready), loop)
    address = asyncio.run_coroutine_threadsafe(_address(ready), loop).result(20)
    try:
        yield box, address
    finally:
        loop.call_soon_threadsafe(job.cancel)
        with contextlib.suppress(BaseException):
            job.result(10)


async def _event():
    return asyncio.get_running_loop().create_future()


async def _address(ready):
    return await ready


async def _serve(box, ready):
    await serve_http(box, host="127.0.0.1", port=0, token=TOKEN, ready=ready.set_result)


@pytest.fixture(scope="module")
def bell():
    with served(Bell()) as found:
        yield found


@pytest.fixture
def remote(bell, monkeypatch):
    monkeypatch.setenv("BELL_TOKEN", TOKEN)
    return Remote(launch=over_http("bell", bell[1], token_env="BELL_TOKEN"))


def call(world, name, **arguments):
    return world.call("assistant", ToolCall("c", name, arguments))


def test_tools_schemas_and_kinds_come_across(remote):
    assert remote.tool_names() == ("ring", "count")
    ring = remote.tool_specs()[0]
    assert ring.description == "Ring a bell." and ring.parameters["required"] == ["bell"]
    assert ring.parameters["properties"]["bell"]["description"] == "its number."
    assert remote.kind_of("ring") == "write" and remote.kind_of("count") == "read"


async def test_the_server_says_which_version_it_is():
    from mcp import Client

    from muarl.basics.version import __version__

    async with Client(DomainServer(Bell()).server()) as client:
        assert (client.server_info.name, client.server_info.version) == ("muarl-bell", __version__)


def test_every_session_has_a_world_of_its_own_which_ends_with_it(bell, remote):
    first, second = remote.world(), remote.world()
    assert call(first, "ring", bell="b1").content == "1" and call(first, "ring", bell="b1").content == "2"
    assert call(second, "count", bell="b1").content == "0"
    assert len(bell[0]._worlds) == 2
    first.close()
    second.close()
    assert asyncio.run(_gone(bell[0]))


async def _gone(box):
    for _ in range(100):
        if not box._worlds:
            return True
        await asyncio.sleep(0.05)
    return False


def test_errors_come_across(remote):
    world = remote.world()
    broken = call(world, "ring", bell="b2")
    assert broken.error and broken.content.startswith("Error: ")
    world.close()


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_client_without_the_token_is_refused(bell, monkeypatch, token):
    monkeypatch.setenv("BELL_TOKEN", token)
    with pytest.raises(ServerError, match="401; is the token the right one|needs a token: set the variable BELL_TOKEN"):
        discover(over_http("bell", bell[1], token_env="BELL_TOKEN"))
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(bell[1], headers={"Authorization": token or "Basic x"}))
    assert caught.value.code == 401


@pytest.mark.parametrize("host", ["evil.example", "localhost:80@evil.example", "[::1]evil", "localhost:80,evil"])
def test_another_host_name_is_refused(bell, host):
    asked = urllib.request.Request(
        bell[1], b"{}", {"Authorization": f"Bearer {TOKEN}", "Host": host, "Content-Type": "application/json"}
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(asked)
    assert caught.value.code == 421


def test_old_sessions_make_room(monkeypatch):
    monkeypatch.setattr("muarl.domains.mcp.serve.MOST_WORLDS", 2)

    async def three():
        box = DomainServer(Bell())
        for session in (None, "a", "a", "c"):
            await box.world_of(session)
        with pytest.raises(SessionEndedError, match="this session has ended"):
            await box.world_of("a")
        return list(box._worlds)

    assert asyncio.run(three()) == [None, "c"], "those without a session cannot be told"


def test_a_session_that_made_room_is_told_and_gets_no_fresh_world(bell, remote, monkeypatch):
    monkeypatch.setattr("muarl.domains.mcp.serve.MOST_WORLDS", 1)
    first, second = remote.world(), remote.world()
    assert call(first, "ring", bell="b1").content == "1"
    assert call(second, "ring", bell="b1").content == "1"
    told = call(first, "count", bell="b1")
    assert told.error and "Session" in told.content, told
    assert call(second, "count", bell="b1").content == "1"
    first.close()
    second.close()


class SlowBell(Bell):
    """A bell whose worlds take a while to be opened, and say when they are closed."""

    def __init__(self):
        super().__init__()
        self.opened, self.closed, self.broken = [], [], False

    def world(self, task=None):
        world = SimpleNamespace()

        async def aopen():
            await asyncio.sleep(0.01)
            if self.broken:
                raise OSError("no bell today")
            self.opened.append(world)

        async def aclose():
            self.closed.append(world)

        world.aopen, world.aclose = aopen, aclose
        return world


def test_calls_at_once_that_begin_a_session_share_its_world():
    async def begin():
        domain = SlowBell()
        box = DomainServer(domain)
        first, second = await asyncio.gather(box.world_of("a"), box.world_of("a"))
        assert first is second and len(domain.opened) == 1
        waiting = asyncio.ensure_future(box.world_of("b"))
        await asyncio.sleep(0)
        await box.drop("b")
        with pytest.raises(SessionEndedError):
            await waiting
        await box.close()
        assert domain.closed == [*domain.opened[1:], domain.opened[0]]

    asyncio.run(begin())


def test_a_world_that_could_not_be_opened_is_tried_again():
    async def begin():
        domain = SlowBell()
        box = DomainServer(domain)
        domain.broken = True
        found = await asyncio.gather(box.world_of("a"), box.world_of("a"), return_exceptions=True)
        assert [type(f) for f in found] == [OSError, OSError]
        domain.broken = False
        assert await box.world_of("a") is domain.opened[0]

    asyncio.run(begin())


def test_a_side_without_tools_and_an_address_that_is_taken_are_told(bell):
    with pytest.raises(ConfigError, match="the user's side has no tools to serve"):
        DomainServer(Bell(), side="user")
    port = int(bell[1].rsplit(":", 1)[1].split("/")[0])
    with pytest.raises(ConfigError, match=f"--host 127.0.0.1 --port {port}: "):
        asyncio.run(serve_http(DomainServer(Bell()), host="127.0.0.1", port=port, token="x"))


def test_a_generated_task_is_served_with_its_own_database(monkeypatch):
    world = find("retail-generated")
    (task,) = world.make_tasks("test", 1, size="tiny")
    (look_up, *_) = task.actions
    monkeypatch.setenv("BELL_TOKEN", TOKEN)
    with served(world.make_domain("tiny"), task) as (_, address):
        remote = Remote(launch=over_http("shop", address, token_env="BELL_TOKEN")).world()
        found = call(remote, look_up.name, **look_up.arguments).content
        assert task.database is not None and found in task.database.tables["users"]
        remote.close()


@pytest.mark.slow
def test_the_command_serves_over_standard_input_and_output(repository):
    command = "import sys; sys.path.insert(0, sys.argv.pop(1)); from muarl.cli.main import main; main()"
    source = str(repository / "src")
    launch = over_stdio(
        "cli", sys.executable, "-c", command, source, "mcp", "serve", "airline-generated", "--task", "3"
    )
    domain = Remote(launch=launch)
    assert "get_reservation_details" in domain.tool_names()
    world = domain.world()
    assert call(world, "list_all_airports").content or True
    world.close()


def test_clients_without_sessions_share_one_world(bell, monkeypatch):
    """The newer handshake knows no sessions over HTTP."""
    monkeypatch.setenv("BELL_TOKEN", TOKEN)
    launch = replace(over_http("bell", bell[1], token_env="BELL_TOKEN"), handshake="discover")
    counts = []
    for _ in range(2):
        world = Remote(launch=launch).world()
        counts.append(call(world, "ring", bell="b1").content)
        world.close()
    assert counts == ["1", "2"]


class Loud(Domain):
    """A domain that answers at length."""

    name = "loud"
    policy = "none"

    @tool
    def shout(self, times: int) -> str:
        """Shout."""
        return "a" * times


def test_a_server_that_floods_over_http_is_cut_off(monkeypatch):
    monkeypatch.setenv("BELL_TOKEN", TOKEN)
    with served(Loud()) as (_, address):
        launch = over_http(
            "loud", address, token_env="BELL_TOKEN", bounds=ServerLimits(call=5, output=100, wire=1 << 20)
        )
        world = Remote(launch=launch).world()
        assert call(world, "shout", times=500).content.endswith("500 characters in all, the first 100 are shown]")
        with pytest.raises(ServerError, match="it floods: an answer of more than 1 MiB"):
            call(world, "shout", times=3 << 20)
        world.close()


def test_a_goal_whose_state_cannot_be_seen_is_told_before_anything_is_played(remote):
    goal = Task("t", "remote", "Ring.", (Action("ring", {"bell": "b1"}),))
    for begin in (lambda: remote.world(goal), lambda: remote.check([goal])):
        with pytest.raises(
            ConfigError, match=r"reached at a URL.*the goal of task t could not be checked.*state_by_tools"
        ):
            begin()
    told = rollout(requests_for([goal], 1, seed=0), LocalExecutor(_runner(remote).play))
    with pytest.raises(MuarlError, match="state_by_tools"):
        asyncio.run(told)
    remote.check([replace(goal, actions=None), replace(goal, reward_basis=("COMMUNICATE",))])
    remote.world(replace(goal, actions=None)).close()


def test_files_that_a_server_would_never_see_are_told_too(remote):
    files = Task("t", "remote", "", None, database=Database({"files": {"a.txt": {"text": "x"}}}))
    with pytest.raises(ConfigError, match="never sees the files that task t begins with: define lay_out"):
        remote.world(files)
    remote.world(replace(files, database=Database({"files": {}}))).close()


class Counted(Remote):
    """The bell, whose rings are asked of itself."""

    async def state_by_tools(self, ask):
        return {"rings": await ask("count", {"bell": "b1"})}


def test_the_state_may_be_read_by_the_servers_own_tools(bell, monkeypatch):
    monkeypatch.setenv("BELL_TOKEN", TOKEN)
    domain = Counted(launch=over_http("bell", bell[1], token_env="BELL_TOKEN"))
    goal = Task("t", "remote", "Ring.", (Action("ring", {"bell": "b1"}),))
    rewards = []
    for rings in (0, 1, 2):
        world = domain.world(goal)
        for _ in range(rings):
            call(world, "ring", bell="b1")
        verdict = asyncio.run(outcome.score(goal, world, [], StopReason.USER_STOP))
        rewards.append(verdict.reward)
        world.close()
    assert rewards == [0.0, 1.0, 0.0]


def test_a_state_that_its_tools_refuse_is_the_servers_failure(bell, monkeypatch):
    class Wrong(Remote):
        async def state_by_tools(self, ask):
            return await ask("count", {"bell": "no such bell"})

    monkeypatch.setenv("BELL_TOKEN", TOKEN)
    world = Wrong(launch=over_http("bell", bell[1], token_env="BELL_TOKEN")).world()
    with pytest.raises(ServerError, match="remote: the state cannot be read: count answers"):
        world.digest()
    world.close()


def _runner(domain):
    users = ScriptedUserFactory(["Ring."])
    return EpisodeRunner(make_world=domain.world, agent=IdleAgent(), make_user=users, score=lambda *_: Verdict(0.0))
