"""How a model without function calling takes part in ACEBench: its calls stand as text, and so do their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl_worlds.acebench.decode import UndecodableMessage, decode, to_execution
from muarl_worlds.acebench.domain import read_result
from muarl_worlds.acebench.execute import ERROR, Category, json_form
from muarl_worlds.acebench.official import prompts
from muarl_worlds.acebench.scenario import Language

NO_CALLS = ""
"""``ToolCall.raw`` of a message that goes to the executor without a call in it, such as "[hello]"."""


class TextCodec:
    """Upstream's prompts for one category and language. ``whole``: the agent sees the whole conversation each time.

    ``prompt_language``: of the prompts alone. Where upstream asks a model behind an API, it forgets the language in
    multi-step tasks, so that the prompts of English ones are Chinese ("zh"); with a local model it does not.
    """

    whole = True

    def __init__(self, language: Language, category: Category, *, prompt_language: Language | None = None) -> None:
        self.language, self.category = language, category
        self.prompt_language: Language = prompt_language or language

    def system(self, system: str, tools: Sequence[ToolSpec]) -> str:
        """The system prompt. ``system``: the policy, of which multi-step tasks have none."""
        return prompts.agent_system(self.prompt_language, self.category, system)

    def given(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        """The one message the agent is to answer, from the whole conversation as it saw it."""
        functions = [document_of(tool) for tool in tools]
        text = prompts.agent_request(self.prompt_language, self.category, functions, self.history(messages))
        return [Message("user", text)]

    def history(self, messages: Sequence[Message]) -> str:
        """The conversation as one text."""
        lines: list[str] = []
        results: list[str] | None = None
        spoken = 0
        for message in messages:
            if message.role == "tool":
                results = [*(results or []), message.content or ""]
                continue
            if results is not None:
                lines.append(self._executed(results))
                results = None
            text = message.content or ""
            if message.role == "user":
                answers = self.category == "multi_step" and spoken > 0
                lines.append(f"execution result:{text}" if answers else f"user:{text}")
                spoken += 1
            elif message.role == "assistant" and spoken > 0 and self.category == "multi_turn":
                lines.append(f"agent:{text}")
        if results is not None:
            lines.append(self._executed(results))
        return "".join(f"{line}\n" for line in lines)

    def _executed(self, results: Sequence[str]) -> str:
        shown = [read_result(text) for text in results if text != NO_CALLS]
        if self.category == "multi_turn" and ERROR in shown:
            shown = list(ERROR)
        return f"{'execution' if self.category == 'multi_turn' else 'execution result'}:{shown}"

    def calls(self, text: str) -> tuple[ToolCall, ...]:
        """The calls that go to the executor, one named "" if it gets a message without any; () if the message does not
        go there."""
        if self.category == "multi_turn" and not to_execution(text):
            return ()
        try:
            found = decode(text)
        except UndecodableMessage:
            return ()
        if not found:
            return (ToolCall("", "", raw=NO_CALLS),)
        return tuple(ToolCall("", c.name, {k: json_form(v) for k, v in c.arguments.items()}, raw=c.text) for c in found)


def codec(task: Task, *, prompt_language: Language | None = None) -> TextCodec:
    """The codec of a task of ACEBench's."""
    data = task.initial_data or {}
    return TextCodec(task.tags["language"], data["category"], prompt_language=prompt_language)


def document_of(tool: ToolSpec) -> Mapping[str, Any]:
    """A tool's document as upstream writes them: its own, or one made from the spec."""
    if tool.doc is not None:
        return tool.doc
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def serialized(calls: Sequence[ToolCall]) -> str:
    """A message's calls as a message in which they stand as text, so that they compare with milestones."""
    return f"[{', '.join(_text(call) for call in calls)}]"


def _text(call: ToolCall) -> str:
    if call.raw is not None and call.invalid is None:
        return call.raw
    return f"{call.name}({', '.join(f'{k}={v!r}' for k, v in call.arguments.items())})"
