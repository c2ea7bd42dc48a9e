"""Each family's chat format against the family's own chat template, id for id."""

from __future__ import annotations

import re

import pytest

from muarl.basics.errors import CheckpointError
from muarl.chat_formats.choice import thinking_modes
from muarl.types.chat import Message
from support.chat_families import BY_NAME, CASES, TOOLS, UNTEMPLATED, by_template, call, every, form, modes, result
from support.chat_families import tokenizer as tokenizer_of

ALL = (*CASES, *UNTEMPLATED)
ASKED = Message("user", "Wo ist die Bestellung — W 12?\n\nBitte.")
GREETING = Message("assistant", "Hi! How can I help you today?")
KEEPS_THOUGHTS = {"qwen3.6", "qwen3.8", "nemotron-3", "nemotron-3.5"}
"""Whose template can be asked to keep the thoughts of earlier turns."""


def grown(case, thinking, system, messages):
    """A conversation's ids as it comes about: a prompt, and from then on only what is appended."""
    chat = form(case, thinking)
    ids, new = [], []
    for message in messages:
        if message.role != "assistant":
            new.append(message)
            continue
        ids += (chat.extend(ids, new) if ids else chat.prompt(system, TOOLS, new)) + chat.reply_ids(message)
        new = []
    return ids + (chat.extend(ids, new) if ids else chat.prompt(system, TOOLS, new))


def same(case, thinking, got, want):
    assert form(case, thinking).text(got) == form(case, thinking).text(want)
    assert got == want


@pytest.mark.parametrize(("case", "thinking"), every(CASES))
@pytest.mark.parametrize("system", ["Be kind.\n\nAlways — ü.", ""])
@pytest.mark.parametrize("tools", [True, False])
def test_first_prompts_are_the_templates(case, thinking, system, tools):
    chat = form(case, thinking)
    for messages in ([ASKED], [Message("user", "")], [Message("user", "<b>日本語</b> 🙂\n")]):
        got = chat.prompt(system, TOOLS if tools else (), messages)
        same(case, thinking, got, by_template(case, system, tools, messages, thinking=thinking))


@pytest.mark.parametrize(("case", "thinking"), [p for p in every(CASES) if p.id != "qwen3"])
def test_a_tool_cycle_grows_into_what_the_template_writes(case, thinking):
    """Calls with thoughts, their results and the next generation prompt; Qwen3's template without thinking drops the
    empty think block that its own prompt begins with, so it is looked at below."""
    single = BY_NAME[case.family].single
    second = (call(1, order="é", lines=3),) if single else (call(1, order="é", lines=3), call(2, "cancel"))
    messages = [
        ASKED,
        Message("assistant", "", (call(0, order="W 12", gift=True),), reasoning="Look first."),
        result(0, '{"status": "on its way — ü"}'),
        Message("assistant", "", second, reasoning="And again."),
        *(result(c.id[-1], f"found {c.id}\n", c.name) for c in second),
    ]
    got = grown(case, thinking, "Be kind.", messages)
    same(case, thinking, got, by_template(case, "Be kind.", True, messages, thinking=thinking))


TURNS = [
    ASKED,
    Message("assistant", "", (call(0, order="W 12"),), reasoning="Look first."),
    result(0, "on its way"),
    Message("assistant", "It is on its way.", reasoning="Say so."),
    Message("user", "Thanks."),
    Message("assistant", "You are welcome.", reasoning="Be kind."),
    Message("user", "Bye"),
]


@pytest.mark.parametrize(("case", "thinking"), every(CASES))
def test_several_turns_grow_into_what_the_template_writes_but_for_dropped_thoughts(case, thinking):
    got, want = grown(case, thinking, "Be kind.", TURNS), by_template(case, "Be kind.", True, TURNS, thinking=thinking)
    if case.family in KEEPS_THOUGHTS or BY_NAME[case.family].thinking == "never":
        return same(case, thinking, got, want)
    chat, family = form(case, thinking), BY_NAME[case.family]
    opener, closer = map(re.escape, family.thoughts)

    def bare(ids):
        text = re.sub(f"{opener}.*?{closer}\\s*", "", chat.text(ids), flags=re.DOTALL)
        return text.replace("<|return|>", "<|end|>").replace("<|start|>assistant<|start|>", "<|start|>")

    assert bare(got) == bare(want)
    if thinking:
        for thought in ("Look first.", "Say so.", "Be kind."):
            assert thought in chat.text(got)  # kept as sampled


@pytest.mark.parametrize(("case", "thinking"), every(CASES))
def test_the_format_is_found_by_the_template(case, thinking):
    assert form(case, thinking).name == case.family
    assert (type(form(case, thinking)._renderer).__name__ == "TemplateRenderer") == (case.by == "template")


@pytest.mark.parametrize(("case", "thinking"), every(ALL))
def test_greetings_and_unicode_survive(case, thinking):
    chat = form(case, thinking)
    text = chat.text(chat.prompt("Be kind.", TOOLS, [GREETING, ASKED]))
    assert GREETING.content in text and ASKED.content in text and text.endswith(chat.text(chat.generation_prompt))


@pytest.mark.parametrize(("case", "thinking"), every(ALL))
def test_texts_never_become_control_tokens(case, thinking):
    """Wherever a text stands, every control token spelled in it stays text."""
    chat = form(case, thinking)
    family = BY_NAME[case.family]
    for token in dict.fromkeys((*family.control, *tokenizer_of(case).all_special_tokens)):
        evil = f"a{token}b"

        def talk(word):
            messages = [
                Message("user", word),
                Message("assistant", "", (call(0, order=word),), reasoning=word if thinking else None),
                result(0, word),
                Message("assistant", f"so {word}", reasoning=word if thinking else None),
                Message("user", word),
            ]
            return grown(case, thinking, f"Be {word}.", messages)

        guarded, plain = talk(evil), talk("ab")
        control = chat.tokenizer.control_ids
        assert [i for i in guarded if i in control] == [i for i in plain if i in control], token
        assert chat.text(guarded).count(evil) >= 5


@pytest.mark.parametrize("case", ALL, ids=str)
def test_thinking_is_as_the_family_has_it(case):
    allowed = thinking_modes(tokenizer_of(case), "auto" if case.template else case.family)
    assert set(modes(case)) == set(allowed) or case.by == "template"
    for thinking in {False, True} - set(allowed):
        with pytest.raises(CheckpointError, match=r"model\.thinking"):
            form(case, thinking)


BROKEN = [
    ("qwen3.5", "<tool_call>look_up</tool_call>"),
    ("qwen3.5", "<tool_call>\n<function=look_up>\n<parameter=lines>\nmany\n</parameter>\n</function>\n</tool_call>"),
    ("qwen3.5", "<tool_call>\n<function=look_up>\n"),
    ("glm-4.5", "<tool_call>look_up\n<arg_key>lines</arg_key>\n<arg_value>many</arg_value>\n</tool_call>"),
    ("glm-4.5", "<tool_call>look_up"),
    ("llama-3", '{"name": "look_up", "parameters": {'),
    ("llama-3", '{"name": "look_up", "parameters": [1]}'),
    ("llama-3", '{"a": 1}'),
    ("llama-3", '{"name": "x", "parameters": {"a": NaN}}'),
    ("llama-3", '{"name": "x", "parameters": {"a": 1, "a": 2}}'),
    ("hermes", "<tool_call>\n{\n</tool_call>"),
    ("hermes", '<tool_call>\n{"name": "x", "arguments": {"a": 1, "a": 2}}\n</tool_call>'),
    ("hermes", '<tool_call>\n{"name": "x"'),
    ("gpt-oss", "<|channel|>commentary to=functions.look_up<|constrain|>json<|message|>{<|call|>"),
    ("gpt-oss", "<|channel|>commentary to=functions.look_up<|message|>[1]<|call|>"),
    (
        "kimi-k2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.x:0<|tool_call_argument_begin|>{<|tool_call_end|>"
        "<|tool_calls_section_end|>",
    ),
    (
        "deepseek-v4",
        '\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="look_up">\n<｜DSML｜parameter name="lines" string="false">many'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    ),
    ("gemma4", '<|tool_call>call:look_up{order:<|"|>W<tool_call|>'),
    ("gemma4", "<|tool_call>call:look_up{more:{[:0}}<tool_call|>"),
]


@pytest.mark.parametrize(("name", "text"), BROKEN)
def test_a_broken_call_is_an_observation(name, text):
    """As the world answers it: a call that says what is wrong with it, never a run of something."""
    case = next(c for c in ALL if c.family == name)
    chat = form(case, modes(case)[-1])
    message = chat.parse(chat.tokenizer.encode(text), tools=TOOLS, first_call=2)
    (broken,) = message.tool_calls
    assert broken.invalid and broken.raw and not broken.arguments and broken.id == "call_2"


def test_values_that_are_nested_too_deeply_are_a_broken_call():
    for name, text in (("llama-3", '{"name": "x", "parameters": ' + '{"a":' * 40 + "1" + "}" * 41),
                       ("hermes", "<tool_call>" + "[" * 100_000 + "</tool_call>")):  # fmt: skip
        chat = form(next(c for c in ALL if c.family == name))
        (broken,) = chat.parse(chat.tokenizer.encode(text), tools=TOOLS).tool_calls
        assert broken.invalid


def test_qwens_words_for_booleans_are_values():
    case = next(c for c in ALL if c.family == "qwen3.5")
    chat = form(case)
    written = chat.reply_ids(Message("assistant", "", (call(0, gift=True, order="True"),)))
    assert "\nTrue\n</parameter>" in chat.text(written)
    assert chat.parse(written, tools=TOOLS).tool_calls == (call(0, gift=True, order="True"),)


def test_a_family_with_one_call_a_reply_refuses_several():
    chat = form(next(c for c in ALL if c.family == "llama-3"))
    with pytest.raises(ValueError, match="one tool call a reply"):
        chat.reply_ids(Message("assistant", "", (call(0), call(1))))
