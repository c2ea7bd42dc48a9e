"""The agent's tool calls in a conversation: each with its result and with what the user had been asked before it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from muarl.audit.consent import commands, is_proposal, names_action
from muarl.language.acts import asks_to_go_ahead
from muarl.language.consent import changes_request, denies, is_affirmative
from muarl.types.chat import Message, ToolCall, ToolFault

KindOf = Callable[[str], str]

BACK = 2
"""How many of the agent's messages before a bare "Shall I go ahead?" may hold what it asks about."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One of the agent's tool calls and how it went."""

    index: int
    """Index of the message that carries it."""
    call: ToolCall
    result: str | None
    """Its text, None if none was recorded."""
    error: bool
    kind: str
    consented: bool | None = None
    """None for calls that are no write that was carried out."""
    proposals: tuple[str, ...] = ()
    """What the user's latest message answers, the newest first: the agent's last words and, where those only ask
    whether to go ahead, the ones before."""
    answer: str | None = None
    """The user's latest message."""
    answered: int = -1
    """Index of ``answer``."""
    fresh: bool = True
    """False if the agent has said something since ``answer``."""
    fault: ToolFault | None = None
    """What made an error of it, where a system failed."""

    @property
    def ok(self) -> bool:
        """True if it was answered, and not by an error."""
        return self.result is not None and not self.error

    @property
    def wrote(self) -> bool:
        """True for a write that was carried out, whatever the answer said."""
        return self.consented is not None


def agent_calls(
    messages: Sequence[Message],
    kind_of: KindOf,
    spoken: Mapping[str, tuple[str, ...]] | None = None,
    begin: int = 0,
) -> list[CallRecord]:
    """The agent's calls in order, each with its result and, for successful writes, whether the user consented.

    Results are found by the call's id among the tool messages up to the next message of another role; where ids are
    missing or equal, by their order. ``spoken``: see ``AuditRules``. ``begin``: nobody asks whether writes before this
    message were consented to; theirs is False.
    """
    records: list[CallRecord] = []
    said: list[str] = []  # what the agent has said to the user since its last write
    proposals: tuple[str, ...] = ()  # what the user's latest message answers
    answer: str | None = None
    answered, fresh = -1, True
    before = _Asked()
    for index, message in enumerate(messages):
        if message.role == "assistant" and not message.tool_calls:
            said.append(message.content or "")
            fresh = False
        elif message.role == "user" and not message.tool_calls:
            before = _Asked(proposals, answer, said[-1] if said and not fresh else None)
            proposals, answer, answered = (() if fresh and answered >= 0 else _asked(said)), message.content, index
            fresh = True
        elif message.role == "assistant":
            # Text beside tool calls never reaches the user, so it can propose nothing.
            for call, result in with_results(messages, index):
                kind = _kind(call, kind_of)
                error = call.invalid is not None or (result is not None and result.error)
                consented = None
                fault = None if result is None else result.failed
                if kind == "write" and result is not None and (not error or (fault is not None and fault.ran)):
                    words = (spoken or {}).get(call.name, ())
                    asked = _Asked(proposals, answer)
                    consented = index >= begin and (asked.agreed(call, words) or before.still(call, words, answer))
                    if not error:  # else the same yes holds for another try
                        said.clear()
                text = result.content if result else None
                records.append(
                    CallRecord(index, call, text, error, kind, consented, proposals, answer, answered, fresh, fault)
                )
    return records


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was proposed, the answer to it, and what the agent then went on to ask (None: nothing)."""

    proposals: tuple[str, ...] = ()
    answer: str | None = None
    then: str | None = None

    def agreed(self, call: ToolCall, words: tuple[str, ...]) -> bool:
        """Whether this call was proposed and the answer was yes."""
        named = [p for p in self.proposals if is_proposal(p, call.name, call.arguments, words)]
        if not named:
            return False
        answer = self.answer
        if answer and any("instead" in p.lower() for p in named):  # who says it back changes nothing
            answer = re.sub(r"\binstead\b", "", answer, flags=re.IGNORECASE)
        return is_affirmative(answer, "\n".join(named)) or commands(answer, call.name, call.arguments, words)

    def still(self, call: ToolCall, words: tuple[str, ...], answer: str | None) -> bool:
        """Whether the yes holds after the answer to a question about a detail of this call."""
        if self.then is None or not names_action(self.then, call.name, words):
            return False
        return self.agreed(call, words) and not denies(answer) and not changes_request(answer)


def _asked(said: Sequence[str]) -> tuple[str, ...]:
    """What an answer now answers: the last words and, where they are a bare question, what they may be about."""
    if not said:
        return ()
    if not asks_to_go_ahead(said[-1]):
        return (said[-1],)
    return tuple(reversed(said[-1 - BACK :]))


def _kind(call: ToolCall, kind_of: KindOf) -> str:
    try:
        return kind_of(call.name)
    except Exception:  # an unknown tool may be answered by any lookup error: it wrote nothing
        return "generic"


def as_documented(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages with the fields of results under the names that rules know them by, where a simulated new version of
    a tool has renamed them."""
    if not any(fault.kind == "renamed_field" for message in messages for fault in message.faults):
        return messages
    from muarl.domains.faults.answers import restored  # few conversations need it

    out = []
    for message in messages:
        for name in (fault.detail for fault in message.faults if fault.kind == "renamed_field"):
            body, mark, rest = (message.content or "").partition("\n[truncated: ")
            message = replace(message, content=restored(body, name) + mark + rest)
        out.append(message)
    return out


def with_results(messages: Sequence[Message], index: int) -> list[tuple[ToolCall, Message | None]]:
    """The calls of the message at ``index``, each with the tool message that answers it."""
    calls, requestor = messages[index].tool_calls, messages[index].role
    answers: list[Message] = []
    for at in range(index + 1, len(messages)):
        message = messages[at]
        if message.role != "tool" or message.requestor != requestor:
            break
        answers.append(message)
    by_id = {m.tool_call_id: m for m in answers}
    if len(by_id) == len(answers) and all(c.id in by_id for c in calls[: len(answers)]):
        return [(c, by_id.get(c.id)) for c in calls]
    return [(c, answers[i] if i < len(answers) else None) for i, c in enumerate(calls)]


def fingerprint(call: ToolCall) -> str:
    """What two calls have in common that ask the same."""
    return call.name + json.dumps(dict(call.arguments), sort_keys=True, default=str) + (call.raw or "")


def repeated_calls(records: Sequence[CallRecord]) -> int:
    """Calls that an identical call (name and arguments) came before, with no other successful write in between.

    Looking again after something else was written is sensible; asking the same of an unchanged world is not.
    """
    seen: dict[str, int] = {}
    writes: list[str] = []
    count = 0
    for record in records:
        key = fingerprint(record.call)
        if key in seen and all(w == key for w in writes[seen[key] :]):
            count += 1
        seen[key] = len(writes)
        if record.kind == "write" and record.ok:
            writes.append(key)
    return count
