"""BFCL's official domains: their worlds, with the benchmark's own documents of the tools."""

from __future__ import annotations

from functools import cache
from typing import Any

from muarl.domains.base import Renderer, Semantics
from muarl_worlds import data
from muarl_worlds.bfcl.api import LongContext, Revision
from muarl_worlds.bfcl.domain import Bfcl
from muarl_worlds.bfcl.official import toolspecs
from muarl_worlds.bfcl.official.toolspecs import NAME


def domain(
    name: str, *, semantics: Semantics = "official", render: Renderer | None = None, label: str = "muarl"
) -> Bfcl:
    """A revision with the installed data. DataError if there is no such revision, or if it is not installed."""
    revision = toolspecs.revision_named(name)
    return Bfcl(
        revision,
        semantics=semantics,
        render=render,
        long_context=long_context(revision, str(data.path(NAME))),
        specs=toolspecs.offered,
        label=label,
    )


@cache
def long_context(revision: Revision, installed: str) -> LongContext:
    """The literals that long_context entries add to their worlds."""
    found: dict[str, Any] = data.read_json(NAME, f"{revision}/long_context.json")
    return found
