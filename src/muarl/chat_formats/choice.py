"""Which chat format a checkpoint has: the one that is named, else the one that writes what its template writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any

from tokenizers import Tokenizer

from muarl.basics.errors import CheckpointError
from muarl.chat_formats.base import ChatFormat
from muarl.chat_formats.families import (
    AUTO,
    DEEPSEEK4,
    FAMILIES,
    MARK,
    NAMES,
    QWEN3,
    TEMPLATED,
    TEXT,
    TOOL_TEXT_MARK,
    EarlierThoughts,
    Family,
    ToolText,
)
from muarl.chat_formats.guarded import GuardedTokenizer, HuggingFaceTokenizer, raw_tokenizer
from muarl.chat_formats.probes import (
    by_template,
    difference,
    drops_earlier_thoughts,
    shows_tools,
    template_thinking,
    works_by_template,
    writes_the_same,
)
from muarl.chat_formats.qwen3 import CONTROL_TOKENS, Qwen3Format
from muarl.chat_formats.rendered import RenderedFormat
from muarl.chat_formats.templates import Template, typed_renderer
from muarl.chat_formats.text import TextFormat, text_template

_AS_TEXT = "tools, calls and results are written as text (model.chat_format=text)."
_NO_TURNS = (
    "Turns are marked User: and Agent:. If the model has a template, copy its chat_template.jinja into the folder."
)
_DEFAULT = "if enable_thinking is defined else false"


@dataclass(frozen=True, slots=True)
class FormatChoice:
    """A family, and the template that writes it if that is the checkpoint's own."""

    family: Family
    template: str | None = None
    notice: str = ""
    """What whoever starts the model should know of the choice, in one line; empty if nothing."""


def chat_format(
    tokenizer: Tokenizer | HuggingFaceTokenizer,
    name: str = AUTO,
    *,
    thinking: bool = False,
    earlier_thoughts: EarlierThoughts = "family",
    tool_text: ToolText | None = None,
) -> ChatFormat:
    """The chat format of a checkpoint, by its tokenizer and the template that comes with it.

    ``name``: "auto", or one of ``NAMES``, whatever the template says. ``thinking``: whether the policy thinks first.
    ``earlier_thoughts``: "family": those of earlier turns stay or go as the template has it; "keep": they stay.
    ``tool_text``: how the format ``text`` shows tools; None: as the checkpoint was trained, else as signatures.
    CheckpointError says what is missing or not known, and what to do.
    """
    raw, source, values = raw_tokenizer(tokenizer), _template(tokenizer), _values(tokenizer)
    choice = choice_of(tokenizer, name)
    family = choice.family
    check_thinking(family, thinking)
    drops = thinking and earlier_thoughts == "family" and drops_earlier_thoughts(family, source, values)
    if family.name == QWEN3.name and choice.template is None:
        return Qwen3Format(tokenizer, thinking=thinking, drops_thoughts=drops)
    added = [t.content for t in raw.get_added_tokens_decoder().values()]
    if family.name == TEXT.name:
        turns = text_template(choice.template, values, added)
        guarded = GuardedTokenizer(raw, [turns.end], end=turns.end, template=source or "")
        return TextFormat(guarded, turns, eos=values.get("eos_token"), tool_text=tool_text or tool_text_of(tokenizer))
    control = [t for t in family.control if raw.token_to_id(t) is not None]
    added_in_source = [t for t in added if len(t) > 1 and not t.isspace() and t in (source or "")]
    guarded = GuardedTokenizer(raw, [*control, *added_in_source], end=family.ends[0], template=source or "")
    if choice.template is None:
        renderer = typed_renderer(family, guarded, thinking=thinking)
        return RenderedFormat(family, guarded, renderer, thinking=thinking, drops_thoughts=drops)
    template = Template(choice.template, {**values, **family.template_options(thinking)})
    return by_template(family, guarded, template, thinking=thinking, drops_thoughts=drops)


def tool_text_of(tokenizer: Tokenizer | HuggingFaceTokenizer) -> ToolText:
    """How the models of a checkpoint were shown tools, if its format is ``text``."""
    return "schemas" if getattr(tokenizer, "init_kwargs", {}).get(TOOL_TEXT_MARK) == "schemas" else "signatures"


def keeps_thoughts(tokenizer: Tokenizer | HuggingFaceTokenizer, family: Family) -> bool:
    """Whether the thoughts of earlier turns stay by the template of a checkpoint of that family."""
    return not drops_earlier_thoughts(family, _template(tokenizer), _values(tokenizer))


def thinking_modes(tokenizer: Tokenizer | HuggingFaceTokenizer, name: str = AUTO) -> tuple[bool, ...]:
    """Whether a checkpoint's models can go without thinking (False) and with it (True)."""
    modes = {"optional": (False, True), "always": (True,), "never": (False,)}
    return modes[family_of(tokenizer, name).thinking]


def family_of(tokenizer: Tokenizer | HuggingFaceTokenizer, name: str = AUTO) -> Family:
    """The family of a checkpoint's chat format. CheckpointError as in ``chat_format``."""
    return choice_of(tokenizer, name).family


def choice_of(tokenizer: Tokenizer | HuggingFaceTokenizer, name: str = AUTO) -> FormatChoice:
    """A checkpoint's chat format, and the template that writes it. CheckpointError as in ``chat_format``."""
    raw = raw_tokenizer(tokenizer)
    if name == AUTO:
        name = str(getattr(tokenizer, "init_kwargs", {}).get(MARK, AUTO))
    added = (t.content for t in raw.get_added_tokens_decoder().values())
    control = (t for f in (QWEN3, *FAMILIES, *TEMPLATED) for t in f.control if raw.token_to_id(t) is not None)
    values = tuple(sorted(_values(tokenizer).items()))
    return choose(_template(tokenizer), frozenset((*added, *control)), name, values=values)


@lru_cache(maxsize=64)
def choose(
    template: str | None, vocabulary: frozenset[str], name: str = AUTO, *, values: tuple[tuple[str, Any], ...] = ()
) -> FormatChoice:
    """The format for a template (None: the checkpoint has none) and the tokenizer's added tokens.

    ``values``: what the checkpoint gives its template, such as ``bos_token``. CheckpointError as in ``chat_format``.
    """
    variables = dict(values)
    if name != AUTO:
        return _named(name, template, vocabulary, variables)
    if template is None and vocabulary.issuperset(DEEPSEEK4.control):  # whose checkpoints have none
        return FormatChoice(DEEPSEEK4)
    if template in own_templates():
        _check_tokens(QWEN3, CONTROL_TOKENS, vocabulary)
        return FormatChoice(QWEN3)
    if template is None:
        if vocabulary.issuperset(CONTROL_TOKENS):
            return FormatChoice(QWEN3)
        return _as_text(None, vocabulary, variables, f"The checkpoint has no chat template: {_AS_TEXT} {_NO_TURNS}")
    present = [f for f in (QWEN3, *FAMILIES) if vocabulary.issuperset(f.control)]
    for family in present:
        if writes_the_same(family, template, variables):
            return FormatChoice(family)
    reasons = []
    for family in (*(f for f in TEMPLATED if vocabulary.issuperset(f.control)), *present):
        match = _by_template(family, template, variables)
        if isinstance(match, FormatChoice):
            return match
        reasons.append(f"{family.name}: {match}")
    if not shows_tools(template, variables):
        notice = f"The checkpoint's chat template has no place for tools: {_AS_TEXT}"
        return _as_text(template, vocabulary, variables, notice)
    closest = f" As {present[0].name}: {difference(present[0], template, variables)}." if present else ""
    why = f" By the template itself: {'; '.join(reasons)}." if reasons else ""
    raise CheckpointError(
        f"The checkpoint's chat template is of no format that muarl knows.{closest}{why} Use a checkpoint of a family "
        f"in docs/models.md, name the format that its replies have (model.chat_format={'|'.join(NAMES[1:-1])}), or "
        "have tools, calls and results written as text in its turns: model.chat_format=text"
    )


def _named(name: str, template: str | None, vocabulary: frozenset[str], values: Mapping[str, Any]) -> FormatChoice:
    family = next((f for f in (QWEN3, *FAMILIES, *TEMPLATED, TEXT) if f.name == name), None)
    if family is None:
        raise CheckpointError(f"model.chat_format: {name!r} is no chat format; known: {', '.join(NAMES)}")
    if family is TEXT:
        return _as_text(template, vocabulary, values, "")
    _check_tokens(family, family.control if family is not QWEN3 else CONTROL_TOKENS, vocabulary)
    if family not in TEMPLATED:
        return FormatChoice(family)
    if template is None:
        raise CheckpointError(
            f"model.chat_format: {name} is written by the checkpoint's own chat template, and this one has none: copy "
            "chat_template.jinja (or tokenizer_config.json) of the model into the folder"
        )
    chosen = _by_template(family, template, values)
    if isinstance(chosen, FormatChoice):
        return chosen
    raise CheckpointError(f"model.chat_format: the checkpoint's chat template cannot be used as {name}: {chosen}")


def _as_text(template: str | None, vocabulary: frozenset[str], values: Mapping[str, Any], notice: str) -> FormatChoice:
    try:
        end = text_template(template, values, sorted(vocabulary)).end
    except CheckpointError as problem:
        remedy = "copy the model's own chat_template.jinja into the folder"
        if template is not None:
            remedy += ", or take this one out: turns are marked User: and Agent: then"
        raise CheckpointError(f"{problem}. To have its conversations written as text, {remedy}") from None
    return FormatChoice(replace(TEXT, ends=(end, end)), template, notice)


def _by_template(family: Family, template: str, values: Mapping[str, Any]) -> FormatChoice | str:
    try:
        family = replace(family, thinking=template_thinking(template, values, family))
    except CheckpointError as problem:
        return str(problem)
    return works_by_template(family, template, values) or FormatChoice(family, template)


def _check_tokens(family: Family, control: tuple[str, ...], vocabulary: frozenset[str]) -> None:
    missing = [t for t in dict.fromkeys(control) if t not in vocabulary]
    if missing:
        raise CheckpointError(
            f"The checkpoint's tokenizer lacks the control tokens {', '.join(missing)} of the chat format "
            f"{family.name}: use a checkpoint of the {family.models} family, or copy the model's tokenizer files, "
            "chat_template.jinja among them, into the folder"
        )


def check_thinking(family: Family, thinking: bool) -> None:
    """CheckpointError if the family's models cannot think, or not answer without thinking, as they are to."""
    if thinking and family.thinking == "never":
        raise CheckpointError(
            f"model.thinking: models with the chat format {family.name} do not think first; set model.thinking=false"
        )
    if not thinking and family.thinking == "always":
        raise CheckpointError(
            f"model.thinking: models with the chat format {family.name} always think first; set model.thinking=true"
        )


def _template(tokenizer: Any) -> str | None:
    """The template for conversations with tools; None if there is none."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, Mapping):
        template = template.get("tool_use") or template.get("default")
    return template or None


def _values(tokenizer: Any) -> dict[str, Any]:
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    return {name: str(value) for name in names if (value := getattr(tokenizer, name, None)) is not None}


def own_template(*, thinking: bool = False) -> str:
    """A Jinja template that renders messages as ``Qwen3Format`` makes ids of them, control words in the texts aside:
    those a template cannot guard. ``thinking``: what holds where ``enable_thinking`` is not given."""
    text = resources.files("muarl.chat_formats").joinpath("qwen3.jinja").read_text(encoding="utf-8")
    return text.replace(_DEFAULT, _DEFAULT.replace("false", "true")) if thinking else text


@lru_cache(maxsize=1)
def own_templates() -> frozenset[str]:
    """Both of them."""
    return frozenset(own_template(thinking=t) for t in (False, True))
