"""Whether the reward notices what is written: gold writes with another value, left out, or with one more.

Every altered conversation is replayed in a fresh world. It counts only if each of its calls succeeds and the world ends
in another state than the gold actions lead to; a reward of 1 is then one that does not look at the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from typing import Any, Literal

from muarl.domains.checking import CheckFinding
from muarl.domains.tasks import Action
from muarl_tools.checks.tasks.checked_task import CheckedTask, GoldStep, leaves

TRIES = 24
"""Altered conversations of one task and kind that are replayed."""
RECORDS = 40
"""Records at hand in which other values are looked for."""
Kind = Literal["wrong-write-earns", "extra-write-earns", "part-earns"]
REMEDY: Mapping[Kind, str] = {
    "wrong-write-earns": "Let the reward compare the database (DB), or assert this value too",
    "extra-write-earns": "Let the reward compare the database (DB), or assert that nothing else has changed",
    "part-earns": "Let the reward look at what this action changes, or leave the action out",
}


@dataclass(frozen=True, slots=True)
class Altered:
    """Gold actions with one difference. ``call``: what is written that should not be, or is not written."""

    kind: Kind
    actions: Sequence[Action]
    call: Action


def wrong_writes(checked: CheckedTask) -> Iterator[CheckFinding]:
    """One finding for each kind of alteration that earns the reward 1. Tasks whose gold actions write nothing, fail, or
    do not earn 1 themselves are not looked at, nor those that a judge of words decides."""
    task = checked.task
    writes = [step for step in checked.writes if step.changed]
    if not writes or checked.judged or any(step.failed is not None for step in checked.steps):
        return
    if checked.reward(task.actions or ()) != 1:
        return
    ways = (_replaced(checked, writes), _added(checked, writes), _left_out(checked, writes))
    for tried in ways:
        one = next((a for a in islice(tried, TRIES) if checked.reward(a.actions, altered=True) == 1), None)
        if one is not None:
            yield checked.found(one.kind, "warning", _told(one), REMEDY[one.kind])


def _told(one: Altered) -> str:
    call = f"{one.call.name}({json.dumps(dict(one.call.arguments), ensure_ascii=False, default=str)})"
    how = {
        "wrong-write-earns": f"{call} in place of the gold write",
        "extra-write-earns": f"{call} after the gold actions",
        "part-earns": f"the gold actions without {call}",
    }[one.kind]
    return f"{how} leads to another state and earns the reward 1"


def _replaced(checked: CheckedTask, writes: Sequence[GoldStep]) -> Iterator[Altered]:
    """Each gold write with another value of one argument."""
    actions = list(checked.task.actions or ())
    for step, other in _other_calls(checked, writes):
        yield Altered("wrong-write-earns", [*actions[: step.index], other, *actions[step.index + 1 :]], other)


def _added(checked: CheckedTask, writes: Sequence[GoldStep]) -> Iterator[Altered]:
    """The same calls after all gold actions."""
    actions = list(checked.task.actions or ())
    for _, other in _other_calls(checked, writes):
        yield Altered("extra-write-earns", [*actions, other], other)


def _left_out(checked: CheckedTask, writes: Sequence[GoldStep]) -> Iterator[Altered]:
    """All gold actions but one of several writes."""
    actions = list(checked.task.actions or ())
    for step in writes if len(writes) > 1 else ():
        yield Altered("part-earns", [*actions[: step.index], *actions[step.index + 1 :]], step.action)


def _other_calls(checked: CheckedTask, writes: Sequence[GoldStep]) -> Iterator[tuple[GoldStep, Action]]:
    """Gold writes with another value of one argument; the arguments take turns."""
    hand = _at_hand(checked)
    for step in writes:
        each = (_with_another(checked, hand, step.action, name) for name in step.action.arguments)
        for turn in zip_longest(*each):
            yield from ((step, action) for action in turn if action is not None)


def _with_another(checked: CheckedTask, hand: _Hand, action: Action, name: str) -> Iterator[Action]:
    value = action.arguments[name]
    for other in _others(checked, hand, action.name, name, value):
        yield replace(action, arguments={**action.arguments, name: other})


def _others(checked: CheckedTask, hand: _Hand, tool: str, name: str, value: Any) -> Iterable[Any]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, (int, float)):
        return (value + 1,)
    if isinstance(value, list):
        kept = enumerate(value)
        return ([*value[:n], o, *value[n + 1 :]] for n, v in kept if isinstance(v, str) for o in hand.others(v, name))
    return [*_choices(checked, tool, name, value), *hand.others(value, name)] if isinstance(value, str) else ()


def _choices(checked: CheckedTask, tool: str, name: str, value: str) -> list[str]:
    """The other values that the tool's schema lists."""
    spec = next((s for s in checked.domain.tool_specs() if s.name == tool), None)
    properties = {} if spec is None else spec.parameters.get("properties", {})
    return [other for other in properties.get(name, {}).get("enum", ()) if other != value]


@dataclass
class _Hand:
    """What the records at hand hold: the values of each field, and the keys that stand together."""

    fields: dict[str, dict[str, None]] = field(default_factory=dict)
    keys: list[list[str]] = field(default_factory=list)

    def take(self, value: Any, name: str = "") -> None:
        """Note what a record holds."""
        if isinstance(value, Mapping):
            self.keys.append([str(key) for key in value])
            for key, inner in value.items():
                self.take(inner, str(key))
        elif isinstance(value, (list, tuple)):
            for inner in value:
                self.take(inner, name)
        elif isinstance(value, str):
            self.fields.setdefault(name, {})[value] = None

    def others(self, value: str, name: str) -> list[str]:
        """What stands where a value stands, or in fields that are called like the argument."""
        beside = [key for keys in self.keys if value in keys for key in keys]
        alike = [one for field, values in self.fields.items() if value in values or field == name for one in values]
        return [other for other in dict.fromkeys([*beside, *alike]) if other != value]


def _at_hand(checked: CheckedTask) -> _Hand:
    """The records that the gold actions name, those that these name, and so on, up to a number."""
    hand, db = _Hand(), checked.tables
    waiting = [v for action in checked.task.actions or () for v in leaves(action.arguments)]
    seen: dict[tuple[str, str], None] = {}
    while waiting and len(seen) < RECORDS:
        key = waiting.pop(0)
        for table in db:
            if isinstance(key, str) and (table, key) not in seen and key in db[table]:
                seen[table, key] = None
                row = db[table].peek(key)
                hand.take(row)
                waiting += [leaf for leaf in leaves(row) if isinstance(leaf, str)]
    return hand
