"""What sets compared runs apart: the settings in which they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muarl.pages.markup import Html, tag
from muarl.pages.table import Cell, table, to_html
from muarl_tools.view.runs import Run

OWN = ("name", "resume", "runs_dir")
"""Settings in which runs differ without being different experiments."""
SHOWN = 60
"""Settings shown at most."""
LONG = 80
"""Characters of a value that are shown at once."""
MISSING = object()
"""Stands for the value of a setting that a run does not have."""


def differing(configs: Sequence[Mapping[str, Any]]) -> dict[str, list[str | None]]:
    """Dotted key to each run's value as JSON, for the keys that differ; None where a run does not have the key. A
    section that one of the runs does not have, such as its endpoint, is one key."""
    return dict(_differing([{k: v for k, v in config.items() if k not in OWN} for config in configs]))


def _differing(values: Sequence[Any], key: str = "") -> Iterator[tuple[str, list[str | None]]]:
    if all(isinstance(value, Mapping) and value for value in values):
        for name in dict.fromkeys(name for value in values for name in value):
            yield from _differing([value.get(name, MISSING) for value in values], f"{key}.{name}" if key else str(name))
        return
    told = [None if v is MISSING else json.dumps(v, ensure_ascii=False, default=str) for v in values]
    if len(set(told)) > 1:
        yield key, told


def settings_section(runs: Sequence[Run]) -> Html | None:
    """The settings in which the runs differ, one row each; None where no two configurations are on file."""
    known = [run for run in runs if run.config]
    if len(known) < 2:
        return None
    found = differing([run.config for run in known])
    title = tag("h2", "Settings that differ")
    if not found:
        return tag("section", title, tag("p", "None: the runs have the same settings.", class_="soft"), id="settings")
    rows = [(key, *map(_short, values)) for key, values in list(found.items())[:SHOWN]]
    more = [f"and {len(found) - SHOWN:,} more"] if len(found) > SHOWN else []
    head = ["Setting", *(run.name for run in known)]
    shown = to_html(table(head, rows, words=len(head), notes=more, kind="figures"))
    return tag("section", title, shown, id="settings")


def _short(value: str | None) -> str | Cell:
    text = "–" if value is None else value
    if len(text) <= LONG:
        return text
    return Cell(text, page=tag("details", tag("summary", f"{text[:LONG]} …"), text))
