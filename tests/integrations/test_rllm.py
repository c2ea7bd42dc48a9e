"""rLLM's rollout and evaluator, with a stub of its types and decorators: rLLM is in no registry."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from muarl.basics.errors import InfrastructureError
from muarl_integrations.conversations import Conversations
from support.fake_openai import FakeOpenAI, status, text

ROW = {"task": "retail-generated:test:1", "seed": 3}


class Shape(SimpleNamespace):
    """Any of rLLM's records."""


def rollout(*, name: str) -> Callable[[Any], Any]:
    return lambda function: SimpleNamespace(arun=function, name=name)


@pytest.fixture
def rllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """muarl_integrations.rllm over the stub."""

    def package(name: str, **members: Any) -> None:
        made = ModuleType(name)
        made.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, made)

    package("rllm", __path__=[], rollout=rollout, evaluator=lambda function: SimpleNamespace(evaluate=function))
    package("rllm.eval", __path__=[])
    package("rllm.eval.types", EvalOutput=Shape, Signal=Shape)
    package("rllm.types", Episode=Shape, Trajectory=Shape)
    monkeypatch.delitem(sys.modules, "muarl_integrations.rllm", raising=False)
    import muarl_integrations.rllm as module

    yield module
    sys.modules.pop("muarl_integrations.rllm", None)


def config(server: FakeOpenAI) -> Any:
    return SimpleNamespace(base_url=server.url, model="policy", session_uid="7:0")


async def test_a_rollout_leaves_its_steps_to_the_gateway_and_its_reward_to_the_evaluator(rllm: Any) -> None:
    task = SimpleNamespace(id="7", metadata=ROW)
    with FakeOpenAI(text("Hello.")) as server:
        episode = await rllm.flow.arun(task, config(server))
        assert server.bodies[0]["model"] == "policy"
    assert [t.name for t in episode.trajectories] == ["agent"] == [rllm.flow.name]
    found = rllm.evaluator.evaluate(task, episode)
    assert (found.reward, found.is_correct, found.metadata) == (0.0, False, {"stop": "user_stop"})
    assert {signal.name for signal in found.signals} == set(episode.artifacts["muarl"]["parts"])
    episode.artifacts["muarl"]["reward"] = 1.0
    assert rllm.evaluator.evaluate(task, episode).is_correct


async def test_a_failure_is_raised_so_that_rllm_tries_again(rllm: Any) -> None:
    own = rllm.make_flow(Conversations(void_is_zero=True), name="shop")
    with FakeOpenAI(status(500)) as server, pytest.raises(InfrastructureError):
        await own.arun(SimpleNamespace(id="7", metadata=ROW), config(server))
