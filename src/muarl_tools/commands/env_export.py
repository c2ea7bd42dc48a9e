"""``muarl env export``: an environment as a folder that a hub takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from muarl.cli import options
from muarl.cli.options import option
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl_tools.publish.contents import Contents
    from muarl_tools.publish.own_files import OwnFiles

SHOWN = 10
"""Files that were not copied and are named."""


def export(
    name: options.EnvironmentName,
    form: Annotated[
        Literal["openenv", "verifiers", "hf-dataset"],
        option(
            "--as",
            "openenv: a server for OpenEnv and Hugging Face Spaces. verifiers: a package for verifiers and Prime's "
            "Environments Hub. hf-dataset: the tasks as a data set.",
        ),
    ],
    out: Annotated[Path | None, option("--out", "a new folder. Default: one here, named after both.")] = None,
    size: options.Smallest = None,
    tasks: Annotated[
        int, option("--tasks", "Played by each agent, and in each split of a data set.", min=1, show_default=True)
    ] = 100,
    seed: options.DrawSeed = 0,
    license: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(
            "--license",
            help="Of your own environment, as hubs write it, such as mit or cc-by-4.0. Default: unknown.",
            show_default=False,
        ),
    ] = None,
    wheel: Annotated[
        Path | None,
        typer.Option(
            "--wheel",
            help="The wheel of muarl to copy into the folder. Default: the one that muarl was installed from, or one "
            "built from its checkout.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write an environment as a folder that a hub takes, with a card, a smoke test and muarl's wheel.

    Two baselines and the scripted expert play --tasks tasks first, and the card has what they reach. Your own FILE.py
    is copied with the modules and files that it reads, and the copy is played as well. The same command writes the same
    bytes; a folder that something else wrote, or that was changed since, is never overwritten. Benchmarks and worlds on
    MCP servers are refused. See docs/integrations/publish.md.

      muarl env export retail-generated --as openenv
      muarl env export ./shop.py:BOOKSHOP --as verifiers --out bookshop --license mit
      muarl env export bank-generated --as hf-dataset --size small --tasks 500
    """
    from muarl_tools.publish.publishing import PublishRequest, publish

    request = PublishRequest(name, form, out, size=size, tasks=tasks, seed=seed, license=license, wheel=wheel)
    with working(f"Playing {tasks} tasks with each agent, and exporting {name}"):
        contents, where = publish(request)
    _tell(contents, where)


def _tell(contents: Contents, where: Path) -> None:
    """What was measured and written."""
    for score in contents.measured.scores:
        low, high = score.interval
        echo(f"{score.agent:<16} {score.success:>6.1%}  (95% interval {low:.1%} to {high:.1%}, {score.n} tasks)")
    if contents.own is not None:
        _tell_own(contents.own, contents.license)
    echo(f"Written to {where}. Try it: {where / 'README.md'} says how")


def _tell_own(own: OwnFiles, license: str) -> None:  # noqa: A002
    """What was copied of an environment of one's own, and what was not."""
    echo(f"Copied: {', '.join(own.files)}")
    if own.left:
        more = f" and {len(own.left) - SHOWN} more" if len(own.left) > SHOWN else ""
        echo(f"Not copied, since nothing reads them: {', '.join(own.left[:SHOWN])}{more}")
    if own.packages:
        echo(f"Required besides muarl: {', '.join(own.packages)}")
    if own.databases:
        echo(f"Look at what is in {', '.join(own.databases)} before you publish it: the whole file was copied")
    if license == "unknown":
        echo("Its licence is unknown to whoever takes it: say it by --license")
