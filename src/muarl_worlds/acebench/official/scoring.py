"""End-to-end and process accuracy: as upstream has them, and fixed.

Upstream (ACEBench/ACEBench, MIT licence) compares the final state class by class. A class that the answer does not name
is passed over, misspelt ones among them; entries that the answer does not name are passed over, too. Of the milestones
it counts those met before the first that is missing. Fixed ("fixed"): misspelt classes are meant, every class and
attribute of the answer must be there, messages and reminders may bear other numbers, and milestones are calls, met in
any order and however they are written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl_worlds.acebench.classes import class_named
from muarl_worlds.acebench.decode import UndecodableMessage, decode
from muarl_worlds.acebench.execute import json_form
from muarl_worlds.acebench.scenario import INTEGER_KEYS

State = Sequence[Mapping[str, Any]]
"""A final state, or an answer: an object with one class each, {class: {attribute: value}}."""

Milestones = Sequence[str] | Sequence[Sequence[str]]
"""Messages that are to be written, in order; or several such lists, of which the best counts."""

WRONG_NUMBER = "wrong number of class"
WRONG_ATTRIBUTES = "class attributes wrong"


@dataclass(frozen=True)
class Score:
    """One entry's score. ``error_type``: upstream's, empty if ``valid``. ``process``: 0 to 1, as upstream sums it up,
    that is unrounded but for alternatives. ``errors``: what is wrong in the fixed score."""

    valid: bool
    process: float
    error_type: str = ""
    errors: tuple[str, ...] = ()


def official(result: State, process: Sequence[str], truth: State, milestones: Milestones) -> Score:
    """Upstream's score. ``result``: the final state. ``process``: the messages that went to the executor, in order."""
    error = _official_error(result, truth)
    return Score(not error, 1.0 if not error else official_process(process, milestones), error)


def _official_error(result: State, truth: State) -> str:
    if len(result) != len(truth):
        return WRONG_NUMBER
    for answer in truth:
        found = next((entry for entry in result if set(entry) == set(answer)), None)
        if found and not _agrees(next(iter(found.values())), next(iter(answer.values()))):
            return WRONG_ATTRIBUTES
    return ""


def _agrees(attributes: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether every attribute of a final state is as the answer has it; of objects, the answer's own keys count."""
    return all(name in answer and _same(value, answer[name]) for name, value in attributes.items())


def _same(value: Any, answer: Any) -> bool:
    if not isinstance(answer, Mapping):
        return bool(answer == value)
    if not answer:
        return True
    return isinstance(value, Mapping) and all(k in value and value[k] == v for k, v in answer.items())


def official_process(process: Sequence[str], milestones: Milestones) -> float:
    """The share of milestones met before the first that is missing; of several lists the best, rounded to 3 digits."""
    if milestones and not isinstance(milestones[0], str):
        return max(round(_prefix(process, one), 3) for one in milestones)
    return _prefix(process, milestones)  # type: ignore[arg-type]


def _prefix(process: Sequence[str], milestones: Sequence[str]) -> float:
    if not milestones:
        return 1.0
    place = met = 0
    for stone in milestones:
        while place < len(process):
            place += 1
            if process[place - 1].strip() == stone.strip():
                met += 1
                break
    return met / len(milestones)


def fixed(result: State, process: Sequence[str], truth: State, milestones: Milestones) -> Score:
    """The fixed score."""
    errors = tuple(_fixed_errors(result, truth))
    process_score = 1.0 if not errors else fixed_process(process, milestones)
    return Score(not errors, process_score, WRONG_ATTRIBUTES if errors else "", errors)


def _fixed_errors(result: State, truth: State) -> list[str]:
    there = {class_named(name) or name: attributes for entry in result for name, attributes in entry.items()}
    errors = []
    for written, answer in ((name, a) for entry in truth for name, a in entry.items()):
        name = class_named(written) or written
        if name not in there:
            errors.append(f"{name}: not in the final state")
            continue
        for attribute, value in answer.items():
            if attribute not in there[name]:
                errors.append(f"{name}.{attribute}: not in the final state")
            elif not _fixed_same(attribute, there[name][attribute], value):
                errors.append(f"{name}.{attribute}: differs from the answer")
    return errors


def _fixed_same(attribute: str, value: Any, answer: Any) -> bool:
    """Messages and reminders may bear other numbers: some answers were written for a world with fewer of them."""
    if attribute not in INTEGER_KEYS or not isinstance(answer, Mapping):
        return _same(value, answer)
    return isinstance(value, Mapping) and _records(answer) <= _records(value)


def _records(numbered: Mapping[str, Any]) -> Counter[str]:
    """The records without their numbers."""
    found: Counter[str] = Counter()
    for number, record in numbered.items():
        if isinstance(record, Mapping) and str(record.get("reminder_id")) == number:
            record = {k: v for k, v in record.items() if k != "reminder_id"}
        found[json.dumps(record, sort_keys=True)] += 1
    return found


def fixed_process(process: Sequence[str], milestones: Milestones) -> float:
    """The share of the milestones' calls that were made, in any order; of several lists the best."""
    made = Counter(call for message in process for call in calls_in(message))
    alternatives = [milestones] if not milestones or isinstance(milestones[0], str) else milestones
    shares = []
    for one in alternatives:
        wanted = Counter(call for stone in one for call in calls_in(str(stone)))
        shares.append((wanted & made).total() / wanted.total() if wanted else 1.0)
    return max(shares)


_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")


def calls_in(message: str) -> tuple[str, ...]:
    """A message's calls in a form that compares; the message itself where it cannot be read.

    Blanks around it, and apostrophes within a word that end its text (``'Domino's'``, as milestones have it), are
    fixed first.
    """
    for text in (message.strip(), _APOSTROPHE.sub(r"\\'", message.strip())):
        try:
            calls = decode(text)
        except UndecodableMessage:
            continue
        return tuple(f"{c.name} {json.dumps(json_form(c.arguments), sort_keys=True)}" for c in calls)
    return (message.strip(),)
