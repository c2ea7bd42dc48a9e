"""What BFCL's decoders make of a message; the expected calls are those of the original code."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.types.chat import Message
from muarl_worlds.bfcl.calls import MAX_LENGTH, call_text
from muarl_worlds.bfcl.official.codecs import PromptCodec, QwenCodec, tool_calls
from muarl_worlds.bfcl.official.decoding import decode, without_thoughts

BOTH = [
    ("[ls()]", ["ls()"]),
    ("ls()", ["ls()"]),
    ("```\n[ls()]\n```", ["ls()"]),
    ("```python\n[ls()]```", []),
    ("[ls(), cd(folder='x')]", ["ls()", "cd(folder='x')"]),
    ("ls(), cd(folder='x')", ["ls()", "cd(folder='x')"]),
    ("[cd('a', b=1)]", ["cd(b=1)"]),
    ("[f(x=a)]", ["f(x='a')"]),
    ("[f(x=a.b)]", []),
    ("[f(x=g(1))]", ["f(x='g(1)')"]),
    ("[f(x=g(y=h(z=1)))]", ["f(x=g(y=h(z=1)))"]),
    ("[f(x=[g(y=1)])]", ["f(x=[{'g': {'y': 1}}])"]),
    ("[f(x={'a':{'b':1},'c':{'d':2}})]", ["f(x=a(b=1))"]),
    ("[f(x={})]", []),
    ("[f(x={'a':{}})]", ["f(x=a())"]),
    ("[f(x={'a':1,'b':{'c':{'d':2}}})]", ["f(x={'a': 1, 'b': c(d=2)})"]),
    ("[f(x={a:1})]", ["f(x={'a': 1})"]),
    ("[f(x=+5, y=~5, z=not True)]", ["f(x=-5, y=-5, z=-1)"]),
    ("[f(x=--5)]", []),
    ("[f(x=5*60, y='a'+'b', z=1+len('abc'))]", ["f(x=300, y='ab', z=4)"]),
    ("[f(x=1/0)]", []),
    ("[f(x=(1,), y=...)]", ["f(x=(1,), y='...')"]),
    ("[f(x={1,2})]", []),
    ("[f(x=f'a{1}')]", []),
    ("[f(x=ls()['a'][0])]", ["f(x=\"ls()['a'][0]\")"]),
    ("[f(x=lambda: 1)]", []),
    ("[f(**k)]", ["f(None='k')"]),
    ("[f(*a, x=1)]", ["f(x=1)"]),
    ("[a.b.c(x=1)]", ["a.b.c(x=1)"]),
    ("[f(x)(y=1)]", ["(y=1)"]),
    ("[x, ls()]", []),
    ("Sure! [ls()]", []),
    ("[ls()] done", []),
    ("Done.", []),
    ("[f(x='it\\'s')]", ['f(x="it\'s")']),
    ("[f(x='\\d')]", ["f(x='\\\\d')"]),
    ("[f(x=1,x=2)]", ["f(x=2)"]),
    ("[f(x=0x1f, y=1_000, z=1e400)]", ["f(x=31, y=1000, z=inf)"]),
    ("[f(x={'it\\'s':1})]", ["f(x={'it's': 1})"]),
    ("[f(x={'k':{1:2}})]", ["f(x=k(1=2))"]),
    ("[f(x:=1)]", ["f()"]),
    ("[f(x='\x00')]", []),
    ("</think>[ls()]", []),
]

V3_ONLY = ["'[ls()]'", "['ls()']", "[[ls()]]", "{ls()}", "]ls()[", "[ls()]]"]
V4_ONLY = ["[ ls() ]", "[\tls()]", "[ls()\n, cd(folder='x')]"]


@pytest.mark.parametrize(("text", "calls"), BOTH)
def test_lists_of_calls(text, calls):
    for revision in ("v3", "v4"):
        assert decode(text, "prompt", revision) == calls


@pytest.mark.parametrize("text", V3_ONLY + V4_ONLY)
def test_where_the_revisions_differ(text):
    assert bool(decode(text, "prompt", "v3")) is (text in V3_ONLY)
    assert bool(decode(text, "prompt", "v4")) is (text in V4_ONLY)


@pytest.mark.parametrize(
    ("given", "calls"),
    [
        ([{"cd": '{"folder": "x"}'}, {"ls": "{}"}], ["cd(folder='x')", "ls()"]),
        ([{"cd": {"folder": "it's"}}], ['cd(folder="it\'s")']),
        ({"ls": "{}"}, ["ls()"]),
        ([{"f": '{"a b": null, "c": [1, {"d": true}], "e": 1.0}'}], ["f(a b=None,c=[1, {'d': True}],e=1.0)"]),
        ([{"f": "{}", "g": "{}"}], ["f()", "g()"]),
        ([{"ls": "{}"}, {"cd": "{bad"}], []),
        ([{"ls": "[1]"}], []),
        ([{"ls": ""}], []),
        ("Done.", []),
        ("", []),
        (None, []),
        ([], []),
        ([5], []),
    ],
)
def test_native_calls(given, calls):
    for revision in ("v3", "v4"):
        assert decode(given, "native", revision) == calls


def block(text):
    return f"<tool_call>\n{text}\n</tool_call>"


@pytest.mark.parametrize(
    ("text", "v3", "v4"),
    [
        (block('{"name": "cd", "arguments": {"folder": "x"}}') + block('{"name": "ls", "arguments": {}}'), 2, 2),
        ("I look.\n" + block('{"name": "ls", "arguments": "{}"}') + " so", 1, 1),
        (block("{bad") + block('{"name": "ls", "arguments": {}}'), 0, 1),
        (block("[1]") + block('{"name": "ls", "arguments": {}}'), 0, 0),
        (block('{"name": "ls"}'), 0, 0),
        (block('{"name": ["ls"], "arguments": {}}'), 0, 0),
        (block('{"name": "ls", "arguments": [1]}'), 0, 0),
        ('<tool_call>{"name": "ls", "arguments": {}}</tool_call>', 0, 0),
        ("Done.", 0, 0),
    ],
)
def test_qwens_blocks(text, v3, v4):
    assert (len(decode(text, "qwen", "v3")), len(decode(text, "qwen", "v4"))) == (v3, v4)


def test_thoughts_are_left_out():
    assert without_thoughts("<think>\n[ls()]\n</think>\n\n[pwd()]") == "[pwd()]"
    assert [c.raw for c in PromptCodec("v4").calls("<think>x</think>\n\n[pwd()]")] == ["pwd()"]
    assert [c.raw for c in QwenCodec("v4").calls(f"{block('{bad')}</think>{block(chr(123) + chr(125))}")] == []


HOSTILE = [
    "[f(x=9**9**9)]", "[f(x='a'*10**10)]", "[" * 100000, "[f(x=" + "-" * 50000 + "1)]", "[f(x=" + "1+" * 9000,
    "[f(x=1+__import__('os').system('true'))]", "[f(x=[1]*10**9)]", "x" * (MAX_LENGTH + 1),
]  # fmt: skip


def test_hostile_messages_decode_to_nothing_at_once():
    for text in HOSTILE:
        started = time.perf_counter()
        assert decode(text, "prompt", "v4") == [], text[:40]
        assert time.perf_counter() - started < 2
    assert decode(block("[" * 100000), "qwen", "v3") == []
    assert decode([{"f": "[" * 100000}], "native", "v4") == []


@given(st.text(max_size=40))
def test_any_text_is_decoded_or_not(text):
    for style in ("prompt", "qwen", "native"):
        for revision in ("v3", "v4"):
            assert all(isinstance(call, str) for call in decode(text, style, revision))


WORDS = st.dictionaries(
    st.sampled_from("xyz"), st.integers() | st.text(max_size=5) | st.lists(st.booleans(), max_size=2)
)


@given(st.lists(WORDS, min_size=1, max_size=3))
def test_calls_with_named_literals_survive(given):
    calls = [call_text("f", arguments) for arguments in given]
    text = f"[{', '.join(calls)}]"
    if "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text):
        found = tool_calls(decode(text, "prompt", "v4"))
        assert [(c.name, dict(c.arguments)) for c in found] == [("f", dict(arguments)) for arguments in given]


def test_tool_calls_keep_what_was_decoded():
    plain, nested, odd = tool_calls(["cd(folder='x')", "f(x=g(y=1))", "(y=1)"])
    assert (plain.name, plain.arguments, plain.raw) == ("cd", {"folder": "x"}, "cd(folder='x')")
    assert (nested.name, nested.arguments, nested.raw) == ("f", {}, "f(x=g(y=1))")
    assert (odd.name, odd.raw) == ("", "(y=1)")


def test_results_go_back_in_user_messages():
    new = [
        Message("tool", "{}", name="cd(folder='x')"),
        Message("tool", None, name="ls()"),
        Message("user", "And now?"),
        Message("tool", "1", name="f()"),
    ]
    listed = PromptCodec("v4").given(new, ())
    assert [m.role for m in listed] == ["user", "user", "user"]
    assert listed[0].content == (
        "[{'role': 'tool', 'name': \"cd(folder='x')\", 'content': '{}'}, "
        "{'role': 'tool', 'name': 'ls()', 'content': ''}]"
    )
    for codec in (PromptCodec("v3", "blocks"), QwenCodec("v3")):
        blocks = codec.given(new, ())
        assert blocks[0].content == ("<tool_response>\n{}\n</tool_response>\n<tool_response>\n\n</tool_response>")
        assert blocks[1:] == [new[2], Message("user", "<tool_response>\n1\n</tool_response>")]
