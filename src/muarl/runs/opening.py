"""How a run begins: this process is set up, and the folder and the metric logger of the run are opened."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from muarl.audit import keep_rules
from muarl.basics.system import usable_cores
from muarl.config import RunConfig
from muarl.config.approvals import remember
from muarl.config.trust import to_approve
from muarl.environments.places import Places
from muarl.environments.registry import built_in
from muarl.observe.loggers import MetricLogger, make_logger
from muarl.observe.rundir import RunDirectory
from muarl.observe.weights_and_biases import WandbSettings, check_wandb
from muarl.runs.changes import check_place, check_resume
from muarl.runs.resuming import ResumedRun


def prepare(config: RunConfig, *, models: bool = True) -> None:
    """Threads and seeds of this process. ConfigError if a package is missing that the run would only ask for later.
    ``models`` False: no model runs in this process, which then need not import torch."""
    if config.wandb.enabled:
        check_wandb()
    random.seed(config.seed)
    if models:
        import torch

        torch.set_num_threads(config.threads or max(1, int(usable_cores())))
        torch.manual_seed(config.seed)


def open_run(config: RunConfig, command: str | None = None) -> RunDirectory:
    """The run's folder: a new one (NAME-2 where NAME is taken), or the one that ``resume`` names, which stays as it was
    until the work continues. ``command``: see RunDirectory.

    ConfigError if a resumed run would change what it may not (runs/changes.py).
    """
    settings = config.model_copy(update={"resume": None}).model_dump(mode="json")
    if config.resume is not None:
        changed = check_resume(config, command)
        remember(config.resume.expanduser() / "config.yaml", to_approve(config))
        return ResumedRun(config.resume.expanduser().absolute(), settings, command=command, changed=changed)
    check_place(config)
    run = RunDirectory(config.runs_dir.expanduser(), config.name, existing="suffix", command=command)
    run.write_config(settings)
    remember(run.path / "config.yaml", to_approve(config))
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
def open_logger(config: RunConfig, run: RunDirectory) -> Iterator[MetricLogger]:
    """The run's metric logger, closed (and so flushed) however the run ends."""
    wandb = WandbSettings(**config.wandb.model_dump(exclude={"enabled"})) if config.wandb.enabled else None
    logger = make_logger(run, wandb=wandb, config=config.model_dump(mode="json"))
    try:
        yield logger
    finally:
        logger.close()
