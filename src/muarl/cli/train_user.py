"""``muarl train-user``: options become a checked config, and its recipe runs it."""

from __future__ import annotations

from typing import Annotated

import typer

from muarl.cli import options
from muarl.cli.options import RUN, given
from muarl.cli.train import run_recipe


def train_user(
    overrides: options.Overrides = None,
    config: options.Config = "user-hard",
    domain: options.WeightedDomains = None,
    checkpoint: options.Checkpoint = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="RUN",
            help="Whom the user talks with: a run or checkpoint of an agent, which stays as it is, or expert.",
            show_default=False,
        ),
    ] = None,
    name: options.Name = None,
    runs_dir: options.RunsDir = None,
    seed: options.Seed = None,
    resume: options.Resume = None,
    dry_run: options.DryRun = False,
) -> None:
    """Train a user model by reinforcement learning, within its scenarios, against an agent that stays as it is.

    The user is rewarded where the agent ends wrong (`user_rl.objective=hard`), or for speaking as a reference user
    model would (`likely`). A conversation in which it leaves its scenario is void and has the lowest reward of its
    group. summary.json and report.md compare the user before and after on held-out tasks.

      muarl train-user --checkpoint runs/customer --agent runs/quickstart-easy
      muarl train-user --checkpoint runs/customer --agent expert user_rl.objective=likely user_rl.reference=runs/people
      muarl train-user --resume runs/user-hard
      muarl train --config quickstart-easy user.kind=sampled user.checkpoint=runs/user-hard
    """
    run_recipe("user_rl", given(locals(), {**RUN, "agent": "user_rl.agent"}))
