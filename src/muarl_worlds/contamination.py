"""Which training tasks do the same work as a benchmark task: the same writes, with the same arguments.

Tasks are compared by their gold actions. Reads and tools that touch no database are passed over, since a task can be
solved with other ones; the order of the writes and the form of a number (51 or 51.0) do not count. Tasks that write
nothing are alike in that and are left out. What comes before the writes does not count either: where the user's own
actions have no arguments, as on a phone, many tasks share their writes, and ``same_start`` tells whether they begin in
the same world as well.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.domains.tasks import Task

KindOf = Callable[[str], str]
WriteSet = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TaskSet:
    """Tasks with a name for the report. ``kind_of``: what kind of tool a name is; KeyError for one it does not know."""

    name: str
    tasks: Sequence[Task]
    kind_of: KindOf


@dataclass(frozen=True)
class Pair:
    """A training task and a benchmark task with the same writes. ``same_start``: they begin in the same world too."""

    training: str
    benchmark: str
    writes: WriteSet
    same_start: bool


@dataclass(frozen=True)
class Overlap:
    """What two sets of tasks have in common.

    ``training_tasks``, ``benchmark_tasks``: how many were compared, those without writes (``training_idle``,
    ``benchmark_idle``) not counted.
    """

    training: str
    benchmark: str
    training_tasks: int
    benchmark_tasks: int
    training_idle: int
    benchmark_idle: int
    pairs: tuple[Pair, ...]

    @property
    def training_hit(self) -> tuple[str, ...]:
        """The training tasks that do a benchmark task's work, each once."""
        return tuple(dict.fromkeys(p.training for p in self.pairs))

    @property
    def benchmark_hit(self) -> tuple[str, ...]:
        """The benchmark tasks whose work is in the training set, each once."""
        return tuple(dict.fromkeys(p.benchmark for p in self.pairs))

    def to_json(self) -> dict[str, Any]:
        """A plain dict: the counts, and every pair with its writes."""
        return {
            "training": self.training,
            "benchmark": self.benchmark,
            "training_tasks": self.training_tasks,
            "benchmark_tasks": self.benchmark_tasks,
            "training_idle": self.training_idle,
            "benchmark_idle": self.benchmark_idle,
            "training_hit": len(self.training_hit),
            "benchmark_hit": len(self.benchmark_hit),
            "pairs": [
                {
                    "training": p.training,
                    "benchmark": p.benchmark,
                    "same_start": p.same_start,
                    "writes": [{"name": name, "arguments": json.loads(text)} for name, text in p.writes],
                }
                for p in self.pairs
            ],
        }

    def summary(self) -> str:
        """The counts in a few sentences."""
        held, seen = len(self.benchmark_hit), len(self.training_hit)
        share = f" ({held / self.benchmark_tasks:.1%})" if self.benchmark_tasks else ""
        lines = [
            f"{self.training} and {self.benchmark}: {held} of {self.benchmark_tasks} benchmark tasks{share} have the "
            f"writes of a training task; {seen} of {self.training_tasks} training tasks have those of a benchmark task."
        ]
        other = len({p.benchmark for p in self.pairs} - {p.benchmark for p in self.pairs if p.same_start})
        if other:
            lines.append(f"{other} of these {held} begin in another world than every training task like them.")
        if self.training_idle or self.benchmark_idle:
            lines.append(f"Left out, since they write nothing: {self.training_idle} and {self.benchmark_idle}.")
        return " ".join(lines)


def write_set(task: Task, kind_of: KindOf) -> WriteSet:
    """The task's gold writes as (name, canonical arguments), sorted; one that occurs twice stands there twice.

    A tool that ``kind_of`` does not know counts as one that writes.
    """
    found = [(a.name, _canonical(a.arguments)) for a in task.actions or () if _writes(a.name, kind_of)]
    return tuple(sorted(found))


def overlap(training: TaskSet, benchmark: TaskSet) -> Overlap:
    """Every pair of a training and a benchmark task with the same writes, in the order of the training tasks."""
    known: dict[WriteSet, list[Task]] = defaultdict(list)
    for task in benchmark.tasks:
        known[write_set(task, benchmark.kind_of)].append(task)
    idle = len(known.pop((), ()))
    pairs, training_idle = [], 0
    for task in training.tasks:
        writes = write_set(task, training.kind_of)
        training_idle += not writes
        for other in known.get(writes, ()):
            pairs.append(Pair(task.id, other.id, writes, _start(task) == _start(other)))
    return Overlap(
        training=training.name,
        benchmark=benchmark.name,
        training_tasks=len(training.tasks) - training_idle,
        benchmark_tasks=len(benchmark.tasks) - idle,
        training_idle=training_idle,
        benchmark_idle=idle,
        pairs=tuple(pairs),
    )


def _writes(name: str, kind_of: KindOf) -> bool:
    try:
        return kind_of(name) == "write"
    except KeyError:
        return True


def _start(task: Task) -> tuple[Any, ...]:
    """What a task's world begins with; worlds of tasks with a database of their own are nobody else's."""
    own = None if task.database is None else task.database.digest()
    actions = [_canonical({**a, "assert_value": None}) for a in task.initial_actions]
    return own, _canonical(task.initial_data or {}), tuple(actions)


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    """JSON values with whole floats as integers, so that equal numbers have one form."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def overlaps(training: TaskSet, benchmarks: Iterable[TaskSet]) -> tuple[Overlap, ...]:
    """The overlap with each benchmark, in order."""
    return tuple(overlap(training, b) for b in benchmarks)


def shared_phrases(ours: Iterable[str], theirs: Iterable[str], words: int = 8) -> dict[str, int]:
    """The runs of so many words that texts of both sides have, each with how many of our texts have it. Words are
    letters and digits; case does not count."""
    known = {phrase for text in theirs for phrase in _phrases(text, words)}
    found: dict[str, int] = defaultdict(int)
    for text in ours:
        for phrase in _phrases(text, words) & known:
            found[phrase] += 1
    return dict(found)


def _phrases(text: str, words: int) -> set[str]:
    spoken = re.findall(r"[^\W_]+", text.lower())
    return {" ".join(spoken[start : start + words]) for start in range(len(spoken) - words + 1)}
