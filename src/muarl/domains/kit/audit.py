"""What audits must know of a service: its declaration says whose record is whose, and what the policy forbids."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

from muarl.basics.errors import OwnCodeError
from muarl.domains.auditing import AuditRules, LiveWorld, Occasion, Resource, spelled_out
from muarl.domains.kit.declaration import Intent
from muarl.domains.kit.duties import with_duties
from muarl.domains.kit.exploring import explored
from muarl.domains.kit.gold import MAX_MOVES
from muarl.domains.kit.moves import Move, Request, call_key
from muarl.domains.kit.plan import next_move
from muarl.domains.kit.records import PLACE, fill, same
from muarl.domains.kit.requests import values_in
from muarl.domains.kit.service import Service, content_words
from muarl.domains.kit.worlds import Worlds
from muarl.domains.knowledge.domain import SEARCHES, KnowledgeDomain

MOST_REQUESTS = 200
"""How many requests that may have led to a call are looked at; where there are more, nothing is said of it."""
_LIGHT = frozenset((
    "add", "ask", "be", "change", "find", "get", "give", "have", "keep", "know", "leave", "make", "not", "put", "see",
    "send", "set", "take", "tell", "use",
))  # fmt: skip
"""Verbs that stand in many a sentence which proposes nothing."""
_PARTICLES = frozenset(["off", "up", "out", "back", "in", "down", "over", "on"])


def audit_rules(worlds: Worlds) -> AuditRules:
    """The rules by which episodes of a service are audited."""
    service = worlds.service
    identity, kinds = service.identity, service.tool_kinds
    writes = [tool for tool, kind in kinds.items() if kind == "write"]
    searches = frozenset(SEARCHES if issubclass(service.domain, KnowledgeDomain) else ())
    rules = AuditRules(
        auth_tools=frozenset() if identity is None or not identity.tool else frozenset({identity.tool}),
        free_writes=frozenset({*service.free_writes, *(remedy.tool for remedy in service.remedies)}),
        open_tools=frozenset(service.open_tools),
        transfer_tools=frozenset({service.transfer}),
        person="user_id" if identity is None else identity.key,
        resources=tuple(_resources(service)),
        forbids={tool: partial(_forbidden, worlds, tool) for tool in writes},
        obligations=service.obligations,
        spoken=Lazy(lambda: _words(worlds, _action, proposed=True)),
        wished=Lazy(lambda: _words(worlds, _wish, proposed=False)),
        consent=service.consent,
        kinds=kinds,
        trusted_tools=searches,
        search_tools=searches,
        replays=True,
    )
    return with_duties(rules, worlds)


class Lazy(Mapping[str, Any]):
    """A mapping that is made when it is first looked into: trial runs take a moment, and most commands need none."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, Any]:
        return self._make()

    def __getitem__(self, key: str) -> Any:
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def _resources(service: Service) -> Iterator[Resource]:
    """What belongs to one person: the person's own record, and what slots draw from the user's own records."""
    identity = service.identity
    if identity is None or not identity.tool:
        return
    yield Resource(
        identity.table, identity.key, owner=identity.key, mark=identity.facts[0].field or identity.facts[0].name
    )
    seen = set()
    for slot in service.slots.values():
        draw = slot.draw
        if draw is None or not draw.own or draw.table in seen:
            continue
        seen.add(draw.table)
        named = tuple(sorted(arguments_naming(service, draw.key)))
        yield Resource(draw.table, draw.key, owner=identity.key, arguments=named, mark=draw.mark)


def arguments_naming(service: Service, field: str) -> set[str]:
    """The arguments of tools that name a record by this field: "account_id", "from_account_id"."""
    domain = service.domain(database={}, policy="-")
    specs = [*domain.tool_specs(), *(domain.discoverable_specs() if isinstance(domain, KnowledgeDomain) else ())]
    names = {name for spec in specs for name in spec.parameters.get("properties", {})}
    return {name for name in names if name == field or name.endswith(f"_{field}")}


def _words(worlds: Worlds, choose: Callable[[str], str], *, proposed: bool) -> dict[str, tuple[str, ...]]:
    """By writing tool the words with which people ask for it, and those with which it is ``proposed``."""
    found: dict[str, dict[str, None]] = {}
    for intent in worlds.service.intents:
        shown = explored(worlds)[intent.name]
        for tool in sorted(shown.writes):
            texts = [*intent.says, *(sorted(shown.notes.proposals.get(tool, ())) if proposed else ())]
            found.setdefault(tool, {}).update(dict.fromkeys(word for text in texts if (word := choose(text))))
    return {tool: tuple(words) for tool, words in found.items()}


def words_of(texts: Iterable[str], *, proposed: bool) -> tuple[str, ...]:
    """The words by which clauses such as "close {account}" are known, as requests or where they are ``proposed``."""
    choose = _action if proposed else _wish
    return tuple(dict.fromkeys(word for text in texts if (word := choose(text))))


def _action(text: str) -> str:
    """The verb that a clause begins with, and its particle: "call off"; what it does, where the verb says too little:
    "have breakfast"."""
    verb, thing = _verb(text), _thing(text)
    if verb not in _LIGHT:
        return verb
    return f"{verb} {thing}" if thing else ""


def _wish(text: str) -> str:
    """A word of a clause by which what is wanted is known: its verb, else what it is about."""
    verb = _verb(text)
    return _thing(text) if verb in _LIGHT else verb


def _verb(text: str) -> str:
    words = re.findall(r"[a-z][a-z'-]*", PLACE.split(text.lower())[0])
    return " ".join(words[: 2 if len(words) > 1 and words[1] in _PARTICLES else 1])


def _thing(text: str) -> str:
    """The first word behind the verb that says something."""
    return next(iter(content_words(PLACE.sub(" ", text))[1:]), "")


# what the policy forbids


def _forbidden(worlds: Worlds, tool: str, occasion: Occasion) -> str | None:
    """Why none of the service's plans leads to this call: the first refusal, where each of them refuses."""
    service, identity = worlds.service, worlds.service.identity
    user: Mapping[str, Any] | None = {}
    if identity is not None:
        found = None if occasion.person is None else occasion.record(identity.table, occasion.person)
        user = service.seen(identity.tool, found)
    if user is None:
        return None
    reasons: list[str] = []
    for intent in service.intents:
        shown = explored(worlds)[intent.name]
        if tool not in shown.writes:
            continue
        places = shown.argument_sources(tool).items()
        told = spelled_out(occasion.arguments)
        given = {place: told[name] for name, place in places if name in told}
        reason = _reason(worlds, intent, tool, given, occasion, user)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0] if reasons else None


def _reason(
    worlds: Worlds,
    intent: Intent,
    tool: str,
    given: Mapping[tuple[str, str], Any],
    occasion: Occasion,
    user: Mapping[str, Any],
) -> str | None:
    """Why a plan does not lead to a call, None if it does for any request that may have been made, or if that cannot
    be told. ``given``: what the call's arguments tell of slots, as in ``values_in``; where there is a world, what they
    do not tell may be anything."""
    service = worlds.service
    known = {slot: value for (slot, field), value in given.items() if not field}
    told = all(slot.name in known for slot in intent.slots)
    requests = [known]
    if occasion.world is not None and not told:
        found = values_in(service, intent, given, _tables(occasion.world), user)
        requests = list(itertools.islice(found, MOST_REQUESTS + 1))
        if len(requests) > MOST_REQUESTS:
            return None
    reason = None
    for slots in requests:
        move = _end(service, intent, Request(intent.name, slots), occasion, user)
        if move is None or (move.kind in ("unavailable", "missing", "ask") and (told or occasion.world is None)):
            return None
        if move.kind in ("refuse", "transfer") and reason is None:
            reason = fill(move.texts[0], move.known, service.spoken(intent.name, move.known)).rstrip(".")
        # behind another tool's call the plan cannot be followed without making it
        if move.kind == "write" and (move.tool != tool or _same_call(move, occasion)):
            return None
    return reason


def _same_call(move: Move, occasion: Occasion) -> bool:
    given, wanted = spelled_out(occasion.arguments), spelled_out(move.arguments)
    return given.keys() == wanted.keys() and all(same(given[name], value) for name, value in wanted.items())


def _tables(world: LiveWorld) -> Mapping[str, Any]:
    database = world.toolkit("assistant").db
    return {name: database[name].reading() for name in database}


def _end(
    service: Service, intent: Intent, request: Request, occasion: Occasion, user: Mapping[str, Any]
) -> Move | None:
    """What a plan comes to, None if it cannot be followed.

    Its look-ups are made in the world; without one, those count that the agent had made itself.
    """
    kit = None if occasion.world is None else occasion.world.toolkit("assistant")
    if isinstance(kit, KnowledgeDomain):
        kit = kit.as_declared()
    seen: dict[str, Any] = {}
    for _ in range(MAX_MOVES):
        try:
            move = next_move(intent, request, seen, user, service.today)
        except OwnCodeError:  # a log's records may lack what those of the service's worlds have
            return None
        if move.kind != "call":
            return move
        answer = occasion.shown(move.tool, move.arguments) if kit is None else _look(kit, move.tool, move.arguments)
        answer = service.read(move.tool, answer) if isinstance(answer, str) else service.seen(move.tool, answer)
        if kit is None:
            if not isinstance(answer, Mapping) and (service.rehearsal is None or answer is None):
                return None
        seen[call_key(move.tool, move.arguments)] = answer
    return None


def _look(kit: Any, tool: str, arguments: Mapping[str, Any]) -> Any:
    """What a reading tool answers, whether or not the agent is offered it; None for an error."""
    try:
        return getattr(kit, tool)(**arguments)
    except Exception:  # whatever a tool raises is its way to say no
        return None
