"""The policy's episodes in other processes: the same ids as in this one, whatever the number, and after a death."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from muarl.agents.idle import IdleAgent
from muarl.backends.engines import Backend, policy_executor
from muarl.backends.models import load_model
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, MuarlError
from muarl.config.load import load_config
from muarl.config.parts import Compute, PlannedRun
from muarl.environments.configure import places_of
from muarl.environments.places import Places
from muarl.environments.play import Player
from muarl.rollouts.episode_runner import requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.runs import room
from muarl.types.episode import Episode
from muarl.workers.processes.executor import PooledSampler, PoolExecutor

LIMIT = 300.0


class Scene:
    """A policy with muarl's own engine, in so many processes."""

    def __init__(self, processes: int, *more: str) -> None:
        words = ["threads=2", "model.device=cpu", "rollout.max_turns=3", "rollout.tokens_per_turn=24"]
        self.config = load_config("quickstart", [*words, f"engine.processes={processes}", *more])
        self.places = places_of(self.config)
        self.policy = load_model(self.config.model)
        self.backend = Backend.of(self.config)
        self.start = {name: p.detach().clone() for name, p in self.policy.model.named_parameters()}
        self.users = make_users(self.config.user, self.places)
        self.begin()

    def begin(self) -> None:
        """A stage with the weights of the beginning."""
        with torch.no_grad():
            for name, parameter in self.policy.model.named_parameters():
                parameter.copy_(self.start[name])
        self.sampler = self.backend.sampler(self.policy)
        self.agent = self.backend.agent(self.policy, temperature=1.0, engine=self.sampler, name="trainee")

    def nudge(self) -> Callable[[], Any]:
        """Weights of a learner that has moved a little, the same each time."""
        generator = torch.Generator().manual_seed(1)
        moved = [
            (name, value + 0.01 * torch.randn(value.shape, generator=generator)) for name, value in self.start.items()
        ]
        return lambda: moved

    async def train(self, label: str, kill: bool = False) -> list[Episode]:
        """Two groups of training episodes. ``kill``: a child dies as soon as the first one is finished."""
        player = Player.of(self.places, self.agent, self.users)
        executor = self.backend.executor(player)
        asked = requests_for(self.places.draw("train", 2, 3, 0), 3, seed=5, label=label)

        def finished(episode: Episode, done: int, total: int) -> None:
            if kill and done == 1:
                assert isinstance(self.sampler, PooledSampler)
                for pid in self.sampler.pool.pids:
                    os.kill(pid, signal.SIGKILL)

        async with asyncio.timeout(LIMIT):
            return (await rollout(asked, executor, progress=finished)).episodes

    async def evaluate(self) -> list[Episode]:
        users = make_users(self.config.eval_user, self.places)
        executor = policy_executor(Compute.of(self.config), self.places, self.agent, users, 4)
        assert isinstance(executor, LocalExecutor if self.config.process_count == 1 else PoolExecutor)
        asked = requests_for(self.places.draw("test", 2, 3, 0), 1, seed=5, label="evaluation")
        async with asyncio.timeout(LIMIT):
            return (await rollout(asked, executor)).episodes

    async def story(self, kill: bool = False) -> list[list[Episode]]:
        self.begin()
        first = await self.train("0", kill)
        await self.sampler.update(self.nudge(), 1)
        found = [first, await self.train("1"), await self.evaluate()]
        await self.sampler.aclose()
        return found


def compared(episode: Episode) -> dict[str, Any]:
    """All that is said of an episode but for times; log-probabilities apart, which batches round differently."""
    row = episode.to_json(context=True) | {"timings": None}
    row["turns"] = [{k: v for k, v in turn.items() if k != "seconds"} for turn in row["turns"]]
    row["tokens"] = {k: v for k, v in row["tokens"].items() if k != "logprobs"}
    return row


@pytest.fixture(scope="module")
def alone() -> list[list[Episode]]:
    """The story in this process."""
    return asyncio.run(Scene(1).story())


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for all, since children belong to one, and take seconds to start."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def scene(loop: asyncio.Runner) -> Iterator[Scene]:
    """The policy in two processes."""
    made = Scene(2)
    yield made
    made.backend.close()


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
def test_the_same_ids_in_one_process_and_in_several(
    alone: list[list[Episode]], scene: Scene, loop: asyncio.Runner, kill: bool
) -> None:
    played = loop.run(scene.story(kill))
    for here, there in zip(alone, played, strict=True):
        assert [compared(e) for e in there] == [compared(e) for e in here]
        for one, other in zip(here, there, strict=True):
            assert one.tokens is not None and other.tokens is not None
            assert other.tokens.logprobs == pytest.approx(one.tokens.logprobs, abs=1e-3)
    assert {v for e in played[1] for v in e.tokens.versions if e.tokens is not None} >= {1}
    assert [compared(e) for e in played[0]] != [compared(e) for e in played[1]]


@pytest.mark.slow
def test_what_is_sampled_here_comes_from_the_same_weights(scene: Scene, loop: asyncio.Runner) -> None:
    scene.begin()
    from muarl.inference.base import SamplingParams

    async def both() -> tuple[Any, Any]:
        await scene.sampler.update(scene.nudge(), 4)
        params = SamplingParams(max_tokens=8, seed=3)
        there = await scene.sampler.sample((1, 2, 3), params)
        return there, await Backend.of(scene.config.model_copy(update={"engine": one})).sampler(scene.policy).sample(
            (1, 2, 3), params
        )

    one = scene.config.engine.model_copy(update={"processes": 1})
    there, here = loop.run(both())
    assert there.ids == here.ids and there.version == 4


def test_agents_of_no_policy_play_here(scene: Scene) -> None:
    executor = policy_executor(Compute.of(scene.config), scene.places, IdleAgent(), scene.users, 4)
    assert isinstance(executor, LocalExecutor)


@pytest.mark.slow
def test_another_environment_than_the_configured_one_is_refused(scene: Scene, loop: asyncio.Runner) -> None:
    scene.begin()
    places = Places([replace(place, name="my-shop") for place in scene.places])
    executor = scene.backend.executor(Player.of(places, scene.agent, scene.users.each["retail-generated"]))
    asked = requests_for(scene.places.draw("train", 1, 3, 0), 1, seed=5)
    with pytest.raises(MuarlError, match=r"retail-generated, and this run's is my-shop: set engine\.processes=1"):
        loop.run(rollout(asked, executor))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["cluster.address=local"], "cluster.rollout_workers"),
        (["engine.kind=vllm"], "engine.servers"),
        (["engine.sleep=true"], "engine.sleep"),
        (["model.device=cuda"], "model.device=cuda"),
        (["user.kind=llm", "user.endpoint.model=m"], "user.kind=llm"),
        (["eval_user.kind=llm", "eval_user.endpoint.model=m"], "eval_user.kind=llm"),
        (["eval.judge=endpoint:m"], "eval.judge"),
    ],
)
def test_what_does_not_go_together_is_refused(words: list[str], text: str) -> None:
    for count in (0, 2):
        with pytest.raises(ConfigError, match=r"processes") as caught:
            load_config("quickstart", [f"engine.processes={count}", *words])
        assert text in str(caught.value)
    load_config("quickstart", ["engine.processes=1", *words])


def test_one_process_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    from muarl.config import scale

    monkeypatch.setattr(scale, "usable_cores", lambda: 3.5)
    assert load_config("quickstart", ["engine.processes=0"]).process_count == 3
    monkeypatch.setattr(scale, "usable_cores", lambda: 0.5)
    assert load_config("quickstart", ["engine.processes=0"]).process_count == 1


def test_auto_is_one_for_each_thread_where_several_can_play(monkeypatch: pytest.MonkeyPatch) -> None:
    from muarl.config import scale

    monkeypatch.setattr(scale, "usable_cores", lambda: 2.0)
    assert load_config("quickstart").engine.processes == "auto"
    assert load_config("quickstart").process_count == 2
    assert load_config("quickstart", ["threads=1"]).process_count == 1
    assert load_config("quickstart", ["threads=3"]).process_count == 3
    assert load_config("quickstart", ["threads=64"]).process_count == 4
    for words in (
        ["user.kind=llm", "user.endpoint.model=m"],
        ["eval.judge=endpoint:m"],
        ["model.device=cuda"],
        ["engine.kind=vllm"],
        ["cluster.address=local", "engine.kind=vllm"],
    ):
        assert load_config("quickstart", words).process_count == 1, words


def test_a_gpu_is_refused_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_on_device", lambda device: (True, 1 << 40))
    config = load_config("quickstart", ["engine.processes=2"])
    with pytest.raises(ConfigError, match=r"engine\.processes=1, or model\.device=cpu"):
        room.check_memory(PlannedRun.of(config), "rl")
    room.check_memory(PlannedRun.of(config), "sft", sampling=False)


def test_the_least_memory_counts_every_process(tmp_path: Path) -> None:
    from muarl.backends.model_support import model_shape
    from muarl.planning.memory import process_memory

    one, two = (PlannedRun.of(load_config("quickstart", [f"engine.processes={n}"])) for n in (1, 2))
    shape = model_shape(one.model.checkpoint)
    more = room.sure_bytes(two, shape, "rl", on_gpu=False) - room.sure_bytes(one, shape, "rl", on_gpu=False)
    assert more > 2 * process_memory(shape)
    assert more < 2 * process_memory(shape) + 3 * 4 * shape.parameters + (1 << 20)
