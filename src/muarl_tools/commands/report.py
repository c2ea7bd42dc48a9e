"""``muarl report``: make a run's report again from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muarl.cli.command import MEASURE, Subcommand
from muarl.observe.terminal import echo, working


def report(
    run: Annotated[Path, typer.Argument(help="The run's folder, such as runs/quickstart.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write here instead of RUN/report.html.")] = None,
    conversations: Annotated[int, typer.Option(min=0, max=50, help="Number of tasks to print in full.")] = 4,
) -> None:
    """Make a run's report.html again from its metrics, summary and episodes.

    The page is one file without scripts or outside requests: mail it, or put it on any web server. Works on
    interrupted runs too; what is missing is left out.

    [bold]Examples[/bold]

      muarl report runs/quickstart

      muarl report runs/quickstart --conversations 12 --out /tmp/look.html
    """
    from dataclasses import replace

    from muarl.observe.rundir import RunDirectory
    from muarl.report.report import collect, write_report

    directory = RunDirectory.at(run)
    with working(f"Reading {run}"):
        data = replace(collect(directory), conversations=conversations)
        page = write_report(out or directory.report, data)
    echo(str(page))


COMMAND = Subcommand(report, MEASURE, 17)
