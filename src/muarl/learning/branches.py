"""Credit by turn in groups whose rollouts branch: advantages of stems, and of what began as they did.

A group has *stems*, rollouts from the start, and *branches*: rollouts that begin as a stem did up to one of its agent's
turns and go on by themselves. Where a stem was left, its own continuation and the branches are siblings: they go on
from the same state. With R the reward of a rollout, and t1 < t2 < ... the turns at which a stem was left,

    Q(stem after t_i) = V(t_i+1)         V(t_i) = mean of Q(stem after t_i) and R of the branches at t_i
    Q(stem after its last t) = R         Q(stem before t1) = V(t1)

and every stretch of turns has the advantage

    A = Q - (sum of its siblings' Q + PRIOR x m) / (their number + PRIOR)

where m is the mean of the other stems' Q before t1, or what ``means`` says: siblings are few, and their mean alone
would be noisy. (Stems' first stretches have no siblings but each other: A = Q - m.) With PRIOR = 0 it is RLOO's
estimator (Ahmadian et al. 2024, arXiv 2402.14740) at every place where there are siblings.

**It is unbiased**, E[A grad log pi(a|s)] = E[(Q(s,a) - V(s)) grad log pi(a|s)], since siblings are drawn from the same
state independently, and other stems from the start: what is subtracted says nothing of the stretch's own actions. For
that the choice of the turn t must depend on what came *before* t alone. A choice that looks at the turn itself, or at
what came of it (its surprise, the call it made), makes the stem's part wrong: that a stem was left there says something
of what it did there.

**Its variance**, for n siblings with outcomes of variance v given the state and PRIOR = 0, is v (1 + 1/(n - 1)) around
the true advantage of a stretch, against the variance of R given the *task* in a flat group: what happened before the
state, and was no doing of the turn's, is in both terms and cancels. But n is small, and fewer rollouts are independent
from the start, so that v has to be much less than the variance given the task for branching to pay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from muarl.learning.packing import Sample
from muarl.types.episode import BRANCH, Episode

PRIOR = 2.0
"""The mean of the other stems counts as this many siblings."""


@dataclass(frozen=True, slots=True)
class Credit:
    """The advantage of one episode's turns."""

    first: int
    """The first of its agent's turns that counts; those before are another episode's."""
    values: tuple[float, ...]
    """The advantages of its agent's turns from ``first`` on."""
    shares: tuple[float, ...]
    """What part of a flat rollout's weight each of the same turns has: siblings share the weight of the stretch before
    them, so that a group's sum of share * A * grad log pi is, on average, that of as many flat rollouts as there are
    stems."""

    def divided(self, by: float) -> Credit:
        """The same with all advantages divided."""
        return replace(self, values=tuple(v / by for v in self.values))

    def samples(self, episode: Episode, number: int) -> list[Sample]:
        """The episode's own turns as samples for a learner, one a segment; ``number`` tells its segments from those of
        other episodes. Each turn's advantage is noted in it."""
        trace = episode.tokens
        assert trace is not None
        advantages, weights = [0.0] * len(trace), [0.0] * len(trace)
        turn_credit = zip(self.values, self.shares, strict=True)
        for at, turn in [(at, turn) for at, turn in enumerate(episode.turns) if turn.span is not None][self.first :]:
            value, share = next(turn_credit)
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


Stretch = tuple[int, float, Sequence[float], float]
"""A stretch of an episode's turns: the first one, its Q, its siblings' Q, and its share."""


def turn_credits(
    rewards: Sequence[float], episodes: Sequence[Episode], means: Sequence[Sequence[float | None]] | None = None
) -> list[Credit]:
    """The advantage of every turn of one group's episodes, undivided; see this module's docstring.

    ``rewards``: of the episodes, whose tags (``BRANCH``) say where they left which. A branch whose stem is not in the
    group is compared with the other branches at its turn, and without any has advantage 0. So has a stem that is alone.
    ``means``: m for each of an episode's turns, which must say nothing of what the episode's stem and its branches did;
    None where there is nothing to say.
    """
    branches: dict[tuple[str, int], list[int]] = defaultdict(list)
    stems = [n for n, e in enumerate(episodes) if BRANCH not in e.tags]
    for n, episode in enumerate(episodes):
        if BRANCH in episode.tags:
            branch: Mapping[str, object] = episode.tags[BRANCH]
            branches[str(branch["of"]), int(str(branch["agent_turn"]))].append(n)
    left: dict[int, list[tuple[int, list[int]]]] = {
        n: sorted((turn, own) for (of, turn), own in branches.items() if of == episodes[n].id) for n in stems
    }
    after: dict[int, list[float]] = {}  # of each stem: Q before its first turn that was left, and after each of them
    for n in stems:
        qs = [rewards[n]]
        for _, own in reversed(left[n]):
            qs.append(_mean([qs[-1], *(rewards[i] for i in own)]))
        after[n] = qs[::-1]
    out: dict[int, Credit] = {}

    def credit(n: int, first: int, stretches: Sequence[Stretch], m: float | None) -> None:
        """Of an episode's turns from ``first`` on."""
        values: list[float] = []
        shares: list[float] = []
        ends = [*(begin for begin, *_ in stretches[1:]), sum(t.span is not None for t in episodes[n].turns)]
        for (begin, q, siblings, share), end in zip(stretches, ends, strict=True):
            bases = [_baseline(siblings, m if means is None else means[n][turn]) for turn in range(begin, end)]
            values += [0.0 if base is None else q - base for base in bases]
            shares += [share] * (end - begin)
        out[n] = Credit(first, tuple(values), tuple(shares))

    for n in stems:
        others = [after[k][0] for k in stems if k != n]
        m = _mean(others) if others else None
        share = 1.0
        stretches: list[Stretch] = [(0, after[n][0], (), share)]
        for (turn, own), q in zip(left[n], after[n][1:], strict=True):
            share /= len(own) + 1
            stretches.append((turn, q, [rewards[i] for i in own], share))
            for i in own:
                siblings = [q, *(rewards[j] for j in own if j != i)]
                credit(i, turn, [(turn, rewards[i], siblings, share)], m)
        credit(n, 0, stretches, m)
    stem_ids = {episodes[n].id for n in stems}
    for (of, turn), own in branches.items():
        for i in own if of not in stem_ids else ():
            credit(i, turn, [(turn, rewards[i], [rewards[j] for j in own if j != i], 1.0)], None)
    return [out[n] for n in range(len(episodes))]


def _baseline(siblings: Sequence[float], m: float | None) -> float | None:
    """What a stretch is compared with; None for nothing."""
    if m is None:
        return _mean(siblings) if siblings else None
    return (sum(siblings) + PRIOR * m) / (len(siblings) + PRIOR)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
