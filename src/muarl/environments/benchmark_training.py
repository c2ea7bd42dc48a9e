"""Training on a benchmark's own tasks: which benchmarks a run trains on, and what a checkpoint's scores mean then."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from muarl.basics.errors import ConfigError
from muarl.environments.environment import Environment
from muarl.environments.registry import find


def benchmarks_among(names: Iterable[str]) -> tuple[str, ...]:
    """The environments of these names whose tasks are a benchmark's. Those of code that nobody has named in this
    process, or of a plug-in that is not installed, are left out."""
    return tuple(environment.name for environment in map(_known, names) if environment and environment.is_benchmark)


def has_learned_from(environment: Environment, benchmarks: Collection[str]) -> bool:
    """Whether a checkpoint that was trained on the tasks of these ``benchmarks`` has seen tasks of a benchmark: its
    own, or those of another in the same domain, which has tasks in common with it (tau1-retail and tau2-retail)."""
    if not environment.is_benchmark:
        return False
    practices = {other.practice for other in map(_known, benchmarks) if other is not None} - {None}
    return environment.name in benchmarks or environment.practice in practices


def _known(name: str) -> Environment | None:
    try:
        return find(name)
    except ConfigError:
        return None
