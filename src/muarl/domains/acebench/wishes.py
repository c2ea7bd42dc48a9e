"""What callers may want: one request of a kind, drawn from a world. The kinds themselves: errands.py and trips.py."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from muarl.domains.acebench.worlds import Family, World
from muarl.domains.drawing import Infeasible, Request, split_of

CHANGE_OF_MIND = 0.40
UNAVAILABLE = 0.25
DROPS = 0.3
"""How often a caller wants something else on hearing the proposal, asks for what cannot be had, and then, if there is
another request, gives this one up."""

T = TypeVar("T")

MAIN_SLOTS = (
    "to", "text", "number", "title", "time", "note", "source", "from", "merchant", "product", "quantity", "account",
    "origin", "via", "destination", "reservation_id", "date", "cabin", "bags", "reason", "topic",
)  # fmt: skip
"""What, with the caller and the kind, makes a request itself."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What a request is drawn from. ``alone``: whether it is the caller's only one."""

    rng: random.Random
    world: World
    split: str
    alone: bool

    @property
    def tiny(self) -> bool:
        """Whether the world is a tiny one."""
        return self.world.size.tiny

    def part(self, name: str) -> dict[str, Any]:
        """The state of one class."""
        return self.world.state[name]

    def chosen(self, pool: Iterable[T]) -> T:
        """One of them. Infeasible if there is none."""
        found = list(pool)
        if not found:
            raise Infeasible
        return self.rng.choice(found)

    def changes(self) -> bool:
        """Whether the caller has a change of mind."""
        return self.rng.random() < CHANGE_OF_MIND

    def misses(self) -> bool:
        """Whether the caller asks for what cannot be had."""
        return self.rng.random() < UNAVAILABLE

    def drops(self) -> bool:
        """Whether the caller gives up a wish that has a hitch; a wish that stands alone is not given up."""
        return not self.alone and self.rng.random() < DROPS


Drawer = Callable[[Draw], Request]
"""Draws a request. Raises Infeasible."""


def request_key(me: str, kind: str, wish: Mapping[str, Any]) -> tuple[str, ...]:
    """What decides which split a request belongs to: the caller, the kind and the wanted things."""
    return (me, kind, *(str(wish[s]) for s in MAIN_SLOTS if s in wish))


def draw_request(
    drawers: Mapping[str, Drawer], draw: Draw, kind: str, *, taken: Sequence[Request] = (), tries: int = 60
) -> Request:
    """Draw a request of a kind that belongs to the split and is about nothing that ``taken`` ones are about.

    Infeasible if the world does not give one.
    """
    for _ in range(tries):
        try:
            request = drawers[kind](draw)
        except Infeasible:
            continue
        request.intent = request.intent or kind
        if split_of(*request_key(draw.world.me, request.kind, request.wish)) != draw.split:
            continue
        if any(clash(request, other) for other in taken):
            continue
        return request
    raise Infeasible


PAID = frozenset({"book", "connect", "cabin", "bags", "cancel"})
"""Kinds of request that move a traveller's money."""


def clash(one: Request, other: Request) -> bool:
    """Whether two requests get into each other's way: about the same reservation, message, reminder or merchant, or one
    may have to make room in the inbox that the other looks into or makes room in as well."""
    ours, theirs = ([w for w in (r.wish, r.then, r.fallback) if w] for r in (one, other))
    for mine in ours:
        for yours in theirs:
            if any(s in mine and mine[s] == yours.get(s) for s in ("reservation_id", "title", "merchant", "number")):
                return True
            if mine.get("room_number", 0) == yours.get("number") or yours.get("room_number", 0) == mine.get("number"):
                return True
    kinds = {one.kind, other.kind}
    if kinds & {"book", "connect"} and any(w.get("date", 0) == v.get("date") for w in ours for v in theirs):
        return True  # the one may take the last seat
    if "insufficient" in (one.intent, other.intent) and kinds <= PAID:
        return True  # what the one pays or is refunded decides whether the other can be paid
    if kinds == {"send", "delete"} and any("latest" in w.get("which", "") for w in (*ours, *theirs)):
        return True
    return "todo" in kinds or ("delete" in kinds and any("room" in w for w in (*ours, *theirs)))


DRAWN: Mapping[Family, Mapping[str, float]] = {
    "phone": {
        "send": 0.23, "delete": 0.12, "remind": 0.17, "read": 0.07, "order": 0.31, "forbidden": 0.06, "outside": 0.04,
    },
    "travel": {
        "book": 0.26, "move": 0.20, "cabin": 0.13, "bags": 0.11, "cancel": 0.13, "question": 0.05, "forbidden": 0.06,
        "flown": 0.03, "outside": 0.03,
    },
}  # fmt: skip
"""Share of each kind of first request in tiny worlds. Doing nothing is right for ``forbidden`` only; transferring at
once is so too, and for what is outside on the phone."""

LARGER: Mapping[Family, Mapping[str, float]] = {
    "phone": {"todo": 0.08, "note": 0.05, "forget": 0.06, "balance": 0.03},
    "travel": {"connect": 0.09, "compensation": 0.05},
}
"""The same for what larger worlds have besides; the others' shares shrink."""

SECONDS: Mapping[Family, Sequence[str]] = {
    "phone": ("send", "delete", "remind", "read", "order"),
    "travel": ("book", "move", "cabin", "bags", "cancel", "question"),
}
"""What a second request may be."""


def kinds(family: Family, *, tiny: bool) -> Mapping[str, float]:
    """The share of each kind of first request, within a family."""
    if tiny:
        return DRAWN[family]
    rest = 1 - sum(LARGER[family].values())
    return {kind: share * rest for kind, share in DRAWN[family].items()} | dict(LARGER[family])
