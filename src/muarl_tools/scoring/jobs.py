"""Recorded conversations and calls with the domains and tasks that they are of. Errors name the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import ConfigError, DataError
from muarl.records.chat import ChatConversation
from muarl.records.conversation import RecordedConversation
from muarl.records.episodes import EpisodeConversation
from muarl.records.messages import read_call
from muarl.records.reading import read
from muarl.records.rows import AS_WRITTEN, PlacedRow, items, json_lines, text_lines
from muarl.records.rows import field as read_field
from muarl.types.episode import StopReason
from muarl_worlds.families import family
from muarl_worlds.tau.tau1_trajectories import Tau1Conversation
from muarl_worlds.tau.tau2_results import TERMINATIONS, Simulation

if TYPE_CHECKING:
    from muarl.domains.base import Domain
    from muarl.domains.tasks import Task
    from muarl.types.chat import Message, ToolCall

BENCHMARKS = ("tau1", "tau2")
RESULTS = {"tau1": "list of entries with traj", "tau2": "results.json, with tasks and simulations"}
"""What the benchmarks' own programs write."""
_ROWS = {"messages", "turns"}
"""Fields of which a recorded conversation has one."""


@dataclass(frozen=True)
class ScoringJob:
    """One conversation to be scored.

    ``row``: what the answer says of it beside the score. ``stop``: how it ended, None where the messages tell (TAU1).
    ``solo``: whether the agent worked alone. ``problem``: why it cannot be scored, None if it may be.
    """

    row: Mapping[str, Any]
    bench: str = "tau2"
    domain: Domain | None = None
    task: Task | None = None
    messages: tuple[Message, ...] = ()
    stop: StopReason | str | None = None
    solo: bool = False
    problem: str | None = None


@dataclass
class RecordedWorlds:
    """The domains and tasks of one benchmark, each looked up once. ``domain``, ``split``: where a file names none.

    ConfigError if the benchmark, or the domain in it, is unknown.
    """

    bench: str
    domain: str | None = None
    split: str | None = None
    _domains: dict[str, Domain] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.bench not in BENCHMARKS:
            known = ", ".join(BENCHMARKS)
            raise ConfigError(f"there is no benchmark {self.bench!r} to replay or score; there is: {known}")
        if self.domain is not None and self.domain not in self.module.DOMAINS:
            raise ConfigError(f"--domain: {self.bench} has {', '.join(self.module.DOMAINS)}, not {self.domain!r}")

    @property
    def module(self) -> Any:
        """The benchmark's own module."""
        return family(self.bench)

    def find(self, name: str, place: str) -> Domain:
        """The domain of that name, with the benchmark's semantics and its data read. DataError says where it was named,
        or how to install the data."""
        if name not in self.module.DOMAINS:
            raise DataError(f"{place}: domain {name!r} is not one of {', '.join(self.module.DOMAINS)}")
        if name not in self._domains:
            domain: Domain = self.module.domain(name)
            _ = domain.base  # read now: what is missing stops the command, rather than failing each conversation
            self._domains[name] = domain
        return self._domains[name]

    def named(self, row: Mapping[str, Any], place: str) -> str:
        """The domain that a row names, else the one meant where none is named. DataError if there is neither."""
        if "domain" not in row and self.domain is not None:
            return self.domain
        if "domain" not in row:
            raise DataError(f"{place}: it lacks the field domain; name it there, or with --domain for the whole file")
        return str(read_field(row, "domain", str, "a string", place))

    def task(self, row: Mapping[str, Any], place: str, *, optional: bool = False) -> tuple[Domain, Task | None]:
        """A row's domain and task; None for a null task if that is ``optional``. DataError says what is wrong."""
        name = self.named(row, place)
        domain = self.find(name, place)
        if optional and "task_id" in row and row["task_id"] is None:
            return domain, None
        try:
            return domain, self._task(name, row, "a string" + (" or null" if optional else ""), place)
        except DataError as problem:
            text = str(problem)
            raise DataError(text if text.startswith(place) else f"{place}: {text}") from None

    def _task(self, name: str, row: Mapping[str, Any], words: str, place: str) -> Task:
        if self.bench == "tau2":
            found: Task = self.module.task(name, read_field(row, "task_id", str, words, place))
            return found
        given = self.module.task_id_of(row)
        if given is None:
            raise DataError(f"{place}: it lacks the field task_id")
        found = self.module.task(name, given, split=self.split)
        return found


@dataclass(frozen=True)
class ReplayJob:
    """A line of recorded calls, to be run in a fresh world. ``task``: None for the domain's own database."""

    row: PlacedRow
    domain: Domain
    task: Task | None
    calls: tuple[ToolCall, ...]

    def run(self) -> dict[str, Any]:
        """The line with what the tools answer, and with the hashes of the state after the last call."""
        try:
            world = self.domain.world(self.task)
        except DataError as problem:
            raise DataError(f"{self.row.place}: {problem}") from None
        answered = []
        for given, call in zip(self.row.value["calls"], self.calls, strict=True):
            result = world.call(call.requestor, call)
            answered.append({**given, "content": result.content, "error": result.error})
        hashes = {"agent_hash": world.full_hash("assistant"), "user_hash": world.full_hash("user")}
        return {**self.row.value, "calls": answered, **hashes}


def replay_jobs(worlds: RecordedWorlds, path: Path) -> Iterator[ReplayJob]:
    """The lines of a file of recorded calls. DataError names the place of what is malformed."""
    for row in json_lines(path):
        domain, task = worlds.task(row.value, row.place, optional=True)
        yield ReplayJob(row, domain, task, tuple(read_call(c, p) for c, p in items(row.value, "calls", row.place)))


def jobs(worlds: RecordedWorlds, path: Path, *, fresh_tasks: bool = False) -> Iterator[ScoringJob]:
    """The conversations of a file or folder, to be scored. ``fresh_tasks``: by the installed tasks where the file has
    tasks of its own. What is wrong with one of a benchmark's own results is told of that one alone; else DataError
    names the place."""
    if path.is_dir() and not (worlds.bench == "tau2" and (path / "results.json").is_file()):
        raise DataError(f"{path} is a folder, and no run of TAU2 (results.json and simulations/)")
    other = DataError(f"{path}: it is neither JSON lines of conversations nor a {RESULTS[worlds.bench]}")
    begun = list(islice(text_lines(path), 2)) if path.is_file() and path.suffix != ".parquet" else None
    if begun == []:
        return  # of nothing there is nothing to score
    single = begun is not None and len(begun) < 2
    found = False
    for one in read(path, lines=AS_WRITTEN, most=None):
        found = True
        if isinstance(one, Simulation) and worlds.bench == "tau2":
            yield _simulation(worlds, one, fresh_tasks)
        elif isinstance(one, Tau1Conversation) and worlds.bench == "tau1":
            yield _historical(worlds, one)
        elif one.benchmark or not (_ROWS & set(one.value) or (one.row.line and not single)):
            raise other
        else:
            yield _recorded(worlds, one)
    if not found and worlds.bench != "tau2":  # a run of TAU2 may have no simulation
        raise other


def _recorded(worlds: RecordedWorlds, one: RecordedConversation) -> ScoringJob:
    """A row that names its domain and task."""
    row = one.value
    domain, task = worlds.task(row, one.place)
    assert task is not None  # a trajectory without a task is refused above
    messages, stop, solo = _told(one, ended=worlds.bench == "tau2")
    told = {"domain": worlds.named(row, one.place), "task_id": row.get("task_id", task.id)}
    told |= {name: row[name] for name in ("id", "trial", "split") if name in row and "turns" not in row}
    return ScoringJob(told, worlds.bench, domain, task, messages, stop, solo)


def _told(one: RecordedConversation, *, ended: bool) -> tuple[tuple[Message, ...], StopReason | str | None, bool]:
    """Messages, how they ended, and whether the agent worked alone. ``ended``: the row must say how the conversation
    ended; else None is given where it does not."""
    if isinstance(one, EpisodeConversation):
        return one.messages, one.episode.stop, one.episode.stop is StopReason.AGENT_STOP
    reason = None
    if ended or "termination_reason" in one.value:
        reason = read_field(one.value, "termination_reason", str, "a string", one.place)
        if reason not in TERMINATIONS:
            raise DataError(f"{one.place}: termination_reason {reason!r} is not one of {', '.join(TERMINATIONS)}")
    messages = one.exact_messages if isinstance(one, ChatConversation) else one.messages
    solo = one.value.get("solo", False)
    if not isinstance(solo, bool):
        raise DataError(f"{one.place}: solo must be true or false, not {type(solo).__name__}")
    return messages, reason, solo


def _historical(worlds: RecordedWorlds, one: Tau1Conversation) -> ScoringJob:
    """One entry of a run of TAU1."""
    from muarl_worlds.tau import tau1_benchmark as tau1

    told = {"domain": worlds.domain, "task_id": one.value.get("task_id"), "trial": one.value.get("trial")}
    try:
        found = one.check()
        if found.reward is not None:
            told["recorded_reward"] = found.reward
        task = tau1.recorded_task(found, domain_name=worlds.domain, split=worlds.split)
        told |= {"domain": task.domain, "task": task.id}
        return ScoringJob(told, "tau1", worlds.find(task.domain, one.place), task, found.messages, found.termination)
    except DataError as problem:
        return ScoringJob(told, "tau1", problem=str(problem))


def _simulation(worlds: RecordedWorlds, one: Simulation, fresh_tasks: bool) -> ScoringJob:
    """One simulation of a run of TAU2."""
    row, run = one.value, one.run
    domain = worlds.find(run.domain, f"{run.path}: info.environment_info")
    told = {"domain": run.domain, "task_id": row.get("task_id"), "id": row.get("id"), "trial": row.get("trial")}
    if one.reward is not None:
        told["recorded_reward"] = one.reward
    try:
        task = worlds.module.task(run.domain, one.task_id) if fresh_tasks else run.task(one.task_id)
        stop = one.termination_reason
        # What was said matters only where a participant ended it, and other simulations may have been cut anywhere.
        messages = one.messages if stop in ("user_stop", "agent_stop") else ()
        return ScoringJob(told, "tau2", domain, task, messages, stop, run.solo)
    except DataError as problem:
        return ScoringJob(told, "tau2", problem=str(problem))
