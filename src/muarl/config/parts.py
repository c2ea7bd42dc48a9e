"""What the parts of a run are made from: the sections that they read together, taken from a configuration here.

What is about the configuration as a whole (loading, trust, resuming, a recipe's ``run``) gets a ``RunConfig``; what
lies below gets the sections that it reads, or one of these.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

from muarl.config.rl import RlConfig
from muarl.config.rollout import RolloutConfig
from muarl.config.scale import ClusterConfig, EngineConfig, LearnerBackendConfig
from muarl.config.section import Section, UserConfig
from muarl.config.sections import EvalConfig, ModelConfig, RunConfig
from muarl.config.stages import ColdstartConfig, SftConfig

USER_SLOTS = 256
"""Conversations that a user model in this process holds at most."""


@dataclass(frozen=True, slots=True)
class Compute:
    """The model of a run, and who generates with it and trains it, on which machines: what a ``Backend`` is built
    from."""

    model: ModelConfig
    rollout: RolloutConfig
    engine: EngineConfig
    learner: LearnerBackendConfig
    cluster: ClusterConfig
    seed: int
    """The run's seed."""
    threads: int
    """The run's threads."""
    processes: int
    """How many play episodes (``engine.processes``) where the model is on a CPU."""

    @classmethod
    def of(cls, config: RunConfig) -> Self:
        """Those of a configuration."""
        own = {field.name: getattr(config, field.name) for field in fields(cls) if field.name != "processes"}
        return cls(**own, processes=config.process_count)

    @property
    def user_slots(self) -> int:
        """Conversations that a user model in this process holds: as many as are played at once, up to
        ``USER_SLOTS``."""
        return min(USER_SLOTS, self.rollout.concurrency)

    @property
    def learns_here(self) -> bool:
        """Whether this process itself trains the weights."""
        return self.cluster.address is None and self.learner.kind == "torch"

    @property
    def samples_here(self) -> bool:
        """Whether this process itself generates with the weights."""
        return self.cluster.address is None and self.engine.kind == "torch"

    @property
    def in_one_process(self) -> bool:
        """Whether everything runs in one process of this machine."""
        return self.learns_here and self.samples_here

    @property
    def clustered(self) -> bool:
        """Whether the processes are a Ray cluster's: one is named, or the section says how large they are."""
        return self.cluster.address is not None or self.cluster.sampler_gpus > 0 or self.cluster.learner_gpus > 0


@dataclass(frozen=True, slots=True)
class PlannedRun(Compute):
    """What the plan of a run is made of: besides its ``Compute`` what is learned, how often, and against whom."""

    rl: RlConfig
    sft: SftConfig
    coldstart: ColdstartConfig
    eval: EvalConfig
    user: UserConfig
    eval_user: UserConfig

    def values(self) -> dict[str, Any]:
        """As JSON values, by the names that a configuration has for them."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "processes"}
        return {name: v.model_dump(mode="json") if isinstance(v, Section) else v for name, v in named.items()}
