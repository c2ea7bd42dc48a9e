"""Failures outside the policy: every request has its one account, and who is left stands for all."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop_kit import call
from muarl.accounts.budgets import Budget, RolloutEnd
from muarl.agents.base import AgentTurn
from muarl.basics.errors import InfrastructureError
from muarl.domains.base import World
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, Rollout, collect_groups, rollout
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Usage, Verdict
from muarl.users.base import UserTurn
from support.toy_shop import Toy, toy_task

COST = Usage(10, 5, 1, 0, 0.01)


def length(seed: int) -> int:
    """How many turns an episode of this seed has: 1 to 12, most of them short."""
    return 1 + int(12 * random.Random(f"length {seed}").random() ** 2)


def right(seed: int) -> float:
    """Whether it is right: long ones seldom are. That is what a survivors' bias would show in."""
    return float(random.Random(f"right {seed}").random() < (0.9 if length(seed) < 4 else 0.2))


class Weather:
    """Users that take part ``length`` times, each time with a chance of failing, all from seeds of their own."""

    name = "weather"

    def __init__(self, chance: float, seed: int = 0) -> None:
        self.chance, self.rng = chance, random.Random(seed)
        self.asked = 0

    def __call__(self, task: Task, *, seed: int) -> _Caller:
        return _Caller(self, length(task.tags["seeds"][seed]))


class _Caller:
    def __init__(self, weather: Weather, turns: int) -> None:
        self.weather, self.left = weather, turns

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        self.weather.asked += 1
        await asyncio.sleep(0)
        if self.weather.rng.random() < self.weather.chance:
            raise InfrastructureError("no answer", boundary="user")
        self.left -= 1
        return UserTurn(Message("user", "###STOP###" if self.left < 0 else f"{self.left} to go"), COST)


class Talker:
    name = "talker"

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> Talker:
        return self

    tokens = None

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        return AgentTurn(Message("assistant", "Go on."))

    def close(self) -> None:
        pass


def score(task: Task, world: World, episode: Episode) -> Verdict:
    return Verdict(right(episode.seed))


def play(chance: float, *, tasks: int, group: int, rounds: int, retries: int = 1, seed: int = 0, **more: Any) -> Any:
    plain = [toy_task(f"t{n}") for n in range(tasks)]
    requests = requests_for(plain, group, seed=seed)
    weather = Weather(chance, seed)
    # The users' seeds follow from the episodes': a task tells which is which.
    from muarl.basics.seeds import derive_seed

    seeds = {derive_seed(r.seed, "user"): r.seed for r in requests}
    for r in requests:
        r.task.tags["seeds"] = seeds  # type: ignore[index]
    runner = EpisodeRunner(
        make_world=Toy().world, agent=Talker(), make_user=weather, score=score, retries=retries, backoff=0.0
    )
    final: list[str] = []
    played = asyncio.run(
        rollout(
            requests,
            LocalExecutor(runner.play, 32),
            rounds=rounds,
            progress=lambda e, *_: final.append(e.id),
            **more,
        )
    )
    return requests, played, final, weather


# ── accounts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.floats(0, 0.7), st.integers(1, 3), st.integers(0, 2), st.integers(0, 1000), st.integers(1, 6))
def test_every_request_has_one_episode_and_every_penny_its_place(
    chance: float, rounds: int, retries: int, seed: int, tasks: int
) -> None:
    requests, played, final, weather = play(chance, tasks=tasks, group=3, rounds=rounds, retries=retries, seed=seed)
    ids = [e.id for e in played.episodes]
    assert ids == [r.episode_id for r in requests]
    assert sorted(final) == sorted(ids), "told of once each"
    used = sum((e.user_usage for e in played.episodes), Usage())
    assert used.requests == played.spent.requests <= weather.asked
    for episode in played.episodes:
        attempts = int(episode.tags.get("attempts", 1))
        assert 1 <= attempts <= rounds * (retries + 1)
        if episode.stop is StopReason.INFRASTRUCTURE:
            assert attempts == rounds * (retries + 1) and episode.verdict is None
            assert episode.error == "user: no answer" and episode.tags["boundary"] == "user"
        else:
            assert episode.reward == right(episode.seed), "it is the episode that it would have been"
    groups = collect_groups(played.episodes, 3)
    assert sum(len(g.episodes) + g.excluded for g in (*groups.kept, *groups.dropped)) == len(requests)


@given(st.floats(0, 0.5), st.integers(1, 3), st.integers(0, 400))
def test_spending_stops_at_the_budget(chance: float, rounds: int, tokens: int) -> None:
    budget = Budget(tokens=tokens or 1)
    requests, played, final, _ = play(chance, tasks=6, group=3, rounds=rounds, budget=budget)
    spent = played.spent.prompt_tokens + played.spent.completion_tokens
    dearest = 15 * 13 * 2
    assert spent < (tokens or 1) + 32 * dearest
    assert (played.end is RolloutEnd.COMPLETE) or spent >= tokens
    assert len(final) == len(played.episodes) == len({e.id for e in played.episodes}) <= len(requests)
    if played.end is RolloutEnd.COMPLETE:
        assert len(played.episodes) == len(requests)


def test_one_after_the_other_spending_stops_within_one_conversation() -> None:
    task = [toy_task("t")]
    task[0].tags["seeds"] = defaultdict(int)  # type: ignore[index]
    runner = EpisodeRunner(make_world=Toy().world, agent=Talker(), make_user=Weather(0.0), score=score)
    requests = requests_for(task, 50, seed=1)
    one = 15 * (length(0) + 1)
    played: Rollout = asyncio.run(
        rollout(requests, LocalExecutor(runner.play, 1), budget=Budget(tokens=3 * one), rounds=2)
    )
    assert played.end is RolloutEnd.TOKENS and len(played.episodes) == 3


# ── bias ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_is_left_stands_for_all() -> None:
    """A user that fails in 2% of all replies, in spite of its endpoint's own retries, costs short and long, right and
    wrong episodes alike."""
    requests, played, _, _ = play(0.02, tasks=120, group=8, rounds=2, retries=2)
    truth = fmean(right(r.seed) for r in requests)
    kept = [e for e in played.episodes if e.verdict is not None]
    assert sum(e.tags.get("attempts", 1) > 1 for e in kept) > 50, "many were tried again"
    assert len(kept) >= len(requests) - 2
    assert abs(fmean(e.reward for e in kept) - truth) < 0.001
    groups = collect_groups(played.episodes, 8)
    assert not groups.dropped
    by_id = {r.episode_id: r for r in requests}
    for group in groups.kept:
        assert group.rewards == [right(by_id[e.id].seed) for e in group.episodes]


@pytest.mark.slow
def test_what_is_lost_in_a_storm_depends_on_length_alone_and_a_second_round_brings_most_back() -> None:
    """At 15% nobody can help that long episodes are lost first. But within a length it is not the wrong ones, and far
    fewer are lost where they are begun again."""
    lost: dict[int, float] = {}
    for rounds in (1, 2):
        requests, played, _, _ = play(0.15, tasks=120, group=8, rounds=rounds, retries=2)
        gone = [e.stop is StopReason.INFRASTRUCTURE for e in played.episodes]
        lost[rounds] = fmean(gone)
        counts: Counter[tuple[int, bool, bool]] = Counter()
        for request, away in zip(requests, gone, strict=True):
            counts[length(request.seed), right(request.seed) > 0.5, away] += 1
        # Mantel and Haenszel: over all lengths, do right ones go more often than wrong ones?
        observed = expected = variance = 0.0
        for turns in range(1, 13):
            a, b = counts[turns, True, True], counts[turns, True, False]
            c, d = counts[turns, False, True], counts[turns, False, False]
            total = a + b + c + d
            if total < 2:
                continue
            observed += a
            expected += (a + b) * (a + c) / total
            variance += (a + b) * (c + d) * (a + c) * (b + d) / (total * total * (total - 1))
        assert variance > 1 and abs(observed - expected) < 4 * variance**0.5, rounds
    assert lost[2] < 0.6 * lost[1], lost


def test_an_outage_does_not_take_the_long_ones() -> None:
    """Users that cannot be reached for a while: what is then under way is what takes long."""

    class Outage(Weather):
        def __call__(self, task: Task, *, seed: int) -> _Caller:
            return _Late(self, length(task.tags["seeds"][seed]))

    class _Late(_Caller):
        async def reply(self, conversation: Sequence[Message]) -> UserTurn:
            self.weather.asked += 1
            if 300 < self.weather.asked < 420:
                raise InfrastructureError("no answer", boundary="user")
            return await super().reply(conversation)

    from muarl.basics.seeds import derive_seed

    for rounds in (1, 2):
        plain = [toy_task(f"t{n}") for n in range(16)]
        requests = requests_for(plain, 8, seed=0)
        for r in requests:
            r.task.tags["seeds"] = {derive_seed(q.seed, "user"): q.seed for q in requests}  # type: ignore[index]
        runner = EpisodeRunner(
            make_world=Toy().world, agent=Talker(), make_user=Outage(0.0), score=score, retries=0, backoff=0
        )
        played = asyncio.run(rollout(requests, LocalExecutor(runner.play, 128), rounds=rounds))
        away = [length(e.seed) for e in played.episodes if e.verdict is None]
        if rounds == 1:
            assert fmean(away) > fmean(length(r.seed) for r in requests), "the harm that a second round mends"
        else:
            assert not away


# ── tools that run out of memory ─────────────────────────────────────────────────────────────────────────────────────


class Hungry(Toy):
    """A shop one of whose tools takes all memory, after it has begun to write."""

    times = 1

    @tool(writes=True)
    def feast(self) -> str:
        """Eat."""
        self.db["orders"]["#W12"]["status"] = "eaten"
        if type(self).times:
            type(self).times -= 1
            raise MemoryError
        return "fine"


class Glutton(Talker):
    def __init__(self) -> None:
        self.acted = 0

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> Glutton:
        return Glutton()

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        self.acted += 1
        if self.acted == 1:
            return AgentTurn(Message("assistant", None, tool_calls=(call("feast"),)))
        return AgentTurn(Message("assistant", "Done."))


@pytest.mark.parametrize("semantics", ["strict", "official"])
@pytest.mark.parametrize(("times", "fine"), [(1, True), (9, False)])
def test_a_tool_out_of_memory_is_no_failure_of_the_agent(semantics: Any, times: int, fine: bool) -> None:
    class Shop(Hungry):
        pass

    Shop.times = times
    task = toy_task()
    task.tags["seeds"] = defaultdict(int)  # type: ignore[index]
    domain = Shop(semantics="official") if semantics == "official" else Shop()
    runner = EpisodeRunner(
        make_world=domain.world, agent=Glutton(), make_user=Weather(0.0), score=score, retries=1, backoff=0
    )
    episode = asyncio.run(runner.play(requests_for([task], 1, seed=0)[0]))
    if fine:
        assert episode.verdict is not None and episode.tags["attempts"] == 2
        assert [m.content for m in episode.messages if m.role == "tool"] == ["fine"]
    else:
        assert episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "world"
        assert episode.error is not None and "MemoryError in tool feast" in episode.error
