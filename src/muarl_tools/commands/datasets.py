"""``muarl data``: benchmark data on this machine, and what of it training tasks repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muarl.cli import options
from muarl.cli.command import WORLDS, Subcommand
from muarl.cli.options import option
from muarl.observe.terminal import echo, working

data = typer.Typer(no_args_is_help=True, help="Install benchmark data and see what is installed.")


@data.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The benchmark, such as tau2.")],
    source: Annotated[
        Path,
        option(
            "--from",
            "a checkout of its repository, or the data folder inside it (data/tau2); for bfcl also a wheel of "
            "bfcl-eval, an unpacked one, or a folder with wheels; for areal-tau2 the downloaded data set.",
        ),
    ],
) -> None:
    """Install a benchmark's data, or tasks to train on, from a folder on this machine; every file is checked.

    muarl data add tau2 --from ~/src/tau2-bench
    muarl data add bfcl --from bfcl_eval-2025.8.6.2-py3-none-any.whl
    muarl data add areal-tau2 --from ~/AReaL-tau2-data
    """
    from muarl_worlds import install
    from muarl_worlds.data import TASK_SETS

    with working(f"Checking and copying the files of {name}"):
        folder = install.add(name, source)
    echo(f"{name} is installed in {folder}")
    if name in TASK_SETS:
        from muarl_worlds.tau.areal_tau2.installation import about

        for line in about():
            echo(line)


@data.command("fetch")
def fetch(name: Annotated[str, typer.Argument(metavar="NAME", help="The benchmark, such as tau2.")]) -> None:
    """Download a benchmark's data at the commit this version was checked against; bfcl's wheels through pip.

    muarl data fetch tau2
    """
    from muarl_worlds import install

    def progress(file: str, number: int, total: int) -> None:
        echo(f"[{number}/{total}] {file}", err=True)

    with working(f"Fetching {name}"):
        folder = install.fetch(name, progress)
    echo(f"{name} is installed in {folder}")


@data.command("list")
def list_data() -> None:
    """Show which benchmarks are known, and where the installed ones are.

    muarl data list
    """
    from muarl_worlds import data as store

    present = store.installed()
    for name in store.known():
        wanted = store.manifest(name)
        where = str(store.home() / name) if name in present else f"not installed (muarl data add {name} --from DIR)"
        if name in present and wanted.wheels:
            where += f" ({', '.join(store.parts(name))})"
        echo(f"{name}  {wanted.repository}@{wanted.commit[:7]}  {where}")
    for name in store.TASK_SETS:
        there = (store.home() / name).is_dir()
        echo(f"{name}  {store.home() / name if there else f'not installed (muarl data add {name} --from DIR)'}")


@data.command("overlap")
def overlap(
    training: Annotated[
        str,
        typer.Option(
            "--training",
            metavar="NAME[:SPLIT]",
            help="Training tasks: an environment's (retail-generated, ./clinic.py:CLINIC), a benchmark's split "
            "(tau1-retail:train), or a file that `muarl generate --out` wrote.",
        ),
    ],
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            "--benchmark",
            help="Benchmark tasks, such as tau2-retail:test; may be given again. Without it: every installed benchmark "
            "of the same domain.",
        ),
    ] = None,
    tasks: Annotated[int, option("--tasks", min=1, show_default=True)] = 2000,
    size: options.Largest = None,
    seed: options.DrawSeed = 0,
    show: Annotated[int, option("--show", "Of pairs of tasks.", min=0, show_default=True)] = 5,
    out: Annotated[Path | None, option("--out", "all pairs, as JSON.")] = None,
) -> None:
    """Say which training tasks have the same writes as a benchmark task.

    Gold actions are compared; reads, and the order of the writes, do not count. A benchmark says little of a model that
    was trained on tasks like its own.

      muarl data overlap --training retail-generated --tasks 5000
      muarl data overlap --training tau1-retail:train --benchmark tau2-retail:test --out overlap.json
    """
    import json

    from muarl_tools.commands.tasksets import benchmarks_of, task_set
    from muarl_worlds.contamination import overlaps

    with working(f"Reading or making the tasks of {training}, and those of benchmarks"):
        ours = task_set(training, count=tasks, size=size, seed=seed)
        named = [task_set(name, count=tasks, size=size, seed=seed) for name in benchmark or ()]
        found = overlaps(ours, named or benchmarks_of(ours))
    for each in found:
        echo(each.summary())
        for pair in each.pairs[:show]:
            echo(f"  {pair.training} = {pair.benchmark}: {', '.join(name for name, _ in pair.writes)}")
        if len(each.pairs) > show:
            echo(f"  and {len(each.pairs) - show} more")
    if out is not None:
        from muarl.basics.files import write_text

        write_text(out, json.dumps([each.to_json() for each in found], indent=1) + "\n")
        echo(f"Written to {out}")


COMMAND = Subcommand(data, WORLDS, 30)
