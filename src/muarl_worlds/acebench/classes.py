"""The scenario classes by language and name."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from muarl_worlds.acebench import chinese, food, phone, travel
from muarl_worlds.acebench.scenario import AceScenario, Language

CLASSES: Mapping[Language, Mapping[str, type[AceScenario]]] = {
    "en": {
        c.__name__: c for c in (phone.BaseApi, phone.MessageApi, phone.ReminderApi, food.FoodPlatform, travel.Travel)
    },
    "zh": {
        c.__name__: c
        for c in (
            chinese.BaseApi,
            chinese.MessageApi,
            chinese.ReminderApi,
            chinese.FoodPlatform,
            chinese.Travel,
        )
    },
}
"""BaseApi, MessageApi, ReminderApi, FoodPlatform and Travel, in this order, for each language."""


def class_named(name: str) -> str | None:
    """The class that a name means, of which one or two letters may be wrong ("Reminderpi", "Baspi"); None if none."""
    plain = {known.lower(): known for known in CLASSES["en"]}
    found = get_close_matches(name.lower(), plain, n=1, cutoff=0.8)
    return plain[found[0]] if found else None
