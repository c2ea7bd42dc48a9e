"""Environments by the domain that their tasks are of: what a log, a task's id or an episode says, rather than a name.

Only environments that come with muarl or are installed are asked, which are imported for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from muarl.basics.errors import MuarlError
from muarl.environments.environment import Environment
from muarl.environments.registry import find, names


@cache
def by_domain() -> Mapping[str, tuple[Environment, ...]]:
    """All environments by ``Environment.task_domain``; made ones before benchmarks."""
    found: dict[str, list[Environment]] = {}
    for name in names():
        try:
            environment = find(name)
            found.setdefault(environment.task_domain, []).append(environment)
        except MuarlError:  # a plug-in that does not work is told of where it is named, and is in nobody else's way
            continue
    return {domain: tuple(sorted(some, key=lambda e: e.is_benchmark)) for domain, some in found.items()}


def environment_of(domain: str, *, benchmark: bool = False) -> Environment | None:
    """An environment with tasks of this domain, None if there is none. ``benchmark``: preferably a benchmark, else
    preferably one that is none."""
    found = by_domain().get(domain, ())
    return next((e for e in found if e.is_benchmark == benchmark), found[0] if found else None)
