"""People and numbers that made worlds are full of: names, dates of birth, telephone numbers, ids.

All of it is our own. A tiny world takes everything from the fronts of fixed lists, so that a tiny model's tokenizer can
hold each as one token (recipes/tiny.py).
"""

from __future__ import annotations

import datetime
import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache

FIRST_NAMES = (
    "Mia", "Noor", "Ivan", "Lena", "Omar", "Rosa", "Kofi", "Anna", "Hugo", "Yara", "Theo", "Nina", "Emil", "Zoe",
    "Marc", "Iris", "Paul", "Dina", "Otto", "Vera", "Luca", "Sara", "Adam", "Jana", "Igor", "Tara", "Finn", "Ruth",
    "Amir", "Cleo", "Aisha", "Bjorn", "Carla", "Dmitri", "Elena", "Farid", "Greta", "Hassan", "Imani", "Jonas",
    "Katya", "Liam", "Marisol", "Nadia", "Oscar", "Priya", "Quentin", "Rania", "Sven", "Tomas", "Ursula", "Viktor",
    "Wanda", "Xavier", "Yusuf", "Zelda", "Anton", "Bianca", "Cyrus", "Delia", "Esther", "Felix", "Gwen", "Heidi",
    "Ismael", "Julia", "Klaus", "Lorena", "Mateo", "Noemi", "Olga", "Pablo", "Rohan", "Selma", "Tariq", "Uma",
    "Valeria", "Willem", "Yvonne", "Zahra",
)  # fmt: skip
LAST_NAMES = (
    "Berg", "Okoro", "Silva", "Novak", "Haas", "Mori", "Diaz", "Lund", "Khan", "Weiss", "Costa", "Ito", "Meyer",
    "Popov", "Reyes", "Stone", "Blanc", "Nagy", "Ferri", "Osman", "Quinn", "Rossi", "Sato", "Tran", "Urban", "Vogel",
    "Wolf", "Young", "Zhou", "Adler", "Abara", "Bauer", "Castro", "Dubois", "Eriksen", "Fischer", "Garcia", "Hansen",
    "Ivanov", "Jensen", "Kowalski", "Laurent", "Moreau", "Nakamura", "Ortega", "Petrov", "Rahman", "Schmidt",
    "Tanaka", "Ueda", "Vargas", "Wagner", "Yilmaz", "Zimmer", "Andersen", "Becker", "Conti", "Demir", "Endo", "Fontana",
    "Gupta", "Hoffman", "Iqbal", "Janssen", "Keller", "Lopez", "Mendes", "Nilsson", "Olsen", "Pereira", "Romano",
    "Santos", "Takeda", "Ulrich", "Visser", "Walsh", "Yamada", "Zeller", "Brandt", "Cohen",
)  # fmt: skip
STREETS = (
    "Elm Street", "Canal Road", "Mill Lane", "Harbour View", "Orchard Way", "Station Road", "Garden Row",
    "Bridge Street", "Hill Crescent", "Market Square", "Forest Drive", "Lake Avenue", "Church Walk", "Quarry Road",
    "Meadow Close", "Tower Street", "Windmill Path", "Chestnut Grove", "Ferry Lane", "Castle Terrace",
)  # fmt: skip
POOL = 40
"""How many ids of each sort, telephone numbers and dates of birth a tiny world draws from."""
TINY_NAMES = 30
"""How many first and last names a tiny world draws from."""


@lru_cache(maxsize=256)
def pool(label: str, prefix: str, digits: int) -> tuple[str, ...]:
    """The ids of one sort that tiny worlds draw from."""
    rng = random.Random(f"muarl desk pool {label}")
    return tuple(f"{prefix}{n}" for n in rng.sample(range(10 ** (digits - 1), 10**digits), POOL))


@lru_cache(maxsize=256)
def amounts(low: int, high: int) -> tuple[int, ...]:
    """The amounts of money between two that tiny worlds draw from."""
    return tuple(random.Random(f"amounts {low} {high}").sample(range(low, high), min(POOL, high - low)))


@cache
def birthdates() -> tuple[str, ...]:
    """The dates of birth that tiny worlds draw from."""
    return tuple(_birthdate(random.Random(f"birth {number}")) for number in range(POOL))


def _birthdate(rng: random.Random) -> str:
    return f"{rng.randrange(1941, 2006)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"


def made_id(prefix: str, digits: int, *parts: object) -> str:
    """An id that follows from what it stands for, so that it does not depend on the order in which things are made."""
    number = int(hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest(), 16)
    return f"{prefix}{10 ** (digits - 1) + number % (9 * 10 ** (digits - 1))}"


@dataclass
class Maker:
    """What a service makes its world with: chance, a size, and supplies of names and ids that do not repeat."""

    rng: random.Random
    people: int
    tiny: bool
    """Everything comes from the pools."""
    allow: Callable[[str, str], bool]
    """Which full names the people that tasks are about may have, and which titles and the like they may name."""
    split: str = "train"
    """The split of the tasks that take place in the world."""
    size: str = ""
    """The name of its size."""
    _ids: dict[str, Iterator[str]] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _made: set[tuple[str, str]] = field(default_factory=set)

    def id(self, label: str, prefix: str, digits: int) -> str:
        """A fresh id of one sort."""
        if label not in self._ids:
            self._ids[label] = self._supply(label, prefix, digits)
        return next(self._ids[label])

    def _supply(self, label: str, prefix: str, digits: int) -> Iterator[str]:
        if self.tiny:
            yield from self.rng.sample(pool(label, prefix, digits), POOL)
            raise ValueError(f"a tiny world needs more than {POOL} ids of the sort {label!r}")
        seen: set[int] = set()
        while True:
            number = self.rng.randrange(10 ** (digits - 1), 10**digits)
            if number not in seen:
                seen.add(number)
                yield f"{prefix}{number}"

    def name(self) -> str:
        """A fresh full name that ``allow`` lets pass."""
        count = TINY_NAMES if self.tiny else None
        while True:
            first, last = self.rng.choice(FIRST_NAMES[:count]), self.rng.choice(LAST_NAMES[:count])
            if f"{first} {last}" not in self._names and self.allow(first, last):
                self._names.add(f"{first} {last}")
                return f"{first} {last}"

    def some(self, label: str, make: Callable[[], str], count: int) -> list[str]:
        """``count`` different titles, file names or whatever ``make`` makes, of which each belongs to one split and has
        not been given before; a few less where there are hardly as many."""
        titles: list[str] = []
        for _ in range(100 * count):
            if len(titles) == count:
                break
            made = make()
            if (label, made) not in self._made and self.allow(label, made):
                self._made.add((label, made))
                titles.append(made)
        return titles

    def phone(self) -> str:
        """A telephone number, such as 555-0134-27."""
        if self.tiny:
            return self.id("phone", "555-", 4)
        return f"{self.rng.randrange(200, 999)}-555-{self.rng.randrange(100, 9999):04d}"

    def birthdate(self) -> str:
        """A date of birth of a grown-up."""
        return birthdates()[self.rng.randrange(POOL)] if self.tiny else _birthdate(self.rng)

    def street(self) -> str:
        """A street and number."""
        number = self.rng.randrange(1, 4) if self.tiny else self.rng.randrange(1, 240)
        return f"{number} {self.rng.choice(STREETS[: 6 if self.tiny else None])}"

    def amount(self, low: int, high: int) -> float:
        """An amount of money."""
        if self.tiny:
            return float(self.rng.choice(amounts(low, high)))
        return round(self.rng.uniform(low, high), 2)

    def date(self, today: str, first: int, last: int) -> str:
        """A date between so many days after ``today`` (negative: before it)."""
        return shift(today, self.rng.randint(first, last))

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.rng.random() < share


def shift(day: str, days: int) -> str:
    """The date so many days later."""
    return (datetime.date.fromisoformat(day) + datetime.timedelta(days=days)).isoformat()
