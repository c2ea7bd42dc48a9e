"""``muarl compare``: is one agent better than another, and how would one know?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muarl.cli import options
from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.options import in_runs
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl_tools.compare.comparing import Comparison


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Results to compare: PATH, or NAME=PATH. Runs and evaluations of muarl, TAU2's results.json, TAU1's "
            "trajectories, BFCL's and ACEBench's files, or JSON lines with task_id and success or reward.",
        ),
    ],
    points: Annotated[
        float, typer.Option("--points", help="The difference in points of success that should be seen.")
    ] = 3.0,
    power: Annotated[float, typer.Option("--power", help="The chance of seeing it that is wanted.")] = 0.8,
    alpha: Annotated[
        float, typer.Option("--alpha", help="The chance of any false finding, over all pairs together.")
    ] = 0.05,
    these_tasks: Annotated[
        bool,
        typer.Option(
            "--these-tasks",
            help="Ask which is better on these very tasks, not on tasks like them: only trials are noise then. Needs "
            "two trials of each task.",
        ),
    ] = False,
    keep_changed: Annotated[
        bool, typer.Option("--keep-changed", help="Also compare tasks that the files describe differently.")
    ] = False,
    as_json: options.AsJson = False,
    page: options.Page = None,
    runs_dir: options.InRunsDir = None,
) -> None:
    """Say which of several runs is better, or that they cannot be told apart, and how many trials it would take.

    Runs are paired by task, and by seed where the files tell it. Tasks that only one of them has, and attempts that
    failed outside the agent, are named and left out. Intervals draw whole tasks, tests are exact and corrected for the
    number of pairs (Holm), for success, and for success without any violation where the runs were audited. A folder of
    a single training run compares its evaluations before and after.

    Repeats that tell the agent's noise from the user's: muarl eval --noise 3x3. The judge's: muarl score --verdicts 3.

      muarl compare runs/eval-a runs/eval-b
      muarl compare old=results/gpt-4.1_retail.json new=results/o4-mini_retail.json --page compare.html
      muarl compare runs/quickstart --points 5
      muarl compare a/BFCL_v4_multi_turn_base_score.json b/BFCL_v4_multi_turn_base_score.json --json
    """
    from muarl_tools.compare.comparing import Settings
    from muarl_tools.compare.comparing import compare as compare_runs
    from muarl_tools.compare.reading import read_all

    settings = Settings(
        alpha=alpha, difference=points / 100, power=power, these_tasks=these_tasks, keep_changed=keep_changed
    )
    with working("Reading and comparing"):
        found = compare_runs(read_all([_found(run, runs_dir) for run in runs]), settings)
        if page is not None:
            from muarl_tools.compare.page import write_page

            write_page(page, found)
    if as_json:
        echo(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        _print(found)
    if page is not None:
        echo(f"Page: {page}", err=True)


def _found(word: str, runs_dir: Path | None) -> str:
    """PATH or NAME=PATH, its path in the folder of runs if it is there."""
    name, equals, path = word.rpartition("=")
    return f"{name}{equals}{in_runs(path, runs_dir)}"


def _print(found: Comparison) -> None:
    from rich.text import Text

    from muarl.observe.screen import Screen
    from muarl.pages.table import to_terminal
    from muarl_tools.compare import tables, text

    console = Screen()
    for line in found.warnings:
        console.print(Text(line, style="yellow"))
    console.print(to_terminal(tables.scores_table(found)))
    if found.pairs:
        for table in tables.pair_tables(found):
            console.print(to_terminal(table))
        console.print(Text(found.verdict(), style="bold"))
    for line in (
        *text.odds_lines(found),
        *text.group_lines(found),
        *text.unchecked_lines(found),
        *text.floor_lines(found),
    ):
        console.print(Text(line))
    if (strata := tables.strata_table(found)) is not None:
        console.print(to_terminal(strata))
    for line in text.strata_lines(found):
        console.print(Text(line, style="yellow"))
    for line in text.power_lines(found):
        console.print(Text(line))
    for score in found.scores:
        for components, what in ((score.components, "Where the noise comes from"), (score.judges, "The judge's part")):
            if components is None:
                continue
            console.print(to_terminal(tables.components_table(f"{what}: {score.results.name}", components)))
            if (told := text.noise_line(components)) is not None:
                console.print(Text(told))
    for line in text.left_out_lines(found):
        console.print(Text(line))


COMMAND = Subcommand(compare, MEASURE, 12)
