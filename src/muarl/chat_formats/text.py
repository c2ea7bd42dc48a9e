"""The chat format that needs nothing of a model: tools, calls and results are text in the turns that it knows.

The model's own template writes the turns where it has one, else ``User:`` and ``Agent:``. Tools follow the system text
as signatures; results are what the user's side says next. Only what the policy sampled is read for calls; what users,
tools and documents say is kept from looking like a call, a result or, where mere words mark the turns, a turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from muarl.basics.errors import CheckpointError
from muarl.chat_formats.families import PLAIN, TEXT, ToolText
from muarl.chat_formats.guarded import GuardedTokenizer
from muarl.chat_formats.rendered import RenderedFormat
from muarl.chat_formats.templates import Rows, Template, TemplateRenderer
from muarl.chat_formats.text_calls import CALL, RESULT, quoted, read_reply, reply_text, signature
from muarl.types.chat import Message, ToolCall, ToolSpec

_HOW = f"""Tools:
{{tools}}

To use tools, write a line like {CALL} name(argument="value") for each call and nothing after them. Values are JSON. \
What a tool gives comes back after {RESULT}."""
_SAID = "\ufdd1"  # noncharacters, which no template writes
_HEARD = "\ufdd2"


class TextTemplate:
    """A template that knows roles only, as one that takes every conversation.

    What it cannot do is found out once, by asking it: a system message it refuses goes before the user's first words;
    where the user has to begin, an empty turn of theirs does. Neighbouring messages of one role become one.

    ``end``: the text of the token that ends a reply. ``words``: what marks turns and is no control token.
    CheckpointError for a template that does not show what is said, or refuses a user's question.
    """

    def __init__(self, template: Template, control: Sequence[str], eos: str | None) -> None:
        self.source = template.source
        self._template = template
        self._system = self._takes(("system", "user"))
        self._first = self._takes(("assistant", "user"))
        self.end, self.words = self._turns(control, eos)

    def render(self, rows: Rows, *, tools: Sequence[Any] | None = None, begin: bool = False) -> str:
        """As ``Template.render``; ``tools`` are texts."""
        turns: list[dict[str, str]] = []
        tools_text = _HOW.format(tools="\n".join(tools)) if tools else ""
        for row in self._with_system(rows, tools_text):
            role, content = row["role"], row["content"]
            if turns and turns[-1]["role"] == role:
                turns[-1]["content"] += f"\n{content}"
            else:
                turns.append({"role": role, "content": content})
        spoken = [row for row in turns if row["role"] != "system"]
        if not self._first and spoken and spoken[0]["role"] == "assistant":
            turns.insert(len(turns) - len(spoken), {"role": "user", "content": ""})
        return self._template.render(turns, begin=begin)

    def _with_system(self, rows: Rows, tools_text: str) -> Rows:
        head = [row["content"] for row in rows[:1] if row["role"] == "system"]
        rest = [{**row, "role": "user" if row["role"] == "system" else row["role"]} for row in rows[len(head) :]]
        text = "\n\n".join(t for t in (*head, tools_text) if t)
        role = "system" if self._system else "user"
        return [{"role": role, "content": text}, *rest] if text else rest

    def _takes(self, roles: Sequence[str]) -> bool:
        """Whether the template writes messages of these roles, each with what it says."""
        says = [f"{_SAID}{n}" for n, _ in enumerate(roles)]
        try:
            text = self._template.render(
                [{"role": r, "content": s} for r, s in zip(roles, says, strict=True)], begin=True
            )
        except CheckpointError:
            return False
        return all(s in text for s in says)

    def _turns(self, control: Sequence[str], eos: str | None) -> tuple[str, tuple[str, ...]]:
        talk = [
            {"role": "user", "content": _SAID},
            {"role": "assistant", "content": _HEARD},
            {"role": "user", "content": _SAID},
        ]
        text = self._template.render(talk, begin=True)
        if text.count(_SAID) != 2 or text.count(_HEARD) != 1:
            raise CheckpointError("The checkpoint's chat template does not show what is said")
        between, (after, last) = text.split(_HEARD)[0].split(_SAID)[1], text.split(_HEARD)[1].split(_SAID)
        tokens = sorted((c for c in control if c), key=len, reverse=True)
        ends = sorted((after.find(c), -len(c), c) for c in tokens if c in after)
        end = ends[0][2] if ends and not after[: ends[0][0]].strip() else eos
        if not end or end not in after:
            raise CheckpointError("The checkpoint's chat template ends no reply with a control token")
        words: list[str] = []
        for text in (between, after, last):
            for token in tokens:
                text = text.replace(token, "\n")
            words += [w for line in text.splitlines() if (w := line.strip())]
        marked = any(c in between for c in tokens)
        return end, () if marked else tuple(dict.fromkeys(words))


class TextFormat(RenderedFormat):
    """Calls and results as text, in the turns that ``template`` writes.

    ``eos``: the model's end-of-sequence token, which ends a reply as well. ``tool_text``: tools as signatures, or as
    the JSON schemas of OpenAI's API, which take three to five times the tokens.
    """

    calls_are_lines = True

    def __init__(
        self,
        tokenizer: GuardedTokenizer,
        template: TextTemplate,
        *,
        eos: str | None = None,
        tool_text: ToolText = "signatures",
    ) -> None:
        self._quoted, self._tool_text = _quoting(template.words), tool_text
        ends = _Ends(tokenizer, [template.end, *([eos] if eos else [])])
        renderer = TemplateRenderer(tokenizer, template, ends, [template.end])
        super().__init__(
            replace(TEXT, ends=(template.end, template.end)), tokenizer, renderer, thinking=False, drops_thoughts=False
        )

    def parse(self, completion_ids: Sequence[int], *, first_call: int = 0, tools: Sequence[ToolSpec] = ()) -> Message:
        ids = list(completion_ids)
        del ids[next((n for n, i in enumerate(ids) if i in self.stop_ids), len(ids)) :]
        return read_reply(self.text(ids), first_call)

    def call_opening(self, name: str | None) -> tuple[int, ...]:
        said = self.text(self.reply_ids(Message("assistant", "", (ToolCall("", name or "x"),))))
        return tuple(
            self.tokenizer.encode_guarded(said[: said.rindex("(") + 1] if name else said[: said.rindex(" x(")])
        )

    def _close(self, previous_ids: Sequence[int], messages: Sequence[Message]) -> list[int]:
        return [] if previous_ids and previous_ids[-1] in self.stop_ids else [self._ends[0]]

    def _render(
        self, messages: Sequence[Message | Mapping[str, Any]], *, tools: Sequence[ToolSpec] = (), begin: bool = False
    ) -> list[int]:
        rows = [self._row(m, n) if isinstance(m, Message) else dict(m) for n, m in enumerate(messages)]
        tool_texts = [self.tokenizer.guard(t) for t in self._shown(tools)]
        return list(self._renderer.render_ids(rows, tools=tool_texts, add_generation_prompt=begin))

    def _shown(self, tools: Sequence[ToolSpec]) -> list[str]:
        if self._tool_text == "schemas":
            return [json.dumps(t.to_openai(), ensure_ascii=False) for t in tools]
        return [signature(t) for t in tools]

    def _row(self, message: Message, number: int) -> dict[str, Any]:
        if message.role == "assistant":
            return {"role": "assistant", "content": self.tokenizer.guard(reply_text(message))}
        said = self._quoted(message.content or "")
        if message.role == "tool":
            return {"role": "user", "content": self.tokenizer.guard(f"{RESULT} {said}")}
        return {"role": message.role, "content": self.tokenizer.guard(said)}


class _Ends:
    """The ids that end a reply, for ``TemplateRenderer``; replies are read by ``TextFormat``."""

    def __init__(self, tokenizer: GuardedTokenizer, tokens: Sequence[str]) -> None:
        ids = (tokenizer.convert_tokens_to_ids(t) for t in tokens)
        self._ids = list(dict.fromkeys(i for i in ids if i is not None))

    def parse_response(self, token_ids: list[int], *, tools: Any = None, prompt_ids: Any = None) -> Any:
        raise NotImplementedError

    def get_stop_token_ids(self) -> list[int]:
        return self._ids


def _quoting(words: Sequence[str]) -> Callable[[str], str]:
    """What keeps a text that others wrote from looking like a call, a result or a turn. Labels, which end in a colon,
    matter where a line begins; other marks anywhere."""
    labels = [re.escape(w) for w in words if w.endswith(":")]
    marks = [w for w in words if not w.endswith(":")]
    label = re.compile(rf"^(?=[ \t]*(?:{'|'.join(labels)}))", re.MULTILINE) if labels else None
    mark = re.compile("|".join(f"(?<={re.escape(w[0])})(?={re.escape(w[1:])})" for w in marks)) if marks else None

    def quote(text: str) -> str:
        text = quoted(text)
        if label is not None:
            text = label.sub("> ", text)
        return mark.sub(" ", text) if mark is not None else text

    return quote


def text_template(source: str | None, values: Mapping[str, Any], control: Sequence[str]) -> TextTemplate:
    """The turns of a checkpoint whose template is ``source``, if it has one. CheckpointError if it can have none."""
    eos = values.get("eos_token")
    if source is None and not eos:
        raise CheckpointError(
            "The checkpoint has no chat template, nor control tokens that tell its format, nor an eos_token in "
            "tokenizer_config.json"
        )
    return TextTemplate(Template(PLAIN if source is None else source, values), control, eos)
