"""``muarl eval --suite``: the options of ``muarl eval`` become one configuration for each benchmark of a suite."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from muarl.observe.terminal import echo, working

PER_BENCHMARK = {
    "eval.split": "--split",
    "eval.task_ids": "--task",
    "eval.solo": "--solo",
    "eval.red_team": "--red-team",
}
"""Options that mean nothing for several benchmarks at once."""

MANIFEST = "suite.json"
PIPE_WIDTH = 160
"""Columns of the table where there is no terminal to ask: its names are not cut."""

OfBenchmark = Callable[[str, dict[str, Any]], Sequence[str]]
"""What a benchmark's name stands for, as overrides that come before the person's own."""


def is_suite(folder: Path) -> bool:
    """Whether a folder is a suite's."""
    return (folder / MANIFEST).is_file()


def evaluate_suite(
    suite: str,
    config: str,
    overrides: Sequence[str],
    settings: dict[str, Any],
    of_benchmark: OfBenchmark,
    *,
    dry_run: bool = False,
) -> None:
    """Check all benchmarks of a suite, then evaluate one after another in a new folder, and print the table."""
    from muarl.basics.errors import ConfigError
    from muarl.config.load import load_config
    from muarl_tools.experiments import suite as recipe

    for key, option in PER_BENCHMARK.items():
        if settings.get(key) is not None:
            raise ConfigError(f"--suite: {option} applies to one benchmark; evaluate that benchmark by name")
    parts = recipe.parts_of(suite)
    own = {k: v for k, v in settings.items() if v is not None and k != "name"}
    given = [f"{key}={json.dumps(value)}" for key, value in own.items()]
    configs = [load_config(config, [*of_benchmark(p.domain, settings), *overrides, *given]) for p in parts]
    if any(one.model.dtype == "auto" for one in configs):
        from muarl.backends.number_formats import settled

        configs = [settled(one, training=False) for one in configs]
    with working(f"Preparing {len(configs)} benchmarks"):
        for line in recipe.check(configs):
            echo(line, err=True)
    if dry_run:
        echo("Dry run: the configuration is valid; nothing was started.", err=True)
        return
    folder = recipe.new_folder(configs[0].runs_dir.expanduser(), settings.get("name") or f"suite-{suite}")
    recipe.begin(folder, suite, configs)
    _show(folder, recipe.run(folder, suite, configs))


def resume_suite(folder: Path, settings: dict[str, Any], overrides: Sequence[str]) -> None:
    """Resume a suite: what is finished is not played again. ConfigError if anything but a budget is changed."""
    from muarl.basics.errors import ConfigError
    from muarl_tools.experiments import suite as recipe

    budget = {k: v for k, v in settings.items() if v is not None and k in ("eval.max_cost", "eval.max_tokens")}
    changed = [k for k, v in settings.items() if v is not None and k not in budget]
    if changed or overrides:
        raise ConfigError(
            f"--resume: {folder} is a suite and keeps its settings; only --max-cost and --max-tokens may change, "
            f"not {[*changed, *overrides][0]}"
        )
    suite, configs = recipe.read(folder)
    bounds = {key.removeprefix("eval."): value for key, value in budget.items()}
    configs = [c.model_copy(update={"eval": c.eval.model_copy(update=bounds)}) for c in configs]
    with working(f"Preparing {len(configs)} benchmarks"):
        recipe.check(configs)
    _show(folder, recipe.run(folder, suite, configs))


def _show(folder: Path, rows: Sequence[Any]) -> None:
    from rich.table import Table

    from muarl.observe.screen import Screen
    from muarl_tools.experiments.suite import cells_of, is_complete

    head, *body = cells_of(rows)
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, justify="left" if name in ("benchmark", "measure", "note") else "right", overflow="fold")
    for line in body:
        table.add_row(*line)
    Screen(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)
    echo(f"Folder: {folder}  (report.md, summary.json, and one evaluation for each benchmark)")
    if not is_complete(folder):
        echo(f"Incomplete. Resume with: muarl eval --resume {folder}", err=True)
