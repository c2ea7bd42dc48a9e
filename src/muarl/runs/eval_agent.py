"""Who takes part in an evaluation: the agent that a configuration names, and the user of one that works alone."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.agents.guarded import GuardedAgent
from muarl.agents.idle import IdleAgent
from muarl.audit.guard import CallGuard
from muarl.backends.models import load_model, make_endpoint
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.event_loop import event_loop
from muarl.config.parts import Compute, PlannedRun
from muarl.config.section import UserConfig
from muarl.config.sections import EvalConfig, RunConfig
from muarl.domains.tasks import Task
from muarl.environments.place import Place, rules_of
from muarl.environments.places import ByPlace, Places
from muarl.runs.room import check_memory, check_room
from muarl.types.chat import Message
from muarl.users.base import UserTurn


def make_eval_agent(config: RunConfig, places: Places) -> ByPlace[Agent]:
    """The agent to evaluate, as each place asks it. ConfigError or CheckpointError says what is wrong with it."""
    kind = config.eval.agent
    if config.eval.guard:
        check_guard(config.eval)
    if kind == "idle":
        return places.everywhere(IdleAgent())
    if kind == "expert":
        return places.experts()
    if kind == "endpoint":
        if config.eval.endpoint is None:
            raise ConfigError("eval.endpoint: name the model to evaluate")
        endpoint = make_endpoint(config.eval.endpoint)
        agents = places.endpoint_agents(endpoint)
        return places.by_place(lambda place: guarded(agents.at(place), place)) if config.eval.guard else agents
    from muarl.backends.engines import Backend

    run = PlannedRun.of(config)
    check_memory(run, None)
    policy = load_model(config.model)
    check_room(run, config.domains, places, policy, measured=config.eval.split)
    agent = Backend.of(config).agent(policy, temperature=config.eval.temperature, top_p=config.eval.top_p)
    return places.sampled_agents(agent)


def check_eval_agent(config: RunConfig, places: Places) -> None:
    """The errors of ``make_eval_agent``, and those of a checkpoint whose context has no room for the tasks. No endpoint
    is asked, and no weights are read."""
    if config.eval.guard:
        check_guard(config.eval)
    if config.eval.agent == "sampled":
        policy = load_model(config.model, weights=False)
        check_room(Compute.of(config), config.domains, places, policy, measured=config.eval.split)
        return
    with event_loop() as loop:
        loop.closes(make_eval_agent(config, places))


def check_guard(ev: EvalConfig) -> None:
    """ConfigError where an evaluation cannot have the guard that it asks for."""
    if ev.agent != "endpoint":
        raise ConfigError(
            f"eval.guard needs agent endpoint, not {ev.agent}: serve a checkpoint by `muarl serve CHECKPOINT --guard "
            "DOMAIN`, and evaluate it with --agent endpoint:MODEL@URL"
        )
    if ev.solo:
        raise ConfigError("eval.guard asks whether the user agreed, and under eval.solo there is none: leave one out")


def guarded(agent: Agent, place: Place) -> Agent:
    """A place's agent behind a guard. ConfigError where the place has no rules, or the agent takes no reply back."""
    if not isinstance(agent, EndpointAgent):
        raise ConfigError(f"eval.guard: {place.name} asks models in a form of its own, which cannot be guarded")
    guard = CallGuard.of(rules_of(place.declared_audit, place.domain), place.domain)
    if not guard.declared:
        raise ConfigError(f"eval.guard: {place.name} declares no audit rules about calls: see docs/audit.md")
    return GuardedAgent(agent, guard)


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
