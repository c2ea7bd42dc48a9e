"""A run's figures in Trackio, which keeps them in a SQLite file on this machine (an extra, which is imported only when
a run logs to it)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.extras import require
from muarl.basics.files import write_json
from muarl.basics.untrusted import read_json_object

NAME_FILE = "trackio.json"
"""Where a run folder keeps the run's project and name in Trackio, so that a resumed run continues there."""
ELSEWHERE = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")
"""Trackio's own variables of the environment that send figures to another machine."""


@dataclass(frozen=True, slots=True)
class TrackioSettings:
    """Where figures go; see the ``trackio`` section of the configuration."""

    project: str = "muarl"
    """Trackio's name for what runs belong to."""
    group: str | None = None
    """Of runs, such as the seeds of one experiment; None: none."""
    space: str | None = None
    """A Hugging Face Space, USER/NAME, that figures are sent to; None: they stay on this machine."""


def check_trackio() -> None:
    """ConfigError with the remedy where the package is not installed."""
    require("trackio", "trackio.enabled")


class TrackioLogger:
    """Logs rows as ``phase/name`` with the phase's own count as ``phase/step``.

    ``folder``: the run folder; project and name are kept in its trackio.json, and found there by a resumed run, which
    then continues the same run. Trackio knows runs by their names alone, so the name ends in six random digits.
    ``config``: shown as the run's configuration. ConfigError if the package is not installed.
    """

    def __init__(
        self, settings: TrackioSettings, name: str, folder: Path, config: Mapping[str, Any] | None = None
    ) -> None:
        check_trackio()
        import trackio

        earlier = _earlier(folder)
        project = earlier.get("project", settings.project)
        own = earlier.get("name", f"{name}-{secrets.token_hex(3)}")
        local = settings.space is None and not any(os.environ.get(variable) for variable in ELSEWHERE)
        with _without_hub() if local else nullcontext():
            self._run = trackio.init(
                project=project,
                name=own,
                group=settings.group,
                space_id=settings.space,
                config=dict(config or {}),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        if not earlier:
            write_json(folder / NAME_FILE, {"project": project, "name": own})

    def log(self, values: Mapping[str, Any], *, phase: str, step: int) -> None:
        """Write the figures among the values."""
        row = {f"{phase}/{name}": value for name, value in values.items() if isinstance(value, (int, float))}
        self._run.log({**row, f"{phase}/step": step})

    def close(self) -> None:
        """Write what is left."""
        self._run.finish()


def _earlier(folder: Path) -> dict[str, Any]:
    """What the run folder says of an earlier part of this run; empty where there was none, or it cannot be read."""
    try:
        kept = read_json_object(folder / NAME_FILE)
    except DataError:
        return {}
    return kept if isinstance(kept.get("project"), str) and isinstance(kept.get("name"), str) else {}


@contextmanager
def _without_hub() -> Iterator[None]:
    """Keep huggingface_hub off the network. Trackio would ask it who is logged in, even for a run that stays here."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
