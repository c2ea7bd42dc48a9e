"""How long a run's prompts are, where no tokenizer is at hand: what `muarl plan` and a dry run both reckon with."""

from __future__ import annotations

from muarl.basics.errors import DataError
from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.domains.prompt_size import estimated_tokens
from muarl.environments.configure import ConfiguredEnvironment, configure_environment
from muarl.environments.registry import find


def prompt_tokens(config: RunConfig) -> float | None:
    """Tokens of policy and tools at the start of a training episode, by their length; None where that cannot be seen: a
    benchmark's data are not installed, or the tools are a server's."""
    if any(find(wanted.name).on_server for wanted in config.domains):
        return None
    try:
        return prompt_length(configure_environment(config))
    except DataError:
        return None


def prompt_length(environment: ConfiguredEnvironment) -> float:
    """The same of an environment, of several domains that of the longest. DataError if there are no tasks."""
    return max(_length(environment, task) for task in environment.example_tasks("train"))


def _length(environment: ConfiguredEnvironment, task: Task) -> float:
    return float(estimated_tokens(environment.system_prompt(task), environment.tools(task)))
