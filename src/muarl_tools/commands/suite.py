"""``muarl eval --suite``: the options of ``muarl eval`` become one configuration for each benchmark of a suite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.cli.options import as_overrides
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl_tools.experiments.suite import Suite

PER_BENCHMARK = {
    "eval.split": "--split",
    "eval.task_ids": "--task",
    "eval.solo": "--solo",
    "eval.red_team": "--red-team",
}
"""Options that mean nothing for several benchmarks at once."""

MANIFEST = "suite.json"
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
    from muarl_tools.experiments.suite import Suite, check, parts_of

    for key, option in PER_BENCHMARK.items():
        if settings.get(key) is not None:
            raise ConfigError(f"--suite: {option} applies to one benchmark; evaluate that benchmark by name")
    own = {k: v for k, v in settings.items() if v is not None and k != "name"}
    given = [*overrides, *as_overrides(own)]
    configs = [load_config(config, [*of_benchmark(part.domain, settings), *given]) for part in parts_of(suite)]
    if any(one.model.dtype == "auto" for one in configs):
        from muarl.backends.number_formats import settled

        configs = [settled(one, training=False) for one in configs]
    with working(f"Preparing {len(configs)} benchmarks"):
        for line in check(configs):
            echo(line, err=True)
    if dry_run:
        echo("Dry run: the configuration is valid; nothing was started.", err=True)
        return
    root = configs[0].runs_dir.expanduser()
    _run(Suite.begun(root, suite, settings.get("name") or f"suite-{suite}", configs))


def resume_suite(folder: Path, settings: dict[str, Any], overrides: Sequence[str]) -> None:
    """Resume a suite: what is finished is not played again. ConfigError if anything but a budget is changed."""
    from muarl.basics.errors import ConfigError
    from muarl_tools.experiments.suite import Suite, check

    given = {k: v for k, v in settings.items() if v is not None}
    budget = {k.removeprefix("eval."): given.pop(k) for k in ("eval.max_cost", "eval.max_tokens") if k in given}
    if given or overrides:
        raise ConfigError(
            f"--resume: {folder} is a suite and keeps its settings; only --max-cost and --max-tokens may change, "
            f"not {[*given, *overrides][0]}"
        )
    suite = Suite.read(folder)
    configs = [c.model_copy(update={"eval": c.eval.model_copy(update=budget)}) for c in suite.configs]
    with working(f"Preparing {len(configs)} benchmarks"):
        check(configs)
    _run(Suite(folder, suite.name, configs))


def _run(suite: Suite) -> None:
    from muarl_tools.experiments.stages import show
    from muarl_tools.experiments.suite import table_of

    show(table_of(suite.run(lambda text: echo(text, err=True))), lines=False)
    echo(f"Folder: {suite.folder}  (report.md, summary.json, and one evaluation for each benchmark)")
    if not suite.is_complete:
        echo(f"Incomplete. Resume with: muarl eval --resume {suite.folder}", err=True)
