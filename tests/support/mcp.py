"""What the tests of MCP domains share: the faulty server as a domain, and scenarios played by their experts."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from muarl.agents.base import Agent
from muarl.audit.metrics import audit
from muarl.domains.database import Database
from muarl.domains.mcp import servers
from muarl.domains.mcp.domain import McpDomain, McpWorld
from muarl.domains.mcp.launch import ServerLimits, over_stdio
from muarl.domains.mcp.sdk import available
from muarl.domains.tasks import Task
from muarl.environments.environment import GENERATED_RULES
from muarl.environments.registry import find
from muarl.rewards import outcome
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.chat import ToolCall, ToolResult
from muarl.types.episode import Episode
from support.environments import users_of

FAULTY = Path(__file__).parent / "faulty_mcp.py"
_marks = itertools.count()
needs_sdk = pytest.mark.skipif(not available(), reason="the mcp package is not installed: pip install '.[mcp]'")


def needs_server(name: str) -> None:
    """Skip the test where one of the public servers is not installed, saying so."""
    if not available():
        pytest.skip("the mcp package is not installed: pip install '.[mcp]'")
    missing = servers.server(name.removeprefix("mcp-")).missing()
    if missing is not None:
        pytest.skip(missing)


class Faulty(McpDomain):
    """The faulty server as a domain."""

    name: ClassVar[str] = "faulty"
    policy = "Be careful."


def faulty(mode: str = "ok", *, call: float = 5.0, start: float = 10.0, output: int = 1000, **more: Any) -> Faulty:
    """The domain with a server in one of its modes; each call has a pool of its own."""
    bounds = ServerLimits(start=start, call=call, output=output, wire=1 << 20)
    options = {"keeps": "folder", **more}
    places = options.pop("places", 0)
    env = {"MARK": str(next(_marks))}  # no pool is shared with another test
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
    domain, rules = find(name).make_domain(size), find(name).audit_rules()
    runner = EpisodeRunner(
        make_world=domain.world,
        agent=agent,
        make_user=users_of(name, seed=seed),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        audit=lambda task, world, episode: audit(episode, task, domain.kind_of, rules),
        rules=GENERATED_RULES,
        retries=0,
    )
    played = rollout(requests_for(tasks, 1, seed=0), LocalExecutor(runner.play, concurrency))
    return asyncio.run(played).episodes
