"""Sampled ids become a reply, however they are cut into pieces."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop_kit import call_json, small_tokenizer
from muarl.chat_formats.qwen3 import CONTROL_TOKENS, Qwen3Format
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl_tools.serve_model.replies import Piece, ReplyReader, TextReader
from muarl_tools.serve_model.whole_replies import WholeReplyReader


@lru_cache
def chat(thinking: bool = False) -> Qwen3Format:
    return Qwen3Format(small_tokenizer(), thinking=thinking)


def ids_of(text: str) -> list[int]:
    """Control tokens in it are meant."""
    return list(chat().tokenizer.encode(text))


def read(ids: list[int], cuts: list[int] | None = None, finish: str = "stop", **how) -> tuple[ReplyReader, list[Piece]]:
    """Feed ids in chunks that end at ``cuts``."""
    reader, pieces = ReplyReader(chat(), [1, 2, 3], **how), []
    edges = sorted({c % (len(ids) + 1) for c in cuts or []} | {len(ids)})
    at = 0
    for edge in edges:
        pieces += reader.feed(ids[at:edge])
        at = edge
    pieces += reader.end(finish)
    return reader, pieces


def joined(pieces: list[Piece], kind: str) -> str:
    return "".join(p.text for p in pieces if p.kind == kind)


fragments = st.sampled_from(
    [
        *CONTROL_TOKENS,
        "\n",
        " ",
        "Grüße, 你好 🛒",
        "cancel",
        '{"name": "look", "arguments": {"order_id": "#W12"}}',
        '{"name": "look", "arguments": ',
        call_json("cancel", order_id="é"),
        "<think>\n\n</think>\n\n",
    ]
)
written = st.lists(fragments, max_size=9).map("".join)
random_ids = st.lists(st.integers(0, chat().tokenizer.vocabulary_size - 1), max_size=30)
cuts = st.lists(st.integers(0, 200), max_size=8)


@given(st.one_of(written.map(ids_of), random_ids), cuts, st.sampled_from(["stop", "length"]))
def test_pieces_add_up_to_what_is_parsed(ids: list[int], cut: list[int], finish: str) -> None:
    reader, pieces = read(ids, cut, finish)
    whole = chat().parse(ids)
    good = [c for c in whole.tool_calls if c.invalid is None]
    assert [(c.name, c.arguments) for c in reader.calls] == [(c.name, c.arguments) for c in good]
    assert [p.call for p in pieces if p.kind == "call"] == reader.calls
    assert [p.number for p in pieces if p.kind == "call"] == list(range(len(good)))
    assert joined(pieces, "content") == reader.content
    assert joined(pieces, "reasoning") == reader.reasoning == (whole.reasoning or "")
    assert reader.content.startswith(whole.content or "")
    marked = reader.with_unread
    assert (marked is None) == (len(good) == len(whole.tool_calls))
    if marked is not None:
        assert (marked.content or "") == (whole.content or "")
        as_parsed = [replace(c, id="") for c in whole.tool_calls]
        assert [replace(c, id="") for c in marked.tool_calls] == as_parsed
        assert [c for c in marked.tool_calls if c.invalid is None] == reader.calls
        assert len({c.id for c in marked.tool_calls}) == len(as_parsed)
    if len(good) == len(whole.tool_calls):
        assert reader.content == whole.content
    assert reader.content == reader.content.strip()
    assert len({c.id for c in reader.calls}) == len(reader.calls)


@given(st.one_of(written.map(ids_of), random_ids), cuts, st.booleans(), st.booleans(), st.lists(written, max_size=2))
def test_how_ids_are_cut_changes_nothing(
    ids: list[int], cut: list[int], calls: bool, one_call: bool, stop: list[str]
) -> None:
    how = dict(calls=calls, one_call=one_call, stop=[s for s in stop if s])
    at_once, all_pieces = read(ids, **how)
    reader, pieces = read(ids, cut, **how)
    by_one, _ = read(ids, list(range(len(ids))), **how)
    for other in (reader, by_one):
        assert (other.content, other.reasoning, other.calls) == (at_once.content, at_once.reasoning, at_once.calls)
        assert (other.ids, other.cut, other.finish_reason) == (at_once.ids, at_once.cut, at_once.finish_reason)
    for kind in ("content", "reasoning"):
        assert joined(pieces, kind) == joined(all_pieces, kind)
    assert ids[: len(reader.ids)] == reader.ids


@given(random_ids)
def test_the_bytes_of_ids_decode_to_their_text(ids: list[int]) -> None:
    tokenizer = chat().tokenizer
    assert b"".join(map(tokenizer.piece, ids)).decode("utf-8", "replace") == tokenizer.decode(ids)


def test_a_character_is_never_cut() -> None:
    ids = [_byte_id(byte) for byte in "né 🛒!".encode()]
    reader = ReplyReader(chat(), [])
    seen = [p.text for i in ids for p in reader.feed([i])]
    assert "".join(seen) + "".join(p.text for p in reader.end("stop")) == "né 🛒!"
    assert all("\ufffd" not in text for text in seen)


def _byte_id(byte: int) -> int:
    tokenizer = chat().tokenizer
    return next(i for i in range(tokenizer.vocabulary_size) if tokenizer.piece(i) == bytes([byte]))


def test_half_a_character_at_the_end_is_marked() -> None:
    reader, _ = read([*ids_of("ok "), _byte_id("é".encode()[0])], finish="length")
    assert reader.content == "ok \ufffd"


@pytest.mark.parametrize(
    ("text", "stop", "content", "cut"),
    [
        ("Well. STOP and more", ["STOP"], "Well.", True),
        ("Well. STO", ["STOP"], "Well. STO", False),
        ("a\n\nb", ["\n\n"], "a", True),
        ("\n\na\n\nb", ["\n\n"], "a", True),  # white space before the text is no part of it
        ("abcabd", ["abd", "zz"], "abc", True),
        ("x" + call_json("look"), ["look"], "x", False),  # not within a call
    ],
)
def test_stop_strings(text: str, stop: list[str], content: str, cut: bool) -> None:
    ids = ids_of(text)
    reader, pieces = read(ids, list(range(len(ids))), stop=stop)
    assert (reader.content, reader.cut, reader.finish) == (content, cut, "stop")
    assert joined(pieces, "content") == content
    if cut:
        assert len(reader.ids) <= len(ids)
        assert stop[0] in chat().text(reader.ids)


def test_nothing_that_may_begin_a_stop_string_goes_out() -> None:
    reader = ReplyReader(chat(), [], stop=["#END#"])
    assert joined(reader.feed(ids_of("Bye #EN")), "content") == "Bye"
    assert joined(reader.feed(ids_of("X")), "content") == " #ENX"


def test_a_call_that_cannot_be_read_goes_out_as_it_was_written() -> None:
    broken = '<tool_call>\n{"name": "look", "arguments": {\n</tool_call>'
    reader, _ = read([*ids_of("One moment." + broken + call_json("cancel", order_id="#W12")), chat().stop_ids[0]])
    assert reader.content == "One moment.\n" + broken
    assert [(c.name, dict(c.arguments)) for c in reader.calls] == [("cancel", {"order_id": "#W12"})]
    assert reader.finish_reason == "tool_calls"


def test_a_call_that_is_cut_off_is_text() -> None:
    reader, _ = read(ids_of('<tool_call>\n{"name": "loo'), finish="length")
    assert reader.content == '<tool_call>\n{"name": "loo'
    assert reader.finish_reason == "length"


def test_without_tools_a_call_is_text() -> None:
    text = "Hm. " + call_json("look") + " And?"
    reader, _ = read([*ids_of(text), chat().stop_ids[0]], calls=False)
    assert reader.content == text
    assert (reader.calls, reader.finish_reason) == ([], "stop")


def test_one_call_ends_the_reply() -> None:
    first, second = call_json("look", order_id="1"), call_json("look", order_id="2")
    ids = ids_of(f"{first}\n{second}")
    reader, _ = read(ids, one_call=True)
    assert [c.arguments["order_id"] for c in reader.calls] == ["1"]
    assert reader.ids == ids[: len(ids_of(first))]
    assert reader.done and not reader.cut


def test_reasoning_that_never_closes_ends_at_the_call() -> None:
    ids = [*ids_of("<think>\nI will look." + call_json("look") + "\n" + call_json("cancel")), chat().stop_ids[0]]
    reader, pieces = read(ids, list(range(len(ids))))
    assert reader.reasoning == "I will look."
    assert [c.name for c in reader.calls] == ["look", "cancel"]
    assert len({c.id for c in reader.calls}) == 2
    assert [p.kind for p in pieces][-2:] == ["call", "call"]
    assert reader.ids == ids
    one, _ = read(ids, one_call=True)
    assert [c.name for c in one.calls] == ["look"]
    assert one.ids == ids[: len(one.ids)] and one.ids[-1] == chat().tokenizer.convert_tokens_to_ids("</tool_call>")


def test_a_reply_goes_on_from_what_it_was_made_to_begin_with() -> None:
    begun = [chat().tokenizer.convert_tokens_to_ids("<tool_call>"), *ids_of('\n{"name": "look", "arguments":')]
    reader = ReplyReader(chat(), [], given=begun, one_call=True)
    reader.feed([*ids_of(' {"order_id": "7"}}\n</tool_call>'), 5, 6])
    assert [(c.name, dict(c.arguments)) for c in reader.calls] == [("look", {"order_id": "7"})]
    assert reader.done and reader.ids[: len(begun)] == begun


def test_ids_of_calls_follow_from_context_and_reply() -> None:
    ids = ids_of(call_json("look"))
    (same, _), (again, _) = read(ids), read(ids, [3, 7])
    assert same.calls == again.calls
    other = ReplyReader(chat(), [1, 2])
    other.feed(ids)
    assert other.calls[0].id != same.calls[0].id
    assert replace(other.calls[0], id=same.calls[0].id) == same.calls[0]


@given(random_ids, cuts, st.lists(written, max_size=2))
def test_plain_text_is_all_there_is(ids: list[int], cut: list[int], stop: list[str]) -> None:
    stops = [s for s in stop if s]
    ends = chat().stop_ids
    one, other = TextReader(chat(), ends, stops), TextReader(chat(), ends, stops)
    one.feed(ids)
    one.end("length")
    for i in ids:
        other.feed([i])
    other.end("length")
    assert (one.content, one.ids, one.finish_reason) == (other.content, other.ids, other.finish_reason)
    if not one.done or one.finish_reason == "length":
        assert one.content == chat().text(ids)


def test_replies_that_are_read_whole_tell_their_unreadable_calls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    one = chat()
    broken, good = ToolCall("x", "look", invalid="no JSON", raw="look(("), ToolCall("y", "look", {"id": "7"})
    monkeypatch.setattr(one, "parse", lambda ids, *, tools: Message("assistant", "Hm.", (broken, good)))
    reader = WholeReplyReader(one, [1, 2], tools=[ToolSpec("look", "Look.", {})])
    reader.feed([*ids_of("Hm."), one.stop_ids[0]])
    assert reader.content == "Hm.\nlook((" and [c.arguments for c in reader.calls] == [{"id": "7"}]
    marked = reader.with_unread
    assert marked is not None and marked.content == "Hm."
    assert [(c.invalid, c.raw) for c in marked.tool_calls] == [("no JSON", "look(("), (None, None)]
    assert marked.tool_calls[1] == reader.calls[0] and marked.tool_calls[0].id != reader.calls[0].id
