"""Benchmarks by name: the module that has a family's domains, tasks, replays and scores."""

from __future__ import annotations

from typing import Any

from muarl.environments.registry import find

_ONE_OF = {"tau2": "tau2-mock", "tau1": "tau1-retail", "bfcl": "bfcl-v4", "acebench": "acebench-en"}
"""An environment of each."""


def family(name: str) -> Any:
    """A benchmark's module, with ``DOMAINS``, ``domain(name)``, ``tasks(name, split)`` and the rest. KeyError if there
    is none of that name."""
    return find(_ONE_OF[name]).official().module
