"""The strata that come with muarl (``panel.yaml``), and the personas that are drawn from them."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from muarl.accounts.strata import STRATA
from muarl.basics.errors import ConfigError
from muarl.basics.seeds import derive_seed
from muarl.basics.untrusted import read_yaml
from muarl.users.agenda_user import PATIENCE
from muarl.users.traits.levels import LANGUAGES, TRAITS, Traits

ALL = "all"
"""In place of a stratum's name: every stratum that does something to the kind of user."""

UserKind = Literal["agenda", "llm"]


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a stratum, and what it does (``panel.yaml`` describes the fields)."""

    name: str
    weight: float
    traits: Mapping[str, float] = field(default_factory=dict)
    language: str | None = None
    persona: str | None = None
    told: str = ""

    def changes(self, kind: UserKind) -> bool:
        """Whether it decides anything about users of this kind."""
        if kind == "agenda":
            return bool(self.traits) or self.persona is not None
        return bool(self.told) or any(self.traits.values())


@dataclass(frozen=True, slots=True)
class Stratum:
    """One respect in which users differ. ConfigError if its values are not what ``panel.yaml`` says of them."""

    name: str
    about: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        where = f"stratum {self.name}"
        if not sum(v.weight for v in self.values) > 0:
            raise ConfigError(f"{where}: needs a value with a weight above 0")
        for value in self.values:
            if not (value.weight >= 0 and math.isfinite(value.weight)):
                raise ConfigError(f"{where}: {value.name}: weight must be a number from 0, not {value.weight}")
            if unknown := [t for t, level in value.traits.items() if t not in TRAITS or not 0 <= level <= 1]:
                raise ConfigError(f"{where}: {value.name}: {unknown[0]} must be a trait, with a level from 0 to 1")
            if value.traits.keys() != self.values[0].traits.keys():
                raise ConfigError(f"{where}: {value.name} must set the same traits as {self.values[0].name}")
            if (value.persona is None) != (self.values[0].persona is None) or value.persona not in {None, *PATIENCE}:
                raise ConfigError(f"{where}: {value.name}: persona must be one of {', '.join(PATIENCE)}, in all values")
            if value.language not in {None, *LANGUAGES}:
                raise ConfigError(f"{where}: {value.name}: language must be one of {', '.join(LANGUAGES)}")
            if not value.changes("llm"):
                raise ConfigError(f"{where}: {value.name} does nothing to language models: write what they are told")

    @property
    def sets(self) -> frozenset[str]:
        """The traits that it decides, and "persona" if it decides that."""
        first = self.values[0]
        return frozenset(first.traits) | ({"persona"} if first.persona is not None else frozenset())

    def changes(self, kind: UserKind) -> bool:
        """Whether it decides anything about users of this kind."""
        return all(value.changes(kind) for value in self.values)

    def weighted(self, weights: Mapping[str, float]) -> Stratum:
        """With these weights, and those values alone. ConfigError for a value that there is not."""
        by_name = {value.name: value for value in self.values}
        if unknown := [name for name in weights if name not in by_name]:
            raise ConfigError(
                f"user.strata.{self.name}: there is no value {unknown[0]!r}; there are {', '.join(by_name)}"
            )
        if not all(w > 0 and math.isfinite(w) for w in weights.values()):
            raise ConfigError(f"user.strata.{self.name}: give values a weight above 0, and leave the others out")
        return replace(self, values=tuple(replace(v, weight=weights[v.name]) for v in self.values if v.name in weights))


def read_panel(path: Path) -> dict[str, Stratum]:
    """The strata in a file such as ``panel.yaml``, by name. DataError, or ConfigError, names what is wrong with it."""
    out: dict[str, Stratum] = {}
    owners: dict[str, str] = {}
    for name, stratum in read_yaml(path).items():
        values = tuple(Value(name=value, **fields) for value, fields in stratum["values"].items())
        out[name] = Stratum(name, stratum["about"], values)
        for trait in out[name].sets:
            if (other := owners.setdefault(trait, name)) != name:
                raise ConfigError(f"{path.name}: {other} and {name} both set {trait}")
    return out


@cache
def panel() -> Mapping[str, Stratum]:
    """The strata that come with muarl."""
    return read_panel(Path(__file__).with_name("panel.yaml"))


@dataclass(frozen=True, slots=True)
class Persona:
    """One user's value of each stratum, and what they come to."""

    values: Mapping[str, str]
    traits: Mapping[str, float]
    """Levels of the traits that strata decide."""
    language: str | None
    persona: str | None
    """How an agenda user speaks; None: as its task has it."""
    sentences: tuple[str, ...]
    """What a language model is told besides the levels."""

    def on(self, traits: Traits | None) -> Traits:
        """A user's traits with this persona's in place of them. None: a user without any."""
        base = Traits() if traits is None else traits
        changed: dict[str, Any] = dict(self.traits)
        if self.language is not None:
            changed["language"] = self.language
        return replace(base, **changed)

    def tags(self) -> dict[str, Any]:
        """What episodes say of it: its values, and the persona that it plays in place of the task's."""
        return {STRATA: dict(self.values)} | ({} if self.persona is None else {"persona": self.persona})


@dataclass(frozen=True, slots=True)
class Strata:
    """The strata of one kind of users; each value is drawn by itself, so that a further stratum changes no other."""

    strata: tuple[Stratum, ...] = ()
    named: str = ""
    """What a report calls them."""

    @classmethod
    def of(
        cls,
        weights_by_name: Mapping[str, Mapping[str, float]],
        kind: UserKind,
        *,
        taken: Sequence[str] = (),
        from_panel: Mapping[str, Stratum] | None = None,
    ) -> Strata:
        """The strata that the configuration names, with weights by value (none: the panel's); "all": every stratum that
        does something to users of this kind.

        ``taken``: traits, and "persona", that the configuration decides otherwise. ConfigError for a stratum that
        there is not, that does nothing to users of this kind, or that decides what is taken.
        """
        strata = panel() if from_panel is None else from_panel
        if ALL in weights_by_name:
            every: dict[str, Mapping[str, float]] = {
                name: {} for name, stratum in strata.items() if stratum.changes(kind)
            }
            weights_by_name = {**every, **{name: weights for name, weights in weights_by_name.items() if name != ALL}}
        chosen, names = [], []
        for name, weights in weights_by_name.items():
            if name not in strata:
                raise ConfigError(f"user.strata: there is no stratum {name!r}; use {ALL}, or {', '.join(strata)}")
            stratum = strata[name].weighted(weights) if weights else strata[name]
            if not stratum.changes(kind):
                raise ConfigError(
                    f"user.strata: {name} does nothing to {kind} users; leave it out, or let a language model play the "
                    "user (user.kind=llm)"
                )
            if twice := sorted(stratum.sets & set(taken)):
                setting = "user.persona" if twice[0] == "persona" else f"user.traits.{twice[0]}"
                raise ConfigError(f"user.strata: {name} and {setting} decide the same; leave one of them out")
            chosen.append(stratum)
            weight_text = ", ".join(f"{value} {weight:g}" for value, weight in weights.items())
            names.append(f"{name} ({weight_text})" if weight_text else name)
        return cls(tuple(chosen), f"strata {', '.join(names)}" if names else "")

    def __bool__(self) -> bool:
        return bool(self.strata)

    def __str__(self) -> str:
        return self.named

    def draw(self, seed: int) -> Persona:
        """One user's persona: a function of the seed."""
        drawn: dict[str, Value] = {}
        for stratum in self.strata:
            rng = random.Random(derive_seed(seed, "strata", stratum.name))
            drawn[stratum.name] = rng.choices(stratum.values, [v.weight for v in stratum.values])[0]
        values = list(drawn.values())
        return Persona(
            {name: value.name for name, value in drawn.items()},
            {trait: level for value in values for trait, level in value.traits.items()},
            next((v.language for v in values if v.language is not None), None),
            next((v.persona for v in values if v.persona is not None), None),
            tuple(v.told for v in values if v.told),
        )
