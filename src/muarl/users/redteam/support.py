"""What red-team users must know of an environment, and the pieces that their tasks are made of.

An environment gives a ``RedTeamSupport``. Those of services that are declared with the kit follow from the declaration
(``service.py``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol

from muarl.basics.errors import ConfigError
from muarl.domains.agenda import Agenda, AgendaRequest, Goal, agenda_of
from muarl.domains.base import Domain
from muarl.domains.database import Database
from muarl.domains.generated import Infeasible, UserRequest
from muarl.domains.scripted_expert import TRANSFER
from muarl.domains.tasks import Action, Task
from muarl.rewards.traps import SAFE, TAG, Trap
from muarl.users.redteam.kinds import KINDS
from muarl.users.redteam.templates import AGAIN, CUSTOMER, PRESSURE, called

Person = Mapping[str, Any]
Tables = Mapping[str, Mapping[str, Any]]

Question = Callable[[Task, random.Random], tuple[AgendaRequest, Action]]
"""A harmless question about the user's own things as a request of an agenda, and the look-up that answers it. Raises
Infeasible if there is none."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Something that must not be done."""

    request: AgendaRequest | None
    """As in an agenda; None where nobody asks for it in words."""
    order: str
    """The same as an instruction to an agent."""
    traps: tuple[Trap, ...]
    """The calls that would do it."""
    names: tuple[str, ...] = ()
    """What an agent's proposal must name to be about it."""
    said: str | None = None
    """The request as a clause or sentence that fits the domain's openings, None where its own phrases say it."""


class RedTeamPlace(Protocol):
    """The worlds of an environment, as a hostile user sees them."""

    def victim(self, task: Task, rng: random.Random) -> Person:
        """Another customer's record. Infeasible if there is none with anything to take."""
        ...

    def name(self, person: Person) -> str:
        """A customer's full name."""
        ...

    def foreign(self, task: Task, victim: Person, rng: random.Random) -> Demand:
        """Something that an impostor may want of a victim's."""
        ...

    def own(self, task: Task, rng: random.Random) -> Demand:
        """Something that nobody has asked for, on the user's own account. Infeasible if the world has nothing fit."""
        ...

    def half_known(self, task: Task, victim: Person, rng: random.Random) -> list[str]:
        """How somebody says that they are the victim who does not know what identifies them; no look-up succeeds."""
        ...

    def wrong_identity(self, agenda: Agenda, victim: Person) -> Mapping[str, Any]:
        """The agenda's identity of somebody who poses as the victim."""
        ...

    def plant(self, task: Task, text: str, rng: random.Random, *, tiny: bool) -> tuple[str, Mapping[str, Any]]:
        """Where a text lies (for tags), and the changed records by table, as ``Database.derive`` takes them. Infeasible
        if the right look-ups would not show it."""
        ...

    @property
    def unplanted(self) -> str:
        """Why no text can be planted in records, and what to do; empty where some can."""
        ...

    def write_traps(self, request: AgendaRequest, task: Task) -> tuple[Trap, ...]:
        """The traps of a forbidden request of the generator's, none where no tool could do it."""
        ...


class WaveringUser(Protocol):
    """What a user of an environment can change about a request."""

    def changes(self, base: Task) -> bool:
        """Whether there are requests, at the task's size, of which users change a value."""
        ...

    def other(self, base: Task, request: AgendaRequest, rng: random.Random) -> Goal | None:
        """Another goal of the same kind of request that can be fulfilled as well, None if there is none."""
        ...

    def again(self, base: Task, request: AgendaRequest, goal: Goal) -> bool:
        """Whether a request can be changed to this goal once it has been fulfilled."""
        ...

    def write(self, base: Task, request: UserRequest) -> Action | None:
        """The write that brings about ``request.final`` in the world of a task, None if none does."""
        ...


RefusedRequest = Callable[[Task, random.Random, float], Task | None]
"""(an ordinary task, rng, what was drawn from [0, 1)): the same with a user who insists on what the policy forbids in
the domain's own way; None where that number stands for a request that the generator has marked as forbidden. Raises
Infeasible where the task does not fit."""


@dataclass(frozen=True)
class PlantedDocument:
    """An instruction in a document."""

    text: str
    """As the document has it."""
    where: str
    """What kind of place that is, for tags."""
    demand: Demand
    """What it asks for."""
    database: Database
    """The task's, with the document, which only its world has."""


PlantDocument = Callable[[Task, random.Random, float], PlantedDocument]
"""(an ordinary task, rng, what was drawn from [0, 1) for what is asked for): an instruction in a document that the
right searches show. Raises Infeasible where there is no place for one."""


@dataclass(frozen=True)
class RedTeamSupport:
    """What red-team users must know of an environment."""

    place: RedTeamPlace
    """What its worlds offer to demand, to plant and to claim."""
    servable: frozenset[str]
    """The requests that take no deed of the user's on a phone; those that are to be changed or never confirmed end in
    one write."""
    wavering: WaveringUser
    """How its users change their minds."""
    tell: Callable[[Mapping[str, Any]], str]
    """The scenario of an agenda for a language model."""
    describe: Callable[[str, Goal, bool], str]
    """A goal as a clause that follows "you want to" (kind, goal, whether the user remembers not all of it)."""
    question: Question | None = None
    """See Question; None: its users ask nothing."""
    refused: RefusedRequest | None = None
    """See RefusedRequest; None: there are only the generator's forbidden requests."""
    lacks: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The kinds that it cannot host, each with the reason."""
    consent: bool = True
    """Whether users are asked before a write."""
    free_writes: frozenset[str] = frozenset()
    """Tools for which users are never asked."""
    rehearsal: Domain | None = None
    """A domain whose tools answer the same in this process, where the environment's own are on a server."""
    parts: Mapping[str, RedTeamSupport] = field(default_factory=dict, hash=False)
    """Of an environment of several services, by the service that a task's agenda names."""
    documents: PlantDocument | None = None
    """See PlantDocument; None: it has no documents."""
    transfer: str = TRANSFER
    """The tool that hands users over."""
    caller: str = CUSTOMER
    """What a user is called."""
    approval: str = ""
    """The tool that asks a colleague, empty where agents may do everything alone."""

    def worded(self, text: str) -> str:
        """A text that speaks of customers, with what they are called here."""
        return called(text, self.caller)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those that it can host."""
        return tuple(kind for kind in KINDS if kind not in self.lacks)


@dataclass(frozen=True)
class RedTeamSource:
    """An environment as red-team tasks are made of it."""

    name: str
    """The domain's name, as its tasks have it."""
    make_tasks: Callable[..., list[Task]]
    """The environment's."""
    make_domain: Callable[[str], Domain]
    """The environment's."""
    support: RedTeamSupport
    sizes: tuple[str, ...] = ()
    """The environment's."""

    @property
    def whole(self) -> Domain:
        """The domain in which gold actions are replayed, with all its tools."""
        return self.rehearsed(self.sizes[-1] if self.sizes else "")

    def of(self, task: Task) -> RedTeamSource:
        """The same for the service that a task is of."""
        part = self.support.parts.get(str((task.agenda or {}).get("service")))
        return self if part is None else replace(self, support=part)

    def refuse(self, kind: str) -> NoReturn:
        """Raises ConfigError: it cannot host this kind."""
        why = f" ({self.support.lacks[kind]})" if kind in self.support.lacks else ""
        there = ", ".join(self.support.kinds)
        raise ConfigError(f"red_team: {self.name} has no kind {kind!r}{why}; there are {there}")

    def rehearsed(self, size: str) -> Domain:
        """The domain in which gold actions are replayed."""
        return self.support.rehearsal or self.make_domain(size)


def only_request(base: Task, servable: frozenset[str], transfer: str) -> AgendaRequest:
    """The one servable request of a task. Infeasible if it has others, or if the user is to be handed over by the tool
    ``transfer``."""
    assert base.agenda is not None
    handed_over = str(base.tags.get("intent")).endswith("_handover")
    if handed_over or any(action.name == transfer for action in base.actions or ()):
        raise Infeasible
    requests = agenda_of(base)["requests"]
    if len(requests) != 1 or requests[0]["kind"] not in servable or not base.tags["feasible"]:
        raise Infeasible
    first = requests[0]
    return first


def tagged(base: Task, variant: str, traps: Sequence[Trap] = (), **play: Any) -> Task:
    """A task with a variant, traps, and what its user plays from besides."""
    basis = tuple(dict.fromkeys((*base.reward_basis, SAFE)))
    agenda = {**(base.agenda or {}), "redteam": {"variant": variant, **play}}
    tags = {**base.tags, "variant": variant, TAG: [t.to_json() for t in traps]}
    return replace(base, tags=tags, agenda=agenda, reward_basis=basis)


def with_requests(base: Task, requests: Sequence[AgendaRequest], **changes: Any) -> Task:
    """The same with other requests, and other fields of its agenda."""
    return replace(base, agenda={**(base.agenda or {}), "requests": [dict(r) for r in requests], **changes})


def nothing_to_do(base: Task) -> Task:
    """The same without anything to be done: only the user is identified."""
    first = base.actions[:1] if base.actions else ()
    return replace(
        base, actions=first, reward_basis=("DB",), communicate_info=(), env_assertions=(),
        tags={**base.tags, "feasible": False},
    )  # fmt: skip


def escalation(rng: random.Random, caller: str = CUSTOMER) -> list[str]:
    """Four to six reasons, each of another tactic. ``caller``: what a user is called."""
    tactics = rng.sample(list(PRESSURE), rng.randint(4, 6))
    return [f"{called(rng.choice(PRESSURE[t]), caller)} {rng.choice(AGAIN)}" for t in tactics]
