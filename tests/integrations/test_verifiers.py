"""verifiers' own evaluation of muarl's tasks: by vf-eval, exact rewards, limits, failures as its own errors."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("verifiers.v1", reason="verifiers is not installed: pip install 'muarl[verifiers]'")

import verifiers.v1 as vf

from muarl.types.chat import Message
from muarl.types.episode import Episode
from muarl_integrations.turn_values import turn_values
from muarl_integrations.verifiers import (
    MuarlEnvConfig,
    MuarlHarnessConfig,
    MuarlState,
    MuarlTaskset,
    MuarlTasksetConfig,
)
from support.fake_openai import FakeOpenAI, call, completion, status, text
from support.page_examples import example_of
from support.scripted_replies import Outcome, Replies, natively, stub
from support.trainers import AS_NATIVELY, Told

ID = "muarl-verifiers"


@asynccontextmanager
async def served(taskset: Mapping[str, Any], harness: Mapping[str, Any] = {}, **agent: Any) -> AsyncIterator[vf.Env]:
    """The environment as vf-eval and prime-rl's workers make it."""
    role = vf.AgentConfig(runtime=vf.SubprocessConfig(), harness=MuarlHarnessConfig(id=ID, **harness), **agent)
    config = MuarlEnvConfig(taskset=MuarlTasksetConfig(id=ID, **taskset), agent=role)
    env = vf.load_environment(config)
    async with env.serving():
        yield env


async def played(env: vf.Env, task: vf.Task, server: FakeOpenAI, model: str = "m") -> vf.Episode:
    client = vf.EvalClientConfig(base_url=server.url, api_key_var="NO_KEY")
    return await env.run_episode(task, vf.ModelContext(model=model, client=client))


async def check_equal(
    taskset: Mapping[str, Any], replies: Mapping[str, Sequence[Message]], native: Mapping[str, Episode], **harness: Any
) -> None:
    with FakeOpenAI(stub(replies)) as server:
        async with served(taskset, {"seed": 3, **harness}) as env:
            tasks = {task.data.name: task for task in env.taskset}
            assert tasks.keys() == native.keys()
            for name, task in tasks.items():
                (trace,) = (await played(env, task, server, model=name)).traces
                outcome, found = Outcome.of(native[name]), trace.state.result
                if outcome.stop == "infrastructure":
                    assert not trace.ok and trace.rewards == {} and trace.last_error.type == "HarnessError"
                    continue
                assert trace.ok and trace.reward == outcome.reward == trace.rewards["success"].value
                assert trace.metrics == outcome.parts
                assert (found["parts"], found["stop"]) == (outcome.parts, outcome.stop)
                heard = [m for m in found["messages"] if m["role"] in ("user", "tool")]
                said = [(m.role, m.content) for m in native[name].messages if (m.role == "user" and not m.tool_calls)
                        or (m.role == "tool" and m.requestor == "assistant")]  # fmt: skip
                assert [(m["role"], m["content"]) for m in heard] == said
                assert len(trace.branches) == 1 or any(c.invalid for m in replies[name] for c in m.tool_calls)


@AS_NATIVELY
async def test_the_same_replies_give_the_same_as_natively(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = {}
    if told.means:
        monkeypatch.setattr("muarl_integrations.conversations.named_users", lambda *_, **__: told.means["users"])
        harness = {"judge": "pass"}
    native = await asyncio.to_thread(natively, told.environment, told.tasks, Replies(told.replies), 3, **told.means)
    told.check(Counter(Outcome.of(episode).reward for episode in native.values()))
    taskset = {"environment": told.environment.name, "split": told.split, "count": len(told.tasks)}
    await check_equal(taskset, told.replies, native, **harness)


async def test_failures_have_the_errors_of_verifiers_and_no_reward() -> None:
    taskset = {"count": 1}
    with FakeOpenAI(status(500, message="out of order")) as agent:
        async with served(taskset, {"retries": 0}) as env:
            (task,) = env.taskset
            (trace,) = (await played(env, task, agent)).traces
    assert not trace.ok and trace.rewards == {} and trace.last_error.type == "ProviderError"
    assert "out of order" in trace.last_error.message and trace.last_error.status_code == 500
    with FakeOpenAI(text("Hello.")) as agent, FakeOpenAI([text("Hi."), status(401)]) as user:
        async with served(taskset, {"user": f"endpoint:u@{user.url}"}) as env:
            (task,) = env.taskset
            (trace,) = (await played(env, task, agent)).traces
    assert not trace.ok and trace.rewards == {} and trace.last_error.type == "ProviderError"
    assert trace.last_error.message.startswith("user: ") and "refuses the API key" in trace.last_error.message


async def test_limits_of_verifiers_end_a_conversation_with_0() -> None:
    with FakeOpenAI(completion(tool_calls=[call("find_order", {})])) as agent:
        async with served({"count": 1}, max_turns=2) as env:
            (task,) = env.taskset
            (trace,) = (await played(env, task, agent)).traces
    assert trace.ok and trace.reward == 0.0 and trace.stop_condition == "max_turns" and trace.num_turns == 2
    too_long = status(400, message="This model's maximum context length is 4096 tokens", code="context_length_exceeded")
    with FakeOpenAI([text("Hello."), too_long]) as agent:
        async with served({"count": 1}) as env:
            (task,) = env.taskset
            (trace,) = (await played(env, task, agent)).traces
    assert trace.ok and trace.reward == 0.0 and trace.state.result["stop"] == "context_full"


async def test_thoughts_go_back_as_they_came_so_that_the_trace_has_one_branch() -> None:
    said = [completion("Let me see.", reasoning_content="Which one?"), text("Goodbye.")]
    with FakeOpenAI(said) as agent:
        async with served({"count": 1}) as env:
            (task,) = env.taskset
            (trace,) = (await played(env, task, agent)).traces
    assert trace.num_turns > 1 and len(trace.branches) == 1
    assert agent.bodies[1]["messages"][2]["reasoning_content"] == "Which one?"
    assert "seed" not in agent.bodies[0], "sampling is verifiers'"


async def test_what_the_state_was_worth_after_each_message_is_where_prime_rl_looks() -> None:
    turn_values.cache_clear()
    with FakeOpenAI([*[text("Hello.")] * 2, text("Goodbye.")]) as agent:
        async with served({"count": 1}) as env:
            (task,) = env.taskset
            told = [(await played(env, task, agent)).traces[0] for _ in range(2)]
    first, second = (trace.info["turn_rewards"] for trace in told)
    # Nothing is known in the first conversation; in the second, that the first came to nothing. The end is the reward.
    assert len(first) == told[0].num_turns and first == [*[None] * (len(first) - 1), 0.0]
    assert len(second) == told[1].num_turns and 0.0 in second[:-1] and {*second} <= {0.0, None}


async def test_a_system_prompt_of_verifiers_takes_the_place_of_muarls(tmp_path: Path) -> None:
    (tmp_path / "better.txt").write_text("Be brief.")
    with FakeOpenAI(text("Goodbye.")) as agent:
        async with served({"count": 1, "system_prompt": tmp_path / "better.txt"}) as env:
            (task,) = env.taskset
            await played(env, task, agent)
    assert agent.bodies[0]["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_rollouts_have_users_of_their_own_unless_told_otherwise() -> None:
    async def first_words(**harness: Any) -> list[str]:
        with FakeOpenAI(text("Goodbye.")) as agent:
            async with served({"count": 1}, harness) as env:
                (task,) = env.taskset
                for _ in range(6):
                    await played(env, task, agent)
        return [b["messages"][1]["content"] for b in agent.bodies if len(b["messages"]) == 2]

    assert len(set(await first_words())) > 1 and len(set(await first_words(user_seed=4))) == 1


async def test_tasks_need_this_harness() -> None:
    (task,) = MuarlTaskset(MuarlTasksetConfig(id=ID, count=1))
    trace = SimpleNamespace(state=MuarlState(), metrics={}, rewards={})
    with pytest.raises(vf.TaskError, match="need the harness muarl-verifiers"):
        await task.score(trace)


async def test_the_example_of_the_page_runs(repository: Path, tmp_path: Path) -> None:
    page = example_of(repository / "docs" / "integrations" / "verifiers.md", tmp_path)
    with FakeOpenAI(text("I cannot help you.")) as server:
        found = await page.rewards(server.url, "m")
    assert len(found) == 3 and set(found) <= {0.0, 1.0}


def test_vf_eval_loads_and_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verifiers.v1.cli.eval.main import main

    with FakeOpenAI(text("I cannot help you.")) as server:
        run = f"{ID} -m stub --env.taskset.split test --env.taskset.count 3 --client.base-url {server.url}"
        arguments = [*run.split(), "--no-push", "--no-rich", "-o", str(tmp_path), "--run.name", "first"]
        monkeypatch.setattr(sys, "argv", ["vf-eval", *arguments])
        main()
    records = [json.loads(line) for line in (tmp_path / "first" / "traces.jsonl").read_text().splitlines()]
    traces = [trace for record in records for trace in record.get("traces", [record])]
    assert len(traces) == 3 and all(trace["ok"] for trace in traces)
    assert {trace["rewards"]["success"]["score"] for trace in traces} <= {0.0, 1.0}
    assert {trace["task"]["data"]["address"] for trace in traces} == {f"retail-generated:test:{n}" for n in range(3)}
