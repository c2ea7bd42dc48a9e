"""What sets compared runs apart: the settings in which they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muarl.observe.markup import Html, table_of, tag
from muarl.view.runs import Run

OWN = ("name", "resume", "runs_dir")
"""Settings in which runs differ without being different experiments."""
SHOWN = 60
"""Settings shown at most."""


def differing(configs: Sequence[Mapping[str, Any]]) -> dict[str, list[str | None]]:
    """Dotted key to each run's value as JSON, for the keys that differ; None where a run does not have the key."""
    flat = [dict(_leaves(config)) for config in configs]
    keys = dict.fromkeys(key for values in flat for key in values)
    found = {key: [values.get(key) for values in flat] for key in keys if key.partition(".")[0] not in OWN}
    return {key: values for key, values in found.items() if len(set(values)) > 1}


def _leaves(value: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{prefix}.{key}" if prefix else str(key))
    elif prefix:
        yield prefix, json.dumps(value, ensure_ascii=False, default=str)


def settings_section(runs: Sequence[Run]) -> Html | None:
    """The settings in which the runs differ, one row each; None where no two configurations are on file."""
    known = [run for run in runs if run.config]
    if len(known) < 2:
        return None
    found = differing([run.config for run in known])
    title = tag("h2", "Settings that differ")
    if not found:
        return tag("section", title, tag("p", "None: the runs have the same settings.", class_="soft"), id="settings")
    rows = [
        tag("tr", tag("th", key, scope="row"), [tag("td", _short(value)) for value in values])
        for key, values in list(found.items())[:SHOWN]
    ]
    more = tag("p", f"and {len(found) - SHOWN:,} more", class_="soft") if len(found) > SHOWN else None
    table = table_of(["Setting", *(run.name for run in known)], rows, "figures")
    return tag("section", title, tag("div", table, class_="scroll"), more, id="settings")


def _short(value: str | None) -> str:
    text = "–" if value is None else value
    return text if len(text) <= 80 else f"{text[:80]} …"
