"""Small parts of API classes: facts beside the code, copies of their state, random draws, long_context's literals."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from muarl_worlds.bfcl.api import Api, LongContext

_ATOMS = frozenset((str, int, float, bool, type(None), bytes, complex, type(...)))
"""The types of values that cannot change and hold nothing that can."""

A = TypeVar("A", bound=Api)
C = TypeVar("C", bound=type[Api])


@cache
def facts(name: str) -> Any:
    """The JSON file ``name`` beside this module. Shared by all who read it: what goes into a state is copied first."""
    return json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))


def named(cls: C) -> C:
    """Class decorator: Python's errors about arguments name the methods as upstream's class has them."""
    for member in vars(cls).values():
        if isinstance(member, FunctionType):
            member.__qualname__ = f"{cls.name}.{member.__name__}"
    return cls


class Draws:
    """Random numbers as ``random.Random(seed)`` draws them. Nothing is seeded or copied before it is needed."""

    __slots__ = ("_random", "_seed", "_shared")

    def __init__(self, seed: Any) -> None:
        """TypeError where ``random.Random`` takes no such seed."""
        self._seed = seed
        self._random = None if type(seed) is int else random.Random(seed)
        self._shared = False

    def randint(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return self._own().randint(low, high)

    def uniform(self, low: float, high: float) -> float:
        """A number between two others."""
        return self._own().uniform(low, high)

    def copy(self) -> Draws:
        """Draws the same numbers from here on."""
        twin = object.__new__(Draws)
        self._shared = twin._shared = self._random is not None
        twin._seed, twin._random = self._seed, self._random
        return twin

    def _own(self) -> random.Random:
        if self._random is None:
            self._random = random.Random(self._seed)
        elif self._shared:
            own = random.Random(0)
            own.setstate(self._random.getstate())
            self._random, self._shared = own, False
        return self._random

    def __deepcopy__(self, memo: dict[int, Any]) -> Draws:
        return self.copy()

    def __repr__(self) -> str:
        """The same for those who draw the same from here on."""
        numbers = (self._random or random.Random(self._seed)).getstate()[1]
        return f"Draws({hash(numbers)})"  # of whole numbers alone, so the same in every process


class Literals:
    """What long_context adds, by upstream's constant name; empty elsewhere. Only copies leave it."""

    __slots__ = ("_literals",)

    def __init__(self, literals: LongContext | None) -> None:
        self._literals: LongContext = {} if literals is None else literals

    def __getitem__(self, name: str) -> Any:
        return copied(self._literals[name])

    def __deepcopy__(self, memo: dict[int, Any]) -> Literals:
        return self

    def __repr__(self) -> str:
        return f"Literals({', '.join(self._literals)})"


def copied(value: Any) -> Any:
    """A deep copy; quick for what JSON can hold, however deep it is."""
    return value if type(value) in _ATOMS else _tree(value, {})


def initial(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The initial state that a scenario gives: copies of its values, the defaults for what it leaves out."""
    state = {name: config.get(name, default) for name, default in defaults.items()}
    return {name: value if type(value) in _ATOMS else copied(value) for name, value in state.items()}


def twin(api: A) -> A:
    """A copy of an API object: everything that can change is its own; what was one thing twice stays so within it."""
    memo: dict[int, Any] = {}
    other = object.__new__(type(api))
    vars(other).update(vars(api))
    for name, value in vars(api).items():
        if type(value) not in _ATOMS:
            vars(other)[name] = _tree(value, memo)
    return other


def _tree(value: Any, memo: dict[int, Any]) -> Any:
    """``copy.deepcopy`` (and its memo) without recursion into dicts and lists."""
    top = [value]
    waiting: list[Any] = [top]
    while waiting:
        container = waiting.pop()
        for key, item in container.items() if type(container) is dict else enumerate(container):
            kind = type(item)
            if kind in _ATOMS:
                continue
            if kind is not dict and kind is not list:
                container[key] = copy.deepcopy(item, memo)
                continue
            own = memo.get(id(item))
            if own is None:
                own = memo[id(item)] = item.copy()
                waiting.append(own)
            container[key] = own
    return top[0]
