"""Environments by name: muarl's own, those of installed plug-ins, and references to a person's own code.

    names()                                  # all that can be had without naming code, nothing imported
    find("retail-generated")                 # an Environment
    approve("./clinic.py:CLINIC")            # the person has named this code: it may be imported
    find("./clinic.py:CLINIC")
    environment_of("retail")                 # by the domain that its tasks are of

A plug-in is an installed package with an entry point in the group ``muarl.environments``. A reference is
``FILE.py:NAME`` or ``package.module:NAME``.

**Trust.** Finding an environment imports its module, which runs its code. What is part of muarl or installed as a
plug-in may always be imported. A reference may come from a file that somebody else wrote (a run's config.yaml), so
``find`` refuses it unless ``approve`` was called with the same reference in this process. The command line approves
what stands on it and, of a configuration that the person named, references to installed modules
(cli/environment_approval.py); a program approves what its author writes down. Only ``--resume`` remembers an
approval, of an unchanged file for one run (runs/own_code.py).
``approved()`` goes along to the processes of a cluster, which approve the same.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import sys
import traceback
from collections.abc import Mapping
from functools import cache
from importlib import import_module, metadata
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import ConfigError, MuarlError
from muarl.environments.task_addresses import TaskAddress

if TYPE_CHECKING:
    from muarl.domains.tasks import Task
    from muarl.environments.environment import Environment

MOST_FILES = 1000
"""Python files of the current folder that a misspelt name is compared with."""
GROUP = "muarl.environments"
"""The entry point group of environments: muarl's own, and those of plug-ins."""

PACKAGE = "muarl"
"""The distribution that this module is part of. Its environments' names cannot be taken by others."""

_approved: set[str] = set()
_foreign: list[ModuleType] = []
"""Modules of environments that are not muarl's own."""
_siblings: dict[str, ModuleType] = {}
"""Modules that files were loaded with from their own folders."""


def names() -> tuple[str, ...]:
    """The names of muarl's own environments and of those of installed plug-ins, each in the order of the alphabet, but
    for numbers in them: later versions come first. Imports none of them."""
    return (*sorted(built_in(), key=_order), *sorted((n for n in _plugins() if n not in built_in()), key=_order))


def _order(name: str) -> list[tuple[str, int]]:
    """Sorts names: each piece of text with the number behind it, high numbers first."""
    return [(text, -int(number or 0)) for text, number in re.findall(r"(\D+)(\d*)", name)]


@cache
def built_in() -> Mapping[str, str]:
    """The environments that come with muarl, by name: the references under which they are found."""
    points = metadata.entry_points(group=GROUP)
    return {point.name: point.value for point in points if _package(point) == PACKAGE}


def unused_plugins() -> tuple[str, ...]:
    """What to say of installed plug-ins that are never found, since muarl has an environment of that name itself."""
    return tuple(
        f"the plug-in {name} of {_package(point)} is not used: muarl has an environment of that name; give it another"
        for name, point in _plugins().items()
        if name in built_in()
    )


def origin(name: str) -> str:
    """Where an environment comes from: "muarl", or the plug-in's package with its version."""
    point = None if name in built_in() else _plugins().get(name)
    if point is None:
        return "muarl" if name in built_in() else "own code"
    return point.value if point.dist is None else f"{point.dist.name} {point.dist.version}"


def is_reference(name: str) -> bool:
    """Whether a name is a reference to code, ``FILE.py:NAME`` or ``package.module:NAME``."""
    return ":" in name


def is_folder(name: str) -> bool:
    """Whether a scenario's name is a folder of texts (docs/coldstart.md), and no environment's."""
    return not is_reference(name) and ("/" in name or Path(name).is_dir())


def canonical(reference: str) -> str:
    """A reference as every process understands it: with the whole path of its file. ConfigError if it is none."""
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise ConfigError(f"{reference}: must be FILE.py:NAME or package.module:NAME")
    if place.endswith(".py"):
        return f"{Path(place).expanduser().resolve()}:{name}"
    if not all(part.isidentifier() for part in place.split(".")):
        raise ConfigError(f"{reference}: must be FILE.py:NAME or package.module:NAME")
    return reference


def approve(reference: str) -> str:
    """Allow this process to import what a reference names, because the person has named it. Its canonical form.
    ConfigError if it is no reference. Imports nothing."""
    canonical_form = canonical(reference)
    _approved.add(canonical_form)
    return canonical_form


def approved() -> tuple[str, ...]:
    """The references that this process may import, in their canonical form."""
    return tuple(sorted(_approved))


def find(name: str, where: str = "domain.name") -> Environment:
    """The environment of a name, or of a reference that was approved. ``where``: the setting that says so.

    ConfigError for an unknown name (with the nearest one), for a reference that nobody has approved, and for code that
    cannot be imported or is no environment. What is not approved is not imported.
    """
    if is_reference(name):
        reference = canonical(name)
        if reference not in _approved:
            raise ConfigError(
                f"{where} is {name}, which is code that would be imported: if you trust it, name it yourself: give "
                f"--domain {name} on the command line"
            )
        return _load(reference)
    if name in built_in():
        return _load(built_in()[name])
    if name in _plugins():
        return _of_plugin(name)
    raise ConfigError(
        f"{where}: {unknown(name)}. If a run names it: install the plug-in that it is of, or resume the run by the "
        "script that started it"
    )


def load_reference(reference: str) -> Environment:
    """The environment of a reference that the caller's own author has written down: approved, then found."""
    return find(approve(reference))


def load_environment(name: str) -> Environment:
    """The environment of a name (`muarl domains` lists them), or of code: ``FILE.py:NAME`` or ``package.module:NAME``.

    Code is imported, so its name must be your own words, and never come out of a file that somebody else wrote.
    ConfigError, with the nearest name, where there is none, and for code that cannot be imported.
    """
    return load_reference(name) if is_reference(name) else find(name)


def load_task(address: str) -> Task:
    """The task at an address: ``ENVIRONMENT:SPLIT:NUMBER``, such as "retail-generated:test:17".

    Where needed with ``?size=SIZE&seed=SEED`` behind it. An address may come out of a file, so it imports no code:
    environments of one's own must have been loaded in this process (``load_environment``), and are called by their
    names or as they were loaded. ConfigError if there is no such task.
    """
    parsed = TaskAddress.parse(address)
    return _named(parsed.environment).task(parsed.split, parsed.index, size=parsed.size, seed=parsed.seed)


def _named(name: str) -> Environment:
    """The environment of an address."""
    if is_reference(name):
        if canonical(name) not in _approved:
            raise ConfigError(f"{name} is code that would be imported: call muarl.load_environment({name!r}) first")
        return find(name)
    if name in names():
        return find(name)
    own = next((e for e in map(find, approved()) if e.name == name), None)
    if own is None:
        raise ConfigError(f"{unknown(name)}. One of your own must be loaded first: muarl.load_environment")
    return own


@cache
def by_domain() -> Mapping[str, tuple[Environment, ...]]:
    """All environments by ``Environment.task_domain``, which is what a log, a task's id or an episode says rather than
    a name; made ones before benchmarks. Those that come with muarl or are installed, which are imported for it."""
    environments: dict[str, list[Environment]] = {}
    for name in names():
        try:
            environment = find(name)
            environments.setdefault(environment.task_domain, []).append(environment)
        except MuarlError:  # a plug-in that does not work is told of where it is named, and is in nobody else's way
            continue
    return {domain: tuple(sorted(some, key=lambda e: e.is_benchmark)) for domain, some in environments.items()}


def environment_of(domain: str, *, benchmark: bool = False) -> Environment | None:
    """An environment with tasks of this domain, None if there is none. ``benchmark``: preferably a benchmark, else
    preferably one that is none."""
    candidates = by_domain().get(domain, ())
    return next((e for e in candidates if e.is_benchmark == benchmark), candidates[0] if candidates else None)


def unknown(name: str) -> str:
    """What to say of a name that nobody has: the nearest one, where there is one, and where all are listed."""
    files = {path.stem: f"./{path.name}:NAME" for path in islice(Path().glob("*.py"), MOST_FILES)}
    near = difflib.get_close_matches(name, [*names(), *files], 1, 0.6)
    hint = f"; did you mean {files.get(near[0], near[0])}?" if near else ""
    if name.endswith(".py"):
        hint = f"; say which of its environments: {name}:NAME"
    return f"there is no environment {name!r}{hint} (`muarl domains` lists them; your own: FILE.py:NAME)"


@cache
def _plugins() -> dict[str, metadata.EntryPoint]:
    """Installed plug-ins by name. ConfigError names both packages where two have one name."""
    plugins: dict[str, metadata.EntryPoint] = {}
    for point in metadata.entry_points(group=GROUP):
        if _package(point) == PACKAGE:
            continue
        other = plugins.setdefault(point.name, point)
        if other.value != point.value:
            raise ConfigError(
                f"two installed packages have an environment {point.name!r}: {_package(other)} and {_package(point)}; "
                "uninstall one of them"
            )
    return plugins


def _package(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _of_plugin(name: str) -> Environment:
    point = _plugins()[name]
    return _load(point.value, f"the plug-in {name} of {_package(point)}")


@cache
def _load(reference: str, label: str = "") -> Environment:
    """The environment that a reference names. ``label``: what to call it."""
    from muarl.domains.base import Domain
    from muarl.environments.environment import Environment

    place, _, name = reference.rpartition(":")
    label = label or reference
    try:
        module = _module_of_file(Path(place)) if place.endswith(".py") else import_module(place)
    except ConfigError as problem:
        raise ConfigError(f"{label}: {problem}{_line_of(problem, place)}") from problem
    except FileNotFoundError:
        raise ConfigError(f"{label}: there is no file {place}") from None
    except (Exception, SystemExit) as problem:
        last = traceback.format_exception_only(problem)[-1].strip()
        raise ConfigError(f"{label} cannot be imported: {last}{_line_of(problem, place)}") from problem
    if reference not in built_in().values() and module not in _foreign:
        _foreign.append(module)
    member: Any = vars(module).get(name)
    if isinstance(member, Environment):
        return member
    others = [n for n, value in vars(module).items() if isinstance(value, Environment)]
    if name not in vars(module):
        hint = f"it has {', '.join(others)}" if others else "it defines no Environment"
        raise ConfigError(f"{label}: there is no {name} in {place}; {hint}")
    if (isinstance(member, type) and issubclass(member, Domain)) or isinstance(member, Domain):
        raise ConfigError(
            f"{label}: {name} is a Domain, which has no tasks yet: write ENVIRONMENT = Environment(name=..., "
            f"domain={name}, tasks=...) beside it, and name that (docs/domains.md)"
        )
    raise ConfigError(f"{label}: {name} is a {type(member).__name__}, not an Environment")


def place_in_code(problem: BaseException) -> str | None:
    """Where in the code of an environment that is not muarl's own a problem arose, as "FILE, line N, in FUNCTION": the
    innermost of its lines. None if it arose elsewhere."""
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if any(_is_code_of(module, Path(frame.filename)) for module in _foreign):
            return f"{frame.filename}, line {frame.lineno}, in {frame.name}"
    return None


def _is_code_of(module: ModuleType, file: Path) -> bool:
    """Whether a file is that of a module, or lies beside it in the same package or folder of one's own."""
    own = Path(getattr(module, "__file__", None) or "")  # a namespace has none
    shared = not module.__package__ and own.parent.name in ("site-packages", "dist-packages")
    return file == own or (not shared and file.parent == own.parent)


def _line_of(problem: BaseException, place: str) -> str:
    """The line of the author's file at which an import went wrong, where there is one."""
    if isinstance(problem, SyntaxError):
        return f" (line {problem.lineno})" if problem.lineno else ""
    lines = [f.lineno for f in traceback.extract_tb(problem.__traceback__) if f.filename == place]
    return f" (line {lines[-1]})" if lines else ""


def _module_of_file(path: Path) -> ModuleType:
    """A file as a module under a name of its own, so that it can stand for no other. While it is imported it can import
    the files beside it; they come last, so that none can take the place of an installed package."""
    name = f"_muarl_environment_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module, folder = module_from_spec(spec), str(path.parent)
    for other in list(_siblings):  # a file beside another environment is not meant here
        if sys.modules.get(other) is _siblings[other]:
            del sys.modules[other]
        del _siblings[other]
    before = set(sys.modules)
    sys.modules[name] = module
    sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(folder)
        for new in sys.modules.keys() - before - {name}:
            file = getattr(sys.modules[new], "__file__", None)
            if file is not None and Path(file).resolve().is_relative_to(folder):
                _siblings[new] = sys.modules[new]
    return module
