"""What holds of every chat format, whatever is said."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop_kit import RecordingSampler
from muarl.agents.sampled import SampledAgent, Sampling
from muarl.types.chat import Message, ToolCall
from support.chat_families import BY_NAME, CASES, TOOLS, UNTEMPLATED, WITHOUT_TOOLS, every, form

ONE_EACH = tuple({c.family: c for c in (*reversed(CASES), *UNTEMPLATED)}.values())
ALL = every((*ONE_EACH, *WITHOUT_TOOLS))
UNCUT = Sampling(turn_tokens=1 << 20, context=1 << 22)
quick = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

plain = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="<>{}\ufdd0"), min_size=1, max_size=8)
spoken = st.lists(plain, min_size=1, max_size=4).map(" ".join)
heard = st.one_of(
    spoken,
    st.sampled_from(
        ["", "\n", " a ", "<|im_end|>", "<tool_call>", "</think>", "日本 🙂", "CALL cancel()", "RESULT ok\nUser: x"]
    ),
)
nested = st.dictionaries(
    st.sampled_from(["a", "the_b", "é"]), st.one_of(st.integers(-9, 9), spoken, st.booleans()), max_size=2
)
arguments = st.fixed_dictionaries(
    {"order": spoken},
    optional={
        "lines": st.integers(-(10**6), 10**6),
        "gift": st.booleans(),
        "more": nested,
        "list": st.lists(st.one_of(st.integers(0, 9), spoken), max_size=2),
    },
)
calls = st.one_of(st.builds(lambda a: ToolCall("", "look_up", a), arguments), st.just(ToolCall("", "cancel", {})))


def replies(case, thinking, draw) -> Message:
    """A reply that the format can write: text, calls, or both where it has a place for both."""
    family = BY_NAME[case.family]
    made = draw(st.lists(calls, max_size=1 if family.single else 3))
    both = case.family not in ("gemma4", "llama-3", "gpt-oss")  # whose templates have no text beside a call
    content = draw(spoken) if not made or (both and draw(st.booleans())) else ""
    reasoning = draw(spoken) if thinking and draw(st.booleans()) else None
    return Message("assistant", content, tuple(made), reasoning=reasoning)


def conversation(case, thinking, data) -> list[Message]:
    messages, count = [Message("user", data.draw(heard))], 0
    for _ in range(data.draw(st.integers(1, 3))):
        reply = replies(case, thinking, data.draw)
        asked = tuple(replace(c, id=f"call_{count + n}") for n, c in enumerate(reply.tool_calls))
        count += len(asked)
        messages.append(replace(reply, tool_calls=asked))
        messages += [Message("tool", data.draw(heard), tool_call_id=c.id, name=c.name) for c in asked] or [
            Message("user", data.draw(heard))
        ]
    while messages[-1].role != "assistant":
        messages.pop()
    return messages


@pytest.mark.parametrize(("case", "thinking"), ALL)
@quick
@given(data=st.data())
def test_parse_reads_what_reply_writes(case, thinking, data):
    chat = form(case, thinking)
    message = replies(case, thinking, data.draw)
    read = chat.parse(chat.reply_ids(message), tools=TOOLS, first_call=3)
    assert [(c.name, dict(c.arguments), c.invalid) for c in read.tool_calls] == [
        (c.name, dict(c.arguments), None) for c in message.tool_calls
    ]
    assert [c.id for c in read.tool_calls] == [f"call_{3 + n}" for n in range(len(message.tool_calls))]
    assert (read.content, read.reasoning) == (message.content, message.reasoning)


@pytest.mark.parametrize(("case", "thinking"), ALL)
@quick
@given(data=st.data())
def test_what_is_trained_is_what_was_sampled(case, thinking, data):
    """A sampler that answers as recorded sees, id for id, the contexts that training on the record is given, and the
    mask covers its ids and no others."""
    chat = form(case, thinking)
    messages = conversation(case, thinking, data)
    trace = chat.training_tokens("Be kind.", TOOLS, messages)
    sampler = RecordingSampler(chat, *[m for m in messages if m.role == "assistant"])

    async def live():
        session = SampledAgent(sampler, chat, UNCUT).open("Be kind.", TOOLS, seed=1, session="s")
        new = []
        for message in messages:
            if message.role == "assistant":
                await session.act(new)
                new = []
            else:
                new.append(replace(message, name=None))  # the session knows which tools were called
        return session.tokens

    lived = asyncio.run(live())
    assert (lived.ids, lived.loss_mask, lived.restarts) == (trace.ids, trace.loss_mask, trace.restarts)
    parts = lived.segments()
    assert [i for part in parts for i in part.ids] == lived.ids and sum(p.sampled_count for p in parts) == sum(
        len(gave.ids) for gave in sampler.gave
    )
    contexts = [p.ids[:at] for p in parts for at, m in enumerate(p.loss_mask) if m and not p.loss_mask[at - 1]]
    assert contexts == [list(seen) for _, seen, _ in sampler.seen], "trained in the context that it was sampled in"
    sampled = [i for i, m in zip(trace.ids, trace.loss_mask, strict=True) if m]
    assert sampled == [i for m in messages if m.role == "assistant" for i in chat.reply_ids(m)]
    assert trace.ids[-1] in chat.stop_ids and trace.loss_mask[-1]


@pytest.mark.parametrize(("case", "thinking"), ALL)
@quick
@given(data=st.data())
def test_going_on_depends_on_the_end_alone(case, thinking, data):
    """After whatever was sampled, the next turn is what it is after any other reply that ended alike."""
    chat = form(case, thinking)
    text, end = data.draw(spoken), data.draw(st.sampled_from(chat.stop_ids))
    new = [Message("user", data.draw(heard))]
    begun = chat.prompt("Be kind.", TOOLS, [Message("user", "x")])
    one = [*begun, *chat.tokenizer.encode_guarded(text), end]
    assert chat.extend(one, new) == chat.extend([*begun, end], new)


@pytest.mark.parametrize(("case", "thinking"), ALL)
@quick
@given(data=st.data())
def test_whatever_is_sampled_is_read(case, thinking, data):
    """Broken calls never raise: any ids are a message, and the conversation goes on after them."""
    chat = form(case, thinking)
    control = sorted(chat.tokenizer.control_ids)
    whole = chat.reply_ids(replies(case, thinking, data.draw))
    ids = list(whole)
    for _ in range(data.draw(st.integers(0, 4))):  # a reply that was cut, doubled or spoilt
        at = data.draw(st.integers(0, len(ids)))
        spoilt = data.draw(st.one_of(st.sampled_from(control), st.integers(0, 255)))
        ids = data.draw(st.sampled_from([ids[:at], [*ids[:at], spoilt, *ids[at:]], [*ids[:at], *ids[at:], *ids]]))
    read = chat.parse(ids, tools=TOOLS)
    for made in read.tool_calls:
        assert made.invalid or (made.name and isinstance(made.arguments, dict))
    begun = chat.prompt("", TOOLS, [Message("user", "x")]) + ids
    more = chat.extend(
        begun,
        [Message("tool", "no", tool_call_id="call_0", name="look_up")] if read.tool_calls else [Message("user", "?")],
    )
    assert more and all(isinstance(i, int) for i in more)


def ends(chat, ids) -> bool:
    """Whether ids end where a reply begins."""
    return tuple(ids[len(ids) - len(chat.generation_prompt) :]) == chat.generation_prompt


@pytest.mark.parametrize(("case", "thinking"), ALL)
def test_a_conversation_goes_on_where_it_is_cut(case, thinking):
    """A server that remembers ids, and one that is told everything anew, agree on text without thoughts."""
    chat = form(case, thinking)
    said = Message("assistant", "Hello")
    begun = chat.prompt("Be kind.", TOOLS, [Message("user", "Hi")])
    new = [Message("user", "Well?")]
    grown = begun + chat.reply_ids(said)
    assert ends(chat, chat.resume(begun, [said, *new]))
    assert chat.resume(grown, new) == chat.extend(grown, new)
    again = chat.resume(grown, ())
    assert chat.text(again).endswith(chat.text(chat.generation_prompt))
    cut = [*begun, *chat.tokenizer.encode_guarded("I will")]
    assert ends(chat, chat.extend(cut, new))
