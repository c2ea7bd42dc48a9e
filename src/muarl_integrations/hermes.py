"""Tools and calls of them in text, for environments that get and give text: Hermes' form, or a checkpoint's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from muarl.basics.extras import require
from muarl.environments.results import tools_json
from muarl.types.chat import Message, ToolSpec
from muarl_integrations.spoken import read_hermes

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from muarl.chat_formats.base import ChatFormat

_ENDS = ("<|im_end|>", "<|endoftext|>")
"""What a reply may end with in its text, where the sampler leaves control tokens in."""
_TOOLS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


def tools_prompt(system: str, tools: Sequence[ToolSpec]) -> str:
    """The system prompt with the tools, as the chat templates of Qwen2.5 and Qwen3 write them."""
    if not tools:
        return system
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools_json(tools))
    return (f"{system}\n\n" if system else "") + _TOOLS.format(tools=lines)


def read_text(text: str, turn: int, tools: Sequence[ToolSpec], checkpoint: str | None = None) -> Message:
    """What a policy wrote, as its message. ``turn``: numbers the calls. ``tools``: those that it was offered.
    ``checkpoint``: whose chat format the text has, None for Hermes' calls.

    MissingExtra for a checkpoint without muarl[train]; CheckpointError for one whose format is unknown.
    """
    if checkpoint is None:
        for end in _ENDS:
            text = text.partition(end)[0]
        return read_hermes(text, turn)
    tokenizer, form = _chat_format(checkpoint)
    return form.parse(tokenizer.encode(text, add_special_tokens=False).ids, first_call=100 * turn, tools=tools)


@lru_cache(maxsize=8)
def _chat_format(checkpoint: str) -> tuple[Tokenizer, ChatFormat]:
    require("train", f"the chat format of {checkpoint}")
    from transformers import AutoTokenizer

    from muarl.chat_formats.choice import chat_format, thinking_modes
    from muarl.chat_formats.guarded import raw_tokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    return raw_tokenizer(tokenizer), chat_format(tokenizer, thinking=thinking_modes(tokenizer)[-1])
