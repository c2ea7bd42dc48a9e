"""What the models that are asked inside a block use, whoever asks them.

Agents and users tell what they used with every turn. Judges and models that play tools are asked in between, by many
conversations at once, so their own totals do not say which conversation it was for. A meter does: it counts what is
asked in its block and in the asyncio tasks that begin there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from muarl.types.episode import Usage

_open: ContextVar[tuple[Meter, ...]] = ContextVar("open meters", default=())


@dataclass(slots=True)
class Meter:
    """``usage``: of all models so far; ``besides``: of those that are neither agent nor user."""

    usage: Usage = field(default_factory=Usage)
    besides: Usage = field(default_factory=Usage)


@contextmanager
def metered() -> Iterator[Meter]:
    """Count in this block. Blocks may be nested; each counts all that is asked inside."""
    meter = Meter()
    token = _open.set((*_open.get(), meter))
    try:
        yield meter
    finally:
        _open.reset(token)


def count(usage: Usage, boundary: str) -> None:
    """A model has used this; ``boundary``: whose model it is ("agent", "user", "judge", "world")."""
    for meter in _open.get():
        meter.usage += usage
        if boundary not in ("agent", "user"):
            meter.besides += usage
