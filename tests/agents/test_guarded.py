"""An agent behind a guard: what it is asked again, what it goes on with, and what stays on record."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.agents.endpoint import EndpointAgent
from muarl.agents.guarded import GuardedAgent
from muarl.agents.idle import IdleAgent
from muarl.audit.guard import INSTEAD, CallGuard
from muarl.basics.errors import ConfigError
from muarl.domains.auditing import AuditRules
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import StopReason
from support.fake_openai import Answer, FakeOpenAI, call, completion, status, text

CANCEL = ToolSpec("cancel", "Cancel.", {"type": "object", "properties": {"order_id": {"type": "string"}}})
GUARD = CallGuard.of(AuditRules(kinds={"cancel": "write"}))
START = [Message("user", "Cancel #W12.")]
CALLS = completion(None, tool_calls=[call("cancel", {"order_id": "#W12"}, "a")])
ASK = "I would cancel order #W12. Shall I?"
TOO_LONG = status(400, message="too long", code="context_length_exceeded")


async def turns(answers: list[Answer], *news: list[Message], tries: int = 2) -> tuple[Any, list[Any], list[Any]]:
    """The session, its turns, and the messages of each request."""
    with FakeOpenAI(answers) as server:
        async with Endpoint(EndpointSettings(model="m", base_url=server.url, attempts=1)) as client:
            session = GuardedAgent(EndpointAgent(client), GUARD, tries=tries).open("P", [CANCEL], seed=1, session="e")
            acted = [await session.act(new) for new in news]
            session.close()
    return session, acted, [body["messages"] for body in server.bodies]


async def test_a_call_that_is_held_back_is_asked_again_and_leaves_no_trace() -> None:
    session, (first, second), sent = await turns([CALLS, text(ASK), CALLS], START, [Message("user", "Yes.")])
    assert first.message == Message("assistant", ASK) and first.usage.requests == 2
    assert [c.name for c in second.message.tool_calls] == ["cancel"]
    assert [m["role"] for m in sent[1]] == ["system", "user", "assistant", "tool"]
    assert sent[1][-1]["content"] == "Held back: cancel changed something without having been proposed."
    assert [m["role"] for m in sent[2]] == ["system", "user", "assistant", "user"]
    assert sent[2][2]["content"] == ASK
    assert session.episode_tags() == {
        "agent_guard": {"held_back": 1, "given_up": 0, "findings": {"write-without-consent": 1}}
    }


async def test_who_insists_has_said_a_plain_sentence() -> None:
    session, (first, _), sent = await turns([CALLS, CALLS, text("Well.")], START, [Message("user", "?")], tries=1)
    assert first.message == Message("assistant", INSTEAD) and first.stop is None
    assert [m["content"] for m in sent[2]] == ["P", "Cancel #W12.", INSTEAD, "?"]
    assert session.episode_tags()["agent_guard"]["given_up"] == 1


async def test_where_the_second_request_is_too_long_the_sentence_is_said_too() -> None:
    _, (first, _), sent = await turns([CALLS, TOO_LONG, text("Well.")], START, [Message("user", "?")])
    assert first.message.content == INSTEAD and first.stop is None
    assert [m["content"] for m in sent[2]] == ["P", "Cancel #W12.", INSTEAD, "?"]


async def test_a_reply_that_was_cut_is_the_agents_own() -> None:
    cut = completion(None, tool_calls=[call("cancel", {"order_id": "#W12"}, "a")], finish_reason="length")
    _, (first,), sent = await turns([cut], START)
    assert first.stop is StopReason.TURN_LENGTH and len(sent) == 1


def test_an_agent_that_takes_nothing_back_cannot_be_guarded() -> None:
    with pytest.raises(ConfigError, match="cannot take a reply back"):
        GuardedAgent(IdleAgent(), GUARD).open("P", [], seed=1, session="e")
