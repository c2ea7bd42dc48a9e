"""A fixed set of tasks, as a run draws them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task


class TaskPool:
    """A fixed set of tasks by split, as a run draws them. ``label``: where they are from, for messages. ``intents``:
    only tasks with these. ``whole``: where a split for evaluation has fewer tasks than are asked for, all of them are
    drawn, rather than none; ``called``, ``remedy``: what messages call the tasks, and what else to do then.
    """

    def __init__(
        self,
        splits: Mapping[str, Sequence[Task]],
        label: str,
        *,
        intents: Sequence[str] = (),
        whole: bool = True,
        called: str = "tasks",
        remedy: str = "",
    ) -> None:
        self.splits = {
            name: [t for t in tasks if not intents or t.tags.get("intent") in intents] for name, tasks in splits.items()
        }
        self.label, self.whole, self.called, self.remedy = label, whole, called, remedy

    def draw(self, split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        """``count`` different tasks, from number ``start`` of an endless row of rounds over the split, each round in an
        order of its own. "validation" is "test" where there is no such split. ConfigError if the split has fewer."""
        name = "test" if split == "validation" and split not in self.splits else split
        if name not in self.splits:
            raise ConfigError(f"{self.label} has no tasks for the split {split!r}; it has {', '.join(self.splits)}")
        tasks = self.splits[name]
        if count > len(tasks):
            if self.whole and split != "train" and tasks:
                return tasks[start:]
            asked = "rl.tasks_per_step and sft.demonstrations" if split == "train" else "eval.tasks"
            raise ConfigError(
                f"{self.label} has {len(tasks)} {self.called} for {split}, and {count} are asked for at once: lower "
                f"{asked}{self.remedy}"
            )
        drawn: dict[str, Task] = {}
        number = start
        while len(drawn) < count:
            round_, position = divmod(number, len(tasks))
            order = list(range(len(tasks)))
            random.Random(f"{seed}:{split}:{round_}").shuffle(order)
            task = tasks[order[position]]
            drawn.setdefault(task.id, task)
            number += 1
        return tuple(drawn.values())
