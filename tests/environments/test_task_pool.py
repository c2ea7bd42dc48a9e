"""What a run draws of a fixed set of tasks, and what its training validates on where there is no split for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.stages import SftConfig
from muarl.domains.database import Database
from muarl.domains.tasks import Task
from muarl.environments import configure
from muarl.environments.configure import place_of
from muarl.environments.environment import Environment
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.environments.task_files import FiledTask, split_of, write_tasks
from muarl.environments.task_pool import TaskPool, held_out
from muarl.runs import checks
from muarl.runs.roles import Cast
from muarl.runs.tasks import check_tasks, demonstration_notes
from support.toy_shop import Toy, toy_task


def tasks_of(split: str, count: int) -> list[Task]:
    return [toy_task(f"{split}-{n}") for n in range(count)]


def ids(place: Place, split: str, count: int, seed: int = 0) -> set[str]:
    return {task.id for task in place.draw(split, count, seed, 0)}


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Task]]:
    """The splits of an environment of one's own, which is found as "shop"."""
    splits = {"train": tasks_of("train", 10), "test": tasks_of("test", 4)}
    environment = Environment(name="shop", domain=Toy, tasks=splits)
    for module in (configure, checks):
        monkeypatch.setattr(module, "find", lambda name: environment if name == "shop" else find(name))
    return splits


def place(*settings: str, measuring: bool = False) -> Place:
    return place_of(load_config("quickstart", ["domain.name=shop", *settings]), measuring=measuring)


def test_training_that_validates_holds_out_a_fifth_of_its_tasks(shop: dict[str, list[Task]]) -> None:
    validating = place("rl.eval_every=5")
    trained, held = ids(validating, "train", 8), ids(validating, "validation", 100)
    assert (len(trained), len(held)) == (8, 2) and trained | held == {task.id for task in shop["train"]}
    assert held == ids(place("rl.eval_every=1", "seed=3"), "validation", 2, seed=9), "the same ones in every run"
    assert ids(validating, "test", 4) == {task.id for task in shop["test"]}
    note = "shop has no tasks to validate on: 2 of its 10 training tasks are held out for that"
    assert validating.validation_notes() == [note]
    config = load_config("quickstart", ["rl.eval_every=5", "rl.practice.adaptive=false"])
    assert check_tasks(config.rl, Places([validating])) == [f"{note} (rl.eval_every=0 trains on all of them)"]
    with pytest.raises(ConfigError, match="8 tasks for train, and 9 .* more are held out .* with rl.eval_every=0"):
        validating.draw("train", 9, 0, 0)


def test_training_that_does_not_validate_trains_on_all_and_evaluation_plays_what_there_is(
    shop: dict[str, list[Task]],
) -> None:
    for all_of_them in (place("rl.eval_every=0"), place("rl.eval_every=5", measuring=True)):
        assert len(ids(all_of_them, "train", 10)) == 10 and all_of_them.validation_notes() == []
        with pytest.raises(ConfigError, match="shop has no tasks for the split 'validation'; it has train, test"):
            all_of_them.draw("validation", 1, 0, 0)


def test_a_validation_split_is_what_is_validated_on(shop: dict[str, list[Task]]) -> None:
    shop["validation"] = tasks_of("validation", 3)
    own = place("rl.eval_every=5")
    assert ids(own, "validation", 9) == {task.id for task in shop["validation"]}
    assert len(ids(own, "train", 10)) == 10 and own.validation_notes() == []


def test_an_evaluation_on_validation_tasks_needs_some(shop: dict[str, list[Task]]) -> None:
    asked = Cast.of(load_config("quickstart", ["domain.name=shop", "eval.split=validation"]))
    with pytest.raises(ConfigError, match=r"^eval.split: shop has no tasks for the split 'validation'; it has train, "):
        checks.check_evaluation(asked)


def test_too_few_training_tasks_are_told_before_the_first_step(shop: dict[str, list[Task]]) -> None:
    del shop["train"][1:]
    config = load_config("quickstart", ["domain.name=shop", "rl.eval_every=5", "rl.practice.adaptive=false"])
    alone = place_of(config)
    with pytest.raises(
        ConfigError, match=r"shop has no tasks to validate on, and too few tasks for train \(1\).*rl.eval_every=0"
    ):
        check_tasks(config.rl, Places([alone]))
    assert len(ids(alone, "train", 1)) == 1, "nothing is held out of a single task"


def test_demonstrations_are_made_of_the_tasks_that_are_trained_on_afterwards(shop: dict[str, list[Task]]) -> None:
    config = load_config("quickstart", ["domain.name=shop", "rl.eval_every=5"])
    cold = place_of(config, with_rl=False)
    assert ids(cold, "train", 8) == ids(place_of(config), "train", 8)
    assert len(demonstration_notes(config.sft, Places([cold]))) == 1
    from_file = SftConfig(demonstrations_file=Path("some.jsonl"))
    assert demonstration_notes(from_file, Places([cold])) == []


def test_a_task_file_holds_some_out_too_and_keeps_its_test_tasks_for_evaluation(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    world = Database({"products": {}, "users": {}, "orders": {}})
    logged = [Task(f"log-{n}", "retail", "You want nothing.", (), database=world) for n in range(60)]
    write_tasks(path, [FiledTask(task, confirmed=True) for task in logged])
    test = {task.id for task in logged if split_of(task.id) == "test"}
    settings = [f"domain.tasks={path}", "user.kind=scripted", "eval_user.kind=scripted"]
    training = place_of(load_config("quickstart", [*settings, "rl.eval_every=5"]))
    held = ids(training, "validation", 100)
    assert not held & test and len(held) == (60 - len(test)) // 5
    assert ids(training, "train", 60 - len(test) - len(held)) == {task.id for task in logged} - test - held
    assert f"domain.tasks: {path} has no tasks to validate on: {len(held)} of its" in training.validation_notes()[0]
    measured = place_of(load_config("quickstart", [*settings, "rl.eval_every=5"]), measuring=True)
    assert ids(measured, "test", len(test)) == test
    with pytest.raises(ConfigError, match="has no tasks for the split 'validation'; it has train, test"):
        measured.draw("validation", 1, 0, 0)


def test_tasks_that_are_added_leave_most_of_those_held_out_where_they_were() -> None:
    assert [len(part) for part in held_out(tasks_of("t", 1))] == [1, 0]
    assert [len(part) for part in held_out(tasks_of("t", 2))] == [1, 1]
    before, after = ({t.id for t in held_out(tasks_of("t", count))[1]} for count in (50, 55))
    assert len(before) == 10 and len(before & after) >= 8
    pool = TaskPool({"test": tasks_of("test", 2)}, "files", validating=True)
    with pytest.raises(ConfigError, match=r"files has no tasks to validate on, and too few tasks for train \(0\)"):
        pool.draw("validation", 1, 0, 0)
