"""What has to hold before a user model is trained by reinforcement learning (``muarl train-user``)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from muarl.backends.checkpoint_names import SHIPPED, existing_checkpoint, run_of
from muarl.basics.errors import ConfigError, DataError
from muarl.basics.untrusted import read_json_object
from muarl.config.rl import RlConfig
from muarl.config.sections import RunConfig
from muarl.environments.registry import find
from muarl.runs.tasks import check_may_train

USER_MODELS = ("sft-user", "train-user")
"""Commands whose runs leave user models."""
AGENTS = ("quickstart", "sft", "train")
"""Commands whose runs leave agents."""


def check_user_rl(config: RunConfig) -> None:
    """ConfigError or CheckpointError names a setting that ``muarl train-user`` cannot work with, and the remedy."""
    section = config.user_rl
    if config.model.checkpoint in SHIPPED:
        raise ConfigError(
            f"model.checkpoint is {config.model.checkpoint}, which has not learned to be a user: name a user model "
            "(--checkpoint RUN of `muarl sft-user`)"
        )
    if section.agent is None:
        raise ConfigError("user_rl.agent: say whom the user talks with: --agent RUN, a checkpoint folder, or expert")
    _check_made_by("model.checkpoint", config.model.checkpoint, AGENTS, "an agent", "a user model")
    if section.agent == "expert":
        for domain in config.domains:
            find(domain.name).needed_expert()
    else:
        _check_made_by("user_rl.agent", section.agent, USER_MODELS, "a user model", "an agent")
    if section.reference is not None:
        _check_made_by("user_rl.reference", section.reference, AGENTS, "an agent", "a user model")
    check_may_train(config.domains, on_benchmark=config.train_on_benchmark)
    for setting, remedy in _unusable(config):
        raise ConfigError(f"{setting} has no meaning when a user model is trained: {remedy}")
    if config.learner.pack_tokens < config.model.max_context:
        raise ConfigError(
            f"learner.pack_tokens is {config.learner.pack_tokens}, and a conversation may have "
            f"{config.model.max_context} tokens (model.max_context): raise it"
        )


def _check_made_by(setting: str, spec: str, others: tuple[str, ...], what: str, wanted: str) -> None:
    """ConfigError if a checkpoint lies in a run of one of the ``others`` commands; CheckpointError if there is none."""
    run = run_of(existing_checkpoint(spec))
    command = None if run is None else _command(run)
    if command in others:
        raise ConfigError(f"{setting}: {spec} is a run of `muarl {command}`, so {what}, and {wanted} is needed here")


def _command(run: Path) -> str | None:
    try:
        command = read_json_object(run / "status.json").get("command")
    except DataError:  # an older run, or one that was copied without it
        return None
    return command if isinstance(command, str) else None


def _unusable(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Settings of other trainings that would be passed over here, each with what to do."""
    yield from _unusable_of_rl(config.rl)
    user = config.user
    if user.kind != "agenda" or user.checkpoint is not None:
        yield "user.kind", "the users are model.checkpoint's own; leave user.kind and user.checkpoint out"
    if user.traits.any or user.strata:
        yield "user.traits", "user models have neither traits nor strata; set user.traits=easy, and no user.strata"
    if user.guard.active:
        yield "user.guard.active", "user.guard.rules make episodes void here; leave user.guard.active out"
    if user.delay is not None:
        yield "user.delay", "leave it out"
    if config.eval.trials != 1:
        yield "eval.trials", "held-out tasks are played once each; set eval.trials=1, and more eval.tasks"
    if any(domain.red_team_share for domain in config.domains):
        yield "domain.red_team_share", "adversarial users have goals that no check knows; set it to 0"
    if config.engine.kind != "torch" or config.engine.processes not in ("auto", 1):
        yield "engine", "users and agent are sampled in this process; set engine.kind=torch and engine.processes=1"
    if config.learner.kind != "torch":
        yield "learner.kind", "the user model is trained in this process; set learner.kind=torch"


def _unusable_of_rl(rl: RlConfig) -> Iterator[tuple[str, str]]:
    if rl.asynchrony != "synchronous":
        yield "rl.asynchrony", "set rl.asynchrony=synchronous"
    if rl.practice.active:
        yield "rl.practice", "tasks are played as they are drawn; set rl.practice.repeat=0 and the like"
    if rl.branch.stems:
        yield "rl.branch.stems", "set it to 0"
    if rl.credit != "outcome":
        yield "rl.credit", "set rl.credit=outcome"
    if rl.reward != "outcome":
        yield f"rl.{rl.reward.split()[0]}", "the reward is user_rl.objective's; set its weights to 0"
    if rl.reward_basis != "task":
        yield "rl.reward_basis", "set rl.reward_basis=task"
    if rl.dynamic_sampling:
        yield "rl.dynamic_sampling", "set rl.dynamic_sampling=false"
    if rl.top_p != 1.0:
        yield "rl.top_p", "users are sampled from their whole distribution; set rl.top_p=1"
    if rl.eval_every:
        yield "rl.eval_every", "the user is measured before and after the training; set rl.eval_every=0"
    if rl.rollouts_only or rl.replay is not None:
        yield "rl.rollouts_only or rl.replay", "set neither"
    if rl.stop_on:
        yield "rl.stop_on", "its signs are of an agent's training; leave it out"
