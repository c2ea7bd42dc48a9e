"""How people talk at the desks of the MCP scenarios: a scenario's words, and both directions between words and slots.

A scenario's ``scenario.yaml`` names its slots (the details of a request) and intents (what people may want). ``say_*``
make sentences of them; ``hear``, ``slots_in`` and ``requests_in`` read plain English, so that neither an agent nor a
caller need be one of ours.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.errors import DataError

Wish = Mapping[str, Any]

_ACTS: Mapping[str, str] = {
    "unavailable": r"already exists?\b|not available|does(n['’]t| not) exist|no such|there is no\b|not found"
    r"|has no changes|no copy|none left|could(n['’]t| not) find|can(no|['’])t find",
    "confirm": r"yes/no|\(yes|confirm|shall i\b|should i\b|want me to|like me to|go ahead|proceed"
    r"|is (that|this) (right|correct|ok)",
    "refuse": r"\bcannot\b|can['’]t|can not|unable|not allowed|not possible|not permitted|against the rules",
    "done": r"anything else|\bdone\b|has been|have been|completed|all set|is there more",
}

PERSONAS: Mapping[str, str] = {
    "terse": "You answer in as few words as possible.",
    "chatty": "You are friendly and talk a lot, but you stay on the subject.",
    "confused": "You are unsure about details and need to be asked for them one by one.",
    "impatient": "You are in a hurry and want this done quickly.",
}
"""How an LLM user is told to behave."""
TOLD_AT_ONCE: Mapping[str, int] = {"terse": 2, "chatty": 9, "confused": 1, "impatient": 9}
"""How many details of a wish each persona tells at once; the rest is told when asked."""

OPENINGS: Mapping[str, Sequence[str]] = {
    "terse": ("I want to {}.", "Please {}.", "I need to {}.", "Can you {}?"),
    "chatty": (
        "Hello there! I hope you can help me. I would like to {}.",
        "Hi, how are you? I am writing because I would like to {}.",
        "Good morning! One small thing today: could you {} for me?",
        "Hey, thanks for being here. I was wondering if you could {}.",
    ),
    "confused": (
        "Hello, I am not good at this. I want to {}.",
        "Hi, I think I need to {}.",
        "Sorry, I have never done this before. I would like to {}, if that is possible.",
    ),
    "impatient": ("Quick please, I need to {}.", "I have no time. I want to {}.", "This is urgent: {}, please."),
}
ALSO = ("I also want to {}.", "Also, I need to {}.", "One more thing, I want to {}.")
STILL = ("I still need to {}.", "You forgot that I want to {}.")
YES = ("Yes.", "Yes, please.", "Yes, go ahead.", "Yes, that is right.", "Yes, do it.")
CHANGES = ("Actually, I changed my mind. {}", "Wait, I changed my mind. {}", "Sorry, no. {}")
CORRECTIONS = ("No, I want to {}.", "No, that is wrong. I want to {}.")
DROPS = ("Never mind, leave it as it is.", "No, forget it, leave it as it is.")
ENDINGS = ("No, that is all. ###STOP###", "That is all, thank you. ###STOP###", "No, thanks, bye. ###STOP###")
GIVES_UP = "This is not working for me. ###STOP###"

_PLACE = re.compile(r"\{(\w+)(?:\|([^{}]*))?\}")
_GROUP = re.compile(r"\[([^\[\]]*)\]")
_OPEN_QUESTION = re.compile(r"(?:(?<=[.!?] )|^)(?:which|what|where|who|when|how)\b[^?]*\?", re.IGNORECASE)
"""A question that yes does not answer."""
_QUOTED = re.compile(r'"[^"]*"')
_FURTHER = re.compile(r"(?:I also|Also, I|One more thing, I|I still|You forgot that I)(?= )")


@dataclass(frozen=True)
class Slot:
    """One detail. ``find``: how it looks in a text; ``say``: how it stands in a sentence; ``asked``: how an agent that
    asks for it is understood; ``ask``: how our expert asks; ``tell``: how a caller answers. ``stands_for``: the slot
    that it describes, for callers who do not remember that one."""

    name: str
    find: re.Pattern[str]
    say: str
    asked: re.Pattern[str]
    ask: str
    tell: tuple[str, ...]
    stands_for: str = ""

    def spoken(self, value: Any) -> str:
        """A value as it stands in a sentence."""
        return self.say.format(value)

    def found_in(self, text: str) -> re.Match[str] | None:
        """The first mention in a text."""
        return self.find.search(text)


@dataclass(frozen=True)
class Intent:
    """One thing that people may want. ``clauses``: how it is said behind "I want to", with ``{slot|words without it}``
    and ``[groups that need their slots]``; ``slots``: its details in the order in which they are told; ``propose``: how
    our expert proposes it."""

    name: str
    verbs: re.Pattern[str]
    clauses: tuple[str, ...]
    slots: tuple[str, ...]
    propose: str = ""


@dataclass
class Frame:
    """One request as an agent understands it: its intent and the slots that are known."""

    intent: str
    slots: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Talk:
    """The words of one scenario."""

    slots: Mapping[str, Slot]
    intents: Mapping[str, Intent]
    about: str = ""

    def _value(self, slot: str, wish: Wish, reveal: Sequence[str]) -> str | None:
        if slot in reveal and slot in wish:
            return self.slots[slot].spoken(wish[slot])
        for other in self.slots.values():
            if other.stands_for == slot and other.name in reveal and other.name in wish:
                return other.spoken(wish[other.name])
        return None

    def fill(self, text: str, wish: Wish, reveal: Sequence[str]) -> str:
        """A clause or proposal with its slots filled in, as far as they are revealed."""

        def group(found: re.Match[str]) -> str:
            inner = found[1]
            known = all(self._value(m[1], wish, reveal) is not None for m in _PLACE.finditer(inner))
            return inner if known else ""

        def place(found: re.Match[str]) -> str:
            return self._value(found[1], wish, reveal) or found[2] or ""

        return _PLACE.sub(place, _GROUP.sub(group, text))

    def say_wish(self, rng: random.Random, intent: str, wish: Wish, reveal: Sequence[str]) -> str:
        """A wish as a clause behind "I want to"; only the slots named in ``reveal`` are told."""
        return self.fill(rng.choice(self.intents[intent].clauses), wish, reveal)

    def say_slot(self, rng: random.Random, slot: str, wish: Wish) -> str:
        """The answer to a question about one slot, or the description that a caller has instead of it."""
        for other in self.slots.values():
            if other.stands_for == slot and other.name in wish:
                return rng.choice(other.tell).format(wish[other.name])
        return rng.choice(self.slots[slot].tell).format(wish[slot])

    def say_change(self, rng: random.Random, old: Wish, new: Wish) -> str:
        """How a caller who heard the proposal states the new wish: only what changed."""
        told = [rng.choice(self.slots[s].tell).format(v) for s, v in new.items() if s in self.slots and old.get(s) != v]
        return rng.choice(CHANGES).format(" ".join(told))

    def told_at_once(self, persona: str, intent: str, wish: Wish, unknown: Sequence[str]) -> list[str]:
        """The slots that a persona tells when it brings up a wish."""
        known = [s for s in self.intents[intent].slots if s in wish and s not in unknown]
        described = [s.name for s in self.slots.values() if s.stands_for in unknown and s.name in wish]
        return [*described, *known][: TOLD_AT_ONCE[persona]]

    # what is heard

    def hear(self, text: str) -> set[str]:
        """The acts that an agent's message may be: those of ``_ACTS``, "question", and "ask_SLOT"."""
        lower = text.lower()
        closed = _OPEN_QUESTION.sub(" ", lower)
        acts = {n for n, pattern in _ACTS.items() if re.search(pattern, closed if n == "confirm" else lower)}
        if "?" in text:
            acts |= {"question"} | {f"ask_{s.name}" for s in self.slots.values() if s.asked.search(lower)}
        return acts

    def intents_in(self, text: str) -> list[str]:
        """The intents whose verbs stand in a text, in the order of the scenario's file; quotations do not count."""
        lower = _QUOTED.sub(" ", text.lower())
        return [i.name for i in self.intents.values() if i.verbs.search(lower)]

    def slots_in(self, text: str, names: Sequence[str] | None = None) -> dict[str, str]:
        """The slots that a text fills, each stretch of it once, in the order of the scenario's file."""
        found: dict[str, str] = {}
        for slot in self.slots.values():
            if names is not None and slot.name not in names:
                continue
            match = slot.found_in(text)
            if match is not None:
                found[slot.name] = match[match.lastindex or 0]
                text = f"{text[: match.start()]} ; {text[match.end() :]}"
        return found

    def of_intent(self, intent: str) -> list[str]:
        """An intent's slots, with those that stand for one of them."""
        own = self.intents[intent].slots
        return [s.name for s in self.slots.values() if s.name in own or s.stands_for in own]

    def requests_in(self, text: str) -> list[Frame]:
        """The requests that a caller's message brings up, in order."""
        frames = []
        for part in _FURTHER.split(text):
            found = self.intents_in(part)
            if found:
                frames.append(Frame(found[0], dict(self.slots_in(part, self.of_intent(found[0])))))
        return frames

    def conflicts(self, text: str, intent: str, wish: Wish) -> bool:
        """True if an agent's proposal is not the wish: it names none of its details, another one, or another deed."""
        lower = text.lower()
        named = [s for s in self.of_intent(intent) if s in wish and str(wish[s]).lower() in lower]
        if not named:
            return True
        kinds = self.intents_in(text)
        if kinds and intent not in kinds:
            return True
        rest = text
        for slot in named:
            rest = re.sub(re.escape(str(wish[slot])), " ; ", rest, flags=re.IGNORECASE)
        return any(s in wish and s not in named for s in self.slots_in(rest, self.intents[intent].slots))

    def scenario_text(self, agenda: Mapping[str, Any]) -> str:
        """An agenda in plain English, for an LLM user's system prompt."""
        rng = random.Random(0)
        lines = [f"Persona:\n\t{PERSONAS[agenda['persona']]}", f"Instructions:\n\t{self.about}", "\tTask instructions:"]
        for number, request in enumerate(agenda["requests"]):
            start = "You want to" if number == 0 else "You also want to"
            lines.append(f"\t\t{start} {self._told(rng, request, request['wish'])}.")
            lines += self._later(rng, request, "then", "When the agent asks you to confirm this, you change your mind")
            lines += self._later(rng, request, "fallback", "If the agent says that this is not possible as it is")
        if not agenda["upfront"] and len(agenda["requests"]) > 1:
            lines.append("\t\tYou mention the second wish only after the first is settled.")
        lines.append(
            "\t\tConfirm what the agent proposes only if it is what you want. "
            "Accept it if the agent says that something is not possible."
        )
        return "\n".join(lines)

    def _told(self, rng: random.Random, request: Mapping[str, Any], wish: Wish) -> str:
        reveal = self.told_at_once("chatty", request["kind"], wish, request["unknown"])
        return self.say_wish(rng, request["kind"], wish, reveal)

    def _later(self, rng: random.Random, request: Mapping[str, Any], which: str, when: str) -> list[str]:
        wish = request[which]
        if wish is None:
            return []
        if wish.get("drop"):
            return [f"\t\t{when}: you drop this wish and want nothing changed for it."]
        return [f"\t\t{when}: now you want to {self._told(rng, request, wish)}."]


def talk_from(data: Mapping[str, Any], where: str) -> Talk:
    """A scenario's words from the "slots", "intents" and "about" of its file. DataError names what is wrong."""
    try:
        slots = {name: _slot(name, given) for name, given in data["slots"].items()}
        intents = {name: _intent(name, given) for name, given in data["intents"].items()}
    except (KeyError, TypeError, AttributeError, re.error) as problem:
        raise DataError(f"{where}: {type(problem).__name__}: {problem}") from None
    for intent in intents.values():
        for name in (*intent.slots, *(m[1] for c in (*intent.clauses, intent.propose) for m in _PLACE.finditer(c))):
            if name not in slots:
                raise DataError(f"{where}: intents.{intent.name} speaks of the slot {name!r}, which is not there")
    return Talk(slots, intents, data.get("about", ""))


def _slot(name: str, given: Mapping[str, Any]) -> Slot:
    return Slot(
        name,
        re.compile(given["find"]),
        given.get("say", "{}"),
        re.compile(given.get("asked", f"(which|what) {name}")),
        given.get("ask", f"Which {name} is it?"),
        tuple(given["tell"]),
        given.get("stands_for", ""),
    )


def _intent(name: str, given: Mapping[str, Any]) -> Intent:
    verbs = re.compile(given["verbs"])
    return Intent(name, verbs, tuple(given["clauses"]), tuple(given["slots"]), given.get("propose", ""))
