"""One table for results of any kind: who tried which task, how often, and what came of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.accounts.metrics import SUCCESS_TOLERANCE
from muarl.basics.errors import DataError


@dataclass(frozen=True, slots=True)
class PlayedTask:
    """One scored attempt at a task.

    ``trial``: its number among the task's, from 0. ``seed``: of the agent (or of both sides, where they share one),
    None where the file does not tell. ``user_seed``: of the user, where it was set apart from the agent's.
    ``repeat``: the number among attempts of the same seeds. ``clean``: whether it was a success without any violation,
    None where the file has no audit of it. ``strata``: (stratum, value) of its user, where it had strata.
    """

    task: str
    trial: int
    success: bool
    seed: int | None = None
    user_seed: int | None = None
    repeat: int = 0
    clean: bool | None = None
    strata: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> tuple[int | None, int | None, int]:
        """What an attempt of another run must share to be its partner."""
        return self.seed, self.user_seed, self.repeat


@dataclass(frozen=True, slots=True)
class Excluded:
    """An attempt that no score may count: ``why`` says what failed outside the agent."""

    task: str
    trial: int
    why: str
    seed: int | None = None
    user_seed: int | None = None
    repeat: int = 0

    @property
    def key(self) -> tuple[int | None, int | None, int]:
        """See ``PlayedTask.key``."""
        return self.seed, self.user_seed, self.repeat


@dataclass(frozen=True)
class Results:
    """One run's attempts, whatever program made them.

    ``kind``: of file, such as "run" or "tau2". ``fingerprints``: task id to a digest of what the file says of the task;
    only those of one kind compare. ``do_nothing``: success of doing nothing on the run's tasks, None where unknown.
    ``notes``: what makes its figures mean something else, each a sentence; ``left_out``: what of the file is not
    counted besides ``excluded``, likewise.
    """

    name: str
    path: str
    kind: str
    attempts: tuple[PlayedTask, ...]
    excluded: tuple[Excluded, ...] = ()
    domain: str | None = None
    agent: str | None = None
    user: str | None = None
    judge: str | None = None
    do_nothing: float | None = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Iterable[PlayedTask | Excluded], **about: Any) -> Results:
        """Results of these attempts. ``about``: all other fields."""
        every = list(found)
        attempts = tuple(one for one in every if isinstance(one, PlayedTask))
        return cls(attempts=attempts, excluded=tuple(one for one in every if isinstance(one, Excluded)), **about)

    def by_task(self) -> dict[str, list[PlayedTask]]:
        """Task id to its scored attempts, tasks in the order of the file."""
        found: dict[str, list[PlayedTask]] = {}
        for attempt in self.attempts:
            found.setdefault(attempt.task, []).append(attempt)
        return found

    @property
    def tasks(self) -> set[str]:
        """The tasks with a scored attempt."""
        return {a.task for a in self.attempts}


def refuse_copies(found: Results) -> Results:
    """The same results. DataError if an attempt stands there more than once: copies are no trials."""
    times = Counter((a.task, a.trial, *a.key) for a in found.attempts)
    copied = [(key, count) for key, count in times.items() if count > 1]
    if copied:
        (task, trial, seed, *_), count = copied[0]
        attempt = f"task {task}, trial {trial}" + ("" if seed is None else f", seed {seed}")
        more = f", and so do {len(copied) - 1} other attempts" if len(copied) > 1 else ""
        raise DataError(
            f"{found.path}: {attempt} stands there {count} times{more}: copies of an attempt are no trials. Leave one "
            "of each, or give attempts that are different ones numbers of their own (trial)"
        )
    return found


def digest(value: Any) -> str:
    """A fingerprint of what a file says of a task."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def no_reward(value: float, place: str) -> str | None:
    """Why a reward cannot be counted, None if it can. DataError for one above 1: it is of another scale."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"its reward is {value}, which is no number"
    if value > 1 + SUCCESS_TOLERANCE:
        raise DataError(
            f"{place}: {_short(value)} is no reward: they go from 0 to 1, and 1 is a success. Divide those of another "
            "scale by its largest, or give success (true or false)"
        )
    return None


def _short(value: float) -> str:
    text = repr(value)
    return text if len(text) <= 20 else f"{text[:17]}..."


def numbered(attempts: list[tuple[str, int | None]], place: str) -> list[int]:
    """Trial numbers of (task, number or None): as given, else counted by task. DataError where only some are given."""
    given = [number for _, number in attempts]
    if all(number is not None for number in given):
        return [int(number or 0) for number in given]
    if any(number is not None for number in given):
        raise DataError(f"{place}: some attempts have a trial number and some have none")
    counts: dict[str, int] = {}
    out = []
    for task, _ in attempts:
        out.append(counts.get(task, 0))
        counts[task] = out[-1] + 1
    return out
