"""What a service's plans may come to, found out by running them on drawn requests: their rules, tools and slots."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from muarl.basics.errors import ConfigError, OwnCodeError
from muarl.domains.auditing import spelled_out
from muarl.domains.generated import Infeasible
from muarl.domains.kit import gold
from muarl.domains.kit.moves import Notes, Request, Rule, looked_up
from muarl.domains.kit.records import Record, fill, plain
from muarl.domains.kit.requests import RequestSource, draw_goal, known_rows, split
from muarl.domains.kit.service import SIZES, Service
from muarl.domains.kit.worlds import Worlds
from muarl.domains.tasks import Action
from muarl.language.values import normal

SMALL = SIZES["small"]
WORLDS = 12
"""How many small worlds are looked at."""
REQUESTS = 6
"""How many requests of each intent are run in each of them, half of them about other people's records."""


_SUM = re.compile(
    r"[$€£¥]\s?(\d[\d,]*(?:\.\d+)?)|(\d[\d,]*(?:\.\d+)?)\s?(?:dollars|euros|pounds|yuan)\b", re.IGNORECASE
)
_PAID_BACK = re.compile(r"\brefund|\b(?:pay|paid|get|given?) (?:you )?back\b", re.IGNORECASE)


@dataclass
class WrittenWords:
    """What an intent's plan has users told of a writing tool."""

    unasked: bool = False
    """Whether it was ever called without a proposal before it."""
    calls: int = 0
    """How often it was called."""
    priced: int = 0
    """How many of the proposals named a sum of money in each wording."""
    news: int = 0
    """How many proposals named a sum that was news to the user."""
    silent: bool = False
    """Whether a request ever ended without the words of ``done``."""
    done: set[str] = field(default_factory=set)
    """What is said once it is done."""


@dataclass
class Exploration:
    """What trial runs have shown of one intent's plan."""

    notes: Notes = field(default_factory=Notes)
    """Its rules, in its order, and texts."""
    ends: set[str] = field(default_factory=set)
    """The kinds of end that were reached, other than "missing"."""
    reads: set[str] = field(default_factory=set)
    """The reading tools that it calls."""
    writes: set[str] = field(default_factory=set)
    """The writing tools that it calls."""
    sources: dict[tuple[str, str], set[tuple[str, str]]] = field(default_factory=dict)
    """By writing tool and argument, where the value always came from: (slot, "") for what the user said, (slot, field)
    for a field of the record that it was drawn from."""
    problems: list[str] = field(default_factory=list)
    """What went wrong in it: bugs of its own, and writes of its that failed."""
    missing: list[str] = field(default_factory=list)
    """Errors of look-ups by which it came to nothing, as they do where a user speaks of what is not there."""
    steps: bool = False
    """Whether the user takes any with tools of their own."""
    words: dict[str, WrittenWords] = field(default_factory=dict)
    """By writing tool what is said of it."""

    @property
    def rules(self) -> list[Rule]:
        """Where it may end otherwise than by serving the request."""
        return self.notes.rules

    @property
    def tools(self) -> set[str]:
        """All tools that it calls."""
        return self.reads | self.writes

    def may_end(self, ending: str) -> bool:
        """Whether it may end as wanted: "done", "refuse", "transfer", "unavailable"."""
        if ending == "done":
            return not self.ends.isdisjoint(("done", "answer"))
        return any(rule.kind == ending for rule in self.rules)

    def argument_sources(self, tool: str) -> dict[str, tuple[str, str]]:
        """By argument of a writing tool where its value comes from, as in ``sources``: one place where there is any."""
        sources = {argument: places for (name, argument), places in self.sources.items() if name == tool and places}
        return {argument: min(places, key=lambda place: (place[1], place[0])) for argument, places in sources.items()}


@lru_cache(maxsize=64)
def explored(worlds: Worlds) -> Mapping[str, Exploration]:
    """What trial runs show of each intent, the same every time."""
    explorations = {intent.name: Exploration() for intent in worlds.service.intents}
    for number in range(WORLDS):
        rng = random.Random(f"{worlds.service.name} exploring {number}")
        world = worlds.world("train", 0, number * SMALL.tasks_per_world, 0, SMALL)
        for intent in worlds.service.intents:
            for request in range(REQUESTS):
                try:
                    source = worlds.source(rng, "exploring", world, "train", {})
                    goal = draw_goal(source, intent.name, foreign=request % 2 == 1)
                except Infeasible:
                    continue
                if goal is not None and source.break_device(intent.name, goal, solvable=request % 3 != 0):
                    _check_read(worlds.service, intent.name, source.user, goal)
                    _run(worlds, explorations[intent.name], source, intent.name, goal)
    return explorations


def _check_read(service: Service, intent: str, user: Mapping[str, Any], goal: Mapping[str, Any]) -> None:
    """ConfigError where a value cannot be read from the words with which it is said."""
    slots, described = split(goal)
    said = [(f"slot {s.name}", service.kind(s), slots[s.name]) for s in service.intent(intent).slots]
    for name, value in described.items():
        if (how := service.slots[name].described) is not None:
            said.append((f"slot {name}: described", service.kind(how), value))
    said += [(f"fact {f.name}", service.kind(f), f.of(user)) for f in service.facts]
    for where, kind, value in said:
        text = kind.say(value, None)
        if normal(value) not in [normal(mention.value) for mention in kind.find(text)]:
            raise ConfigError(
                f"{service.name}: {where}: kind: {kind.name!r} does not find {value!r} in {text!r}: the kind must fit "
                "the values that are drawn"
            )


def _run(worlds: Worlds, exploration: Exploration, source: RequestSource, intent: str, goal: Mapping[str, Any]) -> None:
    """Run one request twice: with its conditions passed over, and as it stands."""
    slots, described = split(goal)
    for notes in (exploration.notes, None):
        request = Request(intent, {k: v for k, v in slots.items() if k not in described}, dict(described))
        try:
            outcome = gold.run(
                worlds.service, partial(source.domain.world, source.task), source.user_facts, request, notes=notes
            )
        except (Infeasible, OwnCodeError, LookupError) as problem:
            if notes is None and str(problem) not in exploration.problems:
                # past a condition that should have ended it, it may well stumble
                exploration.problems.append(str(problem))
            continue
        finally:
            exploration.reads |= {looked_up(key)[0] for key in request.looked}
            exploration.steps = exploration.steps or bool(request.reported)
        if outcome.kind == "missing":
            exploration.missing += [outcome.error] if outcome.error not in exploration.missing else []
        else:
            exploration.ends.add(outcome.kind)
        exploration.writes |= {a.name for a in outcome.actions if _writes(worlds, a)}
        records = known_rows(source, intent, goal)
        numbers = _numbers_in([slots, *(r for s, r in records.items() if _is_own(worlds, s))])
        _note_words(exploration, worlds.service, intent, numbers, outcome, as_it_stands=notes is None)
        if notes is None:
            _note_sources(exploration, worlds, outcome, slots, records)


def _note_words(
    exploration: Exploration,
    service: Service,
    intent: str,
    numbers: set[float],
    outcome: gold.RequestOutcome,
    *,
    as_it_stands: bool,
) -> None:
    """Note what is said before and after each write. ``numbers``: those that the user has named, or that stand in the
    records which they speak of. ``as_it_stands``: no condition was passed over."""
    sums: list[set[float]] | None = None
    for move in outcome.writes:
        if move.texts:
            spoken = service.spoken(intent, move.known)
            try:
                sums = [_sums(fill(text, move.known, spoken)) for text in move.texts]
            except LookupError:  # past a condition that should have ended it
                sums = []
        words = exploration.words.setdefault(move.tool, WrittenWords())
        words.unasked = words.unasked or sums is None
        words.calls += 1
        words.priced += bool(sums) and all(sums or ())
        words.news += any(total - numbers for total in sums or ())
        if as_it_stands:
            ending = outcome.ending
            texts = ending.texts if ending is not None and ending.kind in ("finished", "answer") else ()
            words.done.update(texts)
            words.silent = words.silent or not texts


def _sums(text: str) -> set[float]:
    """The sums of money in a text; what is paid back counts twice, so that it is never taken for known."""
    sums = {float((signed or spelled).replace(",", "")) for signed, spelled in _SUM.findall(text)}
    return sums | {-one for one in sums} if _PAID_BACK.search(text) else sums


def _is_own(worlds: Worlds, slot: str) -> bool:
    """Whether a slot is drawn from the user's own records."""
    draw = worlds.service.slots[slot].draw
    return draw is not None and draw.own


def _numbers_in(values: Any) -> set[float]:
    """All numbers within JSON, and texts that are numbers."""
    value = plain(values)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return set().union(*map(_numbers_in, value))
    try:
        return set() if isinstance(value, bool) else {float(value)}
    except (TypeError, ValueError):
        return set()


def _writes(worlds: Worlds, action: Action) -> bool:
    """Whether an action is a write of the agent's."""
    return action.requestor == "assistant" and worlds.domain.kind_of(action.name) == "write"


def _note_sources(
    exploration: Exploration,
    worlds: Worlds,
    outcome: gold.RequestOutcome,
    slots: Mapping[str, Any],
    records: Mapping[str, Any],
) -> None:
    places = {(slot, ""): value for slot, value in slots.items()}
    for slot, record in records.items():
        if isinstance(record, Record):
            places |= {(slot, name): plain(record[name]) for name in record}
    for action in outcome.actions:
        if not _writes(worlds, action):
            continue
        for argument, value in spelled_out(action.arguments).items():
            equal = {place for place, there in places.items() if there == value and type(there) is type(value)}
            sources = exploration.sources.setdefault((action.name, argument), equal)
            exploration.sources[action.name, argument] = sources & equal
