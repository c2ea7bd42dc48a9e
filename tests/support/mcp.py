"""What the tests of MCP domains share: the faulty server as a domain, and scenarios played by their experts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from muarl.agents.base import Agent
from muarl.audit.figures import audit
from muarl.chat import ToolCall, ToolResult
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Task
from muarl.domains.database import Database
from muarl.domains.generated import generated
from muarl.domains.mcp import servers
from muarl.domains.mcp.domain import McpDomain, McpWorld
from muarl.domains.mcp.launch import Bounds, over_stdio
from muarl.domains.mcp.sdk import available
from muarl.episode import Episode
from muarl.recipes.setting import GENERATED_RULES
from muarl.rewards import outcome
from muarl.rollout import LocalExecutor, Player, requests_for, rollout
from muarl.users.agenda import AgendaUserFactory

FAULTY = Path(__file__).parent / "faulty_mcp.py"
needs_sdk = pytest.mark.skipif(not available(), reason="the mcp package is not installed: pip install 'mcp>=2.3,<3'")


def needs_server(name: str) -> None:
    """Skip the test where one of the public servers is not installed, saying so."""
    if not available():
        pytest.skip("the mcp package is not installed: pip install 'mcp>=2.3,<3'")
    missing = servers.server(name.removeprefix("mcp-")).missing()
    if missing is not None:
        pytest.skip(missing)


class Faulty(McpDomain):
    """The faulty server as a domain."""

    name: ClassVar[str] = "faulty"
    policy = "Be careful."


def faulty(mode: str = "ok", *, call: float = 5.0, start: float = 10.0, output: int = 1000, **more: Any) -> Faulty:
    """The domain with a server in one of its modes; each call has a pool of its own."""
    bounds = Bounds(start=start, call=call, output=output, wire=1 << 20)
    options = {"keeps": "folder", **more}
    places = options.pop("places", 0)
    env = {"MARK": str(object())}  # no pool is shared with another test
    launch = over_stdio("faulty", sys.executable, str(FAULTY), mode, "{folder}", env=env, bounds=bounds, **options)
    return Faulty(launch=launch, places=places)


def task(text: str | None = None) -> Task:
    """A task whose folder holds state.txt with this text."""
    files = {} if text is None else {"state.txt": {"text": text}}
    return Task("t", "faulty", "", (), database=Database({"files": files}))


def call(world: McpWorld, name: str, **arguments: Any) -> ToolResult:
    """One call by the assistant."""
    return world.call("assistant", ToolCall("c", name, arguments))


def play(
    name: str, agent: Agent, tasks: Sequence[Task], size: str = "tiny", *, seed: int = 1, concurrency: int = 8
) -> list[Episode]:
    """One scored and audited episode of every task of a scenario."""
    domain = generated(name).domain(size)
    player = Player(
        make_world=domain.world,
        agent=agent,
        make_user=AgendaUserFactory(seed=seed),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        audit=lambda task, world, episode: audit(episode, task, domain.kind_of, AuditRules()),
        rules=GENERATED_RULES,
        retries=0,
    )
    played = rollout(requests_for(tasks, 1, seed=0), LocalExecutor(player.play, concurrency))
    return asyncio.run(played).episodes
