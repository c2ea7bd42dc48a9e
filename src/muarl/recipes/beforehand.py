"""What can be found wrong before a recipe is imported, which with its models takes many seconds: a typo is answered at
once. The recipes check the same, and more, for those who call them from Python."""

from __future__ import annotations

from muarl.config import RunConfig
from muarl.recipes.checkpoint_names import existing_checkpoint
from muarl.recipes.preflight import Role, check_fits, check_roles
from muarl.recipes.setting import make_setting

MODELS = ("sft", "rl", "quickstart", "user_model")
"""Recipes that begin with ``model.checkpoint``."""


def check_beforehand(config: RunConfig, recipe: str) -> None:
    """The checkpoint and the file of tasks are there, and endpoints answer. CheckpointError,
    ConfigError, DataError or InfrastructureError names the setting."""
    if recipe in MODELS or (recipe == "evaluate" and config.eval.agent == "sampled"):
        existing_checkpoint(config.model.checkpoint)
    if config.domain.tasks is not None and recipe in ("rl", "evaluate"):
        make_setting(config, measuring=recipe == "evaluate")
    if recipe == "rl":
        roles: tuple[Role, ...] = ("user", "judge", "eval_user") if config.rl.eval_every else ("user", "judge")
        check_roles(config, *roles)
    elif recipe == "quickstart":
        check_fits(config, "user", "eval_user", "judge")
