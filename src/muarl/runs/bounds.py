"""Which bounds on cost and tokens hold for a command, and that none is set which would bound nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from muarl.basics.errors import ConfigError
from muarl.config import RunConfig

Bounded = Literal["eval", "budget", "coldstart"]
"""The section of the configuration whose ``max_cost`` and ``max_tokens`` a command keeps to."""

WHOSE: Mapping[Bounded, str] = {
    "eval": "evaluations (muarl eval)",
    "budget": "training runs (muarl sft, train, quickstart)",
    "coldstart": "cold starts (muarl coldstart)",
}
KINDS = ("max_cost", "max_tokens")


def bound_of(config: RunConfig, own: Bounded) -> str | None:
    """The name of a bound that a command keeps to, None if there is none."""
    return next((f"{own}.{kind}" for kind in KINDS if getattr(getattr(config, own), kind) is not None), None)


def check_own_bound(config: RunConfig, own: Bounded, *, asks: bool) -> None:
    """ConfigError where other commands are bounded by this configuration, and this one is not: it was meant to be.
    ``asks``: whether the run asks any model at an endpoint; else there is nothing to bound."""
    if not asks:
        return
    for kind in KINDS:
        if getattr(getattr(config, own), kind) is not None:
            continue
        for other, whose in WHOSE.items():
            if (value := getattr(getattr(config, other), kind)) is not None:
                raise ConfigError(
                    f"{other}.{kind} bounds {whose}, and nothing here: set {own}.{kind}={value:g} to bound this run, "
                    f"or {other}.{kind}=null"
                )
