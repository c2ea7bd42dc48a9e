"""Run the stages of a reproduction: those that are finished are kept, one that was killed goes on where it stopped."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from muarl.basics.errors import ConfigError
from muarl.config.sections import RunConfig
from muarl.observe.rundir import RunDirectory
from muarl.observe.status import FINISHED, RUNNING
from muarl.runs.changes import changes, may_change
from muarl_tools.experiments.reproduce.plan import Stage, stages


def run(config: RunConfig, seeds: Sequence[int], say: Callable[[str], None]) -> list[Stage]:
    """Run whatever of the stages is not finished, one after another; all of them.

    ConfigError, before anything is run, if one stands there that was begun with other settings.
    """
    wanted = stages(config, seeds)
    for stage in wanted:
        check(stage)
    for number, stage in enumerate(wanted, 1):
        where = f"{number} of {len(wanted)}: {stage.name}"
        if is_finished(stage):
            say(f"Stage {where}: finished before.")
            continue
        say(f"Stage {where}.")
        resume = stage.folder if is_begun(stage.folder) else None
        recipe = importlib.import_module(f"muarl.recipes.{stage.recipe}")
        recipe.run(stage.config.model_copy(update={"resume": resume}))
        if not is_finished(stage):
            raise ConfigError(f"{stage.folder} holds something else than a run: remove it, or choose another --name")
    return wanted


def is_begun(folder: Path) -> bool:
    """Whether a run stands in a folder."""
    return (folder / "config.yaml").is_file()


def is_finished(stage: Stage) -> bool:
    """Whether a stage has been run to its end."""
    return is_begun(stage.folder) and RunDirectory.at(stage.folder).read_json("status").get("state") == FINISHED


def check(stage: Stage) -> None:
    """ConfigError if the stage was begun with other settings, or if another process is running it."""
    if not is_begun(stage.folder):
        return
    other = [name for name in changes(stage.folder, stage.config) if not may_change(name, None)]
    if other:
        raise ConfigError(
            f"{stage.folder} was begun with other settings ({', '.join(other[:3])}): choose another --name, use the "
            "same settings, or remove that folder and those of the stages that began with it"
        )
    if RunDirectory.at(stage.folder).state == RUNNING:
        raise ConfigError(f"{stage.folder} is being run by another process")
