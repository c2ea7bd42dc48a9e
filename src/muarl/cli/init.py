"""``muarl init``: a folder with a small complete environment, to be changed into one's own."""

from __future__ import annotations

import keyword
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from importlib import resources, util
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from muarl.basics.errors import ConfigError, MuarlError
from muarl.basics.files import clear_disk_errors, why_not_writable
from muarl.observe.terminal import echo


@dataclass(frozen=True, slots=True)
class Starter:
    """An environment that comes with muarl, whose name is exchanged."""

    name: str
    folder: str
    """Its folder in muarl's assets."""
    role: str
    """How its class is called behind the name."""
    taken: frozenset[str]
    """What else its module calls something in capitals."""
    edit: str
    """What to begin with."""


ZOO = Starter(
    "zoo", "starter", "Desk", frozenset({"TODAY", "VISITOR", "THE_BOOKING", "THE_DAY"}), "your rules in policy.md"
)
MARINA = Starter(
    "marina",
    "starter_knowledge",
    "Office",
    frozenset({"TODAY", "OWNER", "THE_BERTH", "THE_PLACE", "THE_LENGTH", "COMPACT", "TOOLS"}),
    "your rules in documents/ and policy.md",
)
LONGEST = 60


def init(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="What it is called, such as zoo or garden_tours: a Python name.", show_default=False
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="The folder to make. Default: NAME, here.", show_default=False),
    ] = None,
    knowledge: Annotated[
        bool,
        typer.Option(
            "--knowledge",
            help="One whose rules and tools stand in documents that the agent must search.",
            show_default=False,
        ),
    ] = False,
) -> None:
    """Make a folder with a small environment that runs at once: policy, tools, made worlds, intents, a test.

    Change it step by step into one of your own; docs/tutorial.md shows how. The last line printed is its name, as other
    commands take it.

      muarl init zoo
      muarl init garden_tours envs/tours
      muarl init --knowledge harbour
    """
    starter = MARINA if knowledge else ZOO
    check_name(name, starter)
    target = Path(name) if folder is None else folder.expanduser()
    made, files = write_environment(name, target, starter)
    path_text = str(made) if made.is_absolute() else f"./{made}"
    reference = f"{path_text}/{name}.py:{name.upper()}"
    said = shlex.quote(reference)
    echo(
        f"Wrote {path_text}: {', '.join(files)}. It runs as it is:\n\n"
        f"  muarl generate {said}\n"
        f"  muarl chat expert --domain {said} --user agenda\n"
        f"  muarl eval {said} --agent expert --user agenda --tasks 50\n"
        f"  muarl domains check {said}\n\n"
        f"What to edit next: {starter.edit}, then {name}.py from top to bottom (tools, tables, who calls,\n"
        "what they want). README.md in the folder tells how, and how to train an agent in it.\n\n"
        f"{reference}"
    )


def check_name(name: str, starter: Starter = ZOO) -> None:
    """ConfigError if an environment cannot be called so: the name is also that of a module."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or len(name) > LONGEST:
        raise ConfigError(
            f"{name!r} cannot be the name of a Python module: take a letter, then letters, digits and underscores, "
            f"{LONGEST} at most, such as garden_tours"
        )
    if keyword.iskeyword(name):
        raise ConfigError(f"{name} is a word of Python: take another name")
    if _is_module(name) or name == "conftest" or name.startswith("test_"):
        raise ConfigError(f"{name}.py would hide the Python module {name}, or be taken for a test: take another name")
    if name.upper() in starter.taken:
        raise ConfigError(f"{name}.py calls something else {name.upper()}: take another name")


def _is_module(name: str) -> bool:
    """Whether Python, or something installed, has a module of that name."""
    if name in sys.stdlib_module_names or name.lower() == "muarl":
        return True
    try:
        spec = util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None


def write_environment(name: str, target: Path, starter: Starter = ZOO) -> tuple[Path, list[str]]:
    """Write the environment's folder, whole or not at all. ConfigError if there is something already, MuarlError if it
    cannot be written. Returns the folder, and what is in it at the top."""
    if target.exists() or target.is_symlink():
        raise ConfigError(f"there is something at {target} already: name another folder: muarl init {name} FOLDER")
    if (problem := why_not_writable(target.parent)) is not None:
        raise MuarlError(f"{target} cannot be made: {problem}")
    with clear_disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        try:
            _copy(resources.files("muarl").joinpath("assets", starter.folder), draft, name, starter)
            draft.chmod(0o755)
            draft.rename(target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    paths = sorted(target.iterdir(), key=lambda path: (path.suffix == ".py", path.name.startswith("test_"), path.name))
    return target, [f"{path.name}/" if path.is_dir() else path.name for path in paths]


def _copy(source: Traversable, target: Path, name: str, starter: Starter) -> None:
    """Copy a folder with all in it, the starter's name exchanged in names and texts."""
    for one in source.iterdir():
        if one.name.startswith(("__", ".")):
            continue  # what Python has made of it
        made = target / _named(one.name, name, starter)
        if one.is_dir():
            made.mkdir()
            _copy(one, made, name, starter)
        else:
            made.write_text(_named(one.read_text(encoding="utf-8"), name, starter), encoding="utf-8")


def _named(text: str, name: str, starter: Starter) -> str:
    """A text with the starter's name exchanged: in prose ("the zoo"), of the class, of the environment, of files."""
    old, role = starter.name, starter.role
    title = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    words = {
        old: name,
        old.upper(): name.upper(),
        f"{old.capitalize()}{role}": f"{title}{role}",
        f"he {old}": f"he {name.replace('_', ' ')}",
    }
    return re.sub(rf"he {old}\b|{old.capitalize()}{role}|{old.upper()}|{old}", lambda match: words[match[0]], text)
