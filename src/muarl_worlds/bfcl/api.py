"""What BFCL's API classes share: state in attributes, tools as methods, one object per class and episode.

BFCL multi-turn (gorilla, Apache-2.0; specs section 2). A class's state is its attributes; those whose names do not
begin with an underscore are public, and are what the checker compares. Nothing is shared between two objects.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from muarl.domains.tooling import tool

__all__ = ["Api", "LongContext", "Revision", "tool"]

Revision = Literal["v3", "v4"]

LongContext = Mapping[str, Any]
"""The literals that long_context entries add to a world, by upstream's constant name (installed data). Never changed:
what goes into a state is copied first."""


class Api:
    """One of BFCL's API classes. ``name``: upstream's class name. ``stateless``: it is not loaded from a scenario."""

    name: ClassVar[str] = ""
    stateless: ClassVar[bool] = False

    def load(self, config: Mapping[str, Any], long_context: LongContext | None = None) -> None:
        """Take over a scenario's initial state; whatever it leaves out is the class's default.

        ``config`` is not changed and not kept. ``long_context``: what to add in long_context entries, None elsewhere.
        """

    def state(self) -> dict[str, Any]:
        """The public attributes, by name."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def copy(self) -> Self:
        """Another object in the same state that shares nothing which can change."""
        return copy.deepcopy(self)
