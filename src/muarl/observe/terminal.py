"""What commands say besides their tables: lines in which texts of others are visible, and a sign that work goes on.

with working("Making 20 tasks of retail-generated"):
    ...  # nothing is printed here
echo(f"{len(tasks)} tasks")
"""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from muarl.basics.untrusted import visible

if TYPE_CHECKING:
    from rich.progress import Progress

_signs: list[Progress] = []
"""The signs of work on the terminal, of which the last is shown."""


def echo(text: str = "", *, err: bool = False, nl: bool = True, colour: str | None = None) -> None:
    """Print a line, on standard error if ``err``; control characters in it are shown as their code points, so that no
    text from a file, a model or a server steers the terminal. ``nl``: with an end of line."""
    with aside():
        typer.secho(visible(text), err=err, nl=nl, fg=colour)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on standard error at once what is being done, before work that may take more than a second or two.

    On a terminal: a line with a moving mark and the time, below whatever is said meanwhile, until the block ends or
    bars of progress are shown. Elsewhere: one plain line, so that logs show what was waited for.
    """
    if not _on_terminal():
        typer.echo(f"{visible(what)} ...", err=True)
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # Standard output may be a file that another program reads: what is printed there must not come to the terminal.
    sign = Progress(
        SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, redirect_stdout=False, refresh_per_second=4,
    )  # fmt: skip
    sign.add_task(visible(what), total=None)
    with aside():
        _signs.append(sign)
        sign.start()
        try:
            yield
        finally:
            if sign in _signs:
                sign.stop()
                _signs.remove(sign)


@contextmanager
def aside() -> Iterator[None]:
    """While the block runs, the terminal shows no sign of work: something is printed there."""
    sign = _signs[-1] if _signs else None
    if sign is not None:
        sign.stop()
    try:
        yield
    finally:
        if sign is not None and sign in _signs:
            sign.start()


def clear() -> None:
    """Take all signs of work away for good: what is shown from now on, such as bars, is one itself."""
    while _signs:
        _signs.pop().stop()


def make_logs_visible() -> None:
    """Show control characters as their code points in what goes to standard error unasked: warnings, and the log where
    nobody has set one up. Both quote what files and servers say."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_VisibleFormatter())
    plain = warnings.formatwarning

    def formatted(*arguments: Any, **more: Any) -> str:
        return visible(plain(*arguments, **more))

    warnings.formatwarning = formatted


def print_trace(problem: BaseException) -> None:
    """The trace of an error on standard error."""
    sys.stderr.write(visible("".join(traceback.format_exception(problem))))


class _VisibleFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def _on_terminal() -> bool:
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal and not console.is_dumb_terminal
