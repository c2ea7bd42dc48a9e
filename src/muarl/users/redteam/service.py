"""What red-team users must know of a service that is declared with the kit: all of it follows from the declaration."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from muarl.domains.agenda import Agenda, AgendaRequest, Goal, agenda_of
from muarl.domains.generated import Infeasible, UserRequest
from muarl.domains.kit.colleague import REQUEST
from muarl.domains.kit.requests import draw_goal, other_goal, split
from muarl.domains.kit.scenario import full_clause, scenario_text
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.knowledge.domain import KnowledgeDomain
from muarl.domains.tasks import Action, Task
from muarl.users.redteam.kinds import KINDS
from muarl.users.redteam.service_documents import ServiceDocuments
from muarl.users.redteam.service_place import GOALS, ServicePlace
from muarl.users.redteam.support import Question, RedTeamSupport, nothing_to_do, only_request, tagged, with_requests
from muarl.users.redteam.templates import WITHHOLDS


def service_support(maker: TaskMaker) -> RedTeamSupport:
    """The support of a service's environment."""
    service, place = maker.service, ServicePlace(maker)
    refuses = any(explored.may_end("refuse") for explored in maker.explored.values())
    looked_up = service.identity is not None and bool(service.identity.tool)
    answers = [name for name, explored in maker.explored.items() if "answer" in explored.ends]
    return RedTeamSupport(
        place=place,
        servable=frozenset(intent.name for intent in service.intents if not maker.explored[intent.name].steps),
        wavering=ServiceWavering(place),
        tell=_tell(maker),
        describe=lambda kind, goal, unknown: full_clause(service, kind, goal),
        question=_question(place, answers) if answers else None,
        refused=_Withheld(place, always=not refuses) if looked_up else None,
        lacks=_lacks(maker, place, insists=refuses or looked_up),
        consent=service.consent,
        free_writes=place.free_writes,
        rehearsal=None if service.rehearsal is None else maker.worlds.domain,
        documents=ServiceDocuments(place) if issubclass(service.domain, KnowledgeDomain) else None,
        transfer=service.transfer,
        caller=service.caller,
        approval=REQUEST if service.authority is not None else "",
    )


def _lacks(maker: TaskMaker, place: ServicePlace, *, insists: bool) -> dict[str, str]:
    """The kinds that a service cannot host, and why not."""
    service = maker.service
    identified, writes = service.identity is not None, any(e.writes for e in maker.explored.values())
    hosts = {
        "impostor": (identified, "its users are not identified, so nobody can pose as another"),
        "pressure": (insists, "it refuses nothing, and looks nobody up"),
        "changing": (service.consent and writes, "nothing is proposed that could be changed"),
        "injection": (identified or writes, "it writes nothing, and nobody has data that others must not see"),
        "insider": (service.authority is not None, "its agents need nobody's approval"),
    }
    lacks = {kind: why for kind, (fits, why) in hosts.items() if not fits}
    if writes and not identified and place.unplanted:  # nothing but records is left to plant an instruction in
        lacks["injection"] = place.unplanted
    return lacks


def merged_support(parts: Mapping[str, RedTeamSupport]) -> RedTeamSupport:
    """The support of an environment of several services, by their names."""
    first = next(iter(parts.values()))
    everywhere = set.intersection(*(set(part.lacks) for part in parts.values()))
    return replace(first, lacks={kind: first.lacks[kind] for kind in KINDS if kind in everywhere}, parts=parts)


def _tell(maker: TaskMaker) -> Any:
    def tell(agenda: Agenda) -> str:
        withheld = agenda["redteam"].get("identities")
        return scenario_text(maker.service, {**agenda, "identity": {}, "wrong": {}} if withheld else agenda)

    return tell


class ServiceWavering:
    """How users of a service change their minds (``support.WaveringUser``)."""

    def __init__(self, place: ServicePlace) -> None:
        self._place = place

    def changes(self, base: Task) -> bool:
        """Where an intent has such a slot."""
        service = self._place.service
        return any(slot.change for kind in self._place.kinds(base) for slot in service.intent(kind).slots)

    def other(self, base: Task, request: AgendaRequest, rng: random.Random) -> Goal | None:
        """With another value of a slot that users change."""
        source = self._place.source(base, self._place.me(base), rng)
        change = other_goal(source, request["kind"], request["goal"])
        return None if change is None else change[0]

    def again(self, base: Task, request: AgendaRequest, goal: Goal) -> bool:
        """Where the request is about a record of the user's, and the policy allows the second change, too."""
        slots = self._place.service.intent(request["kind"]).slots
        if not any(slot.draw is not None and slot.draw.own for slot in slots):
            return False
        first = self._write(base, request["kind"], request["goal"])
        second = self._write(base, request["kind"], goal)
        return first is not None and second is not None and second == self._write(base, request["kind"], goal, first)

    def write(self, base: Task, request: UserRequest) -> Action | None:
        """The one that the plan ends with."""
        assert request.final is not None
        return self._write(base, request.kind, request.final)

    def _write(self, base: Task, kind: str, goal: Mapping[str, Any], *before: Action) -> Action | None:
        source = self._place.source(base, self._place.me(base), random.Random(0), before)
        outcome = source.outcome(kind, goal)
        writes = self._place.writes(outcome.actions)
        return writes[0] if outcome.kind == "done" and len(writes) == 1 else None


def _question(place: ServicePlace, answering: Sequence[str]) -> Question:
    def question(task: Task, rng: random.Random) -> tuple[AgendaRequest, Action]:
        source = place.source(task, place.me(task), rng)
        taken = [str(v) for r in agenda_of(task)["requests"] for v in split(r["goal"])[0].values()]
        kinds = [kind for kind in place.kinds(task) if kind in answering]
        rng.shuffle(kinds)
        for kind in kinds:
            for _ in range(GOALS):
                goal = draw_goal(source, kind)
                if goal is None or any("-" in v and v in taken for v in map(str, goal.values())):
                    continue
                outcome = source.outcome(kind, goal)
                if outcome.kind == "answer" and outcome.answers and outcome.actions:
                    request = UserRequest(
                        kind, goal, unknown=list(split(goal)[1]), intent=kind, answer=outcome.answers[0]
                    )
                    return request.to_agenda(), outcome.actions[-1]
        raise Infeasible

    return question


class _Withheld:
    """Makes the task of a user who wants to be served, and does not say who it is (``support.RefusedRequest``).
    ``always``: there is nothing else to insist on."""

    def __init__(self, place: ServicePlace, *, always: bool) -> None:
        self._place, self._always = place, always

    def __call__(self, base: Task, rng: random.Random, shape: float) -> Task | None:
        if shape >= 0.25 and not self._always:
            return None
        place = self._place
        names = frozenset(intent.name for intent in place.service.intents)
        request = only_request(base, names, place.service.transfer)
        traps = place.unidentified_traps(base)
        insisting: AgendaRequest = {
            **request, "then": None, "fallback": None, "forbidden": True, "insists": rng.sample(WITHHOLDS, 2),
        }  # fmt: skip
        agenda = {**(base.agenda or {}), "wrong": {}}
        task = nothing_to_do(with_requests(replace(base, agenda=agenda), [insisting], upfront=False))
        lines = rng.sample(WITHHOLDS, 4)
        return tagged(replace(task, actions=()), "keeps its name to itself", traps, identities=lines)
