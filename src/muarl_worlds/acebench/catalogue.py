"""What generated phones and travel desks are made of: people, dishes, messages, reminders, cities, flights, days.

All of it is our own; nothing of it stands in ACEBench's worlds. The lists are ordered: a tiny world uses the front of
each list, so that a tiny model's tokenizer can hold every word and id of it as one token (recipes/tiny.py).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from muarl_worlds.acebench.travel import NOW

PHONE_NOW = "2024-06-12 09:00"
"""The time on generated phones."""
TODAY = f"{NOW:%Y-%m-%d}"
"""The day at generated travel desks, which is the benchmark's own (it decides on refunds)."""

OCCUPATIONS = ("Baker", "Nurse", "Architect", "Gardener", "Translator", "Electrician", "Librarian", "Pharmacist")

MENUS: Mapping[str, Sequence[str]] = {
    "Golden Wok": ("fried rice", "spring rolls", "beef noodles", "sweet and sour pork"),
    "Pasta Corner": ("lasagne", "ravioli", "minestrone", "spaghetti with clams"),
    "Green Bowl": ("lentil salad", "falafel", "pumpkin soup", "quinoa bowl"),
    "Taco Stand": ("chicken tacos", "nachos", "burrito", "corn soup"),
    "Curry Leaf": ("lamb curry", "samosas", "lemon rice", "paneer wrap"),
    "Burger Barn": ("cheeseburger", "onion rings", "veggie burger", "milkshake"),
    "Sushi Pier": ("salmon rolls", "miso soup", "tempura", "eel rice"),
    "Old Bakery": ("apple pie", "cheese scones", "rye bread", "poppy cake"),
    "Soup Kitchen": ("goulash", "fish chowder", "leek soup", "chilli"),
    "Kebab Yard": ("doner plate", "shish kebab", "baklava", "flatbread"),
}
"""Merchants and what they sell."""
TINY_MERCHANTS, TINY_DISHES = 8, 3
SERVICES = ("Restaurant", "Takeaway", "Canteen", "Bakery")

MESSAGES = (
    "I will be late today", "Dinner is at seven", "The keys are under the mat", "Please call me back",
    "The train leaves at nine", "Thank you for the flowers", "The meeting is in room four", "I have found your scarf",
    "The concert was lovely", "Can you water the plants", "My new address is on the card", "The parcel has arrived",
    "Happy birthday", "See you on Sunday", "The car is ready", "Bring your swimsuit", "The exam went well",
    "I am at the station", "Your book is at the desk", "We have won the match",
)  # fmt: skip
TINY_MESSAGES = 20
THINGS = (
    "the garden plan", "our trip", "the rehearsal", "the budget", "the school play", "the new kitchen", "the interview",
    "the book club", "the barbecue", "the repair", "the photo album", "the survey", "the committee", "the boat",
    "the wedding list", "the shelf", "the recipe", "the lecture", "the bicycle", "the invoice",
)  # fmt: skip
_LINES = (
    "Let us talk about {} on {}", "I have news about {} and more on {}", "Do not forget {} on {}",
    "Could you bring your notes on {} this {}", "We decided on {} last {}", "Who looks after {} on {}",
    "I cannot make it to {} on {}", "There was trouble with {} on {}",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TOTALS = ("The food costs () yuan", "I paid () yuan for the food", "The order came to () yuan")
"""Texts in which the brackets stand for the total of an order."""
ASKED = "Please order {} x {} from {} for me"
TASKS = "Order {} x {} from {}. Then send {} the message '{}' with the total in the brackets."
"""A message that asks for food, and a reminder that is a list of things to do."""

TITLES = (
    "Dentist", "Rent", "Piano lesson", "Library", "Haircut", "Passport", "Car wash", "Vaccination", "Choir", "Laundry",
    "Tax form", "Vet", "Swimming", "Recycling", "Chess club", "Oil change", "Piano tuner", "Blood test",
    "Parents evening", "Window cleaner", "Fire drill", "Book return", "Film night", "Garden work",
)  # fmt: skip
TINY_TITLES = 16
NOTES = (
    "Bring the papers", "Pay at the desk", "Take the small bag", "Ask for Miss Holm", "It is on the third floor",
    "Wear old shoes", "Leave at half past", "Take the blue folder", "Ring twice", "Bring cash", "The gate is open",
    "Take the bus", "Bring the old one back", "Wait in the hall", "Fill in the form", "Take a towel",
)  # fmt: skip
"""What reminders say."""
TIMES = tuple(f"2024-06-{day} {clock}" for day in range(13, 29) for clock in ("08:30", "12:00", "17:15", "19:45"))
TINY_TIMES = 24

CITIES = (
    "Oslo", "Rome", "Lima", "Cairo", "Perth", "Seoul", "Quito", "Milan", "Delhi", "Tunis", "Sofia", "Accra", "Porto",
    "Malmo", "Izmir", "Dakar", "Turin", "Osaka", "Minsk", "Basel", "Split", "Bergen", "Havana", "Nairobi",
)  # fmt: skip
TINY_CITIES = 16
DAYS_AHEAD = tuple(f"2024-07-{day}" for day in range(17, 31))
"""Days of flights that can be cancelled free of charge."""
DAYS_OVER = tuple(f"2024-07-{day:02d}" for day in range(2, 12))
CLOCKS = (("06:30:00", "08:45:00"), ("10:15:00", "12:30:00"), ("13:40:00", "15:55:00"), ("18:05:00", "20:20:00"))
"""Departure and arrival."""
CABINS = ("Economy Class", "Business Class")
PAYMENTS = ("cash", "bank")
MEMBERSHIPS = ("regular", "silver", "gold")
REASONS = ("my plans have changed", "I am ill", "the weather is bad")
AIRLINE_REASON = "the airline has cancelled the flight"
"""Why people cancel, in their words."""

TOPICS_PHONE = ("a cracked screen", "a new phone plan", "a stolen phone", "a job in your company")
TOPICS_TRAVEL = ("a lost suitcase", "a hotel room", "a visa", "a job as a pilot")
"""What no tool can help with."""


def _sample(count: int, low: int, high: int, label: str) -> tuple[int, ...]:
    return tuple(sorted(random.Random(f"muarl acebench pool {label}").sample(range(low, high), count)))


_WORDS = ("tulip", "maple", "cobalt", "harbour", "lantern", "meadow", "pepper", "saddle", "velvet", "walnut")
PASSWORDS = tuple(f"{_WORDS[n % 10]}{number}" for n, number in enumerate(_sample(30, 100, 999, "passwords")))
"""Those of tiny worlds."""
DISH_PRICES = tuple(float(n) for n in _sample(24, 9, 70, "dishes"))
FARES: Mapping[str, tuple[int, ...]] = {
    "Economy Class": tuple(10 * n for n in _sample(20, 60, 140, "economy")),
    "Business Class": tuple(10 * n for n in _sample(20, 180, 390, "business")),
}
"""Yuan; no fare is in two cabins."""


def password(rng: random.Random, *, tiny: bool) -> str:
    """Somebody's password."""
    return rng.choice(PASSWORDS) if tiny else f"{rng.choice(_WORDS)}{rng.randint(100, 9999)}"


def messages(rng: random.Random, count: int, *, tiny: bool) -> list[str]:
    """The texts of so many messages, about different things: from the pool in tiny worlds, else of some thousand."""
    if tiny:
        return rng.sample(MESSAGES[:TINY_MESSAGES], count)
    things = rng.sample(THINGS, count)
    return [rng.choice(_LINES).format(thing, rng.choice(_WEEKDAYS)) for thing in things]
