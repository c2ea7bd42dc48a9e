"""The runs in a folder, a row each: what they are, how they stand, what they came to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from muarl.errors import MuarlError
from muarl.files import read_lines
from muarl.observe.markup import as_figure
from muarl.observe.rundir import RunDirectory
from muarl.observe.training import PHASE
from muarl.untrusted import parse_yaml

Order = Literal["when", "name", "success", "cost"]

EVALUATIONS = ("rl", "evaluation", "cold_start")
"""Blocks of summary.json with a success, the one that counts most first."""


@dataclass(frozen=True)
class Listed:
    """One run. ``kind``: the command that made it, "" where a program did or nobody knows. ``steps``: of its training
    (reinforcement learning, else fine-tuning), None where it has none. ``success``: of the last evaluation on held-out
    tasks, else in the last step's rollouts (``held_out`` False); None where nothing was scored. ``when``: when it
    began, ISO 8601. ``cost``: US dollars at endpoints."""

    path: str
    name: str
    kind: str
    domain: str
    state: str
    steps: int | None
    success: float | None
    held_out: bool
    when: str
    cost: float

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return asdict(self)


def list_runs(folder: Path, order: Order = "when") -> list[Listed]:
    """The runs directly in ``folder``; newest, dearest or best first, by name from A to Z. What is no run, or cannot be
    read, is left out."""
    found = [row for path in sorted(folder.iterdir()) if path.is_dir() if (row := _listed(path)) is not None]
    if order == "name":
        return found
    keys: Mapping[str, Callable[[Listed], Any]] = {
        "when": lambda run: run.when,
        "success": lambda run: -1.0 if run.success is None else run.success,
        "cost": lambda run: run.cost,
    }
    return sorted(found, key=keys[order], reverse=True)


def _listed(path: Path) -> Listed | None:
    try:
        run = RunDirectory.at(path)
        status, summary = run.read_json("status"), run.read_json("summary")
        rows = run.read_metrics()
        state = run.state
    except (MuarlError, OSError, ValueError):
        return None
    steps = [row for row in rows if row.get("phase") == PHASE] or [r for r in rows if r.get("phase") == "cold_start"]
    success, held_out = _success(summary, rows)
    when = str(status.get("began") or status.get("at") or _changed(path))
    return Listed(
        path=str(path),
        name=path.name,
        kind=str(status.get("command") or ""),
        domain=str(status.get("domain") or _domain(run)),
        state=state,
        steps=int(max(as_figure(r.get("step")) or 0 for r in steps)) + 1 if steps else None,
        success=success,
        held_out=held_out,
        when=when,
        cost=_cost(run, summary, rows),
    )


def _success(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[float | None, bool]:
    for name in EVALUATIONS:
        block = summary.get(name)
        found = as_figure(block.get("success") if isinstance(block, Mapping) else block)
        if found is not None:
            return found, True
    for phase, held_out in (("evaluation", True), ("validation", True), (PHASE, False)):
        measured = [v for r in rows if r.get("phase") == phase and (v := as_figure(r.get("success"))) is not None]
        if measured:
            return measured[-1], held_out
    return None, False


def _cost(run: RunDirectory, summary: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> float:
    """What the run's account says; an evaluation's is in its summary, and a run of an older muarl has its rows."""
    spending = read_lines(run.path / "spending.jsonl")
    if spending:
        return sum(as_figure(line.get("cost")) or 0.0 for line in spending)
    for name, keys in (("cost", ("total",)), ("cost", ("agent", "user", "judge")), ("usage", ("cost",))):
        block = summary.get(name)
        known = [as_figure(block.get(key)) for key in keys] if isinstance(block, Mapping) else []
        if any(v is not None for v in known):
            return sum(v or 0.0 for v in known)
    return sum(as_figure(row.get(name)) or 0.0 for row in rows for name in ("user/cost", "agent/cost"))


def _domain(run: RunDirectory) -> str:
    """A run of an older muarl says its domain in its configuration alone."""
    try:
        config = parse_yaml(run.read_config())
    except (MuarlError, OSError, ValueError):
        return ""
    section = config.get("domain") if isinstance(config, Mapping) else None
    return str(section.get("name") or "") if isinstance(section, Mapping) else ""


def _changed(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
