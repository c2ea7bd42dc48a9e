"""Which runs can be told apart, and which cannot."""

from __future__ import annotations

from collections.abc import Iterator, Set


def indistinct_groups(count: int, apart: Set[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The largest sets of runs of which no two can be told apart, by the run of the lowest number in them.

    ``apart``: pairs (i, j), i < j, that can be. A run that can be told from all others is a set of its own. Runs may be
    in several sets: A beside B and B beside C does not make A the same as C.
    """
    near = {i: {j for j in range(count) if j != i and (min(i, j), max(i, j)) not in apart} for i in range(count)}

    def cliques(chosen: set[int], left: set[int], done: set[int]) -> Iterator[tuple[int, ...]]:
        if not left and not done:
            yield tuple(sorted(chosen))
            return
        pivot = max(left | done, key=lambda v: len(near[v] & left))
        for v in sorted(left - near[pivot]):
            yield from cliques(chosen | {v}, left & near[v], done & near[v])
            left = left - {v}
            done = done | {v}

    return sorted(cliques(set(), set(range(count)), set()))


def rank_range(run: int, better: Set[tuple[int, int]], count: int) -> tuple[int, int]:
    """The best and the worst place that a run may have. ``better``: pairs (winner, loser) that can be told apart."""
    beaten_by = sum((other, run) in better for other in range(count))
    beats = sum((run, other) in better for other in range(count))
    return 1 + beaten_by, count - beats
