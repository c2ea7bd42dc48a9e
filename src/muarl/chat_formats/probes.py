"""Whether a format is what a checkpoint's chat template prescribes: both write a few conversations, and their texts are
compared. No tokenizer is needed, so this can be asked before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from muarl.basics.errors import CheckpointError
from muarl.chat_formats.families import Family, Thinking
from muarl.chat_formats.rendered import RenderedFormat
from muarl.chat_formats.templates import Template, TemplateRenderer, reply_parser, typed_renderer
from muarl.types.chat import Message, ToolCall, ToolSpec

_TOOLS = (
    ToolSpec(
        "look_up",
        "Look an order up — ü.",
        {
            "type": "object",
            "properties": {"order": {"type": "string", "description": "which"}, "lines": {"type": "integer"}},
            "required": ["order"],
        },
    ),
)
_ASKED = Message("user", "Where is it?")
_CALL = ToolCall("call_0", "look_up", {"order": "W 12", "lines": 2})
_RICH = ToolCall(
    "call_0", "look_up", {"order": "ü\n", "gift": True, "at": None, "to": {"a": [1, "b", False]}, "f": 1.5}
)
_CALLING = Message("assistant", "", (_CALL,))
_FOUND = Message("tool", "On its way.", tool_call_id="call_0", name="look_up")
_TOLD = Message("assistant", "It is on its way.")
_THOUGHT = Message("assistant", "Let me see.", reasoning="Look first.")
_SYSTEM = "Be kind."
_NO_TOOLS = "it does not show the model its tools"


class TextTokenizer:
    """Stands for a tokenizer: a character is an id, and so is each control token."""

    name_or_path = "muarl"
    unk_token_id = eos_token_id = None

    def __init__(self, control: Sequence[str], template: str = "") -> None:
        self.chat_template = template
        self._ids = {token: 0x200000 + n for n, token in enumerate(dict.fromkeys(control))}
        self._tokens = {i: token for token, i in self._ids.items()}
        self._split = re.compile("(" + "|".join(map(re.escape, sorted(self._ids, key=len, reverse=True))) + ")")

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [
            i
            for piece in self._split.split(text)
            for i in ([self._ids[piece]] if piece in self._ids else map(ord, piece))
        ]

    encode_guarded = encode

    def guard(self, text: str) -> str:
        return text

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return "".join(self._tokens.get(i) or chr(i) for i in token_ids)

    def piece(self, token_id: int) -> bytes:
        return self.decode([token_id]).encode()

    def convert_tokens_to_ids(self, token: str) -> int | None:
        return self._ids.get(token)


def shows_tools(template: str, values: Mapping[str, Any]) -> bool:
    """Whether a template writes the tools that it is given anywhere. False where it refuses a user's question."""
    rows = [{"role": "user", "content": "x"}]
    try:
        return _TOOLS[0].name in Template(template, values).render(rows, tools=_openai(_TOOLS), begin=True)
    except CheckpointError:
        return False


def writes_the_same(family: Family, template: str, values: Mapping[str, Any]) -> bool:
    """Whether the package's renderer of a family writes what the template writes: prompts with and without tools, what
    follows a reply, and replies."""
    try:
        return all(ours == theirs for ours, theirs in _both(family, template, values))
    except (CheckpointError, ValueError, AssertionError, TypeError, KeyError):
        return False


def difference(family: Family, template: str, values: Mapping[str, Any]) -> str:
    """Where the two first differ, in words."""
    try:
        for ours, theirs in _both(family, template, values):
            if ours != theirs:
                at = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), -1)
                return f"the format writes {ours[at : at + 40]!r} where the template has {theirs[at : at + 40]!r}"
    except (CheckpointError, ValueError, AssertionError, TypeError, KeyError) as problem:
        return str(problem)
    return ""


def _both(family: Family, source: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for thinking in _modes(family):
        tokenizer: Any = TextTokenizer(family.control, source)
        template = Template(source, {**values, **family.template_options(thinking)})
        form = RenderedFormat(
            family, tokenizer, typed_renderer(family, tokenizer, thinking=thinking), thinking=thinking
        )
        other = TemplateRenderer(tokenizer, template, form._renderer, [tokenizer.decode([i]) for i in form.stop_ids])
        tool_specs = _openai(_TOOLS)
        for system, tools in ((_SYSTEM, ()), (_SYSTEM, _TOOLS), ("", _TOOLS), ("", ())):
            rows = [*([{"role": "system", "content": system}] if system else []), form._row(_ASKED, 0)]
            theirs = template.render(rows, tools=tool_specs if tools else None, begin=True)
            yield form.text(form.prompt(system, tools, [_ASKED])), theirs
            if tools and _TOOLS[0].description not in theirs:
                raise CheckpointError(_NO_TOOLS)
        for reply, then in ((_TOLD, _ASKED), (_CALLING, _FOUND)):
            ids = form.reply_ids(reply)
            yield form.text(form.extend(ids, [then])), other.after_reply([form._row(then, 0)])
            theirs = template.render([form._row(_ASKED, 0), form._row(reply, 0)], tools=tool_specs)
            yield str(form.text(ids[:-1]) in theirs), str(True)
        rich = Message("assistant", "", (_RICH,))
        theirs = template.render([form._row(_ASKED, 0), form._row(rich, 0)], tools=tool_specs)
        yield str(form.text(form.reply_ids(rich)[:-1]) in theirs), str(True)
        if family.thinking != "optional" or (thinking and family.name != "qwen3"):  # else history keeps empty thoughts
            past = [_ASKED, _THOUGHT, _ASKED, replace(_CALLING, reasoning="Hm."), _FOUND, _TOLD, _ASKED]
            theirs = template.render([form._row(m, n) for n, m in enumerate(past)], tools=tool_specs, begin=True)
            yield form.text(form.prompt("", _TOOLS, past)), theirs


def template_thinking(template: str, values: Mapping[str, Any], family: Family) -> Thinking:
    """Whether a template lets the model think: what it opens a reply with tells."""
    if family.thinking != "never" or family.switch in dict(family.options):
        return family.thinking
    rows = [{"role": "user", "content": "x"}]
    on, off = (Template(template, {**values, "enable_thinking": t}).render(rows, begin=True) for t in (True, False))
    opener = family.thoughts[0]
    if on != off:
        return "optional"
    return "always" if on.rstrip().endswith(opener) else "never"


def drops_earlier_thoughts(family: Family, template: str | None, values: Mapping[str, Any]) -> bool:
    """Whether the thoughts of earlier turns go when the user speaks: as the checkpoint's template does it, told to keep
    them where it can be; without a template as the family's does."""
    if family.thinking == "never":
        return False
    if template is None:
        return not family.keeps and family.name != "qwen3"  # which is muarl's own then, and keeps them
    rows = [
        {"role": "user", "content": _ASKED.content},
        {"role": "assistant", "content": _THOUGHT.content, "reasoning_content": _THOUGHT.reasoning},
        {"role": "user", "content": _ASKED.content},
    ]
    try:
        text = Template(template, {**values, **family.template_options(True)}).render(rows, begin=True)
    except CheckpointError:  # a format that was named in spite of the template
        return not family.keeps
    return str(_THOUGHT.reasoning) not in text


def works_by_template(family: Family, source: str, values: Mapping[str, Any]) -> str:
    """Empty if conversations can go on by the template, with replies that the family's parser reads; else why not."""
    for thinking in _modes(family):
        tokenizer: Any = TextTokenizer(family.control, source)
        template = Template(source, {**values, **family.template_options(thinking)})
        try:
            form = by_template(family, tokenizer, template, thinking=thinking)
            read = form.parse(form.reply_ids(_CALLING), tools=_TOOLS)
            if [(c.name, dict(c.arguments), c.invalid) for c in read.tool_calls] != [
                ("look_up", dict(_CALL.arguments), None)
            ]:
                return "it writes tool calls in a way that no reader here knows"
            if _TOOLS[0].description not in form.text(form.prompt(_SYSTEM, _TOOLS, [_ASKED])):
                return _NO_TOOLS
            later = [_ASKED, _CALLING, _FOUND, _TOLD, _ASKED]
            whole = form.text(form.prompt(_SYSTEM, _TOOLS, later))
            grown = form.prompt(_SYSTEM, _TOOLS, later[:1])
            for at in (1, 3):
                grown += form.reply_ids(later[at])
                grown += form.extend(grown, [later[at + 1]])
        except (CheckpointError, ValueError, AssertionError, TypeError, KeyError) as problem:
            return str(problem)
        if _bare(form.text(grown), form, family) != _bare(whole, form, family):
            return "it changes earlier turns when a conversation goes on"
    return ""


def by_template(
    family: Family, tokenizer: Any, template: Template, *, thinking: bool, drops_thoughts: bool = False
) -> RenderedFormat:
    """The format of a family as the template writes it."""
    parser = reply_parser(family, tokenizer, thinking=thinking)
    stops = [tokenizer.decode([i]) for i in parser.get_stop_token_ids()]
    closers = [*stops, *(("<|end|>",) if family.name == "gpt-oss" else ())]
    renderer = TemplateRenderer(tokenizer, template, parser, closers)
    return RenderedFormat(family, tokenizer, renderer, thinking=thinking, drops_thoughts=drops_thoughts)


def _bare(text: str, form: RenderedFormat, family: Family) -> str:
    """The text without thoughts, which templates drop from earlier turns, and with one sign for whatever ends turns."""
    opener, closer = map(re.escape, family.thoughts)
    text = re.sub(f"{opener}.*?{closer}\\s*", "", text, flags=re.DOTALL)
    return text.replace("<|return|>", "<|end|>")


def _modes(family: Family) -> tuple[bool, ...]:
    return {"optional": (True, False), "always": (True,), "never": (False,)}[family.thinking]


def _openai(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [t.to_openai() for t in tools]
