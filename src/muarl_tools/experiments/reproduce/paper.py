"""The figures of the paper that ``muarl reproduce`` puts beside ours: MUA-RL, arXiv 2508.18669. Success in percent."""

from __future__ import annotations

from collections.abc import Mapping

SOURCE = "MUA-RL, arXiv 2508.18669"

ABLATION: Mapping[str, tuple[float, float]] = {
    "base": (50.2, 23.5),
    "cold": (58.2, 31.1),
    "rl": (61.6, 41.0),
    "both": (67.3, 45.4),
}
"""Its ablation with 32B parameters: TAU2 retail and airline, by arm."""

TRANSFER_TO = ("TAU2 telecom", "BFCL-V3 multi-turn", "ACEBench agent")
TRANSFER: Mapping[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "Qwen3-32B": ((24.8, 19.6, 72.5), (28.3, 28.4, 82.5)),
    "Qwen3-14B": ((29.9, 17.6, 60.0), (33.4, 25.3, 78.3)),
    "Qwen3-8B": ((19.1, 11.8, 39.2), (21.8, 14.6, 53.3)),
}
"""By model, before and after MUA-RL, on what it was not trained on (``TRANSFER_TO``)."""

LIKE: Mapping[str, str] = {
    "telecom-generated": TRANSFER_TO[0],
    "bfcl-generated": TRANSFER_TO[1],
    "acebench-generated": TRANSFER_TO[2],
}
"""Which of our environments stands for which benchmark."""

TURNS = (21, 23)
"""Turns an episode at which its training settles."""
