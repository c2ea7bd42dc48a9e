"""``muarl data overlap``: sets of tasks by name, and what is said of those that do the same work."""

from __future__ import annotations

import json

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.cli.generate import task_row
from muarl.environments.registry import find
from muarl_tools.commands import datasets, tasksets
from muarl_worlds import data
from muarl_worlds.tau import tau2_benchmark as tau2
from support.retail_shop import shop


@pytest.fixture
def official(monkeypatch):
    """An installed benchmark whose retail tasks are the first three generated ones, in another domain object."""
    made = find("retail-generated").make_tasks("train", 3, size="official")
    monkeypatch.setattr(data, "installed", lambda: ("tau2",))
    monkeypatch.setattr(tau2, "domain", lambda name, semantics="official": shop(semantics=semantics))
    monkeypatch.setattr(tau2, "tasks", lambda name, split="base": tuple(made) if split == "base" else ())
    return made


def test_generated_tasks_are_compared_with_every_installed_benchmark_of_their_domain(official, tmp_path, capsys):
    datasets.overlap("retail-generated", tasks=5, show=1, out=tmp_path / "overlap.json")
    told = capsys.readouterr().out
    (row,) = json.loads((tmp_path / "overlap.json").read_text())
    writing = row["benchmark_tasks"]
    assert 0 < writing == row["benchmark_hit"] and row["training_tasks"] + row["training_idle"] == 5
    assert told.startswith(
        f"retail-generated:train (5 tasks) and tau2-retail:base: {writing} of {writing} benchmark tasks"
    )
    assert f"  {row['pairs'][0]['training']} = {row['pairs'][0]['benchmark']}: " in told and "Written to" in told


def test_a_file_of_tasks_and_another_split(official, tmp_path, capsys):
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(task_row(t)) + "\n" for t in official))
    datasets.overlap(str(file), ["retail-generated:train", "retail-generated:test"], tasks=3, show=0)
    told = capsys.readouterr().out.split("\n")
    same, other = (line for line in told if line.startswith("tasks.jsonl and "))
    assert same.startswith("tasks.jsonl and retail-generated:train (3 tasks): ") and "(100.0%)" in same
    assert "retail-generated:test (3 tasks): 0 of" in other


def test_bad_input(official, tmp_path, monkeypatch):
    for name, part in (
        ("nothing", "is no set of tasks: name an environment"),
        ("retail-generated:dev", "has the splits train, validation, test"),
    ):
        with pytest.raises(ConfigError, match=part):
            tasksets.task_set(name)
    with pytest.raises(ConfigError, match="--size is vast; the sizes of retail-generated are"):
        tasksets.task_set("retail-generated", size="vast")
    monkeypatch.setattr(data, "installed", lambda: ())
    with pytest.raises(ConfigError, match="no installed benchmark has the domain retail: name one with --benchmark"):
        datasets.overlap("retail-generated", tasks=1)


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ([{"id": "a", "domain": "retail"}], "line 1: it lacks the field actions"),
        ([{"id": "a", "domain": "retail", "actions": [{"name": "x"}]}], r"actions\[0\]: it lacks the field arguments"),
        ([{"id": 3, "domain": "retail", "actions": []}], "id must be a string"),
        ([{"id": "a", "domain": "retail", "actions": [], "initial_actions": [3]}], "initial_actions must be a list"),
        (
            [{"id": "a", "domain": d, "actions": []} for d in ("retail", "zoo")],
            "must be of one domain, not retail, zoo",
        ),
        ([], "must be of one domain, not none"),
        ([{"id": "a", "domain": "zoo", "actions": []}], "nothing is known of the tools of 'zoo'"),
    ],
)
def test_a_malformed_file_of_tasks_is_named(tmp_path, rows, part):
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    with pytest.raises(DataError, match=part):
        tasksets.task_set(str(file))
