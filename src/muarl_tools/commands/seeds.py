"""``muarl seeds``: one experiment under several seeds, and their mean with a band."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from muarl.cli.command import TRAIN, Subcommand
from muarl.observe.terminal import echo, working

COMMANDS = ("quickstart", "train", "sft")
"""Commands that can be repeated."""
OURS = ("seed", "name", "resume", "dry_run", "assume")
"""Options of theirs that a repetition sets itself, or that make no sense there."""
MOST = 100


def seeds(
    wanted: Annotated[str, typer.Argument(metavar="SEEDS", help="Seeds: 0,1,2 or 0-4.")],
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="quickstart, train or sft.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]...", help="Its options and KEY=VALUE settings.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the experiment; its runs are NAME-seed0, ... Default: the config's."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Seeds at once, each of which then prints to NAME-seedN.log.")
    ] = 1,
) -> None:
    """Run an experiment under several seeds; print and draw the mean with the lowest and highest seed.

    Runs follow each other, each in a process of its own. Run the same command again after an interruption: finished
    seeds are kept, an interrupted one is resumed.

    [bold]Examples[/bold]

      muarl seeds 0,1,2 quickstart

      muarl seeds --name dapo 0-4 train --config cpu rl.method=dapo

      muarl seeds --jobs 3 0,1,2 train --config one-gpu
    """
    from muarl.basics.errors import ConfigError
    from muarl.observe.rundir import RunDirectory
    from muarl_tools.experiments.seeds import seeds_table, write_seeds
    from muarl_tools.experiments.stages import Experiment, asked_of, by_command, command_stage, show

    numbers, given = seed_numbers(wanted), list(arguments or ())
    if command not in COMMANDS:
        raise ConfigError(f"seeds: {command!r} cannot be repeated; use one of {', '.join(COMMANDS)}")
    once = asked_of(command, *given)
    if taken := [option for option in OURS if option in once.given]:
        raise ConfigError(f"seeds: remove --{taken[0].replace('_', '-')} after {command}; --name goes before the seeds")
    name = name or once.config.name
    stages = [command_stage(command, *given, "--seed", str(n), "--name", f"{name}-seed{n}") for n in numbers]
    Experiment(stages, by_command).run(lambda text: echo(text, err=True), jobs=jobs)
    runs = [RunDirectory.at(stage.folder) for stage in stages]
    with working("Drawing the curves of all seeds"):
        page = write_seeds(stages[0].folder.parent, name, runs)
        shown = seeds_table(name, runs)
    show(shown)
    echo(f"Page: {page}")


def seed_numbers(text: str) -> list[int]:
    """Seeds in the order given, each once. ConfigError for anything else than numbers and ranges."""
    from muarl.basics.errors import ConfigError

    found: dict[int, None] = {}
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip())
        if match is None:
            raise ConfigError(f"seeds: {text!r} must look like 0,1,2 or 0-4")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MOST:
            raise ConfigError(f"seeds: {part.strip()!r} is no range of at most {MOST} seeds")
        found.update(dict.fromkeys(range(first, last + 1)))
    return list(found)


COMMAND = Subcommand(seeds, TRAIN, 7, {"ignore_unknown_options": True, "allow_interspersed_args": False})
