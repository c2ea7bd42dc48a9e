"""Credit by turn: what the advantages of stems and branches are, and that they are unbiased."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from muarl.learning.branches import PRIOR, turn_credits
from muarl.types.chat import Message
from muarl.types.episode import BRANCH, Episode, StopReason, Turn
from support.short_game import LOGITS, PATHS, TURNS, Path, chance, gradient, policy, reward, score


def episode(name: str, *, of: str | None = None, turn: int = 0) -> Episode:
    turns = [Turn(Message("assistant", "x"), span=(t, t + 1)) for t in range(TURNS)]
    tags = {} if of is None else {BRANCH: {"of": of, "turn": turn, "agent_turn": turn}}
    return Episode(name, "t", "d", turns, StopReason.USER_STOP, tags=tags)


def tails(stem: Path, turn: int, count: int) -> Iterator[tuple[tuple[Path, ...], float]]:
    """All that ``count`` branches of a stem at a turn may do, and how likely it is."""
    ends = [stem[:turn] + end for end in itertools.product(range(3), repeat=TURNS - turn)]
    for chosen in itertools.product(ends, repeat=count):
        yield chosen, math.prod(chance(p, turn) for p in chosen)


Means = Callable[[Path], list[list[float | None]]]


def expected(turn_of: Callable[[Path], int], count: int, means: Means | None = None) -> np.ndarray:
    """The expectation, over two stems of which the first is left ``count`` times at a turn, of the sum of
    share * A * grad log pi. ``means``: m of the first stem's turns, by the second one's path."""
    total = np.zeros_like(LOGITS)
    for first, second in itertools.product(PATHS, repeat=2):
        turn = turn_of(first)
        for branches, likely in tails(first, turn, count):
            paths = [first, second, *branches]
            episodes = [episode("a"), episode("b"), *(episode(f"c{n}", of="a", turn=turn) for n in range(count))]
            given = None
            if means is not None:
                ours, theirs = means(second), means(first)
                given = [ours[0], theirs[0], *ours[:1] * count]
            found = turn_credits([reward(p) for p in paths], episodes, given)
            weight = chance(first) * chance(second) * likely
            for path, credit in zip(paths, found, strict=True):
                for t, (value, share) in enumerate(zip(credit.values, credit.shares, strict=True), credit.first):
                    total += weight * share * value * score(path, t)
    return total


@pytest.mark.parametrize(("turn_of", "count"), [(lambda p: 1, 1), (lambda p: 2, 2), (lambda p: 1 + (p[0] == 0), 1)])
def test_the_expectation_is_the_gradient_where_turns_are_chosen_by_what_came_before(
    turn_of: Callable[[Path], int], count: int
) -> None:
    assert np.allclose(expected(turn_of, count), 2 * gradient(), atol=1e-12)


def test_so_it_is_with_means_that_others_say() -> None:
    def by_turn(other: Path) -> list[list[float | None]]:
        return [[reward(other), 0.3 + 0.1 * other[0], -0.7 * other[2]]]

    assert np.allclose(expected(lambda p: 1 + (p[0] == 0), 1, by_turn), 2 * gradient(), atol=1e-12)


def surprising(path: Path) -> int:
    """The turn, after the first, at which the path did what was least likely."""
    return min((1, 2), key=lambda t: policy()[t, path[t]])


def test_a_choice_that_looks_ahead_is_biased() -> None:
    assert not np.allclose(expected(surprising, 1), 2 * gradient(), atol=1e-3)


def test_siblings_vary_less_than_rollouts_from_the_start() -> None:
    """What happened before the state is in both terms of an advantage, and cancels."""

    def spread(values: Sequence[tuple[float, float]]) -> float:
        return sum(w * v * v for v, w in values) - sum(w * v for v, w in values) ** 2

    flat = [(reward(a) - reward(b), chance(a) * chance(b)) for a, b in itertools.product(PATHS, repeat=2)]
    branched = [(reward(a) - reward(b), chance(a) * likely) for a in PATHS for (b,), likely in tails(a, 1, 1)]
    assert spread(branched) < 0.9 * spread(flat)


def test_advantages_of_a_group() -> None:
    stem, other = episode("a"), episode("b")
    early, late = episode("c", of="a", turn=1), episode("d", of="a", turn=2)
    found = turn_credits([1.0, 0.0, 0.0, 0.5], [stem, other, early, late])

    def base(*siblings: float) -> float:
        return (sum(siblings) + PRIOR * 0.0) / (len(siblings) + PRIOR)  # the other stem has 0

    # V at turn 2: (1 + 0.5) / 2; at turn 1: (V at turn 2 + 0) / 2.
    assert found[0].values == (0.375 - 0.0, 0.75 - base(0.0), 1.0 - base(0.5))
    assert found[0].shares == (1.0, 0.5, 0.25)
    assert found[1].values == (0.0 - 0.375,) * 3
    assert (found[2].first, found[2].values, found[2].shares) == (1, (0.0 - base(0.75),) * 2, (0.5,) * 2)
    assert (found[3].first, found[3].values, found[3].shares) == (2, (0.5 - base(1.0),), (0.25,))


def test_alone_a_stem_and_its_branches_have_each_other() -> None:
    found = turn_credits([1.0, 0.0], [episode("a"), episode("c", of="a", turn=1)])
    assert found[0].values == (0.0, 1.0, 1.0) and found[1].values == (-1.0, -1.0)


def test_a_branch_without_its_stem_is_compared_with_its_siblings() -> None:
    pair = [episode("c", of="gone", turn=1), episode("d", of="gone", turn=1)]
    assert [c.values for c in turn_credits([1.0, 0.0], pair)] == [(1.0, 1.0), (-1.0, -1.0)]
    assert turn_credits([1.0], pair[:1])[0].values == (0.0, 0.0)
