"""Time to 95% of the shop: train an agent with the recipe of `quickstart-easy`, stop the clock when validation says
that it is good enough, and confirm that on 1,000 tasks that nothing was trained on or chosen by.

    python benches/time_to_95.py --who "your name"             # prints a row for the table in docs/benchmarks.md
    python benches/time_to_95.py --who "your name" --seed 1 rl.steps=60 rl.tasks_per_step=16
    python benches/time_to_95.py --who "your name" --targets 0.9 0.95 --confirm-seed 21

Cold start and reinforcement learning run in this process, as in `muarl quickstart`. Every `rl.eval_every` steps the
agent plays the 100 tasks of validation. A target counts as reached when the mean of the last two validations is at
least the target, and its clock stops there. The clock runs from the start of this process: imports, demonstrations,
cold start, training and the validations on the way. CPU seconds are of this process and all that it has started.

Training goes on until the highest target is reached, or `rl.steps` are made. Then the checkpoint of each target plays
--tasks held-out tasks, off the clock, and is audited. The lower of validation and confirmation counts: where that is
below the target, the row says that it was not reached.

KEY=VALUE overrides settings as on the command line of muarl, within the rules in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import psutil

from muarl.accounts.metrics import SUCCESS_WITHOUT_VIOLATION
from muarl.backends.models import load_model
from muarl.basics.errors import ConfigError, MuarlError
from muarl.basics.system import git_commit, usable_cores
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.domains.tasks import Task
from muarl.environments.configure import places_of
from muarl.environments.places import Places
from muarl.learning.checkpoint_folders import checkpoint_path
from muarl.observe.rundir import RunDirectory
from muarl.recipes import evaluate, rl
from muarl.recipes.sft import cold_start
from muarl.recipes.training.loop import VALIDATION
from muarl.recipes.training.pipeline import MAX_DRAWS
from muarl.runs.context import open_context, prepare
from muarl.runs.tasks import demonstration_seed, rl_seed, validation_tasks

RECIPE = "quickstart-easy"
EVERY = 5
"""Training steps between validations, unless `rl.eval_every` says otherwise."""
CONFIRM_SEED = 20
"""Of the held-out tasks that confirm: one that no setting of the recipe was chosen by."""
RULED = {
    "domain": "the shop of size tiny, all kinds of tasks",
    "user": "easy users in training",
    "eval_user": "easy users with a seed of their own in validation and confirmation",
    "eval": "one conversation a task at temperature 1, on held-out tasks",
}
"""Sections that stay as the recipe has them, and what that means."""
COLUMNS = (
    "target",
    "CPU s",
    "wall s",
    "steps",
    "validation",
    "held-out success (95%)",
    "without violation",
    "reached",
    "commit",
    "machine",
    "who",
)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a validation found, and when."""

    steps: int
    """Steps of reinforcement learning that were made by then."""
    success: float
    """Share of the validation's tasks that succeeded."""
    wall: float
    """Seconds since this process began."""
    cpu: float
    """CPU seconds that it and its children had taken."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A target, and the first two validations in a row whose mean is at least that."""

    target: float
    success: float
    """The mean of both."""
    at: Mark
    """The second of them."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a checkpoint does on held-out tasks."""

    success: float
    interval: tuple[float, float]
    """Wilson's, 95%."""
    without_violation: float | None
    """Success without breaking any rule; None where the audit has no rules."""


class TargetReached(Exception):
    """Ends training: the highest target is reached."""


def first_reached(target: float, marks: Sequence[Mark]) -> Reached | None:
    """When the mean of two validations in a row first was at least the target; None if it never was."""
    for before, at in pairwise(marks):
        mean = (before.success + at.success) / 2
        if mean >= target:
            return Reached(target, mean, at)
    return None


def holds(reached: Reached, confirmation: Confirmation) -> bool:
    """Whether the lower of validation and confirmation is at least the target."""
    return min(reached.success, confirmation.success) >= reached.target


def row(reached: Reached, confirmation: Confirmation, *, commit: str, machine: str, who: str) -> str:
    """A line of the table, in the order of COLUMNS."""
    low, high = confirmation.interval
    clean = confirmation.without_violation
    cells = (
        f"{reached.target:.0%}",
        f"{reached.at.cpu:.0f}",
        f"{reached.at.wall:.0f}",
        str(reached.at.steps),
        f"{reached.success:.1%}",
        f"{confirmation.success:.1%} ({low:.1%} to {high:.1%})",
        "not audited" if clean is None else f"{clean:.1%}",
        "yes" if holds(reached, confirmation) else "no",
        commit,
        machine,
        who.replace("|", "/"),
    )
    return f"| {' | '.join(cells)} |"


def wall_seconds() -> float:
    """Seconds since this process began, imports included."""
    return time.time() - psutil.Process().create_time()


def cpu_seconds() -> float:
    """CPU seconds of this process, of its children that still run, and of those that have ended."""
    own = os.times()
    seconds = own.user + own.system + own.children_user + own.children_system
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            taken = child.cpu_times()
            seconds += taken.user + taken.system + taken.children_user + taken.children_system
    return seconds


def config_of(overrides: Sequence[str], seed: int) -> RunConfig:
    """The recipe with a person's settings. ConfigError if one of them makes another exercise of it."""
    own = [f"name=time-to-95-seed{seed}", f"rl.eval_every={EVERY}", f"rl.checkpoint_every={EVERY}"]
    config = load_config(RECIPE, [*own, *overrides, f"seed={seed}", "checkpoints.keep_last=null"])
    asked, ruled = config.model_dump(mode="json"), load_config(RECIPE).model_dump(mode="json")
    for section, what in RULED.items():
        if differing := sorted(key for key in ruled[section] if asked[section][key] != ruled[section][key]):
            raise ConfigError(f"{section}.{differing[0]} stays as the preset {RECIPE} has it: {what}")
    if config.rl.eval_every == 0 or config.rl.checkpoint_every != config.rl.eval_every:
        raise ConfigError(
            f"rl.eval_every is {config.rl.eval_every} and rl.checkpoint_every {config.rl.checkpoint_every}: let both "
            "be the same, and above 0, so that what validation finds can be confirmed"
        )
    if config.rl.steps < 2 * config.rl.eval_every + 1:
        raise ConfigError(f"rl.steps is {config.rl.steps}, in which no two validations are held: raise it")
    return config


def trained_on(config: RunConfig, places: Places) -> set[str]:
    """The wishes of all tasks that the run may train on, demonstrations included."""
    practice, learning = config.rl.practice, rl_seed(config.rl, config.seed)
    parts = practice.candidates if practice.adaptive else 1
    parts *= practice.looks if practice.first_look else MAX_DRAWS if config.rl.dynamic_sampling else 1
    drawn = list(places.draw("train", config.sft.demonstrations, demonstration_seed(config.sft, config.seed), 0))
    drawn += places.draw("train", config.rl.steps * config.rl.tasks_per_step * parts, learning, 0)
    return {task.scenario for task in drawn}


def check_apart(config: RunConfig, places: Places, confirming: Sequence[Task]) -> None:
    """ConfigError if what the customer of a confirming task knows and wants occurs in training or validation."""
    known = trained_on(config, places) | {task.scenario for task in validation_tasks(config.eval, places)}
    for task in confirming:
        if task.scenario in known:
            raise ConfigError(f"the held-out task {task.id} occurs in training: choose another --confirm-seed")


def train(config: RunConfig, places: Places, highest: float) -> tuple[RunDirectory, list[Mark]]:
    """Cold start and reinforcement learning, until the highest target is reached or all steps are made. Returns the
    run's folder, and what each validation found."""
    marks: list[Mark] = []
    policy = load_model(config.model)
    with open_context(config, "quickstart") as context:
        context.loop.closes(places)

        def after_step(step: int, _agent: Any) -> None:
            rows = [r for r in context.folder.read_metrics() if (r["phase"], r["step"]) == (VALIDATION, step)]
            if rows:
                marks.append(Mark(step + 1, float(rows[-1]["success"]), wall_seconds(), cpu_seconds()))
            if first_reached(highest, marks) is not None:
                raise TargetReached

        cold_start(context, config, places, policy)
        with suppress(TargetReached):
            rl.train(context, config, places, policy, after_step=after_step)
        return context.folder, marks


def confirm(config: RunConfig, checkpoint: Path, tasks: int, seed: int) -> Confirmation:
    """Play the held-out tasks with a checkpoint, one conversation each, and audit them."""
    settings = config.model_dump(mode="json", exclude_unset=True)
    settings["model"] = {**settings.get("model", {}), "checkpoint": str(checkpoint)}
    settings["eval"] = {**settings.get("eval", {}), "tasks": tasks, "seed": seed, "harder_users": ()}
    name = f"{config.name}-confirms-{checkpoint.name}"
    folder = evaluate.run(RunConfig.model_validate({**settings, "name": name}))
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["evaluation"]
    clean = summary.get(SUCCESS_WITHOUT_VIOLATION)
    low, high = summary["interval"]
    return Confirmation(summary["success"], (low, high), None if clean is None else clean["value"])


def machine() -> str:
    """The processor's name where the system tells it, and how many cores may be used."""
    name = platform.processor() or platform.machine()
    with suppress(OSError):
        if told := re.search(r"(?m)^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text()):
            name = told[1].strip()
    return f"{usable_cores():g} cores, {name.replace('|', '/')}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, confirm, and print the row of each target that was reached."""
    parser = argparse.ArgumentParser(description="Time until an agent of the shop is good enough.")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings of the recipe to override")
    parser.add_argument("--who", required=True, help="who enters the row")
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    parser.add_argument("--targets", type=float, nargs="+", default=[0.95], help="shares of tasks, from 0 to 1")
    parser.add_argument("--tasks", type=int, default=1000, help="held-out tasks that confirm")
    parser.add_argument("--confirm-seed", type=int, default=CONFIRM_SEED, help="of those tasks")
    options = parser.parse_intermixed_args(arguments)
    targets = sorted(options.targets)
    if not all(0 < target <= 1 for target in targets):
        raise ConfigError(f"--targets are shares from 0 to 1, such as 0.95, and not {targets}")
    commit = git_commit() or "unknown"
    commit = commit[:8] + ("+changes" if commit.endswith("+changes") else "")
    config = config_of(options.settings, options.seed)
    prepare(config)
    places = places_of(config)
    confirming = places.eval_tasks(config.eval.split, options.tasks, seed=options.confirm_seed)
    check_apart(config, places, confirming)
    folder, marks = train(config, places, targets[-1])
    for mark in marks:
        print(f"after {mark.steps} steps: validation {mark.success:.1%}, {mark.cpu:.0f} CPU s, {mark.wall:.0f} s")
    rows: list[str] = []
    confirmed: dict[Path, Confirmation] = {}
    for target in targets:
        if (reached := first_reached(target, marks)) is None:
            print(f"{target:.0%} was not reached in {config.rl.steps} steps.")
            continue
        checkpoint = checkpoint_path(folder.checkpoints / "rl", reached.at.steps)
        if checkpoint not in confirmed:
            confirmed[checkpoint] = confirm(config, checkpoint, options.tasks, options.confirm_seed)
        rows.append(row(reached, confirmed[checkpoint], commit=commit, machine=machine(), who=options.who))
    if rows:
        print(f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}", *rows, sep="\n")


if __name__ == "__main__":
    try:
        main()
    except MuarlError as problem:
        raise SystemExit(f"time_to_95: {problem}") from None
