"""The user of generated BFCL tasks: a script, as in the benchmark, spoken turn by turn."""

from __future__ import annotations

from muarl.domains.agenda import agenda_of
from muarl.domains.tasks import Task
from muarl.users.scripted import TurnsUser
from muarl_worlds.bfcl.generated import turn_lines


class BfclAgendaUser(TurnsUser):
    """Says the lines of ``task.agenda`` (bfcl/generator.py), whatever the agent says, then ###STOP###.

    ``seed`` and ``persona`` change nothing: how the lines sound was settled when the task was made.
    """

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        agenda_of(task)  # a task without one is refused
        super().__init__(turn_lines(task))
