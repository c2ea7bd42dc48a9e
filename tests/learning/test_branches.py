"""Credit by turn: what the advantages of stems and branches are, and that they are unbiased."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from muarl.learning.branches import turn_credits
from muarl.types.chat import Message
from muarl.types.episode import BRANCH, Episode, StopReason, Turn
from support.short_game import LOGITS, PATHS, TURNS, Path, chance, gradient, policy, reward, score


def episode(name: str, *, of: str | None = None, turn: int = 0, looked_ahead: bool = False) -> Episode:
    turns = [Turn(Message("assistant", "x"), span=(t, t + 1)) for t in range(TURNS)]
    tags = {} if of is None else {BRANCH: {"of": of, "turn": turn, "agent_turn": turn, "looked_ahead": looked_ahead}}
    return Episode(name, "t", "d", turns, StopReason.USER_STOP, tags=tags)


def tails(stem: Path, turn: int, count: int) -> Iterator[tuple[tuple[Path, ...], float]]:
    """All that ``count`` branches of a stem at a turn may do, and how likely it is."""
    ends = [stem[:turn] + end for end in itertools.product(range(3), repeat=TURNS - turn)]
    for chosen in itertools.product(ends, repeat=count):
        yield chosen, math.prod(chance(p, turn) for p in chosen)


def expected(turn_of: Callable[[Path], int], count: int, *, looked_ahead: bool) -> tuple[np.ndarray, np.ndarray]:
    """The expectation, over two stems of which the first is left ``count`` times at a turn, of the stems' and of the
    branches' share * A * grad log pi."""
    stems_sum, branches_sum = np.zeros_like(LOGITS), np.zeros_like(LOGITS)
    for first, second in itertools.product(PATHS, repeat=2):
        turn = turn_of(first)
        for branches, likely in tails(first, turn, count):
            paths = [first, second, *branches]
            episodes = [
                episode("a"),
                episode("b"),
                *(episode(f"c{n}", of="a", turn=turn, looked_ahead=looked_ahead) for n in range(count)),
            ]
            found = turn_credits([reward(p) for p in paths], episodes)
            weight = chance(first) * chance(second) * likely
            for n, (path, credit) in enumerate(zip(paths, found, strict=True)):
                into = stems_sum if n < 2 else branches_sum
                for t, (value, share) in enumerate(zip(credit.values, credit.shares, strict=True), credit.first):
                    into += weight * share * value * score(path, t)
    return stems_sum, branches_sum


@pytest.mark.parametrize(("turn_of", "count"), [(lambda p: 1, 1), (lambda p: 2, 2), (lambda p: 1 + (p[0] == 0), 1)])
def test_the_expectation_is_the_gradient_where_turns_are_chosen_by_what_came_before(
    turn_of: Callable[[Path], int], count: int
) -> None:
    stems, branches = expected(turn_of, count, looked_ahead=False)
    assert np.allclose(stems + branches, 2 * gradient(), atol=1e-12)


def surprising(path: Path) -> int:
    """The turn, after the first, at which the path did what was least likely."""
    return min((1, 2), key=lambda t: policy()[t, path[t]])


def test_a_choice_that_looks_ahead_is_biased_unless_the_stem_keeps_its_own() -> None:
    stems, branches = expected(surprising, 1, looked_ahead=False)
    assert not np.allclose(stems + branches, 2 * gradient(), atol=1e-3)
    stems, branches = expected(surprising, 1, looked_ahead=True)
    assert np.allclose(stems, 2 * gradient(), atol=1e-12)
    # What the branches add is the gradient at the states that were chosen, each as often as it was.
    added = np.zeros_like(LOGITS)
    for first in PATHS:
        turn = surprising(first)
        for (branch,), likely in tails(first, turn, 1):
            # The exact advantage of each action on the branch needs no siblings: its return, less what its state is
            # worth.
            worth = sum(p * reward(b) for (b,), p in tails(first, turn, 1))
            for t in range(turn, TURNS):
                added += chance(first) * likely * (reward(branch) - worth) * score(branch, t)
    assert np.allclose(branches, added, atol=1e-12)


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
    found = turn_credits([1.0, 0.0, 0.0, 0.0], [stem, other, early, late])
    # V at turn 2: (1 + 0) / 2; at turn 1: (V at turn 2 + 0) / 2.
    assert found[0].values == (0.25 - 0.0, 0.5 - 0.0, 1.0 - 0.0) and found[0].shares == (1.0, 0.5, 0.25)
    assert found[1].values == (0.0 - 0.25,) * 3
    assert (found[2].first, found[2].values, found[2].shares) == (1, (0.0 - 0.5,) * 2, (0.5,) * 2)
    assert (found[3].first, found[3].values, found[3].shares) == (2, (0.0 - 1.0,), (0.25,))


def test_a_branch_without_its_stem_is_compared_with_its_siblings() -> None:
    pair = [episode("c", of="gone", turn=1), episode("d", of="gone", turn=1)]
    assert [c.values for c in turn_credits([1.0, 0.0], pair)] == [(1.0, 1.0), (-1.0, -1.0)]
    assert turn_credits([1.0], pair[:1])[0].values == (0.0, 0.0)
