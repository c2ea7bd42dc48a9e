"""Figures to Weights & Biases. The package is an extra, and imported only when a run logs to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.extras import require
from muarl.basics.files import write_json
from muarl.basics.untrusted import read_json_object

ID_FILE = "wandb.json"
"""Where a run folder keeps the run's id, project and entity at the service, so that a resumed run continues there."""


@dataclass(frozen=True, slots=True)
class WandbSettings:
    """Where figures go; see the ``wandb`` section of the configuration."""

    project: str = "muarl"
    entity: str | None = None
    group: str | None = None
    tags: Sequence[str] = ()
    mode: str | None = None


def check_wandb() -> None:
    """ConfigError with the remedy where the package is not installed."""
    require("wandb", "wandb.enabled")


class WandbLogger:
    """Logs rows as ``phase/name`` with ``phase/step`` as the x axis of each phase.

    ``folder``: the run folder; the service's id of the run is kept in its wandb.json, and found there by a resumed run,
    which then continues the same run. ``config``: shown as the run's configuration. The key comes from wandb's own
    login or WANDB_API_KEY. ConfigError if the package is not installed.
    """

    def __init__(
        self, settings: WandbSettings, name: str, folder: Path, config: Mapping[str, Any] | None = None
    ) -> None:
        check_wandb()
        import wandb

        known = _known(folder)
        self._run = wandb.init(
            project=known.get("project", settings.project),
            entity=known.get("entity", settings.entity),
            id=known.get("id"),
            resume="allow",
            name=name,
            group=settings.group,
            tags=list(settings.tags),
            mode=settings.mode,
            dir=str(folder),
            config=dict(config or {}),
        )
        if not known:
            about = {"id": self._run.id, "project": self._run.project, "entity": self._run.entity or None}
            write_json(folder / ID_FILE, about)
        self._phases: set[str] = set()

    def log(self, values: Mapping[str, Any], *, phase: str, step: int) -> None:
        """Send the figures among the values."""
        if phase not in self._phases:  # phases count their steps by themselves
            self._phases.add(phase)
            self._run.define_metric(f"{phase}/step", hidden=True)
            self._run.define_metric(f"{phase}/*", step_metric=f"{phase}/step")
        row = {f"{phase}/{name}": value for name, value in values.items() if isinstance(value, (int, float))}
        self._run.log({**row, f"{phase}/step": step})

    def close(self) -> None:
        """End the run at the service."""
        self._run.finish()


def _known(folder: Path) -> dict[str, Any]:
    """What the run folder says of an earlier part of this run; empty where there was none, or it cannot be read."""
    try:
        found = read_json_object(folder / ID_FILE)
    except DataError:
        return {}
    named = isinstance(found.get("id"), str) and isinstance(found.get("project"), str)
    return found if named else {}
