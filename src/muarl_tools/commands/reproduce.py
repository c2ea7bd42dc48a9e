"""``muarl reproduce``: the paper's arms with small models, run where they are missing, and one page about them."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from muarl.cli.command import TRAIN, Subcommand
from muarl.cli.options import Config, ExplicitConfig, Name, Overrides, RunsDir, as_overrides, given, option
from muarl.observe.terminal import echo, working
from muarl_tools.commands.seeds import seed_numbers


def reproduce(
    overrides: Overrides = None,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds of cold start and RL: 0,1,2 or 0-4.")] = "0,1,2",
    config: Config = "reproduce",
    name: Name = None,
    runs_dir: RunsDir = None,
    user_model: Annotated[
        str | None,
        typer.Option("--user-model", help="Evaluate with this user model, too: a run of `muarl sft-user`."),
    ] = None,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Only write the page, from the stages that are finished.")
    ] = False,
    dry_run: Annotated[bool, option("--dry-run", "Lists the stages and how they stand.")] = False,
) -> None:
    """The paper's claims with small models: base, cold start, RL and both, on known and unknown environments.

    Every stage is an ordinary run in RUNS_DIR/NAME. Run the same command again after an interruption: finished stages
    are kept, an interrupted one is resumed. One seed took 22 minutes of CPU time (docs/reproduce.md).

    [bold]Examples[/bold]

      muarl reproduce

      muarl reproduce --seeds 0 --name one-seed

      muarl reproduce --config reproduce-cancel               (cancellations only, which RL learns)

      muarl reproduce --config reproduce-smoke --seeds 0      (to see that it runs; a few minutes)

      muarl reproduce --dry-run                               (the stages, and which are finished)

      muarl reproduce --page-only
    """
    from muarl.basics.errors import ConfigError
    from muarl.basics.stopping import stop_signals
    from muarl.cli.environment_approval import approve_from_file
    from muarl.config.load import load_config

    asked = given(locals(), {"name": "name", "runs_dir": "runs_dir", "user_model": "reproduce.user_model"})
    resolved = load_config(config, [*asked.overrides, *as_overrides(asked.settings)])
    if isinstance(config, ExplicitConfig):
        approve_from_file(resolved, config)
    numbers = seed_numbers(seeds)
    if resolved.threads:
        os.environ["OMP_NUM_THREADS"] = str(resolved.threads)  # read when torch is first imported
    with working("Preparing the stages"):
        from muarl_tools.experiments.reproduce import checks, measuring, page, plan, sheets
        from muarl_tools.experiments.stages import Experiment, show

        root = plan.root_of(resolved.runs_dir, resolved.name)
        experiment = Experiment(plan.stages(resolved, numbers))
        if not page_only:
            checks.check_stages(experiment.stages)
        if dry_run:
            experiment.check()
            show(experiment.table(), lines=False)
            return
        if not page_only:
            with stop_signals():
                experiment.run(lambda text: echo(text, err=True))
        elif not root.is_dir():
            raise ConfigError(f"--page-only: there are no runs in {root}: leave the option out to make them")
        found = measuring.measure(resolved, numbers)
        shown = sheets.sheets(found)
        written = page.write_page(found, shown)
    if sheets.ABLATION in shown:
        show(shown[sheets.ABLATION])
    echo(f"Page:   {written}")
    echo(f"Tables: {root / page.TABLES}")


COMMAND = Subcommand(reproduce, TRAIN, 8)
