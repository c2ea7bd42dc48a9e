"""The callers of the MCP scenarios: agenda users that speak in a scenario's own words (domains/mcp/talk.py)."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from muarl.chat import Message
from muarl.domains.base import Task
from muarl.domains.mcp import talk
from muarl.domains.mcp.talk import Talk
from muarl.errors import ConfigError
from muarl.users.base import UserTurn

_SENTENCE = re.compile(r"(?<=[.!?]) ")


@cache
def talk_of(domain: str) -> Talk:
    """The words of the scenario that a task's domain names."""
    found = import_module(f"muarl.domains.mcp.scenarios.{domain.removeprefix('mcp-')}.expert").TALK
    assert isinstance(found, Talk)
    return found


class AgendaUser:
    """Plays ``task.agenda`` (its fields: domains/mcp/scenario.py). Deterministic in (task, seed, what it hears)."""

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        if task.agenda is None:
            raise ConfigError(
                f"task {task.id} has no agenda: an agenda user plays generated tasks only; use an LLM user"
            )
        self._talk = talk_of(task.domain)
        self._agenda = task.agenda
        self._persona: str = persona or task.agenda["persona"]
        self._rng = random.Random(f"agenda {task.id} {seed}")
        self._open: list[dict[str, Any]] = [dict(r, told=False, said=set()) for r in task.agenda["requests"]]
        self._confirmed: list[dict[str, Any]] = []
        self._patience = talk.PATIENCE[self._persona]
        self._started = False
        self._asked: set[str] = set()

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Answer the last message of the conversation; the first reply is the opening, whatever the greeting says."""
        text = conversation[-1].content or "" if conversation else ""
        return UserTurn(Message("user", self._answer(text) if self._started else self._opening()))

    def _opening(self) -> str:
        self._started = True
        several = self._open if self._agenda["upfront"] else self._open[:1]
        return " ".join(
            self._bring_up(request, talk.OPENINGS[self._persona] if number == 0 else talk.ALSO)
            for number, request in enumerate(several)
        )

    def _bring_up(self, request: dict[str, Any], templates: Sequence[str]) -> str:
        request["told"] = True
        wish = request["wish"]
        reveal = self._talk.told_at_once(self._persona, request["kind"], wish, request["unknown"])
        request["said"] |= set(reveal)
        clause = self._talk.say_wish(self._rng, request["kind"], wish, reveal)
        return self._rng.choice(templates).format(clause)

    def _full(self, request: Mapping[str, Any]) -> str:
        reveal = self._talk.told_at_once("chatty", request["kind"], request["wish"], request["unknown"])
        return self._talk.say_wish(self._rng, request["kind"], request["wish"], reveal)

    def _answer(self, text: str) -> str:
        acts = self._talk.hear(text)
        proposes = "confirm" in acts and "question" in acts
        request = self._request_meant(text, set() if proposes else acts)
        if request is None:
            return self._follow(text)
        wish = request["wish"]
        if request["answer"] is not None and request["answer"].lower() in text.lower():
            return self._settle(request, text)
        if "unavailable" in acts and not proposes:
            return self._unavailable(request, text)
        asked = [s for s in self._talk.intents[request["kind"]].slots if s in wish and f"ask_{s}" in acts]
        if asked and not proposes:
            slot = next((s for s in asked if s not in request["said"]), asked[0])
            request["said"].add(slot)
            return self._tired(f"{slot} of {wish}") or self._talk.say_slot(self._rng, slot, wish)
        if proposes:
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, text)
        if "done" in acts:  # what was confirmed is done; else the agent takes this one as finished unconfirmed
            return self._follow(text) if self._confirmed else self._settle(request, text)
        return self._tired() or f"I want to {self._full(request)}."

    def _request_meant(self, text: str, acts: set[str]) -> dict[str, Any] | None:
        """The request an agent's message is about: one whose details it asks for, then the one most of whose details
        it names, above all in its first sentence, else the first open one."""
        whole = text.lower()
        first = _SENTENCE.split(whole)[0]

        def fit(request: Mapping[str, Any]) -> tuple[bool, int, int]:
            asked = any(f"ask_{slot}" in acts for slot in request["wish"])
            values = [str(value).lower() for value in request["wish"].values()]
            return asked, sum(v in first for v in values), sum(v in whole for v in values)

        told = [r for r in self._open if r["told"]]
        return max(told, key=fit, default=None)

    def _confirm(self, request: dict[str, Any], text: str) -> str:
        if self._talk.conflicts(text, request["kind"], request["wish"]):
            return self._tired() or self._rng.choice(talk.CORRECTIONS).format(self._full(request))
        then, request["then"] = request["then"], None
        if then is None:
            self._open.remove(request)
            self._confirmed.append(request)
            return self._rng.choice(talk.YES)
        if then.get("drop"):
            self._open.remove(request)
            return self._drop()
        old, request["wish"] = request["wish"], then
        return self._talk.say_change(self._rng, old, then)

    def _unavailable(self, request: dict[str, Any], text: str) -> str:
        fallback, request["fallback"] = request["fallback"], None
        if fallback is None:
            return self._settle(request, text)
        if fallback.get("drop"):
            self._open.remove(request)
            return self._drop()
        old, request["wish"] = request["wish"], fallback
        changed = next(s for s in fallback if fallback[s] != old.get(s))
        return self._talk.say_slot(self._rng, changed, fallback)

    def _drop(self) -> str:
        said = self._rng.choice(talk.DROPS)
        return said if self._open else f"{said} {self._rng.choice(talk.ENDINGS)}"

    def _settle(self, request: dict[str, Any], text: str) -> str:
        """The agent takes this request as finished: done, refused or answered."""
        if request in self._open:
            self._open.remove(request)
        return self._follow(text)

    def _follow(self, text: str) -> str:
        """Bring up what is left, or end. A caller who does not remind expects the agent to know what was told."""
        if not self._open:
            return self._rng.choice(talk.ENDINGS)
        request = self._open[0]
        if request["told"] and not self._agenda["reminds"]:
            return self._rng.choice(talk.ENDINGS) if "else" in text.lower() else "OK."
        if request["told"]:
            return self._tired() or self._bring_up(request, talk.STILL)
        return self._bring_up(request, talk.ALSO)

    def _tired(self, asked: str | None = None) -> str:
        """Lose patience and perhaps give up. What is asked (``asked``) for the first time costs nothing."""
        if asked is not None and asked not in self._asked:
            self._asked.add(asked)
            return ""
        self._patience -= 1
        return talk.GIVES_UP if self._patience < 0 else ""
