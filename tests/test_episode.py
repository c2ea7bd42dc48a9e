"""Episodes as JSON: what is written comes back, with or without what the agent was told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Usage, Verdict, read_episodes, write_episodes

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
maybe = st.none() | texts
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(texts, values, max_size=3)
sides: Any = st.sampled_from(["assistant", "user"])
calls = st.builds(ToolCall, texts, texts, objects, sides, maybe, maybe)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    maybe,
    st.lists(calls, max_size=2).map(tuple),
    maybe,
    maybe,
    maybe,
    sides,
    st.booleans(),
)
spans = st.none() | st.tuples(st.integers(0, 99), st.integers(0, 99))
turns = st.builds(Turn, messages, numbers, spans, st.none() | st.integers(0, 9))
specs = st.builds(ToolSpec, texts, texts, objects, st.none() | objects, objects)
usages = st.builds(Usage, *[st.integers(0, 10**9)] * 4, numbers)


@st.composite
def traces(draw: st.DrawFn) -> TokenTrace:
    size = draw(st.integers(0, 5))
    columns = (st.integers(0, 10**6), st.booleans(), numbers, st.integers(-1, 9))
    restarts = sorted(draw(st.sets(st.integers(1, size - 1)))) if size > 1 else []
    return TokenTrace(*(draw(st.lists(c, min_size=size, max_size=size)) for c in columns), restarts)


parts = st.dictionaries(texts, numbers, max_size=3)
episodes = st.builds(
    Episode,
    texts,
    texts,
    texts,
    st.lists(turns, max_size=3),
    st.sampled_from(StopReason),
    seed=st.integers(),
    group=maybe,
    agent=texts,
    user=texts,
    tokens=st.none() | traces(),
    verdict=st.none() | st.builds(Verdict, numbers, parts, parts, maybe),
    tags=objects,
    timings=parts,
    agent_usage=usages,
    user_usage=usages,
    error=maybe,
    system=texts,
    tools=st.lists(specs, max_size=3).map(tuple),
)


@settings(max_examples=50)
@given(episodes)
def test_what_is_written_comes_back(episode: Episode) -> None:
    row = json.loads(json.dumps(episode.to_json(context=True), ensure_ascii=False))
    assert Episode.from_json(row) == episode
    bare = json.loads(json.dumps(episode.to_json(), ensure_ascii=False))
    assert Episode.from_json(bare) == replace(episode, system=None, tools=None)
    assert {k: v for k, v in row.items() if k not in ("system", "tools")} == bare


@settings(max_examples=40)
@given(specs)
def test_a_tool_comes_back_with_its_document(spec: ToolSpec) -> None:
    assert ToolSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


PLAIN = ToolSpec("look", "Look.", {"type": "object", "properties": {}})
FULL = ToolSpec("look", "Look.", {"type": "object"}, doc={"name": "Shop.look"}, extra={"response": {"type": "string"}})


def test_what_a_tool_does_not_have_is_not_written() -> None:
    assert PLAIN.to_json() == {
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object", "properties": {}},
    }
    assert FULL.to_json() == {
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object"},
        "doc": {"name": "Shop.look"},
        "extra": {"response": {"type": "string"}},
    }
    assert ToolSpec.from_json({"name": "a", "description": "", "parameters": {}, "doc": {}}).doc == {}
    with pytest.raises(KeyError, match="parameters"):
        ToolSpec.from_json({"name": "a", "description": ""})


def test_further_keys_go_to_the_server_and_the_document_does_not() -> None:
    sent = FULL.to_openai()
    assert sent == {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look.",
            "parameters": {"type": "object"},
            "response": {"type": "string"},
        },
    }
    assert PLAIN.to_openai()["function"] == PLAIN.to_json()


def told(**changes: Any) -> Episode:
    turn = Turn(Message("user", "a\u2028b\x85c\r\nd\x0be"))
    return Episode("e", "t", "d", [turn], StopReason.USER_STOP, system="P", tools=(PLAIN, FULL), **changes)


def test_a_file_may_hold_episodes_with_and_without_what_the_agent_was_told(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    assert write_episodes(path, [told(), told(group="g")], context=True) == 2
    assert list(read_episodes(path)) == [told(), told(group="g")]
    with open(path, "a") as file:
        file.write(json.dumps(told().to_json()) + "\n")
    assert [e.tools is None for e in read_episodes(path)] == [False, False, True]


@pytest.mark.parametrize("missing", [{"system": None}, {"tools": None}])
def test_half_of_what_the_agent_was_told_is_nothing(missing: dict[str, Any]) -> None:
    row = replace(told(), **missing).to_json(context=True)
    assert "system" not in row and "tools" not in row


def test_a_tool_that_is_none_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    row = told().to_json(context=True)
    for tools, words in (([{"name": "look"}], "description"), (["look"], "no episode")):
        path.write_text(json.dumps(row | {"tools": tools}) + "\n")
        with pytest.raises(ValueError, match=rf"e\.jsonl, line 1: .*{words}"):
            list(read_episodes(path))


def test_rows_of_before_there_were_contexts_can_be_read() -> None:
    row = told().to_json()
    assert "system" not in row
    found = Episode.from_json(row)
    assert found.system is None and found.tools is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": [1]}, "id must be str, not list"),
        ({"seed": [[]]}, "seed must be int, not list"),
        ({"group": {}}, "group must be str, not dict"),
        ({"verdict": {"reward": [[1]]}}, "verdict.reward must be a finite number"),
        ({"verdict": {"reward": 10**400}}, "verdict.reward must be a finite number"),
        ({"verdict": {"reward": float("nan")}}, "verdict.reward must be a finite number"),
        ({"verdict": {}}, "lacks the field"),
    ],
)
def test_rows_whose_figures_are_none_are_refused_by_field(change: dict[str, Any], words: str) -> None:
    row = Episode("e", "t", "d", [], StopReason.USER_STOP).to_json()
    with pytest.raises(ValueError, match=words):
        Episode.from_json({**row, **change})


def said(**fields: Any) -> dict[str, Any]:
    """A row's change: one turn, whose message has these fields."""
    return {"turns": [{"message": {"role": "assistant", "content": "Hi"} | fields, "seconds": 0.0}]}


def called(**fields: Any) -> dict[str, Any]:
    return said(tool_calls=[{"name": "look"}, {"name": "look"} | fields])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (called(arguments='{"order_id": "#W1"}'),
         r"turns\[0\]\.message\.tool_calls\[1\]\.arguments must be an object, not text: write the object itself"),
        (called(arguments=[1]), r"tool_calls\[1\]\.arguments must be an object, not a list"),
        (called(name=7), r"tool_calls\[1\]\.name must be text, not a number"),
        (said(tool_calls={"name": "look"}), r"turns\[0\]\.message\.tool_calls must be a list, not an object"),
        (said(content=["a"]), r"turns\[0\]\.message\.content must be text, not a list: join its parts to one text"),
        (said(reasoning={}), "reasoning must be text, not an object"),
        (said(role=True), "role must be text, not a truth value"),
        ({"turns": {}}, "turns must be a list, not an object"),
        ({"system": 7}, "system must be text, not a number"),
        ({"tools": [{"name": "look", "description": "", "parameters": "{}"}]},
         r"tools\[0\]\.parameters must be a JSON Schema object, not text"),
    ],
)  # fmt: skip
def test_a_row_with_a_field_of_another_kind_is_refused_by_line_and_field(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path, row = tmp_path / "e.jsonl", Episode("e", "t", "d", [], StopReason.USER_STOP).to_json()
    path.write_text(json.dumps(row) + "\n" + json.dumps(row | change) + "\n")
    with pytest.raises(ValueError, match=rf"e\.jsonl, line 2: .*{words}"):
        list(read_episodes(path))


@pytest.mark.parametrize("empty", [None, {}, "", []])
def test_a_call_without_arguments_is_one(empty: Any) -> None:
    row = Episode("e", "t", "d", [], StopReason.USER_STOP).to_json() | called(arguments=empty, id=None, requestor=None)
    call = Episode.from_json(row).turns[0].message.tool_calls[1]
    assert (call.arguments, call.requestor) == ({}, "assistant")


def test_deep_lines_are_refused_by_number(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    row = json.dumps(Episode("e", "t", "d", [], StopReason.USER_STOP).to_json())
    path.write_text(f'{row}\n{row[:-1]}, "more": {"[" * 5000}{"]" * 5000}}}\n')
    with pytest.raises(ValueError, match="line 2: nested deeper than 100 levels"):
        list(read_episodes(path))


def test_segments_hold_every_token_once():
    trace = TokenTrace()
    trace.restart()
    trace.append_given([1, 2])
    assert trace.restarts == [] and trace.segments() == [trace] and trace.context() == [1, 2]
    trace.append_sampled([3], [-0.1], 4)
    trace.restart()
    trace.restart()
    trace.append_given([1, 5])
    assert trace.append_sampled([6, 7], [-0.2, -0.3], 5) == (5, 7)
    first, second = trace.segments()
    assert (first.ids, second.ids, second.loss_mask) == ([1, 2, 3], [1, 5, 6, 7], [False, False, True, True])
    assert (second.logprobs, second.versions) == ([0.0, 0.0, -0.2, -0.3], [-1, -1, 5, 5])
    assert trace.context() == second.ids and trace.context_length == 4
    assert (trace.sampled_count, trace.oldest_version) == (3, 4)


def test_rows_of_one_segment_are_written_as_ever() -> None:
    trace = TokenTrace([1, 2], [False, True], [0.0, -1.0], [-1, 0])
    assert set(trace.to_json()) == {"ids", "loss_mask", "logprobs", "versions"}
    assert TokenTrace.from_json(trace.to_json()) == trace


@pytest.mark.parametrize(
    ("field", "values"),
    [("versions", ["a", 0]), ("versions", [None, 0]), ("versions", [0.5, 0]), ("ids", ["1", 2]), ("ids", [[], 2]),
     ("logprobs", ["x", 0.0]), ("logprobs", [None, 0.0])],
)  # fmt: skip
def test_tokens_of_other_types_are_refused(field: str, values: list[Any]) -> None:
    row = TokenTrace([1, 2], [False, True], [0.0, -1.0], [-1, 0]).to_json()
    with pytest.raises(ValueError, match=f"tokens: {field} must be numbers"):
        TokenTrace.from_json({**row, field: values})


@pytest.mark.parametrize("restarts", [[0], [2], [1, 1], [-1], [True], [1.0], ["1"]])
def test_places_that_are_none_are_refused(restarts: list[Any]) -> None:
    row = TokenTrace([1, 2], [False, True], [0.0, -1.0], [-1, 0]).to_json()
    with pytest.raises(ValueError, match="restarts"):
        TokenTrace.from_json({**row, "restarts": restarts})
