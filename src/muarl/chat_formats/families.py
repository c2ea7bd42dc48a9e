"""The chat formats that the ``renderers`` package writes itself, what muarl needs to know of each, and the turns of a
model that has no chat template.

Facts only. That a format is what a checkpoint's own template prescribes is seen when one is chosen (``choice``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Thinking = Literal["optional", "always", "never"]
EarlierThoughts = Literal["family", "keep"]
"""Whether the thoughts of a policy's earlier turns stay or go as the checkpoint's template has it, or always stay."""

ToolText = Literal["signatures", "schemas"]
"""How the format ``text`` shows tools."""

_CHATML = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_HERMES = ("<tool_call>", "</tool_call>")
_THINK = ("<think>", "</think>")
_XML = (*_CHATML, *_THINK, *_HERMES, "<tool_response>", "</tool_response>")
_VISION = (*_XML, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
_GLM = (
    "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>", *_THINK,
    *_HERMES, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
)  # fmt: skip
_GEMMA = (
    "<bos>", "<eos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|think|>", "<|tool>", "<tool|>",
    "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|image>", "<|image|>", "<image|>",
    '<|"|>',
)  # fmt: skip
_KIMI = (
    "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "<|im_end|>",
    "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>", "<|tool_call_end|>",
)  # fmt: skip
_LLAMA = (
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>",
)  # fmt: skip
_DEEPSEEK4 = (
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", *_THINK,
    "<｜latest_reminder｜>", "｜DSML｜", "<｜action｜>", "<｜query｜>", "<｜authority｜>",
    "<｜domain｜>", "<｜title｜>", "<｜read_url｜>",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Family:
    """One format."""

    name: str
    """As in ``model.chat_format``; the renderer of that name writes it."""
    models: str
    """Who has it, for people."""
    control: tuple[str, ...]
    """The tokens that give it its structure; each must be one id of the tokenizer."""
    calls: str
    """How tool calls are written, for people."""
    ends: tuple[str, str]
    """The tokens that end a reply of text, and one with calls."""
    thinking: Thinking = "never"
    """Whether its models think."""
    switch: str = "enable_thinking"
    """The template's variable that says whether they think."""
    options: tuple[tuple[str, Any], ...] = ()
    """The template's other variables, set so that earlier thoughts are kept where the template lets them be."""
    keeps: bool = False
    """Whether earlier thoughts are kept, ``strips`` where the template drops those of earlier turns whatever is set."""
    json: bool = False
    """The arguments of its calls are JSON."""
    single: bool = False
    """A reply has one call at most."""
    bare: bool = False
    """Nothing marks a call but that the reply begins with a brace."""
    thoughts: tuple[str, str] = ("<think>", "</think>")
    """What begins and ends them."""

    def template_options(self, thinking: bool) -> dict[str, Any]:
        """The variables that this format sets in a chat template, and in its renderer."""
        return {**dict(self.options), **({self.switch: thinking} if self.thinking == "optional" else {})}


_XML_CALLS = "`<function=NAME>` and `<parameter=KEY>` in `<tool_call>`"
_TURN = ("<|im_end|>", "<|im_end|>")
_GLM_CALLS = "`<arg_key>` and `<arg_value>` in `<tool_call>`"

QWEN3 = Family("qwen3", "Qwen3", _XML, "JSON in `<tool_call>`", _TURN, "optional", json=True)
QWEN35 = Family("qwen3.5", "Qwen3.5", _VISION, _XML_CALLS, _TURN, "optional")
QWEN36 = Family(
    "qwen3.6", "Qwen3.6", _VISION, _XML_CALLS, _TURN, "optional", options=(("preserve_thinking", True),), keeps=True
)
QWEN38 = Family(
    "qwen3.8", "Qwen3.8", _VISION, _XML_CALLS, _TURN, "optional", options=(("preserve_thinking", True),), keeps=True
)
GLM45 = Family("glm-4.5", "GLM-4.5", _GLM, _GLM_CALLS, ("<|user|>", "<|observation|>"), "optional")
GLM5 = Family(
    "glm-5", "GLM-5, GLM-4.7-Flash", (*_GLM, "<tool_response>", "</tool_response>"), _GLM_CALLS,
    ("<|user|>", "<|observation|>"), "optional",
    options=(("clear_thinking", False),), keeps=True,
)  # fmt: skip
GEMMA4 = Family(
    "gemma4", "Gemma 4", _GEMMA, "`call:NAME{...}` in `<|tool_call>`", ("<turn|>", "<|tool_response>"),
    options=(("enable_thinking", False), ("preserve_thinking", True)), thoughts=("<|channel>thought", "<channel|>"),
)  # fmt: skip
NEMOTRON3 = Family(
    "nemotron-3", "Nemotron 3 Nano, Super", _XML, _XML_CALLS, _TURN, "optional",
    options=(("truncate_history_thinking", False),), keeps=True,
)  # fmt: skip
NEMOTRON35 = Family(
    "nemotron-3.5", "Nemotron 3.5, 3 Ultra", _XML, _XML_CALLS, _TURN, "optional",
    options=(("truncate_history_thinking", False),), keeps=True,
)  # fmt: skip
LLAMA3 = Family(
    "llama-3", "Llama 3.1, 3.2, 3.3", _LLAMA, '`{"name": ..., "parameters": ...}`, one a reply',
    ("<|eot_id|>", "<|eot_id|>"), options=(("tools_in_user_message", False),), json=True, single=True, bare=True,
)  # fmt: skip
KIMI2 = Family(
    "kimi-k2", "Kimi K2", _KIMI, "id and JSON in `<|tool_call_begin|>`", ("<|im_end|>", "<|im_end|>"), json=True
)
KIMI25 = Family(
    "kimi-k2.5", "Kimi K2.5, K2.6",
    (*_KIMI, "<|media_begin|>", "<|media_content|>", "<|media_pad|>", "<|media_end|>"),
    "id and JSON in `<|tool_call_begin|>`", ("<|im_end|>", "<|im_end|>"), "optional", switch="thinking", json=True,
)  # fmt: skip
DEEPSEEK4 = Family(
    "deepseek-v4", "DeepSeek V4", _DEEPSEEK4, "`<｜DSML｜invoke>` with `<｜DSML｜parameter>`",
    ("<｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>"), "optional", options=(("drop_thinking", False),), keeps=True,
)  # fmt: skip

FAMILIES: tuple[Family, ...] = (
    QWEN35, QWEN36, QWEN38, NEMOTRON35, NEMOTRON3, GLM45, GLM5, GEMMA4, LLAMA3, KIMI2, KIMI25,
    DEEPSEEK4,
)  # fmt: skip
"""In the order in which they are tried on a checkpoint's template."""

HERMES = Family(
    "hermes", "Qwen2.5, Qwen3-2507", ("<|im_start|>", "<|im_end|>", *_HERMES), "JSON in `<tool_call>`", _TURN, json=True
)
GPT_OSS = Family(
    "gpt-oss", "gpt-oss",
    ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"),
    "JSON after `to=functions.NAME`, one a reply", ("<|return|>", "<|call|>"), "always", json=True, single=True,
    thoughts=("<|channel|>analysis", "<|end|>"),
)  # fmt: skip

TEMPLATED: tuple[Family, ...] = (HERMES, GPT_OSS)
"""Those that are written by the checkpoint's own template."""

TEXT = Family(
    "text", "any other chat model, and base models", (), "`CALL NAME(ARGUMENT=VALUE)`, a line each", ("", ""), json=True
)
"""Needs nothing of the model; what ends a reply is read off its template, or is its ``eos_token``."""

AUTO = "auto"
NAMES: tuple[str, ...] = (AUTO, *(f.name for f in (QWEN3, *FAMILIES, *TEMPLATED, TEXT)))
"""What ``model.chat_format`` may be."""
MARK = "muarl_chat_format"
"""The field of a checkpoint's tokenizer_config.json that keeps a format which had to be named."""
TOOL_TEXT_MARK = "muarl_tool_text"
"""The same for how tools were shown to it, where not as signatures."""


PLAIN = """{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}

{% elif m.role == 'user' %}User: {{ m.content }}
{% else %}Agent: {{ m.content }}{{ eos_token }}
{% endif %}{% endfor %}{% if add_generation_prompt %}Agent:{% endif %}"""
"""A Jinja template. A reply ends with the tokenizer's ``eos_token``."""
