"""``muarl coldstart``: conversations to start from, synthesised and filtered, or an existing set checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from muarl.cli.endpoint_options import endpoint_settings
from muarl.cli.named import approved_scenarios
from muarl.cli.train import DryRun, Name, Overrides, RunsDir, Seed, named, run_recipe
from muarl.observe.terminal import echo, working

WITH_MODEL = {"teacher": "endpoint", "tools": "imagined", "user": "llm"}
"""What each part's setting says where a model plays it."""


def coldstart(
    overrides: Overrides = None,
    config: Annotated[
        str,
        typer.Option(
            "--config",
            "--preset",
            "-c",
            help="A preset (offline, teacher), or a YAML file of your own.",
            callback=named,
        ),
    ] = "offline",
    count: Annotated[int | None, typer.Option("--count", "-n", help="Number of conversations to keep.")] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            "--domain",
            "-d",
            metavar="NAME",
            help="Only this environment (repeatable): a name, FILE.py:NAME, package.module:NAME, or a folder. Default: "
            "all nine scenarios.",
            callback=approved_scenarios,
        ),
    ] = None,
    teacher: Annotated[
        str | None, typer.Option("--teacher", help="Who serves: expert, endpoint:MODEL or endpoint:MODEL@URL.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Who plays the customer: agenda or endpoint:MODEL[@URL].")
    ] = None,
    tools: Annotated[
        str | None, typer.Option("--tools", help="Who plays the imagined tools: world or endpoint:MODEL[@URL].")
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", help="Model that judges conversations after the filters: endpoint:MODEL.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", help="Start no new conversations after spending this many dollars.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Token budget over all models.")] = None,
    name: Name = None,
    runs_dir: RunsDir = None,
    seed: Seed = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Run folder to resume; finished conversations are not repeated.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Replay the conversations of this dataset and report differences.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Synthesise conversations between customers and an agent with tools, and keep the good ones.

    Draws tasks from seeds, plays a conversation for each, and filters them: valid calls, goal reached, policy followed,
    nothing leaked, no repetition, no near-duplicates. Writes a dataset with a card; every dropped conversation is kept
    with the reason. Without any model, scripted experts serve simulated customers.

    [bold]Examples[/bold]

      muarl coldstart

      muarl coldstart --count 200 --scenario hotel-generated --scenario mcp-sqlite

      muarl coldstart --preset teacher --teacher endpoint:MODEL --user endpoint:MODEL --tools endpoint:MODEL

      muarl coldstart --resume runs/coldstart

      muarl coldstart --check runs/coldstart/dataset

      muarl sft sft.demonstrations_file=runs/coldstart/dataset/episodes.jsonl --checkpoint path/to/model
    """
    if check is not None:
        with working(f"Replaying the conversations of {check}"):
            from muarl.recipes.coldstart_check import check_dataset

            for line in check_dataset(check):
                echo(line)
        return
    settings: dict[str, Any] = {
        "coldstart.count": count,
        "coldstart.scenarios": scenario or None,
        "coldstart.judge": judge,
        "coldstart.max_cost": max_cost,
        "coldstart.max_tokens": max_tokens,
        "coldstart.seed": seed,
        "name": name,
        "runs_dir": None if runs_dir is None else str(runs_dir),
        "seed": seed,
    }
    settings |= dict(_part("teacher", "coldstart.teacher", "coldstart.endpoint", teacher, {"expert": "expert"}))
    settings |= dict(_part("tools", "coldstart.tools", "coldstart.tools_endpoint", tools, {"world": "world"}))
    settings |= dict(_part("user", "user.kind", "user.endpoint", user, {"agenda": "agenda"}))
    run_recipe("coldstart", config, overrides, dry_run, settings, resume)


def _part(option: str, key: str, section: str, spec: str | None, words: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Settings for one who takes part, as a person names it."""
    from muarl.basics.errors import ConfigError

    if spec is None:
        return
    if spec.startswith("endpoint:"):
        yield key, WITH_MODEL[option]
        yield from endpoint_settings(section, spec)
    elif spec in words:
        yield key, words[spec]
    else:
        known = ", ".join(words)
        raise ConfigError(f"--{option}: {spec!r} is unknown; use endpoint:MODEL, endpoint:MODEL@URL or {known}")
