"""Who takes part in an evaluation: the agent that a configuration names, and the user of one that works alone."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.agents.base import Agent
from muarl.agents.idle import IdleAgent
from muarl.backends.models import load_model, make_endpoint
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.config.parts import PlannedRun
from muarl.config.section import UserConfig
from muarl.config.sections import EvalConfig, RunConfig
from muarl.domains.tasks import Task
from muarl.environments.places import ByPlace, Places
from muarl.runs.room import check_memory, check_room
from muarl.types.chat import Message
from muarl.users.base import UserTurn


def make_eval_agent(config: RunConfig, places: Places) -> ByPlace[Agent]:
    """The agent to evaluate, as each place asks it. ConfigError or CheckpointError says what is wrong with it."""
    kind = config.eval.agent
    if kind == "idle":
        return places.everywhere(IdleAgent())
    if kind == "expert":
        return places.experts()
    if kind == "endpoint":
        if config.eval.endpoint is None:
            raise ConfigError("eval.endpoint: name the model to evaluate")
        endpoint = make_endpoint(config.eval.endpoint)
        return places.endpoint_agents(endpoint)
    from muarl.backends.engines import Backend

    run = PlannedRun.of(config)
    check_memory(run, training=False)
    policy = load_model(config.model)
    check_room(run, config.domains, places, policy, measured=config.eval.split)
    agent = Backend.of(config).agent(policy, temperature=config.eval.temperature, top_p=config.eval.top_p)
    return places.sampled_agents(agent)


def has_models(ev: EvalConfig, users: UserConfig) -> bool:
    """Whether an evaluation has a model in this process: of the agent, or of its users."""
    return ev.agent == "sampled" or (not ev.solo and users.kind == "sampled")


def former_name(ev: EvalConfig) -> str | None:
    """What the agent of a run begun with an older version is called in its episodes: every checkpoint was "policy"."""
    return "policy" if ev.agent == "sampled" else None


class Nobody:
    """The user of an agent that works alone."""

    name = "none (solo mode)"

    def __call__(self, task: Task, *, seed: int) -> Nobody:
        return self

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """There is nobody to answer: InfrastructureError."""
        raise InfrastructureError("an agent in solo mode has no user to talk to", boundary="user")
