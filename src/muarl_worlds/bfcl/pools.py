"""The names, texts and numbers that generated tasks are made of. Tiny worlds take the first few of each."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

from muarl_worlds.bfcl.parts import facts
from muarl_worlds.bfcl.routes import NEAREST

T = TypeVar("T")

FOLDERS = (
    "barn", "harbor", "meadow", "quarry", "cellar", "attic", "orchard", "stable", "garden", "cabin", "tower", "bridge",
    "canyon", "delta", "forge", "glacier", "hangar", "island", "kiln", "lagoon", "mill", "nursery", "observatory",
    "pantry", "reef", "sawmill", "terrace", "valley", "wharf", "yard",
)  # fmt: skip
STEMS = (
    "ledger", "recipe", "tides", "harvest", "menu", "lyrics", "roster", "receipt", "itinerary", "blueprint",
    "inventory", "minutes", "telemetry", "survey", "playlist", "letter", "contract", "syllabus", "budget_q3",
    "checklist", "memo", "transcript", "catalog", "manifest", "glossary", "timetable", "logbook", "outline", "appendix",
    "errata",
)  # fmt: skip
ENDINGS = ("txt", "csv", "md", "json", "log")
FILES = tuple(f"{stem}.{ENDINGS[n % len(ENDINGS)]}" for n, stem in enumerate(STEMS))
NEW_FILES = tuple(f"{stem}_{word}.txt" for word in ("copy", "spare", "v2") for stem in STEMS)
NEW_FOLDERS = (
    "safe", "vault", "shelf", "drawer", "locker", "basket", "crate", "trunk", "cabinet", "folder_a", "folder_b",
    "bundle", "stash", "storage", "chest", "bin", "keepers", "outbox", "intake", "sorted",
)  # fmt: skip

PEOPLE = (
    "Anouk", "Bram", "Chidi", "Dalia", "Eamon", "Farah", "Goran", "Hana", "Idris", "Jorun", "Kofi", "Leila", "Mirek",
    "Nadia", "Oskar", "Priya", "Quinn", "Ravi", "Selma", "Tomas", "Uma", "Viktor", "Wanda", "Xenia", "Yusuf", "Zora",
)  # fmt: skip
SURNAMES = ("Abebe", "Brandt", "Castell", "Dahl", "Eklund", "Ferrante", "Grau", "Holm", "Ito", "Juhasz", "Kwan", "Lund")
HANDLES = (
    "tide_watcher", "quiet_baker", "hill_runner", "night_gardener", "paper_boats", "slow_kettle", "north_window",
    "copper_fox", "lamp_maker", "river_clerk", "moss_and_stone", "early_ferry", "blue_tram", "old_compass",
)  # fmt: skip
TEXTS = (
    "see you at noon", "the keys are on the desk", "dinner is at seven", "the train is late", "call me tonight",
    "the order has arrived", "we meet on Monday", "the printer is fixed", "bring the blue folder", "lunch is on me",
    "the room is booked", "the draft is ready", "good luck tomorrow", "the parcel is here", "practice starts at six",
    "the gate is open",
)  # fmt: skip
SUBJECTS = ("harvest", "ferry", "exhibition", "rehearsal", "workshop", "inspection", "regatta", "auction", "seminar",
            "delivery", "renovation", "concert", "festival", "audit", "excursion", "tournament")  # fmt: skip
PREDICATES = (
    "starts at nine on Friday", "has moved to the small hall", "needs two more helpers", "is ahead of schedule",
    "was a great success", "is cancelled because of the storm", "will be filmed this year", "is open to everyone",
    "costs less than we feared", "ends earlier than planned", "has a new organizer", "is waiting for your signature",
)  # fmt: skip
TAGS = ("#slowmorning", "#rivertown", "#openhouse", "#woodwork", "#nightmarket", "#firstsnow", "#longwalk", "#homemade")
TITLES = (
    "Broken heater", "Lost badge", "Noisy fan", "Flickering lamp", "Slow network", "Jammed door", "Leaking tap",
    "Empty toner", "Cracked screen", "Missing invoice", "Wrong charge", "Blocked account", "Frozen till",
    "Dead battery",
)  # fmt: skip
RESOLUTIONS = (
    "part replaced", "restarted", "cable changed", "refund sent", "settings corrected", "cleaned and tested",
    "new badge issued", "fixed on site",
)  # fmt: skip
PASSWORDS = ("pine-42-lake", "Kestrel!77", "oat_milk_9", "Tango-Brick-5", "w1ntercoat", "seven.Spoons", "Rook+Bishop3")

SYMBOLS: Mapping[str, str] = {n: s for n, s in facts("trading")["symbols"].items() if s not in ("AMZN", "GORI")}
"""The companies whose stock can be traded, and its symbols."""
COMPANIES = tuple(SYMBOLS)
PRICES = tuple(f"{20 + 13 * n}.{11 + 10 * (n % 9) + n % 8}" for n in range(30))
AMOUNTS = ("15", "20", "25", "30", "40", "50", "60", "75", "80", "90")

CITIES = tuple(NEAREST)
"""The cities that TravelAPI knows; not every pair has a flight."""
CLASSES = ("economy", "business", "first")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
CURRENCIES = {"RMB": "renminbi", "EUR": "euros", "JPY": "yen", "GBP": "pounds", "CAD": "Canadian dollars"}
INSURANCES = ("comprehensive", "basic", "cancellation", "medical")
STREETS = ("14 Anchor Lane", "220 Birch Row", "9 Candle Street", "31 Dovecote Hill", "77 Elder Court", "5 Falcon Way")

ORDER_IDS = tuple(str(30117 + 61 * n) for n in range(30))
TICKET_IDS = tuple(str(4103 + 37 * n) for n in range(30))
POST_IDS = tuple(str(211 + 17 * n) for n in range(24))
USER_IDS = tuple(f"USR{n:03d}" for n in range(101, 140))


def sentence(rng: random.Random) -> str:
    """A short statement such as somebody sends, posts or writes down. It holds no quotation mark and no comma."""
    return f"The {rng.choice(SUBJECTS)} {rng.choice(PREDICATES)}"


def some(rng: random.Random, pool: Sequence[T], count: int) -> list[T]:
    """``count`` different ones of a pool, in any order; all of them where there are fewer."""
    return rng.sample(list(pool), min(count, len(pool)))
