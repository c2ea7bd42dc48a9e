"""What all domains with tasks from seeds have in common: repeatable, disjoint by split, worth little to the idle.

What is theirs alone stands in test_generator.py (retail), test_airline_generator.py, test_telecom_generator.py,
acebench/test_generator.py, bfcl/test_generator.py and, for described scenarios, desk/test_generator.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import muarl
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.commands.generate import task_row
from muarl.domains.base import Domain, Task
from muarl.domains.bfcl.wishes import RECIPES
from muarl.domains.generated import SPLITS, generated
from support import acebench, airline, bfcl, telecom
from support import generated as retail

ALL_SIZES = ("tiny", "small", "medium", "official")
SHARES = 0.15
"""What an agent may earn at most, on average, that does nothing or always hands over."""


def gold(task: Task) -> set[str]:
    return {json.dumps([[a.name, a.arguments] for a in task.actions or ()])}


def swaps(task: Task) -> set[Hashable]:
    wishes = [r["wish"] for r in task.agenda["requests"]]
    return {(w["items"][0], w["to"][0]) for w in wishes if w.get("to") is not None}


def faults(task: Task) -> set[Hashable]:
    several = "|" in task.tags["faults"]
    return {(task.tags["faults"], task.tags["persona"], task.agenda["requests"][0]["kind"])} if several else set()


def requests(task: Task) -> set[Hashable]:
    return set(import_module("muarl.domains.acebench.generator").combination(task))


def chosen(task: Task) -> set[Hashable]:
    parts = zip(task.agenda["requests"], import_module("muarl.domains.bfcl.generator").combination(task), strict=True)
    return {part for request, part in parts if RECIPES[request["kind"]].open}


@dataclass(frozen=True)
class Case:
    """One domain. ``sizes``: two that are looked at closely. ``drawn``: how many tasks of a split. ``apart``: further
    things by which splits are disjoint. ``shared``: how many combinations the tasks of two seeds may share. ``idle``:
    at which sizes, and with how many tasks, idleness is tried (none: in the domain's own tests); ``refusals``: whether
    it earns just the tasks in which the right thing is to refuse. ``served``: at which sizes the clean expert is tried
    (none: there too) and how many of how many tasks it may fail.
    """

    name: str
    kit: Any
    sizes: tuple[str, str] = ("tiny", "small")
    drawn: int = 150
    apart: Mapping[str, Callable[[Task], set[Any]]] = field(default_factory=dict)
    shared: int = 0
    idle: tuple[tuple[str, ...], int] = ((), 0)
    refusals: bool = True
    served: Mapping[str, int] = field(default_factory=dict)
    fails: float = 0.0

    @property
    def generator(self) -> Any:
        return import_module(f"muarl.domains.{self.name}.generator")

    def domain(self, size: str) -> Domain:
        return generated(f"{self.name}-generated").domain(size)


SERVED = {"tiny": 200, "small": 150, "medium": 100, "official": 150}
CASES = (
    Case(
        "retail", retail, apart={"gold": gold, "swaps": swaps}, idle=(("tiny", "official"), 200), served=SERVED,
        fails=0.02,
    ),
    Case("airline", airline, apart={"gold": gold}, idle=(("tiny", "official"), 200), served=SERVED, fails=0.02),
    Case("telecom", telecom, apart={"faults": faults}, idle=(ALL_SIZES, 150), served=dict.fromkeys(ALL_SIZES, 150)),
    Case("acebench", acebench, drawn=60, apart={"request": requests}, idle=(ALL_SIZES, 100), refusals=False),
    Case("bfcl", bfcl, sizes=("tiny", "official"), apart={"gold": gold, "chosen": chosen}, shared=3),
)  # fmt: skip
everywhere = pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])


# the same for everybody


@everywhere
@pytest.mark.parametrize("which", [0, 1])
def test_the_same_arguments_give_the_same_tasks(case, which):
    size, generator = case.sizes[which], case.generator
    domain = case.domain(size)
    first = generator.tasks("test", 12, size=size, seed=5)
    again = generator.tasks("test", 8, size=size, seed=5, start=4)
    assert [(task_row(t), t.initial_data) for t in first[4:]] == [(task_row(t), t.initial_data) for t in again]
    assert [domain.world(t).digest() for t in first[4:]] == [domain.world(t).digest() for t in again]
    others = generator.tasks("test", 12, size=size, seed=6)
    combination = generator.combination
    assert len({combination(t) for t in first} & {combination(t) for t in others}) <= case.shared
    assert task_row(generator.make_task("test", 9, size=size, seed=5)) == task_row(first[9])
    assert len({t.id for t in first}) == 12


PRINTED = """
import json
from importlib import import_module

def rows(name, size):
    for t in import_module(f"muarl.domains.{name}.generator").tasks("train", 8, size=size):
        yield [t.scenario, t.agenda, t.initial_data, t.initial_actions, [[a.name, a.arguments] for a in t.actions]]
"""


def test_tasks_do_not_depend_on_pythons_hash_seed():
    wanted = [(case.name, size) for case in CASES for size in case.sizes]
    code = f"{PRINTED}\nprint(json.dumps([list(rows(*which)) for which in {wanted}], default=list))"
    path = str(Path(muarl.__file__).parents[1])
    shown = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    for which, one, other in zip(wanted, *map(json.loads, shown), strict=True):
        assert one == other, which
        here = import_module(f"muarl.domains.{which[0]}.generator").tasks("train", 8, size=which[1])
        assert [row[0] for row in one] == [t.scenario for t in here], which


@everywhere
def test_unknown_splits_and_sizes_are_refused(case):
    with pytest.raises(ValueError, match="split must be one of train, validation, test, not 'dev'"):
        case.generator.tasks("dev", 1)
    with pytest.raises(ValueError, match="size must be one of tiny, small, medium, official, not 'huge'"):
        case.generator.tasks("test", 1, size="huge")
    with pytest.raises(ValueError, match="size must be one of"):
        case.domain("huge")


@everywhere
def test_an_agenda_and_a_world_are_plain_json(case):
    for size in case.sizes:
        for task in case.kit.made(size, "test", case.drawn)[:20]:
            assert json.loads(json.dumps([task.agenda, task.initial_data])) == [task.agenda, task.initial_data]


# splits


def disjoint(sets: Mapping[str, set[Any]]) -> bool:
    return all(sets.values()) and all(not sets[a] & sets[b] for a in sets for b in sets if a < b)


@everywhere
@pytest.mark.parametrize("size", ALL_SIZES)
def test_the_splits_are_disjoint(case, size):
    combination = case.generator.combination
    keys: dict[str, Callable[[Task], set[Any]]] = {
        "combination": lambda t: {combination(t)},
        "its first part, who calls or what for": lambda t: {combination(t)[0]},
        "scenario": lambda t: {t.scenario},
        **case.apart,
    }
    found = {split: case.kit.made(size, split, case.drawn) for split in SPLITS}
    for what, key in keys.items():
        assert disjoint({s: set().union(*map(key, tasks)) for s, tasks in found.items()}), what


@pytest.mark.parametrize("case", CASES[:2], ids=["retail", "airline"])
@pytest.mark.parametrize("size", ALL_SIZES[1:])
def test_nobody_who_lives_in_one_splits_worlds_lives_in_anothers(case, size):
    def names(task: Task) -> set[Any]:
        table = case.domain(size).world(task).toolkit().db["users"]
        return {tuple(table.peek(k)["name"].values()) for k in table}

    found = {split: case.kit.made(size, split, case.drawn)[:3] for split in SPLITS}
    assert disjoint({s: set().union(*map(names, tasks)) for s, tasks in found.items()})


@everywhere
def test_a_combination_is_only_defined_for_generated_tasks(case):
    with pytest.raises(ValueError, match="was not generated"):
        case.generator.combination(Task("x", case.name, "", None))


# what they are worth


def mean(episodes: list[Any]) -> float:
    return sum(e.reward for e in episodes) / len(episodes)


@pytest.mark.parametrize(("case", "size"), [pytest.param(c, s, id=f"{c.name}-{s}") for c in CASES for s in c.idle[0]])
def test_doing_nothing_and_always_transferring_earn_little(case, size):
    tasks = case.kit.made(size, "test", case.idle[1])
    nothing, transfer = case.kit.play(IdleAgent(), tasks, size), case.kit.play(TransferAgent(), tasks, size)
    assert mean(nothing) < SHARES and mean(transfer) < SHARES
    assert all(e.stop.chosen for e in nothing + transfer), "the caller or the agent ends it, no limit does"
    for task, idle, handed in zip(tasks, nothing, transfer, strict=True):
        # Even where a hand-over is right, the caller must be identified first.
        refused = task.tags["intent"] == "forbidden"
        assert not case.refusals or idle.reward == handed.reward == refused, task.id


@pytest.mark.parametrize(("case", "size"), [pytest.param(c, s, id=f"{c.name}-{s}") for c in CASES for s in c.served])
def test_the_clean_expert_serves_nearly_everybody(case, size):
    tasks = case.kit.made(size, "test", case.served[size])
    failed = [t.id for t, e in zip(tasks, case.kit.expert(tasks, size), strict=True) if e.reward < 1]
    assert len(failed) <= case.fails * len(tasks), failed


@pytest.mark.parametrize(
    ("name", "size", "split", "index"),
    [("food-delivery-generated", "tiny", "validation", 15), ("airline-generated", "small", "test", 12_000)],
)
def test_a_kind_that_has_no_place_in_its_world_gives_way_to_another(
    name: str, size: str, split: str, index: int
) -> None:
    """A run draws thousands of tasks, and must not end for one that no world can host."""
    task = generated(name).tasks(split, 1, size=size, start=index)[0]
    assert task.id.endswith(f"-{split}-0-{index}") and task.actions is not None
