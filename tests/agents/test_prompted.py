"""The agent that writes its calls as text: what the agent inside is told, how its calls are read, what is kept."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from loop_kit import Puppet, RecordingSampler, call, call_json, say, small_tokenizer
from muarl.agents.base import AgentTurn, TakesTools
from muarl.agents.endpoint import EndpointAgent
from muarl.agents.prompted import PromptedAgent
from muarl.agents.sampled import SampledAgent, Sampling
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rules import LenientRules, Limits, Rules
from muarl.types.chat import GREETING, Message, ToolCall, ToolSpec
from muarl.types.episode import Episode, StopReason, Usage
from support.fake_openai import FakeOpenAI, completion, text
from support.fake_openai import call as sent_call
from support.toy_shop import Lines, Toy, toy_task

DOMAIN = Toy()
CHAT = Qwen3Format(small_tokenizer())
_CALL = re.compile(r"DO (\w+) (\{[^}]*\})")


class Plain:
    """Calls are ``DO name {json}``, results ``name -> content``, and every call is called by its text."""

    def __init__(self, *, whole: bool = False, title: str = "TOOLS") -> None:
        self.whole, self.title = whole, title

    def system(self, system: str, tools: Sequence[ToolSpec]) -> str:
        return f"{system}\n{self.title}: {', '.join(t.name for t in tools)}"

    def given(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        assert tools == DOMAIN.tool_specs()
        lines = [self._line(m) for m in messages]
        return [Message("user", "\n".join(lines))] if self.whole else [Message("user", line) for line in lines]

    def _line(self, message: Message) -> str:
        said = f"{message.name} -> {message.content}" if message.role == "tool" else message.content or ""
        return f"{message.role}: {said}" if self.whole else said

    def calls(self, written: str) -> tuple[ToolCall, ...]:
        found = [(m.group(), m.group(1), json.loads(m.group(2))) for m in _CALL.finditer(written)]
        return tuple(ToolCall("", name, arguments, raw=raw) for raw, name, arguments in found)


def play(agent: Any, user: Any, limits: Limits | None = None, **options: Any) -> Episode:
    world = options.pop("world", None) or DOMAIN.world()
    return asyncio.run(run_episode(toy_task(), world, agent, user, limits, **options))


LOOK = 'DO look {"order_id": "#W12"}'
CANCEL = 'DO cancel {"order_id": "#W12"}'


def heard(agent: Puppet) -> list[list[str | None]]:
    """What each session of the agent inside was told, turn after turn, as texts."""
    return [[m.content for told in s.told for m in told] for s in agent.sessions]


# ── what the agent inside hears, and what is made of its words ───────────────────────────────────────────────────────


def test_tools_calls_and_results_travel_as_words() -> None:
    world = DOMAIN.world()
    inner = Puppet(f"I look. {LOOK}", f"{CANCEL} {LOOK}", "Done.")
    agent = PromptedAgent(inner, Plain())
    episode = play(agent, Lines("Cancel #W12."), world=world, seed=7, episode_id="e")
    assert episode.stop is StopReason.USER_STOP and [c.name for c in world.writes] == ["cancel"]
    (session,) = inner.sessions
    system = f"{DOMAIN.policy_text}\nTOOLS: look, cancel, transfer_to_human_agents"
    assert (session.system, session.tools, session.seed, session.name) == (system, (), 7, "e")
    assert episode.system == DOMAIN.policy_text and episode.tools == DOMAIN.tool_specs()
    assert [[(m.role, m.content) for m in told] for told in session.told] == [
        [("user", GREETING), ("user", "Cancel #W12.")],
        [("user", f"{LOOK} -> pending")],
        [("user", f"{CANCEL} -> done"), ("user", f"{LOOK} -> cancelled")],
    ], "only what is new, results named by their calls as they were written"
    assert session.closed == 1
    first, second = [m for m in episode.messages if m.tool_calls]
    assert first == Message(
        "assistant", f"I look. {LOOK}", (ToolCall("call_0", "look", {"order_id": "#W12"}, raw=LOOK),)
    )
    assert [c.id for c in second.tool_calls] == ["call_1", "call_2"], "ids are counted over the whole episode"
    results = [m for m in episode.messages if m.role == "tool"]
    assert [(m.tool_call_id, m.name) for m in results] == [
        ("call_0", "look"),
        ("call_1", "cancel"),
        ("call_2", "look"),
    ], "in the episode they keep the tools' names"


def test_a_call_without_a_text_of_its_own_goes_by_its_name() -> None:
    class Nameless(Plain):
        def calls(self, written: str) -> tuple[ToolCall, ...]:
            return tuple(replace(c, raw=None) for c in super().calls(written))

    inner = Puppet(LOOK, "Done.")
    play(PromptedAgent(inner, Nameless()), Lines("a"))
    assert inner.sessions[0].told[1] == [Message("user", "look -> pending")]


def test_a_codec_may_be_chosen_by_the_system_prompt() -> None:
    asked: list[str] = []

    def choose(system: str) -> Plain:
        asked.append(system)
        return Plain(title="NONE" if not system else "SOME", whole=not system)

    inner = Puppet("Done.")
    agent = PromptedAgent(inner, choose)
    for system in ("", "Be kind."):
        play(agent, Lines("a"), system=system)
    assert asked == ["", "Be kind."], "once an episode"
    assert [s.system.splitlines()[1].partition(":")[0] for s in inner.sessions] == ["NONE", "SOME"]
    assert [s.name for s in inner.sessions] == ["episode/0", "episode"]


def test_with_whole_the_agent_is_told_everything_anew_at_each_turn() -> None:
    inner = Steps([LOOK], ["Gone?"], [f"{CANCEL} {LOOK}"], ["Done."])
    rules = Rules(greeting_in_context=False)
    episode = play(PromptedAgent(inner, Plain(whole=True)), Lines("a", "b"), rules=rules, seed=3, episode_id="e")
    assert episode.stop is StopReason.USER_STOP
    assert [s.name for s in inner.sessions] == ["e/0", "e/1", "e/2", "e/3"]
    seeds = [s.seed for s in inner.sessions]
    assert len({3, *seeds}) == 5, "each turn has a seed of its own"
    assert [s.closed for s in inner.sessions] == [1] * 4
    again = Steps([LOOK], ["Gone?"], [f"{CANCEL} {LOOK}"], ["Done."])
    play(PromptedAgent(again, Plain(whole=True)), Lines("a", "b"), rules=rules, seed=3)
    assert [s.seed for s in again.sessions] == seeds, "which follows from the episode's"
    until = f"user: a\nassistant: {LOOK}\ntool: {LOOK} -> pending"
    assert heard(inner) == [
        ["user: a"],
        [until],
        [f"{until}\nassistant: Gone?\nuser: b"],
        [
            f"{until}\nassistant: Gone?\nuser: b\nassistant: {CANCEL} {LOOK}\n"
            f"tool: {CANCEL} -> done\ntool: {LOOK} -> cancelled"
        ],
    ]
    ids = [c.id for m in episode.messages for c in m.tool_calls]
    assert ids == ["call_0", "call_1", "call_2"]


class Steps(Puppet):
    """A puppet whose sessions each play the next list."""

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> Any:
        opened = super().open(system, tools, seed=seed, session=session)
        opened.acts = list(self.acts[len(self.sessions) - 1])
        return opened


def test_native_calls_of_the_agent_inside_are_only_words() -> None:
    world = DOMAIN.world()
    native = call("cancel", order_id="#W12 ü")
    broken = ToolCall("b", "", invalid="not valid JSON", raw="{oops")
    inner = Puppet(say("Wait.", native, broken), say(None, native), say("Done."))
    episode = play(PromptedAgent(inner, Plain()), Lines("a", "b", "c"), world=world)
    words = '<tool_call>\n{"name": "cancel", "arguments": {"order_id": "#W12 ü"}}\n</tool_call>'
    assert [m.content for m in episode.messages if m.role == "assistant"][1:] == [
        f"Wait.\n{words}\n<tool_call>\n{{oops\n</tool_call>",
        words,
        "Done.",
    ]
    assert not world.writes and not any(m.tool_calls for m in episode.messages)


def test_what_cannot_be_read_is_as_good_as_words() -> None:
    inner = Puppet("DO look {not json", "Done.")
    user = Lines("a", "b")
    episode = play(PromptedAgent(inner, Plain()), user, Limits(tool_errors=1))
    assert episode.stop is StopReason.USER_STOP
    assert user.heard[1][-1].content == "DO look {not json", "so the user hears it"


def test_how_a_turn_ended_and_what_it_cost_is_the_agents() -> None:
    usage = Usage(prompt_tokens=5, completion_tokens=7, requests=1, cost=0.5)
    acts = [AgentTurn(say(LOOK), usage=usage), AgentTurn(say(CANCEL), StopReason.TURN_LENGTH, usage)]
    world = DOMAIN.world()
    episode = play(PromptedAgent(Puppet(*acts), Plain()), Lines("a"), world=world)
    assert episode.stop is StopReason.TURN_LENGTH and not world.writes
    assert episode.agent_usage == usage + usage
    thoughtful = Message("assistant", "Hm.", reasoning="I wonder.")
    assert play(PromptedAgent(Puppet(thoughtful), Plain()), Lines("a")).messages[2].reasoning == "I wonder."


@pytest.mark.parametrize("rules", [Rules(), LenientRules()])
def test_an_empty_message_stays_empty(rules: Rules) -> None:
    inner = Puppet(AgentTurn(say(None), StopReason.EMPTY_REPLY), "Done.")
    episode = play(PromptedAgent(inner, Plain()), Lines("a", "b"), rules=rules)
    assert episode.stop is (StopReason.EMPTY_REPLY if type(rules) is Rules else StopReason.USER_STOP)
    assert episode.messages[2] == Message("assistant", "")


async def test_it_is_called_as_the_agent_inside_and_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Endpoint] = []

    async def aclose(self: Endpoint) -> None:
        closed.append(self)

    monkeypatch.setattr(Endpoint, "aclose", aclose)
    endpoint = Endpoint(EndpointSettings(model="m"))
    agent = PromptedAgent(EndpointAgent(endpoint), Plain())
    await agent.aclose()
    await PromptedAgent(Puppet(), Plain()).aclose()
    assert agent.name == "endpoint:m" and closed == [endpoint]


@pytest.mark.parametrize("whole", [False, True])
def test_sessions_are_closed_though_nothing_was_said(whole: bool) -> None:
    inner = Puppet("x")
    session = PromptedAgent(inner, Plain(whole=whole)).open("P", DOMAIN.tool_specs(), seed=0, session="e")
    assert session.tokens is None and not isinstance(session, TakesTools), "later tools come in words"
    session.close()
    assert not inner.sessions


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("fault", ["agent", "codec"])
def test_a_failure_within_closes_the_agents_session(whole: bool, fault: str) -> None:
    class Faulty(Plain):
        def calls(self, written: str) -> tuple[ToolCall, ...]:
            raise RecursionError("too deep")

    inner = Puppet(KeyError("k")) if fault == "agent" else Puppet("x")
    codec = Plain(whole=whole) if fault == "agent" else Faulty(whole=whole)
    episode = play(PromptedAgent(inner, codec), Lines("a"))
    assert episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "agent"
    assert [s.closed for s in inner.sessions] == [1]


# ── a sampled agent inside ───────────────────────────────────────────────────────────────────────────────────────────


def sampled(*replies: Any) -> tuple[SampledAgent, RecordingSampler]:
    sampler = RecordingSampler(CHAT, *replies)
    return SampledAgent(sampler, CHAT, Sampling(turn_tokens=200)), sampler


def test_a_policys_tokens_are_those_that_it_sampled() -> None:
    policy, sampler = sampled(f"Let me see. {LOOK}", CANCEL, "Done.")
    world = DOMAIN.world()
    episode = play(PromptedAgent(policy, Plain()), Lines("Cancel #W12"), world=world, episode_id="e")
    trace = episode.tokens
    assert trace is not None and len(world.writes) == 1
    assert [tuple(trace.ids[a:b]) for a, b in (t.span for t in episode.turns if t.span)] == [
        g.ids for g in sampler.gave
    ]
    assert trace.sampled_count == sum(len(g.ids) for g in sampler.gave)
    assert tuple(trace.ids[: len(sampler.seen[-1][1])]) == sampler.seen[-1][1]
    shown = CHAT.text(trace.ids)
    assert f"{LOOK} -> pending" in shown and "<tools>" not in shown and "TOOLS: look" in shown
    assert sampler.closed == ["e"]


def test_blocks_that_a_policy_writes_are_read_by_the_codec() -> None:
    class Blocks(Plain):
        def calls(self, written: str) -> tuple[ToolCall, ...]:
            return (ToolCall("", "look", {"order_id": "#W12"}),) if "<tool_call>" in written else ()

    policy, _ = sampled("I look. " + call_json("look", order_id="#W12"), "Done.")
    episode = play(PromptedAgent(policy, Blocks()), Lines("a"))
    (made,) = [m for m in episode.messages if m.tool_calls]
    assert made.content == f"I look.\n{call_json('look', order_id='#W12')}"
    assert [m.content for m in episode.messages if m.role == "tool"] == ["pending"]


def test_a_policy_that_is_told_everything_anew_has_no_one_trace() -> None:
    policy, sampler = sampled("Which order?")
    episode = play(PromptedAgent(policy, Plain(whole=True)), Lines("a", "b"), episode_id="e")
    assert episode.tokens is None
    assert all(t.span is None for t in episode.turns), "so nothing can stand at a place in it"
    assert [t.version for t in episode.turns if t.version is not None] == [3, 3]
    assert [s for s, _, _ in sampler.seen] == sampler.closed == ["e/0", "e/1"]
    assert len({params.seed for _, _, params in sampler.seen}) == 2, "turns are not drawn alike"
    assert Episode.from_json(episode.to_json(context=True)) == episode


# ── a model behind an endpoint inside ────────────────────────────────────────────────────────────────────────────────


async def test_a_server_is_offered_no_tools_and_sees_no_open_call() -> None:
    answers = [text(LOOK), completion("Hm.", tool_calls=[sent_call("look", {}, "n")]), text("Done.")]
    with FakeOpenAI(answers) as server:
        async with Endpoint(EndpointSettings(model="m", base_url=server.url)) as client:
            agent = PromptedAgent(EndpointAgent(client), Plain())
            episode = await run_episode(toy_task(), DOMAIN.world(), agent, Lines("a", "b"))
    assert episode.stop is StopReason.USER_STOP
    assert all("tools" not in body for body in server.bodies)
    assert server.bodies[1]["messages"][-1] == {"role": "user", "content": f"{LOOK} -> pending"}
    roles = [(m["role"], m.get("tool_call_id")) for m in server.bodies[2]["messages"][-3:]]
    assert roles == [("assistant", None), ("tool", "n"), ("user", None)]
