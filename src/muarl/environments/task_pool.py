"""A fixed set of tasks, as a run draws them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task

HELD_OUT = 5
"""One in so many training tasks is validated on, where there are no tasks for that."""


def held_out(tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
    """Training tasks as (trained on, validated on): one in ``HELD_OUT``, but at least one of two or more. Their ids say
    which, so that they are the same ones in every run."""
    count = max(1, len(tasks) // HELD_OUT) if len(tasks) > 1 else 0
    by_hash = sorted(tasks, key=lambda task: hashlib.sha256(f"validation {task.id}".encode()).digest())
    chosen = {task.id for task in by_hash[:count]}
    return [t for t in tasks if t.id not in chosen], [t for t in tasks if t.id in chosen]


def held_out_note(label: str, trained: int, held: int) -> str:
    """That some training tasks are held out. ``label``: whose they are."""
    return f"{label} has no tasks to validate on: {held} of its {trained + held} training tasks are held out for that"


class TaskPool:
    """A fixed set of tasks by split, as a run draws them. ``label``: where they are from, for messages. ``intents``:
    only tasks with these. ``whole``: where a split for evaluation has fewer tasks than are asked for, all of them are
    drawn, rather than none; ``called``, ``remedy``: what messages call the tasks, and what else to do then.
    ``validating``: where there is no validation split, some training tasks are held out for it (``held_out``).
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
        validating: bool = False,
    ) -> None:
        self.splits = {
            name: [t for t in tasks if not intents or t.tags.get("intent") in intents] for name, tasks in splits.items()
        }
        self.label, self.whole, self.called, self.remedy = label, whole, called, remedy
        self._holds_out = validating and "validation" not in self.splits
        self._drawn = dict(self.splits)
        if self._holds_out:
            self._drawn["train"], self._drawn["validation"] = held_out(self.splits.get("train", []))

    @property
    def held_out_note(self) -> str | None:
        """That some training tasks are held out to validate on; None where none are."""
        if not self._holds_out or not self._drawn["validation"]:
            return None
        return held_out_note(self.label, len(self._drawn["train"]), len(self._drawn["validation"]))

    def draw(self, split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        """``count`` different tasks, from number ``start`` of an endless row of rounds over the split, each round in an
        order of its own. ConfigError if there is no such split, or if it has fewer."""
        if split not in self._drawn:
            raise ConfigError(f"{self.label} has no tasks for the split {split!r}; it has {', '.join(self.splits)}")
        tasks = self._drawn[split]
        if count > len(tasks):
            if tasks and ((self.whole and split != "train") or self._validates(split)):
                return tasks[start:]
            raise self._too_few(split, count)
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

    def _validates(self, split: str) -> bool:
        """Whether the tasks of a split are held out of those for training."""
        return self._holds_out and split == "validation"

    def _too_few(self, split: str, count: int) -> ConfigError:
        if self._validates(split):
            return ConfigError(
                f"{self.label} has no tasks to validate on, and too few {self.called} for train "
                f"({len(self._drawn['train'])}) to hold one out: set rl.eval_every=0"
            )
        asked, remedy = "eval.tasks", self.remedy
        if split == "train":
            asked = "rl.tasks_per_step and sft.demonstrations"
            held = len(self._drawn["validation"]) if self._holds_out else 0
            remedy += f" ({held} more are held out to validate on; RL takes all with rl.eval_every=0)" if held else ""
        return ConfigError(
            f"{self.label} has {len(self._drawn[split])} {self.called} for {split}, and {count} are asked for at once: "
            f"lower {asked}{remedy}"
        )
