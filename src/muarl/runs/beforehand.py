"""What can be found wrong before a recipe is imported, which with its models takes many seconds: a typo is answered at
once. The recipes check the same, and more, for those who call them from Python."""

from __future__ import annotations

from muarl.backends.checkpoint_names import SHIPPED, existing_checkpoint, shipped_with
from muarl.basics.errors import ConfigError
from muarl.basics.extras import require
from muarl.config import RunConfig
from muarl.environments.configure import places_of
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.runs.eval_agent import has_models
from muarl.runs.preflight import Role, check_fits, check_roles

MODELS = ("sft", "rl", "quickstart", "user_model", "user_fidelity")
"""Recipes that begin with ``model.checkpoint``."""


def check_evaluation(config: RunConfig) -> None:
    """What an evaluation needs of its environments, asking nobody. ConfigError says what is missing."""
    for domain in config.domains:
        environment = find(domain.name)
        if config.eval.tasks is None and environment.endless and not environment.is_benchmark and domain.tasks is None:
            raise ConfigError(f"eval.tasks is null, and {environment.name} has tasks without end: say how many")
        if domain.tasks is None and (environment.is_benchmark or config.eval.split != "validation"):
            environment.check_split(config.eval.split, "eval.split")
    check_fits(config, *(("agent",) if config.eval.solo else ("agent", "eval_user")))


def made_elsewhere(config: RunConfig, recipe: str) -> str | None:
    """What to know of a run that begins with a shipped checkpoint in an environment that it was not made on; None if
    there is nothing to be said."""
    checkpoint = config.model.checkpoint
    measured = recipe == "evaluate" and config.eval.agent == "sampled"
    if not (recipe in MODELS or measured) or checkpoint not in SHIPPED:
        return None
    environment = next((e for e in map(find, (d.name for d in config.domains)) if not _made_on(checkpoint, e)), None)
    if environment is None:
        return None
    own = environment.expert is not None and environment.rule_based_user is not None
    small = ", or make a small one with `muarl base --domain NAME`" if own else ""
    return (
        f"Note: the checkpoint {checkpoint} was not made on {environment.name} and knows few of its words: give "
        f"--checkpoint with a pretrained model{small}{', or another --agent' if measured else ''}."
    )


def _made_on(checkpoint: str, environment: Environment) -> bool:
    of_kind = environment if environment.practice is None else find(environment.practice)
    return of_kind.name in shipped_with(checkpoint)


def check_beforehand(config: RunConfig, recipe: str, command: str) -> None:
    """What ``command`` needs is installed, the checkpoint and the file of tasks are there, and endpoints answer.
    CheckpointError, ConfigError, DataError or InfrastructureError names the setting."""
    if recipe in (*MODELS, "pretraining") or (recipe == "evaluate" and has_models(config)):
        require("train", command)
    if recipe in MODELS or (recipe == "evaluate" and config.eval.agent == "sampled"):
        existing_checkpoint(config.model.checkpoint)
    if recipe == "pretraining" and config.base.checkpoint is not None:
        existing_checkpoint(config.base.checkpoint)
    if any(wanted.tasks is not None for wanted in config.domains) and recipe in ("rl", "evaluate"):
        places_of(config, measuring=recipe == "evaluate")
    if recipe == "rl":
        roles: tuple[Role, ...] = ("user", "judge", "eval_user") if config.rl.eval_every else ("user", "judge")
        check_roles(config, *roles)
    elif recipe == "quickstart":
        check_fits(config, "user", "eval_user", "judge")
