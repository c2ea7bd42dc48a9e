"""A caller of any described scenario that plays an agenda: goals, facts and patience, and no language model.

It reveals details piecemeal, changes its mind when it hears a proposal, confirms or refuses what is proposed, reminds
the agent of what was forgotten, and gives up. It reads the agent's words only (domains/desk/reading.py), never the
world.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.chat import Message
from muarl.domains import scenarios
from muarl.domains.base import Task
from muarl.domains.desk import reading, wording
from muarl.domains.desk.scenario import spoken_slots
from muarl.domains.desk.spec import PLACE, Script
from muarl.domains.desk.values import normal
from muarl.domains.desk.wording import pick, put
from muarl.errors import ConfigError
from muarl.users.agenda import PATIENCE
from muarl.users.base import UserTurn

REVEALS: Mapping[str, tuple[int, int]] = {"terse": (1, 3), "chatty": (2, 9), "confused": (0, 1), "impatient": (9, 9)}
"""How many slots each persona tells at once, at least and at most; the rest is told when asked."""
ASIDE = {"terse": 0.0, "chatty": 0.7, "confused": 0.35, "impatient": 0.1}
"""How often each persona adds why, and something beside the point."""
STOP, TRANSFER = "###STOP###", "###TRANSFER###"


class AgendaUser:
    """Plays ``task.agenda`` (its fields: domains/desk/generator.py). Deterministic in (task, seed, what it hears).

    ``script``: the scenario, None for the one of ours that the task's domain names.
    """

    def __init__(self, task: Task, *, seed: int, persona: str | None = None, script: Script | None = None) -> None:
        if task.agenda is None:
            raise ConfigError(
                f"task {task.id} has no agenda: an agenda user plays generated tasks only; use an LLM user"
            )
        self._script = script or scenarios.desk(task.domain).script
        self._agenda = task.agenda
        self._persona: str = persona or task.agenda["persona"]
        self._rng = random.Random(f"{task.domain} agenda {task.id} {seed}")
        self._open: list[dict[str, Any]] = [dict(r, told=False) for r in task.agenda["requests"]]
        self._confirmed: list[dict[str, Any]] = []
        self._patience = PATIENCE[self._persona]
        self._wrong: dict[str, Any] = dict(task.agenda["wrong"])
        self._started = False
        self._identified = 0
        self._asked: set[str] = set()
        self._said: set[str] = set()

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Answer the last message of the conversation; the first reply is the opening, whatever the greeting says."""
        text = conversation[-1].content or "" if conversation else ""
        return UserTurn(Message("user", self._answer(text) if self._started else self._opening()))

    # what is told

    def _pick(self, choices: Sequence[str]) -> str:
        """One of the choices, if possible one that has not been said."""
        fresh = [c for c in choices if c not in self._said] or list(choices)
        chosen = pick(self._rng, fresh)
        self._said.add(chosen)
        return chosen

    def _opening(self) -> str:
        self._started = True
        sentences = [self._pick(wording.GREETINGS[self._persona])]
        for number, request in enumerate(self._open if self._agenda["upfront"] else self._open[:1]):
            sentences.append(self._bring_up(request, wording.OPENERS[self._persona] if number == 0 else wording.ALSO))
        if self._persona == "impatient":
            sentences.append(self._identity())
        elif self._rng.random() < ASIDE[self._persona] / 2:
            sentences.insert(1, self._pick(wording.ASIDES))
        return " ".join(s for s in sentences if s)

    def _bring_up(self, request: dict[str, Any], templates: Sequence[str]) -> str:
        """A request for the first time, as far as this persona tells it, perhaps with the reason for it."""
        request["told"] = True
        low, high = REVEALS[self._persona]
        sentence = put(self._pick(templates), self._clause(request, self._rng.randint(low, high)))
        if request["kind"] == "outside" or self._rng.random() >= ASIDE[self._persona]:
            return sentence
        because = self._script.spec.intents[request["kind"]].because
        return f"{sentence} {self._pick(because)}" if because else sentence

    def _clause(self, request: Mapping[str, Any], most: int = 99) -> str:
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

    def _tell(self, request: dict[str, Any], slots: Sequence[str]) -> str:
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
            return self._identity() if asks_who else self._follow(acts)
        if asks_who:
            return self._who(acts)
        if "refuse" in acts and self._agenda["impostor"] and self._identified:
            return f"{pick(self._rng, wording.NOT_KNOWN)} {STOP}"
        if request["kind"] == "outside":
            return self._about_topic(request, acts)
        if "unavailable" in acts:
            return self._unavailable(request, text, acts)
        asked = self._asked_for(request, text) if "question" in acts or "confirm" not in acts else []
        if asked:
            return self._tired(f"{asked} of {request['wish']}") or self._tell(request, asked)
        if "confirm" in acts:
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, acts)
        if "done" in acts:  # what was confirmed is done; else the agent takes this one as finished unconfirmed
            return self._follow(acts) if self._confirmed else self._settle(request, acts)
        return self._tired() or put(self._pick(wording.RESTATED), self._clause(request))

    def _asks_who(self, text: str, acts: set[str]) -> bool:
        if "confirm" in acts and not {"ask_identity"} & acts and self._identified:
            return False
        asked = any(pattern.search(text) for pattern in self._script.asked_identity.values())
        return (asked or "ask_identity" in acts) and ("question" in acts or "done" not in acts)

    def _who(self, acts: set[str]) -> str:
        if self._agenda["impostor"] and self._identified >= 2:
            return f"{pick(self._rng, wording.NOT_KNOWN)} {STOP}"
        if "refuse" in acts and self._identified and self._agenda["impostor"]:
            return f"{pick(self._rng, wording.NOT_KNOWN)} {STOP}"
        return self._tired(None if self._identified >= 2 else f"identity {self._identified}") or self._identity()

    def _about_topic(self, request: dict[str, Any], acts: set[str]) -> str:
        if "refuse" in acts or "done" in acts:
            return self._settle(request, acts)
        if "confirm" in acts:
            return self._tired("hand over") or pick(self._rng, wording.YES[self._persona])
        return self._tired() or put(self._pick(wording.RESTATED), self._clause(request))

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

    def _request_meant(self, text: str) -> dict[str, Any] | None:
        """The request an agent's message is about: by the words and values it names, else the first open one."""
        kinds = reading.intents_in(self._script, text)
        told = [r for r in self._open if r["told"]]
        for request in told:
            if request["kind"] in kinds and any(self._names(text, request, s) for s in request["wish"]):
                return request
        return told[0] if told else None

    def _names(self, text: str, request: Mapping[str, Any], slot: str) -> bool:
        return slot in self._script.spec.slots and reading.speaks_of(self._script, text, slot, request["wish"][slot])

    def _confirm(self, request: dict[str, Any], text: str) -> str:
        if reading.conflicts(self._script, text, request["wish"]):
            return self._tired() or put(self._pick(wording.CORRECTIONS), self._clause(request))
        then, request["then"] = request["then"], None
        if then is None:
            self._close(request)
            self._confirmed.append(request)
            return self._pick(wording.YES[self._persona])
        if then.get("drop"):
            self._close(request)
            return self._drop()
        return self._change(request, then)

    def _change(self, request: dict[str, Any], new: Mapping[str, Any]) -> str:
        """State another wish: only what is new about it."""
        old, request["wish"] = request["wish"], new
        slots = [s for s in self._script.spec.slots if s in new and new[s] != old.get(s)]
        spec = self._script.spec.slots
        return " ".join(self._slot(request, s, spec[s].change or spec[s].say) for s in slots)

    def _unavailable(self, request: dict[str, Any], text: str, acts: set[str]) -> str:
        fallback, request["fallback"] = request["fallback"], None
        if fallback is None:
            if "confirm" in acts:
                return self._confirm(request, text)
            asked = self._asked_for(request, text)
            if asked:
                return self._tired() or self._tell(request, asked)
            return self._settle(request, acts)
        if fallback.get("drop"):
            self._close(request)
            return self._drop()
        if "confirm" in acts and not reading.conflicts(self._script, text, fallback):
            request["wish"] = fallback
            return self._confirm(request, text)
        old, request["wish"] = request["wish"], fallback
        slots = [s for s in self._script.spec.slots if s in fallback and fallback[s] != old.get(s)]
        return f"{self._pick(wording.ACCEPTS)} {self._tell(request, slots)}"

    def _close(self, request: dict[str, Any]) -> None:
        if request in self._open:
            self._open.remove(request)

    def _end(self) -> str:
        return f"{pick(self._rng, wording.ENDINGS[self._persona])} {STOP}"

    def _drop(self) -> str:
        said = self._pick(wording.DROPS)
        return said if self._open else f"{said} {self._end()}"

    def _settle(self, request: dict[str, Any], acts: set[str]) -> str:
        """The agent takes this request as finished: done, refused or answered."""
        self._close(request)
        return self._follow(acts)

    def _follow(self, acts: set[str]) -> str:
        """Bring up what is left, or end. A caller who does not remind expects the agent to know what was told."""
        if not self._open:
            return self._end()
        request = self._open[0]
        if not request["told"]:
            return self._bring_up(request, wording.ALSO)
        if not self._agenda["reminds"]:
            return self._end() if "else" in acts else self._tired("wait") or self._pick(wording.WAITS)
        return self._tired(f"reminder of {request['wish']}") or put(self._pick(wording.STILL), self._clause(request))

    def _tired(self, asked: str | None = None) -> str:
        """Lose patience and perhaps give up. What is asked (``asked``) for the first time costs nothing."""
        if asked is not None and asked not in self._asked:
            self._asked.add(asked)
            return ""
        self._patience -= 1
        return f"{pick(self._rng, wording.GIVES_UP)} {STOP}" if self._patience < 0 else ""
