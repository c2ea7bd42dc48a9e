"""The trajectories that TAU1's runs leave: OpenAI messages, or the text styles act and react."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from muarl.basics.errors import DataError
from muarl.basics.untrusted import parse_json, to_float
from muarl.records.conversation import Format, RecordedConversation, stop_of
from muarl.records.rows import PlacedRow
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import StopReason

STOP_WORD = "###STOP###"
TRANSFER = "transfer_to_human_agents"
RESPOND = "respond"
"""The name that TAU1 gives to the action of speaking to the user."""
_NUMBERS = "trial must be a whole number and reward a number"


class Tau1Conversation(RecordedConversation):
    """One conversation of a run of TAU1: {task_id, reward, info, traj, trial}.

    Agents that call tools, and those that write their actions as text (``act``, ``react``), are both understood.
    """

    format: ClassVar[str] = "tau1"
    benchmark: ClassVar[str] = "tau1"

    @cached_property
    def _told(self) -> tuple[tuple[Message, ...], StopReason, int]:
        """All messages, how they ended, and after how many."""
        if not isinstance(self.value.get("traj"), list):
            raise DataError(f"{self.place}: must be an object with a list traj")
        messages = conversation(self.value["traj"], self.place)
        return messages, *ending(messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said and done, without what came after the end, if anything."""
        messages, _, end = self._told
        return messages[:end]

    @property
    def termination(self) -> StopReason | str:
        """user_stop, transfer, max_turns where neither came, or "unexpected_error" where the run broke off before
        anything was said (``error`` says how)."""
        messages, stop, _ = self._told
        return "unexpected_error" if self.error is not None and not messages else stop

    @property
    def stop(self) -> StopReason:
        """How it ended, as we say it."""
        return stop_of(self.termination)

    @property
    def index(self) -> int:
        """The task's place in its split, which the file does not name."""
        found = self.value.get("task_id")
        if type(found) is not int or found < 0:
            raise DataError(f"{self.place}: task_id must be a task's number, not {found!r}")
        return found

    @property
    def id(self) -> str:
        """Its own name: the task's number and the trial's."""
        return f"{self.index}#{self.trial}"

    @property
    def trial(self) -> int:
        """Which of the attempts at its task it is, from 0."""
        found = self.value.get("trial", 0)
        if type(found) is not int:
            raise DataError(f"{self.place}: {_NUMBERS}")
        return found

    @property
    def reward(self) -> float | None:
        """The recorded reward; None if there is none."""
        found = self.value.get("reward")
        if found is not None and type(found) not in (int, float):
            raise DataError(f"{self.place}: {_NUMBERS}")
        return None if found is None else to_float(found, f"{self.place}: reward")

    @property
    def domain(self) -> str | None:
        """The domain, as far as what was said and done tells it."""
        return _domain_of(self._told[0], self.task_row)

    @property
    def _info(self) -> Mapping[str, Any]:
        found = self.value.get("info")
        return found if isinstance(found, Mapping) else {}

    @property
    def task_row(self) -> Mapping[str, Any] | None:
        """The task as it was then; None if the file does not hold it."""
        found = self._info.get("task")
        return found if isinstance(found, Mapping) else None

    @property
    def error(self) -> str | None:
        """What broke the run off; None if nothing did."""
        found = self._info.get("error")
        return None if found is None else str(found)

    def check(self) -> Tau1Conversation:
        """Itself. DataError says what is wrong with any of its fields."""
        _ = self.index, self.trial, self.reward, self._told
        return self


class Tau1Files(Format):
    """Runs of TAU1 among the conversations of other programs: a JSON list, or JSON lines, of objects with ``traj``."""

    def of_row(self, row: PlacedRow) -> Iterable[RecordedConversation] | None:
        """The conversation of a row that is one."""
        return (Tau1Conversation(row, self.left_out),) if "traj" in row.value else None


def ending(messages: Sequence[Message]) -> tuple[StopReason, int]:
    """How TAU1 ended a conversation, and after how many of its messages.

    The end is a call of the transfer tool, whatever it answered, or a user's message that holds the stop word and
    answers the agent; where neither comes, the agent's steps were used up.
    """
    spoken = False
    for i, message in enumerate(messages):
        if message.role == "user" and spoken and STOP_WORD in (message.content or ""):
            return StopReason.USER_STOP, i + 1
        if message.role == "assistant" and any(c.name == TRANSFER for c in message.tool_calls):
            rest = messages[i + 1 :]
            answers = next((n for n, m in enumerate(rest) if m.role != "tool"), len(rest))
            return StopReason.TRANSFER, i + 1 + answers
        if message.role in ("assistant", "user"):
            spoken = message.role == "assistant" and not message.tool_calls
    return StopReason.MAX_TURNS, len(messages)


def conversation(traj: Sequence[Any], place: str) -> tuple[Message, ...]:
    """A trajectory's messages, in the OpenAI form or with actions as text. DataError names what is malformed."""
    for i, given in enumerate(traj):
        content = given.get("content") if isinstance(given, Mapping) else None
        if not isinstance(given, Mapping) or given.get("role") not in ("system", "user", "assistant", "tool"):
            raise DataError(f"{place}, traj[{i}]: must be an object with the role system, user, assistant or tool")
        if content is not None and not isinstance(content, str):
            raise DataError(f"{place}, traj[{i}]: content must be a string or null")
    first = traj[0] if traj else {}
    as_text = first.get("role") == "system" and "\n#Available tools\n" in (first.get("content") or "")
    return tuple(_from_text(traj) if as_text else _from_openai(traj, place))


def _from_openai(traj: Sequence[Mapping[str, Any]], place: str) -> Iterator[Message]:
    for i, given in enumerate(traj):
        role, content = given["role"], given.get("content")
        if role == "tool":
            identity = given.get("tool_call_id")
            yield _answer(content, identity if isinstance(identity, str) else "", given.get("name"))
            continue
        try:
            calls = tuple(_call(c) for c in given.get("tool_calls") or ()) if role == "assistant" else ()
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise DataError(f"{place}, traj[{i}]: a tool call is malformed: {problem!r}") from None
        rest = traj[i + 1 :]
        answers = next((n for n, m in enumerate(rest) if m["role"] != "tool"), len(rest))
        calls = calls[: max(1, answers)]  # of several calls TAU1 runs the first
        if calls and calls[0].name == RESPOND:  # speaking, in the form of a call
            yield Message(role, _said(calls[0].arguments))
        elif calls:  # words beside a call reach nobody and count for nothing
            yield Message(role, None, tool_calls=calls, reasoning=content)
        else:
            yield Message(role, content)


def _call(given: Mapping[str, Any]) -> ToolCall:
    arguments = given["function"]["arguments"]
    arguments = parse_json(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(arguments, dict):
        raise ValueError("arguments must be an object")
    return ToolCall(given.get("id") or "", given["function"]["name"], arguments)


def _from_text(traj: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """Messages of an ``act`` or ``react`` agent: "Action:" and JSON, answered by "API output: " or by the user."""
    called: ToolCall | None = None
    for i, given in enumerate(traj):
        role, content = given["role"], given.get("content") or ""
        if role == "assistant":
            thought, _, action = content.rpartition("Action:")
            name, arguments = _action(action.strip())
            reasoning = thought.strip() or None
            called = None if name == RESPOND else ToolCall(f"call_{i}", name, arguments)
            spoken = _said(arguments) if called is None else None
            yield Message("assistant", spoken, () if called is None else (called,), reasoning)
        elif role == "user" and called is not None:
            yield _answer(content.removeprefix("API output: "), called.id, called.name)
            called = None
        else:
            yield Message(role, content)


def _action(text: str) -> tuple[str, dict[str, Any]]:
    """The action that a text names; a text that is no JSON is what the agent says, as TAU1 has it."""
    try:
        found = parse_json(text)
    except ValueError:
        return RESPOND, {"content": text}
    if isinstance(found, dict) and isinstance(found.get("name"), str) and isinstance(found.get("arguments"), dict):
        return found["name"], found["arguments"]
    return RESPOND, {"content": text}


def _said(arguments: Mapping[str, Any]) -> str:
    content = arguments.get("content")
    return content if isinstance(content, str) else ""


def _answer(content: str | None, identity: str, name: Any) -> Message:
    failed = (content or "").startswith(("Error", "Unknown action "))
    return Message("tool", content, tool_call_id=identity, name=name if isinstance(name, str) else None, error=failed)


def _domain_of(messages: Sequence[Message], given: Mapping[str, Any] | None) -> str | None:
    """The domain whose tools were called or were to be called, or whose policy comes first; None if neither tells."""
    from muarl_worlds.tau.tau1.airline import Tau1Airline
    from muarl_worlds.tau.tau1.retail import Tau1Retail

    called = {c.name for m in messages for c in m.tool_calls}
    wanted = (given or {}).get("actions")
    if isinstance(wanted, list):
        called |= {str(a.get("name")) for a in wanted if isinstance(a, Mapping)}
    hits = {kind.name: len(called & set(kind.own_tools())) for kind in (Tau1Retail, Tau1Airline)}
    if len(set(hits.values())) > 1:
        return max(hits, key=lambda name: hits[name])
    told = (messages[0].content or "").lower().lstrip("# ") if messages else ""
    return next((name for name in hits if told.startswith(name)), None)
