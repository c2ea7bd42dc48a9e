"""Whether what a user model is about to say is true to its scenario, as far as rules can tell.

Looks at the scenario (a generated task's agenda: the same as its text) and at what was said, never at the world. Words
and values are read as rule-based users read them (domains/kit/reading.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from muarl.domains.agenda import AgendaRequest, Goal, agenda_of
from muarl.domains.kit import reading
from muarl.domains.kit.service import Service
from muarl.domains.tasks import Task
from muarl.language.acts import hear
from muarl.language.consent import drops_request, is_affirmative
from muarl.language.values import ValueKind, normal, unquoted, without
from muarl.types.chat import STOP_WORDS

_DIGITS = re.compile(r"\d+")
LOOSE = "number"
"""The kind of value that greetings are full of ("I've only got two minutes")."""


class _Request:
    """One request of a scenario and how it stands. ``now``: its present values; ``then``, ``fallback``: what is wished
    for after a proposal and after bad news, until that has been said."""

    def __init__(self, request: AgendaRequest) -> None:
        self.kind: str = request["kind"]
        self.now: Goal = request["goal"]
        self.then: Goal | None = request["then"]
        self.fallback: Goal | None = request["fallback"]
        self.asks: bool = request["answer"] is not None
        self.presses: list[str] = request.get("presses", [])
        self.told = self.settled = False
        self.given = set[str]()
        """The slots whose values the user has said."""

    def change(self, goal: Goal) -> None:
        """Ask for something else, or for nothing any more."""
        self.settled = bool(goal.get("drop"))
        self.now = self.now if self.settled else goal


class GoalCheck:
    """Follows one conversation: ``hears`` the agent, finds the ``problem`` of a reply, takes note of what was
    ``said``."""

    def __init__(self, task: Task, service: Service) -> None:
        agenda = agenda_of(task)
        self._service = service
        self._requests = [_Request(r) for r in agenda["requests"]]
        self._wrong: dict[str, Any] = dict(agenda["wrong"])
        self._identity = {**agenda["identity"]}
        self._impostor = bool(agenda["impostor"])
        self._digits = set(_DIGITS.findall(task.scenario))
        kinds = [service.kind(slot) for slot in service.slots.values()]
        kinds += [service.kind(s.described) for s in service.slots.values() if s.described is not None]
        self._facts = {fact.name: service.kind(fact) for fact in service.facts}
        self._kinds = [k for k in dict.fromkeys([*kinds, *self._facts.values()]) if k.name != LOOSE]
        goals = [g for r in self._requests for g in (r.now, r.then, r.fallback) if g is not None]
        told = [self._identity, self._wrong, *goals]
        self._told = {normal(value) for values in told for value in values.values() if not isinstance(value, bool)}
        """Values that the scenario or the agent has told the user, however they are spelt."""
        self._text, self._acts = "", set[str]()
        self._texts: set[str] = set()
        self._again = False
        self._due: tuple[str, _Request | None] = ("", None)

    # what the agent says

    def hears(self, text: str) -> None:
        """Take note of an agent's message, and of what it calls for."""
        self._text, self._acts = text, hear(unquoted(text))
        self._again = text in self._texts
        self._texts.add(text)
        self._digits.update(_DIGITS.findall(text))
        self._told.update(normal(m.value) for ms in self._service.mentions(text, self._kinds).values() for m in ms)
        for request in self._requests:
            if request.asks and request.told and not self._acts & {"confirm", "unavailable"} and self._names(request):
                request.settled = self._settles(text, request)
        self._due = self._called_for()

    def _settles(self, text: str, request: _Request) -> bool:
        """Whether words about a question are its answer, and no question back."""
        return request.settled or not self._asked(request)

    def _called_for(self) -> tuple[str, _Request | None]:
        """What the reply must be: "yes", "no", a "change" or an "other" request, or "" for anything; and of which
        request."""
        open_ = sorted((r for r in self._requests if not r.settled and r.kind != "outside"), key=lambda r: not r.told)
        if "unavailable" in self._acts:
            agreed = [r for r in self._requests if r.settled and r.kind != "outside" and self._names(r)]  # it failed
            hurt = [r for r in (*open_, *agreed) if r.fallback is not None]
            meant = next((r for r in hurt if self._names(r)), hurt[0] if len(open_) == 1 and hurt else None)
            if meant is not None:
                return "other", meant
        if "confirm" not in self._acts or "transferred" in self._acts:
            return "", None
        meant = next((r for r in open_ if self._proposed(r)), None)
        if meant is not None:
            return ("yes" if meant.then is None else "change"), meant
        if any(r.settled or r.kind == "outside" for r in self._requests):  # once more, or handing over
            return "", None
        return "no", None

    def _proposed(self, request: _Request) -> bool:
        """Whether the agent's proposal is this request as it stands."""
        service, text = self._service, self._text
        return not service.means_another(text, request.kind) and not reading.conflicts(service, text, request.now)

    def _names(self, request: _Request) -> bool:
        slots = self._service.slots
        return any(s in slots and reading.speaks_of(self._service, self._text, s, v) for s, v in request.now.items())

    def _asked(self, request: _Request) -> list[str]:
        """The slots of a request that the agent asks for."""
        if "question" not in self._acts or "confirm" in self._acts or request.kind == "outside":
            return []
        said = unquoted(self._text)
        slots = self._service.intent(request.kind).slots
        return [s.name for s in slots if self._service.asked[s.name].search(said)]

    # what the user is about to say

    def problem(self, text: str) -> str | None:
        """What is wrong with a reply; None if nothing is."""
        words = text
        for word in STOP_WORDS:
            words = words.replace(word, " ")
        ends = words != text
        if not re.search(r"\w", words) and not ends:
            return "says nothing"
        if strange := self._strange(words):
            return f"says {strange}, which is not in its scenario"
        parts = reading.parts(self._service, words)
        wishes = {reading.SENTENCE.split(part, maxsplit=1)[0].strip() for intent, part in parts if intent}
        for sentence in reading.SENTENCE.split(words):
            if not self._true(sentence, idle=bool(wishes) and sentence.strip() not in wishes):
                return f"says what is no part of one wish: {sentence.strip()}"
        spoken = [part for part in parts if part[0]] or parts  # the rest is idle talk
        if mixed := next((part for intent, part in spoken if self._mixes_up(intent, part)), None):
            return f"says of one thing what belongs to another: {mixed.strip()}"
        return self._wrong_answer(words, ends) or (self._open_at_the_end() if ends else None)

    def _strange(self, words: str) -> str | None:
        """A number that the user cannot know: of none of the values that it was told, and in none of the texts."""
        if all(d in self._digits for d in _DIGITS.findall(words)):
            return None
        known = [m for ms in self._service.mentions(words, self._kinds).values() for m in ms]
        rest = without(words, [m for m in known if normal(m.value) in self._told])
        return next((d for d in _DIGITS.findall(rest) if d not in self._digits), None)

    def _true(self, sentence: str, idle: bool) -> bool:
        """Whether a sentence says who the user is, and of its requests only what belongs together. ``idle``: another
        one of its message says what the user wants. Some words of requests also stand in talk about it ("I'm a bit
        lost", like a card)."""
        rest = self._but_identity(sentence)
        if not any(self._service.mentions(rest, self._kinds).values()) and (idle or not self._service.intents_in(rest)):
            return True
        return any(self._fits(rest, request, goal, idle) for request, goal in self._versions())

    def _but_identity(self, sentence: str) -> str:
        """A sentence with blanks for what it says truly, or as a mistake of its scenario, of who the user is. Facts are
        looked for before anything else: the year of a birth may look like an id."""
        kinds = list(dict.fromkeys(self._facts.values()))
        own: dict[ValueKind, list[Any]] = {kind: [] for kind in kinds}
        for name, kind in self._facts.items():
            own[kind] += [normal(value) for value in (self._identity.get(name), self._wrong.get(name))]
        mentions = self._service.mentions(sentence, kinds)
        return without(sentence, [m for kind, ms in mentions.items() for m in ms if normal(m.value) in own[kind]])

    def _versions(self) -> Iterator[tuple[_Request, Goal]]:
        """The requests that are open or are asked about, each as it is or as it becomes by this reply."""
        word, due = self._due
        for request in self._requests:
            again = request is due or bool(self._asked(request))  # a tool failed, or wants to know more
            if request.kind == "outside" or (request.settled and not again):
                continue
            coming = {"change": request.then, "other": request.fallback}.get(word) if request is due else None
            yield request, coming if coming is not None and not coming.get("drop") else request.now

    def _fits(self, sentence: str, request: _Request, goal: Goal, idle: bool = False) -> bool:
        """Whether all values of a sentence are those of one request, and its verb, too. Where it is ``idle`` or clearly
        of this request, words that only other requests' slots have are no values ("on shelf E4", "shelf" being one)."""
        own = self._values(goal)
        mentions = self._service.mentions(sentence, [k for k in own if k in self._kinds])
        its = [m for kind, ms in mentions.items() for m in ms if normal(m.value) in own[kind]]
        intents = self._service.intents_in(sentence)
        loose = idle or bool(its) or request.kind in intents
        meant = {self._service.kind(slot) for slot in self._service.intent(request.kind).slots}
        for kind, others in self._service.mentions(without(sentence, its), self._kinds).items():
            if others and not (loose and kind.choices and kind not in meant):
                return False
        return not intents or request.kind in intents

    def _mixes_up(self, intent: str, part: str) -> bool:
        """Whether a part of a message gives a slot the value of another one, such as the account that money comes from
        as the one that it goes to. ``intent``: which request it brings up, or empty."""
        rest = self._but_identity(part)
        versions = [(request, goal) for request, goal in self._versions() if intent in ("", request.kind)]
        return bool(versions) and all(
            any(
                name in goal and normal(value) != normal(goal[name])
                for name, value in self._read(rest, request).items()
            )
            for request, goal in versions
        )

    def _read(self, text: str, request: _Request) -> dict[str, Any]:
        """What a text says for the slots of a request, as an expert reads it who has asked for one of them."""
        asked = self._asked(request)
        asked = [name for name in asked if name not in request.given] or asked
        slots = [slot.name for slot in self._service.intent(request.kind).slots]
        return reading.read_slots(self._service, text, slots, waiting=asked[0] if len(asked) == 1 else "")

    def _values(self, goal: Goal) -> dict[ValueKind, list[Any]]:
        """The values of a request that its user can say, by kind."""
        values: dict[ValueKind, list[Any]] = {}
        for name, value in goal.items():
            slot = self._service.slots.get(name.removeprefix("described "))
            if slot is None or (name == slot.name and f"described {name}" in goal):
                continue
            how = slot if name == slot.name or slot.described is None else slot.described
            values.setdefault(self._service.kind(how), []).append(normal(value))
        return values

    def _wrong_answer(self, words: str, ends: bool) -> str | None:
        """What is wrong with a reply as the answer to the agent's last message."""
        word, due = self._due
        yes, drops = is_affirmative(words), drops_request(words)
        if ends and word and self._ends_too_early():
            return "ends with a wish open"
        if word == "yes":
            return None if yes or (due is not None and self._presses(words, due)) else "does not agree to what it wants"
        if word == "no":
            return "agrees to what it does not want" if yes else None
        if word in ("change", "other") and due is not None:
            goal = due.then if word == "change" else due.fallback
            if goal is None or (yes and word == "change"):
                return "agrees to what it no longer wants"
            if goal.get("drop"):
                return None if drops else "does not drop what it no longer wants"
            return None if self._says_new(words, due.now, goal) else "does not say what it wants instead"
        if drops and not ("refuse" in self._acts or "unavailable" in self._acts or self._again):
            return "drops a wish that stands"
        return self._no_answer(words)

    def _presses(self, words: str, due: _Request) -> bool:
        """Whether a reply presses an agent that speaks of approval, in words of its scenario, before it agrees."""
        return reading.speaks_of_approval(self._text) and any(pressing in words for pressing in due.presses)

    def _ends_too_early(self) -> bool:
        """Whether the answer that is due must not be the last word."""
        word, due = self._due
        if word == "no":
            return not self._again
        goal = None if due is None or word == "yes" else due.then if word == "change" else due.fallback
        dropped = goal is not None and bool(goal.get("drop"))
        return not dropped or any(not r.settled for r in self._requests if r is not due)

    def _says_new(self, words: str, old: Goal, new: Goal) -> bool:
        """Whether a reply tells what is new about a request."""
        slots = self._service.slots
        changed = [s for s in slots if s in new and new[s] != old.get(s)]
        return all(
            reading.speaks_of(self._service, words, s, new[s]) or self._describes(words, s, new) for s in changed
        )

    def _describes(self, words: str, slot: str, goal: Goal) -> bool:
        """Whether a reply names the record of a slot by what the goal says of it, in place of its id."""
        how, described = self._service.slots[slot].described, goal.get(f"described {slot}")
        if how is None or described is None:
            return False
        return normal(described) in [normal(m.value) for m in self._service.kind(how).find(words)]

    def _no_answer(self, words: str) -> str | None:
        """A question for details of an open request that is left without any, the first time that it is asked."""
        if self._again or self._acts & {"refuse", "transferred"} or self._asks_who():
            return None
        asked = {s for r in self._requests if not r.settled for s in self._asked(r)}
        if not asked or "unavailable" in self._acts:
            return None
        for slot in asked:
            spec = self._service.slots[slot]
            kinds = [self._service.kind(spec)]
            kinds += [] if spec.described is None else [self._service.kind(spec.described)]
            if any(kind.find(words) for kind in kinds):
                return None
        return "leaves a question without an answer"

    def _asks_who(self) -> bool:
        text = unquoted(self._text)
        return "ask_identity" in self._acts or any(p.search(text) for p in self._service.asked_identity.values())

    def _open_at_the_end(self) -> str | None:
        """What a conversation must not end with."""
        if self._acts & {"transferred"} or self._again or (self._impostor and self._asks_who()):
            return None
        untold = [r for r in self._requests if not r.told]
        if untold:
            return f"ends before it has spoken of its wish to {untold[0].kind}"
        open_ = any(self._asked(r) for r in self._requests if not r.settled)
        return "ends with a question left open" if open_ and "unavailable" not in self._acts else None

    # what the user has said

    def said(self, text: str) -> None:
        """Take note of the reply that was given."""
        word, due = self._due
        rest = self._but_identity(text)
        for request, goal in self._versions():
            read = self._read(rest, request)
            true = [name for name, value in read.items() if normal(value) == normal(goal.get(name))]
            request.given |= {name.removeprefix("described ") for name in true}
        for sentence in reading.SENTENCE.split(text):
            self._tell(sentence)
        for name in [n for n, v in self._wrong.items() if str(v) in text]:
            del self._wrong[name]  # a mistake is made once
        if due is None:
            return
        if word == "yes":
            due.settled = is_affirmative(text)
        elif word == "change" and due.then is not None:
            due.change(due.then)
            due.then = None
        elif word == "other" and due.fallback is not None:
            due.change(due.fallback)
            due.fallback = None

    @property
    def untold(self) -> bool:
        """Whether the user has not spoken of any of its requests yet."""
        return not any(request.told for request in self._requests)

    def _tell(self, sentence: str) -> None:
        """Note which request a sentence brings up."""
        rest = self._but_identity(sentence)
        intents = self._service.intents_in(rest)
        for request in self._requests:
            if request.told:
                continue
            if request.kind == "outside":
                brought_up = str(request.now["topic"]) in sentence
            else:
                brought_up = request.kind in intents and self._fits(rest, request, request.now)
            if brought_up:
                request.told = True
                return
