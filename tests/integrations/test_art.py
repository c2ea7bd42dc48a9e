"""ART's own art.tau_bench against `muarl env serve`: the same rewards and texts as natively, and failures as errors."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

pytest.importorskip("art.tau_bench", reason="openpipe-art, which needs Python 3.12, is not installed")

import art
from art import tau_bench

from muarl.basics.errors import InfrastructureError
from muarl.basics.web.addresses import listen
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.types.chat import Message
from muarl.types.episode import Episode
from muarl_tools.serve_environments.http import EnvironmentServer
from muarl_tools.serve_environments.service import EnvironmentService, ServedEnvironments
from support.fake_openai import FakeOpenAI, call, completion, text
from support.scripted_replies import Outcome, Replies, natively, readable, stub
from support.served import TOKEN, Users, toy
from support.trainers import AS_NATIVELY, Told


@asynccontextmanager
async def served(*environments: Environment, **options: Any) -> AsyncIterator[tuple[Any, EnvironmentService]]:
    """ART's client of a server on a socket."""
    service = EnvironmentService(ServedEnvironments(environments=environments, **options))
    server = EnvironmentServer(service, listen("127.0.0.1", 0), token=TOKEN, grace=0.0)
    running = asyncio.ensure_future(server.run())
    async with tau_bench.TauBenchClient(base_url=server.where.url, api_key=TOKEN) as client:
        try:
            yield client, service
        finally:
            server.stop()
            await running


async def compare(
    environment: Environment, split: str, tasks: Sequence[Task], replies: Mapping[str, Sequence[Message]], **more: Any
) -> Counter[float | None]:
    """The rewards of the tasks, whose rollouts by ART were compared with native conversations."""
    native: Mapping[str, Episode] = await asyncio.to_thread(natively, environment, tasks, Replies(replies), 3, **more)
    async with served(environment, **more) as (client, service):
        ended: dict[str, Episode] = {}
        remove = service.sessions.remove

        async def removed(held: Any) -> None:
            ended[held.session.task.id] = held.session.episode
            await remove(held)

        service.sessions.remove = removed  # type: ignore[method-assign]
        listed = await tau_bench.get_scenarios(domain=environment.name, split=split, client=client)
        scenarios = {scenario.task.id: scenario for scenario in listed}
        with FakeOpenAI(stub(replies)) as policy:
            for task in tasks:
                outcome, name = Outcome.of(native[task.id]), task.id
                rollout = tau_bench.rollout(
                    scenarios[str(task.origin.address)], policy.url, "none", name,
                    client=client, user_chat_completion_kwargs={"seed": 3},
                    chat_completion_kwargs={"max_completion_tokens": 10},
                )  # fmt: skip
                if outcome.reward is None:
                    with pytest.raises(httpx.HTTPStatusError, match="502"):
                        await rollout
                    continue
                trajectory = await rollout
                assert trajectory.reward == outcome.reward
                assert trajectory.metadata["scenario_id"] == str(task.origin.address)
                assert Outcome.of(ended[name]) == outcome
                heard = [m for m in policy.bodies[-1]["messages"] if m["role"] in ("user", "tool")]
                said = [m.content for m in native[name].messages if m.role in ("user", "tool")
                        and not m.tool_calls and not (m.role == "tool" and m.requestor == "user")]  # fmt: skip
                assert [m["content"] for m in heard] == said[: len(heard)]
    return Counter(Outcome.of(episode).reward for episode in native.values())


@AS_NATIVELY
async def test_the_same_replies_give_the_same_as_natively(told: Told) -> None:
    told.check(await compare(told.environment, told.split, told.tasks, readable(told.replies), **told.means))


async def test_failures_leave_a_trajectory_out() -> None:
    wrong = InfrastructureError("the user's server is down", boundary="user")
    async with served(toy(), users=Users("Hi.", wrong)) as (client, service):
        first, _ = await tau_bench.get_scenarios(domain="toy", split="test", client=client)
        with FakeOpenAI(text("What is it?")) as policy:
            rollout = tau_bench.rollout(first, policy.url, "none", "m", client=client)
            (problem,) = await art.gather_trajectories([rollout], max_exceptions=1)
        assert isinstance(problem, httpx.HTTPStatusError) and "the user's server is down" in str(problem)
        assert len(service.sessions) == 0, "ART has deleted it"


async def test_arts_own_limits_end_a_rollout_without_reward() -> None:
    async with served(toy(), users=Users("Hi.", "Well?", "Hm?")) as (client, service):
        first, _ = await tau_bench.get_scenarios(domain="toy", split="test", client=client)
        look = completion(tool_calls=[call("look", {"order_id": "#W12"})])
        with FakeOpenAI(look) as policy:
            trajectory = await tau_bench.rollout(first, policy.url, "none", "m", client=client, max_turns=2)
        assert trajectory.reward == 0 and trajectory.metrics["num_turns"] == 2 and len(service.sessions) == 0


async def test_calls_after_the_end_add_no_reward() -> None:
    async with served(toy(), users=Users("Cancel #W12.")) as (client, _):
        first, _ = await tau_bench.get_scenarios(domain="toy", split="test", client=client)
        over = completion(
            tool_calls=[
                call("transfer_to_human_agents", {"summary": "a"}, "a"),
                call("transfer_to_human_agents", {"summary": "b"}, "b"),
            ]
        )
        with FakeOpenAI(over) as policy:
            trajectory = await tau_bench.rollout(first, policy.url, "none", "m", client=client)
        assert trajectory.reward == 1.0 and len(policy.bodies) == 1
