"""Training on a benchmark's own tasks: which benchmarks a run trains on, and what a checkpoint's scores mean then."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import read_json_object, read_yaml
from muarl.environments.environment import Environment
from muarl.environments.recorded_episodes import usable
from muarl.environments.registry import find

UP = 2
"""How many folders lie between a run and a file of its conversations, at most."""


def benchmarks_learned(domains: Iterable[str], *conversations: str | Path | None) -> tuple[str, ...]:
    """The benchmarks on whose own tasks a run trains: those among its ``domains``, and those of the ``conversations``
    that it learns from (see ``benchmarks_played``; None: none). Domains of code that nobody has named in this process
    are left out, and those of plug-ins that are not installed."""
    played = [name for place in conversations if place is not None for name in benchmarks_played(place)]
    return tuple(dict.fromkeys([*benchmarks_among(domains), *played]))


def benchmarks_among(names: Iterable[str]) -> tuple[str, ...]:
    """Those of these environments that are benchmarks."""
    return tuple(environment.name for environment in map(_known, names) if environment and environment.is_benchmark)


def benchmarks_played(place: str | Path) -> tuple[str, ...]:
    """The benchmarks whose tasks conversations are about, by the configuration of the run that they lie in. ``place``:
    a file, a run, or RUN:STEP. None are known of what lies in no run."""
    if (run := _run_around(place)) is None:
        return ()
    try:
        config, status = read_yaml(run / "config.yaml"), read_json_object(run / "status.json")
    except DataError:
        return ()
    if not isinstance(config, Mapping):
        return ()
    if status.get("command") != "coldstart":
        return tuple(environment.name for environment in usable(config) if environment.is_benchmark)
    section = config.get("coldstart")
    scenarios = section.get("scenarios") if isinstance(section, Mapping) else None
    return benchmarks_among(map(str, scenarios)) if isinstance(scenarios, list) else ()


def _run_around(place: str | Path) -> Path | None:
    """The folder of the run that a file, a folder or RUN:STEP is of; None for what lies in no run."""
    path = Path(place).expanduser()
    if not path.exists() and (named := str(place).rpartition(":")[0]):
        path = Path(named).expanduser()
    around = [path, *path.absolute().parents][: UP + 2]
    return next((f for f in around if (f / "status.json").is_file() and (f / "config.yaml").is_file()), None)


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
