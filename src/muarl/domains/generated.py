"""Domains whose worlds and tasks are made from seeds, so that training needs no benchmark's tasks.

Each is described by one ``Generated``, which stands in ``domains/NAME/generated.py`` as GENERATED.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from muarl.domains.base import Domain, Task
from muarl.domains.experts import Expert, Habits
from muarl.domains.observed import Observer
from muarl.domains.scenarios import FOLDERS
from muarl.errors import ConfigError

SPLITS = ("train", "validation", "test")
NAMES = (
    "retail-generated", "airline-generated", "telecom-generated", "acebench-generated", "bfcl-generated",
    *(f"{name}-generated" for name in FOLDERS),
)  # fmt: skip
ON_SERVERS = ("mcp-filesystem", "mcp-git", "mcp-sqlite", "mcp-memory")
"""Those on public MCP servers (domains/mcp/scenarios), which must be installed first."""


class MakeTasks(Protocol):
    """Tasks of one split without end, from index ``start`` on; the same arguments give the same tasks."""

    def __call__(self, split: str, *, size: str, seed: int = 0, start: int = 0) -> Iterator[Task]: ...


class MakeExpert(Protocol):
    """A scripted expert for one conversation."""

    def __call__(self, *, seed: int, habits: Habits) -> Expert: ...


@dataclass(frozen=True)
class Generated:
    """A domain with tasks from seeds.

    ``sizes``: what one knob can scale its worlds to, smallest first. ``domain(size)``: the domain that the tasks of a
    size run in. ``entities``, ``phrases``: the ids, names and values, and the fixed pieces of text, that the tiny
    model's tokenizer makes one token each (recipes/tiny.py). ``imagined(size, endpoint)``: the same domain with tools
    played by the model behind an endpoint, None where that is not provided for. ``observer``: how its results show its
    records, None where worlds cannot be put together from logs.
    """

    name: str
    sizes: tuple[str, ...]
    domain: Callable[[str], Domain]
    iter_tasks: MakeTasks
    expert: MakeExpert
    entities: Callable[[], Sequence[str]] = tuple
    phrases: Callable[[], Sequence[str]] = tuple
    imagined: Callable[[str, Any], Domain] | None = None
    observer: Observer | None = None

    def tasks(self, split: str, count: int, *, size: str = "tiny", seed: int = 0, start: int = 0) -> list[Task]:
        """``count`` tasks of one split, by seed. ValueError for an unknown split or size."""
        return list(itertools.islice(self.iter_tasks(split, size=size, seed=seed, start=start), count))


def generated(name: str) -> Generated:
    """The generated domain of that name, such as "retail-generated" or "mcp-git". ConfigError if there is none."""
    if name not in (*NAMES, *ON_SERVERS):
        known = ", ".join((*NAMES, *ON_SERVERS))
        raise ConfigError(f"domain.name: {name!r} is not a generated domain; there are {known}")
    own = name.removesuffix("-generated")
    if name in ON_SERVERS:
        place = f"mcp.scenarios.{name.removeprefix('mcp-')}"
    else:
        place = f"scenarios.{FOLDERS[own]}" if own in FOLDERS else own
    found = import_module(f"muarl.domains.{place}.generated").GENERATED
    assert isinstance(found, Generated)
    return found
