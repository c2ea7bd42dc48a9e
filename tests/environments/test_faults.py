"""Worlds that fail, as environments are played: by seed, in copies, in configurations, and not at all where off."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.config.world import FAULT_LEVELS, FaultsConfig
from muarl.domains.faults.rates import KINDS, FaultRates
from muarl.domains.tasks import Task
from muarl.environments.configure import place_of
from muarl.environments.environment import Environment
from muarl.environments.play import play_tasks
from muarl.environments.registry import find
from muarl.rewards.state_changes import run_again
from muarl.types.episode import Episode
from support.toy_shop import Lines, Toy, toy_task

SOME = FaultRates(**dict.fromkeys(KINDS, 0.15))


def tasks_of(name: str, count: int, size: str | None = None) -> tuple[Environment, list[Task]]:
    environment = find(name)
    return environment, environment.make_tasks("train", count, size=size)


def played(
    environment: Environment, tasks: Sequence[Task], faults: FaultRates | None, size: str | None = None, **more: Any
) -> list[Episode]:
    agent = environment.place(size).expert_agent()
    return asyncio.run(play_tasks(environment, agent, tasks, size=size, faults=faults, **more))


def plain(episodes: Sequence[Episode]) -> list[dict[str, Any]]:
    """Episodes as JSON without what a clock has measured."""
    rows = []
    for episode in episodes:
        row = episode.to_json() | {"timings": {}}
        row["turns"] = [turn | {"seconds": 0} for turn in row["turns"]]
        rows.append(row)
    return rows


@pytest.mark.parametrize("off", [None, FaultRates()])
def test_where_it_is_off_episodes_have_no_trace_of_it(off: FaultRates | None) -> None:
    environment, tasks = tasks_of("hotel-generated", 4)
    rows = plain(played(environment, tasks, off))
    assert rows == plain(asyncio.run(play_tasks(environment, environment.place().expert_agent(), tasks)))
    assert not any("system_faults" in row["tags"] for row in rows)
    assert not any("faults" in turn["message"] for row in rows for turn in row["turns"])
    assert not any("failed_calls" in row["verdict"]["audit"] for row in rows)


def test_the_same_seed_gives_the_same_faults_whoever_plays_beside() -> None:
    environment, tasks = tasks_of("hotel-generated", 6)
    whole = plain(played(environment, tasks, SOME, rollouts=2, seed=3))
    assert whole == plain(played(environment, tasks, SOME, rollouts=2, seed=3, concurrency=1))
    assert whole[4:] == plain(played(environment, tasks[2:], SOME, rollouts=2, seed=3))  # as a resumed run has it
    assert whole != plain(played(environment, tasks, SOME, rollouts=2, seed=4))
    assert sum(bool(row["tags"]["system_faults"]) for row in whole) > 4


def test_faults_are_noted_with_the_results_and_kept_in_files() -> None:
    environment, tasks = tasks_of("hotel-generated", 6)
    for episode in played(environment, tasks, SOME):
        again = Episode.from_json(episode.to_json())
        noted = [fault.kind for message in again.messages for fault in message.faults]
        assert {kind: noted.count(kind) for kind in noted} == again.tags["system_faults"]
        assert set(noted) <= KINDS.keys()


@pytest.mark.parametrize("kind", ["latency", "outage", "timeout_after_write", "undocumented_error", "permission"])
def test_recorded_episodes_lead_to_the_state_that_they_led_to(kind: str) -> None:
    """What was not carried out is not run again, and what was is."""
    environment, tasks = tasks_of("retail-generated", 8)
    for episode, task in zip(played(environment, tasks, FaultRates(**{kind: 0.3})), tasks, strict=True):
        again = run_again(environment.make_domain(), task, episode)
        assert again.differing == 0
        assert again.wrong is not None and (not again.wrong) == (episode.reward == 1)


class _Users:
    name = "lines"

    def __call__(self, task: Task, *, seed: int) -> Lines:
        return Lines("Cancel #W12, please.")


TOY = Environment(name="toy", domain=Toy, tasks={"train": [toy_task()]})
CANCEL = {
    "role": "assistant",
    "tool_calls": [{"id": "1", "function": {"name": "cancel", "arguments": '{"order_id": "#W12"}'}}],
}
LOOK = {
    "role": "assistant",
    "tool_calls": [{"id": "2", "function": {"name": "look", "arguments": '{"order_id": "#W12"}'}}],
}


def test_a_session_meets_faults_and_its_copy_meets_the_same() -> None:
    async def both(seed: int) -> tuple[list[str], list[str]]:
        rates = FaultRates(**dict.fromkeys(KINDS, 0.3))
        async with TOY.start(toy_task(), seed=seed, users=_Users(), faults=rates) as session:
            await session.step(LOOK)
            await session.step(CANCEL)
            copy = await session.fork()
            said: tuple[list[str], list[str]] = ([], [])
            for one, heard in zip((session, copy), said, strict=True):
                for _ in range(6):
                    seen = await one.step(LOOK)
                    heard.append(str(seen.messages[-1].content))
            await copy.aclose()
            return said

    heard = [asyncio.run(both(seed)) for seed in range(8)]
    assert all(original == copy for original, copy in heard)
    assert any(text.startswith("Error") for original, _ in heard for text in original)


def test_the_reward_is_that_of_the_world_whatever_the_answer_said() -> None:
    task = Task("t1", "toy", "Cancel #W12.", actions=(), reward_basis=("DB",))

    async def reward(*said: Any) -> float:
        rates = FaultRates(timeout_after_write=1.0)
        async with TOY.start(task, users=_Users(), faults=rates) as session:
            for one in said:
                await session.step(one)
            return float(session.verdict.reward)

    assert asyncio.run(reward("Nothing to do.")) == 1.0
    assert asyncio.run(reward(CANCEL, "It failed.")) == 0.0  # it was cancelled, and nothing should have changed


def test_calls_that_the_system_fails_are_no_errors_of_the_agents() -> None:
    async def stop(rates: FaultRates) -> str:
        async with TOY.start(toy_task(), users=_Users(), faults=rates) as session:
            while not session.done:
                await session.step(LOOK)
            episode = session.episode
            assert episode is not None
            return episode.stop.value

    for_good = FaultRates(permission=1.0, permission_for_good=1.0)
    assert asyncio.run(stop(for_good)) == "max_turns"


def test_settings_say_the_rates_of_every_command() -> None:
    config = load_config("cpu", ["world.faults.outage=0.2", "world.faults.outage_calls=[2,4]"])
    for measuring in (False, True):
        place = place_of(config, measuring=measuring)
        assert place.faults == FaultRates(outage=0.2, outage_calls=(2, 4))
        assert place.runner(place.expert_agent(), place.users()).faults is place.faults
    assert place_of(load_config("cpu", [])).faults is None


@pytest.mark.parametrize("level", ["typical", "hard"])
def test_levels_are_rates_by_another_name(level: str) -> None:
    config = load_config("cpu", [f"world.faults={level}"])
    assert place_of(config).faults == FaultRates.of(dict(FAULT_LEVELS[level]))
    changed = load_config("cpu", [f"world.faults={level}"]).model_dump(mode="json")
    assert RunConfig.model_validate(changed).world == config.world


def test_settings_and_rates_have_the_same_defaults() -> None:
    assert FaultRates.of(FaultsConfig().model_dump()) == FaultRates()
    assert load_config("cpu", ["world.faults=none"]).world == RunConfig().world


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("world.faults=nasty", "use none, typical, hard, or rates"),
        ("world.faults.outage=2", "world.faults.outage"),
        ("world.faults.outage_calls=[3,1]", r"outage_calls must be \[low, high\]"),
        ("world.faults.outtage=0.1", "did you mean 'world.faults.outage'"),
    ],
)
def test_wrong_settings_are_refused_by_name(setting: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config("cpu", [setting])


@pytest.mark.data
def test_a_benchmarks_own_protocol_knows_of_no_faults(shared_data: object) -> None:
    config = load_config("cpu", ["domain.name=tau2-mock", "world.faults=typical"])
    with pytest.raises(ConfigError, match=r"world\.faults: tau2-mock is measured by its own protocol"):
        place_of(config, measuring=True)
