"""Credit by turn in groups whose rollouts branch: advantages of stems, and of what began as they did.

A group has *stems*, rollouts from the start, and *branches*: rollouts that begin as a stem did up to one of its agent's
turns and go on by themselves. Where a stem was left, its own continuation and the branches are siblings: they go on
from the same state. With R the reward of a rollout, and t1 < t2 < ... the turns at which a stem was left,

    Q(stem after t_i) = V(t_i+1)         V(t_i) = mean of Q(stem after t_i) and R of the branches at t_i
    Q(stem after its last t) = R         Q(stem before t1) = V(t1)

and every stretch of turns has the advantage A = Q - mean of its siblings' Q (leave one out; the siblings of stems'
first stretches are each other's). It is RLOO's estimator (Ahmadian et al. 2024, arXiv 2402.14740) at every place where
there are siblings.

**It is unbiased**, E[A grad log pi(a|s)] = E[(Q(s,a) - V(s)) grad log pi(a|s)], since siblings are drawn from the same
state independently: what is subtracted says nothing of the stretch's own actions. For that the choice of the turn t
must depend on what came *before* t alone. A choice that looks at the turn itself, or at what came of it (its surprise,
the call it made), is another matter: that a stem was left there says something of what it did there. Branches are still
right then, given the state; their stem is not, and keeps what it has without them (``looked_ahead``): A = R - mean of
the other stems' R.

**Its variance**, for n siblings with outcomes of variance v given the state, is v (1 + 1/(n - 1)) around the true
advantage of a stretch, against the variance of R given the *task* in a flat group: what happened before the state, and
was no doing of the turn's, is in both terms and cancels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from muarl.learning.packing import Sample
from muarl.types.episode import BRANCH, Episode


@dataclass(frozen=True, slots=True)
class Credit:
    """The advantage of one episode's turns: ``values`` of its agent's turns from ``first`` on. Those before are another
    episode's. ``shares``: of the same turns, what part of a flat rollout's weight they have: siblings share the weight
    of the stretch before them, so that a group's sum of share * A * grad log pi is, on average, that of as many flat
    rollouts as there are stems."""

    first: int
    values: tuple[float, ...]
    shares: tuple[float, ...]

    def divided(self, by: float) -> Credit:
        """The same with all advantages divided."""
        return replace(self, values=tuple(v / by for v in self.values))

    def samples(self, episode: Episode, number: int) -> list[Sample]:
        """The episode's own turns as samples for a learner, one a segment; ``number`` tells its segments from those of
        other episodes. Each turn's advantage is noted in it."""
        trace = episode.tokens
        assert trace is not None
        advantages, weights = [0.0] * len(trace), [0.0] * len(trace)
        told = zip(self.values, self.shares, strict=True)
        for at, turn in [(at, turn) for at, turn in enumerate(episode.turns) if turn.span is not None][self.first :]:
            value, share = next(told)
            begin, end = turn.span or (0, 0)
            advantages[begin:end], weights[begin:end] = [value] * (end - begin), [share] * (end - begin)
            episode.turns[at] = replace(turn, advantage=value)
        return [
            Sample(
                trace.ids[a:b], weights[a:b], trace.logprobs[a:b], advantages[a:b], number if trace.restarts else None
            )
            for a, b in pairwise([0, *trace.restarts, len(trace)])
        ]

    def oldest_version(self, episode: Episode) -> int | None:
        """The oldest policy version that sampled the episode's own turns; None where it has none."""
        own = [turn.version for turn in episode.turns if turn.span is not None][self.first :]
        return min((v for v in own if v is not None), default=None)


def turn_credits(rewards: Sequence[float], episodes: Sequence[Episode]) -> list[Credit]:
    """The advantage of every turn of one group's episodes, undivided; see this module's docstring.

    ``rewards``: of the episodes, whose tags (``BRANCH``) say where they left which. A branch whose stem is not in the
    group is compared with the other branches at its turn, and without any has advantage 0. So has a stem that is alone.
    """
    looked_ahead = any(e.tags[BRANCH]["looked_ahead"] for e in episodes if BRANCH in e.tags)
    branches: dict[tuple[str, int], list[int]] = defaultdict(list)
    stems = [n for n, e in enumerate(episodes) if BRANCH not in e.tags]
    for n, episode in enumerate(episodes):
        if BRANCH in episode.tags:
            told: Mapping[str, object] = episode.tags[BRANCH]
            branches[str(told["of"]), int(str(told["agent_turn"]))].append(n)
    out: dict[int, Credit] = {}
    left: dict[int, list[tuple[int, list[int]]]] = {
        n: sorted((turn, found) for (of, turn), found in branches.items() if of == episodes[n].id) for n in stems
    }
    known = {episodes[n].id for n in stems}
    after: dict[int, list[float]] = {}  # of each stem: Q before its first turn that was left, and after each of them
    for n in stems:
        qs = [rewards[n]]
        for _, found in reversed(left[n]):
            qs.append(_mean([qs[-1], *(rewards[i] for i in found)]))
        after[n] = qs[::-1]
    for n in stems:
        turns = sum(t.span is not None for t in episodes[n].turns)
        others = [rewards[m] if looked_ahead else after[m][0] for m in stems if m != n]
        own = rewards[n] if looked_ahead else after[n][0]
        values, shares, share = [own - _mean(others) if others else 0.0] * turns, [1.0] * turns, 1.0
        for k, (turn, found) in enumerate(left[n]):
            # Under a choice that looked ahead the stem's own outcome is a sibling like any other to its branches.
            stem = after[n][k + 1]
            if not looked_ahead:
                values[turn:] = [stem - _mean([rewards[i] for i in found])] * (turns - turn)
                share /= len(found) + 1
                shares[turn:] = [share] * (turns - turn)
            for i in found:
                rest = [stem, *(rewards[j] for j in found if j != i)]
                out[i] = _branch(episodes[i], turn, rewards[i] - _mean(rest), share)
        out[n] = Credit(0, tuple(values), tuple(shares))
    for (of, turn), found in branches.items():
        if of not in known:
            for i in found:
                rest = [rewards[j] for j in found if j != i]
                out[i] = _branch(episodes[i], turn, rewards[i] - _mean(rest) if rest else 0.0, 1.0)
    return [out[n] for n in range(len(episodes))]


def _branch(episode: Episode, first: int, value: float, share: float) -> Credit:
    own = sum(t.span is not None for t in episode.turns) - first
    return Credit(first, (value,) * own, (share,) * own)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
