"""The endpoint agent: the history it sends, tool calls it reads, and how a turn may end."""

from __future__ import annotations

import json

import pytest

from muarl.agents.base import TakesTools
from muarl.agents.endpoint import NOT_RUN, EndpointAgent
from muarl.basics.errors import InfrastructureError
from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rules import LenientRules, Rules
from muarl.types.chat import GREETING, Message, ToolCall, ToolSpec
from muarl.types.episode import StopReason
from muarl.users.scripted import ScriptedUser
from muarl_worlds.bfcl.protocol import QwenRules
from support.fake_openai import Answer, FakeOpenAI, call, completion, status, text

LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"id": {"type": "string"}}})
START = [Message("assistant", GREETING), Message("user", "Look at 7.")]


def endpoint(server: FakeOpenAI) -> Endpoint:
    async def no_wait(_: float) -> None: ...

    return Endpoint(EndpointSettings(model="m", base_url=server.url, attempts=2), sleep=no_wait)


async def test_two_calls_in_one_message_and_the_history_that_follows() -> None:
    calls = [call("look", {"id": "7"}, "a"), call("look", '{"id": ', "b")]
    with FakeOpenAI([completion("One moment.", tool_calls=calls), text("Done.")]) as server:
        async with endpoint(server) as client:
            agent = EndpointAgent(client, temperature=0.3, max_tokens=100)
            session = agent.open("POLICY", [LOOK], seed=11, session="e")
            first = await session.act(START)
            second = await session.act(
                [
                    Message("tool", "a lamp", tool_call_id="a", name="look"),
                    Message("tool", "Error: bad JSON", tool_call_id="b", name="look", error=True),
                ]
            )
            session.close()
    assert first.stop is None
    assert first.message.content == "One moment."
    good, bad = first.message.tool_calls
    assert good == ToolCall("a", "look", {"id": "7"})
    assert bad.invalid
    assert bad.raw == '{"id": '
    assert second.message == Message("assistant", "Done.")
    assert session.tokens is None
    assert server.bodies[0] == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "POLICY"},
            {"role": "assistant", "content": GREETING},
            {"role": "user", "content": "Look at 7."},
        ],
        "tools": [LOOK.to_openai()],
        "tool_choice": "auto",
        "seed": 11,
        "temperature": 0.3,
        "max_tokens": 100,
    }
    history = server.bodies[1]["messages"]
    assert history[:3] == server.bodies[0]["messages"]
    assert history[3]["content"] == "One moment."
    sent_back = [(c["id"], c["function"]["arguments"]) for c in history[3]["tool_calls"]]
    assert sent_back == [("a", '{"id": "7"}'), ("b", "{}")], "servers refuse a history with broken JSON"
    assert [(m["role"], m["tool_call_id"], m["content"]) for m in history[4:]] == [
        ("tool", "a", "a lamp"),
        ("tool", "b", "Error: bad JSON"),
    ]


async def test_names_no_server_would_take_back_are_mended_in_the_history() -> None:
    with FakeOpenAI([completion(None, tool_calls=[call("look at", {}, "a"), call("", {}, "b")]), text("ok")]) as server:
        async with endpoint(server) as client:
            session = EndpointAgent(client).open("P", [LOOK], seed=0, session="e")
            first = await session.act(START)
            await session.act([Message("tool", "Error", tool_call_id="a"), Message("tool", "Error", tool_call_id="b")])
    assert first.message.tool_calls[0].name == "look at"
    assert [c["function"]["name"] for c in server.bodies[1]["messages"][3]["tool_calls"]] == ["look_at", "unknown"]


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        (completion("cut in the mid", finish_reason="length"), StopReason.TURN_LENGTH),
        (completion(None, finish_reason="length"), StopReason.TURN_LENGTH),
        (completion(None, tool_calls=[call("look", '{"id')], finish_reason="length"), StopReason.TURN_LENGTH),
        (completion(None), StopReason.EMPTY_REPLY),
        (text(" \n"), StopReason.EMPTY_REPLY),
        (status(400, code="context_length_exceeded"), StopReason.CONTEXT_FULL),
        (text("fine"), None),
    ],
)
async def test_how_a_turn_ends(answer: Answer, stop: StopReason | None) -> None:
    with FakeOpenAI(answer) as server:
        async with endpoint(server) as client:
            turn = await EndpointAgent(client).open("P", [], seed=0, session="e").act(START)
    assert turn.stop is stop
    assert len(server.requests) == 1, "what the agent did is not asked for again"


async def test_a_failing_server_is_infrastructure_on_the_agents_side() -> None:
    with FakeOpenAI(status(500)) as server:
        async with endpoint(server) as client:
            with pytest.raises(InfrastructureError) as caught:
                await EndpointAgent(client).open("P", [], seed=0, session="e").act(START)
    assert caught.value.boundary == "agent"
    assert len(server.requests) == 2


class Shelf(Domain):
    name = "shelf"
    policy = "Be kind."
    database = {"things": {"7": {"id": "7", "on": True}}}

    @tool(writes=True)
    def remove(self, id: str) -> str:  # noqa: A002
        """Take a thing away.

        id: the thing.
        """
        self.db["things"][id]["on"] = False
        return "gone"


async def test_a_whole_episode_through_the_loop() -> None:
    domain = Shelf()
    task = Task(id="t", domain="shelf", scenario="", actions=())
    script = [
        completion(None, tool_calls=[call("remove", "{bad", "a"), call("fly", {}, "b")]),
        completion(None, tool_calls=[call("remove", {"id": "7"}, "c")]),
        text("It is gone."),
    ]
    with FakeOpenAI(script) as server:
        async with endpoint(server) as client:
            world = domain.world(task)
            episode = await run_episode(task, world, EndpointAgent(client), ScriptedUser(["Remove 7."]), seed=3)
    assert episode.stop is StopReason.USER_STOP
    assert [m.role for m in episode.messages] == [
        *("assistant", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user")
    ]
    assert [m.error for m in episode.messages if m.role == "tool"] == [True, True, False]
    assert world.digest() != domain.world(task).digest()
    assert episode.agent == "endpoint:m"
    assert (episode.agent_usage.requests, episode.agent_usage.prompt_tokens) == (3, 30)
    json.dumps(episode.to_json())


# ── tools that come later, and calls that nobody answers ─────────────────────────────────────────────────────────────


async def test_tools_that_come_later_are_sent_from_the_next_request_on() -> None:
    better = ToolSpec("look", "Look better.", {"type": "object", "properties": {}})
    ship = ToolSpec("ship", "Ship.", {"type": "object", "properties": {}}, extra={"response": {}})
    with FakeOpenAI(text("ok")) as server:
        async with endpoint(server) as client:
            agent = EndpointAgent(client)
            session, other = (agent.open("P", [LOOK], seed=0, session=s) for s in ("e", "f"))
            assert isinstance(session, TakesTools)
            await session.act(START)
            session.offer([ship])
            await session.act([Message("user", "And?")])
            session.offer([better])
            await session.act([Message("user", "And?")])
            await other.act(START)
    sent = [body["tools"] for body in server.bodies]
    assert sent[:2] == [[LOOK.to_openai()], [LOOK.to_openai(), ship.to_openai()]]
    assert sent[2] == [better.to_openai(), ship.to_openai()], "one takes the place of another of its name"
    assert sent[3] == [LOOK.to_openai()], "other episodes have what they began with"


async def test_tools_may_come_where_there_were_none() -> None:
    with FakeOpenAI(text("ok")) as server:
        async with endpoint(server) as client:
            session = EndpointAgent(client).open("P", [], seed=0, session="e")
            await session.act(START)
            session.offer([LOOK])
            await session.act([Message("user", "And?")])
    assert "tools" not in server.bodies[0] and server.bodies[1]["tools"] == [LOOK.to_openai()]


BAD = call("look", "{bad", "b")


@pytest.mark.parametrize(
    ("rules", "answered"),
    [
        (LenientRules(), [("a", NOT_RUN), ("b", NOT_RUN), ("c", NOT_RUN)]),
        (QwenRules(), [("b", NOT_RUN), ("a", "gone"), ("c", "gone")]),
    ],
)
async def test_calls_that_were_not_run_are_answered_for_the_servers_sake(
    rules: Rules, answered: list[tuple[str, str]]
) -> None:
    calls = [call("remove", {"id": "7"}, "a"), BAD, call("remove", {"id": "7"}, "c")]
    with FakeOpenAI([completion("Hm.", tool_calls=calls), text("Done.")]) as server:
        async with endpoint(server) as client:
            world = Shelf().world()
            user = ScriptedUser(["Remove 7.", "And?"])
            task = Task(id="t", domain="shelf", scenario="", actions=())
            episode = await run_episode(task, world, EndpointAgent(client), user, rules=rules)
    assert episode.stop is StopReason.USER_STOP
    history = server.bodies[1]["messages"][4:]
    results = [(m["tool_call_id"], m["content"]) for m in history if m["role"] == "tool"]
    assert results == answered
    assert [m["role"] for m in history[: len(results)]] == ["tool"] * 3, "right behind the message that made them"
    assert [m["content"] for m in history[3:]] == (["And?"] if type(rules) is LenientRules else [])
    assert NOT_RUN not in [m.content for m in episode.messages], "only the server is told"


async def test_a_reply_of_nothing_goes_back_as_a_text_of_nothing() -> None:
    with FakeOpenAI([completion(None), text("Done.")]) as server:
        async with endpoint(server) as client:
            session = EndpointAgent(client).open("P", [], seed=0, session="e")
            first = await session.act(START)
            await session.act([Message("user", "Hello?")])
    assert first.stop is StopReason.EMPTY_REPLY and first.message == Message("assistant", None)
    assert server.bodies[1]["messages"][3] == {"role": "assistant", "content": ""}, "servers refuse a message of null"


async def test_a_prompt_of_nothing_is_not_sent() -> None:
    with FakeOpenAI(text("ok")) as server:
        async with endpoint(server) as client:
            await EndpointAgent(client).open("", [LOOK], seed=0, session="e").act(START[1:])
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "Look at 7."}]


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        (completion("cut in the mid", finish_reason="length"), None),
        (completion(None, tool_calls=[call("look", {"id": "7"})], finish_reason="length"), None),
        (completion(None, finish_reason="length"), StopReason.TURN_LENGTH),
        (text(""), StopReason.EMPTY_REPLY),
    ],
)
async def test_what_was_cut_may_be_taken_as_it_is(answer: Answer, stop: StopReason | None) -> None:
    with FakeOpenAI(answer) as server:
        async with endpoint(server) as client:
            turn = await EndpointAgent(client, keep_cut=True).open("P", [LOOK], seed=0, session="e").act(START)
    assert turn.stop is stop


async def test_what_the_model_said_can_go_back_word_for_word() -> None:
    spaced = {"id": "a", "type": "function", "index": 0, "function": {"name": "look", "arguments": '{"id":"7"}'}}
    said = [
        completion("", tool_calls=[spaced], reasoning_content="Hm.", refusal=None),
        completion(None, tool_calls=[call("look", '{"id": ', "b")], reasoning_content="Again."),
        completion(None, tool_calls=[{**spaced, "id": ""}]),
        completion("<think>So.</think>Done.", tool_calls=[]),
        text("Bye."),
    ]
    with FakeOpenAI(said) as server:
        async with Endpoint(EndpointSettings(model="m", base_url=server.url, verbatim=True)) as client:
            session = EndpointAgent(client).open("", [LOOK], seed=1, session="e")
            turn = await session.act([Message("user", "Look at 7.")])
            for _ in said[1:]:
                calls = turn.message.tool_calls
                turn = await session.act([Message("tool", "?", tool_call_id=c.id) for c in calls] or [START[1]])
        history = [m for m in server.bodies[-1]["messages"] if m["role"] == "assistant"]
    assert history[0] == {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [spaced]}
    assert history[1]["reasoning_content"] == "Again." and history[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert history[2]["tool_calls"][0]["id"] == "call_0", "results need an id to refer to"
    assert history[3] == {"role": "assistant", "content": "<think>So.</think>Done."}
