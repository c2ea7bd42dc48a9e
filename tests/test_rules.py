"""Limits, rules of one's own, and what else the loop asks of its sides."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from loop_kit import Puppet, call, say
from muarl.agents.base import TakesTools
from muarl.domains.tasks import Task
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rules import Limits, Rules, VoidReply
from muarl.types.chat import Message, Requestor, ToolCall, ToolSpec
from muarl.types.episode import Episode, StopReason
from muarl.users.base import UserTurn
from muarl.users.scripted import TurnsUser
from support.toy_shop import Lines, Toy, toy_task

DOMAIN = Toy()
LOOK = call("look", order_id="#W12")
CANCEL = call("cancel", order_id="#W12")
FREE = Limits(turns=None, tool_errors=None, user_calls=None)


def play(agent: Any, user: Any, limits: Limits = FREE, **options: Any) -> Episode:
    world = options.pop("world", None) or DOMAIN.world()
    return asyncio.run(run_episode(toy_task(), world, agent, user, limits, **options))


def told(agent: Puppet) -> list[list[str | None]]:
    """The texts that the agent heard before each of its messages."""
    return [[m.content for m in heard] for heard in agent.sessions[0].told]


# ── rules of one's own ───────────────────────────────────────────────────────────────────────────────────────────────


class Picky(Rules):
    """Rules of which every answer is another than usual."""

    def opening(self, task: Task) -> tuple[list[Message], Requestor]:
        return [Message("assistant", "Hm?"), Message("user", task.scenario)], "assistant"

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        read = replace(message, content=f"{message.content} {steps}")
        return read, StopReason.AGENT_STOP if "bye" in (message.content or "") else stop

    def calls_to_run(self, message: Message) -> tuple[ToolCall, ...]:
        return message.tool_calls[1:]

    def after_results(self, results: Sequence[Message]) -> StopReason | None:
        return StopReason.BROKEN_CALL if any(m.content == "shipped" for m in results) else None

    def check_user(self, message: Message) -> None:
        if message.content == "rude":
            raise VoidReply("no", boundary="user")

    def user_stops(self, message: Message, steps: int, spoken: int) -> bool:
        return (message.content, steps, spoken) == ("enough", 3, 2)


def test_a_subclass_states_rules_of_its_own() -> None:
    agent = Puppet("a", "b", "c")
    episode = play(agent, Lines("enough", "enough"), rules=Picky())
    assert [m.content for m in episode.messages] == ["Hm?", "Cancel #W12.", "a 0", "enough", "b 2", "enough"]
    assert (episode.stop, told(agent)) == (StopReason.USER_STOP, [["Hm?", "Cancel #W12."], ["enough"]])
    assert play(Puppet("bye"), Lines("x"), rules=Picky()).stop is StopReason.AGENT_STOP
    world = DOMAIN.world()
    assert (
        play(Puppet(say(None, CANCEL, LOOK), "bye"), Lines("x"), world=world, rules=Picky()).messages[3].name == "look"
    )
    assert not world.writes, "only what the rules leave is run"
    other = call("look", order_id="#W13")
    assert play(Puppet(say(None, LOOK, other)), Lines("x"), rules=Picky()).stop is StopReason.BROKEN_CALL
    rude = play(Puppet("a"), Lines("rude"), rules=Picky())
    assert rude.stop is StopReason.INFRASTRUCTURE and rude.tags["void"] and len(rude.messages) == 3


def test_small_differences_are_fields_and_rules_are_sent_to_workers() -> None:
    rules = Picky("Hello.", transfer_ends=True, stop_words=("enough",))
    again = pickle.loads(pickle.dumps(rules))
    assert again == rules != Rules("Hello.", transfer_ends=True, stop_words=("enough",))
    moved = call("transfer_to_human_agents", summary="x")
    both = {
        hand: play(Puppet(say(None, moved), "Hm."), Lines("a"), rules=Rules(transfer_ends=hand)).stop
        for hand in (True, False)
    }
    assert both == {True: StopReason.TRANSFER, False: StopReason.USER_STOP}


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
