"""What all hand-written generators of tasks have in common, beyond the contract (environments/test_contract.py).

What is theirs alone stands in bfcl/test_generator.py; what holds of services, in kit/test_tasks.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.base import Domain
from muarl.domains.generated import SPLITS
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl_worlds.bfcl.requests import RECIPES
from support import bfcl

ALL_SIZES = ("tiny", "small", "medium", "official")


def gold(task: Task) -> set[str]:
    return {json.dumps([[a.name, a.arguments] for a in task.actions or ()])}


def chosen(task: Task) -> set[Hashable]:
    parts = zip(task.agenda["requests"], import_module("muarl_worlds.bfcl.generator").combination(task), strict=True)
    return {part for request, part in parts if RECIPES[request["kind"]].open}


@dataclass(frozen=True)
class Case:
    """One domain. ``drawn``: how many tasks of a split are compared. ``apart``: further things by which splits are
    disjoint."""

    name: str
    kit: Any
    drawn: int = 60
    apart: Mapping[str, Callable[[Task], set[Any]]] = field(default_factory=dict)

    @property
    def generator(self) -> Any:
        return import_module(f"muarl.domains.{self.name}.generator")

    def domain(self, size: str) -> Domain:
        return find(f"{self.name}-generated").make_domain(size)


CASES = (Case("bfcl", bfcl, apart={"gold": gold, "chosen": chosen}),)
everywhere = pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])


# the same for everybody


@everywhere
def test_unknown_splits_and_sizes_are_refused(case):
    with pytest.raises(ValueError, match="split must be one of train, validation, test, not 'dev'"):
        case.generator.tasks("dev", 1)
    with pytest.raises(ValueError, match="size must be one of tiny, small, medium, official, not 'huge'"):
        case.generator.tasks("test", 1, size="huge")
    with pytest.raises(ConfigError, match="the sizes of .* are tiny, small, medium, official"):
        case.domain("huge")


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


@everywhere
def test_a_combination_is_only_defined_for_generated_tasks(case):
    with pytest.raises(ValueError, match="was not generated"):
        case.generator.combination(Task("x", case.name, "", None))


# what they are worth


@pytest.mark.parametrize(
    ("name", "size", "split", "index"),
    [("food-delivery-generated", "tiny", "validation", 15), ("airline-generated", "small", "test", 12_000)],
)
def test_a_kind_that_has_no_place_in_its_world_gives_way_to_another(
    name: str, size: str, split: str, index: int
) -> None:
    """A run draws thousands of tasks, and must not end for one that no world can host."""
    task = find(name).make_tasks(split, 1, size=size, start=index)[0]
    assert task.id.endswith(f"-{split}-0-{index}") and task.actions is not None
