"""The ids of tasks that are made from seeds: they say how to make the task again."""

from __future__ import annotations

import re
from dataclasses import dataclass

_END = r"-(?P<split>train|validation|test)-(?P<seed>\d{1,18})-(?P<index>\d{1,15})"
_SEEDED = re.compile(r"(?P<domain>.{1,60})-(?P<size>[a-z]{1,20})" + _END)
_OF_ONE_SIZE = re.compile(r"(?P<domain>[^-]{1,60})(?P<size>)" + _END)


@dataclass(frozen=True, slots=True)
class SeededId:
    """A made task: which domain's, of what size and split, and its number among the tasks of a seed. ``size`` is empty
    where an environment of one size leaves it out."""

    domain: str
    size: str
    split: str
    seed: int
    index: int

    def __str__(self) -> str:
        """The id, such as "retail-tiny-train-0-12", or "library-train-0-12" without a size."""
        return "-".join(part for part in (self.domain, self.size, self.split, str(self.seed), str(self.index)) if part)


def parse_id(text: str) -> SeededId | None:
    """What a task's id says; None for one that was not made from a seed."""
    found = _SEEDED.fullmatch(text) or _OF_ONE_SIZE.fullmatch(text)
    if found is None:
        return None
    return SeededId(found["domain"], found["size"], found["split"], int(found["seed"]), int(found["index"]))
