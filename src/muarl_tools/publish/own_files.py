"""Which environments can be published, and the files that one of a person's own takes along."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from muarl.basics.errors import ConfigError
from muarl.domains.mcp.domain import McpDomain
from muarl.domains.sql.declared import SqlDatabase
from muarl.environments.environment import Environment
from muarl.environments.registry import built_in, canonical, is_reference, names
from muarl_tools.publish.other_process import MeasuredElsewhere

DATABASES = (".sqlite", ".sqlite3", ".db")
"""How the names of SQLite files end."""


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """The files of an environment of one's own."""

    file: str
    """The environment's file, relative to its folder."""

    name: str
    """What the environment is called in it."""

    files: Mapping[str, Path] = field(default_factory=dict)
    """The files to copy: by their paths relative to the folder, with "/" between the parts."""

    packages: Sequence[str] = ()
    """Requirements of the packages that its modules import."""

    left: Sequence[str] = ()
    """What lies in the folder and is not copied."""

    @property
    def databases(self) -> list[str]:
        """Those of the files that are SQLite databases."""
        return [name for name in self.files if name.endswith(DATABASES)]


def check_publishable(environment: Environment, named: str, size: str | None) -> None:
    """ConfigError for an environment that would not work, or may not be published, elsewhere. ``named``: as it was
    named."""
    if environment.is_benchmark:
        hint = f": publish {environment.practice} instead" if environment.practice else ""
        raise ConfigError(
            f"{environment.name} is a benchmark: its data have a licence of their own and are for evaluation, so that "
            f"it is not exported{hint}"
        )
    if is_reference(named) and not named.rpartition(":")[0].endswith(".py"):
        raise ConfigError(f"{named} is a module: name its file (FILE.py:NAME), so that what it needs can be copied")
    if not is_reference(named) and named not in built_in():
        raise ConfigError(f"{named} is a plug-in's: name the file with its code (FILE.py:NAME), which can be copied")
    if is_reference(named) and environment.name in names():
        raise ConfigError(
            f"{named} is called {environment.name}, as an environment of muarl's or of a plug-in is: give it another "
            "name, since its tasks are found by it"
        )
    if size is not None and not environment.sizes:
        raise ConfigError(f"--size: {environment.name} has only one size; remove --size")
    if size is not None:
        environment.check_size(size, "--size")
    domain = environment.make_domain(size)
    if environment.on_server or isinstance(domain, McpDomain):
        raise ConfigError(f"{environment.name} has its world on an MCP server of this machine, which is not exported")
    if isinstance(domain.declared_database, SqlDatabase) and not domain.declared_database.in_file:
        raise ConfigError(
            f"{environment.name} reads the database of a server, which is not elsewhere: copy its tables into a SQLite "
            'file beside the code, and give SqlDatabase(Path("FILE.sqlite")) (docs/domains.md)'
        )


def needed_files(reference: str, elsewhere: MeasuredElsewhere) -> OwnFiles:
    """The files that the environment of a reference takes along: modules, and what it read when it was measured.

    ConfigError names what lies outside of its folder, or is hidden in it.
    """
    place, _, name = canonical(reference).rpartition(":")
    file = Path(place)
    folder = file.parent
    wanted = {file, *elsewhere.modules.values(), *elsewhere.read}
    outside = sorted(path for path in wanted if not path.is_relative_to(folder))
    if outside:
        raise ConfigError(
            f"{reference} reads {', '.join(map(str, outside[:3]))}, outside of its folder {folder}: move it there, and "
            "name it relative to the module"
        )
    files = {path.relative_to(folder).as_posix(): path for path in sorted(wanted)}
    hidden = next((name for name in files if any(part.startswith(".") for part in name.split("/"))), None)
    if hidden is not None:
        raise ConfigError(
            f"{reference} reads {hidden} in {folder}, a hidden file: such files often hold keys, so that they are not "
            "copied. Give it another name if it may be published, else let the code do without it"
        )
    own = {module.partition(".")[0] for module in elsewhere.modules} | {file.stem}
    code = [path for path in files.values() if path.suffix == ".py"]
    return OwnFiles(file.name, name, files, _packages(code, own), _left(folder, files))


def _left(folder: Path, files: Mapping[str, Path]) -> list[str]:
    """What lies directly in the folder and of which nothing is copied, hidden and compiled files apart."""
    copied = {name.partition("/")[0] for name in files}
    there = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__pycache__")))
    return [path.name + "/" * path.is_dir() for path in there if path.name not in copied]


def _packages(code: Sequence[Path], own: set[str]) -> list[str]:
    """Requirements of the installed packages, besides muarl, that modules import."""
    providers = metadata.packages_distributions()
    imported = {name.partition(".")[0] for path in code for name in _imports(path)}
    foreign = imported - own - set(sys.stdlib_module_names)
    found = {distribution for name in foreign for distribution in providers.get(name, ())[:1]}
    return sorted(f"{name}>={metadata.version(name)}" for name in found if name != "muarl")


def _imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_bytes())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    absolute = [node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return plain | {node.module for node in absolute if node.module}
