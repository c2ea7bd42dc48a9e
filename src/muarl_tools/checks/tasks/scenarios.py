"""A task's scenario against the database: ids that there are not, persons who are described wrongly, what they lack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from muarl.domains.checking import CheckFinding, Fix, Level
from muarl.domains.database import Database
from muarl.domains.task_rules import field_of, says, words_for
from muarl.language.facts import KINDS, dates
from muarl_tools.checks.tasks.checked_task import WORD, CheckedTask, leaves

MASKS = 6
"""Forms of ids that one table has at most, where its ids have forms at all."""
_DOUBTFUL = re.compile(
    r"wrong|incorrect|mistak|mis-?remember|not sure|unsure|typo|fake|made.up|does(?:n.t| not) exist|pretend|false"
    r"|forgot|at first|first(?:,| give| provide)|does(?:n.t| not) work",
    re.IGNORECASE,
)
"""What is said of a thing that the user is meant to be mistaken about."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_ZIP = re.compile(
    r"\b(?:zip|postal|post)(?: ?code)?(?: is|:| of)?\s+(\d{5})\b"
    r"|\bYou are [A-Z][\w'-]+ [A-Z][\w'-]+ (?:in|from) (\d{5})\b"
)
_NAME = re.compile(r"\b(?:[Yy]ou are|[Yy]our name is|[Yy]ou're) ([A-Z][a-z'’-]+) ([A-Z][a-z'’-]+)\b")
_USER_ID = re.compile(r"\b[a-z]+_[a-z]+_\d{3,5}\b")
_MAIL = dict(KINDS)["email"]
_BORN = re.compile(r"birth|born|\bdob\b", re.IGNORECASE)
_KINDS = {
    "paypal": ("paypal",),
    "gift card": ("gift card", "giftcard"),
    "certificate": ("travel certificate",),
    "visa": ("visa",),
    "mastercard": ("mastercard", "master card"),
}


def scenarios(checked: CheckedTask) -> Iterator[CheckFinding]:
    """All of it."""
    yield from _ids(checked)
    yield from _persona(checked)
    yield from _payments(checked)
    yield from _identified(checked)


# ids


def _ids(checked: CheckedTask) -> Iterator[CheckFinding]:
    text = checked.task.scenario
    base = checked.task.database or checked.domain.base
    shapes, known = _shapes_of(base)
    unknown = {
        match
        for shape in shapes
        for match in re.findall(WORD.format(shape), text)
        if match not in known and not any(match in k for k in _made(checked))
    }
    if unknown:
        told = ", ".join(sorted(unknown))
        meant = all(doubted(text, one) for one in unknown) or not any(s.changed for s in checked.steps)
        level: Level = "note" if meant else "warning"
        evidence = f"the scenario names {told}, which the database does not have"
        yield checked.found("unknown-id", level, evidence, "Correct the id, or say in the scenario that the user is "
                    "mistaken")  # fmt: skip
    if checked.person is None:
        return
    for resource in checked.source.audit.resources:
        if resource.table not in checked.tables:
            continue
        for key in sorted(_named(text, checked.tables[resource.table])):
            owner = checked.owner(resource, key)
            if owner is not None and owner != checked.person:
                evidence = f"{key} belongs to {owner}, and the scenario is about {checked.person}"
                yield checked.found("others-id", "note", evidence, "Name a record of the scenario's user, or say that "
                            "it is somebody else's")  # fmt: skip


def doubted(text: str, value: str) -> bool:
    """Whether the sentence that names a value, or the one after it, says that the user is mistaken about it."""
    sentences = _SENTENCE.split(text)
    places = [n for n, sentence in enumerate(sentences) if value in sentence]
    return any(_DOUBTFUL.search(" ".join(sentences[n : n + 2])) for n in places)


def _named(text: str, table: Any) -> set[str]:
    return {word for word in re.findall(r"#?[\w-]+", text) if len(word) > 3 and word in table}


def _made(checked: CheckedTask) -> list[str]:
    """Ids that the task's own data or gold actions bring along."""
    given = [str(v) for v in leaves(checked.task.initial_data or {})]
    return given + [str(v) for a in checked.task.actions or () for v in leaves(a.arguments)]


_known: dict[int, tuple[Database, tuple[tuple[str, ...], frozenset[str]]]] = {}


def _shapes_of(base: Database) -> tuple[tuple[str, ...], frozenset[str]]:
    """What the ids of a database look like, and all text that stands in it; kept for the last databases."""
    kept = _known.get(id(base))
    if kept is not None and kept[0] is base:
        return kept[1]
    if len(_known) > 32:
        _known.clear()
    values = frozenset(str(v) for table in base.tables.values() for v in leaves(_rows(table)))
    made = tuple(dict.fromkeys(shape for t in base.tables.values() for shape in _shapes([str(k) for k in t])))
    _known[id(base)] = (base, (made, values))
    return made, values


def _rows(table: Any) -> dict[str, Any]:
    scan = getattr(table, "scan", None)
    return dict(scan()) if scan is not None else dict(table.items())


def _shapes(keys: list[str]) -> tuple[str, ...]:
    """Patterns of a table's ids: with letters and digits where all have theirs (names before them may differ)."""
    masks = {_mask(key) for key in keys}
    if not keys or not all(re.search(r"\d", mask) for mask in masks):
        pass
    elif len(masks) <= MASKS and all(mask.count(r"\d") or r"\d{" in mask for mask in masks):
        return tuple(mask for mask in sorted(masks) if _telling(mask))
    lengths = {len(key) for key in keys}
    if len(keys) > MASKS and len(lengths) == 1 and all(re.fullmatch(r"[A-Z0-9]+", key) for key in keys):
        return (rf"(?=[A-Z0-9]*[A-Z])(?=[A-Z0-9]*\d)[A-Z0-9]{{{lengths.pop()}}}",)
    return ()


def _mask(key: str) -> str:
    """An id as a pattern: runs of digits by their number, lower-case words as such, capitals and signs as they are."""
    parts = re.findall(r"\d+|[a-z]+|[^\da-z]+", key)
    return "".join(rf"\d{{{len(p)}}}" if p.isdigit() else "[a-z]+" if p.islower() else re.escape(p) for p in parts)


def _telling(mask: str) -> bool:
    """Whether what looks like that is an id and no plain number: letters or a sign besides, or many digits."""
    digits = sum(map(int, re.findall(r"\\d\{(\d+)\}", mask)))
    return digits >= 8 or (digits >= 2 and bool(re.sub(r"\\d\{\d+\}", "", mask)))


# the user


def _persona(checked: CheckedTask) -> Iterator[CheckFinding]:
    declared, person = checked.source.rules.people, checked.person
    record = None if person is None else checked.people.get(person)
    if declared is None or record is None:
        return
    text, fields = checked.task.scenario, declared[1]
    has = {name: field_of(record, path) for name, path in fields.items()}
    vain = {v for s in checked.steps if s.failed is not None for v in s.action.arguments.values() if isinstance(v, str)}
    for what, said, right in _claims(text, has, str(person)):
        meant = doubted(text, said) or said in vain or right in text
        level: Level = "note" if meant else "warning"
        evidence = f"the scenario gives the {what} {said}, and the database has {right} for {person}"
        yield checked.found("persona-differs", level, evidence, f"Give the {what} that the database has, or say that "
                    "the user is mistaken")  # fmt: skip


def _claims(text: str, has: Mapping[str, Any], person: str) -> Iterator[tuple[str, str, str]]:
    """(what, as said, as it is) of each thing that a scenario says of its user and the database differently."""
    for match in _MAIL.finditer(text):
        if has.get("email") and match.group().rstrip(".").lower() != str(has["email"]).lower():
            yield "e-mail address", match.group(), str(has["email"])
    for match in _USER_ID.finditer(text):
        if match.group() != person and _USER_ID.fullmatch(person):
            yield "user id", match.group(), person
    for match in _ZIP.finditer(text):
        said = match.group(1) or match.group(2)
        if has.get("zip") and said != str(has["zip"]):
            yield "zip code", said, str(has["zip"])
    for match in list(_NAME.finditer(text))[:1]:
        first, last = str(has.get("first_name", "")), str(has.get("last_name", ""))
        if first and last and match.groups() != (first, last):
            yield "name", " ".join(match.groups()), f"{first} {last}"
    if has.get("dob") and _BORN.search(text):
        told = [(day, written) for day, written in dates(text) if day[0] < 2015]
        right = next(iter(dates(str(has["dob"]))), None)
        own = r"\byour? .{0,30}(?:birth|born|dob).{0,20}"
        near = [w for day, w in told if right is not None and day != right[0] and re.search(own + re.escape(w), text)]
        for written in near[:1]:
            yield "date of birth", written, str(has["dob"])


def _payments(checked: CheckedTask) -> Iterator[CheckFinding]:
    record = checked.people.get(checked.person or "")
    methods = None if record is None else record.get(checked.source.rules.payments)
    if not isinstance(methods, Mapping) or not methods:
        return
    has = {word for method in methods.values() for word in words_for(method)}
    lacking = [kind for kind, words in _KINDS.items() if says(checked.task.scenario, words) and not set(words) & has]
    if lacking:
        evidence = f"the scenario speaks of {' and '.join(lacking)}, and {checked.person} has {', '.join(methods)}"
        yield checked.found("payment-missing", "warning", evidence, "Name a payment method that the user has, or say "
                    "what they want where it is not possible")  # fmt: skip


def _identified(checked: CheckedTask) -> Iterator[CheckFinding]:
    """Whether the scenario has all that one of the policy's tools for that asks for."""
    declared, person, text = checked.source.rules.people, checked.person, checked.task.scenario
    record = None if person is None else checked.people.get(person)
    audit = checked.source.audit
    if declared is None or record is None or not audit.auth_tools:
        return
    lacking = []
    for spec in checked.domain.tool_specs():
        if spec.name not in audit.auth_tools:
            continue
        wanted = {name: _value(name, record, declared[1], audit.person, str(person)) for name in _needed(spec)}
        missing = [
            n for n, v in wanted.items() if v is None or not re.search(WORD.format(re.escape(str(v))), text, re.I)
        ]
        if not missing:
            return
        lacking.append(f"{spec.name} needs {', '.join(missing)}")
    if lacking:
        said = _introduction(record, declared[1], audit.person, str(person))
        yield checked.found("not-identified", "warning", f"the user is not told who they are: {'; '.join(lacking)}",
                    "Tell it in the scenario", *((Fix("say", said, settled=True),) if said else ()))  # fmt: skip


def _needed(spec: Any) -> list[str]:
    properties = spec.parameters.get("properties", {})
    return list(spec.parameters.get("required", properties))


def _value(name: str, record: Mapping[str, Any], fields: Mapping[str, str], person: str, key: str) -> Any:
    if name == person:
        return key
    return field_of(record, fields[name]) if name in fields else record.get(name)


def _introduction(record: Mapping[str, Any], fields: Mapping[str, str], person: str, key: str) -> str | None:
    if {"first_name", "last_name", "zip"} <= set(fields):
        first, last, code = (field_of(record, fields[n]) for n in ("first_name", "last_name", "zip"))
        return f"Your name is {first} {last}, your zip code is {code}, and your user id is {key}."
    return None
