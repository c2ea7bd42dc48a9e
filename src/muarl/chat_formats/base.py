"""What every chat format does: messages become token ids, and sampled ids become a message.

A conversation grows by appending: what was sampled is not turned into text and tokenised again. The one exception are
formats that drop the thoughts of earlier turns when the user speaks (``drops_thoughts``): the context is then written
anew, as the family's template does, and a new segment of the trace begins. Training, evaluation and cold-start data go
through the same functions (``prompt``, ``written_anew``, ``extend``, ``reply_ids``), so a context is the same, id for
id, wherever it is built.

Whatever users, tools and policies write is data: text in it that looks like a control token (``<|im_end|>``,
``<tool_call>``) is encoded as ordinary characters.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from muarl.basics.errors import CheckpointError
from muarl.chat_formats.guarded import GuardedTokenizer
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import TokenTrace


@dataclass(frozen=True, slots=True)
class Markers:
    """The ids that begin and end thoughts and Hermes calls, for readers that take a reply apart while it comes."""

    think: int
    thought: int
    call: int
    called: int


class ChatFormat(Protocol):
    """The chat format of one tokenizer: prompts, extensions, parsing and training tokens."""

    name: str
    """As in ``model.chat_format``."""
    thinking: bool
    """Whether the policy thinks first."""
    drops_thoughts: bool
    """Whether its thoughts go when the user speaks again; else they stay in the history."""
    thought_opener: tuple[int, ...]
    """The ids that thoughts begin with."""
    tokenizer: GuardedTokenizer
    stop_ids: tuple[int, ...]
    """The ids that end a reply, the one for a reply that had to be cut first."""
    generation_prompt: tuple[int, ...]
    """The ids that open an agent turn after a user's message; context, never sampled."""
    markers: Markers | None
    """None where replies are read when they are over."""
    calls_are_lines: bool = False
    """A call is over where its line is."""

    @abstractmethod
    def prompt(self, system: str, tools: Sequence[ToolSpec], messages: Sequence[Message]) -> list[int]:
        """The context of the first agent turn: system text, tools, messages so far, generation prompt.

        Agent messages among ``messages`` (such as the greeting) are history that nobody sampled, or whose context is
        written anew.
        """
        ...

    @abstractmethod
    def extend(self, previous_ids: Sequence[int], new_messages: Sequence[Message]) -> list[int]:
        """The ids to append to a context and its sampled reply, up to and with the next generation prompt.

        ``previous_ids``: everything so far; only its end is looked at. A reply that was cut before it ended is closed
        here, by ids that carry no loss.
        """
        ...

    @abstractmethod
    def resume(self, previous_ids: Sequence[int], messages: Sequence[Message]) -> list[int]:
        """As ``extend``, where agent messages that nobody sampled here may be among the new ones, or nothing is new:
        the agent then speaks again."""
        ...

    @abstractmethod
    def reply_ids(self, message: Message) -> list[int]:
        """An agent message as the policy would have to sample it after the generation prompt, its end included."""
        ...

    @abstractmethod
    def call_opening(self, name: str | None) -> tuple[int, ...] | None:
        """What a reply begins with that must call a tool (this one, if named); None if replies cannot be made to."""
        ...

    @abstractmethod
    def parse(self, completion_ids: Sequence[int], *, first_call: int = 0, tools: Sequence[ToolSpec] = ()) -> Message:
        """The agent message that sampled ids stand for; never raises, whatever they are.

        Calls get the ids "call_<n>", counted from ``first_call``. A call that is broken, ambiguous or of the wrong
        shape, or that does not end, comes back with ``invalid`` set; the world answers with an error. ``tools``: those
        that were offered, where values are written without quotes and only a tool's schema says what they are.
        """
        ...

    def written_anew(
        self,
        previous_ids: Sequence[int],
        system: str,
        tools: Sequence[ToolSpec],
        earlier: Sequence[Message],
        new_messages: Sequence[Message],
    ) -> list[int] | None:
        """The context that takes the place of ``previous_ids`` where earlier thoughts go: the format drops them, the
        user speaks, and there are some. None where the context is extended instead; also where the family's template
        refuses the conversation, as some do over calls that could not be read.

        ``earlier``: all messages before the new ones.
        """
        if not self.drops_thoughts or not any(m.role == "user" for m in new_messages):
            return None
        opener, size = self.thought_opener, len(self.thought_opener)
        if not any(
            tuple(previous_ids[at : at + size]) == opener
            for at in range(len(previous_ids) - size + 1)
            if previous_ids[at] == opener[0]
        ):
            return None
        try:
            return self.prompt(system, tools, [*earlier, *new_messages])
        except (CheckpointError, ValueError):
            return None

    def text(self, ids: Sequence[int]) -> str:
        """The ids as text, control tokens included; for display and parsing."""
        return self.tokenizer.decode(ids) if ids else ""

    def training_tokens(
        self, system: str, tools: Sequence[ToolSpec], messages: Sequence[Message], *, skip: Collection[int] = ()
    ) -> TokenTrace:
        """A recorded conversation as the policy would have lived it: same contexts, loss on what it would sample.

        ``messages``: what the agent saw and said, without the system message. Agent messages before the first other
        message (the greeting) are context. ``skip``: indices of agent messages that stay context too, such as a
        demonstrator's mistakes. Ends after the last agent message; log-probabilities are 0, versions 0 where sampled.
        Where the format drops earlier thoughts, each of the user's turns is a segment: every reply stands in the
        context in which it would have been sampled, and carries loss there alone.
        """
        trace = TokenTrace()
        first = next((i for i, m in enumerate(messages) if m.role != "assistant"), len(messages))
        new = list(messages[:first])
        for index, message in enumerate(messages[first:], first):
            if message.role != "assistant":
                new.append(message)
                continue
            if trace.ids and not new:
                raise ValueError(f"messages[{index}]: two agent messages with nothing between them")
            if not trace.ids:
                trace.append_given(self.prompt(system, tools, new))
            else:
                earlier = [_as_read(m) for m in messages[: index - len(new)]]
                anew = self.written_anew(trace.context(), system, tools, earlier, new)
                if anew is not None:
                    trace.restart()
                trace.append_given(self.extend(trace.context(), new) if anew is None else anew)
            ids = self.reply_ids(message)
            if index in skip:
                trace.append_given(ids)
            else:
                trace.append_sampled(ids, [0.0] * len(ids), 0)
            new = []
        return trace


def _as_read(message: Message) -> Message:
    """A recorded reply as ``parse`` would have read it, without white space around its text."""
    if message.role != "assistant" or not message.content:
        return message
    return replace(message, content=message.content.strip())
