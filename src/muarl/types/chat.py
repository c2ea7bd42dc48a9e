"""The words everybody shares: messages, tool calls, tool results and tool specs.

They are shaped like the OpenAI chat API, but are frozen dataclasses, so that a conversation can be shared between
coroutines without copies. ``to_openai`` and ``from_openai`` translate at the border.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Role = Literal["system", "user", "assistant", "tool"]
Requestor = Literal["assistant", "user"]
Row = TypeVar("Row")

GREETING = "Hi! How can I help you today?"
"""What the agent is taken to have said before the user's first message (TAU2's orchestrator)."""

STOP_WORDS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""A user message without tool calls that contains one of these ends the conversation (TAU2's user guidelines)."""


def json_kind(value: Any) -> str:
    """What a value of JSON is, for messages."""
    kinds = {bool: "a truth value", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


def check_texts(data: Mapping[str, Any], *names: str) -> None:
    """ValueError for one of these fields that is neither text nor null nor left out."""
    for name in names:
        if not isinstance(value := data.get(name), str | None):
            parts = ": join its parts to one text" if isinstance(value, list) else ""
            raise ValueError(f"{name} must be text, not {json_kind(value)}{parts}")


def from_rows(read: Callable[[Any], Row], rows: Any, place: str) -> tuple[Row, ...]:
    """What ``read`` makes of each row of a list. ValueError names the ``place`` of one that it refuses so."""
    if not isinstance(rows, (list, tuple)):
        raise ValueError(f"{place} must be a list, not {json_kind(rows)}")
    found = []
    for number, row in enumerate(rows):
        try:
            found.append(read(row))
        except ValueError as problem:
            raise ValueError(f"{place}[{number}].{problem}") from None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call that an agent or a user asked for."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The parsed JSON object; empty where the call is ``invalid``."""
    requestor: Requestor = "assistant"
    invalid: str | None = None
    """Why the model's text could not be parsed. The world then answers with an error observation instead of running
    anything."""
    raw: str | None = None
    """The text that could not be parsed."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict; fields that hold their default are left out, ``requestor`` stays."""
        out: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "arguments": dict(self.arguments),
            "requestor": self.requestor,
        }
        if self.invalid is not None:
            out["invalid"] = self.invalid
        if self.raw is not None:
            out["raw"] = self.raw
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ToolCall:
        """The inverse of ``to_json``. KeyError if there is no name, ValueError for a field of another kind."""
        check_texts(data, "id", "name", "requestor", "invalid", "raw")
        if not isinstance(data.get("arguments") or {}, Mapping):
            raise ValueError(
                f"arguments must be an object, not {json_kind(data['arguments'])}: write the object itself, such as "
                '{"order_id": "#W1"}'
            )
        return cls(
            id=data.get("id", ""),
            name=data["name"],
            arguments=data.get("arguments") or {},
            requestor=data.get("requestor") or "assistant",
            invalid=data.get("invalid"),
            raw=data.get("raw"),
        )


@dataclass(frozen=True, slots=True)
class ToolFault:
    """What a simulated system did wrong with one tool call (``domains.faults``); no agent is shown it."""

    kind: str
    """Such as "outage"."""
    failed: bool = False
    """Whether the call was answered by an error because of it."""
    ran: bool = False
    """Whether the call reached the tool all the same."""
    writes: bool = False
    """Whether the tool may write."""
    seconds: float | None = None
    """The simulated time that the call took, of "latency" and time-outs."""
    detail: str = ""
    """In words, such as "2 of 5 entries"; empty where the kind says it all."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict that ``from_json`` restores exactly; fields that hold their default are left out."""
        out: dict[str, Any] = {"kind": self.kind}
        more = {"failed": self.failed, "ran": self.ran, "writes": self.writes, "detail": self.detail}
        out |= {name: value for name, value in more.items() if value}
        return out if self.seconds is None else out | {"seconds": self.seconds}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ToolFault:
        """The inverse of ``to_json``. KeyError if there is no kind."""
        seconds = data.get("seconds")
        return cls(
            kind=str(data["kind"]),
            failed=bool(data.get("failed", False)),
            ran=bool(data.get("ran", False)),
            writes=bool(data.get("writes", False)),
            seconds=None if seconds is None else float(seconds),
            detail=str(data.get("detail", "")),
        )


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call gave back."""

    content: str
    """The observation's exact text."""
    error: bool = False
    """Whether the observation is an error."""
    cause: str = field(default="", compare=False)
    """What kind of error, in words for a domain's author ("unknown tool", "raises ValueError"); empty where the world
    does not say."""
    faults: tuple[ToolFault, ...] = ()
    """What a simulated system did wrong with the call."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation: text, tool calls, or both."""

    role: Role
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    tool_call_id: str | None = None
    """Of a ``tool`` message: the id of the call that it answers."""
    name: str | None = None
    requestor: Requestor = "assistant"
    """Of a ``tool`` message: the side that asked."""
    error: bool = False
    faults: tuple[ToolFault, ...] = ()
    """Of a ``tool`` message: what a simulated system did wrong with the call."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict that ``from_json`` restores exactly; fields that hold their default are left out."""
        out: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            out["tool_calls"] = [c.to_json() for c in self.tool_calls]
        if self.reasoning is not None:
            out["reasoning"] = self.reasoning
        if self.tool_call_id is not None:
            out["tool_call_id"] = self.tool_call_id
        if self.name is not None:
            out["name"] = self.name
        if self.requestor != "assistant":
            out["requestor"] = self.requestor
        if self.error:
            out["error"] = True
        if self.faults:
            out["faults"] = [fault.to_json() for fault in self.faults]
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Message:
        """The inverse of ``to_json``. KeyError if there is no role, ValueError for a field of another kind."""
        check_texts(data, "role", "content", "reasoning", "tool_call_id", "name", "requestor")
        return cls(
            role=data["role"],
            content=data.get("content"),
            tool_calls=from_rows(ToolCall.from_json, data.get("tool_calls") or (), "tool_calls"),
            reasoning=data.get("reasoning"),
            tool_call_id=data.get("tool_call_id"),
            name=data.get("name"),
            requestor=data.get("requestor", "assistant"),
            error=bool(data.get("error", False)),
            faults=tuple(map(ToolFault.from_json, data.get("faults") or ())),
        )

    @property
    def ran(self) -> bool:
        """Of a tool message: whether its call reached the tool, as all do but for some faults."""
        return all(fault.ran for fault in self.faults)

    @property
    def failed(self) -> ToolFault | None:
        """Of a tool message: the fault that made an error of it, None if there is none."""
        return next((fault for fault in self.faults if fault.failed), None)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON Schema object."""
    doc: Mapping[str, Any] | None = None
    """A benchmark's own document of the tool, where its prompts show it as it is."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the OpenAI API's "function" object."""
    as_documented: bool = False
    """Chat templates are given the document in place of that API's form (BFCL's with Qwen)."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict that ``from_json`` restores exactly; fields that hold their default are left out."""
        out: dict[str, Any] = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        more = {"doc": self.doc, "extra": self.extra or None, "as_documented": self.as_documented or None}
        return out | {name: value for name, value in more.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ToolSpec:
        """The inverse of ``to_json``. KeyError if a field is missing, ValueError for one of another kind."""
        name, description, parameters = data["name"], data["description"], data["parameters"]
        check_texts(data, "name", "description")
        if not isinstance(parameters, Mapping):
            raise ValueError(f"parameters must be a JSON Schema object, not {json_kind(parameters)}")
        return cls(
            name,
            description,
            parameters,
            doc=data.get("doc"),
            extra=data.get("extra", {}),
            as_documented=data.get("as_documented", False),
        )

    def to_openai(self) -> dict[str, Any]:
        """The ``{"type": "function", "function": {...}}`` form of the OpenAI chat API, or the document itself."""
        if self.as_documented and self.doc is not None:
            return dict(self.doc)
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
                **self.extra,
            },
        }


def to_openai(message: Message) -> dict[str, Any]:
    """One message in the OpenAI chat API's form: tool arguments as a JSON string, ids on calls and results."""
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        out["tool_calls"] = [
            {
                "id": c.id,
                "type": "function",
                "function": {
                    "name": c.name,
                    "arguments": c.raw if c.invalid and c.raw is not None else json.dumps(dict(c.arguments)),
                },
            }
            for c in message.tool_calls
        ]
    if message.role == "tool":
        out["tool_call_id"] = message.tool_call_id
        if message.name is not None:
            out["name"] = message.name
    return out


def is_stop(message: Message, words: Iterable[str] = STOP_WORDS) -> bool:
    """True if this user message ends the conversation: no tool calls and a stop word anywhere in its text."""
    return not message.tool_calls and any(w in (message.content or "") for w in words)


def visible_to_agent(messages: Iterable[Message]) -> list[Message]:
    """The messages an agent may see: the user's tool calls and their results are the user's own affair."""
    return [
        m
        for m in messages
        if not (m.role == "user" and m.tool_calls) and not (m.role == "tool" and m.requestor == "user")
    ]


def visible_to_user(messages: Iterable[Message]) -> list[Message]:
    """The messages a user may see: neither the system prompt nor the agent's tool calls and their results.

    An agent message that carries tool calls is never shown to the user, its text included (TAU2 orchestrator).
    """
    return [
        m
        for m in messages
        if m.role != "system"
        and not (m.role == "assistant" and m.tool_calls)
        and not (m.role == "tool" and m.requestor == "assistant")
    ]
