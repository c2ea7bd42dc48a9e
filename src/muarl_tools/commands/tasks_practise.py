"""``muarl tasks practise``: new training tasks of the kinds that an agent failed at."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.basics.errors import ConfigError, DataError
from muarl.cli import options
from muarl.cli.environment_approval import approved
from muarl.cli.options import in_runs, option
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl.domains.tasks import Kind, Task
    from muarl.environments.environment import Environment
    from muarl.observe.rundir import RunDirectory
    from muarl.types.episode import Episode
    from muarl_tools.practice_tasks import Record


def practise(
    run: Annotated[Path, typer.Argument(help="The folder of a training run or an evaluation, with its episodes.")],
    out: Annotated[Path, option("--out", "a file of tasks; those in it are kept.")],
    tasks: Annotated[int, option("--tasks", min=1, show_default=True)] = 200,
    floor: Annotated[
        float,
        typer.Option("--floor", min=0.0, max=1.0, help="Share of the tasks that is divided evenly among what failed."),
    ] = 0.2,
    seed: Annotated[int, option("--seed", min=0, show_default=True)] = 0,
    episodes: Annotated[
        list[str] | None,
        option(
            "--episodes",
            "Default: the later half of the training steps that were kept, else the evaluation.",
            metavar="NAME",
        ),
    ] = None,
    domain: Annotated[
        str | None,
        option(
            "--domain",
            "Needed where the run has several, or one in code of your own.",
            metavar="NAME",
            callback=approved,
        ),
    ] = None,
    runs_dir: options.InRunsDir = None,
) -> None:
    """Make new training tasks of the kinds that failed, in proportion to their failures.

    A kind is an intent with a difficulty. The tasks are of the training split and of a seed that no run draws from, so
    none of them was played before, and none is held out. They are written with their addresses, and made again where
    they are played, in the same environment and size.

      muarl tasks practise runs/quickstart --out practise.jsonl
      muarl tasks practise runs/eval --out practise.jsonl --tasks 500
      muarl train --checkpoint runs/quickstart domain.tasks=practise.jsonl
    """
    from muarl.environments.task_draws import check_makes
    from muarl.environments.task_files import FiledTask, read_tasks, write_tasks
    from muarl.observe.rundir import RunDirectory
    from muarl.runs.tasks import practice_seed
    from muarl_tools.practice_tasks import filed, make_tasks, quotas, record_by_kind

    run = in_runs(run, runs_dir)
    folder = RunDirectory.at(run.expanduser())
    sections = _sections(folder)
    environment = _environment(sections, domain, run)
    check_makes(environment)
    size = _size(sections, environment)
    with working(f"Reading the episodes of {run}"):
        played = _episodes(folder, episodes, environment)
    record = record_by_kind(played)
    if not record:
        raise DataError(
            f"{run}: none of its {len(played)} episodes of {environment.name} says of which kind its task is (the tag "
            "`intent`): give the environment's tasks this tag"
        )
    wanted = quotas(record, tasks, floor)
    if not wanted:
        total = sum(found.episodes for found in record.values())
        raise DataError(f"{run}: nothing failed in {total} episodes, so there is nothing to practise")
    known: dict[str, FiledTask] = {f.task.id: f for f in read_tasks(out)} if out.is_file() else {}
    seen = {e.task_id for e in played} | known.keys()
    with working(f"Making {tasks:,} tasks of {environment.name} of the kinds that failed"):
        made = make_tasks(environment, wanted, size=size, seed=practice_seed(seed), known=seen)
    if not made:
        kinds = ", ".join(map(str, wanted))
        raise ConfigError(f"{environment.name} makes no tasks of the kinds that failed in {run}: {kinds}")
    source = f"failures in {folder.name}"
    write_tasks(out, [*known.values(), *(filed(task, source) for task in made)])
    _say(record, made)
    echo(f"{len(made)} new tasks of {environment.name}; {out} has {len(known) + len(made)}.")
    if len(made) < tasks:
        echo(f"  {tasks - len(made)} fewer than asked for: the generator makes too few of some kinds")
    words = ["--checkpoint", _model(folder), f"domain.name={domain or environment.name}"]
    words += [*([f"domain.size={size}"] if size else []), f"domain.tasks={out}"]
    echo(f"Next: muarl train {shlex.join(words)}")


def _model(folder: RunDirectory) -> str:
    """What to train: the run's own checkpoint, else the one that it evaluated, else MODEL, for the person to name."""
    from muarl.backends.checkpoint_names import existing_checkpoint
    from muarl.basics.errors import CheckpointError
    from muarl.basics.untrusted import read_yaml

    stored: Any = read_yaml(folder.path / "config.yaml")  # a mapping, as ``_sections`` has seen
    agent, model = stored.get("eval"), stored.get("model")
    names = [str(folder.path)]
    if isinstance(agent, Mapping) and agent.get("agent") == "sampled" and isinstance(model, Mapping):
        names += [name for name in [model.get("checkpoint")] if isinstance(name, str)]
    for name in names:
        try:
            existing_checkpoint(name)
        except CheckpointError:
            continue
        return name
    return "MODEL"


def _sections(folder: RunDirectory) -> list[Mapping[str, Any]]:
    """The sections ``domain`` of a run's configuration. DataError if there is none."""
    from muarl.basics.untrusted import read_yaml
    from muarl.config.mixing import as_sections

    path = folder.path / "config.yaml"
    stored = read_yaml(path) if path.is_file() else None
    given = stored.get("domain") if isinstance(stored, Mapping) else None
    sections = [s for s in as_sections(given) if isinstance(s, Mapping) and isinstance(s.get("name"), str)]
    if not sections:
        raise DataError(f"{folder.path}: config.yaml does not say which environment its tasks are of (domain.name)")
    return sections


def _environment(sections: list[Mapping[str, Any]], domain: str | None, run: Path) -> Environment:
    """The run's environment, or the one of several that the person has named."""
    from muarl.environments.registry import find, is_reference

    names = [str(section["name"]) for section in sections]
    if domain is None and len(names) > 1:
        raise ConfigError(f"--domain: {run} has {', '.join(names)}: name one of them")
    if domain is not None and domain not in names and not is_reference(domain):
        raise ConfigError(f"--domain: {run} has {', '.join(names)}, not {domain}")
    return find(domain or names[0])


def _size(sections: list[Mapping[str, Any]], environment: Environment) -> str | None:
    """The size that the run's tasks had; None for an environment of one size."""
    if not environment.sizes:
        return None
    own = [s for s in sections if str(s["name"]).rpartition(":")[2] == environment.name] or sections
    size = str(own[0].get("size") or environment.sizes[0])
    environment.check_size(size)
    return size


def _episodes(folder: RunDirectory, names: list[str] | None, environment: Environment) -> list[Episode]:
    """The episodes to learn from, of the environment. ConfigError or DataError if there are none."""
    from muarl.accounts.metrics import DOMAIN

    there = sorted(path.stem for path in folder.episodes.glob("*.jsonl"))
    steps = [name for name in there if name.startswith("train-")]
    chosen = names or steps[len(steps) // 2 :] or [name for name in there if name == "eval"]
    for name in chosen:
        if name not in there:
            raise ConfigError(f"--episodes: {folder.path} has no {name}; it has {', '.join(there) or 'none'}")
    if not chosen:
        hint = f"; choose from {', '.join(there)} with --episodes" if there else ""
        raise DataError(
            f"{folder.path} keeps no episodes of a training step or an evaluation{hint}. Training keeps them unless "
            "rl.save_episodes=none"
        )
    found = [
        e
        for name in chosen
        for e in folder.read_episodes(name)
        if e.domain == environment.task_domain and e.tags.get(DOMAIN, environment.name) == environment.name
    ]
    if not found:
        raise DataError(f"{folder.path}: no episode of {environment.name} in {', '.join(chosen)}")
    return found


def _say(record: Mapping[Kind, Record], made: list[Task]) -> None:
    """How each kind that failed went, and how many tasks it got."""
    from muarl.domains.tasks import kind_of

    got = Counter(kind_of(task.tags) for task in made)
    failed = {kind: found for kind, found in record.items() if found.failed}
    width = max(len(str(kind)) for kind in failed)
    for kind, found in sorted(failed.items(), key=lambda item: (-item[1].failed, item[0])):
        echo(f"  {kind!s:<{width}}  failed {found.failed} of {found.episodes}, new tasks {got[kind]}")
