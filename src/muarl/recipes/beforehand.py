"""What can be found wrong before a recipe is imported, which with its models takes many seconds: a typo is answered at
once. The recipes check the same, and more, for those who call them from Python."""

from __future__ import annotations

import contextlib
import tempfile

from muarl.config import RunConfig
from muarl.errors import ConfigError
from muarl.recipes.checkpoint_names import existing_checkpoint
from muarl.recipes.preflight import Role, check_fits, check_roles
from muarl.recipes.setting import make_setting

MODELS = ("sft", "rl", "quickstart", "user_model")
"""Recipes that begin with ``model.checkpoint``."""


def check_beforehand(config: RunConfig, recipe: str) -> None:
    """The checkpoint, the folder of runs and the file of tasks are there, and endpoints answer. CheckpointError,
    ConfigError, DataError or InfrastructureError names the setting."""
    if recipe in MODELS or (recipe == "evaluate" and config.eval.agent == "sampled"):
        existing_checkpoint(config.model.checkpoint)
    check_runs_dir(config)
    if config.domain.tasks is not None and recipe in ("rl", "evaluate"):
        make_setting(config, measuring=recipe == "evaluate")
    if recipe == "rl":
        roles: tuple[Role, ...] = ("user", "judge", "eval_user") if config.rl.eval_every else ("user", "judge")
        check_roles(config, *roles)
    elif recipe == "quickstart":
        check_fits(config, "user", "eval_user", "judge")


def check_runs_dir(config: RunConfig) -> None:
    """ConfigError if no run can be kept in ``runs_dir``. Nothing of the trial is left."""
    if config.resume is not None:
        return
    folder = config.runs_dir.expanduser()
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise ConfigError(
            f"runs_dir: no run can be kept in {folder} ({problem.strerror or problem}); name another folder"
        ) from None
    finally:
        for path in made:
            with contextlib.suppress(OSError):
                path.rmdir()
