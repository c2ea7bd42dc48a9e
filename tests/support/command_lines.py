"""Command lines that muarl itself suggests: read as a shell and the command line read them, their settings checked."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer

from muarl.cli.main import app
from muarl.config.load import load_config


def commands() -> Iterator[tuple[str, Any]]:
    """Every command, by its whole name."""
    yield from _below(typer.main.get_command(app), "muarl")


def _below(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for word in command.list_commands(None):
        yield from _below(command.get_command(None, word), f"{name} {word}")


def suggested(text: str) -> list[str]:
    """The command lines of a help text, each whole, without the remark behind it."""
    whole = re.sub(r"\\\n\s*", " ", text)
    return [re.sub(r"\s{2,}\([^()]*\)$", "", line) for line in re.findall(r"(?:^|\n\n) *(muarl .*?) *(?=\n|$)", whole)]


def check(line: str) -> None:
    """Fail unless the command line takes a line, and its settings are right. Nothing is run."""
    words = shlex.split(re.sub(r" [<>] ?\S+$", "", line))
    assert words.pop(0) == "muarl", line
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        assert words and words[0] in command.list_commands(None), f"{line}: no command {words[:1]}"
        command = command.get_command(None, words.pop(0))
    given = command.make_context("muarl", words).params
    settings = [word for name in ("overrides", "given", "settings") for word in given.get(name) or () if "=" in word]
    config = given.get("config") or given.get("preset") or "cpu"
    if given.get("resume") is None and settings:
        load_config(config, settings)
