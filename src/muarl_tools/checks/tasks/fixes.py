"""Tasks with the mechanical changes that checks propose, written in the layout in which they were read."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.basics.files import write_text
from muarl.domains.checking import CheckFinding, Fix
from muarl_tools.checks.tasks.sources import Layout, TaskSource


def fixed(source: TaskSource, findings: Iterable[CheckFinding], *, guesses: bool = False) -> dict[str, dict[str, Any]]:
    """The rows of the tasks that change, by id. ``guesses``: also by fixes that take the gold state for what was meant.

    ConfigError where tasks have no rows, since an environment makes them.
    """
    if source.rows is None or source.layout is None:
        raise ConfigError(f"--fix: {source.label} makes its tasks: fix its generator")
    wanted: dict[str, list[Fix]] = defaultdict(list)
    for finding in findings:
        wanted[finding.where] += [m for m in finding.fixes if m.settled or guesses]
    return {i: fix_row(source.rows[i], source.layout, fixes) for i, fixes in wanted.items() if fixes}


def fix_row(row: Mapping[str, Any], layout: Layout, fixes: Iterable[Fix]) -> dict[str, Any]:
    """A task's row with changes. Of a made task of muarl's own, the address is left out: it is another task now."""
    found: dict[str, Any] = copy.deepcopy(dict(row))
    chosen = list(dict.fromkeys(map(_key, fixes)))
    parts = [json.loads(key) for key in chosen]
    holder = (found.get("evaluation_criteria") or {}) if layout == "tau2" else found
    actions = holder.get("actions") or []
    field = "kwargs" if layout == "tau1" else "arguments"
    dropped = {p["index"] for p in parts if p["what"] == "drop"}
    for part in parts:
        if part["what"] == "arguments" and part["index"] not in dropped:
            actions[part["index"]][field] = part["value"]
        elif part["what"] == "basis" and layout == "tau2":
            holder["reward_basis"] = part["value"]
        elif part["what"] == "say":
            _say(found, layout, part["value"])
    if dropped:
        holder["actions"] = [a for n, a in enumerate(actions) if n not in dropped]
    if layout == "muarl":
        found.pop("made", None)
        found["confirmed"] = False
    return found


def _key(fix: Fix) -> str:
    return json.dumps({"what": fix.what, "value": fix.value, "index": fix.index}, default=dict)


def _say(row: dict[str, Any], layout: Layout, sentence: str) -> None:
    """Add a sentence to the scenario."""
    if layout != "tau2":
        name = "instruction" if layout == "tau1" else "scenario"
        row[name] = f"{row[name].rstrip()} {sentence}"
        return
    holder = row["user_scenario"]
    told = holder["instructions"]
    if isinstance(told, str):
        holder["instructions"] = f"{told.rstrip()} {sentence}"
    else:
        told["task_instructions"] = f"{(told.get('task_instructions') or '').rstrip()}\n\n{sentence}".strip()


def write_fixed(path: Path, source: TaskSource, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Write all tasks of the source, the changed ones in place of the old ones: TAU's as a list, muarl's as lines."""
    assert source.rows is not None
    ids = [task.id for _, task in source.tasks]
    every = [dict(rows.get(i, source.rows[i])) for i in ids]
    if source.layout == "muarl":
        write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in every))
    else:
        write_text(path, json.dumps(every, ensure_ascii=False, indent=4) + "\n")
