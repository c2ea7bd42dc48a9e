"""Tasks that are played again: which, how often, that figures leave them out, and that checkpoints hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.config.load import load_config
from muarl.config.rl import PracticeConfig
from muarl.domains.tasks import Task
from muarl.environments.configure import places_of
from muarl.environments.places import Places
from muarl.recipes.training.practice import Practice
from muarl.recipes.training.repeats import DrawPosition, Repeats
from muarl.types.episode import Episode, StopReason, Verdict

SEED = 500_002


def task(name: str) -> Task:
    return Task(name, "d", "", (), tags={"intent": "return"})


def noted(repeats: Repeats, **successes: float) -> None:
    repeats.note({name: (task(name), DrawPosition(8, 0, n)) for n, name in enumerate(successes)}, successes)


def ids(repeats: Repeats, count: int = 9, drawn: Sequence[str] = ()) -> list[str]:
    return [one.task.id for one in repeats.choose(count, drawn)]


def episodes(tasks: Sequence[Task], right: dict[str, int], size: int = 4) -> list[Episode]:
    """``right``: how many rollouts of a task succeed, all where it is not named."""
    return [
        Episode(
            f"{t.id}-{n}",
            t.id,
            "d",
            [],
            StopReason.USER_STOP,
            n,
            t.id,
            verdict=Verdict(float(n < right.get(t.id, size))),
        )
        for t in tasks
        for n in range(size)
    ]


@pytest.fixture(scope="module")
def places() -> Places:
    return places_of(load_config("quickstart"))


def test_the_closest_to_a_half_come_first_and_those_that_always_fail_last() -> None:
    repeats = Repeats(3)
    noted(repeats, solved=1.0, never=0.0, seldom=0.125, even=0.5, often=0.75)
    assert ids(repeats) == ["even", "often", "seldom", "never"]
    assert ids(repeats, 2) == ["even", "often"]
    assert ids(repeats, 2, ["even"]) == ["often", "seldom"], "what is drawn anyway is not played twice"


def test_a_task_is_played_again_until_it_is_solved_or_was_often_enough() -> None:
    repeats = Repeats(2)
    noted(repeats, a=0.5, b=0.5)
    noted(repeats, a=1.0, b=0.25)
    assert ids(repeats) == ["b"]
    noted(repeats, b=0.5)
    assert ids(repeats) == [], "it has been played again twice"


def test_a_task_whose_episodes_all_failed_for_other_reasons_stays_as_it_was() -> None:
    repeats = Repeats(1)
    noted(repeats, a=0.5)
    repeats.note({"a": (task("a"), DrawPosition(8, 0, 0)), "new": (task("new"), DrawPosition(8, 0, 1))}, {})
    assert ids(repeats) == ["a"]


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muarl.recipes.training.repeats.REMEMBERED", 2)
    repeats = Repeats(3)
    for name in ("a", "b", "c"):
        noted(repeats, **{name: 0.5})
    assert ids(repeats) == ["b", "c"]


def test_a_share_of_a_step_is_repeated_and_stands_in_no_figure_of_what_was_drawn(
    places: Places,
) -> None:
    practice = Practice(PracticeConfig(repeat=0.5), 4, seed=0)
    first = practice.draw(places, 8, SEED, 0)
    assert [t.id for t in first.played] == [t.id for t in places.draw("train", 8, SEED, 0)], "nothing to repeat yet"
    hard = {t.id: 2 for t in first.tasks[:3]}
    assert practice.note([(first, episodes(first.played, hard))])["practice/repeated"] == 0.0

    second = practice.draw(places, 8, SEED, 1)
    assert {t.id for t in second.repeated} == set(hard)
    assert [t.id for t in second.tasks] == [t.id for t in places.draw("train", 8, SEED, 8)][:5]
    figures = practice.note([(second, episodes(second.played, {**hard, second.tasks[0].id: 0}))])
    assert figures["success"] == figures["reward"] == pytest.approx(0.8), "of the five new tasks alone"
    assert (figures["practice/repeated"], figures["practice/repeated_success"]) == (3.0, 0.5)
    assert figures["practice/kinds"] >= 1

    most = practice.draw(places, 8, SEED, 2)
    assert (len(most.repeated), len(most.tasks)) == (4, 4)
    assert practice.draw(places, 8, SEED, 2, repeat=False).repeated == []


def test_it_goes_together_with_a_choice_by_kind(places: Places) -> None:
    practice = Practice(PracticeConfig(repeat=0.5, adaptive=True, candidates=2), 4, seed=0)
    first = practice.draw(places, 8, SEED, 0)
    practice.note([(first, episodes(first.played, {t.id: 1 for t in first.tasks[:3]}))])
    second = practice.draw(places, 8, SEED, 1)
    assert (len(second.repeated), len(second.tasks), len(second.candidates)) == (3, 5, 16)
    assert set(second.chances) == {t.id for t in second.tasks} and all(0 < c <= 1 for c in second.chances.values())


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_resumed_run_plays_the_same_tasks_again(places: Places, adaptive: bool) -> None:
    config = PracticeConfig(repeat=0.5, adaptive=adaptive)
    practice = Practice(config, 4, seed=0)
    for step in range(3):
        choice = practice.draw(places, 8, SEED, step)
        practice.note([(choice, episodes(choice.played, {t.id: 1 + step for t in choice.played[::2]}))])
    state = json.loads(json.dumps(practice.state()))
    again = Practice.resumed(config, 4, 0, state, places, SEED)

    found = [one.draw(places, 8, SEED, 3) for one in (practice, again)]
    assert [t.id for t in found[0].played] == [t.id for t in found[1].played] and len(found[1].repeated) == 4
    assert again.state() == practice.state()
    with pytest.raises(DataError, match="'repeats' does not say which tasks to play again"):
        Practice.resumed(config, 4, 0, {"repeats": [[8, 0]]}, places, SEED)
    with pytest.raises(DataError, match="names a task that is not drawn any more"):
        Practice.resumed(config, 4, 0, {"repeats": [[8, 0, 8, 0.5, 1]]}, places, SEED)


def test_it_is_refused_where_it_cannot_work() -> None:
    with pytest.raises(ConfigError, match=r"practice.repeat follows the steps one by one, and asynchrony is bounded"):
        load_config("quickstart", ["rl.practice.repeat=0.5", "rl.asynchrony=bounded"])
    with pytest.raises(ConfigError, match=r"practice.repeat plays whole groups again"):
        load_config("quickstart", ["rl.practice.repeat=0.5", "rl.practice.first_look=2"])
