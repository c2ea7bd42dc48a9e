"""What a command that runs a recipe was asked for: its configuration, by its own options, without running anything.

Commands that run others, such as ``muarl seeds``, know so what each of them will run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muarl.config.sections import RunConfig

UNTRAINED = ("evaluate", "coldstart")
"""Recipes that train no model."""
_asking: ContextVar[list[tuple[str, RunConfig]] | None] = ContextVar("_asking", default=None)


@dataclass(frozen=True)
class CommandRequest:
    """What a command is asked for."""

    config: RunConfig
    """The configuration of the run that the command would make."""
    given: Collection[str]
    """Its options that were given, by their parameters' names."""


def asked_for(command: Any, words: Sequence[str]) -> CommandRequest:
    """What a command (``Subcommand.built``) that runs a recipe is asked for by these arguments. Errors are those of the
    command itself; ConfigError where it runs none, after it has done what it does."""
    from muarl.backends.number_formats import settled
    from muarl.basics.errors import ConfigError

    requests: list[tuple[str, RunConfig]] = []
    token = _asking.set(requests)
    try:
        with command.make_context(f"muarl {command.name}", list(words)) as context:
            command.invoke(context)
    finally:
        _asking.reset(token)
    if not requests:
        raise ConfigError(f"muarl {' '.join((command.name, *words))}: runs no recipe")
    sources = {name: context.get_parameter_source(name) for name in context.params}
    named = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    recipe, config = requests[0]
    return CommandRequest(settled(config, training=recipe not in UNTRAINED), named)


def only_asked(recipe: str, config: RunConfig) -> bool:
    """Whether a command is only asked for its configuration, which this is."""
    requests = _asking.get()
    if requests is not None:
        requests.append((recipe, config))
    return requests is not None
