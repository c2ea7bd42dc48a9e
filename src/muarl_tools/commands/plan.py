"""``muarl plan``: bytes, seconds and dollars of a run, before it starts and without a GPU."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from muarl.cli import options
from muarl.cli.command import TRAIN, Subcommand
from muarl.cli.environment_approval import approve_from_file
from muarl.cli.options import RUN, as_overrides, option, settings_of
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl.config.sections import RunConfig
    from muarl.planning.assumptions import Assumptions
    from muarl.planning.plan import ResourcePlan


def plan(
    preset: Annotated[str, typer.Argument(help=options.CONFIG)],
    overrides: Annotated[list[str] | None, options.settings_argument("rl.tasks_per_step=64")] = None,
    domain: options.WeightedDomains = None,
    assume: Annotated[list[str] | None, option("--assume", metavar="KEY=VALUE")] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", help="Find settings that fit on this many GPUs, and plan those.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Estimate what reinforcement learning needs: GPUs, memory on each, time per step, cost.

    Memory follows from the model's sizes; time and cost from assumptions, which are printed and can be replaced. If the
    settings do not fit (exit code 1), suggests some that do. Needs no GPU, and no weights for the
    published Qwen3, Qwen2.5 and Llama 3 models.

      muarl plan mua-8b
      muarl plan mua-32b rl.tasks_per_step=64 --assume gpu=h100 --assume gpu_hour=2.5
      muarl plan mua-8b --gpus 4 --assume gpu=h100
      muarl plan mine.yaml --json
    """
    from muarl.config.load import given_value, load_config
    from muarl.observe.screen import Screen
    from muarl.planning.assumptions import assume as laid_over
    from muarl.report.plan_tables import print_plan

    with working(f"Planning {preset}"):
        settings = [*(overrides or ()), *as_overrides(settings_of({"domain": domain}, RUN))]
        config, assumptions = load_config(preset, settings, starts=False), laid_over(assume or ())
        approve_from_file(config, preset)
        if config.model.dtype == "auto":
            from muarl.backends.number_formats import settled

            config = settled(config, training=True)
        if given_value(preset, settings, "learner.pack_tokens") == "auto" and not (gpus or assume):
            from muarl.runs.room import within_memory

            config, told = within_memory(config)
            if told:
                echo(told, err=True)
        found, fitting = _planned(config, assumptions, gpus, quiet=as_json)
    if as_json:
        echo(json.dumps(found.to_json() | {"nearest": fitting}, indent=2))
    else:
        print_plan(found, fitting, Screen(soft_wrap=True, highlight=False))
    if not found.fits:
        raise typer.Exit(1)


def _planned(
    config: RunConfig, assumptions: Assumptions, gpus: int | None, *, quiet: bool
) -> tuple[ResourcePlan, list[str] | None]:
    """The plan, and settings that fit. ConfigError if none fit on so many ``gpus``; those that do are said."""
    from functools import partial

    from muarl.backends.plans import plan_of, planner, prompt_tokens
    from muarl.basics.errors import ConfigError
    from muarl.config.parts import PlannedRun
    from muarl.planning.nearest import best_split

    run, prompt = PlannedRun.of(config), partial(prompt_tokens, config)
    if gpus is None:
        return plan_of(run, assumptions, prompt)
    split = best_split(run, gpus, planner(run, assumptions, prompt))
    if split is None:
        raise ConfigError(
            f"--gpus: {config.name} does not fit on {gpus} x {assumptions.gpu} under any of the settings that "
            "decide about memory: take more GPUs or a smaller model"
        )
    changes = " ".join(split[0]) or "as it is"
    echo(f"With {gpus} x {assumptions.gpu}: {changes} ({split[1].gpus} used)\n", err=quiet)
    return split[1], split[0]


COMMAND = Subcommand(plan, TRAIN, 10)
