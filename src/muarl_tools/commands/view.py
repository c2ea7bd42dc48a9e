"""``muarl view``: look at runs in a browser, while they run and afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muarl.cli import options
from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.environment_approval import approved_all
from muarl.cli.options import in_runs, option
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl_tools.view.runs import Library


def view(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs; several are compared.", show_default=False)],
    domain: Annotated[
        list[str] | None,
        option(
            "--domain",
            "Your own, that a run is of (repeatable): code that a run names is not imported otherwise.",
            metavar="NAME",
            callback=approved_all,
        ),
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the pages into this folder instead of serving them.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="With --export: how many episodes of each run.")] = 200,
    port: Annotated[int | None, option("--port", "Default: 8475, or a free one.", min=0, max=65535)] = None,
    host: options.Host = "127.0.0.1",
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in this machine's browser.")] = False,
    runs_dir: options.InRunsDir = None,
) -> None:
    """Browse runs: metrics, transcripts, tasks.

    Serves pages on this machine only, to whoever has the address with its token. The pages follow a run in progress.
    Nothing is written into the run's folder; an index of its episodes is kept in the cache folder.

      muarl view runs/quickstart
      muarl view runs/first runs/second --port 8080
      muarl view runs/quickstart --export pages
      muarl view runs/clinic --domain ./clinic.py:CLINIC      (what calls changed in the database of your environment)
    """
    from muarl.environments.audit_rules import RulesOfRuns
    from muarl.environments.recorded_episodes import replay_recorded
    from muarl_tools.view.runs import Library

    with working(f"Reading {', '.join(map(str, runs))}"):
        library = Library([in_runs(run, runs_dir) for run in runs], replay=replay_recorded, rules=RulesOfRuns())
    if export is not None:
        pages = _export(library, export, limit)
        echo(f"{pages:,} pages. Open {export / 'index.html'}")
        return
    from muarl_tools.view.server import ViewServer

    with ViewServer(library, host=host, port=port) as server:
        if not server.loopback:
            echo(f"Listening on {host}: other machines can reach it, and the token travels unencrypted.", err=True)
        echo(f"Open {server.address}\nStop with Ctrl-C.")
        library.watch()
        if open_:
            import webbrowser

            webbrowser.open(server.address)
        try:
            server.serve()
        finally:
            echo("")
            library.close()


def _export(library: Library, folder: Path, limit: int) -> int:
    """Write the pages of all runs, of so many episodes each; how many pages."""
    import time
    from contextlib import ExitStack

    from muarl.observe.progress import Phase, Progress
    from muarl_tools.view.export import write_pages

    with Progress() as progress, ExitStack() as open_phase:
        for run in library.runs:
            with progress.phase(f"reading {run.name}", run.store.progress().size >> 20, "MiB") as reading:
                looked = 0.0
                for _ in run.store.steps():
                    if time.monotonic() - looked > 1:  # a look asks about every file, so not after each
                        looked = time.monotonic()
                        reading.advance((run.store.progress().done >> 20) - reading.done)
                reading.advance((run.store.progress().done >> 20) - reading.done)
        writing: list[Phase] = []

        def told(done: int, total: int) -> None:
            if not writing:
                writing.append(open_phase.enter_context(progress.phase("writing", total, "pages")))
            writing[0].advance(done - writing[0].done)

        return write_pages(library, folder, episodes=limit, told=told)


COMMAND = Subcommand(view, MEASURE, 18)
