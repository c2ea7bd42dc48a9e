"""What ACEBench's scenario classes share: state in attributes, tools as methods, one object per class and episode.

ACEBench Agent (ACEBench/ACEBench, MIT licence). Class, method, argument and attribute names, results and texts are
upstream's, since they are what models see and what is scored. Nothing is shared between two objects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from muarl.domains.tooling import tool
from muarl_worlds.acebench.texts import TEXTS

__all__ = ["INTEGER_KEYS", "Language", "AceScenario", "initial", "plain_copy", "tool"]

Language = Literal["en", "zh"]

INTEGER_KEYS = ("inbox", "reminder_list")
"""Attributes whose keys are whole numbers, which JSON writes as text."""


@cache
def initial(language: Language) -> Mapping[str, Mapping[str, Any]]:
    """The state that every episode begins with, by class and attribute (never changed). ``world_LANGUAGE.json``."""
    text = (Path(__file__).parent / f"world_{language}.json").read_text(encoding="utf-8")
    return {name: {a: from_json(a, v) for a, v in state.items()} for name, state in json.loads(text).items()}


def from_json(attribute: str, value: Any) -> Any:
    """An attribute's value as classes hold it, from JSON: the keys of inbox and reminder_list become numbers."""
    if attribute in INTEGER_KEYS and isinstance(value, Mapping):
        return {int(k): plain_copy(v) for k, v in value.items()}
    return plain_copy(value)


def plain_copy(value: Any) -> Any:
    """A deep copy of dicts and lists; anything else is never changed by a class, and is shared."""
    if isinstance(value, dict):
        copied = dict(value)
        for key, inner in copied.items():  # few of many fields are nested: copied whole first, which is fast
            if isinstance(inner, (dict, list)):
                copied[key] = plain_copy(inner)
        return copied
    if isinstance(value, list):
        return [plain_copy(v) if isinstance(v, (dict, list)) else v for v in value]
    return value


class AceScenario:
    """One of ACEBench's scenario classes.

    ``saved``: the attributes that are scored. ``language`` decides the initial world and the texts. ``state``: values
    of attributes that differ from the initial world (JSON). ``_fixed``: fix what is plainly wrong upstream, for
    training; off, everything is as upstream does it.
    """

    language: ClassVar[Language] = "en"
    saved: ClassVar[tuple[str, ...]] = ()

    _fixed = False

    def __init__(self) -> None:
        """In the initial world."""

    def load(self, config: Mapping[str, Any]) -> None:
        """Take over a scenario's settings; whatever they leave out is upstream's default. ``config`` is not kept."""

    def put(self, state: Mapping[str, Any]) -> None:
        """Replace attributes by values of one's own (JSON), for worlds other than upstream's."""
        for attribute, value in state.items():
            setattr(self, attribute, from_json(attribute, value))

    def saved_state(self) -> dict[str, Any]:
        """The attributes that are scored, live, in the order in which they were first set."""
        return {name: value for name, value in vars(self).items() if name in self.saved}

    def state(self) -> dict[str, Any]:
        """All attributes, live."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def copy(self) -> Self:
        """Another object in the same state that shares nothing which can change."""
        twin = object.__new__(type(self))
        twin.__dict__.update({name: plain_copy(value) for name, value in vars(self).items()})
        return twin

    def _initial(self, attribute: str) -> Any:
        """A copy of an attribute's value in the initial world."""
        return plain_copy(initial(self.language)[type(self).__name__][attribute])

    def _say(self, key: str, *values: Any) -> str:
        """A text of the class's language, with values filled in as an f-string would."""
        return TEXTS[self.language][key].format(*values)

    def _no(self, key: str, *values: Any) -> dict[str, Any]:
        """A refusal."""
        return {"status": False, "message": self._say(key, *values)}

    def _yes(self, key: str, *values: Any) -> dict[str, Any]:
        """A success."""
        return {"status": True, "message": self._say(key, *values)}
