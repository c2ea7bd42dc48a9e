"""A small tokenizer of each family with its control tokens, and the families' own chat templates as TRL keeps them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from muarl.chat_formats.base import ChatFormat
from muarl.chat_formats.choice import chat_format
from muarl.chat_formats.families import FAMILIES, QWEN3, TEMPLATED, TEXT, Family
from muarl.chat_formats.templates import TODAY
from muarl.types.chat import Message, ToolCall, ToolSpec

WORDS = [
    'Look an order up. {"name": "look_up", "arguments": {"order": "W 12", "parameters": 1}} type string integer',
    "Hi! How can I help you today?\n\n# Tools\n\nYou may call one or more functions.\n\n\n\nfunctions.look_up:0",
    "Be kind.\n\n It is so.\n Look first.\n\n And again.\n",
    "user\nassistant\nsystem\nmodel thought analysis commentary final json </function> </parameter> <function= \n\n",
]
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen's tokenizers part a text into words; Llama's and GLM's do much the same. Newlines go with what precedes."""
BY_NAME = {f.name: f for f in (QWEN3, *FAMILIES, *TEMPLATED, TEXT)}
TOOLS = (
    ToolSpec(
        "look_up",
        "Look an order up — ü.",
        {
            "type": "object",
            "properties": {
                "order": {"type": "string", "description": "which"},
                "lines": {"type": "integer"},
                "gift": {"type": "boolean"},
                "more": {"type": "object"},
                "list": {"type": "array"},
            },
            "required": ["order"],
        },
    ),
    ToolSpec("cancel", "Cancel it.", {"type": "object", "properties": {}}),
)


@dataclass(frozen=True)
class Case:
    """A family by the template of one of its models, if it has one; ``by`` is "renderer" where the package writes it,
    "template" where the model's own template does."""

    family: str
    template: str | None
    by: str = "renderer"

    def __str__(self) -> str:
        return self.template or self.family


CASES = (
    Case("qwen3", "qwen3"),
    Case("qwen3.5", "qwen3_5_think"),
    Case("qwen3.5", "qwen3_5_nothink"),
    Case("qwen3.6", "qwen3_6"),
    Case("qwen3.8", "qwen3_8"),
    Case("nemotron-3", "nemotron_3_nano"),
    Case("nemotron-3", "nemotron_3_super"),
    Case("nemotron-3.5", "nemotron_3_ultra"),
    Case("nemotron-3.5", "nemotron_3_5_lightning"),
    Case("glm-4.5", "glm4moe"),
    Case("gemma4", "gemma4_v5"),
    Case("gemma4", "gemma4", "template"),
    Case("llama-3", "llama3_1"),
    Case("llama-3", "llama3_2"),
    Case("hermes", "qwen2_5", "template"),
    Case("hermes", "qwen3_instruct_2507", "template"),
    Case("gpt-oss", "gptoss", "template"),
)
"""What is compared with a family's own template."""
UNTEMPLATED = (Case("glm-5", None), Case("kimi-k2", None), Case("kimi-k2.5", None), Case("deepseek-v4", None))
"""Of these no template is at hand: only the package's own rendering of them can be asked."""


CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
ALTERNATING = (
    "{{ bos_token }}{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate, and the user begins') }}{% endif %}"
    "<|turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<turn|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn>model\n{% endif %}"
)
BRACKETS = (
    "{% for m in messages %}{% if m.role == 'user' %}[ASK] {{ m.content }} [/ASK]"
    "{% elif m.role == 'system' %}[SYS] {{ m.content }} [/SYS]{% else %} {{ m.content }} </s>{% endif %}{% endfor %}"
)
TEXTUAL = {
    "chatml": (CHATML, ("<|im_start|>", "<|im_end|>"), "<|im_end|>"),
    "alternating": (ALTERNATING, ("<bos>", "<eos>", "<|turn>", "<turn|>"), "<eos>"),
    "brackets": (BRACKETS, ("</s>",), "</s>"),
    "none": (None, ("<|end|>",), "<|end|>"),
}
"""Templates without tools, one of a base model that has none; with their control tokens and what ends a text."""
WITHOUT_TOOLS = tuple(Case("text", name, "template") for name in TEXTUAL)


def source(case: Case) -> str | None:
    """The template's text; skips the test where TRL is not installed."""
    if case.template is None:
        return None
    if case.family == "text":
        return TEXTUAL[case.template][0]
    found = find_spec("trl")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the families' templates come with TRL: pip install --no-deps -r requirements-templates.lock")
    return (Path(found.submodule_search_locations[0]) / "chat_templates" / f"{case.template}.jinja").read_text("utf-8")


@cache
def tokenizer(case: Case) -> PreTrainedTokenizerFast:
    """A tokenizer as a checkpoint of the family has it, but for its size."""
    family = BY_NAME[case.family]
    text, control, end = source(case), family.control, family.ends[0]
    if case.family == "text":
        text, control, end = TEXTUAL[case.template or ""]
    control = dict.fromkeys(control)
    raw = _sentencepiece() if case.family == "gemma4" else _byte_level()
    raw.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in control if not t.startswith("</")])
    raw.add_tokens([AddedToken(t, special=False, normalized=False) for t in control if t.startswith("</")])
    begins = [t for t in control if t in ("<bos>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>")]
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        chat_template=text,
        eos_token=end,
        **({"bos_token": begins[0]} if begins else {}),
    )


@cache
def form(case: Case, thinking: bool = False) -> ChatFormat:
    """The chat format of the tokenizer: found by its template, or named where there is none."""
    return chat_format(tokenizer(case), "auto" if case.template else case.family, thinking=thinking)


def modes(case: Case) -> tuple[bool, ...]:
    return {"optional": (False, True), "always": (True,), "never": (False,)}[BY_NAME[case.family].thinking]


def every(cases: tuple[Case, ...]) -> list[Any]:
    """Each case in each of its modes, as pytest parameters."""
    return [
        pytest.param(case, thinking, id=f"{case}{'-thinking' if thinking else ''}")
        for case in cases
        for thinking in modes(case)
    ]


def rows(family: Family, messages: list[Message], *, thinking: bool) -> list[dict[str, Any]]:
    """Messages as ``apply_chat_template`` takes them."""
    out: list[dict[str, Any]] = []
    for m in messages:
        row: dict[str, Any] = {"role": m.role, "content": m.content or ""}
        if m.reasoning and thinking:
            row["reasoning_content"] = row["thinking"] = m.reasoning
        if m.tool_calls:
            row["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": dict(c.arguments)}}
                for c in m.tool_calls
            ]
        if m.role == "tool":
            row |= {"name": m.name, "tool_call_id": m.tool_call_id}
        out.append(row)
    return out


def by_template(case: Case, system: str, tools: bool, messages: list[Message], *, thinking: bool) -> list[int]:
    """What the family's own template and the plain tokenizer make of a conversation, generation prompt included."""
    family = BY_NAME[case.family]
    told = [Message("system", system), *messages] if system else messages
    return list(
        tokenizer(case).apply_chat_template(
            rows(family, told, thinking=thinking),
            tools=[t.to_openai() for t in TOOLS] if tools else None,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
            chat_template=re.sub(r'strftime_now\("([^"]+)"\)', _pinned, source(case) or ""),
            **family.template_options(thinking),
        )
    )


def _pinned(found: re.Match[str]) -> str:
    return repr(TODAY.strftime(found[1]))


def call(number: int, name: str = "look_up", **arguments: Any) -> ToolCall:
    return ToolCall(f"call_{number}", name, arguments)


def result(number: int, text: str, name: str = "look_up") -> Message:
    return Message("tool", text, tool_call_id=f"call_{number}", name=name)


def _byte_level() -> Tokenizer:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    raw.decoder = decoders.ByteLevel()
    raw.train_from_iterator(
        WORDS * 3,
        trainers.BpeTrainer(vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False),
    )
    return raw


def _sentencepiece() -> Tokenizer:
    """As Gemma's: spaces are ▁, and what is not in the vocabulary is bytes."""
    pieces = [*(f"<0x{b:02X}>" for b in range(256)), "▁", *map(chr, range(0x21, 0x7F)), "\n", "\n\n", "▁t", "er", "in"]
    merges = [("▁", "t"), ("e", "r"), ("i", "n"), ("\n", "\n")]
    raw = Tokenizer(models.BPE({p: n for n, p in enumerate(pieces)}, merges, byte_fallback=True))
    raw.normalizer = normalizers.Replace(" ", "▁")
    raw.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return raw


def format_rows() -> list[str]:
    """The rows of the table of chat formats in docs/models.md, as the code has them."""
    thinks = {"optional": "if wanted", "always": "always", "never": "no"}
    out = []
    for family in (QWEN3, *FAMILIES, *TEMPLATED, TEXT):
        templates = [f"`{c.template}`" for c in CASES if c.family == family.name]
        past = "" if family.thinking == "never" else "kept" if family.keeps else "dropped"
        by = "the checkpoint's template" if family in TEMPLATED else "`renderers`"
        if family is TEXT:
            by, templates = "the checkpoint's template, or `User:` and `Agent:`", ["four without tools"]
        checked = ", ".join(templates) or "`renderers`' own"
        cells = (f"`{family.name}`", family.models, by, thinks[family.thinking], past, family.calls, checked)
        out.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return out
