"""What does the slow work of a run: a policy's sampler, its learner, and where episodes are played.

Here is chosen between this machine (``local``) and a cluster (``cluster``); recipes see the protocols
``PolicySampler``, ``Learner``, ``Executor``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from muarl.backends.checkpoint_names import checkpoint_name
from muarl.backends.model_notes import NotedRun
from muarl.backends.process_config import ProcessConfig
from muarl.basics.errors import ConfigError
from muarl.config.parts import Compute, PlannedRun
from muarl.config.sections import RunConfig
from muarl.environments.play import Player, local_executor
from muarl.rollouts.rollout import BoundedExecutor, Executor, LocalExecutor

if TYPE_CHECKING:  # torch and transformers take seconds to import, and the light core has none
    from muarl.agents.sampled import SampledAgent
    from muarl.backends.processes import RunProcesses
    from muarl.environments.places import Agents, Places, Users
    from muarl.inference.base import PolicySampler, Sampler
    from muarl.learning.checkpoints import Policy
    from muarl.learning.learner import Learner
    from muarl.learning.settings import LearnerConfig
    from muarl.workers.cluster.runtime import Cluster


@dataclass(frozen=True, slots=True)
class Backend:
    """Who samples, learns and plays for a run, as its ``compute`` says. ConfigError from every method where the run is
    to be on a cluster and none was joined."""

    compute: Compute
    run_settings: ProcessConfig
    """What other processes are told of the run."""
    noted: NotedRun
    """What the cards of its models tell."""
    cluster: Cluster | None = None
    """The one that this process has joined for the run; None: everything is done by this process, and by those that it
    starts."""
    _processes: list[RunProcesses] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, config: RunConfig, cluster: Cluster | None = None) -> Backend:
        """That of a configuration."""
        return cls(Compute.of(config), ProcessConfig(config), NotedRun.of(config), cluster)

    def close(self) -> None:
        """End the processes that play episodes (``engine.processes``), if any were started."""
        while self._processes:
            self._processes.pop().close()

    def sampler(self, policy: Policy) -> PolicySampler:
        """A generation engine with the policy's weights in it."""
        cluster, compute = self._joined(), self.compute
        if cluster is not None:
            from muarl.backends.cluster import clustered_sampler

            return clustered_sampler(policy, compute, self.run_settings, cluster)
        if compute.processes > 1 and (compute.engine.processes != "auto" or _on_cpu(policy)):
            from muarl.backends.processes import RunProcesses

            if not self._processes:
                self._processes.append(RunProcesses(compute, self.run_settings))
            return self._processes[0].sampler(policy)
        from muarl.backends.local import local_sampler

        return local_sampler(policy, compute)

    def agent(
        self,
        policy: Policy,
        *,
        temperature: float,
        top_p: float = 1.0,
        engine: Sampler | None = None,
        name: str | None = None,
    ) -> SampledAgent:
        """An agent that samples from a policy, through an engine of its own if none is given. ``name``: None for that
        of the checkpoint which holds the policy's weights."""
        from muarl.agents.sampled import SampledAgent, Sampling
        from muarl.backends.models import model_format

        model = self.compute.model
        sampling = Sampling(self.compute.rollout.tokens_per_turn, model.max_context, temperature, top_p)
        chat = model_format(policy.tokenizer, model)
        return SampledAgent(engine or self.sampler(policy), chat, sampling, name=name or checkpoint_name(policy.path))

    def learner(self, policy: Policy, settings: LearnerConfig, phase: str) -> Learner:
        """Who trains the policy's weights. ``settings``: the stage's own, such as its loss and optimiser; what the
        run says of packing, precision and adapters is added here. ``phase``: what its checkpoints are of."""
        from muarl.backends.local import learner_settings, local_learner
        from muarl.learning.lora import fitted

        cluster = self._joined()
        notes = self.noted.notes((phase,), policy.path)
        settings = replace(learner_settings(self.compute, settings), notes=notes)
        if settings.lora is not None:
            settings = replace(settings, lora=fitted(policy.model, settings.lora))
        if cluster is not None:
            from muarl.backends.cluster import clustered_learner

            return clustered_learner(policy, self.compute, self.run_settings, settings, cluster)
        return local_learner(policy, self.compute, settings)

    def executor(self, player: Player) -> Executor:
        """Where ``player``'s training episodes are played: by it, or by others who are made like it elsewhere."""
        cluster = self._joined()
        if cluster is not None:
            from muarl.backends.cluster import clustered_executor

            return clustered_executor(self.compute, self.run_settings, player, cluster)
        if self.compute.processes > 1:
            from muarl.backends.processes import pool_executor

            concurrency = self.compute.rollout.concurrency
            pooled = pool_executor(player.agents.same, player.places.name, concurrency, section="user")
            if pooled is not None:
                return pooled
        return LocalExecutor(player.play, self.compute.rollout.concurrency)

    def _joined(self) -> Cluster | None:
        if self.compute.cluster.address is not None and self.cluster is None:
            raise ConfigError("cluster.address: only `muarl train` and `muarl sft` run on a cluster; remove it here")
        return self.cluster


def _on_cpu(policy: Policy) -> bool:
    return bool(policy.model.device.type == "cpu")


def policy_executor(
    compute: Compute,
    places: Places,
    agent: Agents,
    users: Users,
    concurrency: int,
    *,
    measuring: bool = False,
    level: str | None = None,
) -> BoundedExecutor:
    """Plays the episodes of an evaluation on this machine: of the policy in the processes that its sampler has
    (``engine.processes``), else in this one, as those of an agent that a benchmark asks in a way of its own. ``users``:
    those of ``eval_user``; ``level``: as difficult as that (``UserConfig.at``). ``measuring``: see ``places_of``."""
    # Only a sampler of processes loads their module, and torch with it; scripted agents need neither.
    if compute.processes > 1 and compute.engine.kind == "torch" and "muarl.backends.processes" in sys.modules:
        from muarl.backends.processes import pool_executor

        one = places.everywhere(agent).same
        pooled = pool_executor(one, places.name, concurrency, section="eval_user", measuring=measuring, level=level)
        if pooled is not None:
            return pooled
    return local_executor(places, agent, users, concurrency)


@contextmanager
def joined_backend(config: RunConfig, *, learns_only: bool = False) -> Iterator[Backend]:
    """The backend of a training run, on its cluster if it names one; that cluster is left at the end of the block.
    ``learns_only``: nobody samples for the run. See ``join`` for what may be wrong with a cluster."""
    if config.cluster.address is None:
        yield Backend.of(config)
        return
    from muarl.backends.cluster import joined
    from muarl.backends.plans import prompt_tokens

    with joined(PlannedRun.of(config), partial(prompt_tokens, config), alone=learns_only) as cluster:
        yield Backend.of(config, cluster)


def settle(policy: Policy, learner: Learner, checkpoint: Path | None) -> None:
    """Training is over: the policy's model gets the learner's weights, where it has other memory, and the learner is
    closed. ``checkpoint``: where these weights were saved, if they were."""
    from muarl.models.weights import copy_weights

    if policy.model.device.type != "meta":
        copy_weights(learner.weights(), policy.model)
    policy.path = checkpoint or policy.path
    learner.close()
