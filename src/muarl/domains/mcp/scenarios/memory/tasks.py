"""Tasks about contacts: people, companies and notes from seeds, and what the people of a firm may want.

Train, validation and test differ by the full names of the people that requests are about.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.domains.base import Action
from muarl.domains.desk.people import FIRST_NAMES, LAST_NAMES
from muarl.domains.drawing import Infeasible, Request
from muarl.domains.mcp.scenario import Desk, several

COMPANIES = tuple(
    f"{a} {b}"
    for a in ("Northern", "Southern", "Eastern", "Western", "Blue", "Green", "Grand", "Silver")
    for b in ("Foods", "Tools", "Mills", "Works", "Lines", "Labs", "Farms", "Press")
)
CITIES = ("Boston", "Denver", "Austin", "Seattle", "Chicago", "Phoenix", "Portland", "Miami", "Atlanta", "Detroit")
FACTS = (
    "prefers letters", "speaks Spanish", "is away in May", "likes short calls", "knows the mayor", "collects maps",
    "never calls back", "wants a discount", "met us in Denver", "plays chess", "drives a van", "sings in a choir",
    "asks for Otto", "pays in cash", "has two dogs", "reads every contract", "works at night", "loves old trains",
    "needs a reminder", "grows tomatoes", "is allergic to nuts", "writes poems",
)  # fmt: skip
LOCKED = "do not change"
CHANGE_OF_MIND, UNAVAILABLE, FORGOT = 0.4, 0.35, 0.2


class MemoryTasks(Desk):
    """Where the tasks about contacts come from."""

    name = "mcp-memory"
    folder = Path(__file__).parent

    def world(self, rng: random.Random, size: str, split: str, kind: str) -> dict[str, dict[str, Any]]:
        """People with a number, a city and notes; companies, and who works where."""
        tiny = size == "tiny"
        companies = rng.sample(COMPANIES, 3 if tiny else rng.randint(4, 8))
        entities: dict[str, Any] = {}
        relations: dict[str, Any] = {}
        numbers = iter(rng.sample(range(100, 1000), 60))
        for name in several(split, "person", lambda: _person(rng), 5 if tiny else rng.randint(8, 16)):
            notes = rng.sample(FACTS, rng.randint(0, 2 if tiny else 4)) + ([LOCKED] if rng.random() < 0.15 else [])
            seen = [f"phone 555-0{next(numbers)}", f"lives in {rng.choice(CITIES)}", *notes]
            entities[name] = {"entityType": "person", "observations": seen}
            if rng.random() < 0.55:
                number = str(len(relations) + 1)
                relations[number] = {"from": name, "to": rng.choice(companies), "relationType": "works_at"}
        entities |= {c: {"entityType": "company", "observations": []} for c in companies}
        return {"entities": entities, "relations": relations}

    def request(self, rng: random.Random, tables: Mapping[str, Any], kind: str, split: str, alone: bool) -> Request:
        """One request of a kind."""
        draw = _Draw(rng, tables, split)
        if kind == "forbidden":
            return self._forbidden(draw)
        if kind == "new":
            return self._new(draw)
        people = draw.people() if kind == "question" else [p for p in draw.people() if not draw.locked(p)]
        request: Request = getattr(self, f"_{kind}")(draw, people)
        if "person" in request.wish and request.kind != "remove" and rng.random() < FORGOT:
            request.unknown = ["person"]
            for wish in (request.wish, request.then, request.fallback):
                if wish is not None:
                    wish["known_by"] = draw.phone(wish["person"])
        return request

    def _question(self, draw: _Draw, people: list[str]) -> Request:
        person, field = draw.one(people), draw.rng.choice(("phone number", "company", "city"))
        if field == "company":
            person = draw.one([p for p in people if draw.company(p)])
        answers = {"phone number": draw.phone(person), "company": draw.company(person), "city": draw.city(person)}
        return Request("question", {"field": field, "person": person}, answer=answers[field])

    def _note(self, draw: _Draw, people: list[str]) -> Request:
        person = draw.one(people)
        free = [f for f in FACTS if f not in draw.seen(person)]
        first, second = draw.rng.sample(free, 2)
        wish = {"fact": first, "person": person}
        then = {**wish, "fact": second} if draw.rng.random() < CHANGE_OF_MIND else None
        return Request("note", wish, then=then, final=then or wish)

    def _forget(self, draw: _Draw, people: list[str]) -> Request:
        person = draw.one([p for p in people if draw.notes(p)])
        wish = {"fact": draw.one(draw.notes(person)), "person": person}
        return Request("forget", wish, final=wish)

    def _phone(self, draw: _Draw, people: list[str]) -> Request:
        first, second = draw.new_numbers()
        wish = {"person": draw.one(people), "phone": first}
        then = {**wish, "phone": second} if draw.rng.random() < CHANGE_OF_MIND else None
        return Request("phone", wish, then=then, final=then or wish)

    def _hire(self, draw: _Draw, people: list[str]) -> Request:
        wish = {"person": draw.one([p for p in people if not draw.company(p)]), "company": draw.one(draw.companies())}
        if draw.rng.random() < UNAVAILABLE:
            first = {**wish, "company": draw.one([c for c in COMPANIES if c not in draw.companies()])}
            return Request("hire", first, fallback=wish, final=wish, intent="hire_unknown")
        others = [c for c in draw.companies() if c != wish["company"]]
        then = {**wish, "company": draw.one(others)} if draw.rng.random() < CHANGE_OF_MIND else None
        return Request("hire", wish, then=then, final=then or wish)

    def _quit(self, draw: _Draw, people: list[str]) -> Request:
        person = draw.one([p for p in people if draw.company(p)])
        wish = {"person": person, "company": draw.company(person)}
        return Request("quit", wish, final=wish)

    def _remove(self, draw: _Draw, people: list[str]) -> Request:
        wish = {"person": draw.one([p for p in people if not draw.company(p)])}
        return Request("remove", wish, final=wish)

    def _new(self, draw: _Draw) -> Request:
        names = several(draw.split, "person", lambda: _person(draw.rng), 6)
        first, second = draw.new_numbers()
        wish = {"person": draw.one([n for n in names if n not in draw.tables["entities"]]), "phone": first}
        then = {**wish, "phone": second} if draw.rng.random() < CHANGE_OF_MIND else None
        return Request("new", wish, then=then, final=then or wish)

    def _forbidden(self, draw: _Draw) -> Request:
        variant = draw.rng.choice(("remove", "new", "note", "phone"))
        wish: dict[str, Any]
        if variant == "remove":
            wish = {"person": draw.one([p for p in draw.people() if draw.company(p)])}
        elif variant == "new":
            wish = {"person": draw.one(draw.people()), "phone": draw.new_numbers()[0]}
        else:
            person = draw.one([p for p in draw.people() if draw.locked(p)])
            fact = draw.one([f for f in FACTS if f not in draw.seen(person)])
            more = {"fact": fact} if variant == "note" else {"phone": draw.new_numbers()[0]}
            wish = {"person": person, **more}
        return Request(variant, wish, intent="forbidden")

    def gold(self, tables: Mapping[str, Any], requests: Sequence[Request]) -> list[Action]:
        """The calls of an expert, look-ups included."""
        actions: list[Action] = []
        for request in requests:
            wish = request.final or request.wish
            if "person" in request.unknown:
                actions.append(Action("search_nodes", {"query": wish["known_by"]}))
            actions.append(Action("open_nodes", {"names": [wish["person"]]}))
            if request.final is not None:
                seen = tables["entities"].get(wish["person"], {}).get("observations", ())
                old = next((o for o in seen if o.startswith("phone ")), "")
                actions += [Action(*call) for call in writes_of(request.kind, wish, old)]
        return actions


def writes_of(kind: str, wish: Mapping[str, str], old: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls that fulfil a wish. ``old``: the observation with the phone number as it is."""
    person = wish["person"]
    if kind in ("hire", "quit"):
        link = {"from": person, "to": wish["company"], "relationType": "works_at"}
        return [("create_relations" if kind == "hire" else "delete_relations", {"relations": [link]})]
    if kind == "new":
        entity = {"name": person, "entityType": "person", "observations": [f"phone {wish['phone']}"]}
        return [("create_entities", {"entities": [entity]})]
    if kind == "remove":
        return [("delete_entities", {"entityNames": [person]})]
    if kind == "forget":
        return [("delete_observations", {"deletions": [{"entityName": person, "observations": [wish["fact"]]}]})]
    new = wish["fact"] if kind == "note" else f"phone {wish['phone']}"
    add = ("add_observations", {"observations": [{"entityName": person, "contents": [new]}]})
    if kind == "note":
        return [add]
    return [("delete_observations", {"deletions": [{"entityName": person, "observations": [old]}]}), add]


class _Draw:
    """What requests are drawn from: people, and what is known of them."""

    def __init__(self, rng: random.Random, tables: Mapping[str, Any], split: str) -> None:
        self.rng, self.tables, self.split = rng, tables, split

    def one(self, found: Sequence[str]) -> str:
        """One of the list; Infeasible if it is empty."""
        if not found:
            raise Infeasible
        return self.rng.choice(found)

    def people(self) -> list[str]:
        """All people."""
        return [n for n, e in self.tables["entities"].items() if e["entityType"] == "person"]

    def companies(self) -> list[str]:
        """All companies."""
        return [n for n, e in self.tables["entities"].items() if e["entityType"] == "company"]

    def seen(self, person: str) -> list[str]:
        """A person's observations."""
        found: list[str] = self.tables["entities"][person]["observations"]
        return found

    def phone(self, person: str) -> str:
        """A person's number."""
        return next(o for o in self.seen(person) if o.startswith("phone ")).removeprefix("phone ")

    def city(self, person: str) -> str:
        """A person's city."""
        return next(o for o in self.seen(person) if o.startswith("lives in ")).removeprefix("lives in ")

    def notes(self, person: str) -> list[str]:
        """A person's notes."""
        return [o for o in self.seen(person) if o in FACTS]

    def locked(self, person: str) -> bool:
        """Whether a person is not to be changed."""
        return LOCKED in self.seen(person)

    def company(self, person: str) -> str:
        """Where a person works, "" if nowhere."""
        return next((r["to"] for r in self.tables["relations"].values() if r["from"] == person), "")

    def new_numbers(self) -> list[str]:
        """Two numbers that nobody has."""
        taken = {o for e in self.tables["entities"].values() for o in e["observations"]}
        numbers = [f"555-0{n}" for n in self.rng.sample(range(100, 1000), 40)]
        return [n for n in numbers if f"phone {n}" not in taken][:2]


def _person(rng: random.Random) -> str:
    return f"{rng.choice(FIRST_NAMES[:30])} {rng.choice(LAST_NAMES[:30])}"
