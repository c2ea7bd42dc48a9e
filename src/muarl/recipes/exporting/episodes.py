"""``muarl export --as messages | csv | parquet``: the episodes of a run for other programs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from muarl.observe.rundir import RunDirectory
from muarl.recipes.exporting import ExportOptions, free_place
from muarl.view.episode_tables import export_episodes

SUFFIXES = {"messages": ".jsonl", "csv": ".csv", "parquet": ".parquet"}


def export(form: str, options: ExportOptions) -> Path:
    """Write the episodes of the run ``options.source``; returns the file. MuarlError if there is no run, or it has no
    episodes; ConfigError if the file is there already."""
    run = RunDirectory.at(Path(options.source).expanduser())
    out = free_place(options.out or Path(f"{run.name}{SUFFIXES[form]}"))
    export_episodes(run, form, out)
    return out


messages, csv, parquet = (partial(export, form) for form in SUFFIXES)
