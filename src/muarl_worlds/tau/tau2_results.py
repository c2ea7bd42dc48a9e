"""TAU2's own result files (tau2-bench 1.0), read and written: a JSON file, or a folder with a file a simulation.

What is written is an evaluation of ours as TAU2's viewer, metrics and leaderboard check read one.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from muarl.basics.errors import DataError, MuarlError
from muarl.basics.untrusted import parse_json, to_float
from muarl.basics.version import __version__
from muarl.records.conversation import Format, LeftOutCounts, RecordedConversation, stop_of
from muarl.records.messages import read_message
from muarl.records.rows import PlacedRow, text_field
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn

if TYPE_CHECKING:
    from muarl.domains.base import Domain
    from muarl.domains.tasks import Task

TERMINATIONS = (
    "user_stop", "agent_stop", "max_steps", "timeout", "too_many_errors", "agent_error", "user_error",
    "infrastructure_error", "context_window_exceeded", "unexpected_error",
)  # fmt: skip
"""Why a simulation ended. Only the first two are scored; ``infrastructure_error`` is in none of TAU2's metrics."""

_FOLDER = "simulations"


@dataclass
class Simulation(RecordedConversation):
    """One recorded conversation of a run of TAU2."""

    format: ClassVar[str] = "tau2"
    benchmark: ClassVar[str] = "tau2"

    run: Tau2Results = field(kw_only=True, repr=False)
    """The run that it is part of."""

    @property
    def id(self) -> str:
        """Its own name."""
        return str(self.value.get("id", self.task_id))

    @property
    def task_id(self) -> str:
        """The task's id. DataError if there is none."""
        return text_field(self.value, "task_id", self.place)

    @property
    def domain(self) -> str:
        """TAU2's name of the domain."""
        return self.run.domain

    @property
    def termination_reason(self) -> str:
        """Why it ended, one of TERMINATIONS. DataError if it is none."""
        reason = text_field(self.value, "termination_reason", self.place)
        if reason not in TERMINATIONS:
            raise DataError(f"{self.place}: termination_reason {reason!r} is not one of {', '.join(TERMINATIONS)}")
        return reason

    @property
    def stop(self) -> StopReason:
        """How it ended, as we say it. DataError as ``termination_reason``."""
        return stop_of(self.termination_reason)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """What was said and done. DataError names the message and field that is malformed, or says: a voice call."""
        given = self.value.get("messages")
        if self.value.get("mode") == "full_duplex" or self.value.get("ticks") is not None:
            raise DataError(f"{self.place}: it is a voice call (full duplex), which is not scored here")
        if not isinstance(given, list):
            raise DataError(f"{self.place}: messages must be a list, not {type(given).__name__}")
        return tuple(read_message(m, f"{self.place}, messages[{i}]") for i, m in enumerate(given))

    @property
    def reward(self) -> float | None:
        """The reward in the file, None if there is none. DataError for one that no number can hold."""
        info = self.value.get("reward_info")
        found = info.get("reward") if isinstance(info, Mapping) else None
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            return None
        return to_float(found, f"{self.place}: reward_info.reward")


@dataclass(frozen=True)
class Tau2Results:
    """A run of TAU2: its domain, who took part, the tasks as they were then, and its simulations in order."""

    path: Path
    domain: str
    info: Mapping[str, Any]
    """The run's description as the file has it."""
    rows: Mapping[str, Any]
    """Task id to the task as the file has it."""
    given: tuple[PlacedRow, ...]
    """The simulations as the file has them."""
    left_out: LeftOutCounts = field(default_factory=LeftOutCounts, compare=False, repr=False)
    _tasks: dict[str, Task] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def simulations(self) -> tuple[Simulation, ...]:
        """Its conversations, in order."""
        return tuple(Simulation(row, self.left_out, run=self) for row in self.given)

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
        from muarl_worlds.tau.tau2_benchmark.tasks import task_from_json

        if task_id not in self._tasks:
            if task_id not in self.rows:
                raise DataError(f"{self.path}: it has no task {task_id!r}")
            try:
                self._tasks[task_id] = task_from_json(self.rows[task_id], self.domain)
            except DataError as problem:
                raise DataError(f"{self.path}: {problem}") from None
        return self._tasks[task_id]

    def world(self, task_id: str) -> tuple[Domain | None, Task | None]:
        """The domain, as the benchmark has it, and a task as the file has it; None both if the data are not installed,
        or the file has no such task."""
        if self._official is None:
            return None, None
        try:
            return self._official, self.task(task_id)
        except DataError:
            return None, None

    @cached_property
    def _official(self) -> Domain | None:
        from muarl_worlds.tau import tau2_benchmark

        try:
            return tau2_benchmark.domain(self.domain)
        except MuarlError:
            return None


class Tau2Files(Format):
    """Runs of TAU2 among the conversations of other programs."""

    def at(self, path: Path) -> Iterable[RecordedConversation] | None:
        """The simulations of a run saved as a folder."""
        folder = folder_of(path)
        if folder is None or not ((folder / "results.json").is_file() and (folder / _FOLDER).is_dir()):
            return None
        return read_folder(folder, self.left_out).simulations

    def of_row(self, row: PlacedRow) -> Iterable[RecordedConversation] | None:
        """The simulations of a run saved as one value."""
        return results(row.value, row.path, left_out=self.left_out).simulations if is_results(row.value) else None


def is_results(found: Any) -> bool:
    """Whether a parsed JSON file is a run of TAU2."""
    return isinstance(found, Mapping) and "simulations" in found and "tasks" in found


def folder_of(path: Path) -> Path | None:
    """The folder of a run saved as a folder: the path itself, or the one that its results.json stands in."""
    if path.is_dir():
        return path
    return path.parent if path.name == "results.json" and (path.parent / _FOLDER).is_dir() else None


def read_folder(folder: Path, left_out: LeftOutCounts | None = None) -> Tau2Results:
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
    return results(meta, folder / "results.json", [(_json(f), str(f)) for f in files], left_out)


def results(
    found: Mapping[str, Any],
    path: Path,
    simulations: list[tuple[Any, str]] | None = None,
    left_out: LeftOutCounts | None = None,
) -> Tau2Results:
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
        given=tuple(PlacedRow(_object(s, place), place, i, path) for i, (s, place) in enumerate(simulations)),
        left_out=left_out or LeftOutCounts(),
    )


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"{place} must be an object, not {type(value).__name__}")
    return value


def _json(path: Path) -> Any:
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise DataError(f"{path}: {problem.strerror}") from None
    except ValueError as problem:
        raise DataError(f"{path}: not JSON: {problem}") from None


# ---- and written

WRITTEN: Mapping[StopReason, str] = {
    StopReason.USER_STOP: "user_stop",
    StopReason.AGENT_STOP: "agent_stop",
    StopReason.TRANSFER: "user_stop",
    StopReason.MAX_TURNS: "max_steps",
    StopReason.TURN_LENGTH: "agent_error",
    StopReason.CONTEXT_FULL: "context_window_exceeded",
    StopReason.TOOL_ERRORS: "too_many_errors",
    StopReason.EMPTY_REPLY: "agent_error",
    StopReason.BROKEN_CALL: "agent_error",
    StopReason.INFRASTRUCTURE: "infrastructure_error",
}
PARTS = ("DB", "ENV_ASSERTION", "NL_ASSERTION", "ACTION", "COMMUNICATE")
_IDS = uuid.UUID("6f1f3a52-3c1c-5d0e-9a0b-7d1f3f0f6a10")


@dataclass(frozen=True)
class Tau2Run:
    """What TAU2 tells of a run besides its conversations.

    ``tasks``: as its task files have them. ``agent`` and ``user``: names of models, with the settings that requests
    carried. ``began``: ISO 8601. ``commit``: of muarl, as nobody's of TAU2 has played it. ``retrieval``: of
    banking_knowledge.
    """

    domain: str
    policy: str
    tasks: Sequence[Mapping[str, Any]]
    agent: str
    user: str | None
    began: str
    max_steps: int
    max_errors: int
    seed: int | None = None
    seeds: Sequence[int] = ()
    solo: bool = False
    agent_args: Mapping[str, Any] = field(default_factory=dict)
    user_args: Mapping[str, Any] = field(default_factory=dict)
    guidelines: str | None = None
    commit: str | None = None
    retrieval: str | None = None


def results_of(run: Tau2Run, episodes: Sequence[Episode]) -> dict[str, Any]:
    """The file's contents. Each task's trials are numbered by the trials' seeds, else as they come."""
    tried: Counter[str] = Counter()
    simulations = []
    for episode in episodes:
        number = tried[episode.task_id]
        tried[episode.task_id] += 1
        trial = run.seeds.index(episode.seed) if episode.seed in run.seeds else number
        simulations.append(_simulation(run, episode, trial))
    info: dict[str, Any] = {
        "git_commit": run.commit or f"muarl {__version__}",
        "num_trials": max(tried.values(), default=0),
        "max_steps": run.max_steps,
        "max_errors": run.max_errors,
        "user_info": {
            "implementation": "dummy_user" if run.solo else "user_simulator",
            "llm": run.user,
            "llm_args": dict(run.user_args),
            "global_simulation_guidelines": run.guidelines,
        },
        "agent_info": {
            "implementation": "llm_agent_solo" if run.solo else "llm_agent",
            "llm": run.agent,
            "llm_args": dict(run.agent_args),
        },
        "environment_info": {"domain_name": run.domain, "policy": run.policy, "tool_defs": None},
        "seed": run.seed,
    }
    if run.retrieval is not None:
        info["retrieval_config"] = run.retrieval
    return {"timestamp": run.began, "info": info, "tasks": list(run.tasks), "simulations": simulations}


def _simulation(run: Tau2Run, episode: Episode, trial: int) -> dict[str, Any]:
    seconds = sum(turn.seconds for turn in episode.turns)
    end = datetime.fromisoformat(run.began) + timedelta(seconds=seconds)
    return {
        "id": str(uuid.uuid5(_IDS, f"{run.began} {episode.id} {episode.seed}")),
        "task_id": episode.task_id,
        "timestamp": run.began,
        "start_time": run.began,
        "end_time": end.isoformat(),
        "duration": seconds,
        "termination_reason": WRITTEN[episode.stop],
        "agent_cost": episode.agent_usage.cost,
        "user_cost": episode.user_usage.cost,
        "reward_info": _reward(run, episode),
        "messages": [_message(turn, index) for index, turn in enumerate(episode.turns)],
        "trial": trial,
        "seed": episode.seed,
        "mode": "half_duplex",
        "info": {"muarl": {"id": episode.id, "stop": episode.stop.value, "error": episode.error}},
    }


def _reward(run: Tau2Run, episode: Episode) -> dict[str, Any] | None:
    """The verdict; what a part consists of is not kept with episodes (``muarl score --details`` tells it)."""
    verdict = episode.verdict
    if verdict is None:
        return None
    parts = {name: float(value) for name, value in verdict.breakdown.items() if name in PARTS}
    out: dict[str, Any] = {"reward": verdict.reward, "reward_basis": list(parts) or None, "reward_breakdown": parts}
    if "DB" in parts:
        out["db_check"] = {"db_match": parts["DB"] == 1.0, "db_reward": parts["DB"]}
    if verdict.note is not None:
        out["info"] = {"note": verdict.note}
    return out


def _message(turn: Turn, index: int) -> dict[str, Any]:
    message = turn.message
    out: dict[str, Any] = {"role": message.role, "content": message.content, "turn_idx": index, "timestamp": None}
    if message.role == "tool":
        identity = message.tool_call_id or ""
        return {**out, "id": identity, "requestor": message.requestor, "error": message.error}
    calls = [
        {"id": c.id, "name": c.name, "arguments": dict(c.arguments), "requestor": c.requestor}
        for c in message.tool_calls
    ]
    out |= {"tool_calls": calls or None, "generation_time_seconds": turn.seconds}
    raw = _raw(message)
    return out | {"raw_data": raw} if raw else out


def _raw(message: Message) -> dict[str, Any]:
    """What TAU2 has no field for: thoughts, and calls that could not be read."""
    broken = [c.to_json() for c in message.tool_calls if c.invalid is not None]
    found = {"reasoning": message.reasoning, "unreadable_calls": broken or None}
    return {name: value for name, value in found.items() if value is not None}
