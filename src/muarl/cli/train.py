"""``muarl quickstart``, ``base``, ``sft``, ``train``: options become a checked config, a recipe runs it."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.cli import options
from muarl.cli.asked import UNTRAINED, only_asked
from muarl.cli.environment_approval import approve_from_file
from muarl.cli.options import RUN, ExplicitConfig, RunArguments, as_overrides, given, option
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl.config.sections import RunConfig

COMMANDS = {
    "quickstart": "quickstart",
    "pretraining": "base",
    "sft": "sft",
    "user_model": "sft-user",
    "user_fidelity": "sft-user",
    "user_rl": "train-user",
    "rl": "train",
    "evaluate": "eval",
    "coldstart": "coldstart",
}
"""By recipe, the command that runs it."""
TRAINING = ("sft", "rl", "quickstart")
"""Recipes that train the agent's model."""


def quickstart(
    overrides: options.Overrides = None,
    config: options.Config = "quickstart",
    domain: options.WeightedDomains = None,
    name: options.Name = None,
    runs_dir: options.RunsDir = None,
    seed: options.Seed = None,
    resume: options.Resume = None,
    dry_run: options.DryRun = False,
    assume: options.Assume = None,
) -> None:
    """Train a small agent end to end: supervised fine-tuning, reinforcement learning, evaluation, report.

    A tiny agent learns to serve simulated customers of a small shop, on this machine's CPU cores. Ends with the path
    of an HTML report that shows the learning curves and whole conversations from before and after.

      muarl quickstart
      muarl quickstart --seed 1 --name second
      muarl quickstart rl.steps=5 eval.tasks=50      (a quick look, in a minute or two)
      muarl quickstart --domain my_package.clinic:CLINIC
      muarl quickstart --resume runs/quickstart      (after Ctrl-C)
    """
    run_recipe("quickstart", given(locals()))


def base(
    overrides: options.Overrides = None,
    config: options.Config = "quickstart",
    domain: options.WeightedDomains = None,
    checkpoint: Annotated[str | None, option("--checkpoint", "It is continued. Default: random weights.")] = None,
    name: options.Name = None,
    runs_dir: options.RunsDir = None,
    seed: options.Seed = None,
    resume: options.Resume = None,
    dry_run: options.DryRun = False,
) -> None:
    """Pretrain the small base model, as the one shipped with muarl: from scratch, or from another base.

    muarl base
    muarl base base.steps=200 base.hidden=64 --name small-base
    muarl base --config worlds --name worlds-base
    muarl base --config extend --domain ./zoo/zoo.py:ZOO --name zoo-base
    muarl base --resume runs/base
    """
    run_recipe("pretraining", given(locals(), {**RUN, "checkpoint": "base.checkpoint"}, before=["name=base"]))


def sft(
    overrides: options.Overrides = None,
    config: options.Config = "cpu",
    domain: options.WeightedDomains = None,
    checkpoint: options.Checkpoint = None,
    name: options.Name = None,
    runs_dir: options.RunsDir = None,
    seed: options.Seed = None,
    resume: options.Resume = None,
    cluster: options.Cluster = None,
    dry_run: options.DryRun = False,
    assume: options.Assume = None,
) -> None:
    """Fine-tune on demonstrations (the cold start). Only the agent's own tokens are learned.

    muarl sft --config cpu --name cold
    muarl sft --checkpoint path/to/checkpoint sft.demonstrations_file=episodes.jsonl
    muarl sft --resume runs/cold
    muarl sft --config mua-8b --cluster auto
    """
    run_recipe("sft", given(locals()))


def sft_user(
    overrides: options.Overrides = None,
    config: options.Config = "user",
    domain: options.WeightedDomains = None,
    checkpoint: options.Checkpoint = None,
    name: options.Name = None,
    runs_dir: options.RunsDir = None,
    seed: options.Seed = None,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            metavar="RUN",
            help="Train nothing; measure this user model: a run of sft-user, or a checkpoint folder.",
        ),
    ] = None,
    resume: options.Resume = None,
    dry_run: options.DryRun = False,
) -> None:
    """Train a user model: a small model that plays the customer, trained on dialogues, with fidelity metrics.

    Learns the customer's tokens of conversations, with the scenario as the system prompt. It is then evaluated against
    the scripted expert: how often it keeps its goal, which facts it gets wrong, and whether it stops in time.
    summary.json has the figures, report.md a table.

      muarl sft-user --name customer
      muarl sft-user sft.demonstrations_file=runs/coldstart/dataset/episodes.jsonl --checkpoint path/to/model
      muarl sft-user --measure runs/customer eval.tasks=1000 eval.seeds=[0,1,2]
      muarl train --config quickstart user.kind=sampled user.checkpoint=runs/customer
    """
    if measure is None:
        run_recipe("user_model", given(locals()))
        return
    if checkpoint is not None or resume is not None:
        from muarl.basics.errors import ConfigError

        raise ConfigError("--measure names the user model, and trains none: remove --checkpoint and --resume")
    measuring = {**RUN, "measure": "model.checkpoint"}
    run_recipe("user_fidelity", given(locals(), measuring, before=["name=user-fidelity"]))


def train(
    overrides: options.Overrides = None,
    config: options.Config = "cpu",
    domain: options.WeightedDomains = None,
    checkpoint: options.Checkpoint = None,
    name: options.Name = None,
    runs_dir: options.RunsDir = None,
    seed: options.Seed = None,
    resume: options.Resume = None,
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay",
            metavar="RUN[:STEP]",
            help="Play nothing; learn again from what a run recorded (`rl.save_episodes=all`), with its configuration, "
            "or from a FILE of conversations with token ids.",
            show_default=False,
        ),
    ] = None,
    rollouts_only: Annotated[
        bool, typer.Option("--rollouts-only", help="Play and keep the episodes; learn nothing.", show_default=False)
    ] = False,
    cluster: options.Cluster = None,
    dry_run: options.DryRun = False,
    assume: options.Assume = None,
) -> None:
    """Train by reinforcement learning against a simulated user.

    Each step rolls out groups of conversations, scores the state of the database that each one leaves behind, and
    updates the model. Metrics go to the terminal, to metrics.jsonl and to TensorBoard.

      muarl train --config cpu --checkpoint runs/cold
      muarl train --config mine.yaml rl.steps=10 rl.lr=1e-4 --dry-run
      muarl train --resume runs/cpu
      muarl train --config cpu --domain retail-generated --domain airline-generated=2
      muarl train --cluster auto cluster.rollout_workers=8 cluster.samplers=4
      muarl train --replay runs/cpu:12                (the update of a step, from its record)
    """
    halves = {**RUN, "replay": "rl.replay", "rollouts_only": "rl.rollouts_only"}
    if replay is not None:
        from muarl.basics.errors import ConfigError

        if resume is not None:
            raise ConfigError("--replay makes a run of its own, and --resume continues one: remove one of them")
        run, step = recorded_run(replay)
        if run is not None:
            own = given(
                {**locals(), "config": config if isinstance(config, ExplicitConfig) else str(run / "config.yaml")},
                halves,
            )
            name = f"{run.absolute().name}-replay" + (f"-{step}" if step else "")
            run_recipe(
                "rl", replace(own, overrides=[f"name={json.dumps(name)}", "rl.rollouts_only=false", *own.overrides])
            )
            return
    run_recipe("rl", given(locals(), halves))


def recorded_run(text: str) -> tuple[Path | None, str]:
    """The run's folder that RUN or RUN:STEP names, and the step; None for anything else, which the recipe looks at."""
    head, _, tail = text.rpartition(":")
    for place, step in ((text, ""), (head, tail)):
        folder = Path(place).expanduser()
        if place and (folder / "config.yaml").is_file():
            return folder, step
    return None, ""


def _without_own_domains(settings: Mapping[str, Any], run: Path) -> Mapping[str, Any]:
    """The settings of a resumed run of several domains without those of its own, which are named for their code."""
    from muarl.basics.untrusted import read_yaml

    domains, config = settings.get("domain.name"), read_yaml(run / "config.yaml")
    section = config.get("domain") if isinstance(config, dict) else None
    if domains is None or not isinstance(section, list):
        return settings
    own = [one.get("name") for one in section if isinstance(one, dict)]
    named = domains if isinstance(domains, list) else [domains]
    if not all(name in own for name in named):
        return settings
    return {key: value for key, value in settings.items() if key != "domain.name"}


def run_recipe(recipe: str, given: RunArguments) -> None:
    """Resolve the config and hand it to ``muarl.recipes.<recipe>.run``. Options win over KEY=VALUE arguments.

    Ctrl-C and SIGTERM stop the recipe where it can be resumed."""
    from muarl.basics.errors import ConfigError
    from muarl.config.load import given_value, load_config
    from muarl.runs.config_changes import check_folder
    from muarl.runs.own_code import approve_remembered

    resume, settings, source = given.resume, given.settings, given.config
    if given.assume and not given.dry_run:
        raise ConfigError("--assume: applies only to a dry run; add --dry-run")
    if resume is not None:
        if isinstance(source, ExplicitConfig):
            raise ConfigError(
                f"--config: a resumed run has its own configuration ({resume / 'config.yaml'}); remove --config"
            )
        check_folder(resume)
        settings = {**_without_own_domains(settings, resume), "resume": str(resume)}
        source = str(resume / "config.yaml")
    overrides = [*given.overrides, *as_overrides(settings)]
    resolved = load_config(source, overrides)
    if isinstance(source, ExplicitConfig):
        approve_from_file(resolved, source)
    if resume is not None:
        approve_remembered(resolved.environments, resume)
    if only_asked(recipe, resolved):
        return
    automatic = recipe in TRAINING and given_value(source, overrides, "learner.pack_tokens") == "auto"
    with working(f"Preparing muarl {COMMANDS[recipe]}"):
        _run_resolved(recipe, resolved, given.dry_run, resume, given.assume, automatic_packs=automatic)


def _run_resolved(
    recipe: str,
    resolved: RunConfig,
    dry_run: bool,
    resume: Path | None,
    assume: Sequence[str],
    *,
    automatic_packs: bool,
) -> None:
    """Check a configuration, and run the recipe or say what would run. ``automatic_packs``: ``learner.pack_tokens`` is
    auto, and so may follow this machine's memory."""
    from muarl.basics.errors import ConfigError
    from muarl.basics.stopping import stop_signals
    from muarl.config.load import dump_config
    from muarl.runs.config_changes import check_place, check_resume

    if resolved.model.dtype == "auto":
        from muarl.backends.number_formats import settled

        resolved = settled(resolved, training=recipe not in UNTRAINED)
    if resolved.threads:
        os.environ["OMP_NUM_THREADS"] = str(resolved.threads)  # read when torch is first imported
    check_resume(resolved, COMMANDS[recipe])
    if resume is None:
        check_place(resolved.runs_dir)
    if recipe in TRAINING:
        _check_may_train(resolved, recipe)
    if recipe not in ("rl", "sft") and resolved.cluster.address is not None:
        raise ConfigError("cluster.address: only `muarl train` and `muarl sft` run on a cluster; remove it here")
    if dry_run:
        if automatic_packs:
            resolved = _within_memory(resolved, recipe)
        echo(dump_config(resolved), nl=False)
        if recipe in TRAINING:
            _say_what_would_run(resolved, recipe, assume)
        elif recipe == "user_rl":
            from muarl.runs.user_checks import check_user_rl

            check_user_rl(resolved)
        elif recipe == "evaluate":
            from muarl.runs.checks import check_evaluation
            from muarl.runs.roles import Cast

            check_evaluation(Cast.of(resolved))
        return
    from muarl.environments.registry import find, is_reference
    from muarl.runs.checks import check_beforehand, made_elsewhere
    from muarl.runs.roles import Cast, asked_once

    if resume is None and (note := made_elsewhere(resolved.model.checkpoint, Cast.of(resolved), recipe)) is not None:
        echo(note, err=True)
    with stop_signals(), asked_once():
        check_beforehand(resolved, recipe, f"muarl {COMMANDS[recipe]}")
        if automatic_packs:
            resolved = _within_memory(resolved, recipe)
        folder: Path = importlib.import_module(f"muarl.recipes.{recipe}").run(resolved)
    echo(f"Run folder: {folder}")
    if (folder / "report.html").is_file():
        echo(f"Report:     {folder / 'report.html'}")
    if recipe in ("quickstart", "rl"):
        named = "".join(f" --domain {domain.name}" for domain in resolved.domains if is_reference(domain.name))
        echo(f"Next:       muarl view {folder}{named}    (browse its conversations and their effects)")
        several = len(resolved.domains) > 1
        one = f" --domain {resolved.domains[0].name}" if several else named  # a conversation is in one domain
        caller = find(resolved.domains[0].name).caller
        echo(f"            muarl chat {folder}{one}    (be the {caller} of this agent)")


def _check_may_train(config: RunConfig, recipe: str) -> None:
    """See ``check_may_train``."""
    from muarl.runs.tasks import check_may_train

    shown = {"sft.demonstrations_file": config.sft.demonstrations_file}
    files = {"rl.replay": config.rl.replay} if recipe == "rl" else shown
    check_may_train(config.domains, on_benchmark=config.train_on_benchmark, files=files)


def _within_memory(config: RunConfig, recipe: str) -> RunConfig:
    """The configuration with packs that this machine holds, as far as is known; says so if they are smaller."""
    from muarl.runs.room import within_memory

    config, notice = within_memory(config, sampling=recipe != "sft")
    if notice:
        echo(notice, err=True)
    return config


def _say_what_would_run(config: RunConfig, recipe: str, assume: Sequence[str]) -> None:
    """Build and check the run without weights or a GPU; on standard error, since the configuration goes to standard
    output."""
    from muarl.observe.screen import Screen
    from muarl.planning.assumptions import assume as laid_over
    from muarl.recipes.dry_run import complain, dry_run
    from muarl.report.plan_tables import print_plan

    lines, plan, fitting = dry_run(config, recipe, laid_over(assume))
    for line in lines:
        echo(line, err=True)
    if recipe != "sft":
        echo("", err=True)
        print_plan(plan, fitting, Screen(stderr=True, soft_wrap=True, highlight=False), explain=False)
        complain(plan, fitting)
    echo("Dry run: the configuration is valid; nothing was started.", err=True)
