"""The simulation of benches/scaling.py: time that jumps, samplers that share their speed, what holds of any run."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from muarl.planning.assumptions import Assumptions
from muarl.planning.models import PUBLISHED
from muarl.planning.speed import ServingSetup, decode_seconds
from support.page_examples import module_of


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).parent.parent / "benches" / "scaling.py"
    return module_of(path)


def play(bench: ModuleType, **changes: Any) -> Any:
    world = {"batch": 4, "group": 2, "steps": 5, "engines": 2, "learner_gpus": 8, **changes}
    return bench.simulate(bench.run(bench.World(**world), Assumptions()))


def test_an_hour_of_waiting_takes_no_time(bench: ModuleType) -> None:
    async def wait() -> float:
        await asyncio.gather(*(asyncio.sleep(3600.0 * n) for n in range(3)))
        return asyncio.get_running_loop().time()

    began = time.perf_counter()
    assert bench.simulate(wait()) == pytest.approx(7200.0)
    assert time.perf_counter() - began < 5.0


def test_waiting_for_nothing_is_told(bench: ModuleType) -> None:
    async def stuck() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="stuck"):
        bench.simulate(stuck())


def test_sequences_share_a_sampler_as_the_planner_reckons(bench: ModuleType) -> None:
    a, shape = Assumptions(), PUBLISHED["Qwen/Qwen3-8B"]
    serving = ServingSetup(1, 1, 64, 1e9)
    context = a.prompt_tokens + a.growth / 2

    async def decode(count: int) -> float:
        sampler = bench.Sampler(serving, a, shape, 1.0)
        await asyncio.gather(*(sampler.sample(100, 0.0) for _ in range(count)))
        return asyncio.get_running_loop().time()

    for count in (1, 8, 64):
        expected = 100 * decode_seconds(shape, serving, count, context, a)
        assert bench.simulate(decode(count)) == pytest.approx(expected)
    # More than there are places for come one after the other.
    assert bench.simulate(decode(128)) == pytest.approx(2 * 100 * decode_seconds(shape, serving, 64, context, a))


def test_a_step_in_turns_is_its_rollout_its_update_and_its_transfer(bench: ModuleType) -> None:
    found = play(bench, workers=8)
    sim = bench.Simulation(bench.World(batch=4, group=2, engines=2, learner_gpus=8), Assumptions())
    assert found.step > sim.update + sim.transfer
    assert found.learner_busy == pytest.approx(sim.update / found.step)
    assert found.age == 0.0
    assert found.episodes_per_second == pytest.approx(8 / found.step)


def test_workers_beyond_a_step_s_episodes_help_only_rollouts_that_run_ahead(bench: ModuleType) -> None:
    slow = {"learner_gpus": 4000, "engines": 8}  # so that the learner does not bind
    turns = [play(bench, workers=w, **slow).episodes_per_second for w in (2, 8, 32)]
    assert turns[1] > 1.5 * turns[0]
    assert turns[2] == pytest.approx(turns[1])
    ahead = [play(bench, mode="bounded", workers=w, **slow).episodes_per_second for w in (8, 24)]
    assert ahead[0] > turns[1]
    assert ahead[1] > 1.2 * ahead[0]


@pytest.mark.parametrize("mode", ["synchronous", "one_step_off", "bounded"])
def test_runs_repeat_and_staleness_is_bounded(bench: ModuleType, mode: str) -> None:
    first, second = (play(bench, mode=mode, workers=16) for _ in range(2))
    assert first == second
    assert 0.0 <= first.age <= {"synchronous": 0.0, "one_step_off": 1.0, "bounded": 2.0}[mode]


def test_what_binds_is_what_helps(bench: ModuleType) -> None:
    world = bench.World(workers=1, batch=4, group=2, steps=4, engines=4, learner_gpus=4000)
    found = bench.simulate(bench.run(world, Assumptions()))
    gained = bench.gains(world, Assumptions(), found)
    assert max(gained, key=gained.get) == "workers"
    assert "workers" in bench.binding(gained)
    assert bench.binding(dict.fromkeys(gained, 0.0)) == "nothing alone"
