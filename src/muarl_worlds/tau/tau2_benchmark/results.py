"""TAU2's own result files: what `tau2 run` saved, as one JSON file or as a folder with a file for each simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.untrusted import parse_json, to_float
from muarl.domains.base import Task
from muarl.records.messages import read_message
from muarl.types.chat import Message
from muarl_worlds.tau.tau2_benchmark.tasks import task_from_json

TERMINATIONS = (
    "user_stop", "agent_stop", "max_steps", "timeout", "too_many_errors", "agent_error", "user_error",
    "infrastructure_error", "context_window_exceeded", "unexpected_error",
)  # fmt: skip
"""Why a simulation ended. Only the first two are scored; ``infrastructure_error`` is in none of TAU2's metrics."""

_FOLDER = "simulations"


@dataclass(frozen=True)
class Simulation:
    """One recorded conversation. ``row``: as the file has it; ``place``: where that is, for errors."""

    row: Mapping[str, Any]
    place: str

    @property
    def task_id(self) -> str:
        """The task's id. DataError if there is none."""
        return _text(self.row, "task_id", self.place)

    @property
    def termination_reason(self) -> str:
        """Why it ended, one of TERMINATIONS. DataError if it is none."""
        reason = _text(self.row, "termination_reason", self.place)
        if reason not in TERMINATIONS:
            raise DataError(f"{self.place}: termination_reason {reason!r} is not one of {', '.join(TERMINATIONS)}")
        return reason

    @property
    def messages(self) -> list[Message]:
        """What was said and done. DataError names the message and field that is malformed, or says: a voice call."""
        given = self.row.get("messages")
        if self.row.get("mode") == "full_duplex" or self.row.get("ticks") is not None:
            raise DataError(f"{self.place}: it is a voice call (full duplex), which is not scored here")
        if not isinstance(given, list):
            raise DataError(f"{self.place}: messages must be a list, not {type(given).__name__}")
        return [read_message(m, f"{self.place}, messages[{i}]") for i, m in enumerate(given)]

    @property
    def reward(self) -> float | None:
        """The reward in the file, None if there is none. DataError for one that no number can hold."""
        info = self.row.get("reward_info")
        found = info.get("reward") if isinstance(info, Mapping) else None
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            return None
        return to_float(found, f"{self.place}: reward_info.reward")


@dataclass(frozen=True)
class Tau2Results:
    """A run of TAU2: its domain, who took part, the tasks as they were then, and its simulations in order.

    ``solo``: whether the agent worked alone. ``info``: the run's description as the file has it.
    """

    path: Path
    domain: str
    info: Mapping[str, Any]
    rows: Mapping[str, Any]
    simulations: tuple[Simulation, ...]
    _tasks: dict[str, Task] = field(default_factory=dict, compare=False, repr=False)

    @property
    def solo(self) -> bool:
        """True for TAU2's agent without a user."""
        return self._who("agent_info", "implementation") == "llm_agent_solo" and (
            self._who("user_info", "implementation") == "dummy_user"
        )

    @property
    def agent(self) -> str | None:
        """The agent's language model."""
        return self._who("agent_info", "llm")

    @property
    def user(self) -> str | None:
        """The simulated user's language model."""
        return self._who("user_info", "llm")

    def _who(self, part: str, name: str) -> str | None:
        found = self.info.get(part)
        value = found.get(name) if isinstance(found, Mapping) else None
        return value if isinstance(value, str) else None

    def task(self, task_id: str) -> Task:
        """A task as the file has it. DataError if it has none of that id, or it is malformed."""
        if task_id not in self._tasks:
            if task_id not in self.rows:
                raise DataError(f"{self.path}: it has no task {task_id!r}")
            try:
                self._tasks[task_id] = task_from_json(self.rows[task_id], self.domain)
            except DataError as problem:
                raise DataError(f"{self.path}: {problem}") from None
        return self._tasks[task_id]


def is_results(found: Any) -> bool:
    """Whether a parsed JSON file is a run of TAU2."""
    return isinstance(found, Mapping) and "simulations" in found and "tasks" in found


def folder_of(path: Path) -> Path | None:
    """The folder of a run saved as a folder: the path itself, or the one that its results.json stands in."""
    if path.is_dir():
        return path
    return path.parent if path.name == "results.json" and (path.parent / _FOLDER).is_dir() else None


def read_folder(folder: Path) -> Tau2Results:
    """A run saved as results.json and a file for each simulation. DataError if its index and the files differ."""
    meta = _json(folder / "results.json")
    files = sorted((folder / _FOLDER).glob("*.json"))
    if not isinstance(meta, Mapping):
        raise DataError(f"{folder / 'results.json'}: must be an object")
    index = meta.get("simulation_index")
    if isinstance(index, list):
        listed = {entry.get("id") for entry in index if isinstance(entry, Mapping)}
        present = {f.stem for f in files}
        if listed != present:
            odd = sorted(map(str, listed ^ present))[0]
            what = "is missing" if odd in listed else "is not in the index"
            raise DataError(
                f"{folder / _FOLDER / odd}.json {what}: {folder / 'results.json'} lists {len(listed)} files"
            )
    return results(meta, folder / "results.json", [(_json(f), str(f)) for f in files])


def results(found: Mapping[str, Any], path: Path, simulations: list[tuple[Any, str]] | None = None) -> Tau2Results:
    """A run from its parsed file. DataError names the field that is missing or malformed."""
    where = str(path)
    info = _object(found.get("info"), f"{where}: info")
    environment = _object(info.get("environment_info"), f"{where}: info.environment_info")
    domain = environment.get("domain_name")
    if not isinstance(domain, str):
        raise DataError(f"{where}: info.environment_info: domain_name must be a string, not {type(domain).__name__}")
    tasks = found.get("tasks")
    if not isinstance(tasks, list):
        raise DataError(f"{where}: tasks must be a list, not {type(tasks).__name__}")
    if simulations is None:
        given = found.get("simulations")
        if not isinstance(given, list):
            raise DataError(f"{where}: simulations must be a list, not {type(given).__name__}")
        simulations = [(s, f"{where}: simulations[{i}]") for i, s in enumerate(given)]
    return Tau2Results(
        path=path,
        domain=domain,
        info=info,
        rows={t["id"]: t for t in tasks if isinstance(t, Mapping) and isinstance(t.get("id"), str)},
        simulations=tuple(Simulation(_object(s, place), place) for s, place in simulations),
    )


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"{place} must be an object, not {type(value).__name__}")
    return value


def _text(row: Mapping[str, Any], name: str, place: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise DataError(f"{place}: {name} must be a string, not {type(value).__name__}")
    return value


def _json(path: Path) -> Any:
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise DataError(f"{path}: {problem.strerror}") from None
    except ValueError as problem:
        raise DataError(f"{path}: not JSON: {problem}") from None
