"""Who serves in ``muarl chat``, in which domain and with which limits: what a checkpoint brings along, unless the
person says otherwise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from muarl.backends.checkpoint_names import existing_checkpoint
from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.environments.registry import find
from muarl.runs.own_settings import OwnSettings, own_settings

if TYPE_CHECKING:
    from muarl.agents.base import Agent
    from muarl.environments.place import Place

NAMED = {"expert": "expert", "do-nothing": "idle", "idle": "idle"}
"""Agents that go by name; others are endpoint:MODEL or a checkpoint."""

PER_CHAT = ("rollout.max_turns", "rollout.max_tool_errors")
"""Of a run's settings, those that a person decides who talks with its agent."""


def chat_config(
    agent: str, domain: str | None, size: str | None, split: str = "test", settings: Sequence[str] = ()
) -> tuple[RunConfig, OwnSettings | None]:
    """The configuration of one conversation, and what a checkpoint brought along to it. Nothing is loaded yet.
    CheckpointError, ConfigError: what was asked for is not there."""
    overrides = [
        "name=chat",
        "eval.temperature=0",
        "rollout.concurrency=1",
        "engine.processes=1",
        f"eval.split={split}",
    ]
    own = None
    if agent in NAMED:
        overrides.append(f"eval.agent={NAMED[agent]}")
    elif not agent.startswith("endpoint:"):
        existing_checkpoint(agent, NAMED)
        options = [name for name, value in (("domain.name", domain), ("domain.size", size)) if value is not None]
        said = {*options, *(word.partition("=")[0] for word in settings)}
        own = own_settings(agent, said).without(*PER_CHAT)
        if "domain.name" not in said:
            own = _playable(own, said)
        elif domain != own.domain:
            own = own.without("domain.size")
        overrides += [f"model.checkpoint={agent}", *own.overrides()]
    overrides += [f"domain.name={domain}"] if domain is not None else []
    overrides += [f"domain.size={size}"] if size is not None else []
    name = domain or (own.values.get("domain.name") if own is not None else None)
    if name is not None or size is not None or split != "test":
        _check_world(str(name or load_config("quickstart").domain.name), size, split)
    config = load_config("quickstart", [*overrides, *settings])
    _check_world(config.domain.name, config.domain.size, config.eval.split)
    return config, own


def _playable(settings: OwnSettings, said: Collection[str]) -> OwnSettings:
    """A benchmark's tasks need a model as the user: a run in one is talked with in the environment with made tasks of
    the kind, at its largest size. ConfigError for a run of somebody's own code that the person has not named."""
    name = settings.values.get("domain.name")
    if isinstance(name, list):
        names = ", ".join(str(one["name"]) for one in name)
        raise ConfigError(f"--domain: {settings.source} has several domains ({names}): say which one")
    environment = None if name is None else find(str(name))
    if environment is None or not environment.is_benchmark:
        return settings
    if environment.practice is None:
        return settings.without("domain.name", "domain.size")
    sizes = find(environment.practice).sizes
    size = {"domain.size": sizes[-1]} if sizes else {}
    return replace(settings, values={**settings.values, "domain.name": environment.practice, **size}).without(*said)


def _check_world(name: str, size: str | None, split: str) -> None:
    """ConfigError if a conversation cannot take place there. ``size`` None: the environment's own choice."""
    environment = find(name)
    if environment.is_benchmark:
        hint = f"; give --domain {environment.practice}" if environment.practice else ""
        raise ConfigError(f"--domain: {name} is a benchmark, which `muarl eval` plays{hint}")
    if size is not None:
        environment.check_size(size, "--size")
    if split not in environment.splits:
        raise ConfigError(f"--split: {split!r} is unknown; {name} has {', '.join(environment.splits)}")


def chat_agent(spec: str, config: RunConfig, place: Place) -> Agent:
    """The agent that a person names. ConfigError or CheckpointError says what is wrong with it."""
    if spec.startswith("endpoint:"):
        from muarl.agents.endpoint import EndpointAgent
        from muarl.endpoints.client import Endpoint
        from muarl.endpoints.config import parse_endpoint

        return EndpointAgent(Endpoint(parse_endpoint(spec)))
    from muarl.environments.places import Places
    from muarl.runs.eval_agent import make_eval_agent

    return make_eval_agent(config, Places([place])).at(place)
