"""How many tokens a policy and tools take, by their length, where no tokenizer is at hand."""

from __future__ import annotations

import json
from collections.abc import Iterable

from muarl.types.chat import ToolSpec

CHARACTERS_A_TOKEN = 4
"""Of policy text and tools in JSON, for a vocabulary of Qwen3's size."""

FRAME = 700
"""Characters that the chat format puts around tools and policy."""


def estimated_tokens(policy: str, tools: Iterable[ToolSpec]) -> int:
    """About how many tokens an agent is told before the first message."""
    specs = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools
    ]
    written = sum(len(json.dumps(tool, ensure_ascii=False)) + 1 for tool in specs)
    return (FRAME + len(policy) + written) // CHARACTERS_A_TOKEN
