"""Where a task is found: its environment, split and number, as one line of text that files and requests can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from muarl.basics.errors import ConfigError

FORM = "ENVIRONMENT:SPLIT:NUMBER, such as retail-generated:test:17 or retail-generated:train:3?size=medium&seed=1"


@dataclass(frozen=True, slots=True)
class TaskAddress:
    """A task of an environment. As text: ``ENVIRONMENT:SPLIT:NUMBER``, where needed with ``?size=SIZE&seed=SEED``
    behind it."""

    environment: str
    """Its name, or FILE.py:NAME or package.module:NAME."""
    split: str
    index: int
    """Its number in the split, counted from 0."""
    size: str | None = None
    """None for the smallest."""
    seed: int = 0
    """The seed of generated tasks."""

    def __str__(self) -> str:
        more = urlencode({k: v for k, v in (("size", self.size), ("seed", self.seed)) if v})
        return f"{self.environment}:{self.split}:{self.index}" + (f"?{more}" if more else "")

    @classmethod
    def parse(cls, text: str) -> TaskAddress:
        """The inverse of ``str``. ConfigError for text of another form."""
        place, _, query = text.partition("?")
        environment, _, rest = place.rpartition(":")
        environment, _, split = environment.rpartition(":")
        more = dict(parse_qsl(query, keep_blank_values=True))
        seed = more.pop("seed", "0")
        size = more.pop("size", None)
        if not (environment and split and _is_number(rest) and _is_number(seed)) or size == "" or more:
            raise ConfigError(f"{text!r} is no address of a task: write {FORM}")
        return cls(environment, split, int(rest), size, int(seed))


@dataclass(frozen=True, slots=True, eq=False)
class TaskOrigin:
    """The ``Environment`` that made a task, and the task's address there."""

    environment: Any
    address: TaskAddress


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15
