"""``muarl report``: make a run's report again from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muarl.cli import options
from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.options import in_runs, option
from muarl.observe.terminal import echo, working


def report(
    run: Annotated[Path, typer.Argument(help="The run's folder, such as runs/quickstart.", show_default=False)],
    out: Annotated[Path | None, option("--out", "the page. Default: RUN/report.html.")] = None,
    show: Annotated[int, option("--show", "Of tasks.", min=0, max=50, show_default=True)] = 4,
    runs_dir: options.InRunsDir = None,
) -> None:
    """Make a run's report.html again from its metrics, summary and episodes.

    The page is one file without scripts or outside requests: mail it, or put it on any web server. Works on
    interrupted runs too; what is missing is left out.

      muarl report runs/quickstart
      muarl report runs/quickstart --show 12 --out /tmp/look.html
    """
    from dataclasses import replace

    from muarl.observe.rundir import RunDirectory
    from muarl.report.report import collect, write_report

    directory = RunDirectory.at(in_runs(run, runs_dir))
    with working(f"Reading {run}"):
        data = replace(collect(directory), conversations=show)
        page = write_report(out or directory.report, data)
    echo(str(page))


COMMAND = Subcommand(report, MEASURE, 17)
