"""Training on a benchmark's own tasks: which benchmarks a run trains on, and what a checkpoint's scores mean then."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import read_yaml
from muarl.environments.environment import Environment
from muarl.environments.recorded_episodes import usable
from muarl.environments.registry import find

UP = 2
"""How many folders a file of conversations lies below its run's, at most."""


def benchmarks_learned(domains: Iterable[str], file: Path | None = None) -> tuple[str, ...]:
    """The benchmarks on whose own tasks a run trains: those among its ``domains``, and those of the demonstrations in
    its ``file``. Domains of code that nobody has named in this process are left out, and those of plug-ins that are
    not installed."""
    own = [environment.name for environment in map(_known, domains) if environment and environment.is_benchmark]
    return tuple(dict.fromkeys([*own, *(() if file is None else benchmarks_played(file))]))


def benchmarks_played(file: Path) -> tuple[str, ...]:
    """The benchmarks whose tasks the conversations in a file are about, by the configuration of the run that it lies
    in. None are known of a file that lies in no run."""
    for folder in list(file.expanduser().absolute().parents)[: UP + 1]:
        if (folder / "status.json").is_file() and (folder / "config.yaml").is_file():
            try:
                config = read_yaml(folder / "config.yaml")
            except DataError:
                return ()
            played = usable(config) if isinstance(config, Mapping) else []
            return tuple(environment.name for environment in played if environment.is_benchmark)
    return ()


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
