"""Readers of replies for the formats that a checkpoint's own template writes, over those of ``renderers``."""

from __future__ import annotations

from typing import Any

from renderers.configs import DefaultRendererConfig
from renderers.default import DefaultRenderer
from renderers.parsing import parse_gpt_oss

from muarl.chat_formats.families import GPT_OSS, HERMES, Family


class HermesParser:
    """JSON calls in ``<tool_call>``, thoughts in ``<think>``."""

    def __init__(self, tokenizer: Any) -> None:
        config = DefaultRendererConfig(tool_parser="qwen3", reasoning_parser="think")
        self._reader = DefaultRenderer(tokenizer, config)
        ends = (tokenizer.convert_tokens_to_ids(t) for t in ("<|im_end|>", "<|endoftext|>"))
        self._stops = [i for i in ends if i is not None]

    def parse_response(self, token_ids: list[int], *, tools: Any = None, prompt_ids: Any = None) -> Any:
        return self._reader.parse_response(token_ids, prompt_ids=prompt_ids)

    def get_stop_token_ids(self) -> list[int]:
        return self._stops


class HarmonyParser:
    """gpt-oss's channels. (The package's renderer of them needs a vocabulary that it downloads.)"""

    def __init__(self, tokenizer: Any) -> None:
        names = ("return", "call", "start", "end", "channel", "message", "constrain")
        self._ids: dict[str, int] = {f"{name}_id": tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in names}
        self._tokenizer = tokenizer

    def parse_response(self, token_ids: list[int], *, tools: Any = None, prompt_ids: Any = None) -> Any:
        begun = token_ids if token_ids[:1] == [self._ids["start_id"]] else [*(prompt_ids or ()), *token_ids]
        return parse_gpt_oss(self._tokenizer, begun, **self._ids)

    def get_stop_token_ids(self) -> list[int]:
        return [self._ids["return_id"], self._ids["call_id"]]


def typed_renderer(family: Family, tokenizer: Any, *, thinking: bool) -> Any:
    """The package's renderer of a family, with earlier thoughts kept."""
    if family.name == "qwen3":  # the others are many modules
        from renderers.configs import Qwen3RendererConfig
        from renderers.qwen3 import Qwen3Renderer

        return Qwen3Renderer(tokenizer, Qwen3RendererConfig(enable_thinking=thinking, thinking_retention="all"))
    from renderers import config_from_name, create_renderer

    kind = type(config_from_name(family.name))
    return create_renderer(tokenizer, kind(thinking_retention="all", **family.template_options(thinking)))


def reply_parser(family: Family, tokenizer: Any, *, thinking: bool) -> Any:
    """Who reads a family's replies."""
    if family is HERMES or family.name == HERMES.name:
        return HermesParser(tokenizer)
    if family.name == GPT_OSS.name:
        return HarmonyParser(tokenizer)
    return typed_renderer(family, tokenizer, thinking=thinking)
