"""``muarl tasks``: training tasks out of logged conversations, and a person's word that their goals are right; out of
what an agent failed at (``tasks_practise``); and what is wrong with tasks (``tasks_check``)."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import parse_json
from muarl.cli import options
from muarl.cli.command import WORLDS, Subcommand
from muarl.cli.environment_approval import approved
from muarl.cli.options import option
from muarl.observe.terminal import echo, working
from muarl_tools.commands.tasks_check import check
from muarl_tools.commands.tasks_practise import practise

if TYPE_CHECKING:
    from muarl.domains.world_from_log import Tables
    from muarl.endpoints.client import Endpoint
    from muarl.environments.environment import Environment
    from muarl.environments.log_tasks import DroppedLog
    from muarl.environments.task_files import FiledTask
    from muarl.records.conversation import LeftOutCounts

tasks = typer.Typer(
    no_args_is_help=True, help="Check tasks; create training tasks from logged conversations, or of what fails."
)
tasks.command("check")(check)
tasks.command("practise")(practise)
File = Annotated[Path, typer.Argument(help="A file of tasks, as from-log writes it.")]
OfDomain = Annotated[
    str, option("--domain", "The agent had its tools.", metavar="NAME", callback=approved, show_default=True)
]


@tasks.command("from-log")
def from_log(
    logs: Annotated[
        list[Path],
        typer.Argument(
            help="Conversations: JSON lines of messages, muarl's episodes, OpenTelemetry GenAI spans (OTLP "
            "JSON), responses of OpenAI's Responses API, ATIF trajectories."
        ),
    ],
    out: Annotated[Path, option("--out", "a file of tasks; those in it are kept.")],
    domain: OfDomain = "retail-generated",
    size: options.Largest = None,
    database: Annotated[
        Path | None,
        typer.Option(
            "--database", help="Database before the conversations, as JSON. Default: rebuilt from tool results."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", help="endpoint:MODEL[@URL] describes the customers. Default: their own messages."),
    ] = None,
) -> None:
    """Make training tasks out of logged conversations: customer, world, and a goal to be confirmed.

    The database is rebuilt from the logged tool results, over --database if given, and verified: each call must return
    what it returned then. Retail, airline and environments of the kit need no --database. The goal is what the agent
    changed. Since the agent may have been wrong, a task is used for training only after it has been confirmed; its
    notes say what to check.

      muarl tasks from-log live.jsonl --domain retail-generated --out tasks.jsonl
      muarl tasks show tasks.jsonl
      muarl tasks confirm tasks.jsonl log-3f2a9c01b7de
      muarl train --config mua-8b --domain retail-generated domain.tasks=tasks.jsonl
    """
    from muarl.basics.files import check_writable
    from muarl.environments.benchmark_training import benchmarks_played
    from muarl.environments.log_tasks import check_own, shown_by_all, snapshot, task_of
    from muarl.environments.task_files import read_tasks, write_tasks
    from muarl.records.conversation import LeftOutCounts

    for log in logs:
        if measured := benchmarks_played(log):
            raise ConfigError(
                f"{log}: holds conversations about a benchmark's own tasks ({', '.join(measured)}), which are for "
                "measuring: make tasks of your own logs"
            )
    check_writable(out, "--out", "tasks.jsonl")
    world, size = _environment(domain, size)
    with working(f"Making a world of {world.name}"):
        played = world.make_domain(size)
        own = next(world.iter_tasks("train", size=size)).domain
        observer = world.seen_in_logs() if database is None or not callable(world.observer) else None
        given = None if database is None else snapshot(_json(database), observer, str(database))
        check_own(own, played, observer, given)
    endpoint = None if by is None else _endpoint(by)
    found: dict[str, FiledTask] = {f.task.id: f for f in read_tasks(out)} if out.is_file() else {}
    left_out = LeftOutCounts.together()
    make = partial(
        task_of, domain=played, domain_name=own, database=given, observer=observer,
        transfer_tools=world.rules.transfer_tools, caller=world.caller,
    )  # fmt: skip
    seen = None if observer is None or not observer.strict else observer
    together = None if seen is None else partial(shown_by_all, domain=played, observer=seen)
    number, new, dropped = _made(logs, left_out, set(found), make, together)
    if endpoint is not None:
        new = _described(new, endpoint, world.caller, out)
    write_tasks(out, [*found.values(), *new])
    noted = sum(bool(f.notes) for f in new)
    echo(
        f"{number} conversations: {len(new)} new tasks, {noted} of them with notes; {out} has {len(found) + len(new)}."
    )
    if same := number - len(new) - len(dropped):
        echo(f"  {same} left out: the same conversation as another, or one that {out} has")
    _say_dropped(dropped)
    if left := str(left_out):
        echo(f"  {left}")
    file, of = shlex.quote(str(out)), shlex.join(["--domain", domain, *(["--size", size] if size else [])])
    echo(f"Next: muarl tasks show {file}, then muarl tasks confirm {file} ID ... {of}")


def _described(new: list[FiledTask], endpoint: Endpoint, caller: str, out: Path) -> list[FiledTask]:
    """The tasks with the customers as the model describes them; says what came of it."""
    import asyncio

    from muarl.environments.log_users import own_lines, retell

    with working(f"{endpoint.model} describes the customers of {len(new):,} tasks"):
        told = asyncio.run(retell(new, endpoint, caller=caller))
    left = own_lines(told, caller=caller)
    echo(f"--by: {endpoint.model} wrote {len(told) - len(left)} scenarios for ${endpoint.usage.cost:.2f}")
    if left:
        echo(
            f"  {len(left)} keep the {caller}'s own lines, as their notes say. The first: {left[0]}. To have one "
            f"described, take its task out of {out} and run this again."
        )
    return told


def _made(
    logs: list[Path],
    left_out: LeftOutCounts,
    known: set[str],
    make: Callable[..., FiledTask | DroppedLog],
    together: Callable[..., Tables] | None,
) -> tuple[int, list[FiledTask], list[DroppedLog]]:
    """How many conversations there are, the tasks made of them that are not ``known``, and what could be none.
    ``make``: a task of one's messages; ``together``: what the messages of all show."""
    from muarl.environments.log_tasks import DroppedLog
    from muarl.observe.progress import Progress
    from muarl.records.reading import read

    talks, new, dropped = [], [], []
    with Progress() as progress:
        with progress.phase("reading", unit="conversations") as reading:
            for talk in (talk for log in logs for talk in read(log, left_out)):
                talks.append((talk.place, talk.messages))
                reading.advance()
        if not talks:
            raise DataError(f"{', '.join(map(str, logs))}: no conversations in it")
        others = None if together is None else together(m for _, m in talks)
        with progress.phase("making tasks", len(talks), unit="conversations") as making:
            for place, messages in talks:
                made = make(messages, source=place, others=others)
                if isinstance(made, DroppedLog):
                    dropped.append(made)
                elif made.task.id not in known:
                    new.append(made)
                    known.add(made.task.id)
                making.advance()
    return len(talks), new, dropped


def _say_dropped(dropped: list[DroppedLog]) -> None:
    """Why conversations became no tasks, and which."""
    for reason, count in Counter(d.reason.partition(":")[0] for d in dropped).most_common():
        these = [d for d in dropped if d.reason.startswith(reason)]
        echo(f"  {count} left out: {reason} (the first: {these[0].source})")
        for one in (d for d in these if d.reason != reason):
            echo(f"    {one.source}: {one.reason.partition(': ')[2]}")


@tasks.command("show")
def show(
    file: File, ids: Annotated[list[str] | None, typer.Argument(help="Print only these tasks, in full.")] = None
) -> None:
    """Show a file's tasks: one line each, or those named in full, with what to look at before confirming.

    muarl tasks show tasks.jsonl
    muarl tasks show tasks.jsonl log-3f2a9c01b7de
    """
    found = _read(file)
    if ids:
        for filed in _chosen(found, ids, file):
            _in_full(filed)
        return
    for filed in found:
        task = filed.task
        state = "confirmed" if filed.confirmed else f"{len(filed.notes)} notes" if filed.notes else "to confirm"
        wanted = ", ".join(a.name for a in task.actions or ()) or "nothing changed"
        echo(f"{task.id:<18} {state:<10} {task.tags['split']:<5} {wanted}")
    done = sum(f.confirmed for f in found)
    echo(f"{len(found)} tasks, {done} confirmed. In full: muarl tasks show {file} ID")


@tasks.command("confirm")
def confirm(
    file: File,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of the tasks whose goals are correct.")] = None,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="All tasks without notes: consent was given, and every tool result is reproduced."
        ),
    ] = False,
    domain: OfDomain = "retail-generated",
    size: options.Largest = None,
) -> None:
    """Confirm goals: from now on these tasks are trained on. Each goal is tried in its world first.

    Where the log's agent was wrong, fix the task's actions in the file, then confirm it.

      muarl tasks confirm tasks.jsonl log-3f2a9c01b7de log-90ab12cd34ef
      muarl tasks confirm tasks.jsonl --clean
    """
    from muarl.environments import task_files as taskfiles

    found = _read(file)
    if not ids and not clean:
        raise ConfigError("confirm: name the tasks, or say --clean for all without notes")
    chosen = [*_chosen(found, ids or [], file), *(f for f in found if clean and not f.notes and not f.confirmed)]
    world, size = _environment(domain, size)
    with working(f"Trying {len(chosen):,} goals in their worlds"):
        played = world.make_domain(size)
        for filed in chosen:
            if not filed.made:  # its goal is its generator's
                taskfiles.check(filed, played)
    named = frozenset(f.task.id for f in chosen)
    taskfiles.write_tasks(file, taskfiles.confirm(found, named))
    echo(f"{len(named)} confirmed; {sum(f.confirmed or f.task.id in named for f in found)} of {len(found)} are.")


def _environment(name: str, size: str | None) -> tuple[Environment, str | None]:
    """The environment of a log or a task file, and its size (None where it comes in one)."""
    from muarl.environments.registry import find

    environment = find(name)
    if environment.is_benchmark:
        hint = f"; give --domain {environment.practice}" if environment.practice else ""
        raise ConfigError(f"--domain: {name} is a benchmark, which takes no other tasks{hint}")
    if size is not None:
        environment.check_size(size, "--size")
    return environment, size or (environment.sizes[-1] if environment.sizes else None)


def _json(path: Path) -> object:
    try:
        found: object = parse_json(path.read_text(encoding="utf-8"))
        return found
    except OSError as problem:
        raise DataError(f"--database {path}: {problem.strerror or problem}") from None
    except ValueError as problem:
        raise DataError(f"--database {path}: not JSON: {problem}") from None


def _endpoint(spec: str) -> Endpoint:
    from muarl.endpoints.client import Endpoint
    from muarl.endpoints.config import parse_endpoint

    found = Endpoint(parse_endpoint(spec))
    echo(f"--by: {found.about}", err=True)
    return found


def _read(file: Path) -> list[FiledTask]:
    from muarl.environments.task_files import read_tasks

    return read_tasks(file)


def _chosen(found: list[FiledTask], ids: list[str], file: Path) -> list[FiledTask]:
    known = {f.task.id: f for f in found}
    for wanted in ids:
        if wanted not in known:
            raise ConfigError(f"{file} has no task {wanted!r}: `muarl tasks show {file}` lists them")
    return [known[wanted] for wanted in dict.fromkeys(ids)]


def _in_full(filed: FiledTask) -> None:
    task = filed.task
    echo(f"{task.id}  {'confirmed' if filed.confirmed else 'not confirmed'}  from {filed.source}")
    echo(textwrap.indent(task.scenario, "  "))
    echo("  goal:" if task.actions else "  goal: nothing is changed")
    for action in task.actions or ():
        echo(f"    {action.name}({json.dumps(dict(action.arguments), ensure_ascii=False)})")
    if filed.made:
        echo(f"  made again from: {filed.made}\n")
        return
    tables = {} if task.database is None else task.database.tables
    echo("  world: " + (", ".join(f"{len(r)} {t}" for t, r in tables.items()) or "the domain's own"))
    for note in filed.notes:
        echo(f"  look at: {note}")
    echo()


COMMAND = Subcommand(tasks, WORLDS, 32)
