"""What callers may want: requests drawn from a made world, with what is right in the end found by the procedure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.base import Action, Domain, Task, World
from muarl.domains.desk import oracle
from muarl.domains.desk.oracle import Outcome
from muarl.domains.desk.people import shift
from muarl.domains.desk.procedure import Frame
from muarl.domains.desk.spec import Draw, Script
from muarl.domains.desk.terms import holds, lookup, rows
from muarl.domains.desk.values import normal
from muarl.domains.drawing import Infeasible, Request

CHANGE_OF_MIND = 0.4
DROP = 0.15
NO_ID = 0.3
"""How often a caller wants something else on hearing the proposal, or drops the wish then (only where another one is
left), and has no id at hand."""
TRIES = 24
"""How many wishes of one intent are drawn for a caller before another caller is tried."""


@dataclass
class Source:
    """What requests are drawn from. ``caller``: the caller's record in the made world, ``shown``: as a tool shows it;
    ``domain``: whose tools find out what is right; ``before``: gold actions of the requests that come first."""

    script: Script
    rng: random.Random
    domain: Domain
    tables: Mapping[str, Mapping[str, Any]]
    task: Task
    caller: Mapping[str, Any]
    shown: Mapping[str, Any]
    before: list[Action] = field(default_factory=list)
    _looked: dict[int, dict[str, Any]] = field(default_factory=dict)

    def outcome(self, intent: str, wish: Mapping[str, Any]) -> Outcome:
        """How a wish ends in a fresh world, after what was done before."""
        slots, described = split(wish)
        frame = Frame(intent, {k: v for k, v in slots.items() if k not in described}, described)
        known = self._looked.setdefault(len(self.before), {})
        return oracle.run(self.script, self._world, self.shown, frame, known)

    def _world(self) -> World:
        world = self.domain.world(self.task)
        for action in self.before:
            oracle.call(world, action.name, action.arguments)
        return world


def split(wish: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A wish's slots, and its descriptions of records by slot."""
    described = {k.removeprefix("described "): str(v) for k, v in wish.items() if k.startswith("described ")}
    return {k: v for k, v in wish.items() if not k.startswith("described ")}, described


def draw_request(source: Source, intent: str, wanted: str, *, alone: bool) -> tuple[Request, Outcome]:
    """A request whose right outcome is as wanted: "done" (or "answer"), "refuse", "transfer" or "unavailable".

    Infeasible if none is found. The outcome is that of the final wish.
    """
    spec = source.script.spec.intents[intent]
    accepted = ("done", "answer") if wanted == "done" else (wanted,)
    steps = [n for n, s in enumerate(spec.steps) if s.verb == wanted or (wanted == "refuse" and s.refuse is not None)]
    aim = source.rng.choice(steps) if steps else -1  # so that rare refusals are as frequent as common ones
    for attempt in range(TRIES):
        foreign = wanted == "refuse" and source.rng.random() < 0.3
        wish = _draw(source, intent, foreign=foreign)
        if wish is None:
            continue
        found = source.outcome(intent, wish)
        if found.kind not in accepted:
            continue
        if wanted in ("refuse", "transfer") and found.step != aim and attempt < TRIES // 2:
            continue
        unknown = list(split(wish)[1])
        request = Request(intent, wish, unknown=unknown, intent=intent)
        if wanted == "refuse":
            request.intent = "forbidden"
            return request, found
        if wanted == "transfer":
            request.intent = f"{intent}_handover"
            return request, found
        if wanted == "unavailable":
            return _with_fallback(source, request, found, alone)
        if found.kind == "answer":
            request.answer = found.told[0]
            return request, found
        return _with_change(source, request, found, alone)
    raise Infeasible


def _with_fallback(source: Source, request: Request, found: Outcome, alone: bool) -> tuple[Request, Outcome]:
    request.intent = f"{request.kind}_unavailable"
    if found.options and not alone and source.rng.random() < DROP:
        request.fallback = {"drop": True}
        return request, Outcome("dropped")
    options = [o for o in found.options if normal(o) != normal(request.wish.get(found.slot))]
    for value in source.rng.sample(options, min(len(options), 4)):
        fallback = {**request.wish, found.slot: value}
        ends = source.outcome(request.kind, fallback)
        if ends.kind == "done":
            request.fallback = request.final = fallback
            return request, ends
    raise Infeasible


def _with_change(source: Source, request: Request, found: Outcome, alone: bool) -> tuple[Request, Outcome]:
    request.final = request.wish
    if source.rng.random() >= CHANGE_OF_MIND:
        return request, found
    if not alone and source.rng.random() < DROP:
        request.then, request.final = {"drop": True}, None
        return request, Outcome("dropped")
    slots = source.script.spec.slots
    open_to_change = [s for s in source.script.spec.intents[request.kind].slots if slots[s].change]
    source.rng.shuffle(open_to_change)
    for slot in open_to_change:
        known = _known_rows(source, request.kind, request.wish)
        values = [v for v, _ in _candidates(source, slot, known) if normal(v) != normal(request.wish[slot])]
        for value in source.rng.sample(values, min(len(values), 3)):
            then = {**request.wish, slot: value}
            ends = source.outcome(request.kind, then)
            if ends.kind == "done":
                request.then = request.final = then
                return request, ends
    return request, found


def _draw(source: Source, intent: str, *, foreign: bool) -> dict[str, Any] | None:
    """A wish: a value for every slot, and descriptions for ids that the caller has not at hand."""
    wish: dict[str, Any] = {}
    known: dict[str, Any] = {"caller": source.caller, "today": source.script.spec.today}
    for slot in source.script.spec.intents[intent].slots:
        candidates = _candidates(source, slot, known, foreign=foreign)
        if not candidates:
            return None
        value, record = source.rng.choice(candidates)
        wish[slot], known[slot] = value, record
        how = source.script.spec.slots[slot].described
        if how is None or (foreign and not how.always):
            continue
        if how.always or source.rng.random() < NO_ID:
            own = [r for _, r in _candidates(source, slot, known) if normal(r[how.match]) == normal(record[how.match])]
            if len(own) == 1:
                wish[f"described {slot}"] = record[how.match]
            elif how.always:
                return None
    return wish


def _known_rows(source: Source, intent: str, wish: Mapping[str, Any]) -> dict[str, Any]:
    """The records that a wish's slots stand for."""
    known: dict[str, Any] = {"caller": source.caller, "today": source.script.spec.today}
    for slot in source.script.spec.intents[intent].slots:
        found = [r for v, r in _candidates(source, slot, known) if normal(v) == normal(wish[slot])]
        known[slot] = found[0] if found else wish[slot]
    return known


def _candidates(source: Source, slot: str, known: Mapping[str, Any], *, foreign: bool = False) -> list[tuple[Any, Any]]:
    """(value, record) of everything that a slot could be; the record is the value itself where there is none."""
    spec = source.script.spec.slots[slot]
    how: Draw = spec.draw
    if how.values:
        return [(v, v) for v in how.values]
    if how.days is not None:
        days = [shift(source.script.spec.today, n) for n in range(how.days[0], how.days[1] + 1)]
        return [(d, d) for d in days]
    if how.rows is None:
        return [(c, c) for c in source.script.kinds[spec.kind].choices]
    if how.rows.startswith("$"):
        found = lookup(how.rows[1:], known)
        if how.via is not None:
            found = lookup(f"record.{how.path}", {"record": source.tables[how.via][found]})
    else:
        found = source.tables[how.rows]
    owner = source.script.spec.identify.id
    records = rows(found)
    if how.own:
        mine = source.caller[owner]
        records = [r for r in records if (r[owner] == mine) != foreign]
    records = [r for r in records if holds(how.where, known, r)]
    return [(r[how.field] if how.field else r, r) for r in records]
