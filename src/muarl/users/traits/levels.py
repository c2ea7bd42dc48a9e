"""Traits of users and their levels, from 0 (not at all) to 1; how a language model is told to show them; and a user
with traits as its episode sees it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

from muarl.basics.errors import ConfigError
from muarl.basics.seeds import derive_seed
from muarl.types.chat import Message
from muarl.users.base import AsksAgain, User, UserTurn, recall

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
    where_possible: bool = False
    """Users who cannot have traits are easy, rather than an error."""

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
    def of(cls, levels: Mapping[str, Any]) -> TraitRanges:
        """From levels and ranges by name. ConfigError for an unknown name."""
        names = {field.name for field in fields(cls)}
        if unknown := [name for name in levels if name not in names]:
            raise ConfigError(f"traits: there is no {unknown[0]!r}; there are {', '.join(names)}")
        out: dict[str, Any] = {name: _range(level) for name, level in levels.items() if name in TRAITS}
        if "languages" in levels:
            out["languages"] = tuple(levels["languages"])
        if "where_possible" in levels:
            out["where_possible"] = bool(levels["where_possible"])
        return cls(**out)

    def __bool__(self) -> bool:
        return any(getattr(self, name)[1] > 0 for name in TRAITS)

    def draw(self, seed: int) -> Traits:
        """One user's levels: a function of the seed."""
        rng = random.Random(derive_seed(seed, "traits"))
        levels = {name: rng.uniform(*getattr(self, name)) for name in TRAITS}
        return Traits(**levels, language=rng.choice(self.languages))

    def __str__(self) -> str:
        parts = []
        for name in TRAITS:
            low, high = getattr(self, name)
            if high > 0:
                parts.append(f"{name.replace('_', ' ')} {low:g}" + (f" to {high:g}" if high > low else ""))
        return ", ".join(parts)


def _range(level: Any) -> Range:
    low, high = level if isinstance(level, (tuple, list)) else (level, level)
    return float(low), float(high)


_HOW_OFTEN = ((0.25, "now and then"), (0.5, "in about one message of three"), (0.75, "often"), (1.0, "nearly always"))
_BEHAVIOUR = {
    "withholding": (
        "You are sparing with information, {}: your first message says what you want without the details, you give one "
        "fact at a time though two were asked for, and you ask what a question is for before you answer it."
    ),
    "impatience": (
        "You are in a hurry, and show it {}: few words, remarks about the time. You do not put up with being asked "
        "again what you have told, nor with an agent that does not get on: say once that you will leave, and if "
        "nothing changes, leave with ###STOP### before everything is done."
    ),
    "wandering": (
        "You do not stick to the point, {}: you ask about something else (opening hours, an app, a newsletter) instead "
        "of answering, or when the agent asks you to confirm something you say that you want it otherwise. With your "
        "next message you come back to what the scenario says."
    ),
    "mistakes": (
        "You make mistakes, {}: you give a number, date or option that is slightly wrong (one digit, another choice). "
        "With your next message, or as soon as the agent repeats it to you, you say that it was wrong and give the "
        "right one from the scenario."
    ),
    "foreign_language": (
        "You write {} in {} instead of English, with names, numbers and dates as they are. If the agent says that it "
        "does not understand, or asks you to, you go on in simple English."
    ),
}
_NAMES = {"de": "German", "es": "Spanish", "fr": "French", "zh": "Chinese"}
_END = (
    "None of this changes what you want: what counts in the end is the scenario. Never say yes to something that it "
    "does not want, and leave no mistake uncorrected."
)


_FIRST = "This goes before what the scenario says about your persona."


def behaviour_text(traits: Traits, persona: Sequence[str] = ()) -> str:
    """What a model is told of these levels, to stand behind the scenario; empty where all are 0. ``persona``:
    sentences of a persona (users/strata), which take the place of the scenario's."""
    lines = [f"- {sentence}" for sentence in persona]
    for name, text in _BEHAVIOUR.items():
        level = getattr(traits, name)
        if level > 0:
            often = next(words for most, words in _HOW_OFTEN if level <= most)
            lines.append("- " + text.format(*([often, _NAMES[traits.language]] if "{} in {}" in text else [often])))
    return "\n".join(["# What you are like", *([_FIRST] if persona else []), *lines, _END]) if lines else ""


class Difficult(Protocol):
    """A user that knows whether it gave up, and which values it got wrong."""

    gave_up: bool
    slips: list[str]


class TraitUser:
    """A user with traits, whatever plays it. ``strata``: the tags of its persona (users/strata), if it has one, and
    ``decided``: the traits whose levels follow from it."""

    def __init__(
        self,
        user: User,
        traits: Traits,
        core: Difficult | None = None,
        *,
        strata: Mapping[str, Any] | None = None,
        decided: Collection[str] = (),
    ) -> None:
        self._user, self._traits, self._core = user, traits, core
        self._strata, self._decided = dict(strata or {}), frozenset(decided)

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """What the user says or does next."""
        return await self._user.reply(conversation)

    async def recall(self, conversation: Sequence[Message], said: Message) -> None:
        """Let the user take note of it."""
        await recall(self._user, conversation, said)

    async def again(self, conversation: Sequence[Message], rejected: Message, faults: Sequence[str]) -> UserTurn:
        """What it says in place of ``rejected``, if it can say something else."""
        if isinstance(self._user, AsksAgain):
            return await self._user.again(conversation, rejected, faults)
        return UserTurn(rejected)

    def episode_tags(self) -> Mapping[str, Any]:
        """The levels, but for those that follow from strata, and the values of strata; of agenda users also whether
        they gave up, and what they got wrong and then put right."""
        levels = {name: round(x, 4) for name, x in self._traits.levels().items() if name not in self._decided}
        tags: dict[str, Any] = {**({TAG: levels} if levels else {}), **self._strata}
        if self._core is not None:
            tags[GAVE_UP] = self._core.gave_up
            if self._core.slips:
                tags[SLIPS] = list(self._core.slips)
        return tags
