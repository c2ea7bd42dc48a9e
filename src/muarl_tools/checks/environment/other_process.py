"""Tasks made in another process, where Python's hashes are others, must be the same tasks."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import muarl_tools
from muarl.basics.errors import InfrastructureError
from muarl.domains.tasks import Task
from muarl.environments.registry import find, is_reference, load_reference

CODE = "from muarl_tools.checks.environment.other_process import answer; answer()"
DEADLINE = 600.0
"""Seconds that the other process may take."""


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """The first tasks of a split. ``name``: of the environment, or a reference that the person has named."""

    name: str
    size: str | None
    split: str
    count: int
    seed: int


def fingerprint(task: Task) -> str:
    """16 hex digits of everything that a task consists of."""
    plain = [
        task.id, task.domain, task.scenario, task.reward_basis, task.communicate_info, task.nl_assertions,
        task.env_assertions, task.initial_data, task.initial_actions, task.ticket, task.user_tools, task.agenda,
        task.tags, [message.to_json() for message in task.history],
        None if task.actions is None else [[a.name, a.arguments, a.requestor] for a in task.actions],
        None if task.database is None else task.database.digest(),
    ]  # fmt: skip
    text = json.dumps(plain, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Iterable) else str(value)


def fingerprints(wanted: TaskRequest) -> list[str]:
    """The fingerprints of tasks, made here."""
    environment = load_reference(wanted.name) if is_reference(wanted.name) else find(wanted.name)
    made = environment.make_tasks(wanted.split, wanted.count, size=wanted.size, seed=wanted.seed)
    return [fingerprint(task) for task in made]


def fingerprints_elsewhere(wanted: Sequence[TaskRequest]) -> list[list[str]]:
    """The fingerprints of tasks made in another process. InfrastructureError if that process fails."""
    asked = {"path": sys.path, "wanted": [asdict(one) for one in wanted]}
    environ = {
        **os.environ,
        "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2",
        "PYTHONPATH": str(Path(muarl_tools.__file__).parents[1]),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", CODE], input=json.dumps(asked), capture_output=True, text=True, env=environ,
            timeout=DEADLINE, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as problem:
        told = (getattr(problem, "stderr", None) or str(problem)).strip().splitlines()[-1:]
        raise InfrastructureError(f"another process could not make tasks: {''.join(told)}", boundary="world") from None
    found: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def answer() -> None:
    """What the other process does: reads what is wanted from its standard input, prints the fingerprints."""
    asked = json.load(sys.stdin)
    sys.path.extend(place for place in asked["path"] if place not in sys.path)
    sys.stdout.write(json.dumps([fingerprints(TaskRequest(**one)) for one in asked["wanted"]]) + "\n")
