"""Who serves in ``muarl chat``, in which domain and with which limits: what a checkpoint brings along, unless the
person says otherwise."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from muarl.config import RunConfig, load_config
from muarl.domains.generated import NAMES, ON_SERVERS, SPLITS, generated
from muarl.errors import ConfigError
from muarl.recipes.checkpoint_names import existing_checkpoint
from muarl.recipes.own_settings import OwnSettings, own_settings

if TYPE_CHECKING:
    from muarl.agents.base import Agent
    from muarl.recipes.setting import Setting

NAMED = {"expert": "expert", "do-nothing": "idle", "idle": "idle"}
"""Agents that go by name; others are endpoint:MODEL or a checkpoint."""

PER_CHAT = ("rl.max_turns", "rl.max_tool_errors")
"""Of a run's settings, those that a person decides who talks with its agent."""


def chat_config(
    agent: str, domain: str | None, size: str | None, split: str = "test", settings: Sequence[str] = ()
) -> tuple[RunConfig, OwnSettings | None]:
    """The configuration of one conversation, and what a checkpoint brought along to it. Nothing is loaded yet.
    CheckpointError, ConfigError: what was asked for is not there."""
    given = ["name=chat", "eval.temperature=0", "rl.concurrency=1", f"eval.split={split}"]
    own = None
    if agent in NAMED:
        given.append(f"eval.agent={NAMED[agent]}")
    elif not agent.startswith("endpoint:"):
        existing_checkpoint(agent)
        options = [name for name, value in (("domain.name", domain), ("domain.size", size)) if value is not None]
        said = {*options, *(word.partition("=")[0] for word in settings)}
        own = own_settings(agent, said).without(*PER_CHAT)
        if "domain.name" not in said:
            own = _playable(own, said)
        elif domain != own.domain:
            own = own.without("domain.size")
        given += [f"model.checkpoint={agent}", *own.overrides()]
    given += [f"domain.name={domain}"] if domain is not None else []
    given += [f"domain.size={size}"] if size is not None else []
    name = domain or (own.values.get("domain.name") if own is not None else None) or NAMES[0]
    _check_world(str(name), size, split)
    config = load_config("quickstart", [*given, *settings])
    _check_world(config.domain.name, config.domain.size, config.eval.split)
    return config, own


def _playable(own: OwnSettings, said: Collection[str]) -> OwnSettings:
    """A benchmark's tasks need a model as the user: a run in one is talked with in the generated domain of the kind, at
    the benchmark's size."""
    name = str(own.values.get("domain.name", NAMES[0]))
    if name in (*NAMES, *ON_SERVERS):
        return own
    twin = next((n for n in NAMES if n.removesuffix("-generated") in name.split("-")), None)
    if twin is None:
        return own.without("domain.name", "domain.size")
    size = generated(twin).sizes[-1]
    return replace(own, values={**own.values, "domain.name": twin, "domain.size": size}).without(*said)


def _check_world(name: str, size: str | None, split: str) -> None:
    """ConfigError if a conversation cannot take place there. ``size`` None: the domain's own choice."""
    if name not in (*NAMES, *ON_SERVERS):
        near = difflib.get_close_matches(name, NAMES, 1, 0.6)
        hint = f"; did you mean {near[0]}?" if near else f"; use one of {', '.join(NAMES)}"
        raise ConfigError(f"--domain: {name!r} is no generated domain{hint}")
    for option, value, known in (("--size", size, generated(name).sizes), ("--split", split, SPLITS)):
        if value is not None and value not in known:
            raise ConfigError(f"{option}: {value!r} is unknown; {name} has {', '.join(known)}")


def chat_agent(spec: str, config: RunConfig, setting: Setting) -> Agent:
    """The agent that a person names. ConfigError or CheckpointError says what is wrong with it."""
    if spec.startswith("endpoint:"):
        from muarl.agents.endpoint import EndpointAgent
        from muarl.endpoints import Endpoint, parse_endpoint

        return EndpointAgent(Endpoint(parse_endpoint(spec)))
    from muarl.recipes.participants import make_eval_agent

    return make_eval_agent(config, setting)
