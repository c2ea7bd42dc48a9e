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
from statistics import fmean

from muarl.basics.seeds import derive_seed
from muarl.config.rl import BranchConfig, RlConfig
from muarl.environments.places import Places
from muarl.recipes.training.first_look import Drawn, Looked
from muarl.rollouts.beginnings import Beginning
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.types.episode import Episode

Play = Callable[[Sequence[RolloutRequest]], Awaitable[list[Episode]]]
Writes = Callable[[Episode, int], bool]
"""Whether the agent called a tool that writes, in the turn of that index."""


async def play_branching(
    rl: RlConfig, draw: Callable[[int], Drawn], play: Play, number: int, *, seed: int, label: str, places: Places
) -> Looked:
    """Play the groups of a draw: their stems first, then what branches off them."""
    tasks, choice = draw(number)
    known = {task.id: task for task in tasks}

    def writes(episode: Episode, turn: int) -> bool:
        domain = places.of(known[episode.task_id]).domain
        return any(
            call.name in domain.tool_names() and domain.kind_of(call.name) == "write"
            for call in episode.turns[turn].message.tool_calls
        )

    requests = requests_for(tasks, rl.branch.stems, seed=seed, label=label)
    stems = await play(requests)
    later = [
        request
        for _, own in groupby(zip(requests, stems, strict=True), key=lambda pair: pair[0].group)
        for request in branches_of([*own], rl.group_size - rl.branch.stems, rl.branch, seed=seed, writes=writes)
    ]
    branches = await play(later)
    return Looked([*stems, *branches], [], [(choice, stems)], list(tasks))


def branches_of(
    stems: Sequence[tuple[RolloutRequest, Episode]], count: int, config: BranchConfig, *, seed: int, writes: Writes
) -> list[RolloutRequest]:
    """Requests for ``count`` branches of one group's stems, which take turns. A stem that has no such turn, or cannot
    be learned from, gives a rollout from the start in their place."""
    out = []
    for n in range(count):
        request, stem = stems[n % len(stems)]
        neighbour = stems[(n + 1) % len(stems)][1]
        own = derive_seed(seed, request.group, "branch", n)
        turn = _turn(stem, neighbour, config, random.Random(own), writes) if stem.learnable else None
        fresh = replace(request, number=len(stems) + n, seed=own)
        if turn is None:
            out.append(fresh if request.user_seed is not None else replace(fresh, user_seed=None))
        else:
            user = request.seed if request.user_seed is None else request.user_seed
            begun = Beginning.of_turn(stem, turn, looked_ahead=config.turns != "even")
            out.append(replace(fresh, user_seed=user, beginning=begun))
    return out


def _turn(stem: Episode, neighbour: Episode, config: BranchConfig, draw: random.Random, writes: Writes) -> int | None:
    """The index of the turn at which a stem is left; None for none. The first turn never is: a branch there would be a
    rollout from the start."""
    turns = _sampled_turns(stem)
    if config.turns == "even" or len(turns) < 2:
        # By another's length: the stem's own would say what came after the turn.
        chosen = draw.randint(1, max(1, len(_sampled_turns(neighbour)) - 1))
        return turns[chosen] if chosen < len(turns) else None
    if config.turns == "writes":
        able = [turn for turn in turns[1:] if writes(stem, turn)]
        return draw.choice(able or turns[1:])
    return draw.choices(turns[1:], [_surprise(stem, turn) + 1e-6 for turn in turns[1:]])[0]


def _sampled_turns(episode: Episode) -> list[int]:
    return [n for n, turn in enumerate(episode.turns) if turn.span is not None]


def _surprise(episode: Episode, turn: int) -> float:
    """How unlikely what the agent said was, in nats a token."""
    trace, span = episode.tokens, episode.turns[turn].span
    assert trace is not None and span is not None
    return -fmean(trace.logprobs[slice(*span)]) if span[1] > span[0] else 0.0
