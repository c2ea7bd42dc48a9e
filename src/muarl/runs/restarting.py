"""A run whose learner was lost is resumed from its last checkpoint, as ``--resume`` would, but by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from muarl.basics.errors import InfrastructureError
from muarl.config import RunConfig

log = logging.getLogger(__name__)


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
            lost = problem.boundary == "learner" and attempt.folder is not None and attempt.steps
            if not lost or not left:
                raise
            log.warning("%s\nTaking the run up again from its last checkpoint (learner.restarts).", problem)
            config = config.model_copy(update={"resume": attempt.folder})
    raise AssertionError("unreachable")
