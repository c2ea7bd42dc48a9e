"""A policy's message out of its text."""

from __future__ import annotations

from muarl.types.chat import Message, ToolCall
from muarl_integrations.spoken import read_hermes, read_parsed


def test_text_calls_and_thinking() -> None:
    text = (
        "<think>\nA lamp?\n</think>\n\nOne moment.\n"
        '<tool_call>\n{"name": "look", "arguments": {"id": "7"}}\n</tool_call>\nlost'
        '<tool_call>{"name": "look", "arguments": {}'
    )
    found = read_hermes(text, 3)
    assert (found.content, found.reasoning) == ("One moment.", "A lamp?")
    assert found.tool_calls[0] == ToolCall("call_3_0", "look", {"id": "7"})
    assert found.tool_calls[1].invalid == "the <tool_call> block has no </tool_call>"
    assert read_hermes("It was opened before.</think>Hello.", 0) == Message(
        "assistant", "Hello.", reasoning="It was opened before."
    )
    assert read_hermes("  ", 0) == Message("assistant", None)
    assert read_hermes("Is </think> a word?", 0).reasoning is not None


def test_what_a_parser_found() -> None:
    found = read_parsed("<think>Hm.</think>", [("look", '{"id": 7}'), ("look", '{"id": ')], 1)
    assert found.content is None and found.reasoning == "Hm."
    assert found.tool_calls[0] == ToolCall("call_1_0", "look", {"id": 7})
    assert found.tool_calls[1].invalid and found.tool_calls[1].id == "call_1_1"
