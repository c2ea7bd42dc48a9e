"""Goals that change: the requests of a user who never settles, one after the other, and the writes that are right."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from muarl.domains.agenda import AgendaRequest, Goal
from muarl.domains.generated import Infeasible, UserRequest
from muarl.domains.kit.requests import split
from muarl.domains.tasks import Action, Task
from muarl.rewards.traps import Trap
from muarl.users.redteam.support import WaveringUser

DROP: Goal = {"drop": True}

SHAPES = (
    "back and forth", "back and forth", "back and forth", "takes a yes back", "takes a yes back", "takes a yes back",
    "after it was done", "after it was done", "withdraws", "takes a yes back and withdraws",
)  # fmt: skip
WITHDRAWALS = ("withdraws", "takes a yes back and withdraws")
"""Where no request has a value that users change."""


@dataclass(frozen=True, slots=True)
class WaveringRequest:
    """A request with its changes, the right writes, and what kind of wavering it is."""

    request: AgendaRequest
    gold: tuple[Action, ...]
    variant: str
    traps: tuple[Trap, ...] = ()
    """The write that was agreed to and taken back."""


def changing(
    place: WaveringUser, base: Task, request: AgendaRequest, rng: random.Random, lot: float
) -> WaveringRequest:
    """The request of an ordinary task, told by somebody who wavers. Infeasible if there is nothing to waver between.

    The request's ``thens``: its goal after each proposal, one after the other; ``half``: said behind a yes. ``after``:
    its goal once it has been fulfilled. ``lot`` (from [0, 1)) says which kind of wavering it is.
    """
    if request["fallback"] is not None:
        raise Infeasible
    first = dict(request["goal"])
    back = split(first)[0]  # who has seen a proposal names what was only described before
    other = _other(place, base, request, rng)
    shapes = SHAPES if place.changes(base) else WITHDRAWALS
    shape = shapes[int(lot * len(shapes))]
    if other is None and not shape.endswith("withdraws"):
        raise Infeasible
    if shape == "after it was done" and not (other and place.again(base, request, other)):
        raise Infeasible
    thens: list[Goal] = []
    final: list[Goal] = []
    after = None
    if shape == "back and forth" and other is not None:
        thens = [other, back, split(other)[0]][: rng.choice((2, 3))]
        final = [thens[-1]]
    elif shape == "takes a yes back" and other is not None:
        thens = [{**other, "half": True}] if rng.random() < 0.5 else [other, {**back, "half": True}]
        final = [other if len(thens) == 1 else first]
    elif shape == "after it was done" and other is not None:
        after, final = other, [first, other]
    else:
        half = {"half": True} if shape.startswith("takes") else {}
        thens = [{**DROP, **half}] if other is None or rng.random() < 0.5 else [other, {**DROP, **half}]
    wavering: AgendaRequest = {**request, "then": None, "thens": thens}
    if after:
        wavering["after"] = after
    gold = tuple(_gold(place, base, request, goal) for goal in final)
    proposed = [first, *thens]
    taken_back = [goal for goal, then in itertools.pairwise(proposed) if then.get("half")]
    refused = [_gold(place, base, request, goal) for goal in taken_back]
    traps = tuple(Trap("writes what the user has just taken back", a.name, a.arguments) for a in refused)
    return WaveringRequest(wavering, gold, shape, traps)


def _other(place: WaveringUser, base: Task, request: AgendaRequest, rng: random.Random) -> Goal | None:
    """Another request of the same kind, None if there is none."""
    then = request["then"]
    if then is not None and not then.get("drop"):
        return dict(then)
    return place.other(base, request, rng)


def _gold(place: WaveringUser, base: Task, request: AgendaRequest, goal: Goal) -> Action:
    """The write that fulfils a request. Infeasible if none does."""
    final = {k: v for k, v in goal.items() if k != "half"}
    write = place.write(base, UserRequest(request["kind"], dict(request["goal"]), final=final))
    if write is None:
        raise Infeasible
    return write
