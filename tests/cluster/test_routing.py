"""One sampler over several: sessions stay, move when theirs is lost, and no request waits for ever."""

from __future__ import annotations

import asyncio
import pickle
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError, MuarlError
from muarl.basics.seeds import derive_seed
from muarl.inference.base import Completion, SamplingParams
from muarl.workers.cluster.samplers import ActorRemote, RoutedSampler
from muarl.workers.failures import Failure, ProcessLost

PARAMS = SamplingParams(8, seed=1)


class Fake:
    """A sampler whose completion follows from prompt and seed; ``losses``: which of its calls are lost."""

    def __init__(self, losses: Any = (), *, final: bool = False, version: int = 0) -> None:
        self.losses, self.final, self.version = losses, final, version
        self.seen: list[str | None] = []
        self.closed: list[str] = []

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, session: str | None, seconds: float
    ) -> Completion:
        self.seen.append(session)
        number = len(self.seen) - 1
        await asyncio.sleep(0)
        if self.losses == "all" or number in self.losses:
            raise ProcessLost("it is gone", final=self.final)
        return Completion((derive_seed(*prompt_ids, params.seed) % 1000,), (-1.0,), "stop", self.version)

    def close_session(self, session: str) -> None:
        self.closed.append(session)


def router(*fakes: Fake, deadline: float = 30.0, pause: float = 0.0005, **options: Any) -> RoutedSampler:
    return RoutedSampler(fakes, deadline=deadline, pause=pause, **options)


async def test_a_session_stays_where_it_is_and_sessions_are_spread() -> None:
    fakes = [Fake(), Fake(), Fake()]
    routed = router(*fakes, name="w/")

    async def episode(n: int) -> None:
        for turn in range(4):
            await routed.sample((n, turn), PARAMS, session=f"s{n}")
        routed.close_session(f"s{n}")

    await asyncio.gather(*(episode(n) for n in range(9)))
    assert [len(set(f.seen)) for f in fakes] == [3, 3, 3]
    assert sorted(s for f in fakes for s in set(f.seen)) == [f"w/s{n}" for n in range(9)]
    assert all(set(f.closed) == set(f.seen) and len(f.closed) == 3 for f in fakes)
    routed.close_session("unknown")


async def test_a_session_moves_when_its_sampler_is_lost_and_goes_on_there() -> None:
    fakes = [Fake([1]), Fake()]
    routed = router(*fakes, pause=600.0)  # it is away for all of this test
    answers = [await routed.sample((t,), PARAMS, session="s") for t in range(4)]
    assert [f.seen for f in fakes] == [["s"] * 2, ["s"] * 3]
    alone = router(Fake())
    assert answers == [await alone.sample((t,), PARAMS) for t in range(4)], "nobody can tell from the tokens"
    routed.close_session("s")
    assert fakes[1].closed == ["s"] and not fakes[0].closed


async def test_a_sampler_that_is_back_is_used_again() -> None:
    fakes = [Fake([0]), Fake()]
    routed = router(*fakes)
    await routed.sample((0,), PARAMS, session="a")
    await asyncio.sleep(0.002)
    await asyncio.gather(*(routed.sample((n,), PARAMS, session=f"b{n}") for n in range(4)))
    assert len(fakes[0].seen) == 3


async def test_the_version_is_the_newest_that_was_seen() -> None:
    old, new = Fake(version=3), Fake(version=5)
    routed = router(old, new)
    found = [(await routed.sample((n,), PARAMS, session=s)).version for n, s in enumerate("aba")]
    assert sorted(set(found)) == [3] or routed.version == max(found)
    assert routed.version == max(found)


async def test_all_gone_for_good_ends_the_run_and_silence_ends_the_request() -> None:
    with pytest.raises(InfrastructureError, match="all 2 samplers are lost.*it is gone") as caught:
        await router(Fake("all", final=True), Fake("all", final=True)).sample((1,), PARAMS)
    assert caught.value.boundary == "agent" and not caught.value.retryable
    with pytest.raises(InfrastructureError, match="no completion within 0 s.*it is gone") as caught:
        await router(Fake("all"), Fake("all"), deadline=0.05).sample((1,), PARAMS)
    assert caught.value.boundary == "agent" and caught.value.retryable


async def test_what_the_sampler_has_to_say_passes_through() -> None:
    class Refuses(Fake):
        async def sample(self, *_: Any) -> Completion:
            raise ConfigError("the prompt is too long")

    with pytest.raises(ConfigError, match="too long"):
        await router(Refuses(), Fake()).sample((1,), PARAMS)


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.integers(0, 12), max_size=6), min_size=1, max_size=4),
    st.integers(1, 8),
    st.integers(1, 4),
)
def test_whatever_is_lost_every_turn_is_answered_alike(losses: list[list[int]], episodes: int, turns: int) -> None:
    fakes = [Fake(set(lost)) for lost in losses]
    routed = router(*fakes)
    given: dict[tuple[int, int], list[Completion]] = defaultdict(list)

    async def episode(n: int) -> None:
        for turn in range(turns):
            given[n, turn].append(await routed.sample((n, turn), PARAMS, session=str(n)))

    async def everything() -> None:
        await asyncio.gather(*(episode(n) for n in range(episodes)))

    asyncio.run(everything())
    alone = router(Fake())
    assert len(given) == episodes * turns
    for (n, turn), answers in given.items():
        assert answers == [asyncio.run(alone.sample((n, turn), PARAMS))]
    lost = sum(min(len(f.seen), 13) and sum(k in f.losses for k in range(len(f.seen))) for f in fakes)
    assert sum(len(f.seen) for f in fakes) == episodes * turns + lost
    assert routed._crew.loads == (0,) * len(fakes)


def test_a_router_travels() -> None:
    routed = RoutedSampler([ActorRemote("a", 0), ActorRemote("b", 1)], deadline=5.0, first=1, name="1/")
    there = pickle.loads(pickle.dumps(routed))
    assert [r.name for r in there._remotes] == ["a", "b"] and there._crew.choose() == 1


@pytest.mark.parametrize(
    "problem",
    [
        InfrastructureError("x", boundary="user", retryable=False),
        CheckpointError("y"),
        ConfigError("z"),
        MuarlError("w"),
    ],
)
def test_errors_travel(problem: MuarlError) -> None:
    there = pickle.loads(pickle.dumps(Failure.of(problem))).error()
    assert type(there) is type(problem) and str(there) == str(problem)
    assert getattr(there, "boundary", None) == getattr(problem, "boundary", None)
    assert getattr(there, "retryable", None) == getattr(problem, "retryable", None)


def test_errors_of_kinds_that_are_not_known_become_the_nearest() -> None:
    class Odd(MuarlError):
        pass

    assert type(Failure.of(Odd("a")).error()) is MuarlError
    assert type(Failure("annotations", "b").error()) is MuarlError
