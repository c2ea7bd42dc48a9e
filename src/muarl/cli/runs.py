"""``muarl runs``: the runs in a folder, what they are and what they came to."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muarl.cli import options
from muarl.cli.options import in_runs
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl.observe.listing import RunSummary

HARDER = "harder users"
PIPE = 200
"""Columns where no terminal says how many it has, so that rows stay whole."""


class RunOrder(StrEnum):
    """What the list is sorted by."""

    when = "when"
    name = "name"
    success = "success"
    cost = "cost"


def runs(
    folder: Annotated[
        Path | None,
        typer.Argument(help="The folder that holds the runs, or one run. Default: RUNS_DIR.", show_default=False),
    ] = None,
    runs_dir: options.RunsDir = None,
    sort: Annotated[
        RunOrder, typer.Option("--sort", help="Order: newest, name, highest success, or highest cost first.")
    ] = RunOrder.when,
    as_json: options.AsJson = False,
) -> None:
    """List runs: kind, domain, state, progress, success, success without any violation, when, cost.

    Success, with its 95% interval in percent, is that of the last evaluation on held-out tasks; where there was none,
    of the last training step, in brackets. Beside it stands success without any violation, or "not checked" where
    nobody audited it, and success on the same tasks with users who are harder to serve. Progress is in training steps,
    or in conversations of evaluations and cold starts. A run whose process died without a status is "killed". Times are
    UTC.

      muarl runs
      muarl runs --sort success
      muarl runs path/to/runs --json
    """
    from muarl.basics.errors import DataError
    from muarl.observe.listing import list_runs

    folder = (runs_dir or Path("runs")) if folder is None else in_runs(folder, runs_dir)
    if not folder.expanduser().is_dir():
        raise DataError(f"{folder}: no such folder; give the folder that contains the runs")
    with working(f"Reading the runs in {folder}"):
        listing = list_runs(folder.expanduser(), sort.value)
    if as_json:
        import json

        echo(json.dumps([run.to_json() for run in listing], indent=2))
    elif not listing:
        echo(f"There is no run in {folder}.")
    else:
        _print(listing)


def _print(listing: list[RunSummary]) -> None:
    import sys

    from muarl.observe.screen import Screen, print_narrow

    figures = ("progress", "success", "without violation", HARDER)
    head = ("run", "kind", "domain", "state", *figures, "began", "ended", "cost")
    rows = []
    for run in listing:
        cells = [run.name, run.kind or "–", _domain(run) or "–", run.state]
        rows.append([*cells, _progress(run), _success(run), _clean(run), _harder(run), *_times(run), _cost(run)])
    print_narrow(
        Screen(width=None if sys.stdout.isatty() else PIPE, highlight=False),
        head,
        rows,
        first_to_go=("ended", "progress", "kind", "began", "cost", "state", HARDER, "domain"),
        right=(*figures, "cost"),
    )


def _domain(run: RunSummary) -> str:
    """The domain; of a cold start's many scenarios only the first one."""
    if run.by_domain:
        return "\n".join(["several:", *run.by_domain])
    first, *others = run.domain.split(", ")
    return run.domain if len(others) < 2 else f"{first} and {len(others)} more"


def _progress(run: RunSummary) -> str:
    if run.done is None:
        return ""
    return f"{run.done:,}" if run.planned is None else f"{run.done:,} of {run.planned:,}"


def _success(run: RunSummary) -> str:
    from muarl.observe.headline import ShownShare

    if run.success is None:
        return ""
    whole = ShownShare(run.success, run.interval).short_text
    if run.trained_on_benchmark:
        whole += ", trained on it"
    shares = [whole, *(f"{share:.1%}" for share in (run.by_domain or {}).values())]
    return "\n".join(share if run.held_out else f"({share})" for share in shares)


def _clean(run: RunSummary) -> str:
    from muarl.accounts.metrics import NOT_CHECKED
    from muarl.observe.headline import ShownShare

    if run.success is None:
        return ""
    value, parts = run.success_without_violation, run.clean_by_domain or {}
    whole = NOT_CHECKED if value is None else ShownShare(value, run.interval_without_violation).short_text
    each = (parts.get(name) for name in run.by_domain or {}) if parts else ()
    return "\n".join([whole, *(NOT_CHECKED if share is None else f"{share:.1%}" for share in each)])


def _harder(run: RunSummary) -> str:
    return ", ".join(f"{level} {share:.1%}" for level, share in (run.harder_users or {}).items())


def _times(run: RunSummary) -> tuple[str, str]:
    """Beginning and end to the minute; the end without its day where that is the same."""
    began, ended = (when[:16].replace("T", " ") for when in (run.began, run.ended or ""))
    return began, ended[11:] if ended[:10] == began[:10] else ended


def _cost(run: RunSummary) -> str:
    return "" if not run.cost else f"${run.cost:,.2f}"
