"""Traits of users and their levels, from 0 (not at all) to 1."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.basics.seeds import derive_seed

TRAITS = ("withholding", "impatience", "wandering", "mistakes", "foreign_language")
"""The traits by name, as settings and tags have them."""
LANGUAGES = ("de", "es", "fr", "zh")
"""The languages that users may write instead of English."""

TAG = "traits"
"""The episodes' tag with the levels of their user's traits."""
GAVE_UP = "user_gave_up"
"""The episodes' tag that says whether a user with traits left before everything was settled, out of patience."""
SLIPS = "user_slips"
"""The episodes' tag with the values that such a user got wrong at first, and then put right."""

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Traits:
    """One user's levels, and the language that it writes besides English."""

    withholding: float = 0.0
    impatience: float = 0.0
    wandering: float = 0.0
    mistakes: float = 0.0
    foreign_language: float = 0.0
    language: str = "de"

    def levels(self) -> dict[str, float]:
        """The level of each trait."""
        return {name: getattr(self, name) for name in TRAITS}


@dataclass(frozen=True, slots=True)
class TraitRanges:
    """Levels that users are drawn from: each trait evenly from its range, whose ends may be the same.

    ConfigError for an end outside of 0 to 1, a range whose ends are in the wrong order, or an unknown language.
    """

    withholding: Range = (0.0, 0.0)
    impatience: Range = (0.0, 0.0)
    wandering: Range = (0.0, 0.0)
    mistakes: Range = (0.0, 0.0)
    foreign_language: Range = (0.0, 0.0)
    languages: tuple[str, ...] = LANGUAGES

    def __post_init__(self) -> None:
        for name in TRAITS:
            low, high = getattr(self, name)
            if not 0 <= low <= high <= 1:
                raise ConfigError(f"traits.{name}: give a level from 0 to 1, or [low, high], not {[low, high]}")
        if unknown := [one for one in self.languages if one not in LANGUAGES]:
            raise ConfigError(f"traits.languages: there is no {unknown[0]!r}; there are {', '.join(LANGUAGES)}")
        if not self.languages:
            raise ConfigError("traits.languages: name at least one")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> TraitRanges:
        """From levels and ranges by name. ConfigError for an unknown name."""
        known = {field.name for field in fields(cls)}
        if unknown := [name for name in given if name not in known]:
            raise ConfigError(f"traits: there is no {unknown[0]!r}; there are {', '.join(TRAITS)}, and languages")
        out: dict[str, Any] = {name: _range(level) for name, level in given.items() if name != "languages"}
        if "languages" in given:
            out["languages"] = tuple(given["languages"])
        return cls(**out)

    def __bool__(self) -> bool:
        return any(getattr(self, name)[1] > 0 for name in TRAITS)

    def draw(self, seed: int) -> Traits:
        """One user's levels: a function of the seed."""
        rng = random.Random(derive_seed(seed, "traits"))
        levels = {name: rng.uniform(*getattr(self, name)) for name in TRAITS}
        return Traits(**levels, language=rng.choice(self.languages))

    def __str__(self) -> str:
        told = []
        for name in TRAITS:
            low, high = getattr(self, name)
            if high > 0:
                told.append(f"{name.replace('_', ' ')} {low:g}" + (f" to {high:g}" if high > low else ""))
        return ", ".join(told)


def _range(level: Any) -> Range:
    low, high = level if isinstance(level, (tuple, list)) else (level, level)
    return float(low), float(high)
