"""Who takes part in an evaluation: the agent that a configuration names, and what its endpoints cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.idle import IdleAgent
from muarl.backends.models import load_model, make_endpoint
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.config import RunConfig
from muarl.config.sections import EndpointConfig, UserConfig
from muarl.domains.base import Task
from muarl.environments.places import ByPlace, Places
from muarl.environments.retrieval import models_of, with_models
from muarl.runs.bounds import check_own_bound
from muarl.runs.judges import Judges
from muarl.runs.preflight import check_memory
from muarl.runs.room import check_room
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

    check_memory(config, training=False)
    policy = load_model(config.model)
    check_room(config, places, policy, training=False)
    agent = Backend(config).agent(policy, temperature=config.eval.temperature, top_p=config.eval.top_p)
    return places.sampled_agents(agent)


def has_models(config: RunConfig) -> bool:
    """Whether an evaluation has a model in this process: of the agent, or of its users."""
    users = not config.eval.solo and config.eval_user.kind == "sampled"
    return config.eval.agent == "sampled" or users


def former_name(config: RunConfig) -> str | None:
    """What the agent of a run begun with an older version is called in its episodes: every checkpoint was "policy"."""
    return "policy" if config.eval.agent == "sampled" else None


class Nobody:
    """The user of an agent that works alone."""

    name = "none (solo mode)"

    def __call__(self, task: Task, *, seed: int) -> Nobody:
        return self

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """There is nobody to answer: InfrastructureError."""
        raise InfrastructureError("an agent in solo mode has no user to talk to", boundary="user")


def with_prices(config: RunConfig) -> RunConfig:
    """The configuration with ``eval.concurrency`` and ``eval.prices`` where they belong. ConfigError where a bound on
    the cost is set and a price is missing."""
    ev, rollout = config.eval, config.rollout
    if ev.concurrency is not None:
        rollout = rollout.model_copy(update={"concurrency": ev.concurrency})
    agent = ev.endpoint and _priced(ev.endpoint, config)
    user = config.eval_user
    if user.endpoint is not None:
        user = user.model_copy(update={"endpoint": _priced(user.endpoint, config)})
    ev = ev.model_copy(update={"endpoint": agent})
    update: dict[str, Any] = {"eval": ev, "eval_user": user, "rollout": rollout}
    if config.retrieval.asked:
        full = with_models(config.retrieval)
        models = {name.partition(".")[2]: _priced(section, config) for name, section in models_of(full).items()}
        update["retrieval"] = full.model_copy(update=models) if models else full
    priced = config.model_copy(update=update)
    _check_bound(priced)
    return priced


def _priced(section: EndpointConfig, config: RunConfig) -> EndpointConfig:
    if section.prompt_price or section.completion_price or section.model not in config.eval.prices:
        return section
    prompt, completion = config.eval.prices[section.model]
    return section.model_copy(update={"prompt_price": prompt, "completion_price": completion})


def _check_bound(config: RunConfig) -> None:
    sections = [config.eval.endpoint if config.eval.agent == "endpoint" else None, _model_of(config.eval_user)]
    if config.eval.solo:
        sections = sections[:1]
    asked_sections = [s for s in (*sections, *models_of(config.retrieval).values()) if s is not None]
    judges = Judges.of(config)
    check_own_bound(config, "eval", asks=bool(asked_sections or judges.models))
    asked = [s.model for s in asked_sections if not (s.prompt_price or s.completion_price)] + judges.unpriced
    if asked and config.eval.max_cost is not None:
        raise ConfigError(
            f"eval.max_cost: what {asked[0]} costs is not known; say it in eval.prices "
            f"(eval.prices={{{asked[0]}: [2, 8]}}: dollars for a million prompt and completion tokens), or bound the "
            "tokens by eval.max_tokens"
        )


def _model_of(user: UserConfig) -> EndpointConfig | None:
    return user.endpoint if user.kind == "llm" else None
