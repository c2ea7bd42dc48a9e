"""Whom to ask: loads, pauses, and those who are gone for good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.workers.cluster.crew import LONGEST, Crew

EVENT = st.sampled_from(["begin", "end", "lost", "gone", "found", "wait"])


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_least_busy_is_chosen_and_whom_one_prefers_before_that() -> None:
    crew = Crew(3)
    for member in (0, 0, 1):
        crew.begin(member)
    assert crew.choose() == 2 and crew.choose(0) == 0
    crew.begin(2)
    crew.begin(2)
    crew.end(0)
    crew.end(0)
    assert crew.choose() == 0 and crew.loads == (0, 1, 2)


def test_clients_begin_with_different_members() -> None:
    assert [Crew(3, first=n).choose() for n in range(5)] == [0, 1, 2, 0, 1]


def test_those_to_avoid_are_taken_if_there_is_nobody_else() -> None:
    crew = Crew(2)
    assert crew.choose(besides=[0]) == 1 and crew.choose(0, besides=[0]) == 1
    assert crew.choose(besides=[0, 1]) == 0
    crew.lost(1)
    assert crew.choose(besides=[0]) == 0


def test_one_that_was_lost_is_away_and_longer_each_time_until_it_answers() -> None:
    clock = Clock()
    crew = Crew(2, pause=1.0, clock=clock)
    pauses = []
    for _ in range(8):
        assert crew.lost(0)
        assert not crew.lost(0), "another call that it had been given is no news"
        assert crew.choose(0) == 1
        before = clock.now
        crew.lost(1)
        assert crew.choose() is None
        crew.found(1)
        while crew.choose(0) != 0:
            clock.now += 0.25
        pauses.append(clock.now - before)
    assert pauses == [1, 2, 4, 8, 16, 32, 32, 32] and max(pauses) == LONGEST
    crew.lost(0)
    crew.found(0)
    assert crew.choose(0) == 0 and crew.pause() == 0.0
    crew.lost(0)
    assert crew.pause() == 0.0, "the other is there"
    crew.lost(1)
    assert crew.pause() == 1.0, "an answer forgets what was before"


def test_those_gone_for_good_never_come_back() -> None:
    clock = Clock()
    crew = Crew(2, clock=clock)
    crew.lost(0, final=True)
    clock.now = 1e9
    assert crew.choose(0) == 1 and crew.gone == 1
    crew.lost(1, final=True)
    assert crew.choose() is None and crew.pause() is None
    with pytest.raises(ValueError, match="at least one"):
        Crew(0)


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from(["begin", "end", "lost", "gone", "found", "wait"]), st.integers(0, 4))),
)
def test_whoever_is_chosen_is_there(size: int, events: list[tuple[str, int]]) -> None:
    clock = Clock()
    crew = Crew(size, clock=clock)
    away: dict[int, float] = {}
    for event, which in events:
        member = which % size
        if event == "begin" or (event == "end" and crew.loads[member]):
            getattr(crew, event)(member)
        elif event == "lost" and away.get(member, 0.0) <= clock.now:
            crew.lost(member)
            away[member] = clock.now + 1e-6
        elif event == "gone":
            crew.lost(member, final=True)
            away[member] = float("inf")
        elif event == "found" and away.get(member) != float("inf"):
            crew.found(member)
            away.pop(member, None)
        elif event == "wait":
            clock.now += 100.0
        chosen = crew.choose()
        there = [n for n in range(size) if away.get(n, 0.0) <= clock.now]
        assert (chosen in there) if there else chosen is None
        if there:
            assert crew.loads[chosen] == min(crew.loads[n] for n in there)  # type: ignore[index]
        assert (crew.pause() is None) == (crew.gone == size)
