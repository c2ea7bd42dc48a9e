"""A user of any service that plays an agenda: goals, facts and patience, and no language model.

It reveals details piecemeal, changes its mind when it hears a proposal, confirms or refuses what is proposed, reminds
the agent of what was forgotten, and gives up. It reads the agent's words only (domains/kit/reading.py),
never the world.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from muarl.domains.agenda import Agenda, AgendaRequest, agenda_of
from muarl.domains.kit import reading, templates
from muarl.domains.kit.declaration import several
from muarl.domains.kit.records import PLACE
from muarl.domains.kit.scenario import spoken_slots
from muarl.domains.kit.service import Service
from muarl.domains.kit.templates import pick, put
from muarl.domains.tasks import Task
from muarl.language.acts import hear
from muarl.language.values import normal, unquoted
from muarl.users.agenda_user import AgendaUser, Choices, UserTemplates
from muarl.users.base import User

REVEALS: Mapping[str, tuple[int, int]] = {"terse": (1, 3), "chatty": (2, 9), "confused": (0, 1), "impatient": (9, 9)}
"""How many slots each persona tells at once, at least and at most; the rest is told when asked."""
ASIDE = {"terse": 0.0, "chatty": 0.7, "confused": 0.35, "impatient": 0.1}
"""How often each persona adds why, and something beside the point."""
STOP, TRANSFER = "###STOP###", "###TRANSFER###"


def tells(text: str, answer: str) -> bool:
    """Whether a text holds an answer that is no part of another number or word, such as 30 in 08:30."""
    match = re.search(rf"(?<![\w:.-]){re.escape(answer)}(?![\w:-]|\.\d)", text.replace(",", ""))
    return match is not None


class ServiceAgendaUser(AgendaUser):
    """Plays ``task.agenda`` (its fields: domains/kit/tasks.py) at a ``service``."""

    words: ClassVar[UserTemplates] = templates
    restated = templates.RESTATED

    def __init__(
        self,
        task: Task,
        *,
        service: Service,
        seed: int,
        persona: str | None = None,
        agenda: Agenda | None = None,
    ) -> None:
        """``agenda``: None for the task's own."""
        super().__init__(task, seed=seed, persona=persona, agenda=agenda, label=f"{task.domain} agenda")
        self._service = service
        self._wrong: dict[str, Any] = dict(self._agenda["wrong"])
        self._identified = 0
        self._said: set[str] = set()
        self._agreed: list[AgendaRequest] = []  # and not yet reported done
        self._aside = ASIDE[self._persona]

    @property
    def service(self) -> Service:
        """Whose words it understands."""
        return self._service

    def hears(self, text: str) -> set[str]:  # type: ignore[override]
        """What an agent's words mean, with "ask_NAME" for each slot and fact that they ask for."""
        acts = hear(text)
        if "question" not in acts or "confirm" in acts:
            return acts
        asked = {**self._service.asked, **self._service.asked_identity}
        return acts | {f"ask_{name}" for name, pattern in asked.items() if pattern.search(text)}

    # what is told

    def _choose(self, several: Sequence[str]) -> str:
        """One of several, if possible one that has not been said."""
        chosen = pick(self._rng, [c for c in several if c not in self._said] or several)
        self._said.add(chosen)
        return chosen

    def _put(self, template: str, clause: str) -> str:
        return put(template, clause)

    def _opening(self) -> str:
        sentences = [self._pick(templates.GREETINGS), *self._first_requests()]
        if self._persona == "impatient" and self._service.identity is not None:
            sentences.append(self._identity())
        elif self._rng.random() < self._aside / 2:
            sentences.insert(1, self._pick(templates.ASIDES))
        return " ".join(s for s in sentences if s)

    def _bring_up(self, request: AgendaRequest, templates: Choices) -> str:
        """A request for the first time, as far as this persona tells it, perhaps with the reason for it."""
        sentence = super()._bring_up(request, templates)
        if request["kind"] == "outside" or self._rng.random() >= self._aside:
            return sentence
        because = self._service.intent(request["kind"]).because
        return f"{sentence} {self._pick(because)}" if because else sentence

    def _clause(self, request: AgendaRequest) -> str:
        return self._with_slots(request, self._most(request))

    def _most(self, request: AgendaRequest) -> int:
        """How many slots of a request it tells of its own accord."""
        return self._rng.randint(*REVEALS[self._persona])

    def _whole(self, request: AgendaRequest) -> str:
        return self._with_slots(request, 99)

    def _with_slots(self, request: AgendaRequest, most: int) -> str:
        """A request as a clause, with ``most`` of its slots at most."""
        goal = request["goal"]
        if request["kind"] == "outside":
            return f"talk to somebody about {goal['topic']}"
        clauses = [(len({p for p, _ in PLACE.findall(c)}), c) for c in self._service.intent(request["kind"]).says]
        fit = [n for n, _ in clauses if n <= most]
        count = max(fit) if fit else min(n for n, _ in clauses)
        said = spoken_slots(self._service, goal, self._rng)
        clause = pick(self._rng, [c for n, c in clauses if n == count])
        return PLACE.sub(lambda m: said[m[1]], clause)

    def _identity(self) -> str:
        """Who the user is; the first time perhaps with a fact that is wrong."""
        identity, facts = self._service.identity, dict(self._agenda["identity"])
        if identity is None:
            return self._wait()
        facts |= {fact.name: self._wrong.pop(fact.name) for fact in identity.facts if fact.name in self._wrong}
        said = {fact.name: self._service.kind(fact).say(facts[fact.name], self._rng) for fact in identity.facts}
        self._identified += 1
        return self._pick(several(identity.say)).format(**said)

    def _tell(self, request: AgendaRequest, slots: Sequence[str]) -> str:
        """The answer to a question about slots of a request."""
        return " ".join(self._slot(request, slot, several(self._service.slots[slot].say)) for slot in slots)

    def _slot(self, request: AgendaRequest, slot: str, templates: Sequence[str]) -> str:
        spec, described = self._service.slots[slot], request["goal"].get(f"described {slot}")
        if described is not None and spec.described is not None:
            said = self._service.kind(spec.described).say(described, self._rng)
            return self._pick(several(spec.described.say)).replace("{}", said)
        said = self._service.say(slot, self._wrong.pop(slot, request["goal"][slot]), self._rng)
        text = self._pick(templates).replace("{}", said)
        return text[:1].upper() + text[1:]

    # what is heard

    def _answer(self, text: str) -> str:
        acts = hear(unquoted(text))
        if "transferred" in acts:
            return TRANSFER
        if self._hears_a_no(text):
            acts.add("refuse")
        if self._waits_for_approval(text):
            return self._tired("approval") or self._pick(templates.PATIENT)
        self._reopen(text, acts)
        asks_who = self._asks_who(text, acts)
        answered = [r for r in self._open if r["told"] and r["answer"] and tells(text, r["answer"])]
        for one in answered:
            self._close(one)
        request = self._request_meant(text)
        if "done" in acts and "confirm" not in acts:
            self._agreed.clear()
        again = self._asked_again(text) if request is None and {"confirm", "question"} <= acts else None
        if again is not None:
            return self._tired() or self._pick(templates.YES)
        if request is None or (
            answered and not acts & {"confirm", "unavailable", "refuse"} and not self._asked_for(request, text)
        ):
            return self._identity() if asks_who else self._follow(text)
        if asks_who:
            return self._who(acts)
        if "refuse" in acts and self._agenda["impostor"] and self._identified:
            return self._found_out()
        if request["kind"] == "outside":
            return self._about_topic(request, text, acts)
        if "unavailable" in acts:
            return self._unavailable(request, text, proposed="confirm" in acts)
        asked = self._asked_for(request, text) if "question" in acts or "confirm" not in acts else []
        if asked:
            return self._tired(f"{asked} of {request['goal']}") or self._tell(request, asked)
        if "confirm" in acts:
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, text)
        return self._hear_done(request, text) if "done" in acts else self._restate(request)

    def _waits_for_approval(self, text: str) -> bool:
        """Whether an agent says no more than that a colleague has been, or has to be, asked about a request."""
        acts = hear(unquoted(reading.without_pending(text)))
        if acts & {"confirm", "done", "question", "refuse", "unavailable"} or not reading.speaks_of_approval(text):
            return False
        return self._needs_approval() and not reading.tells_declined(text)

    def _hears_a_no(self, text: str) -> bool:
        """Whether an agent tells what the colleague has declined."""
        return self._needs_approval() and reading.tells_declined(text)

    def _needs_approval(self) -> bool:
        """Whether one of the requests that are not settled needs a colleague's approval."""
        return any(request.get("approval") for request in (*self._open, *self._agreed))

    def _confirm(self, request: AgendaRequest, text: str) -> str:
        presses = request.get("presses", [])
        if presses and request["then"] is None and reading.speaks_of_approval(text):
            if not self._conflicts(request, text):
                request["presses"] = presses[1:]
                return presses[0]
        return super()._confirm(request, text)

    def _agree(self, request: AgendaRequest, text: str) -> str:
        self._agreed.append(request)
        return super()._agree(request, text)

    def _asked_again(self, text: str) -> AgendaRequest | None:
        """The request that was agreed to, has not been reported done, and is proposed once more."""
        return next((r for r in self._agreed if not self._conflicts(r, text)), None)

    def _reopen(self, text: str, acts: set[str]) -> None:
        """Take up again what was agreed to where it cannot be had after all, or where something more is asked of it."""
        asks = "question" in acts and not acts & {"confirm", "else"}
        asks = asks and not any(self._asked_for(r, text) for r in self._open if r["told"])
        for request in reversed(self._confirmed):
            gone = "unavailable" in acts and request["fallback"] is not None
            gone = gone or ("refuse" in acts and self._is_declined(request))
            if gone or (asks and self._asked_for(request, text)):
                self._confirmed.remove(request)
                self._agreed = [agreed for agreed in self._agreed if agreed is not request]
                self._open.insert(0, request)
                return

    def _is_declined(self, request: AgendaRequest) -> bool:
        """Whether a refusal is the colleague's no to what the user has agreed to."""
        return bool(request.get("approval")) and any(agreed is request for agreed in self._agreed)

    def _asks_who(self, text: str, acts: set[str]) -> bool:
        if self._service.identity is None or ("confirm" in acts and "ask_identity" not in acts and self._identified):
            return False
        asked = any(pattern.search(unquoted(text)) for pattern in self._service.asked_identity.values())
        return (asked or "ask_identity" in acts) and ("question" in acts or "done" not in acts)

    def _who(self, acts: set[str]) -> str:
        enough = self._identified >= (1 if "refuse" in acts else 2)
        if enough and self._agenda["impostor"]:
            return self._found_out()
        return self._tired(None if self._identified >= 2 else f"identity {self._identified}") or self._identity()

    def _about_topic(self, request: AgendaRequest, text: str, acts: set[str]) -> str:
        if "refuse" in acts or "done" in acts:
            return self._settle(request, text)
        if "confirm" in acts:
            return self._tired("hand over") or pick(self._rng, templates.YES[self._persona])
        return self._restate(request)

    def _asked_for(self, request: AgendaRequest, text: str) -> list[str]:
        """The slots of a request that a message asks for; what the message itself says of them is no question."""
        if request["kind"] == "outside":
            return []
        said = unquoted(text)
        slots = [s for s in self._service.intent(request["kind"]).slots if self._service.asked[s.name].search(said)]
        goal, asked = request["goal"], []
        for slot in slots:
            described, how = goal.get(f"described {slot.name}"), slot.described
            kind, value = self._service.kind(slot), goal[slot.name]
            if described is not None and how is not None:
                kind, value = self._service.kind(how), described
            named = {normal(m.value) for m in kind.find(text)}
            if normal(value) not in named or (kind.choices and len(named) > 1):  # a question may list what there is
                asked.append(slot.name)
        return asked

    def _request_meant(self, text: str) -> AgendaRequest | None:
        """The request an agent's message is about: by the words and values it names, else the first open one."""
        kinds = self._service.intents_in(text)
        stated = [r for r in self._open if r["told"]]
        for request in stated:
            if request["kind"] in kinds and any(self._names(text, request, s) for s in request["goal"]):
                return request
        return stated[0] if stated else None

    def _names(self, text: str, request: AgendaRequest, slot: str) -> bool:
        return slot in self._service.slots and reading.speaks_of(self._service, text, slot, request["goal"][slot])

    def _conflicts(self, request: AgendaRequest, text: str) -> bool:
        another = self._service.means_another(text, request["kind"])
        return another or reading.conflicts(self._service, text, request["goal"])

    def _say_change(self, request: AgendaRequest, old: Mapping[str, Any]) -> str:
        slots = self._service.slots
        changed = self._changed(request, old)
        if changed and not any(slots[s].change for s in changed) and self._names_all(request, changed):
            return put(self._pick(templates.CORRECTIONS), self._whole(request))
        return " ".join(self._slot(request, s, several(slots[s].change) or several(slots[s].say)) for s in changed)

    def _names_all(self, request: AgendaRequest, slots: Sequence[str]) -> bool:
        """Whether a request that is said as a whole names these slots."""
        intent = self._service.intent(request["kind"])
        return all(intent.always_says(slot) for slot in slots)

    def _changed(self, request: AgendaRequest, old: Mapping[str, Any]) -> list[str]:
        goal = request["goal"]
        return [s for s in self._service.slots if s in goal and goal[s] != old.get(s)]

    def _accept(self, request: AgendaRequest, text: str, *, proposed: bool) -> str:
        if proposed:
            return self._confirm(request, text)
        asked = self._asked_for(request, text)
        if asked:
            return self._tired() or self._tell(request, asked)
        return self._settle(request, text)

    def _say_instead(self, request: AgendaRequest, old: Mapping[str, Any]) -> str:
        return f"{self._pick(templates.ACCEPTS)} {self._tell(request, self._changed(request, old))}"

    # how it continues, and how it ends

    def _remind(self, request: AgendaRequest) -> str:
        return self._tired(f"reminder of {request['goal']}") or put(self._pick(templates.STILL), self._whole(request))

    def _asks_for_more(self, text: str) -> bool:
        return "else" in hear(text)

    def _wait(self) -> str:
        return self._tired("wait") or self._pick(templates.WAITS)

    def _end(self) -> str:
        return f"{pick(self._rng, templates.ENDINGS[self._persona])} {STOP}"

    def _found_out(self) -> str:
        """What an impostor says who cannot pass for somebody else."""
        return f"{pick(self._rng, templates.NOT_KNOWN)} {STOP}"

    def _give_up(self) -> str:
        return f"{pick(self._rng, templates.GIVES_UP)} {STOP}"


@dataclass(frozen=True, eq=False)
class ServiceUsers:
    """Makes the users of several ``services``, given by their names: a task's agenda says which one it is of."""

    services: Mapping[str, Service]

    def of(self, task: Task) -> partial[ServiceAgendaUser]:
        """What makes the user of a task."""
        return partial(ServiceAgendaUser, service=self.services[str(agenda_of(task)["service"])])

    def __call__(self, task: Task, *, seed: int, persona: str | None = None) -> ServiceAgendaUser:
        return self.of(task)(task, seed=seed, persona=persona)


def parts_of(make: Callable[..., User], task: Task) -> tuple[type, Mapping[str, Any]] | None:
    """The class of the agenda user that ``make`` makes for a task, and what it is given besides; None if ``make`` is
    something else than a class, one with arguments, or an object whose ``of`` gives such a one, as ``ServiceUsers``."""
    of = getattr(make, "of", None)
    one = of(task) if of is not None and not isinstance(make, type) else make
    kind, arguments = (one.func, one.keywords) if isinstance(one, partial) else (one, {})
    return (kind, arguments) if isinstance(kind, type) else None
