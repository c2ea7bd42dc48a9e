"""How long a run's prompts are, where no tokenizer is at hand: what `muarl plan` and a dry run both reckon with."""

from __future__ import annotations

from muarl.basics.errors import DataError
from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.domains.prompt_size import estimated_tokens
from muarl.environments.configure import places_of
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.environments.registry import find


def prompt_tokens(config: RunConfig) -> float | None:
    """Tokens of policy and tools at the start of a training episode, by their length; None where that cannot be seen: a
    benchmark's data are not installed, or the tools are a server's."""
    if any(find(wanted.name).on_server for wanted in config.domains):
        return None
    try:
        return prompt_length(places_of(config))
    except DataError:
        return None


def prompt_length(places: Places) -> float:
    """The same of places, of several that of the longest. DataError if there are no tasks."""
    return max(_length(place, place.example_task("train")) for place in places)


def _length(place: Place, task: Task) -> float:
    return float(estimated_tokens(place.system_prompt(task), place.tools(task)))
