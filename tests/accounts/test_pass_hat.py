"""pass^k against values worked out by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.accounts.pass_hat import pass_hat, pass_hats
from muarl.accounts.success import success_rate
from muarl.types.episode import StopReason
from support.scored_episodes import attempts, scored_episode


@pytest.mark.parametrize(
    ("c", "n", "k", "expected"),
    [
        (4, 4, 4, 1),
        (3, 4, 1, 0.75),
        (3, 4, 2, 0.5),
        (3, 4, 3, 0.25),
        (3, 4, 4, 0),
        (0, 4, 1, 0),
        (5, 8, 3, 10 / 56),
    ],
)
def test_by_hand(c: int, n: int, k: int, expected: float) -> None:
    assert pass_hat(c, n, k) == pytest.approx(expected)


@pytest.mark.parametrize(("c", "n", "k"), [(5, 4, 1), (-1, 4, 1), (1, 4, 5), (1, 4, 0)])
def test_impossible(c: int, n: int, k: int) -> None:
    with pytest.raises(ValueError, match="cannot be estimated"):
        pass_hat(c, n, k)


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_falls_with_k(counts: tuple[int, int]) -> None:
    values = [pass_hat(*counts, k) for k in range(1, counts[1] + 1)]
    assert all(0 <= b <= a <= 1 for a, b in itertools.pairwise(values))


def test_mean_over_tasks() -> None:
    found = pass_hats(attempts(a="1111", b="1100", c="0000"))
    assert [found[k].value for k in (1, 2, 3, 4)] == pytest.approx([0.5, (1 + 1 / 6) / 3, 1 / 3, 1 / 3])
    assert found[1].n == 3


def test_only_tasks_with_enough_attempts_count() -> None:
    found = pass_hats(attempts(a="11", b="0"))
    assert found[1].n == 2 and found[2].n == 1 and set(found) == {1, 2}


def test_excluded_attempts_are_no_attempts() -> None:
    broken = scored_episode("a", None, StopReason.INFRASTRUCTURE)
    assert pass_hats([*attempts(a="11"), broken])[2].value == 1


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1)))
def test_success_and_pass_1_of_equal_trials_are_one_figure_with_one_interval(tasks: list[list[bool]]) -> None:
    episodes = [scored_episode(str(i), float(o)) for i, outcomes in enumerate(tasks) for o in outcomes]
    success, first = success_rate(episodes), pass_hats(episodes)[1]
    assert (first.value, first.interval) == (pytest.approx(success.value), pytest.approx(success.interval))


def test_perfect_scores_are_not_certain() -> None:
    assert pass_hats(attempts(a="11", b="11"))[2].interval[0] < 0.5
