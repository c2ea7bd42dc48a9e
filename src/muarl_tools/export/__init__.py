"""What ``muarl export`` can write of a run or checkpoint. A form's module is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from muarl.basics.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """``source``: a run, a checkpoint, as the form takes. ``out``: the file or folder to write; None: the form's own
    choice. ``dtype``: of weights; None: as they are."""

    source: str
    out: Path | None = None
    dtype: Literal["float32", "bfloat16", "float16"] | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """A form of export. ``place``: module and function, which takes ExportOptions and returns what it has written.
    ``takes``: the options that mean something to it, besides source and out."""

    what: str
    place: str
    takes: tuple[str, ...] = ()


FORMS: Mapping[str, Form] = {
    "hf": Form(
        "a checkpoint as a Hugging Face folder for other servers and trainers",
        "muarl_tools.export.hf:export",
        ("dtype",),
    ),
}
"""By what ``--as`` calls them."""


def export(form: str, options: ExportOptions) -> Path:
    """Write a run or checkpoint in this form; returns where. ConfigError for another form, or an option that means
    nothing to it; MuarlError if something is there already."""
    if form not in FORMS:
        raise ConfigError(f"--as: {form!r} is unknown; use one of {', '.join(FORMS)}")
    chosen = FORMS[form]
    if options.dtype is not None and "dtype" not in chosen.takes:
        raise ConfigError(f"--dtype: --as {form} writes no weights; remove --dtype")
    module, _, function = chosen.place.partition(":")
    write: Callable[[ExportOptions], Path] = getattr(import_module(module), function)
    return write(options)


def free_place(out: Path) -> Path:
    """``out`` with the home folder written out. ConfigError if something is there."""
    path = out.expanduser()
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise ConfigError(f"--out: {path} exists; name another place, or remove it")
    return path
