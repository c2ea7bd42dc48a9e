"""What audits ask of a write, by running the service's plans: whether the policy forbids it, and whether the agent may
do it alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from muarl.basics.errors import OwnCodeError
from muarl.domains.auditing import LiveWorld, Occasion, spelled_out
from muarl.domains.kit.colleague import REQUEST, covers
from muarl.domains.kit.declaration import Intent
from muarl.domains.kit.exploring import explored
from muarl.domains.kit.gold import MAX_MOVES
from muarl.domains.kit.moves import Move, Request, call_key
from muarl.domains.kit.plan import next_move
from muarl.domains.kit.records import fill, same
from muarl.domains.kit.requests import values_in
from muarl.domains.kit.service import Service
from muarl.domains.kit.worlds import Worlds
from muarl.domains.knowledge.domain import KnowledgeDomain

MOST_REQUESTS = 200
"""How many requests that may have led to a call are looked at; where there are more, nothing is said of it."""


def forbidden(worlds: Worlds, tool: str, occasion: Occasion) -> str | None:
    """Why none of the service's plans leads to this call: the first refusal, where each of them refuses."""
    user = _user(worlds.service, occasion)
    if user is None:
        return None
    reasons: list[str] = []
    for intent, slot_values in _leading_to(worlds, tool, occasion):
        reason = _reason(worlds, intent, tool, slot_values, occasion, user)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0] if reasons else None


def _user(service: Service, occasion: Occasion) -> Mapping[str, Any] | None:
    """Who is served, as a tool shows them; None if nobody knows."""
    if service.identity is None:
        return {}
    record = None if occasion.person is None else occasion.record(service.identity.table, occasion.person)
    user: Mapping[str, Any] | None = service.seen(service.identity.tool, record)
    return user


def _leading_to(
    worlds: Worlds, tool: str, occasion: Occasion
) -> Iterator[tuple[Intent, Mapping[tuple[str, str], Any]]]:
    """The intents whose plans call a tool, each with what a call's arguments tell of its slots."""
    arguments = spelled_out(occasion.arguments)
    for intent in worlds.service.intents:
        exploration = explored(worlds)[intent.name]
        if tool in exploration.writes:
            yield (
                intent,
                {
                    place: arguments[name]
                    for name, place in exploration.argument_sources(tool).items()
                    if name in arguments
                },
            )


def _reason(
    worlds: Worlds,
    intent: Intent,
    tool: str,
    slot_values: Mapping[tuple[str, str], Any],
    occasion: Occasion,
    user: Mapping[str, Any],
) -> str | None:
    """Why a plan does not lead to a call, None if it does for any request that may have been made, or if that cannot
    be told. ``slot_values``: what the call's arguments tell of slots, as in ``values_in``; where there is a world, what
    they do not tell may be anything."""
    service = worlds.service
    requests, complete = _requests_for(service, intent, slot_values, occasion, user)
    if requests is None:
        return None
    reason = None
    for slots in requests:
        move = _end(service, intent, Request(intent.name, slots), occasion, user)
        if move is None or (move.kind in ("unavailable", "missing", "ask") and (complete or occasion.world is None)):
            return None
        if move.kind in ("refuse", "transfer") and reason is None:
            reason = fill(move.texts[0], move.known, service.spoken(intent.name, move.known)).rstrip(".")
        # behind another tool's call the plan cannot be followed without making it
        if move.kind == "write" and (move.tool != tool or _same_call(move, occasion)):
            return None
    return reason


def _requests_for(
    service: Service,
    intent: Intent,
    slot_values: Mapping[tuple[str, str], Any],
    occasion: Occasion,
    user: Mapping[str, Any],
) -> tuple[list[dict[str, Any]] | None, bool]:
    """The requests that may have led to a call, None for too many of them; and whether it tells all of their slots."""
    slots = {slot: value for (slot, field), value in slot_values.items() if not field}
    complete = all(slot.name in slots for slot in intent.slots)
    if occasion.world is None or complete:
        return [slots], complete
    candidates = values_in(service, intent, slot_values, _tables(occasion.world), user)
    requests = list(itertools.islice(candidates, MOST_REQUESTS + 1))
    return (requests if len(requests) <= MOST_REQUESTS else None), complete


def beyond_authority(worlds: Worlds, tool: str, occasion: Occasion) -> str | None:
    """What the agent may not do alone of this call, where every plan that leads to it asks the colleague first and
    nobody has approved it."""
    service, user = worlds.service, _user(worlds.service, occasion)
    if user is None or service.authority is None:
        return None
    asking: list[Move] = []
    for intent, slot_values in _leading_to(worlds, tool, occasion):
        requests, _ = _requests_for(service, intent, slot_values, occasion, user)
        for slots in requests or ():
            move = _end(service, intent, Request(intent.name, slots), occasion, user)
            if move is None or (move.kind == "write" and move.tool == tool and _same_call(move, occasion)):
                return None
            if move.kind == "write" and move.limit is not None and move.limit.tool == tool:
                asking.append(move)
    calls = [call for call in occasion.calls if call.name == REQUEST]
    answers = [{**call.arguments, **_decision(service, occasion, call.arguments)} for call in calls]
    if not asking or any(covers(answer, move.arguments) for answer in answers for move in asking):
        return None
    limit = asking[0].limit
    return None if limit is None else service.authority.trespass(limit, asking[0].arguments, answers)


def _decision(service: Service, occasion: Occasion, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the colleague answered to a call."""
    answer = occasion.shown(REQUEST, arguments)
    decision = service.read(REQUEST, answer) if isinstance(answer, str) else answer
    return decision if isinstance(decision, Mapping) else {}


def _same_call(move: Move, occasion: Occasion) -> bool:
    actual, planned = spelled_out(occasion.arguments), spelled_out(move.arguments)
    return actual.keys() == planned.keys() and all(same(actual[name], value) for name, value in planned.items())


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
            move = next_move(intent, request, seen, user, service.today, authority=service.authority)
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
