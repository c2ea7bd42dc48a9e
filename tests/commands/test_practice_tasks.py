"""New tasks of the kinds that failed: how many of which, and files that hold their addresses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.config.load import load_config
from muarl.domains.tasks import Kind, kind_of
from muarl.environments.configure import places_of
from muarl.environments.environment import Environment
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.environments.task_files import read_tasks, split_of, write_tasks
from muarl.types.episode import Episode, StopReason, Verdict
from muarl_tools.practice_tasks import Record, filed, make_tasks, quotas, record_by_kind

A, B, C = Kind("return", "1"), Kind("return", "2"), Kind("cancel", "1")


def episode(kind: Kind | None, reward: float | None, **tags: Any) -> Episode:
    if kind is not None:
        tags |= {"intent": kind.intent, "difficulty": int(kind.difficulty)}
    stop = StopReason.INFRASTRUCTURE if reward is None else StopReason.USER_STOP
    verdict = None if reward is None else Verdict(reward)
    return Episode("e", "t", "retail", [], stop, verdict=verdict, tags=tags)


def test_failures_are_counted_by_kind() -> None:
    episodes = [episode(A, 0.0), episode(A, 1.0), episode(A, None), episode(B, 1.0, domain="shop")]
    left_out = [episode(None, 0.0), episode(A, 0.0, redteam="liar")]
    assert record_by_kind([*episodes, *left_out]) == {A: Record(2, 1), B: Record(1, 0)}


def test_tasks_are_shared_out_by_failures_above_a_floor() -> None:
    record = {A: Record(100, 90), B: Record(100, 10), C: Record(100, 0)}
    assert quotas(record, 100, 0.0) == {A: 90, B: 10}
    assert quotas(record, 100, 0.5) == {A: 70, B: 30}
    assert quotas(record, 100, 1.0) == {A: 50, B: 50}
    assert sum(quotas(record, 7, 0.2).values()) == 7
    assert quotas({C: Record(5, 0)}, 10, 0.2) == {}


def test_new_tasks_are_of_the_wanted_kinds_and_the_training_split() -> None:
    shop = find("retail-generated")
    plain = shop.make_tasks("train", 60, seed=40_000_000)
    common = Counter(kind_of(t.tags) for t in plain).most_common(2)
    wanted = {kind: 3 for kind, _ in common if kind is not None}
    made = make_tasks(shop, wanted, size="tiny", seed=40_000_000)
    assert Counter(kind_of(t.tags) for t in made) == wanted
    assert {t.tags["split"] for t in made} == {"train"} and {t.tags["seed"] for t in made} == {40_000_000}
    others = make_tasks(shop, wanted, size="tiny", seed=40_000_000, known={made[0].id})
    assert made[0].id not in {t.id for t in others}
    assert make_tasks(shop, {Kind("nothing like it"): 1}, size="tiny", seed=0) == []


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (Environment(name="fixed", domain=find("retail-generated").make_domain("tiny"), tasks={}), "are a fixed set"),
        (find("tau2-retail"), "is a benchmark, whose tasks are fixed.*made by retail-generated"),
    ],
)
def test_an_environment_that_makes_no_tasks_is_refused(environment: Environment, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_tasks(environment, {A: 1}, size=None, seed=0)


def file_of(path: Path, size: str = "tiny") -> Path:
    made = find("retail-generated").make_tasks("train", 12, size=size, seed=40_000_000)
    write_tasks(path, [filed(task, "failures in run") for task in made])
    return path


def configured(path: Path, *more: str) -> Places:
    return places_of(load_config("quickstart", [f"domain.tasks={path}", *more]))


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_a_file_has_addresses_and_runs_draw_the_whole_tasks(tmp_path: Path, size: str) -> None:
    path = file_of(tmp_path / "tasks.jsonl", size)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(row["database"] is None and row["confirmed"] for row in rows)
    assert rows[1]["made"].startswith("retail-generated:train:1?")
    write_tasks(path, read_tasks(path))
    again = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row | {"tags": None} for row in again] == [row | {"tags": None} for row in rows]
    made = {t.id: t for t in find("retail-generated").make_tasks("train", 12, size=size, seed=40_000_000)}
    train = [name for name in made if split_of(name) == "train"]
    drawn = configured(path, f"domain.size={size}", "rl.eval_every=0").draw("train", len(train), 0, 0)
    assert {t.id for t in drawn} == set(train)
    for task in drawn:
        first = made[task.id]
        assert (task.agenda, task.actions, task.reward_basis) == (first.agenda, first.actions, first.reward_basis)
        assert task.database is not None and first.database is not None
        assert task.database.digest() == first.database.digest()


@pytest.mark.parametrize(
    ("changes", "settings", "said"),
    [
        ({"made": "retail-generated:train"}, [], "made: .* is no address of a task"),
        ({"made": "airline-generated:train:1"}, [], "made by airline-generated, and the run is in retail-generated"),
        ({"made": "retail-generated:test:1?seed=40000000"}, [], "of the split test, and only those of train"),
        ({"made": "retail-generated:train:5?seed=40000000"}, [], "id is not that of the task.*tasks practise"),
        ({"scenario": "Be kind."}, [], "scenario is not that of the task .*changed in the file"),
        ({"actions": []}, [], "actions is not that of the task"),
        ({"made": 3}, [], "made must be a string"),
        ({}, ["domain.size=small"], "made: its task is of size tiny, and domain.size is small"),
    ],
)
def test_what_is_not_the_task_that_was_made_is_refused(
    changes: dict[str, Any], settings: list[str], said: str, tmp_path: Path
) -> None:
    path = file_of(tmp_path / "tasks.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1] |= changes
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=rf"tasks\.jsonl, line [12]: .*{said}"):
        configured(path, *settings)
