"""Chat messages as logs of live agents and other trainers write them, and muarl: OpenAI's chat form, its old
``function_call`` and messages of the role "function", Anthropic's ``tool_use`` and ``tool_result`` blocks.

What else an agent may have done by, such as a block of a kind that is not known, is counted as unread: an audit that
does not see a call must not say that all is well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.untrusted import parse_json
from muarl.records.conversation import Format, RecordedConversation
from muarl.records.messages import read_message
from muarl.records.rows import PlacedRow, items
from muarl.types.chat import Message, ToolCall, ToolSpec, to_openai, visible_to_agent
from muarl.types.episode import Episode

Located = tuple[Any, str]
"""A message and its place, for errors."""

UNREAD = "unread"
"""A message's field, which readers of other formats leave: kinds of calls of the agent that they could not read."""

_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
_READ = frozenset({UNREAD, "role", "content", "tool_calls", "function_call", "tool_call_id", "name", "id"})
_ACTS = re.compile(r"tool|call|function|invocation|^parts$|(?:^|_)actions?$", re.IGNORECASE)
"""Names of fields and kinds of parts that may hold an agent's calls."""


class ChatConversation(RecordedConversation):
    """A row of chat messages."""

    format = "chat"

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """What was said and done; what is not read is counted."""
        messages = chat_messages(items(self.value, "messages", self.place), self.left_out.lost, self.left_out.unread)
        return tuple(_message_of(m, p) for m, p in messages)

    @property
    def exact_messages(self) -> tuple[Message, ...]:
        """The same of a file that is no log but was written for this: what is not as it should be is a DataError."""
        return tuple(read_message(m, p) for m, p in items(self.value, "messages", self.place))


class ChatRows(Format):
    """Rows of chat messages: what no other format claims."""

    def of_row(self, row: PlacedRow) -> Iterable[RecordedConversation]:
        """The row's conversation."""
        return (ChatConversation(row, self.left_out),)


def row_of(
    file: str, episode: Episode, system: str | None = None, tools: Sequence[ToolSpec] | None = None
) -> dict[str, Any]:
    """An episode as such a row: what the agent was told, saw and said, its tools, and the reward.

    ``file``: of episodes, such as ``train-0010``; ``system`` and ``tools``: None if unknown.
    """
    system_messages = [] if system is None else [{"role": "system", "content": system}]
    return {
        "id": episode.id,
        "task_id": episode.task_id,
        "file": file,
        "reward": None if episode.verdict is None else episode.verdict.reward,
        "messages": [*system_messages, *map(to_openai, visible_to_agent(episode.messages))],
        "tools": None if tools is None else [tool.to_openai() for tool in tools],
    }


def chat_messages(messages: Iterable[Located], lost: Counter[str], unread: Counter[str]) -> Iterator[Located]:
    """Messages in the chat API's form; one with results of tools becomes several, the results first.

    ``lost`` counts, by kind, what no conversation has a place for, and ``unread`` what the agent may have done by.
    DataError for what is malformed.
    """
    answered = ""  # the id of the last function_call, which its result does not name
    open_calls = False
    for message, place in messages:
        if not isinstance(message, Mapping):
            raise DataError(f"{place}: must be an object")
        row = dict(message)
        results: list[Located] = []
        if isinstance(row.get("content"), list):
            results = _take_blocks(row, place, lost, unread)
        if row.get("role") == "assistant":
            answered = _take_function_call(row, place) or answered
            _note_unread(row, unread)
        elif row.get("role") == "function":
            row.setdefault("tool_call_id", answered)
        if results or row.get("role") in ("tool", "function"):
            if not open_calls:
                unread["results of tools without their calls"] += 1
        yield from results
        if results and not row["content"]:
            continue
        if row.get("role") not in ("tool", "function"):
            open_calls = bool(row.get("tool_calls"))
        yield row, place


def _take_blocks(row: dict[str, Any], place: str, lost: Counter[str], unread: Counter[str]) -> list[Located]:
    """Put a list of blocks into a message's text and calls; the results among them as messages of their own."""
    texts: list[str] = []
    results: list[Located] = []
    agent = row.get("role") == "assistant"
    for i, block in enumerate(row["content"]):
        where = f"{place}.content[{i}]"
        kind = block.get("type", "text") if isinstance(block, Mapping) else "text"
        if isinstance(block, str):
            texts.append(block)
        elif not isinstance(block, Mapping):
            raise DataError(f"{where}: must be an object, not {type(block).__name__}")
        elif agent and kind == "tool_use":
            _add_call(row, block.get("id", ""), block.get("name"), block.get("input", {}), where)
        elif not agent and kind == "tool_result":
            answer = {"role": "tool", "tool_call_id": str(block.get("tool_use_id", ""))}
            results.append((answer | _result(block, where, lost), where))
        elif kind in _THOUGHTS:
            continue
        elif kind == "refusal" and isinstance(block.get("refusal"), str):
            texts.append(block["refusal"])
        elif isinstance(block.get("text"), str) and not _ACTS.search(str(kind)):
            texts.append(block["text"])
        elif agent:
            unread[f"parts of type {kind} in a message of the agent"] += 1
        else:
            lost[f"parts of type {kind}"] += 1
    row["content"] = "\n".join(texts)
    return results


def _result(block: Mapping[str, Any], place: str, lost: Counter[str]) -> dict[str, Any]:
    content = block.get("content")
    if isinstance(content, list):
        texts = [p["text"] for p in content if isinstance(p, Mapping) and isinstance(p.get("text"), str)]
        if len(texts) < len(content):
            lost["parts of results that are no text"] += len(content) - len(texts)
        content = "\n".join(texts)
    if content is not None and not isinstance(content, str):
        raise DataError(f"{place}.content: must be text or a list of blocks, not {type(content).__name__}")
    return {"content": content or "", "error": block.get("is_error") is True}


def _take_function_call(row: dict[str, Any], place: str) -> str:
    """Put an old ``function_call`` among the calls; its id, empty if there is none."""
    call = row.get("function_call")
    if not call:
        return ""
    if not isinstance(call, Mapping):
        raise DataError(f"{place}.function_call: must be an object, not {type(call).__name__}")
    name = call.get("name")
    said = [c.get("function") for c in row.get("tool_calls") or () if isinstance(c, Mapping)]
    if any(isinstance(f, Mapping) and f.get("name") == name for f in said):
        return ""  # written both ways
    identity = re.sub(r"\W+", "-", place.rpartition(", ")[2])
    _add_call(row, identity, name, call.get("arguments", {}), f"{place}.function_call")
    return identity


def _add_call(row: dict[str, Any], identity: Any, name: Any, arguments: Any, place: str) -> None:
    if not isinstance(name, str) or not isinstance(identity, str):
        raise DataError(f"{place}: name and id must be strings")
    made = row.get("tool_calls") or []
    if not isinstance(made, list):
        raise DataError(f"{place}: tool_calls beside it must be a list, not {type(made).__name__}")
    if identity and any(isinstance(c, Mapping) and c.get("id") == identity for c in made):
        return  # written both ways
    row["tool_calls"] = [*made, {"id": identity, "function": {"name": name, "arguments": arguments}}]


def _note_unread(row: Mapping[str, Any], unread: Counter[str]) -> None:
    """Count what other readers left out, and fields that may hold calls in a message that has none that are read."""
    unread.update(f"items of type {kind} of the agent" for kind in row.get(UNREAD) or ())
    if row.get("tool_calls"):
        return
    more = row.get("additional_kwargs")  # LangChain's
    inner = {f"additional_kwargs.{k}": v for k, v in more.items()} if isinstance(more, Mapping) else {}
    for name, value in {**row, **inner}.items():
        if name not in _READ and isinstance(value, (list, Mapping)) and value and _ACTS.search(name.split(".")[-1]):
            unread[f"fields {name} of a message of the agent"] += 1


def _message_of(value: Mapping[str, Any], place: str) -> Message:
    """A message of a log, which may have its calls' arguments broken, and errors unmarked."""
    row = dict(value)
    if row.get("role") in ("developer", "function"):
        row["role"] = "system" if row["role"] == "developer" else "tool"
    if row.get("role") == "tool":
        row.setdefault("tool_call_id", "")
        message = read_message(row, place)
        return replace(message, name=value.get("name"), error=message.error or _is_error(message.content or ""))
    broken: dict[int, ToolCall] = {}
    calls = row.get("tool_calls")
    for i, call in enumerate(calls if isinstance(calls, list) else []):
        made = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(made, Mapping) and isinstance(made.get("arguments"), str) and not _is_object(made["arguments"]):
            name, raw = str(made.get("name", "")), made["arguments"]
            broken[i] = ToolCall(str(call.get("id", "")), name, invalid="its arguments are no JSON object", raw=raw)
    if broken:
        row["tool_calls"] = [{"name": "", "arguments": {}} if i in broken else c for i, c in enumerate(calls or [])]
    message = read_message(row, place)
    if not broken:
        return message
    return replace(message, tool_calls=tuple(broken.get(i, c) for i, c in enumerate(message.tool_calls)))


def _is_object(text: str) -> bool:
    try:
        return isinstance(parse_json(text), dict)
    except ValueError:
        return False


def _is_error(text: str) -> bool:
    """Whether a result is an error: logs of the OpenAI form do not mark them otherwise than in the text."""
    start = text.lstrip()[:200].lower()
    if start.startswith(("error", "exception", "traceback")):
        return True
    if not start.startswith("{"):
        return False
    try:
        result = parse_json(text)
    except ValueError:
        return False
    return isinstance(result, dict) and (bool(result.get("error")) or result.get("status") == "error")
