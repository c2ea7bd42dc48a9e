"""Rewards in layers: the binary one, less penalties for broken policy, missed communication and crossed boundaries, or
gated by them. Off unless a run asks for it.

The layers are the audit's (muarl.audit, after the five layers in MUA-RL). Scores and reports
stay the verdict's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from muarl.types.episode import Episode

LAYERS = ("policy", "communication", "safety")
PREFIX = "violated_"
"""How the terms are called in ``Verdict.audit``."""


class LayerFinding(Protocol):
    """What a layer's term needs to know of a finding."""

    @property
    def layer(self) -> str: ...
    @property
    def severity(self) -> str: ...


def terms(findings: Iterable[LayerFinding]) -> dict[str, float]:
    """Of each layer, 1.0 if the audit has found a violation in it (or worse), else 0.0. Notes do not count."""
    broken = {f.layer for f in findings if f.severity != "note"}
    return {f"{PREFIX}{layer}": float(layer in broken) for layer in LAYERS}


def layered_reward(reward: float, episode: Episode, penalties: Mapping[str, float], gates: Collection[str]) -> float:
    """``reward`` where no gate is violated, else 0; less the penalty of each violated layer. A task that was done by
    breaking a rule is thus worth less than one done well, and with a gate no more than one that was not done.

    KeyError if a layer with a penalty or gate was not noted in the audit.
    """
    layers = {layer for layer, penalty in penalties.items() if penalty} | set(gates)
    if not layers:
        return reward
    assert episode.verdict is not None
    broken = {layer for layer in layers if episode.verdict.audit[PREFIX + layer]}
    return (0.0 if broken & set(gates) else reward) - sum(penalties.get(layer, 0.0) for layer in broken)
