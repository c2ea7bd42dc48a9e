"""``muarl coldstart``: conversations to start from, synthesised and filtered, or an existing set checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muarl.cli import options
from muarl.cli.environment_approval import approved_scenarios
from muarl.cli.options import RUN, given, option, played_by
from muarl.cli.train import run_recipe
from muarl.observe.terminal import echo, working

COLDSTART: options.Table = {
    **RUN,
    "count": "coldstart.count",
    "domain": "coldstart.scenarios",
    "judge": "coldstart.judge",
    "max_cost": "coldstart.max_cost",
    "max_tokens": "coldstart.max_tokens",
    "seed": lambda seed: {"seed": seed, "coldstart.seed": seed},
    "teacher": played_by("--teacher", "coldstart.teacher", "coldstart.endpoint", "endpoint", ("expert",)),
    "tools": played_by("--tools", "coldstart.tools", "coldstart.tools_endpoint", "imagined", ("world",)),
    "user": played_by("--user", "user.kind", "user.endpoint", "llm", ("agenda",)),
}


def coldstart(
    overrides: options.Overrides = None,
    config: options.Config = "offline",
    count: Annotated[int | None, typer.Option("--count", "-n", help="Number of conversations to keep.")] = None,
    domain: Annotated[
        list[str] | None,
        option(
            "--domain",
            "Or a folder of texts (repeatable). Default: all nine environments.",
            metavar="NAME",
            callback=approved_scenarios,
        ),
    ] = None,
    teacher: Annotated[
        str | None, typer.Option("--teacher", help="Who serves: expert, endpoint:MODEL or endpoint:MODEL@URL.")
    ] = None,
    user: options.User = None,
    tools: Annotated[
        str | None,
        typer.Option("--tools", help="Who plays the imagined tools: world, endpoint:MODEL or endpoint:MODEL@URL."),
    ] = None,
    judge: Annotated[str | None, option("--judge", "It sees conversations that passed the filters.")] = None,
    max_cost: options.MaxCost = None,
    max_tokens: options.MaxTokens = None,
    name: options.Name = None,
    runs_dir: options.RunsDir = None,
    seed: options.Seed = None,
    resume: options.Resume = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Replay the conversations of this dataset and report differences.")
    ] = None,
    dry_run: options.DryRun = False,
) -> None:
    """Synthesise conversations between customers and an agent with tools, and keep the good ones.

    Draws tasks from seeds, plays a conversation for each, and filters them: valid calls, goal reached, policy followed,
    nothing leaked, no repetition, no near-duplicates. Writes a dataset with a card; every dropped conversation is kept
    with the reason. Without any model, scripted experts serve simulated customers.

      muarl coldstart
      muarl coldstart --count 200 --domain hotel-generated --domain mcp-sqlite
      muarl coldstart --config teacher --teacher endpoint:MODEL --user endpoint:MODEL --tools endpoint:MODEL
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
    run_recipe("coldstart", given(locals(), COLDSTART))
