"""``muarl export``: a run or checkpoint in a form that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from muarl.cli import options
from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.options import in_runs, option
from muarl.observe.terminal import echo, working

EPISODES = {
    "messages": ".jsonl",
    "csv": ".csv",
    "parquet": ".parquet",
    "rows": "-rows.parquet",
    "atif": "-atif",
    "tau2": "-results.json",
}
"""Forms in which the episodes of a run are written, and how their files are named."""


def export(
    source: Annotated[str, typer.Argument(help="A run, a checkpoint folder, or `base`.", show_default=False)],
    form: Annotated[
        str,
        option(
            "--as",
            "hf: a checkpoint as a Hugging Face folder for other servers and trainers. messages, rows, atif, tau2, "
            "csv, parquet: the episodes of a run.",
            show_default=True,
        ),
    ] = "hf",
    out: Annotated[
        Path | None, option("--out", "a folder or file. Default: a new one here, named after the source.")
    ] = None,
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"] | None, option("--dtype", "Default: as they are.")
    ] = None,
    episodes: options.Episodes = None,
    runs_dir: options.InRunsDir = None,
) -> None:
    """Write a run or checkpoint in a form that other programs read.

    --as hf: weights, tokenizer, chat template, generation settings and a model card, without the trainer's state. vLLM,
    transformers and others load the folder. --as messages: one conversation a line as chat messages, with tools and
    reward. --as rows: the same with token ids, masks and log-probabilities, for Hugging Face datasets. --as atif: a
    folder of ATIF trajectories. --as tau2: an evaluation as TAU2's results.json (docs/formats.md). --as csv or parquet:
    one row an episode (docs/files.md).

      muarl export runs/mine --as hf --dtype bfloat16 --out my-agent
      muarl export runs/mine/checkpoints/rl/step-000060 --out step-60
      muarl export runs/mine --as messages --out messages.jsonl
      muarl export runs/mine --as rows --episodes train-0010 --out rows.parquet
    """
    from muarl.basics.errors import ConfigError
    from muarl_tools.export import FORMS, ExportOptions, export

    source = in_runs(source, runs_dir)
    if form not in (*FORMS, *EPISODES):
        raise ConfigError(f"--as: {form!r} is unknown; use one of {', '.join((*FORMS, *EPISODES))}")
    if form in FORMS and episodes:
        raise ConfigError(f"--episodes: --as {form} writes weights; remove --episodes")
    if form in FORMS:
        with working(f"Exporting {source}"):
            written = export(form, ExportOptions(source, out, dtype))
    elif dtype is not None:
        raise ConfigError(f"--dtype: --as {form} writes no weights; remove --dtype")
    else:
        with working(f"Exporting the episodes of {source}"):
            written = _episodes(source, form, out, episodes or [])
    echo(f"Written to {written}")


def _episodes(source: str, form: str, out: Path | None, only: list[str]) -> Path:
    """Write the episodes of a run; returns the file."""
    from muarl.observe.rundir import RunDirectory
    from muarl_tools.export import free_place
    from muarl_tools.export.episode_tables import export_episodes

    run = RunDirectory.at(Path(source).expanduser())
    file = free_place(out or Path(f"{run.name}{EPISODES[form]}"))
    export_episodes(run, form, file, only)
    return file


COMMAND = Subcommand(export, MEASURE, 15)
