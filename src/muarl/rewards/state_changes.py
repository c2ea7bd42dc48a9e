"""What an episode did to its database: its tool calls run again in a fresh world, and states compared.

An episode's file holds calls and answers, not states. Where its task is at hand (``environments.recorded_episodes``
makes it again) and its tools run in this process, the recorded calls are run again. Answers that differ from the
recorded ones are counted: the differences then need not be those of the episode.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from muarl.basics.errors import MuarlError
from muarl.domains.base import Domain, World
from muarl.domains.database import View
from muarl.domains.tasks import Task
from muarl.rewards.gold import gold_world
from muarl.rewards.replay import replay
from muarl.types.chat import Message, Requestor, ToolCall
from muarl.types.episode import Episode

CALLS, SECONDS = 400, 10.0
"""A replay ends after so many calls or so long."""
_ABSENT: Any = object()
USERS = "user’s "
"""What the names of the user's own tables begin with here."""

State = dict[tuple[str, str], Any]
"""Records by (table, key); of a large database only those that differ from its base."""


class CannotReplay(MuarlError):
    """Why an episode's state cannot be had again."""


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs."""

    record: str
    """As "table / key"."""
    path: str
    """Within the record; None: there is no such value."""
    before: str | None
    after: str | None


@dataclass(frozen=True)
class ReplayOutcome:
    """An episode run again."""

    task: Task
    domain: Domain
    """Where it was run."""
    calls: Mapping[tuple[int, int], tuple[Change, ...]] = field(default_factory=dict)
    """(message, number of its call) to what that call changed."""
    total: tuple[Change, ...] = ()
    """First state to last."""
    wrong: tuple[Change, ...] | None = None
    """Last state to the right one, None where the task does not say what is right, or where that contradicts the
    episode's verdict."""
    differing: int = 0
    """How many answers were others than recorded."""


class ReplayRecorded(Protocol):
    """Runs an episode again, given its run's configuration.

    ``measured``: it was played by a benchmark's own protocol. ``known``: its task as the run's tasks.jsonl has it.
    CannotReplay says why not.
    """

    def __call__(
        self,
        episode: Episode,
        config: Mapping[str, Any],
        *,
        measured: bool = False,
        known: Mapping[str, Any] | None = None,
    ) -> ReplayOutcome: ...


def run_again(domain: Domain, task: Task, episode: Episode) -> ReplayOutcome:
    """An episode's calls run again in its task's world. CannotReplay says why not."""
    try:
        world = domain.world(task)
        if task.history:
            replay(world, task.history)
        first = last = state_of(world)
        calls: dict[tuple[int, int], tuple[Change, ...]] = {}
        differing = 0
        for at, _, recorded, answer in recorded_answers(world, episode.messages[len(task.history) :]):
            at = at[0] + len(task.history), at[1]
            differing += _parsed(answer) != _parsed(recorded)
            now = state_of(world)
            if changes := compare(last, now, world):
                calls[at] = changes
            last = now
        domain.sync(world)
        last = state_of(world)
        wrong = _wrong(domain, task, world, last)
        said = None if episode.verdict is None else episode.verdict.breakdown.get("DB")
        if wrong is not None and said is not None and episode.stop.chosen and bool(said) != (not wrong):
            wrong = None
        return ReplayOutcome(task, domain, calls, compare(first, last, world), wrong, differing)
    except MuarlError:
        raise
    except Exception as problem:  # a hostile or foreign episode may break a world in any way
        raise CannotReplay(f"Its calls cannot be run again: {type(problem).__name__}: {problem}"[:500]) from None


def _wrong(domain: Domain, task: Task, world: World, last: State) -> tuple[Change, ...] | None:
    if task.actions is None:
        return None
    gold = gold_world(domain, task)
    if world.digest() == gold.digest():
        return ()
    return compare(compared_state(last, world), compared_state(state_of(gold), world), world)


def recorded_answers(world: World, messages: list[Message]) -> Iterator[tuple[tuple[int, int], ToolCall, str, str]]:
    """Every recorded call run again: (where it stands, the call, recorded answer, answer now). One that did not reach
    its tool, because the system failed, is not run, and an answer that the system has altered counts as the same."""
    deadline, done = time.monotonic() + SECONDS, 0
    for index, message in enumerate(messages):
        if message.role == "user" and not message.tool_calls:
            world.hear(message)
        if message.role not in ("assistant", "user") or not message.tool_calls:
            continue
        recorded: list[Message] = []
        for answer in messages[index + 1 :]:
            if answer.role != "tool":
                break
            recorded.append(answer)
        calls = message.tool_calls[: len(recorded)]
        done += len(calls)
        if done > CALLS or time.monotonic() > deadline:
            raise CannotReplay(f"There are too many calls to run again (more than {CALLS}, or {SECONDS:.0f} seconds).")
        if not calls:
            continue
        reached = [call for call, answer in zip(calls, recorded, strict=False) if answer.ran]
        now = world.call_all(calls[0].requestor, reached)
        for number, (call, answer) in enumerate(zip(calls, recorded, strict=False)):
            then = answer.content or ""
            result = next(now).content if answer.ran else then
            yield (index, number), call, then, then if answer.faults else result


# States.


def state_of(world: World) -> State:
    """What may have changed in a world, by table and key."""
    whole = world.json_state()
    if whole is not None:
        return _flat(whole)
    out: State = {}
    for side in ("assistant", "user"):
        kit = world.toolkit(side)
        view = getattr(kit, "db", None)
        if view is None:
            continue
        prefix = "" if side == "assistant" else USERS
        for table in view:
            for key, record in view.taken(table).items():
                out[prefix + table, key] = _ABSENT if record is None else _plain(record)
    return out


def compared_state(state: State, world: World) -> State:
    """What of a state the reward compares."""
    compared = {}
    for at, value in state.items():
        view = _view(world, at)
        if view is None or at[0].removeprefix(USERS) in view.base.compared:
            compared[at] = value
    return compared


def _view(world: World, at: tuple[str, str]) -> View | None:
    """The view of the side whose table it is; None for worlds that have none."""
    side: Requestor = "user" if at[0].startswith(USERS) else "assistant"
    return getattr(world.toolkit(side), "db", None) if world._kits else None


def _flat(state: Mapping[str, Mapping[str, Any]]) -> State:
    return {(owner, str(name)): value for owner, values in state.items() for name, value in values.items()}


def _plain(record: Any) -> Any:
    """A copy that later calls do not change."""
    if hasattr(record, "model_dump"):
        record = record.model_dump(mode="json")
    return json.loads(json.dumps(record, default=str))


def base_record(world: World, at: tuple[str, str]) -> Any:
    """A record as the world began with it, for states that hold only what differs."""
    view, (table, key) = _view(world, at), at
    if view is None:
        return _ABSENT
    records = view.base.tables.get(table.removeprefix(USERS), {})
    return _plain(records[key]) if key in records else _ABSENT


def compare(before: State, after: State, world: World) -> tuple[Change, ...]:
    """What differs between two states of one world, record by record."""
    out: list[Change] = []
    for at in dict.fromkeys([*before, *after]):
        old = before[at] if at in before else base_record(world, at)
        new = after[at] if at in after else base_record(world, at)
        out += _changes(f"{at[0]} / {at[1]}", "", old, new)
    return tuple(out)


def _changes(record: str, path: str, old: Any, new: Any) -> Iterator[Change]:
    if old is not _ABSENT and new is not _ABSENT and json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            step = f"{path}.{key}" if path else str(key)
            yield from _changes(record, step, old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        for index in range(max(len(old), len(new))):
            a = old[index] if index < len(old) else _ABSENT
            b = new[index] if index < len(new) else _ABSENT
            yield from _changes(record, f"{path}[{index}]", a, b)
    elif old is not _ABSENT or new is not _ABSENT:
        yield Change(record, path, _text(old), _text(new))


def _text(value: Any) -> str | None:
    return None if value is _ABSENT else json.dumps(value, ensure_ascii=False)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
