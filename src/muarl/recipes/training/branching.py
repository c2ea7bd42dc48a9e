"""Groups whose rollouts branch (``rl.branch``): some rollouts of a task are played from its start, the others begin as
one of those did and go on by themselves from one of its agent's turns.

A branch samples only what follows, so that more rollouts can be had for the same number of sampled tokens, and what
they differ by is what the agent did from that turn on: see learning/branches.py for what is learned from them.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import groupby

from muarl.basics.seeds import derive_seed
from muarl.config.rl import RlConfig
from muarl.recipes.training.first_look import DrawnTasks, FirstLook
from muarl.rollouts.beginnings import Beginning
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.types.episode import Episode

Play = Callable[[Sequence[RolloutRequest]], Awaitable[list[Episode]]]


async def play_branching(
    rl: RlConfig, draw: Callable[[int], DrawnTasks], play: Play, number: int, *, seed: int, label: str
) -> FirstLook:
    """Play the groups of a draw: their stems first, then what branches off them."""
    tasks, choice = draw(number)
    requests = requests_for(tasks, rl.branch.stems, seed=seed, label=label)
    stems = await play(requests)
    later = [
        request
        for _, own in groupby(zip(requests, stems, strict=True), key=lambda pair: pair[0].group)
        for request in branches_of([*own], rl.group_size - rl.branch.stems, seed=seed)
    ]
    branches = await play(later)
    return FirstLook([*stems, *branches], [], [(choice, stems)], list(tasks))


def branches_of(stems: Sequence[tuple[RolloutRequest, Episode]], count: int, *, seed: int) -> list[RolloutRequest]:
    """Requests for ``count`` branches of one group's stems, which take turns. A stem that has no such turn, or cannot
    be learned from, gives a rollout from the start in their place."""
    out = []
    for n in range(count):
        request, stem = stems[n % len(stems)]
        neighbour = stems[(n + 1) % len(stems)][1]
        own = derive_seed(seed, request.group, "branch", n)
        turn = _turn(stem, neighbour, random.Random(own)) if stem.learnable else None
        fresh = replace(request, number=len(stems) + n, seed=own)
        if turn is None:
            out.append(fresh if request.user_seed is not None else replace(fresh, user_seed=None))
        else:
            user = request.seed if request.user_seed is None else request.user_seed
            out.append(replace(fresh, user_seed=user, beginning=Beginning.of_turn(stem, turn)))
    return out


def _turn(stem: Episode, neighbour: Episode, draw: random.Random) -> int | None:
    """The index of the turn at which a stem is left, None for none: any with the same chance, but the first, where a
    branch would be a rollout from the start. It is drawn by another stem's length, since the stem's own would say what
    came after the turn."""
    turns = _sampled_turns(stem)
    chosen = draw.randint(1, max(1, len(_sampled_turns(neighbour)) - 1))
    return turns[chosen] if chosen < len(turns) else None


def _sampled_turns(episode: Episode) -> list[int]:
    return [n for n, turn in enumerate(episode.turns) if turn.span is not None]
