"""What tasks about contacts begin with: people, companies and notes from chance. Full names differ by split."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.people import Maker

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
PHONE, CITY, WORKS = "phone ", "lives in ", "works_at"
FRESH = 4
"""How many names, and numbers, there are that nobody has yet."""


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """People with a number, a city and notes; companies, and who works where."""
    rng, tiny = make.rng, make.tiny
    companies = rng.sample(COMPANIES, 3 if tiny else rng.randint(4, 8))
    numbers = [f"555-0{n}" for n in rng.sample(range(100, 160 if tiny else 1000), 16 + FRESH)]
    entities: dict[str, Any] = {}
    relations: dict[str, Any] = {}
    for number in numbers[: 5 if tiny else rng.randint(8, 16)]:
        name = make.name()
        notes = rng.sample(FACTS, rng.randint(0, 2 if tiny else 4)) + ([LOCKED] if rng.random() < 0.15 else [])
        seen = [f"{PHONE}{number}", f"{CITY}{rng.choice(CITIES)}", *notes]
        entities[name] = {"entityType": "person", "observations": seen}
        if rng.random() < 0.5:
            link = {"from": name, "to": rng.choice(companies), "relationType": WORKS}
            relations[str(len(relations) + 1)] = link
    entities |= {company: {"entityType": "company", "observations": []} for company in companies}
    return {
        "entities": entities,
        "relations": relations,
        "strangers": {name: {"name": name} for name in (make.name() for _ in range(FRESH))},
        "free_numbers": {number: {"number": number} for number in numbers[-FRESH:]},
    }
