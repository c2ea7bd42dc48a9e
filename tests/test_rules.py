"""Rules and limits in which benchmarks differ: broken messages, who may stop when, how often an agent may call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from loop_kit import Lines, Puppet, Toy, call, say, toy_task
from muarl.agents.base import AgentTurn, TakesTools
from muarl.chat import Message, ToolCall, ToolSpec
from muarl.conversation import Limits, Rules, run_episode
from muarl.episode import Episode, StopReason
from muarl.users.base import UserTurn
from muarl.users.turns import TurnsUser

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


# ── calls in a row ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_message_with_calls_too_many_is_answered_and_then_the_episode_is_cut() -> None:
    episode = play(Puppet(say(None, LOOK, LOOK)), Lines("a"), Limits(turns=None, agent_calls=20))
    assert episode.stop is StopReason.MAX_TURNS and episode.stop.truncated
    assert sum(bool(m.tool_calls) for m in episode.messages) == 21
    assert sum(m.role == "tool" for m in episode.messages) == 42
    assert episode.messages[-1].role == "tool"


def test_as_many_as_are_allowed_are_no_reason_to_cut() -> None:
    agent = Puppet(*[say(None, LOOK)] * 3, "Done.", *[say(None, LOOK)] * 3, "Done.")
    episode = play(agent, Lines("a", "b"), Limits(turns=None, agent_calls=3))
    assert episode.stop is StopReason.USER_STOP, "words of the agent begin a new row"
    assert sum(bool(m.tool_calls) for m in episode.messages) == 6


def test_no_call_at_all_may_be_allowed() -> None:
    episode = play(Puppet(say(None, LOOK), "Done."), Lines("a"), Limits(agent_calls=0))
    assert episode.stop is StopReason.MAX_TURNS and episode.messages[-1].content == "pending"


@pytest.mark.parametrize(("broken", "row"), [("passes", 1), ("skips", 2)])
def test_a_message_without_a_call_that_is_run_ends_the_row(broken: Any, row: int) -> None:
    agent = Puppet(say(None, LOOK), say(None, BROKEN, LOOK), say(None, LOOK), "Done.")
    episode = play(agent, Lines("a", "b"), Limits(agent_calls=1), rules=Rules(broken=broken))
    assert episode.stop is (StopReason.USER_STOP if row == 1 else StopReason.MAX_TURNS)
    assert sum(m.role == "tool" for m in episode.messages) == 2


# ── broken messages ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("broken", ["passes", "skips"])
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
def test_a_broken_message_passes_the_word_to_the_user(message: Any, broken: Any) -> None:
    agent = Puppet(message, "Done.")
    episode = play(agent, Lines("Cancel it.", "And?"), Limits(tool_errors=1), rules=Rules(broken=broken))
    assert episode.stop is StopReason.USER_STOP
    assert [m.role for m in episode.messages] == ["assistant", "user", "assistant", "user", "assistant", "user"]
    assert told(agent)[1:] == [["And?"]], "nothing but what the user says"


def test_with_a_call_that_cannot_be_read_nothing_of_the_message_is_run() -> None:
    world = DOMAIN.world()
    agent = Puppet(say(None, CANCEL, BROKEN), "Done.")
    episode = play(agent, Lines("a", "b"), world=world, rules=Rules(broken="passes"))
    assert not world.writes and not any(m.role == "tool" for m in episode.messages)
    assert episode.messages[2].tool_calls == (CANCEL, BROKEN), "but it stands in the episode as it was written"


def test_calls_that_cannot_be_read_may_be_passed_over() -> None:
    world = DOMAIN.world()
    first, second = call("look", "a", order_id="#W12"), call("cancel", "b", order_id="#W12")
    agent = Puppet(say(None, first, BROKEN, second), "Done.")
    episode = play(agent, Lines("a"), Limits(tool_errors=1), world=world, rules=Rules(broken="skips"))
    assert episode.stop is StopReason.USER_STOP and [c.name for c in world.writes] == ["cancel"]
    heard = agent.sessions[0].told[1]
    assert [(m.role, m.tool_call_id, m.content) for m in heard] == [("tool", "a", "pending"), ("tool", "b", "done")]


@pytest.mark.parametrize("broken", ["passes", "skips"])
def test_a_full_context_ends_the_episode_whatever_the_rules(broken: Any) -> None:
    episode = play(Puppet(AgentTurn(say(""), StopReason.CONTEXT_FULL)), Lines("a"), rules=Rules(broken=broken))
    assert episode.stop is StopReason.CONTEXT_FULL


@pytest.mark.parametrize(
    ("broken", "heard"), [("passes", ["", None]), ("skips", ["", None]), ("ends", [""]), ("answered", [])]
)
def test_what_a_user_says_may_be_nothing(broken: Any, heard: list[Any]) -> None:
    for text in ("", None):
        agent = Puppet("Pardon?")
        episode = play(agent, Lines("a", Message("user", text)), rules=Rules(broken=broken))
        if text in heard:
            assert episode.stop is StopReason.USER_STOP and told(agent)[1] == [text]
        else:
            assert episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "user"


def test_words_beside_an_unreadable_call_are_not_for_the_user() -> None:
    user = Lines("a", "b")
    play(Puppet(say("Secret.", BROKEN), "Done."), user, rules=Rules(broken="passes"))
    assert "Secret." not in [m.content for heard in user.heard for m in heard]


# ── who ends it, and when ────────────────────────────────────────────────────────────────────────────────────────────

STOP = "I think so. ###STOP###"


def test_an_agent_may_be_allowed_to_end_the_conversation() -> None:
    rules = Rules(agent_may_stop=True)
    episode = play(Puppet("Hm.", STOP), Lines("a", "b", "c"), rules=rules)
    assert episode.stop is StopReason.AGENT_STOP and episode.stop.chosen
    assert episode.messages[-1] == say(STOP)
    assert play(Puppet(STOP, "Hm."), Lines("a", "b")).stop is StopReason.USER_STOP


def test_an_agents_stop_word_ends_it_beside_calls_too_and_they_are_not_run() -> None:
    world = DOMAIN.world()
    episode = play(Puppet(say(STOP, CANCEL), "Done."), Lines("a"), world=world, rules=Rules(agent_may_stop=True))
    assert episode.stop is StopReason.AGENT_STOP and not world.writes
    assert episode.messages[-1] == say(STOP, CANCEL)
    word = call("look", order_id=STOP)
    spoken = play(Puppet(say(None, word), "Done."), Lines("a"), rules=Rules(agent_may_stop=True))
    assert spoken.stop is StopReason.USER_STOP, "a word among a call's arguments is none"


def test_an_agent_stops_with_the_words_of_the_rules_only() -> None:
    rules = Rules(agent_may_stop=True, stop_words=("finish conversation",))
    agent = Puppet("###STOP###", "Well, finish conversation.")
    episode = play(agent, Lines("a", "b", stop=None), rules=rules)
    assert episode.stop is StopReason.AGENT_STOP and len(episode.messages) == 5


@pytest.mark.parametrize(
    ("after", "messages", "stop"),
    [
        (0, 1, StopReason.USER_STOP),
        (1, 2, StopReason.AGENT_STOP),
        (2, 3, StopReason.USER_STOP),
        (3, 4, StopReason.AGENT_STOP),
        (4, 5, StopReason.USER_STOP),
    ],
)
def test_stop_words_count_after_so_many_steps(after: int, messages: int, stop: StopReason) -> None:
    rules = Rules(agent_may_stop=True, stop_after=after)
    episode = play(Puppet(STOP), Lines(STOP, stop=None), rules=rules)
    assert (len(episode.messages) - 1, episode.stop) == (messages, stop)


def test_the_results_of_a_message_are_one_step() -> None:
    rules = Rules(agent_may_stop=True, stop_after=3)
    episode = play(Puppet(say(None, LOOK, LOOK), STOP), Lines("a", "b", stop=None), rules=rules)
    assert episode.stop is StopReason.AGENT_STOP and len(episode.messages) == 6


def test_the_last_step_outdoes_an_agents_stop_word() -> None:
    rules = Rules(agent_may_stop=True)
    assert play(Puppet(STOP), Lines("a"), Limits(steps=2), rules=rules).stop is StopReason.MAX_TURNS
    assert play(Puppet(STOP), Lines("a"), Limits(steps=3), rules=rules).stop is StopReason.AGENT_STOP


# ── tools that come later ────────────────────────────────────────────────────────────────────────────────────────────

SHIP = ToolSpec("ship", "Ship an order.", {"type": "object", "properties": {}})


class Greedy(Puppet):
    """An agent whose sessions take tools, and note when."""

    def __init__(self, *acts: Any) -> None:
        super().__init__(*acts)
        self.offered: list[tuple[int, tuple[ToolSpec, ...]]] = []

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> Any:
        opened = super().open(system, tools, seed=seed, session=session)

        def offer(more: Sequence[ToolSpec]) -> None:
            self.offered.append((len(opened.told), tuple(more)))

        opened.offer = offer  # type: ignore[attr-defined]
        return opened


def test_tools_that_a_user_brings_are_offered_before_the_agent_hears_the_message() -> None:
    agent = Greedy("One.", "Two.")
    episode = play(agent, TurnsUser([("a", ()), ("b", (SHIP,))]))
    assert isinstance(agent.sessions[0], TakesTools)
    assert agent.offered == [(1, (SHIP,))], "once, and nothing where a message brings none"
    assert episode.tools == DOMAIN.tool_specs(), "the episode says what it began with"


def test_sessions_that_take_no_tools_are_left_alone() -> None:
    agent = Puppet("One.", "Two.")
    episode = play(agent, TurnsUser([("a", (SHIP,)), ("b", ())]))
    assert not isinstance(agent.sessions[0], TakesTools)
    assert episode.stop is StopReason.USER_STOP and told(agent)[1] == ["b"]


# ── what the world hears ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_world_hears_what_the_user_says_and_not_what_it_does() -> None:
    heard: list[str | None] = []

    class Phone(Toy):
        """A domain whose user has tools, and whose worlds listen."""

        user_toolkit = Toy

        def world(self, task: Any = None) -> Any:
            made = super().world(task)
            made_class = type(made)

            class Listening(made_class):  # type: ignore[valid-type,misc]
                def hear(self, message: Message) -> None:
                    heard.append(message.content)

            return Listening(self, task)

    user = Lines("a", Message("user", "looks", (call("look", "u", order_id="#W13"),)), "b")
    assert play(Puppet("One.", "Two."), user, world=Phone().world()).stop is StopReason.USER_STOP
    assert heard == ["a", "b", "###STOP###"]


# ── users that hold something ────────────────────────────────────────────────────────────────────────────────────────


class Held(Lines):
    """A user that must be closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


class Refusing(Puppet):
    """An agent that cannot be opened."""

    def open(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no room")


@pytest.mark.parametrize(
    ("agent", "lines", "stop"),
    [
        (Puppet("x"), ("a",), StopReason.USER_STOP),
        (Puppet("x"), (RuntimeError("boom"),), StopReason.INFRASTRUCTURE),
        (Puppet(KeyError("k")), ("a",), StopReason.INFRASTRUCTURE),
        (Refusing(), ("a",), StopReason.INFRASTRUCTURE),
    ],
)
def test_a_user_is_closed_once_however_it_ends(agent: Any, lines: tuple[Any, ...], stop: StopReason) -> None:
    user = Held(*lines)
    episode = play(agent, user)
    assert episode.stop is stop and user.closed == 1
    if isinstance(agent, Refusing):
        assert episode.tags["boundary"] == "agent" and "no room" in (episode.error or "")


async def test_a_user_is_closed_once_when_it_is_interrupted() -> None:
    agent, user = Puppet("x"), Held("a", 60.0)
    playing = asyncio.create_task(run_episode(toy_task(), DOMAIN.world(), agent, user))
    while not agent.sessions or len(user.heard) < 2:
        await asyncio.sleep(0)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert user.closed == 1 and agent.sessions[0].closed == 1


async def test_lines_bring_their_tools_with_them() -> None:
    user = TurnsUser([("a", (SHIP,))])
    assert await user.reply([]) == UserTurn(Message("user", "a"), tools=(SHIP,))
