"""A run as the pages on whole runs see it: what its files tell, and what the index of its episodes adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.accounts.metrics import GENERAL_TOOLS, SUCCESS_WITHOUT_VIOLATION
from muarl.audit.coverage import checked_layers
from muarl.audit.findings import LAYERS, SEVERITIES
from muarl.pages.charts import Point
from muarl.report.figures import EpisodeLinks, RunFigures
from muarl_tools.view import audit_queries, queries
from muarl_tools.view.audit_queries import Sum
from muarl_tools.view.layout import Site, episodes_at
from muarl_tools.view.runs import Run


@dataclass(frozen=True, eq=False, kw_only=True)
class ViewedRun(RunFigures):
    """The figures of a run that the viewer knows."""

    run: Run

    def user_errors(self) -> Sequence[Point]:
        """By the episodes on file."""
        found: list[Point] = self.run.ask(queries.by_moment, "user_errors > 0")
        return found if any(y for _, y in found) else []

    def found_audits(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """By the findings on file."""
        for stage, found in self.run.ask(audit_queries.sums).items():
            yield stage, _audit_of(self.run, found)


def viewed(run: Run, colour: str = "after") -> ViewedRun:
    """A run as it is now."""
    return ViewedRun(
        name=run.name,
        summary=run.json("summary"),
        metrics=run.figures.rows(),
        config=run.folder.read_config() if run.config else "",
        versions=run.json("versions"),
        status=run.json("status"),
        settings=run.config,
        redteam=run.json("redteam"),
        resumes=run.resumes,
        general=GENERAL_TOOLS.union(*(rules.transfer_tools for rules in run.rules)),
        colour=colour,
        run=run,
    )


def ways_of(site: Site) -> EpisodeLinks:
    """EpisodeLinks to the viewer's lists of episodes."""

    def way(run: RunFigures, *query: tuple[str, str]) -> str | None:
        return site.href(episodes_at(run.run, *query)) if isinstance(run, ViewedRun) else None

    return way


def _audit_of(run: Run, found: Sum) -> dict[str, Any]:
    """In the shape of an audit's summary."""
    from muarl.accounts.intervals import share_of  # with numpy, which few pages need

    stage = next((s for s in run.ask(queries.stages) if s.stage == found.stage), None)
    success = None if stage is None or stage.success is None else {"value": stage.success}
    clean = None if stage is None or stage.without_violation is None else {"value": stage.without_violation}
    checked = frozenset[str]().union(*map(checked_layers, run.rules))
    layers: dict[str, Any] = {
        layer: {"value": 1 - found.bad.get(layer, 0) / found.episodes} if layer in checked else None
        for layer in LAYERS
        if layer != "outcome"
    }
    worst = share_of(found.tasks.values())
    return {
        "episodes": found.episodes,
        "catastrophic": worst.to_json() if worst.value or "safety" in checked else None,
        "success": success,
        SUCCESS_WITHOUT_VIOLATION: clean,
        "layers": {"outcome": success, **layers},
        "rules": {
            rule: {"layer": layer, "severity": SEVERITIES[severity], "episodes": n}
            for rule, (layer, severity, n) in found.rules.items()
        },
    }
