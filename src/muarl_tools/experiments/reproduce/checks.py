"""What has to hold before the first stage of a reproduction, so that no later one is refused after hours of work."""

from __future__ import annotations

from collections.abc import Iterable

from muarl.backends.checkpoint_names import existing_checkpoint
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.config.sections import RunConfig
from muarl.environments.registry import find
from muarl.runs.checks import check_evaluation
from muarl.runs.roles import Cast, check_fits
from muarl.runs.tasks import check_may_train
from muarl_tools.experiments.reproduce.plan import EVALUATE, MAKE_BASE, SFT, TRAIN
from muarl_tools.experiments.stages import Stage


def check_stages(stages: Iterable[Stage]) -> None:
    """Check of each stage that is not finished: its environments are known, who takes part can play there, checkpoints
    that no other stage makes are there, and nobody trains on a benchmark unasked.

    ConfigError or CheckpointError names the stage and the settings of the reproduction that say what it needs."""
    for stage in stages:
        if stage.is_finished:
            continue
        try:
            _check_environments(stage.config, stage.recipe)
        except ConfigError as problem:
            raise ConfigError(f"stage {stage.name}, in the environments of {_named_by(stage)}: {problem}") from None
        for setting, checkpoint in _checkpoints(stage):
            try:
                existing_checkpoint(checkpoint)
            except CheckpointError as problem:
                raise CheckpointError(f"stage {stage.name}, {setting}: {problem}") from None


def _check_environments(config: RunConfig, recipe: str) -> None:
    """ConfigError if a stage could not be run in its environments."""
    cast = Cast.of(config)
    if recipe == EVALUATE:
        check_evaluation(cast)
        return
    files = {"sft.demonstrations_file": config.sft.demonstrations_file} if recipe == SFT else {}
    check_may_train(config.domains, on_benchmark=config.train_on_benchmark, files=files)
    if recipe == SFT:
        for domain in config.domains:
            find(domain.name).needed_expert()
    check_fits(cast, "user")


def _has_user_model(stage: Stage) -> bool:
    return stage.recipe == EVALUATE and stage.config.eval_user.kind == "sampled"


def _named_by(stage: Stage) -> str:
    """The settings that say where a stage is played."""
    if stage.recipe == EVALUATE:
        return "reproduce.user_model_in" if _has_user_model(stage) else "reproduce.rl, unseen and kept_out"
    return {SFT: "reproduce.cold_start", TRAIN: "reproduce.rl", MAKE_BASE: "reproduce.read"}[stage.recipe]


def _checkpoints(stage: Stage) -> list[tuple[str, str]]:
    """(setting, checkpoint) of each that a stage needs and no other one makes."""
    needed = []
    if not stage.needs and stage.recipe != MAKE_BASE:
        needed.append(("model.checkpoint", stage.config.model.checkpoint))
    if _has_user_model(stage):
        needed.append(("reproduce.user_model", str(stage.config.eval_user.checkpoint)))
    return needed
