"""What every stage of a run works with besides its own settings, opened and closed in one place.

A run whose learner was lost is resumed by itself (``with_restarts``).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.audit.rules import keep_rules
from muarl.backends.engines import Backend, joined_backend
from muarl.basics.errors import InfrastructureError, loses_learner
from muarl.basics.event_loop import EventLoop, event_loop
from muarl.basics.system import usable_cores
from muarl.config.keeping import TrackioConfig, WandbConfig
from muarl.config.sections import RunConfig
from muarl.config.trust import remember, to_approve
from muarl.environments.places import Places
from muarl.environments.registry import built_in
from muarl.learning.retention import Retention, prune_checkpoints
from muarl.observe.loggers import JsonlLogger, MetricLogger, make_logger
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.runs.config_changes import check_place, check_resume
from muarl.runs.own_code import code_to_remember
from muarl.runs.resuming import ResumedRun
from muarl.runs.spending import Spending

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run in progress."""

    folder: RunDirectory
    """Where it keeps what it makes."""
    logger: MetricLogger
    """Where its figures go."""
    progress: Progress
    """What those who watch see."""
    spending: Spending
    """The account of what it pays at endpoints."""
    backend: Backend
    """Who samples, learns and plays."""
    loop: EventLoop
    """Runs what its stages await, and closes at its end what was opened for it."""
    seed: int
    """The seed of everything that has none of its own."""
    resumed: bool
    """Whether it continues in a folder that it began before."""
    retention: Retention
    """Which of its checkpoints are kept."""
    needed: tuple[Path, ...]
    """Other checkpoints that it must not delete, since it began with them."""

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
    checkpoints = config.checkpoints
    sections = (config.model, config.base, config.user, config.eval_user)
    named = tuple(section.checkpoint for section in sections)
    with ExitStack() as stack:
        loop = stack.enter_context(event_loop())
        backend = Backend.of(config)
        if on_cluster:
            backend = stack.enter_context(joined_backend(config, learns_only=learns_only))
        stack.callback(backend.close)
        folder = stack.enter_context(open_run(config, command))
        progress = stack.enter_context(Progress())
        logger = (
            stack.enter_context(open_logger(config.wandb, config.trackio, folder, config.model_dump(mode="json")))
            if logs
            else JsonlLogger(folder)
        )
        yield RunContext(
            folder,
            logger,
            progress,
            Spending(config.budget, folder),
            backend,
            loop,
            config.seed,
            config.resume is not None,
            Retention(checkpoints.keep_last, checkpoints.keep_best, checkpoints.keep_every),
            tuple(Path(name).expanduser() for name in named if name is not None),
        )


def prepare(config: RunConfig, *, models: bool = True) -> None:
    """Threads and seeds of this process. ConfigError if a package is missing that the run would only ask for later.
    ``models`` False: no model runs in this process, which then need not import torch."""
    if config.wandb.enabled:
        from muarl.observe.loggers import check_wandb

        check_wandb()
    if config.trackio.enabled:
        from muarl.observe.trackio_logger import check_trackio

        check_trackio()
    random.seed(config.seed)
    if models:
        import torch

        torch.set_num_threads(config.threads or max(1, int(usable_cores())))
        torch.manual_seed(config.seed)


def open_run(config: RunConfig, command: str | None = None) -> RunDirectory:
    """The run's folder: a new one (NAME-2 where NAME is taken), or the one that ``resume`` names, which stays as it was
    until the work continues. ``command``: see RunDirectory.

    ConfigError if a resumed run would change what it may not (runs/config_changes.py).
    """
    settings = config.model_copy(update={"resume": None}).model_dump(mode="json")
    if config.resume is not None:
        changed = check_resume(config, command)
        remember(config.resume.expanduser() / "config.yaml", to_approve(config) | code_to_remember(config.environments))
        return ResumedRun(config.resume.expanduser().absolute(), settings, command=command, changed=changed)
    check_place(config.runs_dir)
    run = RunDirectory(config.runs_dir.expanduser(), config.name, existing="suffix", command=command)
    run.write_config(settings)
    remember(run.path / "config.yaml", to_approve(config) | code_to_remember(config.environments))
    return run


def tell_domain(run: RunDirectory, named: str, places: Places) -> None:
    """Let a run's folder say its true domain, where a program brings another than the configuration names; of code that
    the configuration refers to, what its environment is called. ``named``: the configuration's domains."""
    if places.name != named:
        run.takes_place_in(places.name, configured=any(place.declared for place in places))


def keep_own_rules(run: RunDirectory, places: Places) -> None:
    """Keep the audit rules of a run's own domains in its folder: those that a stranger's environment declares, which
    whoever reads the run later may not have, or that the domain's class does."""
    number = 1
    for place in places:
        own = None if place.name in built_in() else place.declared_audit
        if keep_rules(run.path, place.domain, own, number=number) is not None:
            number += 1


@contextmanager
def open_logger(
    wandb: WandbConfig, trackio: TrackioConfig, run: RunDirectory, settings: Mapping[str, Any]
) -> Iterator[MetricLogger]:
    """The run's metric logger, closed (and so flushed) however the run ends. ``settings``: the run's configuration."""
    to_wandb, to_trackio = None, None
    if wandb.enabled:
        from muarl.observe.loggers import WandbSettings

        to_wandb = WandbSettings(**wandb.model_dump(exclude={"enabled"}))
    if trackio.enabled:
        from muarl.observe.trackio_logger import TrackioSettings

        to_trackio = TrackioSettings(**trackio.model_dump(exclude={"enabled"}))
    logger = make_logger(run, wandb=to_wandb, trackio=to_trackio, config=settings)
    try:
        yield logger
    finally:
        logger.close()


@dataclass(slots=True)
class Attempt:
    """What became of one try: the run's folder, once there is one, and how many steps were made."""

    folder: Path | None = None
    steps: int = 0

    def step(self, *_: object) -> None:
        """One more."""
        self.steps += 1


def with_restarts(config: RunConfig, run: Callable[[RunConfig, Attempt], Path]) -> Path:
    """``run``, again with ``resume`` set to its folder each time a learner process was lost, at most
    ``learner.restarts`` times.

    What ``run`` raises ends it: anything else, the same once too often, or a loss before a single step was made, which
    would come again.
    """
    for left in range(config.learner.restarts, -1, -1):
        attempt = Attempt()
        try:
            return run(config, attempt)
        except InfrastructureError as problem:
            lost = loses_learner(problem) and attempt.folder is not None and attempt.steps
            if not lost or not left:
                raise
            log.warning("%s\nTaking the run up again from its last checkpoint (learner.restarts).", problem)
            config = config.model_copy(update={"resume": attempt.folder})
    raise AssertionError("unreachable")
