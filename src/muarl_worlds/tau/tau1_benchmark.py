"""TAU1's official tasks and scoring (sierra-research/tau-bench), from the installed data (``muarl data add tau1``).

Task ids are "SPLIT/NUMBER", the number being the place in upstream's list: "test/0". Upstream's trajectory files give
the bare number, which is read as one of ``test``.

How upstream plays an episode: the user speaks first, to ``chat.GREETING``, which the agent does not see. The
agent's system prompt is the policy alone. It acts at most ``MAX_STEPS`` times, each time speaking or making one call.
The episode ends when the user's answer holds ``STOP_WORD``, or when the transfer tool is called; otherwise its reward
is 0. The user's prompt is the one that ``muarl.users.guidelines`` calls "tau1".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from muarl.basics.errors import DataError, MuarlError
from muarl.domains.base import Domain, Renderer, Semantics, World
from muarl.domains.database import Database
from muarl.domains.tasks import Action, Task
from muarl.rewards import outcome
from muarl.rewards.checks import Checks
from muarl.rewards.completion import COMPLETION, completion
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import StopReason, Verdict
from muarl_worlds import data
from muarl_worlds.tau.tau1.airline import Tau1Airline
from muarl_worlds.tau.tau1.retail import Tau1Retail
from muarl_worlds.tau.tau1.world import NO_OBSERVATION, Tau1Domain, tau1_database
from muarl_worlds.tau.tau1_source import TAU1_SPLITS
from muarl_worlds.tau.tau1_trajectories import STOP_WORD, TRANSFER, Tau1Conversation, ending

__all__ = [
    "DOMAINS", "MAX_STEPS", "NAME", "STOP_WORD", "TRANSFER", "agent_prompt", "domain", "ending",
    "recorded_task", "recorded_world", "score", "score_trajectory", "splits", "task",
    "task_from_json", "task_id_of", "tasks",
]  # fmt: skip

NAME = "tau1"

MAX_STEPS = 30
"""How often the agent acts at most."""

_KINDS: Mapping[str, type[Tau1Domain]] = {"retail": Tau1Retail, "airline": Tau1Airline}

DOMAINS = tuple(_KINDS)


def _kind(name: str) -> type[Tau1Domain]:
    if name not in _KINDS:
        raise DataError(f"domain {name!r}: {NAME} has {', '.join(DOMAINS)}")
    return _KINDS[name]


def domain(
    name: str,
    *,
    semantics: Semantics = "official",
    tools: Sequence[str] | None = None,
    render: Renderer | None = None,
) -> Tau1Domain:
    """An official domain with its own database and policy. DataError if unknown or not installed."""
    kind = _kind(name)
    database, policy = _world_of(name, str(data.path(NAME)))
    return kind(database=database, policy=policy, semantics=semantics, tools=tools, render=render)


@cache
def _world_of(name: str, installed: str) -> tuple[Database, str]:
    names = _kind(name).tables
    tables = {table: data.read_json(NAME, f"{name}/data/{table}.json") for table in names}
    return tau1_database(tables, names), data.read_text(NAME, f"{name}/wiki.md")


def agent_prompt(policy: str) -> str:
    """The system prompt that TAU1 gives to an agent that calls tools: the policy itself."""
    return policy


@cache
def _split(name: str, split: str, installed: str) -> tuple[Task, ...]:
    rows = data.read_json(NAME, f"{name}/tasks_{split}.json")
    return tuple(task_from_json(row, name, f"{split}/{i}") for i, row in enumerate(rows))


def splits(name: str) -> dict[str, frozenset[str]]:
    """The task ids of each official split (retail: test, train, dev; airline: test)."""
    return {split: frozenset(t.id for t in tasks(name, split)) for split in _splits_of(name)}


def _splits_of(name: str) -> tuple[str, ...]:
    _kind(name)
    return TAU1_SPLITS[name]


def tasks(name: str, split: str | None = "test") -> tuple[Task, ...]:
    """The official tasks of a split, in upstream's order; None gives all, test first. DataError if there is none."""
    known = _splits_of(name)
    if split is not None and split not in known:
        raise DataError(f"{NAME} {name} has no split {split!r}; it has {', '.join(known)}")
    installed = str(data.path(NAME))
    return tuple(t for s in known if split in (None, s) for t in _split(name, s, installed))


def task(name: str, task_id: str | int, *, split: str | None = None) -> Task:
    """One official task by its id ("test/3", also written "test-3"), or by its bare number in ``split`` or in test.

    DataError if there is none of that id.
    """
    found = re.fullmatch(r"(?:(\w+)[/-])?0*(\d+)", str(task_id), re.ASCII) if type(task_id) in (str, int) else None
    if found is not None and found[1] in (None, *_splits_of(name)) and (found[1] is None or split in (None, found[1])):
        known = tasks(name, found[1] or split or "test")
        if len(found[2]) < 9 and int(found[2]) < len(known):
            return known[int(found[2])]
    raise DataError(f"task_id {task_id!r}: {NAME} {name} has no such task" + (f" in {split}" if split else ""))


def task_id_of(row: Mapping[str, Any]) -> str | int | None:
    """The task that a line of recorded calls or conversations names: by ``task_id``, or by its number ``i``; either
    alone or with ``split``. None if it names none."""
    given = row.get("task_id", row.get("i"))
    split = row.get("split")
    bare = type(given) is int or (isinstance(given, str) and given.isdigit())
    return f"{split}/{given}" if bare and isinstance(split, str) else given


def task_from_json(row: Any, domain_name: str, task_id: str) -> Task:
    """A task from one entry of a task list. DataError names the task and what is malformed."""
    try:
        actions, outputs = row["actions"], row["outputs"]
        if not all(isinstance(o, str) for o in outputs) or not isinstance(row["instruction"], str):
            raise TypeError("instruction and outputs must be text")
        for action in actions:
            if not isinstance(action["name"], str) or not isinstance(action["kwargs"], dict):
                raise TypeError("an action has a name and an object kwargs")
        return Task(
            id=task_id,
            domain=domain_name,
            scenario=row["instruction"],
            actions=tuple(Action(a["name"], a["kwargs"], action_id=str(i)) for i, a in enumerate(actions)),
            reward_basis=("DB", "COMMUNICATE") if outputs else ("DB",),
            communicate_info=tuple(outputs),
            tags={"benchmark": NAME, "split": task_id.partition("/")[0], "user_id": row["user_id"]},
            benchmark=True,
        )
    except KeyError as missing:
        raise DataError(f"{NAME} {domain_name} task {task_id!r}: it lacks the field {missing}") from None
    except (TypeError, ValueError, AttributeError) as problem:
        raise DataError(f"{NAME} {domain_name} task {task_id!r} is malformed: {problem}") from None


def score(task: Task, world: World, messages: Sequence[Message]) -> Verdict:
    """The verdict on a conversation that ended by the user's stop word or a transfer, from its live world.

    DB: the state has the hash of the state that the gold actions lead to. COMMUNICATE, only where the task has outputs:
    each of them was said to the user, case and the speech's commas aside; words beside a tool call were not said.
    """
    parts = {"DB": float(world.digest() == outcome.gold_digest(world.domain, task))}
    told_all: tuple[bool, ...] = ()
    if task.communicate_info:
        told = next((i for i, m in enumerate(messages) if m.role == "user"), len(messages))  # what precedes is greeting
        said = [m.content or "" for m in messages[told:] if m.role == "assistant" and not m.tool_calls]
        plain = [text.lower().replace(",", "") for text in said]
        told_all = tuple(any(o.lower() in text for text in plain) for o in task.communicate_info)
        parts["COMMUNICATE"] = float(all(told_all))
    reward, found = min(parts.values()), Checks(db=bool(parts["DB"]), communicate=told_all)
    done = completion(task, world, messages, found, success=reward >= 1)
    return Verdict(reward, parts, audit={} if done is None else {COMPLETION: done})


def score_trajectory(
    domain: Domain,
    task: Task,
    messages: Sequence[Message],
    termination: StopReason | str | None = None,
    *,
    strict: bool = True,
) -> Verdict:
    """The verdict on a recorded conversation: its writing calls run again in a fresh world, which is scored.

    ``termination``: how it ended, None to tell from the messages (see ``ending``). ``strict``: ReplayError if a tool
    answers otherwise than recorded; without it the note says how many do. ReplayError also if a call has no answer.
    """
    if termination is None:
        termination, end = ending(messages)
        messages = messages[:end]
    if not outcome.ended(termination):
        return Verdict(0.0, note=f"ended early: {termination}")
    world, different = domain.world(task), 0
    for call, answer in _answered(messages):
        if call.name not in domain.tool_names() or domain.kind_of(call.name) != "write":
            continue
        content = world.call("assistant", call).content
        if content == NO_OBSERVATION:
            return Verdict(0.0, note=f"{call.name} gives no text, at which TAU1's episode breaks off")
        if not _same(content, answer.content):
            if strict:
                raise outcome.ReplayError(
                    f"call {call.id or call.name}: {call.name} now answers {content[:300]!r}, "
                    f"but the recorded answer is {(answer.content or '')[:300]!r}"
                )
            different += 1
    verdict = score(task, world, messages)
    if not different:
        return verdict
    answers = "1 tool answers" if different == 1 else f"{different} tools answer"
    return Verdict(verdict.reward, verdict.breakdown, note=f"{answers} otherwise than recorded")


def _answered(messages: Sequence[Message]) -> list[tuple[ToolCall, Message]]:
    """Every call with the tool message that answers it, which follows at once and in order."""
    pairs: list[tuple[ToolCall, Message]] = []
    for i, message in enumerate(messages):
        for n, call in enumerate(message.tool_calls if message.role == "assistant" else (), 1):
            answer = messages[i + n] if i + n < len(messages) else None
            if answer is None and call.name == TRANSFER:
                break  # the end, and a transfer changes nothing
            if answer is None or answer.role != "tool":
                raise outcome.ReplayError(f"call {call.id or call.name}: no tool message follows it")
            if answer.tool_call_id not in (call.id, None, ""):
                raise outcome.ReplayError(f"call {call.id!r} is followed by the result of {answer.tool_call_id!r}")
            pairs.append((call, answer))
    return pairs


def _same(content: str, recorded: str | None) -> bool:
    if content == recorded:
        return True
    try:
        return bool(json.loads(content) == json.loads(recorded or ""))
    except (ValueError, RecursionError):
        return False


def recorded_task(found: Tau1Conversation, *, domain_name: str | None = None, split: str | None = None) -> Task:
    """The official task that a recorded conversation is about.

    ``domain_name``: meant where the conversation does not tell. The split is the one named, else the one that has the
    recorded task (same user, same actions) at that place, else test. DataError if there is no such task.
    """
    name = found.domain or domain_name
    if name is None:
        raise DataError(f"{found.place}: nothing in it tells the domain; name one of {', '.join(DOMAINS)}")
    if split is None and found.task_row is not None:
        for known in _splits_of(name):
            row = tasks(name, known)
            if found.index < len(row) and _is_task(row[found.index], found.task_row):
                return row[found.index]
    try:
        return task(name, found.index, split=split)
    except DataError as problem:
        raise DataError(f"{found.place}: {problem}") from None


def recorded_world(found: Tau1Conversation, name: str) -> tuple[Domain | None, Task | None]:
    """The domain of that name and the task that a recorded conversation is about; None both if the data are not
    installed, or hold no such task."""
    try:
        task = recorded_task(found, domain_name=name)
        return domain(name), task
    except MuarlError:
        return None, None


def _is_task(task: Task, given: Mapping[str, Any]) -> bool:
    wanted = [{"name": a.name, "kwargs": a.arguments} for a in task.actions or ()]
    return bool(given.get("user_id") == task.tags["user_id"] and given.get("actions") == wanted)
