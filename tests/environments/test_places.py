"""Several domains as one: in which proportion tasks are drawn, and that each is played in its own domain."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.support.two_domains import listed, write_house

from muarl.accounts.metrics import DOMAIN
from muarl.agents.idle import IdleAgent
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.environments.configure import place_of, places_of
from muarl.environments.places import Places, Shares
from muarl.environments.play import play_in
from muarl.environments.recorded_episodes import world_of

MIX = "domain=[{name: retail-generated, weight: 2}, airline-generated, {name: hotel-generated, weight: 0.5}]"
WEIGHTS = {"retail-generated": 2.0, "airline-generated": 1.0, "hotel-generated": 0.5}


def mixture(*overrides: str, measuring: bool = False) -> Places:
    return places_of(load_config("quickstart", [MIX, *overrides]), measuring=measuring)


@pytest.fixture
def house(tmp_path: Path) -> tuple[Places, RunConfig]:
    config = load_config("quickstart", [listed(write_house(tmp_path), 1, 1), "eval.tasks=4"])
    return places_of(config), config


@pytest.mark.parametrize("weights", [{"a": 1.0, "b": 1.0}, {"a": 3.0, "b": 1.0, "c": 0.7}, {"a": 0.1, "b": 0.2}])
@pytest.mark.parametrize("start", [0, 32, 997])
def test_every_stretch_has_the_domains_in_proportion(weights: dict[str, float], start: int) -> None:
    counts = Counter(Shares(weights).names(start, 32))
    for name, weight in weights.items():
        assert abs(counts[name] - 32 * weight / sum(weights.values())) <= 2


def test_the_row_is_one_whatever_part_is_asked_for() -> None:
    whole = Shares(WEIGHTS).names(0, 50)
    again = Shares(WEIGHTS)
    assert again.names(20, 30) == whole[20:]
    assert again.names(0, 20) == whole[:20]
    assert again.before(20) == {name: whole[:20].count(name) for name in WEIGHTS}


def test_draws_continue_where_the_last_one_ended() -> None:
    made = mixture()
    whole = [task.id for task in made.draw("train", 24, 3, 0)]
    assert [task.id for task in (*made.draw("train", 9, 3, 0), *made.draw("train", 15, 3, 9))] == whole
    assert [task.id for task in mixture().draw("train", 24, 3, 0)] == whole
    assert len(set(whole)) == 24
    assert whole != [task.id for task in made.draw("train", 24, 4, 0)]


def test_a_domain_has_the_tasks_that_it_has_alone() -> None:
    alone = place_of(load_config("quickstart", ["domain.name=airline-generated"]))
    mixed = [t for t in mixture().draw("train", 28, 3, 0) if t.tags[DOMAIN] == "airline-generated"]
    assert [task.id for task in mixed] == [f"airline-generated:{t.id}" for t in alone.draw("train", len(mixed), 3, 0)]


def test_splits_have_different_tasks() -> None:
    made = mixture()
    ids = {split: {task.scenario for task in made.draw(split, 20, 0, 0)} for split in ("train", "validation", "test")}
    assert not ids["train"] & ids["test"] and not ids["train"] & ids["validation"]


def test_a_task_is_told_and_given_the_tools_of_its_domain() -> None:
    made = mixture()
    for task in made.example_tasks("train"):
        alone, own = made.by_name[str(task.tags[DOMAIN])], made.own(task)
        assert made.of(task) is alone and task.id == f"{alone.name}:{own.id}"
        assert alone.system_prompt(own) == alone.domain.policy_text
        assert [t.name for t in alone.tools(own)] == [t.name for t in alone.domain.tool_specs()]


def test_one_place_alone_has_its_tasks_as_they_are() -> None:
    alone = place_of(load_config("quickstart", ["domain.name=airline-generated"]))
    places = Places([alone])
    drawn = places.draw("train", 3, 0, 0)
    assert [task.id for task in drawn] == [task.id for task in alone.draw("train", 3, 0, 0)]
    assert all(places.own(task) is task and places.of(task) is alone and DOMAIN not in task.tags for task in drawn)


def test_evaluation_has_tasks_of_every_domain() -> None:
    made = mixture(measuring=True)
    tasks = made.eval_tasks("test", 14, seed=0)
    assert Counter(task.tags[DOMAIN] for task in tasks) == {
        "retail-generated": 8,
        "airline-generated": 4,
        "hotel-generated": 2,
    }
    requests = made.requests(tasks, 2, 0, "evaluation")
    assert len({request.episode_id for request in requests}) == 28
    with pytest.raises(ConfigError, match=r"eval.tasks is 2, of which hotel-generated gets none"):
        made.eval_tasks("test", 2, seed=0)
    with pytest.raises(ConfigError, match=r"eval.task_ids: name one domain"):
        made.eval_tasks("test", None, seed=0, ids=["x"])


def test_a_share_of_red_team_tasks_is_each_domains_own() -> None:
    red = "domain=[{name: retail-generated, red_team_share: 1.0}, airline-generated]"
    drawn = places_of(load_config("quickstart", [red])).draw("train", 8, 0, 0)
    assert all(("redteam" in task.tags) == (task.tags[DOMAIN] == "retail-generated") for task in drawn)


def test_equal_ids_of_two_domains_stay_apart(house: tuple[Places, RunConfig]) -> None:
    places, _ = house
    tasks = places.draw("train", 6, 0, 0)
    assert len({task.id for task in tasks}) == 6
    assert {places.own(task).id for task in tasks} == {f"train-0-{n}" for n in range(3)}
    assert {task.domain for task in tasks} == {"house"}


def test_each_domain_has_its_own_expert_users_and_score(house: tuple[Places, RunConfig]) -> None:
    places, config = house
    tasks, users = places.draw("train", 6, 0, 0), make_users(config.user, places)
    episodes = asyncio.run(play_in(places, places.experts(), users, tasks, 1, seed=0)).episodes
    assert [e.reward for e in episodes] == [1.0] * 6
    assert [e.task_id for e in episodes] == [task.id for task in tasks]
    called = {e.tags[DOMAIN]: {c.name for m in e.messages for c in m.tool_calls} for e in episodes}
    assert called == {"lamps": {"switch_on"}, "doors": {"lock"}}
    idle = asyncio.run(play_in(places, IdleAgent(), users, tasks, 1, seed=0)).episodes
    assert [e.reward for e in idle] == [0.0] * 6


def test_a_recorded_episode_finds_its_domain_again() -> None:
    made = mixture()
    users = make_users(load_config("quickstart").user, made)
    tasks = made.draw("train", 7, 0, 0)
    config = load_config("quickstart", [MIX]).model_dump(mode="json")
    for episode, task in zip(
        asyncio.run(play_in(made, IdleAgent(), users, tasks, 1, seed=0)).episodes, tasks, strict=True
    ):
        domain, again = world_of(episode, config, measured=False)
        assert (domain.name, again.scenario) == (task.domain, task.scenario)


def test_two_environments_of_one_name_are_refused(tmp_path: Path) -> None:
    names = []
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        names.append(write_house(tmp_path / folder)[0])
    with pytest.raises(ConfigError, match="two of the list are called lamps"):
        places_of(load_config("quickstart", [listed(names, 1, 1)]))
