"""What users may want: requests drawn from a made world, with what is right in the end found by the procedure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.base import Domain, World
from muarl.domains.generated import Infeasible, UserRequest
from muarl.domains.kit import gold
from muarl.domains.kit.declaration import DrawContext, Intent, RecordDescription, Slot
from muarl.domains.kit.device import BrokenDevice
from muarl.domains.kit.gold import RequestOutcome
from muarl.domains.kit.moves import Request, Rule
from muarl.domains.kit.records import Record, plain, same, wrapped
from muarl.domains.kit.service import Service
from muarl.domains.overlay import LazyTable, Searchable, some
from muarl.domains.tasks import Action, Task
from muarl.language.values import normal

CHANGE_OF_MIND = 0.4
DROP = 0.15
"""How often a user has second thoughts on hearing a right proposal, and how many of these drop the request rather than
change it where another request is left."""
DECLINE = 0.5
"""How many of those with second thoughts drop the request where it has nothing to change that matters in the end.
Without them an agent that never asks would earn as much as one that does."""
TAGGED = {
    "refuse": "forbidden",
    "transfer": "{}_handover",
    "declined": "{}_declined",
    "unavailable": "{}_unavailable",
}
"""By how a request ends, what the tag "intent" makes of its intent; that stays as it is where the request ends well."""
TRIES = 24
"""How many requests of one intent are drawn for a user before another user is tried."""


@dataclass
class RequestSource:
    """What requests are drawn from."""

    service: Service
    rng: random.Random
    domain: Domain
    """The domain whose tools find out what is right."""
    tables: Mapping[str, Mapping[str, Any]]
    task: Task
    user: Mapping[str, Any]
    """The user's record in the made world."""
    user_facts: Mapping[str, Any]
    """What a tool shows of the user."""
    rules: Mapping[str, Sequence[Rule]] = field(default_factory=dict)
    """By intent, where its plan may end otherwise than by serving it."""
    before: list[Action] = field(default_factory=list)
    """Gold actions of the requests that come first."""
    split: str = "train"
    broken: BrokenDevice | None = None
    """What is wrong with the user's device."""
    _looked: dict[int, dict[str, Any]] = field(default_factory=dict)

    def outcome(self, intent: str, goal: Mapping[str, Any]) -> RequestOutcome:
        """How a request ends in a fresh world, after what was done before."""
        slots, described = split(goal)
        request = Request(intent, {k: v for k, v in slots.items() if k not in described}, described)
        answers = self._looked.setdefault(len(self.before), {})
        return gold.run(self.service, self._world, self.user_facts, request, answers)

    def _world(self) -> World:
        world = self.domain.world(self.task)
        for action in self.before:
            gold.redo(world, action)
        return world

    def same_end(self, one: RequestOutcome, other: RequestOutcome) -> bool:
        """Whether two ways for a request to end leave the world in the same state, as where a reason is not kept."""
        states = []
        for outcome in (one, other):
            world = self._world()
            for action in outcome.actions:
                gold.redo(world, action)
            states.append(world.digest())
        return states[0] == states[1]

    def break_device(self, intent: str, goal: Mapping[str, Any], *, solvable: bool) -> bool:
        """Break what a request is about, if it is about a trouble. False where the request has no place for any, or
        something is broken already."""
        trouble = self.service.intent(intent).trouble
        if trouble is None:
            return True
        drawn = DrawContext(Record(self.tables), Record(self.user), self.service.today, goal)
        broken = None if self.broken is not None else trouble.breaks(self.rng, drawn, self.split, solvable)
        if broken is None:
            return False
        self.broken = broken
        self.task = replace(self.task, initial_actions=(*self.task.initial_actions, *broken.initial_actions))
        self._looked.clear()
        return True

    def mend_device(self, task: Task, broken: BrokenDevice | None) -> None:
        """Go back to what was wrong before."""
        if self.broken is not broken:
            self.task, self.broken = task, broken
            self._looked.clear()


def split(goal: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A request's slots, and its descriptions of records by slot."""
    described = {k.removeprefix("described "): str(v) for k, v in goal.items() if k.startswith("described ")}
    return {k: v for k, v in goal.items() if not k.startswith("described ")}, described


def tagged(intent: str, ending: str) -> str:
    """What the tag "intent" of a task with one request is, by the request's intent and how it ends."""
    return TAGGED.get(ending, "{}").format(intent)


def draw_request(source: RequestSource, intent: str, ending: str, *, alone: bool) -> tuple[UserRequest, RequestOutcome]:
    """A request whose right outcome is as wanted: "done" (or "answer"), "refuse", "transfer", "unavailable" or
    "declined".

    Infeasible if none is found. The outcome is that of the final request.
    """
    accepted = ("done", "answer") if ending == "done" else (ending,)
    rules = [r.text for r in source.rules.get(intent, ()) if r.kind == ending and ending in ("refuse", "transfer")]
    aim = source.rng.choice(rules) if rules else ""  # so that rare refusals are as frequent as common ones
    task, broken = source.task, source.broken
    ends: dict[str, RequestOutcome] = {}  # of requests drawn before, which small worlds often give again
    for attempt in range(TRIES):
        foreign = ending == "refuse" and source.rng.random() < 0.3
        goal = draw_goal(source, intent, foreign=foreign)
        if goal is None:
            continue
        source.mend_device(task, broken)
        if not source.break_device(intent, goal, solvable=ending != "transfer"):
            continue
        if source.broken is not None:  # anew in each attempt
            ends.clear()
        outcome = ends.get(repr(goal)) or source.outcome(intent, goal)
        ends[repr(goal)] = outcome
        if outcome.kind not in accepted:
            continue
        if ending in ("refuse", "transfer") and outcome.rule != aim and attempt < TRIES // 2:
            continue
        unknown = list(split(goal)[1])
        request = UserRequest(intent, goal, unknown=unknown, intent=intent)
        if ending in ("refuse", "transfer", "declined"):
            request.intent = tagged(intent, ending)
            return request, outcome
        if ending == "unavailable":
            return _with_fallback(source, request, outcome, alone)
        if outcome.kind == "answer":
            request.answer = outcome.answers[0]
            return request, outcome
        return _with_change(source, request, outcome, alone)
    raise Infeasible


def _with_fallback(
    source: RequestSource, request: UserRequest, outcome: RequestOutcome, alone: bool
) -> tuple[UserRequest, RequestOutcome]:
    request.intent = tagged(request.kind, "unavailable")
    if outcome.options != () and not alone and source.rng.random() < DROP:
        request.fallback = {"drop": True}
        return request, RequestOutcome("dropped", actions=outcome.actions)
    options = outcome.options
    if options is None:
        slot_records = known_rows(source, request.kind, request.goal)
        options = tuple(value for value, _ in _candidates(source, outcome.slot, slot_records))
    others = [o for o in options if normal(o) != normal(request.goal.get(outcome.slot))]
    for value in source.rng.sample(others, min(len(others), 4)):
        fallback = _with(source, request.kind, request.goal, outcome.slot, value)
        if fallback is None:
            continue
        ends = source.outcome(request.kind, fallback)
        if ends.kind == "done":
            request.fallback = request.final = fallback
            return request, ends
    raise Infeasible


def _with_change(
    source: RequestSource, request: UserRequest, outcome: RequestOutcome, alone: bool
) -> tuple[UserRequest, RequestOutcome]:
    request.final = request.goal
    if source.rng.random() >= CHANGE_OF_MIND:
        return request, outcome
    if not alone and source.rng.random() < DROP:
        request.then, request.final = {"drop": True}, None
        return request, outcome.dropped
    found_other = other_goal(source, request.kind, request.goal)
    if _proposed(source, request, outcome) and (found_other is None or source.same_end(outcome, found_other[1])):
        by_record = _other_record(source, request.kind, request.goal)
        if by_record is None and source.rng.random() < DECLINE:
            request.then, request.final = {"drop": True}, None
            return request, outcome.dropped
        found_other = by_record or found_other
    if found_other is None:
        return request, outcome
    request.then = request.final = found_other[0]
    return request, found_other[1]


def drops(request: UserRequest) -> bool:
    """Whether a user lets a request go on hearing the proposal."""
    return request.then is not None and bool(request.then.get("drop"))


def _proposed(source: RequestSource, request: UserRequest, outcome: RequestOutcome) -> bool:
    """Whether the user is asked before anything is written. A trouble must be over in the end, so nobody drops it."""
    asked = source.service.consent and outcome.unasked is not None
    return asked and source.service.intent(request.kind).trouble is None


def other_goal(
    source: RequestSource, intent: str, goal: Mapping[str, Any]
) -> tuple[dict[str, Any], RequestOutcome] | None:
    """A request that can be fulfilled as well, with another value of a slot about which users change their mind, and
    how it ends. None if there is none, or none is found."""
    return _with_another(source, intent, goal, [s.name for s in source.service.intent(intent).slots if s.change])


def _other_record(
    source: RequestSource, intent: str, goal: Mapping[str, Any]
) -> tuple[dict[str, Any], RequestOutcome] | None:
    """The same for who has named the wrong one of their own records, and corrects it by saying the request again."""
    spec = source.service.intent(intent)
    own = [
        s.name for s in spec.slots if not s.change and s.draw is not None and s.draw.own and spec.always_says(s.name)
    ]
    return _with_another(source, intent, goal, own)


def _with_another(
    source: RequestSource, intent: str, goal: Mapping[str, Any], open_to_change: list[str]
) -> tuple[dict[str, Any], RequestOutcome] | None:
    """The same with another value of one of these slots."""
    source.rng.shuffle(open_to_change)
    for slot in open_to_change:
        slot_records = known_rows(source, intent, goal)
        values = [v for v, _ in _candidates(source, slot, slot_records) if normal(v) != normal(goal[slot])]
        for value in source.rng.sample(values, min(len(values), 3)):
            other = _with(source, intent, goal, slot, value)
            if other is None or not _all_there(source, intent, other):
                continue
            ends = source.outcome(intent, other)
            if source.broken is not None and ends.actions == source.outcome(intent, goal).actions:
                continue  # no proposal speaks of it
            if ends.kind == "done":
                return other, ends
    return None


def _all_there(source: RequestSource, intent: str, goal: Mapping[str, Any]) -> bool:
    """Whether all that a request speaks of can be drawn together, such as an item of just this order."""
    slot_records: dict[str, Any] = {}
    for slot in source.service.intent(intent).slots:
        match = _named(source.service, slot, goal[slot.name], source.tables, source.user, slot_records)
        if match is None:
            return False
        slot_records[slot.name] = match[1]
    return True


def _with(source: RequestSource, intent: str, goal: Mapping[str, Any], slot: str, value: Any) -> dict[str, Any] | None:
    """A request with another value for a slot, which is then told as it is, or, where users never know it, described.
    None where it cannot be."""
    other = {k: v for k, v in goal.items() if k != f"described {slot}"} | {slot: value}
    how = source.service.slots[slot].described
    if how is None or not how.always:
        return other
    slot_records = known_rows(source, intent, other)
    record = slot_records[slot]
    if record == value or record[how.match] is None:
        return other
    description = _description(source, slot, how, record, slot_records)
    return None if description is None else {**other, f"described {slot}": description}


def _description(
    source: RequestSource, slot: str, how: RecordDescription, record: Any, slot_records: Mapping[str, Any]
) -> Any:
    """What tells a record from the user's others; None where nothing does."""
    alike = [r for _, r in _candidates(source, slot, slot_records) if normal(r[how.match]) == normal(record[how.match])]
    return record[how.match] if len(alike) == 1 else None


def draw_goal(source: RequestSource, intent: str, *, foreign: bool = False) -> dict[str, Any] | None:
    """A request: a value for every slot, and descriptions for ids that the user has not at hand. None where a slot has
    no value. ``foreign``: records that belong to users are other people's."""
    goal: dict[str, Any] = {}
    slot_records: dict[str, Any] = {}
    for slot in source.service.intent(intent).slots:
        candidates = _candidates(source, slot.name, slot_records, foreign=foreign)
        if not candidates:
            return None
        value, record = source.rng.choice(candidates)
        goal[slot.name], slot_records[slot.name] = value, record
        how = slot.described
        if how is None or (foreign and not how.always):
            continue
        if record[how.match] is not None and (how.always or source.rng.random() < how.share):
            description = _description(source, slot.name, how, record, slot_records)
            if description is not None:
                goal[f"described {slot.name}"] = description
            elif how.always:
                return None
    return goal


def known_rows(source: RequestSource, intent: str, goal: Mapping[str, Any]) -> dict[str, Any]:
    """The records that a request's slots stand for; a slot's value where it stands for none."""
    slot_records: dict[str, Any] = {}
    for slot in source.service.intent(intent).slots:
        said = goal[slot.name]
        match = _named(source.service, slot, said, source.tables, source.user, slot_records)
        slot_records[slot.name] = said if match is None else match[1]
    return slot_records


def _named(
    service: Service,
    slot: Slot,
    said: Any,
    tables: Mapping[str, Any],
    user: Mapping[str, Any],
    slot_records: Mapping[str, Any],
) -> tuple[Any, Any] | None:
    """What a slot's value stands for, among the user's own records or, if need be, among those of others."""
    large = _searched(slot, tables)
    if large is not None and slot.draw is not None and slot.draw.field:
        records = [wrapped(record) for _, record in large.matching({slot.draw.field: said})]
        identity = service.identity
        if identity is not None and slot.draw.own:
            records.sort(key=lambda record: bool(record[identity.key] != user[identity.key]))  # the user's own first
        return (said, records[0]) if records else None
    foreign = (False, True) if slot.draw is not None and slot.draw.own else (False,)
    matching = (
        one for others in foreign for one in possible(service, slot, tables, user, slot_records, foreign=others)
    )
    return next((one for one in matching if normal(one[0]) == normal(said)), None)


def values_in(
    service: Service,
    intent: Intent,
    slot_values: Mapping[tuple[str, str], Any],
    tables: Mapping[str, Any],
    user: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """All requests of an intent in a world, as values of its slots. ``slot_values``: what is known of a slot: its value
    as (slot, ""), fields of the record that it is drawn from as (slot, field)."""

    def filled(number: int, values: dict[str, Any], slot_records: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if number == len(intent.slots):
            yield values
            return
        slot = intent.slots[number]
        if (slot.name, "") in slot_values:
            one = _named(service, slot, slot_values[slot.name, ""], tables, user, slot_records)
            if one is None:  # the world does not have it, and what hangs on it cannot be told
                yield {**values, **{name: value for (name, field), value in slot_values.items() if not field}}
                return
            candidates = [one]
        else:
            candidates = possible(service, slot, tables, user, slot_records)
            for (name, field), field_value in slot_values.items():
                if name == slot.name:
                    candidates = [
                        (v, r)
                        for v, r in candidates
                        if isinstance(r, Record) and field in r and same(r[field], field_value)
                    ]
        for value, record in candidates:
            yield from filled(number + 1, {**values, slot.name: value}, {**slot_records, slot.name: record})

    yield from filled(0, {}, {})


def _candidates(
    source: RequestSource, name: str, slot_records: Mapping[str, Any], *, foreign: bool = False
) -> list[tuple[Any, Any]]:
    """(value, record) of everything that a slot of the request could be."""
    service = source.service
    return possible(service, service.slots[name], source.tables, source.user, slot_records, foreign=foreign)


def possible(
    service: Service,
    slot: Slot,
    tables: Mapping[str, Any],
    user: Mapping[str, Any],
    slot_records: Mapping[str, Any],
    *,
    foreign: bool = False,
) -> list[tuple[Any, Any]]:
    """(value, record) of everything that a slot may be; the record is the value itself where there is none.
    ``slot_records``: the records of slots before it."""
    identity = service.identity
    if slot.draw is None:
        return [(choice, choice) for choice in service.kind(slot).choices]
    try:
        large = _large(slot, tables)
        if large is not None and identity is not None:
            near = some(tables[slot.draw.table]) if foreign else large.matching({identity.key: user[identity.key]})
            records = [wrapped(record) for _, record in near]
        else:
            owners = (identity.key, not foreign) if slot.draw.own and identity is not None else None
            records = list(
                slot.draw.records(DrawContext(Record(tables), Record(user), service.today, slot_records, owners=owners))
            )
        if slot.draw.own and identity is not None:
            mine = user[identity.key]
            records = [record for record in records if (record[identity.key] == mine) != foreign]
        field = slot.draw.field
        return [(plain(record[field] if field else record), record) for record in records]
    except (AttributeError, LookupError, TypeError, ConfigError) as problem:
        raise ConfigError(f"{service.name}: slot {slot.name}: draw: {problem}") from problem


def _searched(slot: Slot, tables: Mapping[str, Any]) -> Searchable | None:
    """The table that holds the records for a slot, whoever's they are, where it is not to be gone through."""
    table = tables.get(slot.draw.table) if slot.draw is not None and slot.draw.table else None
    return table if isinstance(table, LazyTable) and isinstance(table, Searchable) else _large(slot, tables)


def _large(slot: Slot, tables: Mapping[str, Any]) -> Searchable | None:
    """The table that holds the user's own records for a slot, where it is one that is not to be gone through."""
    table = tables.get(slot.draw.table) if slot.draw is not None and slot.draw.own else None
    # A protocol's isinstance looks at all attributes: it is not asked of nothing, nor of a dict, as most tables are.
    return None if table is None or type(table) is dict or not isinstance(table, Searchable) else table
