"""The words of a scenario's tiny size that the tiny model's tokenizer makes one token each (recipes/tiny.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muarl.domains.desk import wording
from muarl.domains.desk.compact import write
from muarl.domains.desk.generator import SIZES, TaskMaker
from muarl.domains.desk.oracle import call
from muarl.domains.desk.people import FIRST_NAMES, LAST_NAMES, TINY_NAMES
from muarl.domains.desk.values import say_date

WORLDS = 120
"""How many tiny worlds are looked at for their words."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HEAD = re.compile(r"(\w+[:>] )?(.*)")
_LITERAL = re.compile(r"\{\^?\}|\{\w[\w.]*(?:\|\w+)?\}")


def entities(maker: TaskMaker) -> list[str]:
    """Ids, names and values: all that stands in the records of tiny worlds, and how callers say it."""
    firsts, lasts = FIRST_NAMES[:TINY_NAMES], LAST_NAMES[:TINY_NAMES]
    found: dict[str, None] = dict.fromkeys([*firsts, *(f"{n} " for n in firsts), *lasts])
    for split in ("train", "validation", "test"):
        for number in range(WORLDS // 3):
            tables, _ = maker.world(split, 0, number, 0, SIZES["tiny"])
            for value in _leaves(tables):
                for text in _spellings(value):
                    found[text] = None
    for kind in maker.script.spec.kinds.values():
        for wordings in (kind.words or {}).values():
            found |= dict.fromkeys(wordings)
    for slot, spec in maker.script.spec.slots.items():
        found |= dict.fromkeys(maker.script.say(slot, value) for value in spec.draw.values)
    return [text for text in found if len(text) > 1]


def phrases(maker: TaskMaker) -> list[str]:
    """Fixed pieces of what is said, and what stands around the values in compact observations."""
    texts = [*_said(maker), *_observed(maker)]
    pieces = [piece for text in texts for piece in _LITERAL.split(text)]
    return list(dict.fromkeys(p for p in pieces if len(p.strip()) > 1))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _spellings(value: Any) -> Iterable[str]:
    """How a record's value is written and said."""
    if isinstance(value, bool) or value is None:
        return ()
    if isinstance(value, float):
        return (f"{value:.2f}",)
    if not isinstance(value, str) or len(value) < 2:
        return ()
    if _DAY.fullmatch(value):
        return (value, say_date(value), say_date(value, year=True))
    return () if value.split(" ")[0] in FIRST_NAMES else (value,)


def _said(maker: TaskMaker) -> Iterator[str]:
    """What experts and callers may say, as templates."""
    spec = maker.script.spec
    for several in (
        wording.ALSO, wording.STILL, wording.RESTATED, wording.CORRECTIONS, wording.DROPS, wording.ACCEPTS,
        wording.HELLO, wording.HOW_ELSE, wording.THANKS, wording.PROPOSALS, wording.REFUSALS, wording.SHORTAGES,
        wording.MISSING, wording.UNIDENTIFIED, wording.ASIDES, *wording.GREETINGS.values(), *wording.OPENINGS.values(),
        *wording.YES.values(), *wording.ENDINGS.values(), spec.identify.ask, spec.identify.retry, spec.identify.say,
    ):  # fmt: skip
        yield from several
    for name in maker.intents("tiny"):
        intent = spec.intents[name]
        yield from (*intent.say, *intent.because)
        for step in intent.steps:
            yield from (step.refuse or "", *(step.answer or ()), *step.propose, *step.done)
        for slot in intent.slots:
            one = spec.slots[slot]
            yield from (*one.ask, *one.say, *one.change, one.phrase)
            if one.described is not None:
                yield from (*one.described.say, one.described.phrase)


def _observed(maker: TaskMaker) -> Iterator[str]:
    """The keys of compact observations, from the look-ups of a few tasks."""
    for number in range(40):
        task = maker.task("train", number, size="tiny")
        world = maker.domain.world(task)
        for action in task.actions or ():
            result = call(world, action.name, action.arguments)
            if isinstance(result, Mapping):
                for line in write(result).split("\n"):
                    head, fields = _HEAD.fullmatch(line).groups()  # type: ignore[union-attr]
                    keys = [field.split(" ", 1)[0] for field in fields.split("; ")]
                    yield from (head or "", f"\n{head}" if head else "")
                    yield from (form for key in keys for form in (f"{key} ", f"; {key} ", f"\n{key} "))
