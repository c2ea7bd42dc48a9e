"""How long a run's prompts are, where no tokenizer is at hand: what `muarl plan` and a dry run both reckon with."""

from __future__ import annotations

import json

from muarl.config import RunConfig
from muarl.domains.base import Task
from muarl.environments.configure import ConfiguredEnvironment, configure_environment
from muarl.environments.registry import find
from muarl.errors import DataError

CHARACTERS_A_TOKEN = 4
"""Of policy text and tools in JSON, for a vocabulary of Qwen3's size."""

FRAME = 700
"""Characters that the chat format puts around tools and policy."""


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
    tools = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in environment.tools(task)
    ]
    written = sum(len(json.dumps(tool, ensure_ascii=False)) + 1 for tool in tools)
    return float((FRAME + len(environment.system_prompt(task)) + written) // CHARACTERS_A_TOKEN)
