"""A game of three turns, small enough that expectations over a policy's play are sums over all paths."""

from __future__ import annotations

import itertools
import math

import numpy as np

TURNS = 3
LOGITS = np.array([[0.3, -0.4, 0.2], [-0.2, 0.6, 0.1], [0.5, 0.0, -0.7]])
"""A policy with a parameter for each action at each of three turns, whatever came before."""
Path = tuple[int, ...]


def policy() -> np.ndarray:
    exp = np.exp(LOGITS)
    return exp / exp.sum(1, keepdims=True)


def reward(path: Path) -> float:
    """A game of three turns; some first actions lose it, whatever follows."""
    return float(path[0] != 2 and (path[0] + path[1] + path[2]) % 3 == 0) + 0.3 * path[1]


def chance(path: Path, first: int = 0) -> float:
    """Of what a path does from a turn on."""
    return math.prod(policy()[t, path[t]] for t in range(first, TURNS))


def score(path: Path, turn: int) -> np.ndarray:
    """grad log pi of one action."""
    out = np.zeros_like(LOGITS)
    out[turn] = -policy()[turn]
    out[turn, path[turn]] += 1
    return out


PATHS = list(itertools.product(range(3), repeat=TURNS))


def gradient() -> np.ndarray:
    """Of the expected reward, summed over all paths."""
    return sum(chance(p) * reward(p) * sum(score(p, t) for t in range(TURNS)) for p in PATHS)
