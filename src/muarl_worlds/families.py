"""Benchmarks by name: the module that has a family's domains, tasks, replays and scores."""

from __future__ import annotations

from typing import Any

NAMES = ("tau2", "tau1", "bfcl", "acebench")


def family(name: str) -> Any:
    """A benchmark's module, with ``DOMAINS``, ``domain(name)``, ``tasks(name, split)`` and the rest. KeyError if there
    is none of that name (``NAMES``)."""
    if name == "tau2":
        from muarl_worlds.tau import tau2_benchmark

        return tau2_benchmark
    if name == "tau1":
        from muarl_worlds.tau import tau1_benchmark

        return tau1_benchmark
    if name == "bfcl":
        from muarl_worlds.bfcl import official

        return official
    if name == "acebench":
        from muarl_worlds.acebench import official as acebench

        return acebench
    raise KeyError(name)
