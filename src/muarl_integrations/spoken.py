"""A policy's message out of its text, for trainers that hand over tokens."""

from __future__ import annotations

from collections.abc import Iterable

from muarl.endpoints.replies import read_tool_call, split_thinking
from muarl.types.chat import Message, ToolCall
from muarl.types.toolcalls import parse_call


def read_hermes(text: str, turn: int) -> Message:
    """A text with Hermes calls, as Qwen's chat models write them. Text after the first call belongs to no message; a
    call that cannot be read is kept as one, and the world answers it with an error. ``turn``: numbers the calls."""
    thought, rest = _thought(text)
    content, *blocks = rest.split("<tool_call>")
    calls = [
        parse_call(block.partition("</tool_call>")[0].strip(), f"call_{turn}_{n}", closed="</tool_call>" in block)
        for n, block in enumerate(blocks)
    ]
    return _message(content, calls, thought)


def read_parsed(content: str | None, calls: Iterable[tuple[str, str]], turn: int) -> Message:
    """A text whose calls, names with arguments as JSON, a trainer's parser found."""
    thought, rest = _thought(content or "")
    return _message(rest, [read_tool_call(f"call_{turn}_{n}", *call) for n, call in enumerate(calls)], thought)


def _thought(text: str) -> tuple[str | None, str]:
    """Thinking and rest. Where the prompt opened the thinking, the text has its end alone."""
    opened = "<think>" in text.partition("</think>")[0]
    rest, thought = split_thinking(text if opened or "</think>" not in text else f"<think>{text}")
    return thought, rest or ""


def _message(content: str, calls: Iterable[ToolCall], thought: str | None) -> Message:
    return Message("assistant", content.strip() or None, tuple(calls), reasoning=thought)
