"""Worlds that are waited for: tools that take their time, fail, or stop answering; opened and closed once each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from loop_kit import Puppet, call, roll_out, say
from muarl.basics.errors import DataError, InfrastructureError
from muarl.domains.base import World
from muarl.domains.tasks import Task
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.episode_runner import requests_for
from muarl.rollouts.rollout import Rollout, RolloutError
from muarl.rollouts.rules import Limits
from muarl.types.chat import Requestor, ToolCall, ToolResult
from muarl.types.episode import Episode, StopReason, Verdict
from support.toy_shop import Lines, Toy, toy_task

DOWN = InfrastructureError("server gone", boundary="world")
LOOK = call("look", "a", order_id="#W12")
CANCEL = call("cancel", "b", order_id="#W12")


class SlowWorld(World):
    """Notes what is done with it; its domain's hooks say how it behaves."""

    domain: Slow

    def __init__(self, domain: Slow, task: Task | None) -> None:
        super().__init__(domain, task)
        self.opened = self.closed = self.asked = self.finished = 0
        domain.worlds.append(self)

    async def aopen(self) -> None:
        self.opened += 1
        await asyncio.sleep(0)
        await self.domain.when("open", self)

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1

    async def answers(self, requestor: Requestor, calls: Iterable[ToolCall]) -> AsyncIterator[ToolResult]:
        try:
            for result in self.call_all(requestor, calls):
                self.asked += 1
                await self.domain.when("answer", self)
                yield result
        finally:
            self.finished += 1
            await self.domain.when("finish", self)


class Slow(Toy):
    """``hooks``: what happens when a world is opened, is about to answer, or is done with a message."""

    name: ClassVar[str] = "toy"

    def __init__(self, **hooks: Callable[[SlowWorld], Any]) -> None:
        super().__init__()
        self.hooks = hooks
        self.worlds: list[SlowWorld] = []

    def world(self, task: Task | None = None) -> SlowWorld:
        return SlowWorld(self, task)

    async def when(self, point: str, world: SlowWorld) -> None:
        found = self.hooks[point](world) if point in self.hooks else None
        if isinstance(found, Exception):
            raise found
        if found is not None:
            await found


async def play(domain: Slow, agent: Any, user: Any = None, limits: Limits | None = None) -> Episode:
    return await run_episode(toy_task(), domain.world(), agent, user or Lines("a"), limits)


# ── one episode ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_results_are_waited_for_one_by_one_in_order() -> None:
    domain = Slow(answer=lambda world: asyncio.sleep(0.01))
    agent = Puppet(say(None, LOOK, CANCEL), say(None, LOOK), "Done.")
    episode = await play(domain, agent)
    assert episode.stop is StopReason.USER_STOP
    results = [t for t in episode.turns if t.message.role == "tool"]
    assert [(t.message.tool_call_id, t.message.content) for t in results] == [
        ("a", "pending"),
        ("b", "done"),
        ("a", "cancelled"),
    ]
    assert all(t.seconds >= 0.009 for t in results)
    assert episode.timings["world"] >= sum(t.seconds for t in results)
    (world,) = domain.worlds
    assert (world.opened, world.asked, world.finished, world.closed) == (1, 3, 2, 0), "whoever scores it closes it"


async def test_while_one_world_is_waited_for_others_go_on() -> None:
    first_asked = asyncio.Event()

    async def wait(world: SlowWorld) -> None:
        if world is domain.worlds[0]:
            await first_asked.wait()  # which only the second one's tool sets
        else:
            first_asked.set()

    domain = Slow(answer=wait)
    both = (play(domain, Puppet(say(None, LOOK), "Done.")) for _ in range(2))
    episodes = await asyncio.wait_for(asyncio.gather(*both), 10)
    assert [e.stop for e in episodes] == [StopReason.USER_STOP] * 2


async def test_a_world_that_cannot_be_opened_costs_the_attempt() -> None:
    for failure, text in ((OSError("no socket"), "unexpected OSError: no socket"), (DOWN, "server gone")):
        agent = Puppet("x")
        episode = await play(Slow(open=lambda _, f=failure: f), agent)
        assert episode.stop is StopReason.INFRASTRUCTURE and str(episode.error).startswith(f"world: {text}")
        assert (episode.tags["boundary"], episode.tags["retryable"]) == ("world", True)
        assert not agent.sessions and episode.tokens is None
        assert [m.role for m in episode.messages] == ["assistant"]


async def test_other_problems_of_opening_are_told_the_person() -> None:
    with pytest.raises(DataError, match="not installed"):
        await play(Slow(open=lambda _: DataError("not installed")), Puppet("x"))


@pytest.mark.parametrize("fails", ["raises", "cannot be mended", "answers too little"])
async def test_what_was_answered_before_a_failure_stands(fails: str) -> None:
    failure: Exception = InfrastructureError("gone", boundary="world", retryable=False)

    def second(world: SlowWorld) -> Any:
        return (RuntimeError("boom") if fails == "raises" else failure) if world.asked == 2 else None

    domain = Slow(answer=second)
    if fails == "answers too little":
        domain = Slow()
        domain.world = lambda task=None: Curt(domain, task)  # type: ignore[method-assign]
    agent = Puppet(say(None, LOOK, CANCEL), "Done.")
    episode = await play(domain, agent)
    assert episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "world"
    assert [m.content for m in episode.messages if m.role == "tool"] == ["pending"]
    assert episode.tags["retryable"] is (fails != "cannot be mended")
    if fails != "cannot be mended":
        assert "in tool cancel" in (episode.error or "")
    assert agent.sessions[0].closed == 1


class Curt(SlowWorld):
    """Answers the first call of a message only."""

    async def answers(self, requestor: Requestor, calls: Iterable[ToolCall]) -> AsyncIterator[ToolResult]:
        yield self.call(requestor, next(iter(calls)))


async def test_what_a_world_answers_beside_the_calls_is_not_heard() -> None:
    class Talkative(SlowWorld):
        async def answers(self, requestor: Requestor, calls: Iterable[ToolCall]) -> AsyncIterator[ToolResult]:
            async for result in super().answers(requestor, calls):
                yield result
            yield ToolResult("and another thing")

    domain = Slow()
    domain.world = lambda task=None: Talkative(domain, task)  # type: ignore[method-assign]
    episode = await play(domain, Puppet(say(None, LOOK), "Done."))
    assert [m.content for m in episode.messages if m.role == "tool"] == ["pending"]
    assert episode.stop is StopReason.USER_STOP


async def test_a_world_that_fails_after_its_answers_is_infrastructure_too() -> None:
    episode = await play(Slow(finish=lambda _: OSError("pipe")), Puppet(say(None, LOOK), "Done."))
    assert episode.stop is StopReason.INFRASTRUCTURE and episode.error.startswith("world: unexpected OSError: pipe")


async def test_a_world_that_fails_to_listen_is_infrastructure_too() -> None:
    class Deaf(SlowWorld):
        def hear(self, message: Any) -> None:
            raise ValueError("what?")

    domain = Slow()
    domain.world = lambda task=None: Deaf(domain, task)  # type: ignore[method-assign]
    episode = await play(domain, Puppet("Hm."))
    assert episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "world"


async def test_an_interrupted_call_is_ended_in_the_world_too() -> None:
    domain = Slow(answer=lambda world: asyncio.sleep(60))
    agent = Puppet(say(None, LOOK))
    playing = asyncio.create_task(play(domain, agent))
    while not (domain.worlds and domain.worlds[0].asked):
        await asyncio.sleep(0)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert domain.worlds[0].finished == 1 and agent.sessions[0].closed == 1


async def test_a_users_own_calls_are_waited_for_too() -> None:
    class Phone(Slow):
        """A domain whose user has tools."""

        user_toolkit = Toy

    domain = Phone(answer=lambda world: asyncio.sleep(0))
    user = Lines("a", replace(say(None, replace(LOOK, requestor="user")), role="user"), "b")
    episode = await play(domain, Puppet("Look.", "Done."), user)
    (result,) = [m for m in episode.messages if m.role == "tool"]
    assert (result.content, result.requestor, domain.worlds[0].asked) == ("pending", "user", 1)


# ── many episodes ────────────────────────────────────────────────────────────────────────────────────────────────────

DOING = (say(None, CANCEL), "Done.")


class Users:
    name = "lines"

    def __init__(self, make: Callable[[], Any] = lambda: Lines("Cancel #W12.")) -> None:
        self.make = make

    def __call__(self, task: Task, *, seed: int) -> Any:
        return self.make()


def score(task: Task, world: World, episode: Episode) -> Verdict:
    assert isinstance(world, SlowWorld) and world.closed == 0, "a world is scored before it is closed"
    return Verdict(float(len(world.writes)))


async def run(domain: Slow, count: int = 1, *, agent: Any = None, users: Any = None, **options: Any) -> Rollout:
    requests = requests_for([toy_task(f"t{n}") for n in range(count)], 1, seed=0)
    return await roll_out(
        requests,
        make_world=domain.world,
        agent=agent or Puppet(*DOING),
        make_user=users or Users(),
        **({"score": score} | options),
    )


def each_once(domain: Slow, count: int) -> bool:
    """Whether so many worlds were made, and each was opened and closed once."""
    return [(w.opened, w.closed) for w in domain.worlds] == [(1, 1)] * count


async def test_every_world_is_closed_once_its_episode_is_scored() -> None:
    domain = Slow()
    result = await run(domain, 5)
    assert [e.reward for e in result.episodes] == [1.0] * 5 and each_once(domain, 5)


async def test_a_world_that_failed_is_tried_again_in_a_fresh_one() -> None:
    domain = Slow(answer=lambda world: DOWN if len(domain.worlds) < 3 else None)
    (episode,) = (await run(domain, retries=2)).episodes
    assert episode.stop is StopReason.USER_STOP and episode.reward == 1.0 and episode.tags["attempts"] == 3
    assert "boundary" not in episode.tags and episode.error is None
    assert each_once(domain, 3)


async def test_a_world_that_never_opens_is_given_up_after_its_retries() -> None:
    domain = Slow(open=lambda _: DOWN)
    first, second = (await run(domain, 2, retries=1, give_up=1)).episodes
    assert first.stop is second.stop is StopReason.INFRASTRUCTURE, "and it is no reason to give up the run"
    assert first.tags["attempts"] == 2 and each_once(domain, 4)


@pytest.mark.parametrize(
    "options",
    [
        {"agent": Puppet(KeyError("k"))},
        {"users": Users(lambda: Lines(RuntimeError("boom")))},
        {"score": lambda *_: (_ for _ in ()).throw(InfrastructureError("no judge", boundary="judge"))},
    ],
)
async def test_whatever_fails_each_attempt_closes_its_world(options: dict[str, Any]) -> None:
    domain = Slow()
    (episode,) = (await run(domain, retries=2, **options)).episodes
    assert episode.stop is StopReason.INFRASTRUCTURE and each_once(domain, 3)


async def test_worlds_are_closed_when_the_run_cannot_go_on() -> None:
    dead = InfrastructureError("wrong key", boundary="world", retryable=False)

    def first(world: SlowWorld) -> Any:
        return dead if world is domain.worlds[0] else asyncio.sleep(60)

    domain = Slow(answer=first)
    with pytest.raises(RolloutError, match="wrong key"):
        await run(domain, 4, concurrency=3)
    assert each_once(domain, 3), "the fourth was never made"


@pytest.mark.parametrize("part", ["score", "user"])
async def test_worlds_are_closed_when_something_is_broken_in_the_code(part: str) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    domain = Slow()
    with pytest.raises(ZeroDivisionError):
        await run(domain, **{part: broken} if part == "score" else {"users": Users(broken)})
    assert [w.closed for w in domain.worlds] == [1]


@pytest.mark.parametrize("point", ["open", "answer"])
async def test_interruption_closes_every_world_once(point: str) -> None:
    domain = Slow(**{point: lambda world: asyncio.sleep(60)})
    running = asyncio.create_task(run(domain, 6, concurrency=4))
    while len(domain.worlds) < 4 or not all(w.opened if point == "open" else w.asked for w in domain.worlds):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert each_once(domain, 4)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_limit_cuts_between_messages_and_the_world_is_closed() -> None:
    domain = Slow()
    (episode,) = (await run(domain, agent=Puppet(say(None, LOOK, CANCEL)), limits=Limits(turns=2))).episodes
    assert episode.stop is StopReason.MAX_TURNS and each_once(domain, 1)
    assert domain.worlds[0].asked == 4
