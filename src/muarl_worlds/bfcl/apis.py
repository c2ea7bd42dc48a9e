"""BFCL's eight API classes, by revision and upstream's name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from muarl_worlds.bfcl import files, mathematics, messages, posting, tickets, trading, travel, vehicle
from muarl_worlds.bfcl.api import Api, Revision

CLASSES = (
    "GorillaFileSystem", "MathAPI", "MessageAPI", "TwitterAPI", "TicketAPI", "TradingBot", "TravelAPI",
    "VehicleControlAPI",
)  # fmt: skip
"""The names of the classes."""

_MODULES = (files, mathematics, messages, posting, tickets, trading, travel, vehicle)

APIS: Mapping[Revision, Mapping[str, type[Api]]] = {
    revision: {name: module.REVISIONS[revision] for name, module in zip(CLASSES, _MODULES, strict=True)}
    for revision in ("v3", "v4")
}
"""The classes of each revision, by name."""


@cache
def api_class(revision: Revision, name: str) -> type[Api]:
    """A class by its name. KeyError if there is none."""
    return APIS[revision][name]
