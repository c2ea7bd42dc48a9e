"""Thoughts of earlier turns: kept or dropped as the family's own template has it, id for id, and none trained twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from loop_kit import RecordingSampler, small_tokenizer
from muarl.agents.sampled import SampledAgent, Sampling
from muarl.chat_formats.choice import chat_format, own_template
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.types.chat import Message
from muarl.types.episode import StopReason
from support.chat_families import BY_NAME, CASES, TOOLS, Case, by_template, call, every, form, modes, result, tokenizer

SYSTEM = "Be kind."
THINKING = [p for p in every(CASES) if p.values[1]]
DROPS = {"qwen3", "qwen3.5", "glm-4.5", "gpt-oss"}
"""Whose templates drop the thoughts of earlier turns, whatever they are told."""
QWEN3 = Case("qwen3", "qwen3")
TURNS = [
    Message("assistant", "Hi! How can I help you today?"),
    Message("user", "Wo ist die Bestellung — W 12?"),
    Message("assistant", "", (call(0, order="W 12"),), reasoning="Look first."),
    result(0, "on its way\n"),
    Message("assistant", "", (call(1, order="é", lines=2),), reasoning="And again.\n\nThe other one."),
    result(1, '{"status": "ü"}'),
    Message("assistant", "It is on its way.", reasoning="Say so."),
    Message("user", "Thanks."),
    Message("assistant", "You are welcome.", reasoning="Be kind."),
    Message("user", "And the other?"),
    Message("assistant", "", (call(2, "cancel"),), reasoning="Now this."),
    result(2, "done", "cancel"),
    Message("assistant", "Done.", reasoning="Tell."),
]


def turns(case: Case) -> list[Message]:
    return [m for m in TURNS if m is not TURNS[0] or case.family not in ("glm-4.5", "gpt-oss")]


def contexts(trace):
    """What stands before each run of sampled ids, within its segment."""
    for part in trace.segments():
        for at, mine in enumerate(part.loss_mask):
            if mine and not part.loss_mask[at - 1]:
                yield part.ids[:at]


@pytest.mark.parametrize(("case", "thinking"), THINKING)
def test_every_reply_is_trained_in_the_context_that_the_template_writes(case, thinking):
    """In each of several turns, and within the tool cycles of one, which keep their thoughts."""
    chat, told = form(case, thinking), turns(case)
    assert chat.drops_thoughts == (case.family in DROPS)
    trace = chat.training_tokens(SYSTEM, TOOLS, told)
    found = list(contexts(trace))
    replies = [n for n, m in enumerate(told) if m.role == "assistant" and n]
    if told[0].role == "user":
        replies = [n for n, m in enumerate(told) if m.role == "assistant"]
    assert len(found) == len(replies) == 6
    for context, n in zip(found, replies, strict=True):
        want = by_template(case, SYSTEM, True, told[:n], thinking=thinking)
        assert chat.text(context) == chat.text(want)
        assert context == want
    assert len(trace.segments()) == (3 if case.family in DROPS else 1)
    sampled = [i for i, mine in zip(trace.ids, trace.loss_mask, strict=True) if mine]
    assert sampled == [i for n in replies for i in chat.reply_ids(told[n])], "every sampled id once, and no other"


@pytest.mark.parametrize(("case", "thinking"), THINKING)
def test_kept_thoughts_stay_in_one_growing_context(case, thinking):
    chat = chat_format(tokenizer(case), thinking=thinking, earlier_thoughts="keep")
    trace = chat.training_tokens(SYSTEM, TOOLS, turns(case))
    assert not chat.drops_thoughts and trace.segments() == [trace]
    for thought in ("Look first.", "Say so.", "Now this."):
        assert chat.text(trace.ids).count(thought) == 1


@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_thinking_nothing_is_written_anew(case):
    """The empty think blocks that open replies stay, as they always have."""
    if False not in modes(case):
        pytest.skip("this family always thinks")
    chat = form(case, False)
    assert not chat.drops_thoughts
    told = [replace(m, reasoning=None) for m in turns(case)]
    assert len(chat.training_tokens(SYSTEM, TOOLS, told).segments()) == 1


def test_checkpoints_of_our_own_template_keep_thoughts():
    """Which is what they were trained with; one without any template gets that one."""
    theirs = tokenizer(QWEN3)
    assert chat_format(theirs, thinking=True).drops_thoughts
    theirs.chat_template, before = own_template(thinking=True), theirs.chat_template
    try:
        assert not chat_format(theirs, thinking=True).drops_thoughts
    finally:
        theirs.chat_template = before
    assert not chat_format(small_tokenizer(), thinking=True).drops_thoughts


def test_a_family_without_its_template_is_taken_at_its_word():
    assert form(Case("kimi-k2.5", None), True).drops_thoughts
    assert not form(Case("deepseek-v4", None), True).drops_thoughts


@pytest.mark.parametrize("case", [QWEN3, Case("glm-4.5", "glm4moe"), Case("gpt-oss", "gptoss", "template")], ids=str)
def test_a_live_conversation_samples_in_the_contexts_of_the_template(case):
    chat, told = form(case, True), turns(case)
    replies = [m for m in told[1:] if m.role == "assistant"]
    sampler = RecordingSampler(chat, *replies)

    async def live():
        session = SampledAgent(sampler, chat).open(SYSTEM, TOOLS, seed=1, session="s")
        new, spans, prompts = [], [], []
        for n, message in enumerate(told):
            if message.role != "assistant" or not n:
                new.append(message)
                continue
            turn = await session.act(new)
            spans.append(turn.span)
            prompts.append(turn.usage.prompt_tokens)
            new = []
        return session.tokens, spans, prompts

    trace, spans, prompts = asyncio.run(live())
    replied = [n for n, m in enumerate(told) if m in replies]
    assert [list(seen) for _, seen, _ in sampler.seen] == [
        by_template(case, SYSTEM, True, told[:n], thinking=True) for n in replied
    ]
    assert prompts == [len(seen) for _, seen, _ in sampler.seen]
    assert len({p.seed for _, _, p in sampler.seen}) == len(replies)
    assert [tuple(trace.ids[a:b]) for a, b in spans] == [gave.ids for gave in sampler.gave]
    assert all(any(s <= a and b <= e for s, e in zip([0, *trace.restarts], [*trace.restarts, len(trace)], strict=True))
               for a, b in spans)  # fmt: skip
    wanted = chat.training_tokens(SYSTEM, TOOLS, told)
    assert (trace.ids, trace.loss_mask, trace.restarts) == (wanted.ids, wanted.loss_mask, wanted.restarts)


def test_a_reply_without_thoughts_is_not_written_anew():
    """Its sampled ids stay as they are, since nothing is dropped."""
    chat, asked = form(QWEN3, True), [Message("user", "a")]
    ids = chat.prompt(SYSTEM, (), asked)

    def anew(ids, said, new):
        return chat.written_anew(ids, SYSTEM, (), [*asked, said], [new])

    plain = Message("assistant", "Yes.")
    assert anew([*ids, *chat.tokenizer.encode("Yes."), chat.stop_ids[0]], plain, Message("user", "b")) is None
    spelled = [*ids, *chat.tokenizer.encode_guarded("<think>"), chat.stop_ids[0]]
    assert anew(spelled, Message("assistant", "<think>"), Message("user", "b")) is None
    thought = replace(plain, reasoning="Hm.")
    grown = [*ids, *chat.reply_ids(thought)]
    want = by_template(QWEN3, SYSTEM, False, [*asked, thought, Message("user", "b")], thinking=True)
    assert anew(grown, thought, Message("user", "b")) == want
    assert anew(grown, thought, result(0, "found")) is None


@pytest.mark.parametrize("name", sorted(DROPS))
def test_calls_that_cannot_be_read_do_not_end_a_conversation(name):
    """They stand in the contexts that are written anew, whatever the family's template thinks of them."""
    case = next(c for c in CASES if c.family == name)
    chat = form(case, True)
    whole = chat.reply_ids(Message("assistant", "", (call(0, order="W 12"),), reasoning="Look first."))
    at = chat.text(whole).index("W 12")
    broken = [*chat.tokenizer.encode(chat.text(whole)[:at].replace("{", "[")), whole[-1]]
    (read,) = chat.parse(broken, tools=TOOLS).tool_calls
    assert read.invalid
    sampler = RecordingSampler(chat, broken, Message("assistant", "Sorry.", reasoning="Oh."), broken, broken)

    async def live():
        session = SampledAgent(sampler, chat).open(SYSTEM, TOOLS, seed=1, session="s")
        await session.act([Message("user", "a")])
        await session.act([Message("tool", "Error: not readable", tool_call_id="call_0", name="look_up")])
        await session.act([Message("user", "b")])
        await session.act([Message("user", "c")])  # the call was not answered
        return session.tokens

    trace = asyncio.run(live())
    third = chat.text(sampler.seen[2][1])
    assert len(trace.segments()) == 3 and "Oh." not in third and "Look first." not in third
    assert "Error: not readable" in third and "Sorry." in third


def test_a_conversation_that_the_template_refuses_goes_on_growing():
    chat = form(Case("gpt-oss", "gptoss", "template"), True)
    told = [Message("user", "a"), Message("tool", "found", tool_call_id="call_0", name="look_up")]
    ids = [*chat.prompt(SYSTEM, (), told[:1]), *chat.reply_ids(Message("assistant", "Yes.", reasoning="Hm."))]
    assert chat.written_anew(ids, SYSTEM, (), told, [Message("user", "b")]) is None
    assert chat.written_anew(ids, SYSTEM, (), told[:1], [Message("user", "b")]) is not None


def test_the_cap_on_tokens_is_on_one_context():
    """What was dropped takes no room: such a conversation may sample more than its context holds."""
    chat = form(QWEN3, True)
    reply = Message("assistant", "Yes.", reasoning="word " * 30)
    once = len(chat.prompt(SYSTEM, (), [Message("user", "a")])) + len(chat.reply_ids(reply))

    def act(chat, context):
        sampler = RecordingSampler(chat, reply)

        async def live():
            session = SampledAgent(sampler, chat, Sampling(context=context)).open(SYSTEM, (), seed=1, session="s")
            turns = []
            for _ in range(4):
                turns.append(await session.act([Message("user", "a")]))
                if turns[-1].stop:
                    break
            return session.tokens, turns

        return asyncio.run(live())

    trace, played = act(chat, once + 60)
    assert [t.stop for t in played] == [None] * 4 and trace.sampled_count > once + 60
    kept, played = act(Qwen3Format(tokenizer(QWEN3), thinking=True), once + 60)
    assert played[-1].stop is StopReason.CONTEXT_FULL and len(kept) == once + 60 and not kept.restarts
    full, played = act(chat, once + 5)
    assert played[-1].stop is StopReason.CONTEXT_FULL and len(played) == 2
    assert all(len(part) <= once + 5 for part in full.segments())


def test_families_that_drop_are_told_in_the_table():
    assert {n for n, f in BY_NAME.items() if f.thinking != "never" and not f.keeps} == DROPS | {"kimi-k2.5"}
