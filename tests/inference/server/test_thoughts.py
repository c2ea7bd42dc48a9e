"""A thinking model behind the server: its thoughts go when the user speaks again, if its chat format drops them."""

from __future__ import annotations

from typing import Any

import pytest

from loop_kit import call_json, small_tokenizer
from muarl.agents.sampled import SampledAgent
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.types.chat import Message, ToolSpec
from support.chat_server import TOOLS, TellingSampler, asked, client, serving

THINKING: Any = {"chat_template_kwargs": {"enable_thinking": True}}
SPECS = tuple(ToolSpec(t["function"]["name"], t["function"]["description"], t["function"]["parameters"]) for t in TOOLS)
REPLIES = [
    "<think>\nLook first.\n</think>\n\n" + call_json("look", order_id="#W12"),
    "<think>\nSay so.\n</think>\n\nIt is pending.",
    "<think>\nBe kind.\n</think>\n\nYou are welcome.",
]


@pytest.mark.parametrize("sends_thoughts", [True, False])
async def test_contexts_are_those_of_an_agent_in_this_process(sends_thoughts: bool) -> None:
    chat = Qwen3Format(small_tokenizer(), thinking=True, drops_thoughts=True)
    sampler = TellingSampler(chat, *REPLIES)
    messages = asked()
    with serving(sampler, small_tokenizer(), drops_thoughts=True) as live, client(live) as api:
        for then in ({"role": "tool", "content": "pending"}, {"role": "user", "content": "Thanks"}, None):
            reply = api.chat.completions.create(model="m", messages=messages, tools=TOOLS, extra_body=THINKING)
            message = reply.choices[0].message
            row: dict[str, Any] = {"role": "assistant", "content": message.content}
            if sends_thoughts:
                row["reasoning_content"] = message.reasoning_content
            if message.tool_calls:
                row["tool_calls"] = [c.model_dump() for c in message.tool_calls]
            if then is not None:
                if message.tool_calls:
                    then = {**then, "tool_call_id": message.tool_calls[0].id}
                messages = [*messages, row, then]
    alone = TellingSampler(chat, *REPLIES)
    session = SampledAgent(alone, chat).open("Be kind.", SPECS, seed=1, session="s")
    await session.act([Message("user", "Hi")])
    await session.act([Message("tool", "pending", tool_call_id="call_0", name="look")])
    await session.act([Message("user", "Thanks")])
    assert [ids for _, ids, _ in sampler.seen] == [ids for _, ids, _ in alone.seen]
    assert len(session.tokens.segments()) == 2
    _first, second, third = (chat.text(ids) for _, ids, _ in sampler.seen)
    assert "Look first." in second and "<think>" not in third and "It is pending." in third
    assert len({name for name, _, _ in sampler.seen}) == 1, "the engine's cache is found again"
