"""How often a world's tools fail, and in which ways: declared here, done in ``layer``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from muarl.basics.errors import ConfigError

KINDS: Mapping[str, str] = {
    "latency": "the answer is slow; a call that takes longer than the limit times out, and is not carried out",
    "outage": "a tool, or all of them, is unavailable for some calls",
    "timeout_after_write": "the write is carried out, and answered by a time-out",
    "partial": "a list in the answer is cut",
    "undocumented_error": "an error that no document knows, and the call is not carried out",
    "renamed_field": "a field of a tool's answers has another name",
    "permission": "the permission to call a tool is withdrawn, for some calls or for good",
    "stale_read": "a read shows the state before the last write",
}
"""The kinds of faults by name, as settings and tags have them, and what each is."""

BY_TOOL = frozenset({"renamed_field", "permission"})
"""Kinds that are drawn once for each tool and episode, when the tool is first called; the others are for each call."""


@dataclass(frozen=True, slots=True)
class FaultRates:
    """The probability of each kind of fault, and what it is like where it happens.

    Subject to faults are the agent's calls of tools that read or write; handing over to a person always works, and so
    do tools that do neither, and the user's own.

    ConfigError for a probability outside of 0 to 1 and for a range that is none.
    """

    latency: float = 0.0
    """Of each call."""

    outage: float = 0.0
    """Of each call, that an outage begins with it."""

    timeout_after_write: float = 0.0
    """Of each call that has written."""

    partial: float = 0.0
    """Of each read whose answer has a list of two entries or more."""

    undocumented_error: float = 0.0
    """Of each call."""

    renamed_field: float = 0.0
    """Of each tool that reads, in an episode."""

    permission: float = 0.0
    """Of each tool, in an episode."""

    stale_read: float = 0.0
    """Of each read after a write, unless nobody can know whether that was carried out: looking is always right."""

    latency_seconds: tuple[float, float] = (1.0, 40.0)
    """The shortest and the longest time of a slow call, in simulated seconds; drawn evenly."""

    timeout: float = 30.0
    """The simulated seconds after which a call times out."""

    outage_calls: tuple[int, int] = (1, 3)
    """How many calls meet an outage, the one that it begins with included."""

    outage_everything: float = 0.3
    """Share of the outages that all tools have."""

    partial_marked: float = 1.0
    """Share of the cut lists that say so."""

    permission_calls: tuple[int, int] = (1, 3)
    """How many calls of the tool are refused, where its permission comes back."""

    permission_for_good: float = 0.0
    """Share of the withdrawn permissions that do not come back."""

    tools: tuple[str, ...] = ()
    """Only calls of these tools are subject to faults; none: of all."""

    def __post_init__(self) -> None:
        for name in (*KINDS, "outage_everything", "partial_marked", "permission_for_good"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"world.faults.{name}: give a probability from 0 to 1, not {getattr(self, name)}")
        for name, least in (("latency_seconds", 0), ("outage_calls", 1), ("permission_calls", 1)):
            low, high = getattr(self, name)
            if not least <= low <= high:
                raise ConfigError(f"world.faults.{name}: give [low, high] from {least} on, not {[low, high]}")
        if self.timeout <= 0:
            raise ConfigError(f"world.faults.timeout: give seconds above 0, not {self.timeout}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> FaultRates:
        """From plain values by name. ConfigError for an unknown name."""
        names = {field.name for field in fields(cls)}
        if unknown := [name for name in values if name not in names]:
            raise ConfigError(f"world.faults: there is no {unknown[0]!r}; there are {', '.join(sorted(names))}")
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**plain)

    def __bool__(self) -> bool:
        return any(getattr(self, name) > 0 for name in KINDS)

    def check_tools(self, tool_names: Iterable[str]) -> None:
        """ConfigError for one of ``tools`` that there is not."""
        there = list(tool_names)
        if unknown := [name for name in self.tools if name not in there]:
            raise ConfigError(f"world.faults.tools: there is no tool {unknown[0]!r}; there are {', '.join(there)}")
