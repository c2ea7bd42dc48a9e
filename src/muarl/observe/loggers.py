"""Where a run's figures go: metrics.jsonl always, TensorBoard where it is installed, Weights & Biases (an extra, which
is imported only when a run logs to it) and Trackio (trackio_logger.py) where wanted.
"""

from __future__ import annotations

import io
import logging
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from muarl.basics.errors import DataError, MuarlError
from muarl.basics.extras import is_installed, require
from muarl.basics.files import append_bytes, write_json
from muarl.basics.untrusted import read_json_object
from muarl.observe.rundir import RunDirectory, without_secrets
from muarl.observe.trackio_logger import TrackioLogger, TrackioSettings

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

        earlier = _earlier_part(folder)
        self._run = wandb.init(
            project=earlier.get("project", settings.project),
            entity=earlier.get("entity", settings.entity),
            id=earlier.get("id"),
            resume="allow",
            name=name,
            group=settings.group,
            tags=list(settings.tags),
            mode=settings.mode,
            dir=str(folder),
            config=dict(config or {}),
        )
        if not earlier:
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


def _earlier_part(folder: Path) -> dict[str, Any]:
    """What the run folder says of an earlier part of this run; empty where there was none, or it cannot be read."""
    try:
        record = read_json_object(folder / ID_FILE)
    except DataError:
        return {}
    named = isinstance(record.get("id"), str) and isinstance(record.get("project"), str)
    return record if named else {}


log = logging.getLogger(__name__)

_STARTED = re.compile(r"events\.out\.tfevents\.([0-9.]+)\.\d+$")
"""When an events file was begun, by its name."""


class MetricLogger(Protocol):
    """Takes one row of figures at a time. ``phase`` is "cold_start", "rl", "evaluation", ...; steps count per phase."""

    def log(self, values: Mapping[str, Any], *, phase: str, step: int) -> None:
        """Take one row: name to figure, for one step of a phase."""
        ...

    def close(self) -> None:
        """Write what is left. Called once."""
        ...


class JsonlLogger:
    """Rows in the run's metrics.jsonl: the record that everything else is rebuilt from."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def log(self, values: Mapping[str, Any], *, phase: str, step: int) -> None:
        """Append the row to metrics.jsonl."""
        self._run.log(values, phase=phase, step=step)

    def close(self) -> None:
        """Nothing to close: every row is flushed as it is written."""


class TensorBoardLogger:
    """Scalars as TensorBoard events, tags ``phase/name``. The tensorboard package is imported only here.

    ``run``: where its figures were rewound (see RunDirectory), the events are made anew from what is left of them.
    """

    def __init__(self, folder: str | Path, run: RunDirectory | None = None) -> None:
        # Its records are written here: torch's SummaryWriter adds a second of imports, and the package's own writer
        # has a thread whose trace is all that one sees of a full disk.
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary, self._record = event_pb2.Event, summary_pb2.Summary, RecordWriter
        self._folder, self._run, self._rewound = Path(folder), run, 0
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path = self._new_file()
        self._append(self._event(wall_time=time.time(), file_version="brain.Event:2"))

    def _new_file(self) -> Path:
        # The reader takes the files of a folder in the order of their names; a resumed run begins another, even if the
        # clock was turned back since.
        times = [float(m[1]) for p in self._folder.iterdir() if (m := _STARTED.search(p.name))]
        at = max([time.time(), *(t + 1e-3 for t in times)])
        return self._folder / f"events.out.tfevents.{at:017.6f}.{os.getpid()}"

    def log(self, values: Mapping[str, Any], *, phase: str, step: int) -> None:
        """Write the finite figures among the values as scalars."""
        if self._run is not None and self._run.rewound != self._rewound:
            self._rewrite(self._run)  # with this row, which is in the record already
        else:
            self._append(*self._events(values, phase, step, time.time()))

    def _rewrite(self, run: RunDirectory) -> None:
        """All rows of the record in a new file in place of the others."""
        before = [p for p in self._folder.iterdir() if _STARTED.search(p.name)]
        began = time.time() - run.seconds
        events = [self._event(wall_time=began, file_version="brain.Event:2")]
        for row in run.read_metrics():
            figures = {k: v for k, v in row.items() if k not in ("phase", "step", "seconds")}
            events += self._events(figures, row["phase"], row["step"], began + float(row.get("seconds") or 0))
        self._path = self._new_file()
        self._append(*events)
        for path in before:
            path.unlink(missing_ok=True)
        self._rewound = run.rewound

    def _events(self, values: Mapping[str, Any], phase: str, step: int, at: float) -> list[Any]:
        scalars = [
            self._summary.Value(tag=f"{phase}/{name}", simple_value=float(value))
            for name, value in values.items()
            if isinstance(value, (int, float)) and math.isfinite(value)
        ]
        return [self._event(wall_time=at, step=step, summary=self._summary(value=scalars))] if scalars else []

    def _append(self, *events: Any) -> None:
        record = io.BytesIO()
        writer = self._record(record)
        for event in events:
            writer.write(event.SerializeToString())
        append_bytes(self._path, record.getvalue())

    def close(self) -> None:
        """Nothing to close: every event is whole as soon as it is written."""


class CompositeLogger:
    """Several loggers as one. The first is the record: its errors are the run's. The others may fail (a lost
    connection, a broken install): that is said once, and the run continues without them."""

    def __init__(self, record: MetricLogger, *others: MetricLogger) -> None:
        self._record = record
        self._others = list(others)

    def log(self, values: Mapping[str, Any], *, phase: str, step: int) -> None:
        """Hand the row to all; one of the others that fails is dropped with a warning."""
        self._record.log(values, phase=phase, step=step)
        for other in list(self._others):
            try:
                other.log(values, phase=phase, step=step)
            except Exception as problem:
                log.warning("%s stopped: %s. The run continues.", type(other).__name__, problem)
                self._others.remove(other)

    def close(self) -> None:
        """Close all of them."""
        self._record.close()
        for other in self._others:
            try:
                other.close()
            except Exception as problem:
                log.warning("%s did not close: %s", type(other).__name__, problem)


def make_logger(
    run: RunDirectory,
    *,
    wandb: WandbSettings | None = None,
    trackio: TrackioSettings | None = None,
    config: Mapping[str, Any] | None = None,
) -> CompositeLogger:
    """A run's logger: metrics.jsonl, TensorBoard where it is installed and, with ``wandb`` and ``trackio``, Weights &
    Biases and Trackio, which are shown ``config`` with its secrets masked. ConfigError if one of them is wanted and not
    installed."""
    others: list[MetricLogger] = []
    if is_installed("tensorboard"):
        try:
            others.append(TensorBoardLogger(run.tensorboard, run))
        except (ImportError, AttributeError, TypeError, OSError, MuarlError) as problem:
            # Its modules that are used here are its own: a release may change them.
            log.warning("No TensorBoard events: %s. metrics.jsonl has all metrics.", problem)
    if wandb is not None:
        others.append(WandbLogger(wandb, run.name, run.path, without_secrets(config or {})))
    if trackio is not None:
        others.append(TrackioLogger(trackio, run.name, run.path, without_secrets(config or {})))
    return CompositeLogger(JsonlLogger(run), *others)
