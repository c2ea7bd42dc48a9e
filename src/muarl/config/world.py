"""The section of a run configuration about worlds that fail as systems do (domains/faults)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from muarl.config.section import Positive, Probability, Section

FAULT_LEVELS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "typical": {
        "latency": 0.1, "outage": 0.03, "timeout_after_write": 0.05, "partial": 0.03, "undocumented_error": 0.03,
        "renamed_field": 0.02, "permission": 0.03, "stale_read": 0.03,
    },
    "hard": {
        "latency": 0.25, "outage": 0.08, "timeout_after_write": 0.15, "partial": 0.1, "undocumented_error": 0.08,
        "renamed_field": 0.08, "permission": 0.08, "stale_read": 0.1, "outage_calls": [1, 5], "partial_marked": 0.7,
        "permission_for_good": 0.2,
    },
}  # fmt: skip
"""What the names stand for."""


def _levels(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in FAULT_LEVELS:
        raise ValueError(f"use {', '.join(FAULT_LEVELS)}, or rates such as {{outage: 0.1}}")
    return dict(FAULT_LEVELS[value])


Seconds = Annotated[float, Field(ge=0)]


class FaultsConfig(Section):
    """How often tools fail, in training, demonstrations, evaluation and chat: a probability for each kind of fault
    (docs/faults.md). Only the agent's tools that read or write fail, by the episode's seed. Not on benchmarks'
    own protocols."""

    latency: Probability = Field(
        0.0, description="Of each call: a slow answer; over `timeout` seconds a time-out instead."
    )
    outage: Probability = Field(0.0, description="Of each call: an outage of its tool, or of all tools, begins.")
    timeout_after_write: Probability = Field(
        0.0, description="Of each write: it is carried out, but answered by a time-out."
    )
    partial: Probability = Field(0.0, description="Of each read that shows a list: the list is cut.")
    undocumented_error: Probability = Field(
        0.0, description="Of each call: not carried out, with an unexplained error."
    )
    renamed_field: Probability = Field(
        0.0,
        description="Of each reading tool, in an episode: one field has another name throughout (`status_v2`).",
    )
    permission: Probability = Field(0.0, description="Of each tool, in an episode: its first calls are refused.")
    stale_read: Probability = Field(
        0.0,
        description="Of each read after a write: it shows the state before it.",
    )
    latency_seconds: tuple[Seconds, Seconds] = Field(
        (1.0, 40.0), description="`[low, high]`: simulated seconds of a slow call."
    )
    timeout: Annotated[float, Field(gt=0)] = Field(
        30.0, description="Simulated seconds after which a call times out and is not carried out."
    )
    outage_calls: tuple[Positive, Positive] = Field((1, 3), description="`[low, high]`: calls that an outage lasts.")
    outage_everything: Probability = Field(0.3, description="Share of outages that affect all tools.")
    partial_marked: Probability = Field(1.0, description="Share of cut lists that say so.")
    permission_calls: tuple[Positive, Positive] = Field(
        (1, 3), description="`[low, high]`: refused calls before a permission comes back."
    )
    permission_for_good: Probability = Field(
        0.0,
        description="Share of permissions that never come back (the task may be impossible): for evaluations.",
    )
    tools: tuple[str, ...] = Field((), description="Only these tools; empty: all that read or write.")

    @model_validator(mode="after")
    def _are_ranges(self) -> FaultsConfig:
        for name in ("latency_seconds", "outage_calls", "permission_calls"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name} must be [low, high], not {[low, high]}")
        return self

    @property
    def any(self) -> bool:
        """Whether any kind of fault may happen."""
        kinds = (
            self.latency, self.outage, self.timeout_after_write, self.partial, self.undocumented_error,
            self.renamed_field, self.permission, self.stale_read,
        )  # fmt: skip
        return any(rate > 0 for rate in kinds)


class WorldConfig(Section):
    """The systems behind the agent's tools."""

    faults: Annotated[FaultsConfig, BeforeValidator(_levels)] = Field(
        default_factory=FaultsConfig,
        description="How often tools fail: `none`, `typical` or `hard`, or rates of single kinds.",
    )
