"""Subcommands that installed packages bring by entry points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError
from muarl.cli import command, main
from muarl.cli.command import Subcommand


def greet() -> None:
    """Say hello."""
    typer.echo("hello")


GREET = Subcommand(greet)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes entry points be there: (name, value, package)."""

    def put(*points: tuple[str, str, str]) -> None:
        found: Sequence[Any] = [
            EntryPoint(name, value, command.GROUP)._for(SimpleNamespace(name=package, version="1"))  # type: ignore[attr-defined]
            for name, value, package in points
        ]
        monkeypatch.setattr(command.metadata, "entry_points", lambda group: found)
        command.brought.cache_clear()

    yield put
    command.brought.cache_clear()


def test_a_package_adds_a_subcommand(installed: Any) -> None:
    installed(("greet", f"{__name__}:GREET", "greeting"))
    assert "greet" in main.subcommands()
    built = main.subcommands()["greet"].built("greet")
    done = CliRunner().invoke(main.app, ["greet"])
    assert built.help == "Say hello." and (done.exit_code, done.output) == (0, "hello\n")


def test_nobody_takes_the_place_of_muarls_own(installed: Any) -> None:
    points = [("audit", "somebody.else:AUDIT", "somebody"), ("audit", "muarl_tools.commands.audit:COMMAND", "muarl")]
    installed(*points, ("train", "somebody.else:TRAIN", "somebody"))
    assert command.brought()["audit"].value == "muarl_tools.commands.audit:COMMAND"
    assert main.subcommands()["train"] is main.OWN["train"]


def test_two_packages_with_one_name_are_told(installed: Any) -> None:
    installed(("greet", "one:GREET", "one"), ("greet", "two:GREET", "two"))
    with pytest.raises(ConfigError, match="two installed packages have a subcommand 'greet': one and two"):
        main.subcommands()


def test_one_that_cannot_be_loaded_says_whose_it_is(installed: Any) -> None:
    installed(("gone", "no_such_module:GONE", "lost"))
    with pytest.raises(ConfigError, match="gone of lost 1 cannot be loaded .no_such_module:GONE.: ModuleNotFoundError"):
        main.subcommands()["gone"].run()  # type: ignore[operator]
