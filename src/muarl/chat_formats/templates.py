"""A checkpoint's own Jinja template as a renderer: prompts by the template, the bridge by what it appends, and replies
read over the parsers of ``renderers``.

``DefaultRenderer`` of the ``renderers`` package renders by a template too, but cannot go on with sampled ids. Here the
next turn is what the template writes after a reply that stands for the sampled one, which is exact where a template
does not change what it wrote before (``choice`` checks that).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from renderers.base import RenderedTokens
from renderers.configs import DefaultRendererConfig
from renderers.default import DefaultRenderer
from renderers.parsing import parse_gpt_oss

from muarl.basics.errors import CheckpointError
from muarl.chat_formats.families import GPT_OSS, HERMES, Family
from muarl.chat_formats.guarded import GuardedTokenizer

TODAY = datetime(2024, 7, 26)
"""What templates are told the date is (Llama 3's own default), so that a conversation has the same ids on any day."""
_SAID = "\ufdd0said\ufdd0"  # noncharacters, which no template writes

Rows = Sequence[Mapping[str, Any]]


class Renders(Protocol):
    """What writes conversations: a template, or one that makes up for what it cannot do."""

    def render(self, rows: Rows, *, tools: Sequence[Any] | None = None, begin: bool = False) -> str: ...


class ReplyParser(Protocol):
    """The part of a renderer that reads replies."""

    def parse_response(self, token_ids: list[int], *, tools: Any = None, prompt_ids: Any = None) -> Any: ...
    def get_stop_token_ids(self) -> list[int]: ...


class Template:
    """A chat template with the values that its checkpoint and its format give it.

    CheckpointError if it is not Jinja.
    """

    def __init__(self, source: str, values: Mapping[str, Any]) -> None:
        from transformers.utils.chat_template_utils import _compile_jinja_template  # slow to import

        try:
            self._compiled = _compile_jinja_template(source)
        except Exception as problem:  # jinja2 raises several kinds
            raise CheckpointError(f"The checkpoint's chat template is not valid Jinja: {problem}") from problem
        self.source = source
        self._values = dict(values)

    def render(self, rows: Rows, *, tools: Sequence[Any] | None = None, begin: bool = False) -> str:
        """The conversation's text, with the generation prompt if wanted. CheckpointError if the template refuses it."""
        messages = [_aliased(row) for row in rows]
        try:
            text = self._compiled.render(
                messages=messages, tools=tools, documents=None, add_generation_prompt=begin, strftime_now=_today,
                **self._values,
            )  # fmt: skip
        except Exception as problem:  # a template's own raise_exception, or whatever it does wrong
            raise CheckpointError(f"The checkpoint's chat template refuses the conversation: {problem}") from problem
        return str(text)


class TemplateRenderer:
    """What ``RenderedFormat`` needs of a renderer, by a template.

    parser: who reads replies of this format. closers: the tokens that may end a reply in the template's text.
    """

    def __init__(
        self, tokenizer: GuardedTokenizer, template: Renders, parser: ReplyParser, closers: Sequence[str]
    ) -> None:
        self._tokenizer, self._template, self._parser = tokenizer, template, parser
        self._closers = tuple(closers)

    def render_ids(self, rows: Rows, *, tools: Any = None, add_generation_prompt: bool = False) -> list[int]:
        return list(self._tokenizer.encode(self._template.render(rows, tools=tools, begin=add_generation_prompt)))

    def parse_response(self, token_ids: list[int], *, tools: Any = None, prompt_ids: Any = None) -> Any:
        return self._parser.parse_response(token_ids, tools=tools, prompt_ids=prompt_ids)

    def get_stop_token_ids(self) -> list[int]:
        return self._parser.get_stop_token_ids()

    def bridge_to_next_turn(self, prompt: list[int], completion: list[int], rows: Rows) -> RenderedTokens:
        """What the template writes after a reply, in the place of ``completion``. As in ``renderers``."""
        text = self.after_reply(rows)
        return RenderedTokens(token_ids=[*prompt, *completion, *self._tokenizer.encode(text)])

    def after_reply(self, rows: Rows) -> str:
        """The text after the token that ends a reply, through the generation prompt."""
        calls = [
            {
                "id": row["tool_call_id"],
                "type": "function",
                "function": {"name": row["name"], "arguments": {"x": _SAID}},
            }
            for row in rows
            if row["role"] == "tool"
        ]
        said: dict[str, Any] = {"role": "assistant", "content": "" if calls else _SAID}
        if calls:
            said["tool_calls"] = calls
        text = self._template.render([{"role": "user", "content": "x"}, said, *rows], begin=True)
        after = text.rfind(_SAID)
        ends = [at + len(c) for c in self._closers if after >= 0 and (at := text.find(c, after)) >= 0]
        if not ends:
            raise CheckpointError("The checkpoint's chat template does not show what a reply says, or not its end.")
        return text[min(ends) :]


def _aliased(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its reasoning under the names that templates read."""
    reasoning = row.get("reasoning_content")
    return dict(row) | ({} if reasoning is None else {"reasoning": reasoning, "thinking": reasoning})


def _today(form: str) -> str:
    return TODAY.strftime(form)


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
