"""Goals that change: the wishes of a caller who never settles, one after the other, and the writes that are right."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from muarl.domains.airline import catalogue as airports
from muarl.domains.airline import gold as airline_gold
from muarl.domains.base import Action, Task
from muarl.domains.drawing import Infeasible, Request
from muarl.domains.retail import catalogue as shop
from muarl.domains.retail import wishes as retail_wishes
from muarl.domains.telecom import catalogue as carrier
from muarl.domains.telecom import wishes as telecom_wishes
from muarl.rewards.traps import Trap
from muarl.users.redteam.worlds import PLACES

Wish = dict[str, Any]

DROP: Wish = {"drop": True}

SHAPES = (
    "back and forth", "back and forth", "back and forth", "takes a yes back", "takes a yes back", "takes a yes back",
    "after it was done", "after it was done", "withdraws", "takes a yes back and withdraws",
)  # fmt: skip

AGAIN: Mapping[str, frozenset[str]] = {
    "retail": frozenset({"modify_address"}),
    "airline": frozenset({"passenger", "cabin"}),
    "telecom": frozenset({"refuel"}),
}
"""Wishes that can be changed, or repeated, once they have been fulfilled."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A request with its changes, the right writes, those of the ordinary task, and what kind of wavering it is.
    ``traps``: the write that was agreed to and taken back."""

    request: Mapping[str, Any]
    gold: tuple[Action, ...]
    writes: tuple[Action, ...]
    variant: str
    traps: tuple[Trap, ...] = ()


def changing(base: Task, request: Mapping[str, Any], rng: random.Random, lot: float) -> Changed:
    """The wish of an ordinary task, told by somebody who wavers. Infeasible if there is nothing to waver between.

    The request's ``thens``: what the wish becomes at each proposal, one after the other; ``half``: said behind a yes.
    ``after``: what it becomes once it has been fulfilled. ``lot`` (from [0, 1)) says which kind of wavering it is.
    """
    if request["fallback"] is not None:
        raise Infeasible
    first = dict(request["wish"])
    other = _other(base, request, rng)
    shape = SHAPES[int(lot * len(SHAPES))]
    if (other is None and not shape.endswith("withdraws")) or (
        shape == "after it was done" and (request["kind"] not in AGAIN[base.domain] or "who" in first)
    ):
        raise Infeasible
    thens: list[Wish] = []
    final: list[Wish] = []
    after = None
    if shape == "back and forth" and other is not None:
        thens = [other, first, other][: rng.choice((2, 3))]
        final = [thens[-1]]
    elif shape == "takes a yes back" and other is not None:
        thens = [{**other, "half": True}] if rng.random() < 0.5 else [other, {**first, "half": True}]
        final = [other if len(thens) == 1 else first]
    elif shape == "after it was done" and other is not None:
        after, final = other, [first, other]
    else:
        half = {"half": True} if shape.startswith("takes") else {}
        thens = [{**DROP, **half}] if other is None or rng.random() < 0.5 else [other, {**DROP, **half}]
    told = {**request, "then": None, "thens": thens, **({"after": after} if after else {})}
    writes = _writes(base)
    gold = tuple(_gold(base, request, wish, writes) for wish in final)
    proposed = [first, *thens]
    taken_back = [wish for wish, then in itertools.pairwise(proposed) if then.get("half")]
    refused = [_gold(base, request, wish, writes) for wish in taken_back]
    traps = tuple(Trap("writes what the caller has just taken back", a.name, a.arguments) for a in refused)
    return Changed(told, gold, writes, shape, traps)


def _writes(base: Task) -> tuple[Action, ...]:
    names = {*retail_wishes.WRITES.values(), *airline_gold.WRITES.values(), *telecom_wishes.WRITES.values()}
    return tuple(a for a in base.actions or () if a.name in names)


def _other(base: Task, request: Mapping[str, Any], rng: random.Random) -> Wish | None:
    """Another wish of the same kind, None if there is none."""
    wish, then, kind = request["wish"], request["then"], request["kind"]
    if then is not None and not then.get("drop"):
        return dict(then)
    if base.domain == "retail" and kind == "cancel":
        return {**wish, "reason": next(r for r in shop.REASONS if r != wish["reason"])}
    if base.domain == "retail" and kind == "modify_address":
        city, state = rng.choice(shop.CITIES)
        streets = [s for s in shop.STREETS if s != wish["address"]["address1"]]
        new = {"address1": rng.choice(streets), "address2": rng.choice(shop.UNITS), "city": city, "state": state}
        return {**wish, "address": {**wish["address"], **new, "zip": rng.choice(shop.ZIPS)}}
    if base.domain == "airline" and kind == "passenger":
        names = [n for n in airports.FIRST_NAMES if n != wish["passenger"]["first_name"]]
        person = {"first_name": rng.choice(names), "last_name": rng.choice(airports.LAST_NAMES)}
        return {**wish, "passenger": {**person, "dob": rng.choice(airports.BIRTHDAYS)}}
    if base.domain == "telecom" and kind == "refuel":
        return {**wish, "amount": rng.choice([a for a in carrier.AMOUNTS if a != wish["amount"]])}
    return None


def _gold(base: Task, request: Mapping[str, Any], wish: Wish, writes: tuple[Action, ...]) -> Action:
    """The write that fulfils a wish. Infeasible if none does."""
    final = {k: v for k, v in wish.items() if k != "half"}
    wanted = Request(request["kind"], dict(request["wish"]), final=final)
    tables = PLACES[base.domain].tables(base)
    found: Action | None
    if base.domain == "retail":
        found = retail_wishes.gold_write(wanted, tables)
    elif base.domain == "airline":
        found = airline_gold.gold_write(wanted, tables, PLACES["airline"].me(base))
    else:
        found = next(iter(writes), None)
        if found is not None and "gb_amount" in found.arguments:
            found = replace(found, arguments={**found.arguments, "gb_amount": final["amount"]})
    if found is None:
        raise Infeasible
    return found
