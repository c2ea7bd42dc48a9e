"""Items of the Responses API are the chat messages that they say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from muarl.basics.errors import DataError
from muarl.records.conversation import LeftOutCounts
from muarl.records.reading import RecordReader
from muarl.records.responses import chat_tools, messages_of
from muarl.records.rows import PlacedRow
from support.logged import TOOL, Messages, chats, items_of, responses_of


def read(*rows: Any, lost: Counter[str] | None = None) -> list[dict[str, Any]]:
    path = Path("log.jsonl")
    given = [PlacedRow(value, f"{path}, line {n}", n, path) for n, value in enumerate(rows, 1)]
    left_out = LeftOutCounts(Counter() if lost is None else lost)
    return [dict(one.value) for one in RecordReader(left_out).of_rows(given)]


@given(chats())
def test_items_are_the_messages_that_they_say(chat: Messages) -> None:
    assert messages_of(items_of(chat), "input") == chat
    (row,) = read({"id": "r", "input": items_of(chat[:-1]), "output": items_of(chat[-1:])})
    assert row == {"id": "r", "messages": chat}
    assert read({"items": items_of(chat)}) == [{"messages": chat}]


@given(chats())
def test_responses_that_go_on_from_each_other_are_one_conversation(chat: Messages) -> None:
    rows = responses_of(chat)
    (row,) = read(*rows)
    assert row["messages"] == chat and row["id"] == rows[-1]["id"]


def test_instructions_tools_and_thoughts() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Say so."}]}
    tools = [{"type": "function", **TOOL["function"], "strict": True}, {"type": "web_search"}]
    lost: Counter[str] = Counter()
    row = {"input": "Hi", "instructions": "Be kind.", "output": [thought, *items_of([said("assistant", "Hello")])]}
    (found,) = read({**row, "tools": tools}, lost=lost)
    assert found["messages"] == [
        said("system", "Be kind."), said("user", "Hi"), said("assistant", "Hello") | {"reasoning": "Say so."},
    ]  # fmt: skip
    assert found["tools"] == [TOOL]
    assert str(LeftOutCounts(lost)).endswith(": 1 tools of type web_search")


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def test_what_no_conversation_has_a_place_for_is_counted_or_refused() -> None:
    image = {
        "role": "user",
        "content": [{"type": "input_image", "image_url": "x"}, {"type": "input_text", "text": "This"}],
    }
    items = [image, {"type": "web_search_call", "id": "w"}, {"type": "reasoning", "encrypted_content": "x"}]
    lost: Counter[str] = Counter()
    assert messages_of(items, "input", lost) == [said("user", "This")]
    assert lost == {"parts of type input_image": 1, "items of type web_search_call": 1, "encrypted reasoning": 1}
    for item, named in zip(
        items, (r"\[0\]\.content\[0\]\.type", r"\[0\]\.type", r"\[0\]\.encrypted_content"), strict=True
    ):
        with pytest.raises(DataError, match=f"input{named}: .*"):
            messages_of([item], "input")
    with pytest.raises(DataError, match=r"tools\[0\]\.type: 'web_search' is not supported"):
        chat_tools([{"type": "web_search"}], "tools")


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (3, "must be text or a list of items, not int"),
        ([3], r"input\[0\]: must be an object"),
        ([{"role": "pope", "content": "x"}], r"input\[0\]\.role: must be one of"),
        ([{"role": "user"}], r"input\[0\]\.content: must be text"),
        ([{"type": "function_call", "call_id": "c", "name": "n"}], r"input\[0\]\.arguments: must be a string"),
        ([{"type": "function_call_output", "output": "x"}], r"input\[0\]\.call_id: must be a string"),
    ],
)
def test_what_is_wrong_is_named(items: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        messages_of(items, "input", Counter())


def test_a_response_whose_beginning_is_missing_is_told() -> None:
    with pytest.raises(DataError, match=r"log\.jsonl, line 1: it goes on from the response 'resp_9', which no line"):
        read(
            {"id": "r", "previous_response_id": "resp_9", "input": "Hi", "output": items_of([said("assistant", "Hi")])}
        )


def test_rows_that_are_none_of_it_stay_as_they_are() -> None:
    row = {"messages": [said("user", "Hi")], "output": [{}]}
    assert read(row) == [row]
    assert json.dumps(read({"text": 1})) == '[{"text": 1}]'
