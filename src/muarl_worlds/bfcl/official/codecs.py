"""How tools, calls and results travel as text where a model is prompted as BFCL prompts it (see agents/prompted.py).

A codec is given only what is new: what the model wrote before stays as it wrote it. (BFCL's Qwen handler writes a
message with calls anew from the decoded calls, which drops words beside them.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Literal

from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl_worlds.bfcl.api import Revision
from muarl_worlds.bfcl.calls import literal_call
from muarl_worlds.bfcl.official import prompts
from muarl_worlds.bfcl.official.decoding import Style, decode, without_thoughts
from muarl_worlds.bfcl.official.toolspecs import shown


@dataclass(frozen=True)
class PromptCodec:
    """Calls as a Python list, tools as documents in the system prompt: BFCL's prompting.

    ``results``: how the results of calls go back. "list": as one user message with a Python list of them, as BFCL tells
    models behind an API; there a tool message's ``name`` is the call string. "blocks": as Qwen's chat template writes
    tool messages, which is what BFCL's local models read.
    """

    revision: Revision = "v4"
    results: Literal["list", "blocks"] = "list"

    whole: ClassVar[bool] = False
    style: ClassVar[Style] = "prompt"

    def system(self, system: str, tools: Sequence[ToolSpec]) -> str:
        """BFCL's system prompt; one of the task's own comes after it."""
        text = prompts.prompt_system(shown(tools), self.revision)
        return f"{text}\n\n{system}" if system else text

    def given(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        """The messages, with results in user messages."""
        return _told(messages, blocks=self.results == "blocks")

    def calls(self, text: str) -> tuple[ToolCall, ...]:
        """The calls in a message, each with its call string in ``raw``."""
        return tool_calls(decode(without_thoughts(text), self.style, self.revision))


@dataclass(frozen=True)
class QwenCodec:
    """Calls as ``<tool_call>`` blocks, tools as BFCL's own documents: its handler of Qwen's function calling."""

    revision: Revision = "v4"

    whole: ClassVar[bool] = False
    style: ClassVar[Style] = "qwen"

    def system(self, system: str, tools: Sequence[ToolSpec]) -> str:
        """Qwen's words on tools, after a prompt of the task's own."""
        return prompts.qwen_system(shown(tools), system)

    def given(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        """The messages, with results in user messages."""
        return _told(messages, blocks=True)

    def calls(self, text: str) -> tuple[ToolCall, ...]:
        """The calls in a message, each with its call string in ``raw``."""
        return tool_calls(decode(without_thoughts(text), self.style, self.revision))


def tool_calls(texts: Iterable[str]) -> tuple[ToolCall, ...]:
    """Decoded call strings as tool calls: ``raw`` is the string, name and arguments are what can be read of it."""
    found = []
    for text in texts:
        name, arguments = literal_call(text) or (text.partition("(")[0].strip(), {})
        found.append(ToolCall("", name, arguments, raw=text))
    return tuple(found)


def _told(messages: Sequence[Message], *, blocks: bool) -> list[Message]:
    told: list[Message] = []
    for is_result, several in groupby(messages, key=lambda message: message.role == "tool"):
        if not is_result:
            told += several
        elif blocks:
            parts = [f"<tool_response>\n{m.content or ''}\n</tool_response>" for m in several]
            told.append(Message("user", "\n".join(parts)))
        else:
            listed = [{"role": "tool", "name": m.name, "content": m.content or ""} for m in several]
            told.append(Message("user", repr(listed)))
    return told
