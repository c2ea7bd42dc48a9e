"""A run's episodes in several processes of this machine: what its children make of the run's configuration, and how
the run finds them (``engine.processes``)."""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from muarl.agents.base import Agent
from muarl.agents.sampled import SampledAgent, Sampling
from muarl.backends.local import torch_sampler
from muarl.backends.models import load_model, model_format
from muarl.backends.process_config import ProcessConfig, set_up
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError
from muarl.basics.event_loop import Closable
from muarl.basics.system import usable_cores
from muarl.config.parts import Compute
from muarl.config.sections import RunConfig
from muarl.environments.configure import places_of
from muarl.environments.places import ByPlace, Places
from muarl.environments.play import Player
from muarl.environments.registry import approve, approved
from muarl.models.buckets import SharedWeights
from muarl.rollouts.rollout import PlayEpisode
from muarl.users.base import UserFactory
from muarl.workers.processes.executor import PooledSampler, PoolExecutor
from muarl.workers.processes.pool import ProcessPool

if TYPE_CHECKING:
    from muarl.inference.torch_engine import TorchEngine
    from muarl.learning.checkpoints import Policy

MODULE = "muarl.backends.player"
"""What children run."""

# ---- in the run's own process


class RunProcesses:
    """The pool of a run: made for the first sampler, and for another model made anew. Its children start when they are
    first needed and stay until ``close``, so that its stages share them."""

    def __init__(self, compute: Compute, run_settings: ProcessConfig) -> None:
        self._compute = compute
        self._run_settings = run_settings
        self._pool: ProcessPool | None = None
        self._model: weakref.ref[Any] | None = None

    def sampler(self, policy: Policy) -> PooledSampler:
        """A sampler with the policy's weights, whose episodes the children play. ConfigError on a GPU."""
        model = policy.model
        if model.device.type != "cpu":
            raise ConfigError(on_gpu_text(model.device))
        if self._pool is None or self._model is None or self._model() is not model:
            self.close()
            self._pool, self._model = _pool(self._compute, self._run_settings, policy), weakref.ref(model)
        return PooledSampler(self._pool, model, lambda: torch_sampler(policy, self._compute))

    def close(self) -> None:
        """End the children. Safe to call again."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


def on_gpu_text(device: object) -> str:
    """The message where a model that is on a GPU was to be sampled from in several processes."""
    return (
        f"engine.processes: processes share the cores of a CPU, and the model is on {device}: set engine.processes=1, "
        "or model.device=cpu"
    )


def _pool(compute: Compute, run_settings: ProcessConfig, policy: Policy) -> ProcessPool:
    size = compute.processes
    threads = max(1, (compute.threads or int(usable_cores())) // size)
    share = math.ceil(compute.rollout.concurrency / size)
    start = {"config": run_settings.values(policy.path, concurrency=share), "allowed": sorted(approved())}
    try:
        shared = SharedWeights.like(policy.model.named_parameters())
    except OSError as problem:
        raise ConfigError(
            f"engine.processes: there is no memory to share the weights in ({problem}): set engine.processes=1"
        ) from None
    return ProcessPool(MODULE, start, shared, size, threads=threads)


def pool_executor(
    agent: Agent | None,
    places: str,
    concurrency: int,
    *,
    section: str,
    measuring: bool = False,
    level: str | None = None,
) -> PoolExecutor | None:
    """Plays an agent's episodes in the processes that its sampler has; None where it has none. ``places``: their name,
    which the children's must have, too. ``section``: that of the configuration which describes the users,
    ``level``: as difficult as that (``UserConfig.at``). ``measuring``: see ``places_of``."""
    if not isinstance(agent, SampledAgent) or not isinstance(agent.sampler, PooledSampler):
        return None
    cast = {
        "environment": places,
        "measuring": measuring,
        "users": section,
        "level": level,
        "agent": agent.name,
        "sampling": asdict(agent.sampling),
    }
    return PoolExecutor(agent.sampler, cast, concurrency)


# ---- in the children


class PolicyPlayers:
    """``Players`` of a run: environment, users and agent by its configuration, and an engine over weights that lie in
    shared memory. ``descriptor``: that memory's."""

    def __init__(self, start: Mapping[str, Any], descriptor: int) -> None:
        for reference in start["allowed"]:
            approve(reference)
        config = RunConfig.model_validate(start["config"])
        set_up(int(start["threads"]), config.seed)
        self._config, self._compute = config, Compute.of(config)
        self._policy = load_model(config.model)
        shared = SharedWeights(start["weights"], descriptor).tensors
        for name, parameter in self._policy.model.named_parameters():
            parameter.data = shared[name]
        self._chat = model_format(self._policy.tokenizer, config.model)
        self._engine: TorchEngine | None = None
        self._places: dict[bool, Places] = {}
        self._users: dict[tuple[bool, str, str | None], ByPlace[UserFactory]] = {}
        self._playing: dict[str, PlayEpisode] = {}

    async def take(self, version: int, *, fresh: bool) -> None:
        """See ``Players``."""
        if fresh or self._engine is None:
            self._playing = {}
            self._engine = torch_sampler(self._policy, self._compute)
            self._engine.version = version
        else:
            await self._engine.update(lambda: (), version)

    async def rest(self) -> None:
        """See ``Players``."""
        self._engine, self._playing = None, {}

    def playing(self, cast: Mapping[str, Any]) -> PlayEpisode:
        """See ``Players``. ConfigError where the run's program brought another environment than the configuration
        names."""
        name = json.dumps(cast, sort_keys=True)
        if name not in self._playing:
            measuring, section, level = bool(cast["measuring"]), str(cast["users"]), cast["level"]
            places = self._places_of(measuring)
            if cast["environment"] != places.name:
                raise ConfigError(
                    f"engine.processes: other processes make the environment that the configuration names, "
                    f"{places.name}, and this run's is {cast['environment']}: set engine.processes=1"
                )
            assert self._engine is not None
            agent = SampledAgent(self._engine, self._chat, Sampling(**cast["sampling"]), name=cast["agent"])
            self._playing[name] = Player.of(places, agent, self._users_of(measuring, section, level)).play
        return self._playing[name]

    def _places_of(self, measuring: bool) -> Places:
        if measuring not in self._places:
            self._places[measuring] = places_of(self._config, measuring=measuring)
        return self._places[measuring]

    def _users_of(self, measuring: bool, section: str, level: str | None) -> ByPlace[UserFactory]:
        key = (measuring, section, level)
        if key not in self._users:
            config = self._config.user if section == "user" else self._config.eval_user
            config = config if level is None else config.at(level)
            self._users[key] = make_users(config, self._places_of(measuring), self._compute)
        return self._users[key]

    async def aclose(self) -> None:
        """See ``Players``."""
        for part in (*self._users.values(), *self._places.values()):
            if isinstance(part, Closable):
                await part.aclose()
