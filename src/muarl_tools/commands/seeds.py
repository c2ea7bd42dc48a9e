"""``muarl seeds``: one experiment under several seeds, and their mean with a band."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from muarl.cli.command import TRAIN, Subcommand
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from pathlib import Path

    from muarl.config.sections import DomainConfig, RunConfig
    from muarl_tools.experiments.seeds import Spread

DEFAULTS = {"quickstart": "quickstart", "train": "cpu", "sft": "cpu"}
"""Commands that can be repeated, and their default presets."""
DOMAIN = ("--domain", "-d")
OURS = ("--seed", "--name", "--resume", "--dry-run")
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
) -> None:
    """Run an experiment under several seeds; print and draw the mean with the lowest and highest seed.

    Runs follow each other, each in a process of its own. Run the same command again after an interruption: finished
    seeds are kept, an interrupted one is resumed.

    [bold]Examples[/bold]

      muarl seeds 0,1,2 quickstart

      muarl seeds --name dapo 0-4 train --config cpu rl.method=dapo
    """
    from muarl.basics.errors import ConfigError
    from muarl.cli.named import approve_from_file
    from muarl.config.load import load_config
    from muarl.observe.rundir import RunDirectory
    from muarl_tools.experiments.seeds import spreads, write_seeds

    numbers, given = seed_numbers(wanted), list(arguments or ())
    if command not in DEFAULTS:
        raise ConfigError(f"seeds: {command!r} cannot be repeated; use one of {', '.join(DEFAULTS)}")
    if taken := [a for a in given if a.partition("=")[0] in OURS]:
        raise ConfigError(f"seeds: remove {taken[0]} after {command}; --name goes before the seeds")
    source, overrides = _config(command, given)
    name = name or load_config(source, overrides).name
    plan = [(n, load_config(source, [*overrides, f"seed={n}", f"name={name}-seed{n}"])) for n in numbers]
    approve_from_file(plan[0][1], source)
    _check_same(plan)
    for number, config in plan:
        _run(command, given, number, config.run_dir, config.domains)
    runs = [RunDirectory.at(config.run_dir) for _, config in plan]
    with working("Drawing the curves of all seeds"):
        page = write_seeds(plan[0][1].runs_dir / f"{name}-seeds.html", name, runs)
        found = spreads(runs)
    _print(name, found, len(runs))
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


def _config(command: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The configuration that the command will read: preset or file, and overrides."""
    from muarl.basics.errors import ConfigError
    from muarl.cli.named import approved_settings, domain_name, weighted

    source, overrides, domains, i = DEFAULTS[command], list[str](), list[str](), 0
    options = {"--checkpoint": "model.checkpoint", "-m": "model.checkpoint", "--cluster": "cluster.address"}
    options["--runs-dir"] = "runs_dir"
    while i < len(arguments):
        word, equals, value = arguments[i].partition("=")
        if word.startswith("-"):
            if not equals:
                i += 1
                value = arguments[i] if i < len(arguments) else ""
            if word in ("--config", "-c"):
                source = value
            elif word in DOMAIN:
                domains.append(value)
            elif word in options:
                overrides.append(f"{options[word]}={value}")
            else:
                raise ConfigError(
                    f"seeds: {command} has no option {word} that can be repeated; settings are written as KEY=VALUE, "
                    "such as rl.steps=3"
                )
        else:
            overrides += approved_settings([arguments[i]]) or []
        i += 1
    chosen = domain_name(weighted(domains))
    return source, [*overrides, *([] if chosen is None else [f"domain.name={json.dumps(chosen)}"])]


def _check_same(plan: Sequence[tuple[int, RunConfig]]) -> None:
    """ConfigError where a run of that name stands already and is another experiment's."""
    import yaml

    from muarl.basics.errors import ConfigError
    from muarl.basics.untrusted import read_yaml
    from muarl.observe.rundir import without_secrets

    for _, config in plan:
        file = config.run_dir / "config.yaml"
        if not file.is_file():
            continue
        wanted = without_secrets(config.model_copy(update={"resume": None}).model_dump(mode="json"))
        if read_yaml(file) != yaml.safe_load(yaml.safe_dump(wanted)):
            raise ConfigError(
                f"{config.run_dir}: holds a run with other settings: choose another --name, or remove that folder"
            )


def _run(command: str, arguments: Sequence[str], number: int, folder: Path, domains: Sequence[DomainConfig]) -> None:
    """One seed, from where it stands. MuarlError if it does not end well."""
    from muarl.basics.errors import MuarlError
    from muarl.environments.registry import is_reference
    from muarl.observe.rundir import RunDirectory

    if (folder / "status.json").is_file() and RunDirectory.at(folder).read_json("status").get("state") == "finished":
        echo(f"Seed {number}: finished before.", err=True)
        return
    begun = (folder / "config.yaml").is_file()
    references = [domain.name for domain in domains if is_reference(domain.name)]
    named = [word for name in references for word in ("--domain", name)]  # must be named each time
    words = ["--resume", str(folder), *named]
    if not begun:
        words = [*arguments, "--seed", str(number), "--name", folder.name]
    echo(f"Seed {number}: muarl {command} {' '.join(words)}", err=True)
    code = launch([command, *words])
    if code in (130, 143, -2, -15):
        raise KeyboardInterrupt
    if code:
        raise MuarlError(f"seeds: seed {number} ended with exit code {code}; run the same command again to resume")


def launch(words: Sequence[str]) -> int:
    """Run muarl with these arguments in a process of its own; returns its exit code."""
    program = [sys.executable, "-c", "from muarl.cli.main import main; main()"]
    return wait_for(subprocess.Popen([*program, *words]))


def wait_for(child: subprocess.Popen[bytes]) -> int:
    """The exit code of a process, which saves before it ends where it is stopped: Ctrl-C reaches it from the terminal,
    SIGTERM is passed on to it."""
    before = signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    try:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                continue
    finally:
        signal.signal(signal.SIGTERM, before)


def _print(name: str, found: Sequence[Spread], count: int) -> None:
    from rich.table import Table

    from muarl.accounts.metrics import NOT_CHECKED
    from muarl.observe.screen import Screen

    table = Table(title=f"{name}: {count} seeds")
    table.add_column("score")
    for title in ("mean", "lowest", "highest"):
        table.add_column(title, justify="right")
    for spread in found:
        shares = (
            [f"{value:.1%}" for value in (spread.mean, spread.low, spread.high)] if spread.values else [NOT_CHECKED]
        )
        table.add_row(spread.label, *shares)
    Screen().print(table)


COMMAND = Subcommand(seeds, TRAIN, 7, {"ignore_unknown_options": True, "allow_interspersed_args": False})
