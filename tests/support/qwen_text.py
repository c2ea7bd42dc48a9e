"""Text and tokens of Qwen's kind, for trainers that hand over tokens: a short template over the shipped tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import muarl
from muarl.types.chat import Message
from muarl.types.toolcalls import call_text

BASE = Path(muarl.__file__).parent / "assets" / "base" / "tokenizer.json"
TEMPLATE = """
{%- if tools %}<|im_start|>system
{{ messages[0].content }}
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% set messages = messages[1:] %}{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls or [] %}
<tool_call>
{{ call.function | tojson }}
</tool_call>{% endfor %}<|im_end|>
{% endif %}{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def qwen_tokenizer() -> Any:
    """A tokenizer of transformers with that template."""
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(tokenizer_file=str(BASE), eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.chat_template = TEMPLATE
    return made


def as_text(message: Message) -> str:
    """What a policy writes to say a message."""
    calls = "".join(f"<tool_call>\n{call_text(call)}\n</tool_call>" for call in message.tool_calls)
    return f"{message.content or ''}{calls}"
