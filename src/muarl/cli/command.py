"""What a subcommand is: how ``muarl`` finds those that packages bring, and how it shows them.

A package adds a subcommand by an entry point of the group ``muarl.commands`` whose object is a ``Subcommand``; its name
is the entry point's. Nothing is imported before the command, or the list of all commands, is asked for.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any

import typer
from typer.core import TyperCommand

from muarl.basics.errors import ConfigError
from muarl.cli.options import OLD

GROUP = "muarl.commands"
"""The entry point group of subcommands."""

TRAIN, MEASURE, WORLDS, HELP, MORE = "Train", "Measure and look", "Data and worlds", "This machine", "More"
"""The panels of ``muarl --help``, in their order."""


class _Command(TyperCommand):
    """A command that also takes the words which its options had before (``options.OLD``)."""

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        for old, word in OLD.get(self.name or "", {}).items():
            for param in (p for p in self.params if word in p.opts):
                param.opts, opts = [old], param.opts
                param.add_to_parser(parser, ctx)
                param.opts = opts
        return parser


@dataclass(frozen=True)
class Subcommand:
    """A subcommand, or a group of them."""

    run: Callable[..., Any] | typer.Typer
    """The function that typer makes a command of, or an app with commands of its own. Its module imports little."""

    panel: str = MORE
    """Where ``muarl --help`` shows it."""

    place: float = 1000.0
    """Its place among all commands, low first; equal ones by name."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Click's settings of its context, such as ``ignore_unknown_options``."""

    def built(self, name: str) -> Any:
        """The command as typer's click runs it."""
        app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
        if isinstance(self.run, typer.Typer):
            for one in self.run.registered_commands:
                one.help = joined(one.callback)
                one.cls = _Command if one.cls in (None, TyperCommand) else one.cls
            app.add_typer(self.run, name=name, rich_help_panel=self.panel)
        else:
            settings = dict(self.settings) or None
            app.command(
                name, cls=_Command, help=joined(self.run), rich_help_panel=self.panel, context_settings=settings
            )(self.run)
        app.callback()(lambda: None)  # so that one command is still a group's
        return typer.main.get_group(app).commands[name]


def joined(function: Any) -> str:
    """A docstring with the lines of each paragraph joined, since the terminal breaks them itself. Indented lines, and
    those of a paragraph that begins with "muarl", are examples: each becomes a paragraph (but for lines that are
    indented further), and the first get a heading."""
    paragraphs: list[str] = []
    for paragraph in inspect.cleandoc(function.__doc__ or "").split("\n\n"):
        if not paragraph.startswith((" ", "muarl ")):
            paragraphs.append(" ".join(paragraph.split()))
            continue
        examples = re.split(r"\n(?! )", textwrap.dedent(paragraph))
        if not any(before.startswith("[bold]Example") for before in paragraphs):
            paragraphs.append(f"[bold]Example{'s' * (len(examples) > 1)}[/bold]")
        paragraphs += examples
    return "\n\n".join(paragraphs)


PACKAGE = "muarl"
"""The distribution that this module is part of. Its subcommands' names cannot be taken by others."""


@cache
def brought() -> Mapping[str, metadata.EntryPoint]:
    """The subcommands of installed packages, by name. Imports none of them. ConfigError if two packages, neither of
    them muarl, bring one of the same name."""
    points: dict[str, metadata.EntryPoint] = {}
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda p: _package(p) != PACKAGE):
        other = points.setdefault(point.name, point)
        if other is not point and _package(other) not in (PACKAGE, _package(point)):
            raise ConfigError(
                f"two installed packages have a subcommand {point.name!r}: {_package(other)} and {_package(point)}; "
                "uninstall one of them"
            )
    return points


def _package(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
