"""Episodes over rollout workers that come and go: none is lost, and none counts twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import DataError, MuarlError
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rollout import Rollout, RolloutError, collect_groups, rollout
from muarl.types.episode import Episode, StopReason, Usage, Verdict
from muarl.workers.cluster.workers import ClusterExecutor
from muarl.workers.failures import ProcessLost
from support.toy_shop import toy_task


def episode(request: RolloutRequest, **more: Any) -> Episode:
    return Episode(
        request.episode_id,
        request.task.id,
        "toy",
        [],
        StopReason.USER_STOP,
        seed=request.seed,
        group=request.group,
        verdict=Verdict(1.0),
        agent_usage=Usage(completion_tokens=1),
        **more,
    )


class Fake:
    """A worker that takes ``waits`` turns of the event loop for an episode; ``losses``: which of its calls are lost."""

    def __init__(self, losses: Any = (), *, final: bool = False, waits: int = 1) -> None:
        self.losses, self.final, self.waits = losses, final, waits
        self.begun: list[str] = []
        self.busy = self.most = self.finished = self.cancelled = 0

    async def ready(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def play(self, request: RolloutRequest, seconds: float) -> Episode:
        number = len(self.begun)
        self.begun.append(request.episode_id)
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            for _ in range(self.waits):
                await asyncio.sleep(0)
            if self.losses == "all" or number in self.losses:
                raise ProcessLost("it died", final=self.final)
            self.finished += 1
            return episode(request)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.busy -= 1


def executor(*workers: Any, concurrency: int = 8, tries: int = 50, patience: float = 30.0) -> ClusterExecutor:
    return ClusterExecutor(workers, concurrency=concurrency, tries=tries, seconds=60.0, patience=patience, pause=0.0005)


def requests(tasks: int, rollouts: int = 4) -> list[RolloutRequest]:
    return requests_for([toy_task(f"t{n}") for n in range(tasks)], rollouts, seed=0)


def played(asked: list[RolloutRequest], *workers: Any, **options: Any) -> Rollout:
    return asyncio.run(rollout(asked, executor(*workers, **options)))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sets(st.integers(0, 20), max_size=8), st.integers(0, 3)), min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(1, 9),
)
def test_every_request_gives_one_episode_whoever_is_lost(
    crew: list[tuple[set[int], int]], tasks: int, concurrency: int
) -> None:
    workers = [Fake(losses, waits=waits) for losses, waits in crew]
    asked = requests(tasks)
    seen: Counter[str] = Counter()
    result = asyncio.run(
        rollout(asked, executor(*workers, concurrency=concurrency), progress=lambda e, n, of: seen.update([e.id]))
    )
    assert [e.id for e in result.episodes] == [r.episode_id for r in asked]
    assert set(seen.values()) <= {1} and len(seen) == len(asked)
    assert result.spent.completion_tokens == len(asked), "what was lost is not paid for twice"
    groups = collect_groups(result.episodes, 4)
    assert [len(g.episodes) for g in groups.kept] == [4] * tasks and not groups.dropped
    lost = sum(sum(n in w.losses for n in range(len(w.begun))) for w in workers)
    assert sum(len(w.begun) for w in workers) == len(asked) + lost
    assert sum(e.tags.get("workers_lost", 0) for e in result.episodes) == lost
    assert all(w.most <= concurrency and w.busy == 0 for w in workers)


def test_requests_are_drawn_when_there_is_room() -> None:
    workers = [Fake(waits=3), Fake(waits=3)]
    drawn = []

    def draw() -> Iterator[RolloutRequest]:
        for request in requests(5):
            drawn.append(len(drawn) - sum(w.finished for w in workers))
            yield request

    async def everything() -> int:
        return len([e async for e in executor(*workers, concurrency=6).run(draw())])

    assert asyncio.run(everything()) == 20
    assert max(drawn) < 6 and [w.most for w in workers] == [3, 3]


def test_an_episode_that_takes_every_worker_with_it_does_not_count() -> None:
    class Poisoned(Fake):
        async def play(self, request: RolloutRequest, seconds: float) -> Episode:
            if request.episode_id == "t0#1":
                self.begun.append(request.episode_id)
                raise ProcessLost("it ran out of memory")
            return await super().play(request, seconds)

    workers = [Poisoned() for _ in range(4)]
    result = played(requests(2), *workers, tries=4)
    bad = [e for e in result.episodes if e.verdict is None]
    assert [e.id for e in bad] == ["t0#1"] and bad[0].stop is StopReason.INFRASTRUCTURE
    assert bad[0].error is not None and bad[0].error.startswith("worker: the episode was begun 4 times")
    assert bad[0].error.endswith("it ran out of memory")
    assert bad[0].tags["workers_lost"] == 4 and bad[0].tags["boundary"] == "worker"
    assert [w.begun.count("t0#1") for w in workers] == [1] * 4, "each time somebody else"
    groups = collect_groups(result.episodes, 4)
    assert [(g.name, len(g.episodes), g.excluded) for g in groups.kept] == [("t0", 3, 1), ("t1", 4, 0)]


def test_a_worker_that_stays_away_costs_no_episode_a_try() -> None:
    """A node that is gone takes a while to come back; its worker is asked often, and fails each time."""

    class Away(Fake):
        asked = 0

        async def ready(self, seconds: float) -> None:
            self.asked += 1
            if self.asked <= 12:
                raise ProcessLost("its node is gone")

    workers = [Away({0}), Away({0})]
    result = played(requests(1), *workers, tries=3, concurrency=1)
    assert [e.verdict is not None for e in result.episodes] == [True] * 4
    assert sum(w.asked for w in workers) > 12 and result.episodes[0].tags["workers_lost"] == 2


def test_no_worker_left_ends_the_run_and_keeps_what_is_finished() -> None:
    gone = Fake({2, 3, 4, 5}, final=True)
    with pytest.raises(RolloutError, match="all 1 rollout workers are lost.*it died") as caught:
        played(requests(3), gone, concurrency=1)
    assert [e.id for e in caught.value.episodes] == ["t0#0", "t0#1"]


def test_nobody_who_answers_ends_the_run_after_a_while() -> None:
    with pytest.raises(RolloutError, match="no rollout worker has answered for 0 seconds.*it died"):
        played(requests(1), Fake("all"), Fake("all"), patience=0.02, tries=10_000)


def test_what_a_worker_has_to_say_passes_through() -> None:
    class Broken(Fake):
        async def play(self, request: RolloutRequest, seconds: float) -> Episode:
            raise DataError("tasks.json: gone")

    with pytest.raises(RolloutError, match=r"tasks\.json"):
        played(requests(1), Broken())


def test_interruption_cancels_what_is_under_way() -> None:
    workers = [Fake(waits=10**9), Fake(waits=10**9)]

    async def interrupted() -> None:
        running = asyncio.create_task(rollout(requests(4), executor(*workers)))
        while sum(w.busy for w in workers) < 8:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(interrupted())
    assert [w.cancelled for w in workers] == [4, 4] and not any(w.busy for w in workers)


async def test_several_rollouts_at_once_share_the_workers() -> None:
    workers = [Fake({1}), Fake(), Fake({0, 3})]
    shared = executor(*workers)
    single = [rollout([request], shared) for request in requests(6)]
    results = await asyncio.gather(*single)
    assert [r.episodes[0].id for r in results] == [r.episode_id for r in requests(6)]
    assert all(len(w.begun) >= 7 for w in workers)


def test_an_executor_that_gives_an_episode_twice_is_found_out() -> None:
    class Twice:
        async def run(self, asked: Iterator[RolloutRequest]) -> Any:
            for request in asked:
                yield episode(request)
                yield episode(request)

    with pytest.raises(RuntimeError, match="t0#0 twice"):
        asyncio.run(rollout(requests(1), Twice()))


def test_an_error_of_the_executor_keeps_its_words() -> None:
    class Late(Fake):
        async def play(self, request: RolloutRequest, seconds: float) -> Episode:
            raise MuarlError(f"{seconds:.0f}")

    with pytest.raises(RolloutError, match="60"):
        played(requests(1), Late())
