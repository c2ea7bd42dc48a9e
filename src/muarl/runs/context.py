"""What every stage of a run works with besides its own settings, opened and closed in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from muarl.backends.engines import Backend, joined_backend
from muarl.basics.event_loop import EventLoop, event_loop
from muarl.config import RunConfig
from muarl.learning.retention import Retention, prune_checkpoints
from muarl.observe.loggers import JsonlLogger, MetricLogger
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.runs.opening import open_logger, open_run
from muarl.runs.spending import Spending


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run in progress.

    ``folder``: where it keeps what it makes. ``logger``, ``progress``: for its figures, and for who watches.
    ``spending``: the account of what it pays at endpoints. ``backend``: who samples, learns and plays. ``loop``: runs
    what its stages await, and closes at its end what was opened for it. ``seed``: of everything that has none of its
    own. ``resumed``: whether it continues in a folder that it began before. ``retention``, ``needed``: which of its
    checkpoints are kept, and others that it must not delete, since it began with them.
    """

    folder: RunDirectory
    logger: MetricLogger
    progress: Progress
    spending: Spending
    backend: Backend
    loop: EventLoop
    seed: int
    resumed: bool
    retention: Retention
    needed: tuple[Path, ...]

    def prune(self, root: Path, scores: Mapping[int, float] | None = None) -> None:
        """Delete the checkpoints under ``root`` that need not be kept; the newest one was just written. ``scores``:
        success in validation, by the checkpoint's step."""
        prune_checkpoints(root, self.retention, scores=scores, needed=self.needed)


@contextmanager
def open_context(
    config: RunConfig,
    command: str | None = None,
    *,
    on_cluster: bool = False,
    learns_only: bool = False,
    logs: bool = True,
) -> Iterator[RunContext]:
    """Open a run's folder (a new one, or the one that ``resume`` names), its logger, progress display and event loop,
    and close them however the run ends.

    ``command``: see RunDirectory. ``on_cluster``: a stage that may run on the cluster which the configuration names;
    ``learns_only``: with a learner there and nobody else. ``logs`` False: metrics go to metrics.jsonl alone.
    ConfigError if a resumed run would change what it may not.
    """
    kept = config.checkpoints
    sections = (config.model, config.base, config.user, config.eval_user)
    named = tuple(section.checkpoint for section in sections)
    with ExitStack() as stack:
        loop = stack.enter_context(event_loop())
        backend = Backend(config)
        if on_cluster:
            backend = stack.enter_context(joined_backend(config, learns_only=learns_only))
        stack.callback(backend.close)
        folder = stack.enter_context(open_run(config, command))
        progress = stack.enter_context(Progress())
        logger = stack.enter_context(open_logger(config, folder)) if logs else JsonlLogger(folder)
        yield RunContext(
            folder,
            logger,
            progress,
            Spending(config.budget, folder),
            backend,
            loop,
            config.seed,
            config.resume is not None,
            Retention(kept.keep_last, kept.keep_best, kept.keep_every),
            tuple(Path(name).expanduser() for name in named if name is not None),
        )
