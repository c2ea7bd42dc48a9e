"""Logged conversations as training tasks: who called and what for, the world they met, and the goal to be confirmed.

What the log's agent changed, is the proposed goal. Nobody but a person can say whether that was right, so a task
counts only once somebody has confirmed it (``environments/task_files.py``). What that person should look at stands in
its notes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muarl.audit.calls import agent_calls
from muarl.basics.errors import ConfigError, DataError
from muarl.domains.base import Domain, World
from muarl.domains.database import Database
from muarl.domains.frozen import canonical
from muarl.domains.gold import run_gold
from muarl.domains.tasks import Action, Task
from muarl.domains.world_from_log import (
    AnsweredCall,
    Observer,
    Tables,
    answered_calls,
    assemble,
    differences,
    put_together,
)
from muarl.environments.task_files import FiledTask, split_of
from muarl.types.chat import STOP_WORDS, Message, ToolCall

SHOWN = 160
"""Characters of a tool's answer in a note."""
NOT_REBUILT = "its database cannot be rebuilt"
CHANGED_NOTHING = (
    "the agent changed nothing, so doing nothing would earn this task's reward: add the correct calls to actions, or "
    "remove the task"
)


@dataclass(frozen=True, slots=True)
class DroppedLog:
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
    others: Tables | None = None,
    transfer_tools: Collection[str] = (),
    caller: str = "customer",
) -> FiledTask | DroppedLog:
    """The task that a logged conversation sets.

    ``domain``: the tools that it is played with, ``domain_name``: its name in tasks. ``database``: the state before the
    conversation, as far as it is known; ``observer``: how results show records, which are laid over it. ``others``:
    what the conversations of a log have shown together (``shown_by_all``), for one that does not show enough itself.
    The goal is what the agent's successful writes led to. The scenario consists of the customer's own words (see
    ``scenario``). ``transfer_tools``: hand the user over, besides those whose names begin with "transfer". ``caller``:
    what the user is called.
    """
    lines = customer_lines(messages)
    if not lines:
        return DroppedLog(source, f"no {caller} speaks in it")
    calls = list(answered_calls(messages))
    unknown = sorted({a.call.name for a in calls} - {*domain.tool_names("assistant"), *domain.tool_names("user")})
    notes = [f"tools that {domain_name} does not have: {', '.join(unknown)}"] if unknown else []
    actions = tuple(
        Action(a.call.name, dict(a.call.arguments), a.call.requestor)
        for a in calls
        if not a.error and a.call.name not in unknown and domain.kind_of(a.call.name) == "write"
    )
    text = json.dumps([[m.role, m.content, [[c.name, dict(c.arguments)] for c in m.tool_calls]] for m in messages])
    task_id = f"log-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    task = Task(
        id=task_id,
        domain=domain_name,
        scenario=scenario(lines, actions, caller=caller),
        actions=actions,
        agenda={"lines": lines},
        tags={
            "intent": actions[0].name if actions else "nothing written",
            "persona": "logged",
            "split": split_of(task_id),
        },
    )
    try:
        made = _rebuilt(task, calls, domain, database, observer, others)
    except (DataError, KeyError, TypeError, ValueError) as problem:
        return DroppedLog(source, f"{NOT_REBUILT}: {problem}")
    if made is None:
        return DroppedLog(source, "its answers show no records: give the state before it with --database")
    if made.lacking:
        return DroppedLog(source, f"{NOT_REBUILT}: {made.lacking}")
    notes += [f"{t} {k} was first seen after a change, and may have been otherwise before" for t, k in made.late]
    notes += [*made.notes, *made.differing, *_doubts(messages, domain, calls, transfer_tools, caller)]
    unreachable = run_gold(domain.world(made.task), made.task)
    if unreachable:
        notes.append(f"the goal cannot be reached in this world: {unreachable[0].what}")
    return FiledTask(made.task, False, tuple(notes), source)


def shown_by_all(conversations: Iterable[Sequence[Message]], domain: Domain, observer: Observer) -> Tables:
    """The records that the conversations of a log have shown, each before that conversation changed any, but for those
    of which two have shown different things."""
    return put_together(assemble(observer, answered_calls(messages), domain.kind_of) for messages in conversations)


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
    account = story or "In the conversation that this was taken from, you said, in this order:\n" + "\n".join(
        f"- {line}" for line in lines
    )
    if actions:
        outcome = "What you want to have been done in the end, this and nothing else:\n" + "\n".join(
            f"- {action.name.replace('_', ' ')}: {_in_words(action.arguments)}" for action in actions
        )
    else:
        outcome = "In the end nothing was changed."
    return (
        f"You are a {caller} who asks a service for help.\n\n{account}\n\n{outcome}\n\nUse your own words. Say what "
        "you know when it is asked for, and make nothing up. Agree when the agent proposes what you want, and to "
        "nothing else."
    )


def _in_words(arguments: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    )


@dataclass(frozen=True, slots=True)
class _Rebuilt:
    """A task in a world that was put together."""

    task: Task
    late: list[tuple[str, str]]
    """Records that are not sure to have been so before."""
    differing: list[str]
    """Where the conversation would have gone otherwise."""
    lacking: str = ""
    """What of it cannot be done there."""
    notes: tuple[str, ...] = ()


def _rebuilt(
    task: Task,
    calls: Sequence[AnsweredCall],
    domain: Domain,
    database: Database | None,
    observer: Observer | None,
    others: Tables | None,
) -> _Rebuilt | None:
    """The task in the world before the conversation; None if nothing is known of it. Where its own answers do not show
    enough, what others have shown is added, if that helps."""
    own = _tried(task, calls, domain, *_world(calls, domain, database, observer))
    if own is None or observer is None or not observer.strict or database is not None:
        return own
    own = _checked(own, calls, domain)
    if not others or not (own.lacking or own.differing):
        return own
    wide = _tried(task, calls, domain, *_world(calls, domain, None, observer, others))
    wide = None if wide is None else _checked(wide, calls, domain)
    if wide is None or wide.lacking or (len(wide.differing) >= len(own.differing) and not own.lacking):
        return own
    return replace(wide, notes=("its world has records that other conversations of the log have shown",))


def _checked(made: _Rebuilt, calls: Sequence[AnsweredCall], domain: Domain) -> _Rebuilt:
    """With what cannot be done in it. Records that were first shown after a change are left out if all answers stay the
    same without them: then a change has made them."""
    if made.late and made.task.database is not None:
        gone: Tables = {}
        for table, key in made.late:
            gone.setdefault(table, {})[key] = None
        without = _tried(made.task, calls, domain, made.task.database.derive(gone), [])
        if without is not None and not without.differing and not _lacking(domain, without, calls):
            return without
    return replace(made, lacking=_lacking(domain, made, calls))


def _world(
    calls: Sequence[AnsweredCall],
    domain: Domain,
    database: Database | None,
    observer: Observer | None,
    others: Tables | None = None,
) -> tuple[Database | None, list[tuple[str, str]]]:
    """The database before the conversation, and (table, key) of the records that are not sure to have been so."""
    if observer is None:
        return database, []
    seen = assemble(observer, calls, domain.kind_of)
    if database is None:
        more = others or {}
        late = [(table, key) for table, key in seen.late if key not in more.get(table, {})]
        if not any(seen.tables.values()):
            return None, late
        own = seen.over(more)
        return observer.complete({table: {**more.get(table, {}), **own[table]} for table in own}), late
    changes = observer.complete(seen.over(database.tables)).tables
    late = [(table, key) for table, key in seen.late if key not in database.tables[table]]
    return database.derive(changes), late


def _tried(
    task: Task, calls: Sequence[AnsweredCall], domain: Domain, world: Database | None, late: list[tuple[str, str]]
) -> _Rebuilt | None:
    if world is None:
        return None
    placed = replace(task, database=world)
    return _Rebuilt(placed, late, _differing(domain, placed, calls))


def _lacking(domain: Domain, made: _Rebuilt, calls: Sequence[AnsweredCall]) -> str:
    """The first of the agent's changes that cannot be made in a world as it was made then, and why; empty if all can.
    A record that was first shown when it had been changed tells nothing of how it was."""
    ours = _known(domain, calls)
    done = {id(a) for a in ours if not a.error and domain.kind_of(a.call.name) == "write"}
    for answered, now in differences(domain.world(made.task), ours):
        if id(answered) in done:
            return (
                f"message {answered.message}: {_name(answered.call)} answered {_short(answered.result)} then, and with "
                f"the records that were shown before it answers {_short(now)}"
            )
    unreachable = run_gold(domain.world(made.task), made.task)
    return unreachable[0].what if unreachable else _changed_late(domain, made, [a for a in ours if id(a) in done])


def _changed_late(domain: Domain, made: _Rebuilt, writes: Sequence[AnsweredCall]) -> str:
    """Of records that were first shown after writes: one that a write changes, or may have changed, since one of them
    changes nothing in this world; empty if there is none."""
    world = domain.world(made.task)
    for answered in writes if made.late else ():
        before = (world.digest(), *_records(world, made.late))
        world.call(answered.call.requestor, answered.call)
        after = (world.digest(), *_records(world, made.late))
        changed = [late for late, one, other in zip(made.late, before[1:], after[1:], strict=True) if one != other]
        if changed or before == after:
            table, key = (changed or made.late)[0]
            return f"message {answered.message}: {answered.call.name}: {table} {key} was shown after it only"
    return ""


def _records(world: World, of: Iterable[tuple[str, str]]) -> list[str]:
    """The text of records; empty for those that there are not."""
    view = world.toolkit().db
    return [canonical(view[table].peek(key)) if key in view[table] else "" for table, key in of]


def _known(domain: Domain, calls: Sequence[AnsweredCall]) -> list[AnsweredCall]:
    """The calls of tools that a domain has."""
    names = {*domain.tool_names("assistant"), *domain.tool_names("user")}
    return [a for a in calls if a.call.name in names]


def _differing(domain: Domain, task: Task, calls: Sequence[AnsweredCall]) -> list[str]:
    """Where the conversation would have gone otherwise in the task's world."""
    return [
        f"message {answered.message}: {answered.call.name} answered {_short(answered.result)} then, and in this task's "
        f"world {_short(now)}"
        for answered, now in differences(domain.world(task), _known(domain, calls))
    ]


def _short(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")


def _doubts(
    messages: Sequence[Message],
    domain: Domain,
    calls: Sequence[AnsweredCall],
    transfer_tools: Collection[str],
    caller: str,
) -> list[str]:
    """What speaks against taking the agent's changes for the customer's request."""
    records = agent_calls(messages, domain.kind_of)
    writes = [r for r in records if r.consented is not None]
    doubts = [
        f"message {r.index}: the {caller} was not asked, or did not agree, before {r.call.name}: did they want it?"
        for r in writes
        if not r.consented
    ]
    doubts += [
        f"message {a.message}: {_name(a.call)} failed ({_short(a.result)}): if the {caller} was to have it, write into "
        "actions what would have been right"
        for a in calls
        if a.error and a.call.name in domain.tool_names() and domain.kind_of(a.call.name) == "write"
    ]
    moved = [r for r in records if r.ok and (r.call.name.startswith("transfer") or r.call.name in transfer_tools)]
    if moved:
        doubts.append(f"the {caller} was transferred: was that correct, or should actions contain calls?")
    if not writes and not moved:
        doubts.append(CHANGED_NOTHING)
    return doubts


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
            f"--database: databases of {domain_name} cannot be rebuilt from a log alone, since nothing says which "
            "records its tools show: give the database as it was before the conversations, a JSON object of tables, "
            f"each an object of records by their keys ({tables}); or declare the environment with the kit "
            "(docs/kit.md), or give it an observer (docs/domains.md)"
        )
