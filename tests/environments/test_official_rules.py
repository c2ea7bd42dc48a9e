"""The rules by which the benchmarks' own episodes are played: broken messages, and who may stop when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loop_kit import Puppet, call, say
from muarl.agents.base import AgentTurn
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rules import LenientRules, Limits, Rules
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason
from muarl_worlds.acebench.protocol import AceRules
from muarl_worlds.bfcl.protocol import QwenRules
from muarl_worlds.tau.protocol import Tau1Rules, Tau2Rules
from support.toy_shop import Lines, Toy, toy_task

DOMAIN = Toy()
LOOK = call("look", order_id="#W12")
CANCEL = call("cancel", order_id="#W12")
BROKEN = ToolCall("bad", "look", invalid="not valid JSON", raw="{")
FREE = Limits(turns=None, tool_errors=None, user_calls=None)


def play(agent: Any, user: Any, limits: Limits = FREE, **options: Any) -> Episode:
    world = options.pop("world", None) or DOMAIN.world()
    return asyncio.run(run_episode(toy_task(), world, agent, user, limits, **options))


def told(agent: Puppet) -> list[list[str | None]]:
    """The texts that the agent heard before each of its messages."""
    return [[m.content for m in heard] for heard in agent.sessions[0].told]


@pytest.mark.parametrize(("rules", "row"), [(LenientRules(), 1), (QwenRules(), 2)])
def test_a_message_without_a_call_that_is_run_ends_the_row(rules: Rules, row: int) -> None:
    agent = Puppet(say(None, LOOK), say(None, BROKEN, LOOK), say(None, LOOK), "Done.")
    episode = play(agent, Lines("a", "b"), Limits(agent_calls=1), rules=rules)
    assert episode.stop is (StopReason.USER_STOP if row == 1 else StopReason.MAX_TURNS)
    assert sum(m.role == "tool" for m in episode.messages) == 2


# ── broken messages ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rules", [LenientRules(), QwenRules()])
@pytest.mark.parametrize(
    "message",
    [
        say(None),
        say(""),
        say(" \n"),
        say("Wait.", BROKEN),
        say(None, BROKEN, BROKEN),
        AgentTurn(say(None), StopReason.EMPTY_REPLY),
        AgentTurn(say("I was just about"), StopReason.TURN_LENGTH),
        AgentTurn(say(None), StopReason.TURN_LENGTH),
        AgentTurn(say("Wait.", BROKEN), StopReason.TURN_LENGTH),
    ],
)
def test_a_broken_message_passes_the_word_to_the_user(message: Any, rules: Rules) -> None:
    agent = Puppet(message, "Done.")
    episode = play(agent, Lines("Cancel it.", "And?"), Limits(tool_errors=1), rules=rules)
    assert episode.stop is StopReason.USER_STOP
    assert [m.role for m in episode.messages] == ["assistant", "user", "assistant", "user", "assistant", "user"]
    assert told(agent)[1:] == [["And?"]], "nothing but what the user says"


def test_with_a_call_that_cannot_be_read_nothing_of_the_message_is_run() -> None:
    world = DOMAIN.world()
    agent = Puppet(say(None, CANCEL, BROKEN), "Done.")
    episode = play(agent, Lines("a", "b"), world=world, rules=LenientRules())
    assert not world.writes and not any(m.role == "tool" for m in episode.messages)
    assert episode.messages[2].tool_calls == (CANCEL, BROKEN), "but it stands in the episode as it was written"


def test_calls_that_cannot_be_read_may_be_passed_over() -> None:
    world = DOMAIN.world()
    first, second = call("look", "a", order_id="#W12"), call("cancel", "b", order_id="#W12")
    agent = Puppet(say(None, first, BROKEN, second), "Done.")
    episode = play(agent, Lines("a"), Limits(tool_errors=1), world=world, rules=QwenRules())
    assert episode.stop is StopReason.USER_STOP and [c.name for c in world.writes] == ["cancel"]
    heard = agent.sessions[0].told[1]
    assert [(m.role, m.tool_call_id, m.content) for m in heard] == [("tool", "a", "pending"), ("tool", "b", "done")]


@pytest.mark.parametrize("rules", [LenientRules(), QwenRules()])
def test_a_full_context_ends_the_episode_whatever_the_rules_say(rules: Rules) -> None:
    episode = play(Puppet(AgentTurn(say(""), StopReason.CONTEXT_FULL)), Lines("a"), rules=rules)
    assert episode.stop is StopReason.CONTEXT_FULL


@pytest.mark.parametrize(
    ("rules", "heard"),
    [(LenientRules(), ["", None]), (QwenRules(), ["", None]), (Tau1Rules(), [""]), (Tau2Rules(), []), (Rules(), [])],
)
def test_what_a_user_says_may_be_nothing(rules: Rules, heard: list[Any]) -> None:
    for text in ("", None):
        agent = Puppet("Pardon?")
        episode = play(agent, Lines("a", Message("user", text)), rules=rules)
        if text in heard:
            assert episode.stop is StopReason.USER_STOP and told(agent)[1] == [text]
        else:
            assert episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "user"


def test_words_beside_an_unreadable_call_are_not_for_the_user() -> None:
    user = Lines("a", "b")
    play(Puppet(say("Secret.", BROKEN), "Done."), user, rules=LenientRules())
    assert "Secret." not in [m.content for heard in user.heard for m in heard]


# ── who ends it, and when (ACEBench) ─────────────────────────────────────────────────────────────────────────────────

STOP = "I think so. ###STOP###"
ACE = AceRules()


def test_only_by_some_rules_an_agent_may_end_the_conversation() -> None:
    episode = play(Puppet("Hm.", STOP), Lines("a", "b", "c"), rules=ACE)
    assert episode.stop is StopReason.AGENT_STOP and episode.stop.chosen
    assert episode.messages[-1] == say(STOP)
    assert play(Puppet("Hm.", STOP), Lines("a", "b", "c")).stop is StopReason.USER_STOP


def test_an_agents_stop_word_ends_it_beside_calls_too_and_they_are_not_run() -> None:
    world = DOMAIN.world()
    episode = play(Puppet("Hm.", say(STOP, CANCEL), "Done."), Lines("a", "b"), world=world, rules=ACE)
    assert episode.stop is StopReason.AGENT_STOP and not world.writes
    assert episode.messages[-1] == say(STOP, CANCEL)
    word = call("look", order_id=STOP)
    spoken = play(Puppet("Hm.", say(None, word), "Done."), Lines("a", "b"), rules=ACE)
    assert spoken.stop is StopReason.USER_STOP, "a word among a call's arguments is none"


def test_an_agent_stops_with_the_words_of_the_rules_only() -> None:
    rules = AceRules(stop_words=("finish conversation",))
    agent = Puppet("###STOP###", "###STOP###", "Well, finish conversation.")
    episode = play(agent, Lines("a", "b", "c", stop=None), rules=rules)
    assert episode.stop is StopReason.AGENT_STOP and len(episode.messages) == 7


def test_stop_words_count_after_three_steps() -> None:
    agent_first = play(Puppet(STOP), Lines("a", stop=None), rules=ACE)
    assert (len(agent_first.messages) - 1, agent_first.stop) == (4, StopReason.AGENT_STOP)
    user_first = play(Puppet("Hm."), Lines(STOP, stop=None), rules=ACE)
    assert (len(user_first.messages) - 1, user_first.stop) == (5, StopReason.USER_STOP)


def test_the_results_of_a_message_are_one_step() -> None:
    episode = play(Puppet(say(None, LOOK, LOOK), STOP), Lines("a", "b", stop=None), rules=ACE)
    assert episode.stop is StopReason.AGENT_STOP and len(episode.messages) == 6
    spoken = play(Puppet(say(None), STOP), Lines("a", "b", stop=None), rules=ACE)
    assert spoken.stop is StopReason.AGENT_STOP and len(spoken.messages) == 5


def test_the_last_step_outdoes_an_agents_stop_word() -> None:
    assert play(Puppet(STOP), Lines("a"), Limits(steps=4), rules=ACE).stop is StopReason.MAX_TURNS
    assert play(Puppet(STOP), Lines("a"), Limits(steps=5), rules=ACE).stop is StopReason.AGENT_STOP
