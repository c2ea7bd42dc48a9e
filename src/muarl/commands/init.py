"""``muarl init``: a folder with a small complete environment, to be changed into one's own."""

from __future__ import annotations

import keyword
import re
import shlex
import shutil
import sys
import tempfile
from importlib import resources, util
from pathlib import Path
from typing import Annotated

import typer

from muarl.errors import ConfigError, MuarlError
from muarl.files import clear_disk_errors, why_not_writable

FILES = ("policy.md", "zoo.py", "test_zoo.py", "README.md")
"""The environment that comes with muarl (assets/starter), whose name is exchanged."""
TAKEN = frozenset({"TODAY", "VISITOR", "THE_BOOKING", "THE_DAY"})
"""What else the module calls something in capitals."""
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
) -> None:
    """Make a folder with a small environment that runs at once: policy, tools, made worlds, intents, a test.

    Change it step by step into one of your own; docs/tutorial.md shows how. The last line printed is its name, as other
    commands take it.

    [bold]Examples[/bold]

      muarl init zoo

      muarl init garden_tours envs/tours
    """
    check_name(name)
    target = Path(name) if folder is None else folder.expanduser()
    made = write_environment(name, target)
    shown = str(made) if made.is_absolute() else f"./{made}"
    reference = f"{shown}/{name}.py:{name.upper()}"
    said = shlex.quote(reference)
    typer.echo(
        f"Wrote {shown}: {', '.join(_named(file, name) for file in FILES)}. It runs as it is:\n\n"
        f"  muarl generate {said}\n"
        f"  muarl chat expert --domain {said} --user agenda\n"
        f"  muarl eval {said} --agent expert --user agenda --tasks 50\n"
        f"  muarl domains check {said}\n\n"
        f"What to edit next: your rules in policy.md, then {name}.py from top to bottom (tools, tables, who calls,\n"
        "what they want). README.md in the folder tells how, and how to train an agent in it.\n\n"
        f"{reference}"
    )


def check_name(name: str) -> None:
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
    if name.upper() in TAKEN:
        raise ConfigError(f"{name}.py calls something else {name.upper()}: take another name")


def _is_module(name: str) -> bool:
    """Whether Python, or something installed, has a module of that name."""
    if name in sys.stdlib_module_names or name.lower() == "muarl":
        return True
    try:
        found = util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None


def write_environment(name: str, target: Path) -> Path:
    """Write the environment's folder, whole or not at all. ConfigError if there is something already, MuarlError if it
    cannot be written. Returns the folder."""
    if target.exists() or target.is_symlink():
        raise ConfigError(f"there is something at {target} already: name another folder: muarl init {name} FOLDER")
    if (problem := why_not_writable(target.parent)) is not None:
        raise MuarlError(f"{target} cannot be made: {problem}")
    with clear_disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        try:
            for file in FILES:
                text = resources.files("muarl").joinpath("assets", "starter", file).read_text(encoding="utf-8")
                (draft / _named(file, name)).write_text(_named(text, name), encoding="utf-8")
            draft.chmod(0o755)
            draft.rename(target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return target


def _named(text: str, name: str) -> str:
    """A text with the starter's name exchanged: in prose ("the zoo"), of the class, of the environment, of files."""
    title = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    words = {"zoo": name, "ZOO": name.upper(), "ZooDesk": f"{title}Desk", "he zoo": f"he {name.replace('_', ' ')}"}
    return re.sub(r"he zoo\b|ZooDesk|ZOO|zoo", lambda found: words[found[0]], text)
