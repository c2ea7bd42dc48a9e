"""What a run's other processes are told: those of a cluster, and those of this machine that play episodes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.backends.checkpoint_names import SHIPPED, checkpoint_folder
from muarl.basics.torch_environment import set_torch_environment
from muarl.config.scale import ClusterConfig
from muarl.config.sections import RunConfig
from muarl.environments.registry import canonical, is_reference

Values = Mapping[str, Any]
"""A run configuration as JSON values."""


@dataclass(frozen=True, slots=True)
class ProcessConfig:
    """A run as its other processes are told of it: by its whole configuration, since they load a model and make
    environment and users as a command does."""

    config: RunConfig

    def values(self, folder: Path | None = None, *, concurrency: int | None = None) -> Values:
        """The configuration for a process that does its part without a cluster or further processes of its own.

        ``folder``: of the weights to begin with. Checkpoints shipped with muarl go by their name. ``concurrency``: its
        share of the episodes, if not all.
        """
        config = self.config
        named = config.model.checkpoint
        shipped = named in SHIPPED and folder in (None, checkpoint_folder(named))
        spec = named if shipped else str((folder or checkpoint_folder(named)).absolute())
        update: dict[str, Any] = {
            "cluster": ClusterConfig(),
            "resume": None,
            "engine": config.engine.model_copy(update={"processes": 1}),
            "model": config.model.model_copy(update={"checkpoint": spec}),
        }
        update["domain"] = [
            domain.model_copy(update={"name": canonical(domain.name)}) if is_reference(domain.name) else domain
            for domain in config.domains
        ]
        if concurrency is not None:
            update["rollout"] = config.rollout.model_copy(update={"concurrency": concurrency})
        return config.model_copy(update=update).model_dump(mode="json")


def set_up(threads: int, seed: int) -> None:
    """Threads and seeds of this process, as ``prepare`` sets them in a run of one process."""
    set_torch_environment()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import random

    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    random.seed(seed)
