"""Logged conversations as training tasks: who called and what for, the world they met, and the goal to be confirmed.

What the log's agent changed, is the proposed goal. Nobody but a person can say whether that was right, so a task
counts only once somebody has confirmed it (``environments/task_files.py``). What that person should look at stands in
its notes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.audit.calls import agent_calls
from muarl.chat import STOP_WORDS, Message, ToolCall
from muarl.domains.base import Action, Domain, Task
from muarl.domains.database import Database
from muarl.domains.gold import run_gold
from muarl.domains.world_from_log import Answered, Observer, answered_calls, assemble, differences
from muarl.environments.task_files import FiledTask, split_of
from muarl.errors import ConfigError, DataError

SHOWN = 160
"""Characters of a tool's answer in a note."""
CHANGED_NOTHING = (
    "the agent changed nothing, so doing nothing would earn this task's reward: add the correct calls to actions, or "
    "remove the task"
)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A conversation that no task can be made of, and why."""

    source: str
    reason: str


def task_of(
    messages: Sequence[Message],
    domain: Domain,
    domain_name: str,
    *,
    source: str = "",
    database: Database | None = None,
    observer: Observer | None = None,
    transfer_tools: Collection[str] = (),
    caller: str = "customer",
) -> FiledTask | Dropped:
    """The task that a logged conversation sets.

    ``domain``: the tools that it is played with, ``domain_name``: its name in tasks. ``database``: the state before the
    conversation, as far as it is known; ``observer``: how results show records, which are laid over it. The goal is
    what the agent's successful writes led to. The scenario consists of the customer's own words (see ``scenario``).
    ``transfer_tools``: hand the user over, besides those whose names begin with "transfer". ``caller``: what the user
    is called.
    """
    lines = customer_lines(messages)
    if not lines:
        return Dropped(source, f"no {caller} speaks in it")
    calls = list(answered_calls(messages))
    unknown = sorted({a.call.name for a in calls} - {*domain.tool_names("assistant"), *domain.tool_names("user")})
    notes = [f"tools that {domain_name} does not have: {', '.join(unknown)}"] if unknown else []
    try:
        world, late = _world(calls, domain, database, observer)
    except (DataError, KeyError, TypeError, ValueError) as problem:
        return Dropped(source, f"its database cannot be rebuilt: {problem}")
    if world is None:
        return Dropped(source, "its answers show no records: give the state before it with --database")
    actions = tuple(
        Action(a.call.name, dict(a.call.arguments), a.call.requestor)
        for a in calls
        if not a.error and a.call.name not in unknown and domain.kind_of(a.call.name) == "write"
    )
    text = json.dumps([[m.role, m.content, [[c.name, dict(c.arguments)] for c in m.tool_calls]] for m in messages])
    task_id = f"log-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    intent = actions[0].name if actions else "nothing written"
    task = Task(
        id=task_id,
        domain=domain_name,
        scenario=scenario(lines, actions, caller=caller),
        actions=actions,
        database=world,
        agenda={"lines": lines},
        tags={"intent": intent, "persona": "logged", "split": split_of(task_id)},
    )
    notes += [f"{what} was first seen after a change, and may have been otherwise before" for what in late]
    notes += _differing(domain, task, calls) + _doubts(messages, domain, calls, transfer_tools, caller)
    unreachable = run_gold(domain.world(task), task)
    if unreachable:
        notes.append(f"the goal cannot be reached in this world: {unreachable[0].what}")
    return FiledTask(task, False, tuple(notes), source)


def customer_lines(messages: Sequence[Message]) -> tuple[str, ...]:
    """What the customer said, without stop words and empty messages."""
    said = []
    for message in messages:
        if message.role == "user" and not message.tool_calls:
            text = message.content or ""
            for word in STOP_WORDS:
                text = text.replace(word, "")
            if text.strip():
                said.append(text.strip())
    return tuple(said)


def scenario(
    lines: Sequence[str], actions: Sequence[Action], story: str | None = None, *, caller: str = "customer"
) -> str:
    """What a model that plays this customer is told. ``story``: who calls and why, in place of the customer's lines.
    ``caller``: what customers are called."""
    told = story or "In the conversation that this was taken from, you said, in this order:\n" + "\n".join(
        f"- {line}" for line in lines
    )
    if actions:
        wanted = "What you want to have been done in the end, this and nothing else:\n" + "\n".join(
            f"- {action.name.replace('_', ' ')}: {_in_words(action.arguments)}" for action in actions
        )
    else:
        wanted = "In the end nothing was changed."
    return (
        f"You are a {caller} who asks a service for help.\n\n{told}\n\n{wanted}\n\nUse your own words. Say what you "
        "know when it is asked for, and make nothing up. Agree when the agent proposes what you want, and to nothing "
        "else."
    )


def _in_words(arguments: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    )


def _world(
    calls: Sequence[Answered], domain: Domain, database: Database | None, observer: Observer | None
) -> tuple[Database | None, list[str]]:
    """The database before the conversation, and the records that are not sure to have been so."""
    if observer is None:
        return database, []
    seen = assemble(observer, calls, domain.kind_of)
    if database is None:
        late = [f"{table} {key}" for table, key in seen.late]
        return (observer.complete(seen.over({})) if any(seen.tables.values()) else None), late
    changes = observer.complete(seen.over(database.tables)).tables
    late = [f"{table} {key}" for table, key in seen.late if key not in database.tables[table]]
    return database.derive(changes), late


def _differing(domain: Domain, task: Task, calls: Sequence[Answered]) -> list[str]:
    """Where the conversation would have gone otherwise in the task's world."""
    known = {*domain.tool_names("assistant"), *domain.tool_names("user")}
    ours = [a for a in calls if a.call.name in known]
    return [
        f"message {answered.message}: {answered.call.name} answered {_short(answered.result)} then, and in this task's "
        f"world {_short(now)}"
        for answered, now in differences(domain.world(task), ours)
    ]


def _short(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")


def _doubts(
    messages: Sequence[Message],
    domain: Domain,
    calls: Sequence[Answered],
    transfer_tools: Collection[str],
    caller: str,
) -> list[str]:
    """What speaks against taking the agent's changes for the customer's request."""
    records = agent_calls(messages, domain.kind_of)
    writes = [r for r in records if r.consented is not None]
    found = [
        f"message {r.index}: the {caller} was not asked, or did not agree, before {r.call.name}: did they want it?"
        for r in writes
        if not r.consented
    ]
    found += [
        f"message {a.message}: {_name(a.call)} failed ({_short(a.result)}): if the {caller} was to have it, write into "
        "actions what would have been right"
        for a in calls
        if a.error and a.call.name in domain.tool_names() and domain.kind_of(a.call.name) == "write"
    ]
    moved = [r for r in records if r.ok and (r.call.name.startswith("transfer") or r.call.name in transfer_tools)]
    if moved:
        found.append(f"the {caller} was transferred: was that correct, or should actions contain calls?")
    if not writes and not moved:
        found.append(CHANGED_NOTHING)
    return found


def _name(call: ToolCall) -> str:
    return f"{call.name}({_in_words(call.arguments)})"


def snapshot(tables: Any, observer: Observer | None, path: str) -> Database:
    """A database from the JSON of ``--database``. DataError if it is not one of the domain's."""
    if not isinstance(tables, Mapping) or not all(isinstance(t, Mapping) for t in tables.values()):
        raise DataError(f"--database {path}: must be an object of tables, each an object of records by their keys")
    if observer is None:
        return Database(tables)
    missing = [t for t in observer.tables if t not in tables]
    if missing:
        raise DataError(f"--database {path}: it lacks the table {missing[0]!r}; it has {', '.join(tables) or 'none'}")
    try:
        return observer.complete({t: dict(tables[t]) for t in observer.tables})
    except (KeyError, TypeError, ValueError) as problem:
        raise DataError(f"--database {path}: {problem}") from None


def check_own(domain_name: str, domain: Domain, observer: Observer | None, database: Database | None) -> None:
    """ConfigError if this domain's databases cannot be rebuilt from logs, and none is given."""
    if observer is None and database is None:
        tables = ", ".join(domain.base.tables) or "as the tasks have them"
        raise ConfigError(
            f"--database: databases of {domain_name} cannot be rebuilt from a log alone: give the database as it was "
            f"before the conversation, a JSON object of tables ({tables})"
        )
