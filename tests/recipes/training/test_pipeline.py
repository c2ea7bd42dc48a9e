"""Bounded staleness: the window's promises under any order of events, and the pipeline over episodes made up here."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import MuarlError
from muarl.config.load import load_config
from muarl.recipes.training.loss_settings import samples_of
from muarl.recipes.training.pipeline import MAX_DRAWS, Pipeline, StepData, Window, staleness
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rollout import LocalExecutor, RolloutError, collect_groups
from muarl.types.episode import Episode, StopReason, TokenTrace, Verdict
from support.episodes import UNBROKEN
from support.toy_shop import toy_task
from support.waiting import happened, settled

# ---- the window


@settings(max_examples=300)
@given(
    batch=st.integers(1, 4),
    bound=st.integers(1, 4),
    steps=st.integers(1, 8),
    whole=st.booleans(),
    lazy=st.floats(0, 1),
    reject=st.floats(0, 0.4),
    seed=st.integers(0, 10**6),
)
def test_whatever_finishes_when(
    batch: int, bound: int, steps: int, whole: bool, lazy: float, reject: float, seed: int
) -> None:
    """Random schedules: no batch is older than allowed, the capacity rule holds, no task is used twice or forgotten,
    and there is always something that can happen."""
    source = random.Random(seed)
    window = Window(batch, bound, steps, whole=whole)
    bound = window.staleness
    begun: dict[int, int] = {}  # number: updates made when it was begun
    running: list[int] = []
    used: list[int] = []
    rejected: list[int] = []
    learning = False
    while window.step < steps:
        moves = []
        if window.room > 0:
            moves += ["begin"] * (1 if source.random() < lazy else 6)
        if running:
            moves += ["finish"] * 3
        if not learning and window.choose() is not None:
            moves += ["take"] * 3
        if learning and (not whole or window.taken == steps or window.choose() is not None):
            moves.append("learned")
        assert moves, "the window is stuck"
        move = source.choice(moves)
        if move == "begin":
            number = window.begin()
            assert number not in begun
            begun[number] = window.step
            running.append(number)
        elif move == "finish":
            number = running.pop(source.randrange(len(running)))
            if source.random() < reject:
                window.reject(number)
                rejected.append(number)
            else:
                window.finish(number)
        elif move == "take":
            taken = window.take()
            assert len(taken) == batch
            assert all(window.step - begun[n] <= bound for n in taken), "a batch is too stale"
            used += taken
            learning = True
        else:
            window.learned()
            learning = False
        accepted = len(used) + window.waiting
        assert accepted + len(running) <= (bound + window.step + 1) * batch
        assert window.running == len(running)
        if whole:
            assert len(begun) - len(rejected) <= (window.taken + 1) * batch
    assert sorted(used + rejected) == list(range(len(begun))), "every task is used once, and none is begun in vain"
    assert len(used) == steps * batch
    assert window.room == 0


def test_finishing_first_counts_only_as_far_as_the_others_can_wait() -> None:
    window = Window(2, 2, 10)
    numbers = [window.begin() for _ in range(window.room)]
    assert numbers == [0, 1, 2, 3, 4, 5]
    for n in (5, 4):
        window.finish(n)
    assert window.take() == [4, 5], "the four others still have batches 1 and 2"
    assert window.overtaken([4, 5]) == 1
    window.learned()
    assert [window.begin() for _ in range(window.room)] == [6, 7]
    for n in (7, 6):
        window.finish(n)
    assert window.choose() is None, "0 to 3 fill the batches that they may still be in"
    window.finish(3)
    assert window.choose() is None
    window.finish(1)
    assert window.take() == [1, 3]
    assert window.overtaken([1, 3]) == 1  # by the straggler 0
    window.learned()
    window.finish(0)
    window.finish(2)
    assert window.take() == [0, 2] and window.overtaken([0, 2]) == 0


def test_one_step_off_begins_whole_batches_only() -> None:
    window = Window(2, 7, 3, whole=True)
    assert window.staleness == 1 and window.room == 2
    for _ in range(2):
        window.finish(window.begin())
    assert window.room == 0, "the second batch begins with the first update"
    assert window.take() == [0, 1] and window.room == 2
    window.finish(window.begin())
    window.learned()
    assert window.room == 1


def test_a_window_goes_on_from_its_state() -> None:
    window = Window(2, 1, 4)
    for _ in range(4):
        window.begin()
    for n in (3, 0, 1):
        window.finish(n)
    assert window.take() == [0, 3]
    window.learned()
    state = window.state()
    assert state == {"first": 4, "again": [1, 2]}
    resumed = Window(2, 1, 4, step=1, **state)
    assert [resumed.begin() for _ in range(resumed.room)] == [1, 2, 4, 5]
    assert resumed.state() == {"first": 6, "again": [1, 2, 4, 5]}
    with pytest.raises(ValueError, match="full"):
        resumed.begin()
    with pytest.raises(ValueError, match="no batch"):
        resumed.take()


# ---- the pipeline

GROUP = 4


def requests(number: int) -> list[RolloutRequest]:
    return requests_for([toy_task(f"t{number}")], GROUP, seed=1, label=str(number))


def scored(request: RolloutRequest, versions: list[int], reward: float | None = None) -> Episode:
    trace = TokenTrace()
    for version in versions:
        trace.append_given([1, 2])
        trace.append_sampled([3, 4], [-0.5, -0.5], version)
    value = float(request.number % 2) if reward is None else reward
    return Episode(
        id=request.episode_id,
        task_id=request.task.id,
        domain="toy",
        turns=[],
        stop=StopReason.USER_STOP,
        group=request.group,
        tokens=trace,
        verdict=Verdict(value, audit=UNBROKEN),
    )


def broken(request: RolloutRequest, *, retryable: bool = True) -> Episode:
    episode = scored(request, [])
    episode.stop, episode.verdict, episode.error = StopReason.INFRASTRUCTURE, None, "user: down"
    episode.tags = {"boundary": "user", "retryable": retryable}
    return episode


class Sampler:
    """What a learner moves: a version."""

    def __init__(self) -> None:
        self.version = 0
        self.alive = self.most = 0
        self.played: Counter[str] = Counter()

    async def play(self, request: RolloutRequest) -> Episode:
        """A few turns, each after a random wait; the versions of the turns are those of their moment."""
        source = random.Random(request.seed)
        self.played[request.group] += 1
        self.alive += 1
        self.most = max(self.most, self.alive)
        versions = []
        try:
            for _ in range(source.randint(1, 4)):
                versions.append(self.version)
                await asyncio.sleep(source.choice((0, 0, 0.001, 0.004)))
        finally:
            self.alive -= 1
        return scored(request, versions)

    async def deliver(self) -> None:
        self.version += 1


async def train(
    window: Window, sampler: Any, play: Callable[[RolloutRequest], Awaitable[Episode]] | None = None, **options: Any
) -> list[StepData]:
    """All remaining steps; every batch is checked for its age."""
    seen = []
    executor = LocalExecutor(play or sampler.play, 100)
    async with Pipeline(window, executor, requests, **options) as pipeline:
        while window.step < window.steps:
            played = await pipeline.batch()
            age = staleness(played.groups, sampler.version, sampler.version - window.staleness)
            assert age["staleness_max"] <= window.staleness and age["too_stale"] == 0
            if window.whole:
                assert age["versions_mixed"] == 0
            seen.append(played)
            await asyncio.sleep(0.002)  # the update
            await pipeline.learned(sampler.deliver)
    return seen


def numbers_of(played: list[StepData]) -> list[int]:
    return [int(g.name.split("/")[0]) for p in played for g in p.groups.kept]


@pytest.mark.parametrize("whole", [False, True])
async def test_every_task_is_learned_from_once(whole: bool) -> None:
    sampler = Sampler()
    played = await train(Window(3, 2, 12, whole=whole), sampler, concurrency=10)
    assert sorted(numbers_of(played)) == list(range(36))
    assert all(g.rewards == [0, 1, 0, 1] for p in played for g in p.groups.kept)
    assert set(sampler.played.values()) == {GROUP}
    assert sampler.most <= 10
    assert sum(len(p.episodes) for p in played) == 36 * GROUP
    if whole:
        assert numbers_of(played) == list(range(36)), "batches are whole"


async def test_failures_outside_the_policy_cost_no_task_twice_and_lose_none() -> None:
    sampler = Sampler()

    async def play(request: RolloutRequest) -> Episode:
        episode = await sampler.play(request)
        number = int(request.group.split("/")[0])
        # Every tenth task loses half of its group, every third of the others one episode. No three tenths can be under
        # way at once (9 groups are), so that no whole batch of groups in a row is lost, whatever ends first.
        if number % 10 == 0 and request.number < 2:
            return broken(request)
        return broken(request) if number % 3 == 0 and request.number == 1 else episode

    played = await train(Window(3, 2, 8), sampler, play)
    used = numbers_of(played)
    assert len(used) == 24 and len(set(used)) == 24
    dropped = [int(g.name.split("/")[0]) for p in played for g in p.groups.dropped]
    assert dropped and all(n % 10 == 0 for n in dropped) and not set(dropped) & set(used)
    assert sorted(used + dropped) == list(range(len(used) + len(dropped))), "none is missing"
    kept = {int(g.name.split("/")[0]): len(g.episodes) for p in played for g in p.groups.kept}
    assert all(size == (3 if n % 3 == 0 else 4) for n, size in kept.items())
    assert sum(len(p.episodes) for p in played) == GROUP * (len(used) + len(dropped)), "all that was paid for is told"


async def test_a_straggler_holds_nobody_up_until_its_last_batch_and_is_not_lost() -> None:
    sampler, late = Sampler(), asyncio.Event()

    async def play(request: RolloutRequest) -> Episode:
        if request.group.startswith("0/"):
            await late.wait()
            return scored(request, [0])
        return await sampler.play(request)

    window = Window(2, 3, 6)
    async with Pipeline(window, LocalExecutor(play, 100), requests) as pipeline:
        for _ in range(3):
            assert 0 not in numbers_of([await pipeline.batch()])
            await pipeline.learned(sampler.deliver)
        waiting = asyncio.create_task(pipeline.batch())
        await settled()
        assert not waiting.done(), "this is the last batch that it may be in"
        late.set()
        played = await asyncio.wait_for(waiting, 5)
        assert 0 in numbers_of([played])
        assert staleness(played.groups, sampler.version, 0)["staleness_max"] == 3


async def test_dynamic_sampling_replaces_groups_without_contrast_but_not_for_ever() -> None:
    sampler = Sampler()

    def playing(even: Callable[[int], bool]) -> Callable[[RolloutRequest], Awaitable[Episode]]:
        async def play(request: RolloutRequest) -> Episode:
            same = even(int(request.group.split("/")[0]))
            return scored(request, [sampler.version], 1.0 if same else None)

        return play

    played = await train(Window(2, 1, 4), sampler, playing(lambda n: n % 3 != 0), mixed=True)
    assert all(n % 3 == 0 for n in numbers_of(played))
    played = await train(Window(2, 1, 3), sampler := Sampler(), playing(lambda n: True), mixed=True)
    assert len(numbers_of(played)) == 6
    assert sum(len(p.episodes) for p in played) <= 3 * MAX_DRAWS * 2 * GROUP


async def test_what_cannot_be_helped_ends_the_run() -> None:
    async def hopeless(request: RolloutRequest) -> Episode:
        return broken(request, retryable=False)

    async def down(request: RolloutRequest) -> Episode:
        return broken(request)

    async def bug(request: RolloutRequest) -> Episode:
        raise LookupError("a bug")

    with pytest.raises(RolloutError, match="trying again cannot help"):
        await train(Window(2, 1, 3), Sampler(), hopeless)
    with pytest.raises(MuarlError, match="no group of 8 episodes.*8 failed.*user: down"):
        await train(Window(2, 1, 3), Sampler(), down)
    with pytest.raises(LookupError):
        await train(Window(2, 1, 3), Sampler(), bug)
    assert len(asyncio.all_tasks()) == 1


async def test_waiting_for_an_episode_has_a_deadline() -> None:
    async def never(request: RolloutRequest) -> Episode:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(MuarlError, match=r"no episode has finished for 0 seconds, with 16 begun.*rl\.patience"):
        await train(Window(2, 1, 3), Sampler(), never, patience=0.05)
    assert len(asyncio.all_tasks()) == 1


async def test_leaving_cancels_what_is_under_way() -> None:
    started: list[str] = []
    ended: list[str] = []

    async def play(request: RolloutRequest) -> Episode:
        started.append(request.group)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(request.group)
        raise AssertionError

    training = asyncio.create_task(train(Window(2, 1, 3), Sampler(), play, concurrency=6))
    await happened(lambda: len(started) == 6)
    await settled()
    training.cancel()
    with pytest.raises(asyncio.CancelledError):
        await training
    await asyncio.sleep(0)
    assert len(started) == len(ended) == 6, "no other is begun meanwhile"
    assert len(asyncio.all_tasks()) == 1


async def test_a_resumed_run_uses_what_was_under_way_and_nothing_twice() -> None:
    sampler = Sampler()
    window = Window(3, 2, 10)
    seen = []
    async with Pipeline(window, LocalExecutor(sampler.play, 100), requests) as pipeline:
        for _ in range(4):
            seen.append(await pipeline.batch())
            await pipeline.learned(sampler.deliver)
        state = window.state()
    assert len(state["again"]) > 0
    seen += await train(Window(3, 2, 10, step=4, **state), sampler)
    assert sorted(numbers_of(seen)) == list(range(30))


def test_staleness_by_hand() -> None:
    made = [scored(r, v) for r, v in zip(requests(0), ([5, 5], [4], [2, 5], []), strict=True)]
    found = staleness(collect_groups(made, GROUP), 5, oldest=4)
    # Two tokens a turn: lags 0 0 0 0, 1 1, 3 3 0 0. Only the third mixes versions; the fourth sampled nothing.
    assert found == {
        "staleness_mean": pytest.approx(0.8),
        "staleness_max": 3,
        "versions_mixed": pytest.approx(1 / 3),
        "too_stale": 1,
    }


def test_an_episode_beyond_the_bound_is_left_out_but_compared_with() -> None:
    config = load_config("quickstart", ["rl.advantage=group_mean"])
    made = [scored(r, v, x) for r, v, x in zip(requests(0), ([3], [1, 3], [2], [3]), (1.0, 1.0, 0.0, 0.0), strict=True)]
    groups = collect_groups(made, GROUP)
    assert [s.advantage for s in samples_of(groups, config.rl)] == [0.5, 0.5, -0.5, -0.5]
    assert [s.advantage for s in samples_of(groups, config.rl, oldest=2)] == [0.5, -0.5, -0.5]
