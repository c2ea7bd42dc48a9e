"""The callers of the MCP scenarios: agenda users that speak in a scenario's own words (domains/mcp/talk.py)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from muarl.domains.base import Task
from muarl.domains.mcp import talk
from muarl.domains.mcp.talk import Talk
from muarl.users.caller import Caller, Phrases, Request

_SENTENCE = re.compile(r"(?<=[.!?]) ")


@cache
def talk_of(domain: str) -> Talk:
    """The words of the scenario that a task's domain names."""
    found = import_module(f"muarl.domains.mcp.scenarios.{domain.removeprefix('mcp-')}.expert").TALK
    assert isinstance(found, Talk)
    return found


class AgendaUser(Caller):
    """Plays ``task.agenda`` (its fields: domains/mcp/scenario.py)."""

    words: ClassVar[Phrases] = talk

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        super().__init__(task, seed=seed, persona=persona)
        self._talk = talk_of(task.domain)
        for request in self._open:
            request["said"] = set()

    def _reveal(self, request: Mapping[str, Any]) -> Sequence[str]:
        return self._talk.told_at_once(self._persona, request["kind"], request["wish"], request["unknown"])

    def _say(self, request: Mapping[str, Any], slots: Sequence[str]) -> str:
        return self._talk.say_wish(self._rng, request["kind"], request["wish"], slots)

    def _clause(self, request: Request) -> str:
        slots = self._reveal(request)
        request["said"] |= set(slots)
        return self._say(request, slots)

    def _whole(self, request: Mapping[str, Any]) -> str:
        return self._say(
            request, self._talk.told_at_once("chatty", request["kind"], request["wish"], request["unknown"])
        )

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
            return self._unavailable(request, text, proposed=False)
        asked = [s for s in self._talk.intents[request["kind"]].slots if s in wish and f"ask_{s}" in acts]
        if asked and not proposes:
            slot = next((s for s in asked if s not in request["said"]), asked[0])
            request["said"].add(slot)
            return self._tired(f"{slot} of {wish}") or self._talk.say_slot(self._rng, slot, wish)
        if proposes:
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, text)
        return self._hear_done(request, text) if "done" in acts else self._restate(request)

    def _request_meant(self, text: str, acts: set[str]) -> Request | None:
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

    def _conflicts(self, request: Request, text: str) -> bool:
        return self._talk.conflicts(text, request["kind"], request["wish"])

    def _say_change(self, request: Request, old: Mapping[str, Any]) -> str:
        return self._talk.say_change(self._rng, old, request["wish"])

    def _accept(self, request: Request, text: str, *, proposed: bool) -> str:
        return self._settle(request, text)

    def _say_instead(self, request: Request, old: Mapping[str, Any]) -> str:
        wish = request["wish"]
        changed = next(s for s in wish if wish[s] != old.get(s))
        return self._talk.say_slot(self._rng, changed, wish)

    def _remind(self, request: Request) -> str:
        return self._tired() or super()._remind(request)
