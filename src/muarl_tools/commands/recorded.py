"""Recorded calls and conversations, as ``muarl replay`` and ``muarl score`` read them. Errors name the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import parse_json
from muarl.records.messages import field as read_field
from muarl.records.messages import items, json_rows, read_message
from muarl_worlds.families import family

if TYPE_CHECKING:
    from muarl.domains.base import Domain, Task
    from muarl.types.chat import Message
    from muarl.types.episode import StopReason

BENCHMARKS = ("tau1", "tau2")


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


def conversation(
    row: Mapping[str, Any], place: str, *, told: bool = True
) -> tuple[tuple[Message, ...], StopReason | str | None, bool]:
    """Messages, how they ended, and whether the agent worked alone: of a recorded trajectory or an episode of ours.

    ``told``: the row must say how the conversation ended; else None is given where it does not.
    """
    from muarl.types.episode import Episode, StopReason
    from muarl_worlds.tau.tau2_benchmark.results import TERMINATIONS

    if "turns" in row and "messages" not in row:
        try:
            episode = Episode.from_json(row)
        except (ValueError, TypeError, AttributeError) as problem:
            raise DataError(f"{place}: {problem}") from None
        return tuple(episode.messages), episode.stop, episode.stop is StopReason.AGENT_STOP
    reason = None
    if told or "termination_reason" in row:
        reason = read_field(row, "termination_reason", str, "a string", place)
        if reason not in TERMINATIONS:
            raise DataError(f"{place}: termination_reason {reason!r} is not one of {', '.join(TERMINATIONS)}")
    messages = tuple(read_message(m, p) for m, p in items(row, "messages", place))
    solo = row.get("solo", False)
    if not isinstance(solo, bool):
        raise DataError(f"{place}: solo must be true or false, not {type(solo).__name__}")
    return messages, reason, solo


def whole_file(path: Path) -> Any:
    """A file's contents if it is one JSON value, None if it has a value on each line (or none at all).

    DataError if it begins as a value that spans lines, and is none.
    """
    text = _text(path)
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or (len(lines) > 1 and _is_json(lines[0])):
        return None
    try:
        return parse_json(text)
    except ValueError as problem:
        if lines[0].strip() in ("{", "["):
            raise DataError(f"{path}: not JSON: {problem}") from None
        return None  # what reads lines says what is wrong with the first


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, and no run of TAU2 (results.json and simulations/)") from None
    except UnicodeDecodeError as problem:
        raise DataError(f"{path} is not UTF-8 text: {problem.reason} at byte {problem.start}") from None


def rows(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each line's object and where it stands. DataError names file and line of anything else."""
    yield from json_rows(_text(path), path)
