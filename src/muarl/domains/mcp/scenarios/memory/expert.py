"""The scripted agent of the contacts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.mcp.scenario import read_files
from muarl.domains.mcp.scenarios.memory.tasks import LOCKED, writes_of
from muarl.domains.mcp.serving import DeskExpert, Say, Write
from muarl.domains.mcp.talk import Frame

TALK = read_files(Path(__file__).parent).talk
PREFIX = {"phone number": "phone ", "city": "lives in "}


class MemoryExpert(DeskExpert):
    """Serves one conversation about contacts."""

    talk = TALK
    guesses: ClassVar[Mapping[str, str]] = {"fact": "needs a reminder"}

    def serve(self, frame: Frame) -> Write | Say:
        """What a request needs."""
        kind = frame.intent
        if kind == "new":
            return self._new(frame)
        seen, company = self._person(frame)
        person = frame.slots["person"]
        if kind == "question":
            return self._answer(self.need(frame, "field"), person, seen, company)
        if LOCKED in seen:
            self.refuse(frame, f"{person} is marked: {LOCKED}")
        old = next((o for o in seen if o.startswith("phone ")), "")
        if kind == "remove" and company:
            self.refuse(frame, f"{person} works at {company}")
        elif kind == "hire":
            wanted = self.need(frame, "company")
            if not self._find(wanted)[0]:
                self.gone(frame, "company", f"there is no company {wanted}", "Which other company is it?")
        elif kind == "quit" and self.need(frame, "company") != company:
            self.gone(frame, "company", f"there is no link of {person} to it")
        elif kind == "forget" and self.need(frame, "fact") not in seen:
            self.gone(frame, "fact", "there is no such note")
        elif kind in ("note", "phone"):
            self.need(frame, "fact" if kind == "note" else "phone")
        return self.propose(frame, *writes_of(kind, frame.slots, old))

    def _new(self, frame: Frame) -> Write:
        person = self.need(frame, "person")
        if self._find(person)[0]:
            self.refuse(frame, f"{person} is among the contacts already")
        self.need(frame, "phone")
        return self.propose(frame, *writes_of("new", frame.slots, ""))

    def _answer(self, field: str, person: str, seen: list[str], company: str) -> Say:
        found = company or "not known"
        if field in PREFIX:
            found = next((o.removeprefix(PREFIX[field]) for o in seen if o.startswith(PREFIX[field])), "not known")
        return Say(f"The {field} of {person} is {found}.")

    def _person(self, frame: Frame) -> tuple[list[str], str]:
        """What is known of the person that a request is about, and where that person works."""
        if "person" not in frame.slots and "known_by" in frame.slots:
            number = frame.slots["known_by"]
            entities, _ = _read(self.look("search_nodes", query=number).text)
            names = [e["name"] for e in entities if f"phone {number}" in e["observations"]]
            del frame.slots["known_by"]
            frame.slots |= {"person": names[0]} if len(names) == 1 else {}
        person = self.need(frame, "person")
        entity, relations = self._find(person)
        if entity is None:
            self.gone(frame, "person", f"there is no contact {person}")
        works = [r["to"] for r in relations if r["from"] == person and r["relationType"] == "works_at"]
        return entity["observations"], works[0] if works else ""

    def _find(self, name: str) -> tuple[Any, list[Any]]:
        """An entity, None if there is none, and the relations around it."""
        entities, relations = _read(self.look("open_nodes", names=[name]).text)
        return next((e for e in entities if e["name"] == name), None), relations

    def slipped(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """A name with its last letter missing."""
        return {"names": [n[:-1] for n in arguments["names"]]} if name == "open_nodes" else None


def _read(text: str) -> tuple[list[Any], list[Any]]:
    """The entities and relations of an observation."""
    try:
        graph = json.loads(text)
        return list(graph["entities"]), list(graph["relations"])
    except (ValueError, KeyError, TypeError):
        return [], []
