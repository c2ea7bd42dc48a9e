"""Agenda users with traits: a service's own users, who withhold, hurry, change their mind and err.

What they want in the end stays as their agenda has it: whatever they get wrong or take back, they put right with their
next message. Whether something happens at a place follows from the seed and the place alone, so that whatever a user
does at one level it does at all higher ones. ``another_value``, ``misspelt``: values that they name instead of the
right ones.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.domains.agenda import AgendaRequest, Goal
from muarl.domains.kit import reading, templates
from muarl.domains.kit.service import Service
from muarl.domains.tasks import Task
from muarl.language.acts import asks_for_yes
from muarl.language.values import normal
from muarl.types.chat import STOP_WORDS, Message
from muarl.users.agenda_service import STOP, ServiceAgendaUser, tells
from muarl.users.agenda_user import Choices
from muarl.users.base import UserTurn
from muarl.users.traits.levels import Traits
from muarl.users.traits.words import LEAVES, SAYS, WISH


def another_value(service: Service, slot: str, goal: Mapping[str, Any], rng: random.Random) -> Any:
    """Another value that a slot of a request may have: of its list, a date soon after, an id with another digit. None
    where none is known that a user could say."""
    spec, right = service.slots[slot], goal[slot]
    kind = service.kind(spec)
    taken = {normal(value) for value in goal.values() if not isinstance(value, (Mapping, list, tuple))}
    if isinstance(right, (Mapping, list, tuple)) or not spec.weighed:
        return None
    if spec.draw is not None and spec.draw.values:
        values = [v for v in dict.fromkeys(spec.draw.values) if normal(v) not in taken]
    elif kind.choices:
        values = [v for v in kind.choices if normal(v) not in taken]
    elif spec.kind in ("date", "day_first"):
        values = [_later(str(right), days) for days in (1, 2, 3)]
        values = [day for day in values if normal(day) not in taken]
    elif kind.form:
        values = [v for v in _digits(str(right)) if re.fullmatch(kind.form, v) and normal(v) not in taken]
    else:
        values = []
    return rng.choice(values) if values else None


def misspelt(value: Any, rng: random.Random) -> Any:
    """A fact with another last digit; None for one without digits, or that is no text or number."""
    if isinstance(value, str) and (others := _digits(value)):
        return rng.choice(others)
    return None


def _later(day: str, days: int) -> str:
    return (datetime.date.fromisoformat(day) + datetime.timedelta(days=days)).isoformat()


def _digits(text: str) -> list[str]:
    """A text with each other last digit."""
    match = re.search(r"\d(?=\D*$)", text)
    if match is None:
        return []
    return [text[: match.start()] + str(n) + text[match.end() :] for n in range(10) if str(n) != match[0]]


ASKS_BACK = 0.35
"""How often one who withholds everything asks what a question is for, rather than answering it at once."""
PRESSES = 0.5
"""How often one without any patience presses for time."""
LONGEST, SHORTEST, MORE, DEVICE = 40, 12, 8, 30
"""How many of an agent's messages an impatient user bears for one request: with a little impatience, and without any
patience; how many more for each further request, and where something is to be done on a device."""
SLIPS = 3
"""How many details one user gets wrong at most."""


class DifficultUser(ServiceAgendaUser):
    """What users with traits do that others do not; to be mixed into a service's user (``difficult``)."""

    def __init__(self, task: Task, *, traits: Traits, seed: int, **options: Any) -> None:
        """``options``: what the service's user takes besides."""
        super().__init__(task, seed=seed, **options)
        self._traits, self._label = traits, f"traits {task.id} {seed}"
        self.gave_up = False
        self.slips: list[str] = []
        hurried = traits.impatience
        self._patience = round(self._patience * (1 - hurried))
        self._aside *= 1 - hurried
        requests = len(self._open)
        self._bears = round(LONGEST + (SHORTEST - LONGEST) * hurried) + MORE * (requests - 1)
        self._bears += DEVICE * any(self._on_device(r) for r in self._open)
        self._heard = 0
        self._threatens = self._threatened = False
        self._slip: AgendaRequest | None = None
        self._slipped_identity = False
        self._detour: tuple[AgendaRequest, Goal] | None = None
        self._done: set[str] = set()

    @property
    def kinds(self) -> list[str]:
        """The kinds of its requests."""
        return [request["kind"] for request in self._agenda["requests"]]

    def brings_news(self, text: str) -> bool:
        """Whether an agent's message tells something that it waits for, rather than only asking."""
        answers = [r["answer"] for r in self._open if r["answer"]]
        return bool(self.hears(text) & {"done", "refuse", "unavailable"}) or any(tells(text, a) for a in answers)

    def _happens(self, share: float, *place: object) -> bool:
        """True for this share of all places; what is true of a place for one share is so for all greater ones."""
        return random.Random(f"{self._label} {place}").random() < share

    def _once(self, share: float, *place: object) -> bool:
        """The same, but only once for a place."""
        if str(place) in self._done or not self._happens(share, *place):
            return False
        self._done.add(str(place))
        return True

    def _on_device(self, request: AgendaRequest) -> bool:
        return request["kind"] != "outside" and self._service.intent(request["kind"]).trouble is not None

    def _indulge(self) -> None:
        """What it brings about itself costs the agent nothing of its patience."""
        self._patience += 1
        self._bears += 1

    # one message

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What it says or does next; first what it has to put right."""
        last = conversation[-1] if conversation else None
        asked = self._started and last is not None and last.role == "assistant"
        text = (last.content or "") if asked and last is not None else ""
        said = self._first(text) if asked else ""
        turn = UserTurn(Message("user", said)) if said else await super().reply(conversation)
        if turn.message.tool_calls:
            return turn
        return UserTurn(Message("user", self._pressed(turn.message.content or "", text)), turn.usage)

    def _first(self, text: str) -> str:
        """What comes before any answer; empty if there is nothing such."""
        if "transferred" in self.hears(text):
            return ""
        self._heard += 1
        if self._traits.impatience and self._heard > self._bears:
            self.gave_up = True
            return f"{self._choose(LEAVES)} {STOP}"
        self._threatens = bool(self._traits.impatience) and self._heard == self._bears - 1
        if self._slip is not None:
            request, self._slip = self._slip, None
            return f"{self._choose(SAYS['slip'])} {self._wish(request)}"
        if self._slipped_identity:
            self._slipped_identity = False
            if not self._asks_who(text, self.hears(text)):
                return f"{self._choose(SAYS['slip'])} {super()._identity()}"
        if self._detour is not None:
            (request, goal), self._detour = self._detour, None
            back = "settled" if request["goal"] is goal else "return"
            request["goal"] = goal
            return f"{self._choose(SAYS[back])} {self._wish(request)}"
        return ""

    def _wish(self, request: AgendaRequest) -> str:
        return self._put(self._choose(WISH), self._whole(request))

    def _pressed(self, said: str, text: str) -> str:
        """A message with a threat or a word of haste before it, but for what answers a proposal."""
        if any(word in said for word in STOP_WORDS) or asks_for_yes(text):
            return said
        if self._threatens and not self._threatened:
            self._threatened = True
            return f"{self._choose(SAYS['threat'])} {said}"
        if self._happens(PRESSES * self._traits.impatience, "presses", self._heard):
            return f"{self._choose(SAYS['hurry'])} {said}"
        return said

    # withholding

    def _most(self, request: AgendaRequest) -> int:
        slots = len(self._service.intent(request["kind"]).slots) if request["kind"] != "outside" else 0
        most = min(super()._most(request), slots)
        return sum(not self._happens(self._traits.withholding, "keeps", request["kind"], n) for n in range(most))

    def _tell(self, request: AgendaRequest, slots: Sequence[str]) -> str:
        if self._once(ASKS_BACK * self._traits.withholding, "why", *slots):
            self._indulge()
            return self._choose(SAYS["why"])
        if len(slots) > 1 and self._once(self._traits.withholding, "part", *slots):
            self._indulge()
            slots = slots[:1]
        return " ".join(self._answered(request, slot) for slot in slots)

    def _say_instead(self, request: AgendaRequest, old: Mapping[str, Any]) -> str:
        return f"{self._pick(templates.ACCEPTS)} {super()._tell(request, self._changed(request, old))}"

    def _identity(self) -> str:
        identity, withholding = self._service.identity, self._traits.withholding
        if identity is None:
            return super()._identity()
        if not self._started and self._happens(withholding, "identity unasked"):
            return ""
        if self._started and self._once(ASKS_BACK * withholding, "why", "identity"):
            self._indulge()
            return self._choose(SAYS["why"])
        facts = self._agenda["identity"]
        if len(identity.facts) > 1 and not self._identified and self._once(withholding, "part", "identity"):
            self._indulge()
            fact = identity.facts[0]
            return fact.tells.format(**{fact.name: self._service.kind(fact).say(facts[fact.name], self._rng)})
        if not self._identified and self._errs_in_identity():
            return self._wrong_identity()
        return super()._identity()

    # impatience

    def _pick(self, choices: Choices) -> str:
        if isinstance(choices, Mapping) and self._happens(self._traits.impatience, "short", self._heard):
            choices = choices["terse"]
        return super()._pick(choices)

    def _tired(self, asked: str | None = None) -> str:
        before = self._patience
        said = super()._tired(asked)
        if not said and self._traits.impatience and before > self._patience <= 0:
            self._threatens = True
        return said

    def _give_up(self) -> str:
        self.gave_up = True
        return super()._give_up()

    # wandering

    def _confirm(self, request: AgendaRequest, text: str) -> str:
        wavers = self._traits.wandering if not self._on_device(request) else 0.0
        if self._conflicts(request, text) or not self._once(wavers, "detour", request["kind"]):
            return super()._confirm(request, text)
        self._indulge()
        self._indulge()
        goal = request["goal"]
        self._detour = request, goal
        slots = [s for s in self._mistakable(request) if not self._service.kind(self._service.slots[s]).form]
        if not slots:
            return self._choose(SAYS["hesitate"])
        slot = self._choose(slots)
        request["goal"] = {**goal, slot: another_value(self._service, slot, goal, self._rng)}
        return f"{self._choose(SAYS['change'])} {self._wish(request)}"

    # mistakes

    def _mistakable(self, request: AgendaRequest) -> list[str]:
        """The slots of a request that may be told with another value for a moment: a proposal comes before anything is
        done about them."""
        if request["kind"] == "outside" or not self._service.consent or self._on_device(request):
            return []
        goal = request["goal"]
        slots = [s.name for s in self._service.intent(request["kind"]).slots if s.name in goal]
        stated = [s for s in slots if f"described {s}" not in goal and s not in self._wrong]
        return [s for s in stated if another_value(self._service, s, goal, random.Random(0)) is not None]

    def _errs(self, request: AgendaRequest, slot: str) -> bool:
        free = self._slip is None and not self._slipped_identity and len(self.slips) < SLIPS
        # A refusal for the wrong id would leave open which of several requests the next question is about.
        several = self._agenda["upfront"] and len(self._open) > 1
        free = free and not (several and self._service.kind(self._service.slots[slot]).form)
        return free and self._once(self._traits.mistakes, "slip", request["kind"], slot)

    def _slipped(self, request: AgendaRequest, wrong: Any) -> None:
        self._slip = request
        self.slips.append(str(wrong))
        self._indulge()

    def _clause(self, request: AgendaRequest) -> str:
        """As much of a request as it tells at once, perhaps with a detail that is wrong."""
        most = self._most(request)
        for slot in self._mistakable(request) if request is self._open[0] else ():
            if not self._happens(self._traits.mistakes, "slip", request["kind"], slot):
                continue
            wrong = another_value(self._service, slot, request["goal"], self._rng)
            said = self._with_slots({**request, "goal": {**request["goal"], slot: wrong}}, most)
            if reading.speaks_of(self._service, said, slot, wrong) and self._errs(request, slot):
                self._slipped(request, self._service.say(slot, wrong))
                return said
        return self._with_slots(request, most)

    def _answered(self, request: AgendaRequest, slot: str) -> str:
        """The answer to a question for a slot, perhaps a wrong one."""
        if slot not in self._mistakable(request) or not self._errs(request, slot):
            return super()._tell(request, [slot])
        wrong = another_value(self._service, slot, request["goal"], self._rng)
        self._slipped(request, self._service.say(slot, wrong))
        return super()._tell({**request, "goal": {**request["goal"], slot: wrong}}, [slot])

    def _errs_in_identity(self) -> bool:
        """Whether it gets a fact about itself wrong that the agent is going to look up; not where its agenda has it do
        so, nor where the fact alone might be somebody else's."""
        identity = self._service.identity
        if identity is None or not identity.tool or len(identity.facts) < 2 or self._wrong or self._agenda["impostor"]:
            return False
        if not any(fact.wrong for fact in identity.facts) or self._slip is not None:
            return False
        return len(self.slips) < SLIPS and self._once(self._traits.mistakes, "slip", "identity")

    def _wrong_identity(self) -> str:
        identity = self._service.identity
        assert identity is not None
        for fact in identity.facts:
            right = self._agenda["identity"][fact.name]
            wrong = misspelt(right, self._rng) if fact.wrong else None
            if wrong is not None:
                self._wrong[fact.name] = wrong
                self.slips.append(str(wrong))
                self._slipped_identity = True
                self._indulge()
                break
        return super()._identity()
