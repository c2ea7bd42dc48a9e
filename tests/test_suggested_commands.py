"""Commands and settings that messages and help texts of the source name: each command is there, with the options that
are named beside it; each setting is one of the configuration's, and takes the value where one is written out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
import yaml
from pydantic import TypeAdapter, ValidationError

import muarl
from muarl.cli.main import app
from muarl.config.sections import RunConfig, fields_of

SOURCE = Path(muarl.__file__).parents[1]
HOLE = "\0"
"""Stands for what an f-string puts in."""
COMMAND = re.compile(r"(?P<mark>`?)(?<![\w.-])muarl (?P<words>[a-z][a-z-]*(?: [a-z][a-z-]*)?)(?P<rest>[^`\n,;()]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
SETTING = re.compile(r"(?<![\w./-])(?P<key>[a-z_]+(?:\.[a-z_0-9]+)+)=(?P<value>[^\s,;:()`'\"|]*)")
FOREIGN = {"key.path", "actor_rollout_ref.rollout.prompt_length", "trainer.use_v1"}
"""A stand-in for a setting, and those of other programs."""


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """(file and line, text) of every string in the files that name a command or a setting; an f-string is one."""
    return tuple(_texts())


def _texts() -> Iterator[tuple[str, str]]:
    for path in sorted(path for package in SOURCE.glob("muarl*") for path in package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        joined = re.sub(r'"\s*\n\s*f?"', "", text)  # strings that are written one below the other are one
        if not COMMAND.search(joined) and not SETTING.search(joined):
            continue
        tree = ast.parse(text)
        parts = {id(v) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for v in node.values}
        for node in ast.walk(tree):
            place = f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.JoinedStr):
                said = (v.value if isinstance(v, ast.Constant) else HOLE for v in node.values)
                yield place, "".join(map(str, said))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                yield place, node.value


@cache
def root() -> Any:
    return typer.main.get_command(app)


def named(words: str) -> tuple[Any, str]:
    """The command that words begin with and the first word that is none of its group's, empty if all is well."""
    command = root()
    for word in words.split():
        if not hasattr(command, "commands"):
            return command, ""
        inner = command.get_command(None, word)
        if inner is None:
            return command, word
        command = inner
    return command, ""


def test_commands_are_there_with_their_options() -> None:
    wrong = []
    seen = 0
    for place, text in texts():
        for found in COMMAND.finditer(" ".join(text.split(" "))):
            command, unknown = named(found["words"])
            first = found["words"].split()[0]
            if unknown and command is root():
                # Prose says "muarl reads ..."; between backticks, or with options, a command is meant.
                if found["mark"] or OPTION.match(found["rest"].strip()):
                    wrong.append(f"{place}: there is no command muarl {first}: {found[0]!r}")
                continue
            seen += 1
            if unknown and found["mark"] and found[0].endswith(unknown):
                wrong.append(f"{place}: muarl {found['words']} is no command")
            options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
            rest = re.split(r"\. | and | or |: ", found["rest"])[0]
            for option in OPTION.findall(rest):
                if hasattr(command, "commands") or found["words"].startswith("seeds"):
                    break  # of the command that is repeated under several seeds
                if option not in options:
                    wrong.append(f"{place}: muarl {found['words']} has no {option}: {found[0]!r}")
    assert wrong == [] and seen > 300


@cache
def settings() -> dict[str, Any]:
    return {name: field for name, _, field in fields_of(RunConfig)}


@cache
def adapter(name: str) -> TypeAdapter[Any]:
    field = settings()[name]
    return TypeAdapter(Annotated[field.annotation, field])


def test_settings_are_the_configurations() -> None:
    wrong = []
    seen = 0
    for place, text in texts():
        for found in SETTING.finditer(text):
            key = re.sub(r"^domain\.\d+\.", "domain.", found["key"])
            if key in FOREIGN:
                continue
            seen += 1
            if key not in settings() and not any(name.startswith(f"{key}.") for name in settings()):
                wrong.append(f"{place}: there is no setting {found['key']}")
                continue
            value = found["value"].rstrip(".") or HOLE
            # What stands for a value, or is cut off, is none.
            if key not in settings() or HOLE in value or re.search(r"^[A-Z]+$|[A-Z]{3}|[{\[](?!.*[}\]])", value):
                continue
            try:
                adapter(key).validate_python(yaml.safe_load(value), strict=False)
            except ValidationError as problem:
                wrong.append(f"{place}: {found[0]}: {problem.errors()[0]['msg']}")
    assert wrong == [] and seen > 100


@pytest.mark.parametrize(
    ("text", "right"),
    [("muarl tasks check X --max-cost 1", True), ("muarl tasks chekc", False), ("muarl data add", True)],
)
def test_a_command_that_is_misspelt_is_noticed(text: str, right: bool) -> None:
    found = COMMAND.search(text)
    assert found is not None and (named(found["words"])[1] == "") is right
