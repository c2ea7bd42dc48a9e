"""``rl.method``: the settings that a published method of reinforcement learning stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GRPO: Mapping[str, Any] = {
    "ratio": "token",
    "advantage": "group_std",
    "loss_aggregation": "token_mean",
    "clip_low": 0.2,
    "clip_high": 0.2,
    "dynamic_sampling": False,
}

METHODS: Mapping[str, Mapping[str, Any]] = {
    "grpo": GRPO,  # arXiv 2402.03300
    "dr_grpo": {**GRPO, "advantage": "group_mean", "loss_aggregation": "dr_grpo"},  # arXiv 2503.20783
    "dapo": {**GRPO, "clip_high": 0.28, "dynamic_sampling": True, "kl_coef": 0.0},  # arXiv 2503.14476
    "gspo": {  # arXiv 2507.18071
        **GRPO, "ratio": "sequence", "loss_aggregation": "sequence_mean", "clip_low": 3e-4, "clip_high": 4e-4,
    },
    "rloo": {**GRPO, "advantage": "leave_one_out"},  # arXiv 2402.14740
}  # fmt: skip
"""Method to keys of the ``rl`` section."""


def with_method(values: dict[str, Any]) -> dict[str, Any]:
    """One layer of a configuration (a file, or all overrides), with what its ``rl.method`` stands for written out. Keys
    that the layer names itself win; an unknown method is left to the checks of the section."""
    rl = values.get("rl")
    name = rl.get("method") if isinstance(rl, dict) else None
    known = METHODS.get(name) if isinstance(name, str) else None
    return values if rl is None or known is None else {**values, "rl": {**known, **rl}}
