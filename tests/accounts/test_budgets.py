"""Budgets: however many conversations may be under way, no more is spent than the bound and the last one's cost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from muarl.accounts.budgets import Budget, Reserve, RolloutEnd, add_besides, besides_of, count, metered
from muarl.basics.errors import MuarlError
from muarl.domains.tasks import Task
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rollout import LocalExecutor, Rollout, RolloutError, rollout
from muarl.types.episode import Episode, StopReason, Usage

Draw = Callable[[random.Random], float]
COSTS: dict[str, Draw] = {
    "even": lambda rng: rng.uniform(0.5, 1.5),
    "skewed": lambda rng: rng.lognormvariate(0, 0.6),
    "equal": lambda rng: 1.0,
    "free": lambda rng: 0.0,
}


class Clock:
    """Time that passes when everybody waits: (when, future) of sleepers."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    async def sleep(self, seconds: float) -> None:
        until: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, len(self._sleepers), until))
        await until

    async def run(self, work: asyncio.Task[Rollout]) -> Rollout:
        while not work.done():
            for _ in range(20):  # everybody who can do something does it
                await asyncio.sleep(0)
            if self._sleepers:
                self._sleepers.sort(reverse=True, key=lambda s: s[:2])
                self.now, _, until = self._sleepers.pop()
                until.set_result(None)
        return await work


def episode(request: RolloutRequest, usage: Usage) -> Episode:
    return Episode(
        id=request.episode_id,
        task_id=request.task.id,
        domain="d",
        turns=[],
        stop=StopReason.USER_STOP,
        group=request.group,
        user_usage=usage,
    )


def requests(number: int) -> list[RolloutRequest]:
    return requests_for([Task(id=f"t{n}", domain="d", scenario="", actions=()) for n in range(number)], 1, seed=0)


def spend(costs: str, bound: float, concurrency: int, seed: int, *, tokens: bool = False) -> tuple[Rollout, float, int]:
    """Play 200 conversations whose costs (and durations, which go with them) are random; the dearest, and the most that
    were under way at once."""
    rng, clock = random.Random(f"{costs} {bound} {concurrency} {seed}"), Clock()
    drawn: list[float] = []
    under_way = peak = 0

    async def play(request: RolloutRequest) -> Episode:
        nonlocal under_way, peak
        under_way += 1
        peak = max(peak, under_way)
        drawn.append(cost := COSTS[costs](rng))
        await clock.sleep(max(cost, 0.1) * rng.uniform(0.5, 2))
        under_way -= 1
        return episode(request, Usage(prompt_tokens=round(cost * 1000), requests=1, cost=cost))

    async def run() -> Rollout:
        budget = Budget(tokens=round(bound * 1000)) if tokens else Budget(cost=bound)
        return await clock.run(
            asyncio.create_task(rollout(requests(200), LocalExecutor(play, concurrency), budget=budget))
        )

    return asyncio.run(run()), max(drawn), peak


@pytest.mark.parametrize("concurrency", [1, 4, 16, 64, 256])
@pytest.mark.parametrize("costs", ["even", "skewed", "equal"])
def test_the_bound_is_overshot_by_one_conversation_at_most(costs: str, concurrency: int) -> None:
    for seed, bound in enumerate([0.3, 3.0, 40.0]):
        for tokens in (False, True):
            found, dearest, _ = spend(costs, bound, concurrency, seed, tokens=tokens)
            assert found.spent.cost <= bound + dearest + 0.001, (bound, tokens)
            assert found.spent.cost >= bound - 0.001, "what there is, is used"
            assert found.end is (RolloutEnd.TOKENS if tokens else RolloutEnd.COST)


def test_a_bound_that_cannot_be_kept_stops_what_it_bounds() -> None:
    async def play(request: RolloutRequest) -> Episode:
        return episode(request, Usage(prompt_tokens=10, requests=2, uncounted=1))

    for budget in (Budget(cost=1e6), Budget(tokens=10**9)):
        found = asyncio.run(rollout(requests(50), LocalExecutor(play, 16), budget=budget))
        assert (found.end, len(found.episodes), found.spent.uncounted) == (RolloutEnd.UNCOUNTED, 1, 1)
        assert "does not say how many tokens" in found.end.why
    unbounded = asyncio.run(rollout(requests(50), LocalExecutor(play, 16), budget=Budget()))
    assert (unbounded.end, unbounded.spent.uncounted) == (RolloutEnd.COMPLETE, 50)


def test_uncounted_requests_are_written_where_there_are_any() -> None:
    counted, uncounted = Usage(1, 2, 3, 0, 0.5), Usage(1, 2, 3, 0, 0.5, 4)
    assert "uncounted" not in counted.to_json()
    for usage in (counted, uncounted):
        assert Usage.from_json({**usage.to_json(), "id": "x"}) == usage
        assert Usage.from_json({f"judge/{k}": v for k, v in usage.to_json().items()}, "judge/") == usage
    assert uncounted - counted == Usage(uncounted=4)


def test_where_there_is_plenty_all_go_at_once() -> None:
    found, _, peak = spend("even", 1e6, 64, 0)
    assert found.end is RolloutEnd.COMPLETE and len(found.episodes) == 200
    assert peak == 64
    assert spend("free", 1.0, 64, 0)[2] == 64


def test_a_budget_that_is_enough_ends_by_itself() -> None:
    found, _, peak = spend("equal", 200.0 + 1e-6, 16, 0)
    assert found.end is RolloutEnd.COMPLETE and len(found.episodes) == 200
    assert peak > 4, "and not one after the other"


def test_what_was_learned_before_holds_on() -> None:
    reserve = Reserve()
    for _ in range(20):
        reserve.learn(Usage(cost=1.0))
    spent, admitted = Usage(cost=20.0), 0
    while reserve.admits(spent, 40.0, None) and admitted < 100:
        reserve.begin()
        admitted += 1
    assert admitted == 11, "20 left, each with 1 + 16/20 set aside"


def test_cheap_ones_that_finish_first_do_not_speak_for_those_under_way() -> None:
    reserve = Reserve()
    slow = reserve.begin()
    for _ in range(50):
        reserve.end(reserve.begin(), Usage(cost=0.01))
    assert not reserve.admits(Usage(cost=0.5), 10.0, None)
    reserve.end(slow, Usage(cost=5.0))
    assert reserve.admits(Usage(cost=5.5), 10.0, None), "one is always paid for"
    reserve.begin()
    assert not reserve.admits(Usage(cost=5.5), 10.0, None)


async def test_what_breaks_off_makes_room_and_teaches_nothing() -> None:
    reserve = Reserve()

    async def fails(request: RolloutRequest) -> Episode:
        raise MuarlError("gone")

    for _ in range(3):
        with pytest.raises(RolloutError):
            await rollout(requests(9), LocalExecutor(fails, 4), budget=Budget(cost=1.0, reserve=reserve))
    assert reserve.admits(Usage(), 1.0, None)
    reserve.begin()
    assert not reserve.admits(Usage(), 1.0, None), "nothing is known"


async def test_a_rollout_that_is_cancelled_gives_its_room_back() -> None:
    reserve, begun = Reserve(), asyncio.Event()

    async def forever(request: RolloutRequest) -> Episode:
        begun.set()
        return await asyncio.get_running_loop().create_future()

    budget = Budget(cost=1.0, reserve=reserve)
    work = asyncio.create_task(rollout(requests(9), LocalExecutor(forever, 4), budget=budget))
    await begun.wait()
    reserve_is_taken = not reserve.admits(Usage(), 1.0, None)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert reserve_is_taken and reserve.admits(Usage(), 1.0, None)


async def test_judges_wait_for_their_turn() -> None:
    """Twenty judgements at once, each for a dollar."""
    spent = 0.0
    budget = Budget(cost=3.5, besides=lambda: Usage(cost=spent))
    asked = 0

    async def judge() -> None:
        nonlocal spent, asked
        async with budget.turn() as affordable:
            if affordable:
                asked += 1
                await asyncio.sleep(0)
                spent += 1.0
                count(Usage(requests=1, cost=1.0), "judge")

    await asyncio.gather(*(judge() for _ in range(20)))
    assert asked == 4


async def test_a_meter_counts_what_is_asked_in_its_block() -> None:
    async def ask(boundary: str, cost: float) -> None:
        await asyncio.sleep(0)
        count(Usage(requests=1, cost=cost), boundary)

    async def conversation(cost: float) -> tuple[float, float]:
        with metered() as meter:
            async with AsyncExitStack():
                await asyncio.gather(ask("user", cost), ask("judge", 10 * cost))
        return meter.usage.cost, meter.besides.cost

    with metered() as whole:
        found = await asyncio.gather(*(conversation(float(n)) for n in range(1, 4)))
    assert found == [(11.0, 10.0), (22.0, 20.0), (33.0, 30.0)]
    assert whole.usage.cost == 66.0
    count(Usage(cost=1.0), "user")
    assert whole.usage.cost == 66.0


def test_an_episode_carries_what_judges_took_for_it() -> None:
    one = episode(requests(1)[0], Usage(cost=1.0))
    add_besides(one, Usage(requests=1, cost=0.25))
    add_besides(one, Usage(requests=1, cost=0.25))
    again = Episode.from_json(one.to_json())
    assert besides_of(again) == Usage(requests=2, cost=0.5)
    assert Budget(cost=1.0).whole(again).cost == 1.5
