"""Which training tasks do a benchmark task's work."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.domains.database import Database
from muarl.domains.tasks import Action, Task
from muarl_worlds.contamination import TaskSet, overlap, overlaps, write_set
from muarl_worlds.tau import tau1_benchmark as tau1
from muarl_worlds.tau import tau2_benchmark as tau2

KINDS = {"cancel": "write", "change": "write", "look": "read", "sum": "generic"}
LOOK, CANCEL = Action("look", {"id": 1}), Action("cancel", {"id": "#1", "why": "late"})
CHANGE = Action("change", {"items": ["a", "b"], "price": 51.0})


def task(task_id, *actions, **changes):
    return replace(Task(task_id, "shop", "", actions), **changes)


def compare(training, benchmark):
    return overlap(TaskSet("ours", training, KINDS.__getitem__), TaskSet("theirs", benchmark, KINDS.__getitem__))


def test_reads_and_the_order_of_writes_do_not_count_but_how_often_does():
    same = Action("cancel", {"why": "late", "id": "#1"})
    found = compare(
        [task("t1", LOOK, CHANGE, CANCEL), task("t2", CANCEL), task("t3", CANCEL, CANCEL), task("t4", LOOK)],
        [task("b1", same, Action("change", {"price": 51, "items": ["a", "b"]})), task("b2", CANCEL, same), task("b3")],
    )
    assert [(p.training, p.benchmark) for p in found.pairs] == [("t1", "b1"), ("t3", "b2")]
    assert (found.training_hit, found.benchmark_hit) == (("t1", "t3"), ("b1", "b2"))
    assert (found.training_tasks, found.training_idle, found.benchmark_tasks, found.benchmark_idle) == (3, 1, 2, 1)


@pytest.mark.parametrize(
    "other",
    [
        Action("change", {"items": ["b", "a"], "price": 51.0}),
        Action("change", {"items": ["a", "b"], "price": "51"}),
        Action("change", {"items": ["a", "b"]}),
        Action("cancel", {"items": ["a", "b"], "price": 51.0}),
    ],
)
def test_other_arguments_are_another_work(other):
    assert not compare([task("t", CHANGE)], [task("b", other)]).pairs


def test_an_unknown_tool_counts_as_one_that_writes():
    assert write_set(task("t", Action("burn", {}), LOOK, Action("sum", {})), KINDS.__getitem__) == (("burn", "{}"),)
    assert (
        write_set(task("t"), KINDS.__getitem__) == write_set(replace(task("t"), actions=None), KINDS.__getitem__) == ()
    )


def test_the_start_of_the_world_is_told_apart():
    start = ({"env_type": "user", "func_name": "break", "arguments": {"part": 1}},)
    own = Database({"things": {"a": {"n": 1}}})
    found = compare(
        [
            task("plain", CANCEL),
            task("broken", CANCEL, initial_actions=start),
            task("elsewhere", CANCEL, database=own),
        ],
        [task("b1", CANCEL), task("b2", CANCEL, initial_actions=start)],
    )
    assert {(p.training, p.benchmark) for p in found.pairs if p.same_start} == {("plain", "b1"), ("broken", "b2")}
    assert len(found.pairs) == 6
    assert "begin in another world" not in found.summary()
    only = compare([task("elsewhere", CANCEL, database=own)], [task("b1", CANCEL)])
    assert "1 of these 1 begin in another world" in only.summary()


def test_the_report_counts_and_lists():
    found = compare([task("t1", CANCEL), task("t2", LOOK)], [task("b1", CANCEL), task("b2", CHANGE)])
    text = found.summary()
    assert text.startswith("ours and theirs: 1 of 2 benchmark tasks (50.0%) have the writes of a training task;")
    assert "1 of 1 training tasks have those of a benchmark task." in text and "write nothing: 1 and 0." in text
    row = json.loads(json.dumps(found.to_json()))
    assert row["pairs"] == [
        {
            "training": "t1",
            "benchmark": "b1",
            "same_start": True,
            "writes": [{"name": "cancel", "arguments": {"id": "#1", "why": "late"}}],
        }
    ]
    assert compare([], []).summary().startswith("ours and theirs: 0 of 0 benchmark tasks have")


ARGUMENTS = st.dictionaries(
    st.text(max_size=3), st.one_of(st.integers(), st.booleans(), st.text(max_size=3)), max_size=3
)
ACTIONS = st.lists(st.builds(Action, st.sampled_from(list(KINDS)), ARGUMENTS), max_size=5)


@given(ACTIONS, st.randoms())
def test_a_shuffled_task_without_its_reads_is_the_same_work(actions, random):
    writes = [replace(a, arguments=dict(reversed(a.arguments.items()))) for a in actions if KINDS[a.name] == "write"]
    random.shuffle(writes)
    found = compare([task("t", *actions)], [task("b", *writes)])
    assert len(found.pairs) == (1 if writes else 0)


@pytest.mark.data
def test_tau1s_test_tasks_are_most_of_tau2s_retail_and_its_training_tasks_are_not(official_tau2, shared_data):
    from muarl_worlds import install

    install.add("tau1", shared_data / "tau1")
    retail = TaskSet("tau2", tau2.tasks("retail"), tau2.domain("retail").kind_of)
    kinds = tau1.domain("retail").kind_of
    test, train = (
        overlaps(TaskSet("test", tau1.tasks("retail", "test"), kinds), [retail]),
        overlap(TaskSet("train", tau1.tasks("retail", "train"), kinds), retail),
    )
    assert (len(test[0].benchmark_hit), test[0].benchmark_tasks) == (98, 104)
    assert [(p.training, p.benchmark) for p in train.pairs] == [("train/418", "69")]
