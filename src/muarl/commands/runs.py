"""``muarl runs``: the runs in a folder, what they are and what they came to."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from muarl.observe.listing import Listed


class Order(StrEnum):
    """What the list is sorted by."""

    when = "when"
    name = "name"
    success = "success"
    cost = "cost"


def runs(
    folder: Annotated[Path, typer.Argument(help="The folder that holds the runs.")] = Path("runs"),
    sort: Annotated[
        Order, typer.Option("--sort", help="Newest first, by name, best first, or dearest first.")
    ] = Order.when,
    json_: Annotated[bool, typer.Option("--json", help="One JSON list, for programs.")] = False,
) -> None:
    """List runs: command, domain, state, steps, success, when and cost.

    Success is that of the last evaluation on held-out tasks; where there was none, that of the last training step, in
    brackets. A run that says that it goes on and whose process is gone is "killed".

    [bold]Examples[/bold]

      muarl runs

      muarl runs --sort success

      muarl runs path/to/runs --json
    """
    from muarl.errors import DataError
    from muarl.observe.listing import list_runs

    if not folder.expanduser().is_dir():
        raise DataError(f"{folder}: there is no such folder; name the one that holds the runs")
    found = list_runs(folder.expanduser(), sort.value)
    if json_:
        import json

        typer.echo(json.dumps([run.to_json() for run in found], indent=2))
        return
    if not found:
        typer.echo(f"There is no run in {folder}.")
        return
    _print(found)


def _print(found: list[Listed]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("run", "command", "domain", "state"):
        table.add_column(name, overflow="fold")
    for name in ("steps", "success"):
        table.add_column(name, justify="right")
    table.add_column("began", no_wrap=True)
    table.add_column("cost", justify="right")
    for run in found:
        success = "" if run.success is None else f"{run.success:.1%}"
        cells = [
            run.name,
            run.kind or "–",
            run.domain or "–",
            run.state,
            "" if run.steps is None else f"{run.steps:,}",
            success if run.held_out or not success else f"({success})",
            run.when[:16].replace("T", " "),
            f"${run.cost:,.2f}" if run.cost else "",
        ]
        table.add_row(*map(Text, cells))
    Console(width=None if _wide() else 160, highlight=False).print(table)


def _wide() -> bool:
    """Whether a terminal says how wide it is; a file or a pipe does not, and rows stay whole there."""
    import sys

    return sys.stdout.isatty()
