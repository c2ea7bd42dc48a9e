"""What TAU2's domains are made of: their classes, and the files their databases and tasks stand in.

Nothing is imported or read before a domain is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.base import Domain
from muarl_worlds.tau.tau2_benchmark.tasks import NAME

Databases = Mapping[str, Any]


@dataclass(frozen=True)
class Tau2Source:
    """A domain of the benchmark. ``folder``: where its files are. ``kind``: its class, which reads what it is not given
    from the installed data. ``databases``: options of the class that hold its databases. ``one_list``: whether its
    tasks stand in one file, with their splits in another; else each task has a file, and there is one split, base."""

    folder: str
    kind: Callable[[], type[Domain]]
    databases: tuple[str, ...] = ("database",)
    one_list: bool = True


def _retail() -> type[Domain]:
    from muarl_worlds.tau.retail.domain import Retail

    return Retail


def _airline() -> type[Domain]:
    from muarl_worlds.tau.airline.domain import Airline

    return Airline


def _telecom() -> type[Domain]:
    from muarl_worlds.tau.telecom.domain import Telecom

    return Telecom


def _telecom_workflow() -> type[Domain]:
    from muarl_worlds.tau.telecom.domain import TelecomWorkflow

    return TelecomWorkflow


def _mock() -> type[Domain]:
    from muarl_worlds.tau.mock.domain import Mock

    return Mock


def _banking() -> type[Domain]:
    from muarl_worlds.tau.banking.domain import Banking

    return Banking


SOURCES = {
    "retail": Tau2Source("domains/retail", _retail),
    "airline": Tau2Source("domains/airline", _airline),
    "telecom": Tau2Source("domains/telecom", _telecom, ("database", "phone")),
    "telecom-workflow": Tau2Source("domains/telecom", _telecom_workflow, ("database", "phone")),
    "mock": Tau2Source("domains/mock", _mock, ("database", "inbox")),
    "banking_knowledge": Tau2Source("domains/banking_knowledge", _banking, one_list=False),
}


def source(name: str) -> Tau2Source:
    """The source of a domain. DataError for a name that the benchmark does not have."""
    if name not in SOURCES:
        raise DataError(f"domain {name!r}: {NAME} has {', '.join(SOURCES)}")
    return SOURCES[name]


@cache
def databases(folder: str, installed: str) -> Databases:
    """A folder's databases, as options of its domain; read once for as long as the data stay where they are."""
    known = next(s for s in SOURCES.values() if s.folder == folder)
    domain: Any = known.kind()()
    sides = (domain, domain.toolkit("user"))
    return {option: kit.base for option, kit in zip(known.databases, sides, strict=False)}
