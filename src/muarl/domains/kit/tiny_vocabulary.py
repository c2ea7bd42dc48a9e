"""The words of a service's tiny size that the tiny model's tokenizer makes one token each (recipes/tiny.py)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from muarl.domains.kit import templates
from muarl.domains.kit.compact import split_fields, write
from muarl.domains.kit.declaration import several
from muarl.domains.kit.gold import call
from muarl.domains.kit.people import FIRST_NAMES, LAST_NAMES, TINY_NAMES
from muarl.domains.kit.tasks import TaskMaker
from muarl.language.values import say_date

WORLDS = 120
"""How many tiny worlds are looked at for their words."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HEAD = re.compile(r"(\w+[:>] |- )?(.*)")
_LITERAL = re.compile(r"\{\^?\d?\}|\{\w[\w.]*(?:\|\w+)?\}")


def entities(maker: TaskMaker) -> list[str]:
    """Ids, names and values: all that stands in the records of tiny worlds, and how users say it. Where the service has
    a ``view``, only what it shows, and what users say."""
    fields = None if maker.service.view is None else _shown_fields(maker)
    firsts, lasts = FIRST_NAMES[:TINY_NAMES], LAST_NAMES[:TINY_NAMES]
    texts: dict[str, None] = dict.fromkeys([*firsts, *(f"{n} " for n in firsts), *lasts])
    for split in ("train", "validation", "test"):
        for number in range(WORLDS // 3):
            tables, _ = maker.worlds.world(split, 0, number, 0, maker.service.smallest)
            for value in _leaves(tables, fields):
                for text in _spellings(value):
                    texts[text] = None
    for slot in maker.service.slots.values():
        kind = maker.service.kind(slot)
        texts |= dict.fromkeys(wording for choice in kind.choices for wording in kind.wordings(choice))
        values = slot.draw.values if slot.draw else ()
        texts |= dict.fromkeys(kind.say(value, None) for value in values)
        texts |= dict.fromkeys(value for value in values if isinstance(value, str))
    return [text for text in texts if len(text) > 1]


def phrases(maker: TaskMaker) -> list[str]:
    """Fixed pieces of what is said, and what stands around the values in compact observations."""
    texts = [*_said(maker), *_observed(maker)]
    pieces = [piece for text in texts for piece in _LITERAL.split(text) if len(piece.strip()) > 1]
    return list(dict.fromkeys([*pieces, *maker.service.vocabulary]))


def _leaves(value: Any, fields: Collection[str] | None, field: str = "") -> Iterator[Any]:
    """What stands in records, in any of the ``fields`` (None: in all)."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, fields, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, fields, field)
    elif fields is None or field in fields:
        yield value


def _shown_fields(maker: TaskMaker) -> set[str]:
    """The fields that observations of a few tasks show, and those that users speak of."""
    slots = maker.service.slots.values()
    fields = {slot.draw.field for slot in slots if slot.draw is not None and slot.draw.field}
    fields |= {slot.described.match for slot in slots if slot.described is not None}
    fields |= {fact.field or fact.name for fact in maker.service.facts}
    pending: list[Any] = list(_results(maker))
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            fields |= one.keys()
        if isinstance(one, (Mapping, list)):
            pending += one.values() if isinstance(one, Mapping) else one
    return fields


def _spellings(value: Any) -> Iterable[str]:
    """How a record's value is written and said."""
    if isinstance(value, bool) or value is None:
        return ()
    if isinstance(value, float):
        return (f"{value:.2f}",)
    if not isinstance(value, str) or len(value) < 2 or "\n" in value:
        return ()
    if _DAY.fullmatch(value):
        return (value, say_date(value), say_date(value, year=True))
    return () if value.split(" ")[0] in FIRST_NAMES else (value,)


def _said(maker: TaskMaker) -> Iterator[str]:
    """What experts and users may say, as templates."""
    service = maker.service
    for texts in (
        templates.ALSO, templates.STILL, templates.RESTATED, templates.CORRECTIONS, templates.DROPS, templates.ACCEPTS,
        templates.HELLO, templates.HOW_ELSE, templates.THANKS, templates.PROPOSALS, templates.REFUSALS,
        templates.SHORTAGES, (templates.NOT_AVAILABLE,), templates.TAKEN, templates.GIVEN_UP,
        templates.MISSING, templates.UNIDENTIFIED, templates.ASIDES,
        *templates.GREETINGS.values(), *templates.OPENINGS.values(),
        *templates.YES.values(), *templates.ENDINGS.values(),
    ):  # fmt: skip
        yield from texts
    if service.authority is not None:
        yield from (*templates.PRESSES, *templates.PATIENT, *templates.NOT_ALONE, *service.authority.texts())
    if service.device is not None:
        yield from (word for words in service.device.words.values() for word in words.values())
        yield from (*templates.WORKS, *templates.FAILS, *templates.DID, templates.HOW)
        yield from (lead for leads in templates.LEADS.values() for lead in leads)
    if service.identity is not None:
        for said in (service.identity.ask, service.identity.retry, service.identity.say):
            yield from several(said)
    for name in maker.intents(service.smallest.name):
        intent = service.intent(name)
        yield from (*intent.says, *intent.because, *maker.explored[name].notes.texts)
        for slot in intent.slots:
            yield from (*several(slot.ask), *several(slot.say), *several(slot.change), slot.phrase)
            if slot.described is not None:
                yield from (*several(slot.described.say), slot.described.phrase)


def _results(maker: TaskMaker) -> Iterator[Any]:
    """What the gold actions of a few tasks show, as far as it is records."""
    for number in range(40):
        task = maker.task("train", number, size=maker.service.smallest.name)
        world = maker.worlds.domain.world(task)
        for action in task.actions or ():
            result = maker.service.seen(action.name, call(world, action.name, action.arguments))
            if isinstance(result, (Mapping, list)):
                yield result


def _observed(maker: TaskMaker) -> Iterator[str]:
    """The keys of compact observations, as they stand there."""
    for result in _results(maker):
        for line in write(result, maker.service.texts).split("\n"):
            head, fields = _HEAD.fullmatch(line).groups()  # type: ignore[union-attr]
            keys = [field.split(" ", 1)[0] for field in split_fields(fields)]
            yield from (head, f"\n{head}") if head else (f"\n{keys[0]} ",)
            yield from (f"{keys[0]} ", *(f"; {key} " for key in keys[1:]))
