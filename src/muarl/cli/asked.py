"""What a command that runs a recipe was asked for: its configuration, by its own options, without running anything.

Commands that run others, such as ``muarl seeds``, know so what each of them will run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from muarl.config.sections import RunConfig

_asking: ContextVar[list[tuple[str, str, list[str]]] | None] = ContextVar("_asking", default=None)

UNTRAINED = ("evaluate", "coldstart")
"""Recipes that train no model."""


@dataclass(frozen=True)
class Asked:
    """``given``: the command's parameters that were given, by name. ``recipe``: what it runs. ``source``: its preset or
    file. ``settings``: what is laid over that, KEY=VALUE, options among them."""

    given: Collection[str]
    recipe: str
    source: str
    settings: Sequence[str]

    @property
    def config(self) -> RunConfig:
        """The configuration of a new run."""
        from muarl.config.load import load_config

        config = load_config(self.source, self.settings)
        if config.model.dtype == "auto":
            from muarl.backends.number_formats import settled  # imports torch

            config = settled(config, training=self.recipe not in UNTRAINED)
        return config


def asked(command: str, words: Sequence[str]) -> Asked:
    """What ``muarl COMMAND WORDS`` is asked for. Errors are those of the command itself; ConfigError where it runs no
    recipe."""
    from muarl.basics.errors import ConfigError
    from muarl.cli.main import subcommands

    built, found = subcommands()[command].built(command), list[tuple[str, str, list[str]]]()
    token = _asking.set(found)
    try:
        context = built.make_context(f"muarl {command}", list(words))
        with context:
            built.invoke(context)
    finally:
        _asking.reset(token)
    if not found:
        raise ConfigError(f"muarl {command} {' '.join(words)}: runs no recipe")
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    return Asked(given, *found[0])


def only_asked(recipe: str, source: str | Path, settings: Sequence[str]) -> bool:
    """Whether a command is only asked for its configuration, which this is."""
    found = _asking.get()
    if found is not None:
        found.append((recipe, str(source), list(settings)))
    return found is not None
