"""Environments that a person names on the command line, which approves their code for import.

An environment's name may be a reference to code: ``./clinic.py:CLINIC`` or ``package.module:CLINIC``. Whoever writes it
as an argument, in ``--domain`` or as ``domain.name=...`` has asked for that import. A configuration file that they name
with ``--config`` may refer to installed modules. What stands in a run's folder refers to nothing (SECURITY.md), but a
resumed run knows the file that it was started with (runs/own_code.py).
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import ConfigError

if TYPE_CHECKING:
    from muarl.config.sections import RunConfig

SETTINGS = re.compile(r"domain(\.\d+)?(\.name)?|coldstart\.scenarios")
"""Settings that name environments."""


def approved(value: str | None) -> str | None:
    """The environment that an option or an argument names, its code approved for import.

    A file's path is made absolute, so that the run that keeps it can be resumed from another folder; a module may also
    lie in the current folder. ConfigError for a name that nobody has, and for what is no reference. Imports nothing.
    """
    from muarl.environments.registry import approve, is_reference, names, unknown

    if value is None:
        return None
    if not is_reference(value):
        if value not in names():
            raise ConfigError(unknown(value))
        return value
    reference = approve(value)
    here = str(Path.cwd())
    if not reference.partition(":")[0].endswith(".py") and here not in sys.path and _origin(reference) is None:
        sys.path.append(here)  # at the end: nothing there can take the place of an installed package
    return reference


def approved_all(values: list[str] | None) -> list[str] | None:
    """The same of an option that may be given several times."""
    return None if values is None else [one for value in values if (one := approved(value)) is not None]


def approved_rules(value: str | None) -> str | None:
    """The same of what may also be another name than an environment's: of rules, of a folder of texts."""
    from muarl.environments.registry import is_reference

    return approved(value) if value is not None and is_reference(value) else value


def approved_scenarios(values: list[str] | None) -> list[str] | None:
    """The same of scenarios, which may also be folders of texts."""
    return None if values is None else [approved_rules(value) or value for value in values]


def approved_settings(words: list[str] | None) -> list[str] | None:
    """The KEY=VALUE settings of a command line, with the environments that they name approved."""
    return None if words is None else [_approved_setting(word) for word in words]


def single(values: list[str] | None) -> str | None:
    """The environment of an option for one (``Domain``). ConfigError where several are named."""
    if values and len(values) > 1:
        raise ConfigError(f"--domain: this takes one domain, not {' and '.join(values)}: name one of them")
    return values[0] if values else None


def weighted(values: list[str] | None) -> list[Any] | None:
    """The domains of an option that may be given several times, their code approved: names, or {"name", "weight"} of
    ``NAME=WEIGHT``. ConfigError for a weight that is not above 0."""
    return None if values is None else [_weighted(value) for value in values]


def _weighted(value: str) -> Any:
    name, equals, weight = value.rpartition("=")
    if not equals:
        return approved(value)
    try:
        share = float(weight)
    except ValueError:
        share = 0.0
    if not 0 < share < float("inf"):
        raise ConfigError(f"--domain {value}: write NAME=WEIGHT with a weight above 0, such as {name}=2")
    return {"name": approved(name), "weight": share}


def domain_name(chosen: list[Any] | None) -> Any:
    """What domains of the command line (``weighted``) are as the setting ``domain.name``."""
    if not chosen:
        return None
    return chosen[0] if len(chosen) == 1 and isinstance(chosen[0], str) else chosen


def approve_from_file(config: RunConfig, source: str) -> None:
    """Approve the installed modules that the configuration file of ``--config`` refers to.

    ConfigError, with the option to add, for a reference to a file, to Python's standard library, or to a module found
    in the current folder or beside the configuration; of a run's own configuration, for any.
    """
    from muarl.environments.registry import approve, canonical, is_reference
    from muarl.environments.registry import approved as known

    file = Path(source).expanduser()
    file = file / "config.yaml" if file.is_dir() else file
    for setting, name in config.environments:
        if not is_reference(name) or canonical(name) in known():
            continue
        if (why := _why_not(name, file)) is not None:
            raise ConfigError(
                f"{file}: {setting} is {name}, {why}. It is code that would be imported: if you trust it, add "
                f"--domain {_as_given(name, file)}"
            )
        approve(name)


def _why_not(name: str, file: Path) -> str | None:
    """Why a configuration file alone may not refer to this code; None if it may."""
    if (file.parent / "status.json").exists() or (file.parent / "episodes").exists():
        return "and a run's folder may not name code"
    if name.partition(":")[0].endswith(".py"):
        return "and a configuration file may not name a Python file"
    if name.partition(".")[0].partition(":")[0] in sys.stdlib_module_names:
        return "which is part of Python's standard library"
    places = _origin(name)
    if places is None:
        return "and no such module is installed"
    own = {Path.cwd().resolve(), file.resolve().parent}
    if any(place in own for place in places):
        return "a module that is found in the current folder or beside the configuration rather than installed"
    return None


def _origin(reference: str) -> list[Path] | None:
    """The folders that a reference's module, or its outermost package, is found in; None if there is none. Nothing is
    imported."""
    outermost = reference.partition(":")[0].partition(".")[0]
    try:
        spec = importlib.util.find_spec(outermost)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ()) or [spec.origin or os.devnull]
    return [Path(place).resolve().parent for place in places]


def _as_given(name: str, file: Path) -> str:
    """A reference as the command line must have it: the path of a file seen from the current folder."""
    place, _, attribute = name.rpartition(":")
    beside = file.parent / place
    if place.endswith(".py") and not Path(place).expanduser().is_file() and beside.is_file():
        return f"{beside}:{attribute}"
    return name


def _approved_setting(word: str) -> str:
    key, equals, text = word.partition("=")
    if not equals or SETTINGS.fullmatch(key.strip()) is None:
        return word
    from muarl.basics.untrusted import parse_yaml

    try:
        value = parse_yaml(text)
    except ValueError:
        return word  # told when it is read as a setting
    replaced = _approved_within(value)
    return word if replaced == value else f"{key}={json.dumps(replaced)}"


def _approved_within(value: Any) -> Any:
    """A value of a setting that names environments, with its references approved."""
    from muarl.environments.registry import is_reference

    if isinstance(value, str):
        return approved(value) if is_reference(value) else value
    if isinstance(value, list):
        return [_approved_within(item) for item in value]
    if isinstance(value, dict):
        return {k: _approved_within(v) if k == "name" else v for k, v in value.items()}
    return value
