"""A caller of any described scenario that plays an agenda: goals, facts and patience, and no language model.

It reveals details piecemeal, changes its mind when it hears a proposal, confirms or refuses what is proposed, reminds
the agent of what was forgotten, and gives up. It reads the agent's words only (domains/desk/reading.py), never the
world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from muarl.domains import scenarios
from muarl.domains.base import Task
from muarl.domains.desk import reading, wording
from muarl.domains.desk.scenario import spoken_slots
from muarl.domains.desk.spec import PLACE, Script
from muarl.domains.desk.values import normal
from muarl.domains.desk.wording import pick, put
from muarl.users.caller import Caller, Choices, Phrases, Request

REVEALS: Mapping[str, tuple[int, int]] = {"terse": (1, 3), "chatty": (2, 9), "confused": (0, 1), "impatient": (9, 9)}
"""How many slots each persona tells at once, at least and at most; the rest is told when asked."""
ASIDE = {"terse": 0.0, "chatty": 0.7, "confused": 0.35, "impatient": 0.1}
"""How often each persona adds why, and something beside the point."""
STOP, TRANSFER = "###STOP###", "###TRANSFER###"


class AgendaUser(Caller):
    """Plays ``task.agenda`` (its fields: domains/desk/generator.py).

    ``script``: the scenario, None for the one of ours that the task's domain names.
    """

    words: ClassVar[Phrases] = wording
    template_first = "always"
    restated = wording.RESTATED

    def __init__(self, task: Task, *, seed: int, persona: str | None = None, script: Script | None = None) -> None:
        super().__init__(task, seed=seed, persona=persona, label=f"{task.domain} agenda")
        self._script = script or scenarios.desk(task.domain).script
        self._wrong: dict[str, Any] = dict(self._agenda["wrong"])
        self._identified = 0
        self._said: set[str] = set()

    # what is told

    def _choose(self, several: Sequence[str]) -> str:
        """One of several, if possible one that has not been said."""
        chosen = pick(self._rng, [c for c in several if c not in self._said] or several)
        self._said.add(chosen)
        return chosen

    def _put(self, template: str, clause: str) -> str:
        return put(template, clause)

    def _opening(self) -> str:
        sentences = [self._pick(wording.GREETINGS), *self._first_wishes()]
        if self._persona == "impatient":
            sentences.append(self._identity())
        elif self._rng.random() < ASIDE[self._persona] / 2:
            sentences.insert(1, self._pick(wording.ASIDES))
        return " ".join(s for s in sentences if s)

    def _bring_up(self, request: Request, templates: Choices) -> str:
        """A request for the first time, as far as this persona tells it, perhaps with the reason for it."""
        sentence = super()._bring_up(request, templates)
        if request["kind"] == "outside" or self._rng.random() >= ASIDE[self._persona]:
            return sentence
        because = self._script.spec.intents[request["kind"]].because
        return f"{sentence} {self._pick(because)}" if because else sentence

    def _clause(self, request: Request) -> str:
        return self._with_slots(request, self._rng.randint(*REVEALS[self._persona]))

    def _whole(self, request: Mapping[str, Any]) -> str:
        return self._with_slots(request, 99)

    def _with_slots(self, request: Mapping[str, Any], most: int) -> str:
        """A wish as a clause, with ``most`` of its slots at most."""
        wish = request["wish"]
        if request["kind"] == "outside":
            return f"talk to somebody about {wish['topic']}"
        clauses = [(len({p for p, _ in PLACE.findall(c)}), c) for c in self._script.spec.intents[request["kind"]].say]
        fit = [n for n, _ in clauses if n <= most]
        wanted = max(fit) if fit else min(n for n, _ in clauses)
        said = spoken_slots(self._script, wish, self._rng)
        clause = pick(self._rng, [c for n, c in clauses if n == wanted])
        return PLACE.sub(lambda m: said[m[1]], clause)

    def _identity(self) -> str:
        """Who the caller is; the first time perhaps with a fact that is wrong."""
        facts, self._wrong = {**self._agenda["identity"], **self._wrong}, {}
        fields = self._script.spec.identify.fields
        said = {n: self._script.kinds[f.kind].say(facts[n], self._rng) for n, f in fields.items()}
        self._identified += 1
        return self._pick(self._script.spec.identify.say).format(**said)

    def _tell(self, request: Mapping[str, Any], slots: Sequence[str]) -> str:
        """The answer to a question about slots of a wish."""
        return " ".join(self._slot(request, slot, self._script.spec.slots[slot].say) for slot in slots)

    def _slot(self, request: Mapping[str, Any], slot: str, templates: Sequence[str]) -> str:
        spec, described = self._script.spec.slots[slot], request["wish"].get(f"described {slot}")
        if described is not None and spec.described is not None:
            said = self._script.kinds[spec.described.kind].say(described, self._rng)
            return self._pick(spec.described.say).replace("{}", said)
        said = self._script.say(slot, request["wish"][slot], self._rng)
        text = self._pick(templates).replace("{}", said)
        return text[:1].upper() + text[1:]

    # what is heard

    def _answer(self, text: str) -> str:
        acts = reading.hear(text)
        if "transferred" in acts:
            return TRANSFER
        asks_who = self._asks_who(text, acts)
        answered = [r for r in self._open if r["told"] and r["answer"] and r["answer"] in text.replace(",", "")]
        for one in answered:
            self._close(one)
        request = self._request_meant(text)
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
            return self._tired(f"{asked} of {request['wish']}") or self._tell(request, asked)
        if "confirm" in acts:
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, text)
        return self._hear_done(request, text) if "done" in acts else self._restate(request)

    def _asks_who(self, text: str, acts: set[str]) -> bool:
        if "confirm" in acts and "ask_identity" not in acts and self._identified:
            return False
        asked = any(pattern.search(text) for pattern in self._script.asked_identity.values())
        return (asked or "ask_identity" in acts) and ("question" in acts or "done" not in acts)

    def _who(self, acts: set[str]) -> str:
        enough = self._identified >= (1 if "refuse" in acts else 2)
        if enough and self._agenda["impostor"]:
            return self._found_out()
        return self._tired(None if self._identified >= 2 else f"identity {self._identified}") or self._identity()

    def _about_topic(self, request: Request, text: str, acts: set[str]) -> str:
        if "refuse" in acts or "done" in acts:
            return self._settle(request, text)
        if "confirm" in acts:
            return self._tired("hand over") or pick(self._rng, wording.YES[self._persona])
        return self._restate(request)

    def _asked_for(self, request: Mapping[str, Any], text: str) -> list[str]:
        """The slots of a request that a message asks for; what the message itself says of them is no question."""
        slots = [s for s in self._script.spec.intents[request["kind"]].slots if self._script.asked[s].search(text)]
        wish, spec = request["wish"], self._script.spec.slots
        asked = []
        for slot in slots:
            described, how = wish.get(f"described {slot}"), spec[slot].described
            kind, value = spec[slot].kind, wish[slot]
            if described is not None and how is not None:
                kind, value = how.kind, described
            if normal(value) not in [normal(m.value) for m in self._script.kinds[kind].find(text)]:
                asked.append(slot)
        return asked

    def _request_meant(self, text: str) -> Request | None:
        """The request an agent's message is about: by the words and values it names, else the first open one."""
        kinds = reading.intents_in(self._script, text)
        told = [r for r in self._open if r["told"]]
        for request in told:
            if request["kind"] in kinds and any(self._names(text, request, s) for s in request["wish"]):
                return request
        return told[0] if told else None

    def _names(self, text: str, request: Mapping[str, Any], slot: str) -> bool:
        return slot in self._script.spec.slots and reading.speaks_of(self._script, text, slot, request["wish"][slot])

    def _conflicts(self, request: Request, text: str) -> bool:
        return reading.conflicts(self._script, text, request["wish"])

    def _say_change(self, request: Request, old: Mapping[str, Any]) -> str:
        spec = self._script.spec.slots
        return " ".join(self._slot(request, s, spec[s].change or spec[s].say) for s in self._changed(request, old))

    def _changed(self, request: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
        wish = request["wish"]
        return [s for s in self._script.spec.slots if s in wish and wish[s] != old.get(s)]

    def _accept(self, request: Request, text: str, *, proposed: bool) -> str:
        if proposed:
            return self._confirm(request, text)
        asked = self._asked_for(request, text)
        if asked:
            return self._tired() or self._tell(request, asked)
        return self._settle(request, text)

    def _say_instead(self, request: Request, old: Mapping[str, Any]) -> str:
        return f"{self._pick(wording.ACCEPTS)} {self._tell(request, self._changed(request, old))}"

    # how it goes on, and how it ends

    def _remind(self, request: Request) -> str:
        return self._tired(f"reminder of {request['wish']}") or put(self._pick(wording.STILL), self._whole(request))

    def _asks_for_more(self, text: str) -> bool:
        return "else" in reading.hear(text)

    def _wait(self) -> str:
        return self._tired("wait") or self._pick(wording.WAITS)

    def _end(self) -> str:
        return f"{pick(self._rng, wording.ENDINGS[self._persona])} {STOP}"

    def _found_out(self) -> str:
        """What an impostor says who cannot pass for somebody else."""
        return f"{pick(self._rng, wording.NOT_KNOWN)} {STOP}"

    def _give_up(self) -> str:
        return f"{pick(self._rng, wording.GIVES_UP)} {STOP}"
