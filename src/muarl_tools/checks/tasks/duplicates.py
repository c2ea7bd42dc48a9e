"""Tasks that stand twice, up to names and numbers, within a split or in two.

Two tasks are the same where their gold actions write the same on the same data, and their scenarios, word by word with
ids and numbers masked, overlap by ``OVERLAP`` of their 3-grams; of tasks that write nothing, where the scenarios as
they are overlap by ``EXACT``.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator

from muarl.domains.checking import CheckFinding
from muarl.domains.tasks import Task
from muarl_tools.checks.tasks.sources import TaskSource
from muarl_worlds.contamination import write_set

GRAM = 3
OVERLAP, EXACT = 0.6, 0.95
_ID = re.compile(r"\S*\d\S*")


def duplicates(source: TaskSource) -> Iterator[CheckFinding]:
    """A finding for each task that repeats an earlier one."""
    groups: dict[str, list[tuple[str, Task, frozenset[str]]]] = defaultdict(list)
    for split, task in source.tasks:
        writes = write_set(task, source.domain.kind_of)
        grams = _grams(task.scenario, masked=bool(writes))
        group = groups[json.dumps([_data(source, task), writes], default=str)]
        twin = next((g for g in group if _overlap(g[2], grams) >= (OVERLAP if writes else EXACT)), None)
        group.append((split, task, grams))
        if twin is None:
            continue
        where, other, seen = twin
        across = where != split
        rule = "duplicate-across-splits" if across else "duplicate"
        share = f"{_overlap(seen, grams):.0%} of the scenario's 3-grams"
        same = f"the same writes on the same data and {share}" if writes else f"{share}, and no writes"
        evidence = f"{same} as task {other.id}{f' of the split {where}' if across else ''}"
        remedy = "Keep it in one split" if across else "Count the two as one, or drop one"
        yield CheckFinding(evidence, task.id, remedy, rule, "warning" if across else "note", split)


def _data(source: TaskSource, task: Task) -> list[object]:
    """What a task is played on."""
    own = None if task.database is None else task.database.digest()
    return [own, task.initial_data, task.initial_actions]


def _grams(text: str, *, masked: bool) -> frozenset[str]:
    words = [("<id>" if masked and _ID.fullmatch(w) else w).strip(".,;:!?\"'") for w in text.lower().split()]
    return frozenset(" ".join(words[n : n + GRAM]) for n in range(max(1, len(words) - GRAM + 1)))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0
