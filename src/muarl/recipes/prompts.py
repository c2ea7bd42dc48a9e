"""How long a run's prompts are, where no tokenizer is at hand: what `muarl plan` and a dry run both reckon with."""

from __future__ import annotations

import json

from muarl.config import RunConfig
from muarl.errors import DataError
from muarl.recipes.setting import Setting, make_setting

CHARACTERS_A_TOKEN = 4
"""Of policy text and tools in JSON, for a vocabulary of Qwen3's size."""

FRAME = 700
"""Characters that the chat format puts around tools and policy."""


def prompt_tokens(config: RunConfig) -> float | None:
    """Tokens of policy and tools at the start of a training episode, by their length; None where that cannot be seen: a
    benchmark's data are not installed, or the tools are a server's."""
    if config.domain.name.startswith("mcp-"):
        return None
    try:
        return prompt_length(make_setting(config))
    except DataError:
        return None


def prompt_length(setting: Setting) -> float:
    """The same of a setting. DataError if there are no tasks."""
    task = setting.some_task("train")
    tools = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in setting.tools(task)
    ]
    written = sum(len(json.dumps(tool, ensure_ascii=False)) + 1 for tool in tools)
    return float((FRAME + len(setting.told(task)) + written) // CHARACTERS_A_TOKEN)
