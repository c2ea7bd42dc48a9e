"""One task, played for a program that trains elsewhere: by a model at its endpoint, or message by message.

Both are the one conversation loop, over an environment as it is played where no configuration says more.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.outside import OutsideAgent
from muarl.basics.errors import ConfigError
from muarl.config.retrieval import RetrievalConfig
from muarl.domains.base import Task
from muarl.endpoints import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.endpoints.connections import Connections, shared_connections
from muarl.environments.configured import ConfiguredEnvironment
from muarl.environments.environment import Environment
from muarl.environments.playing import make_runner
from muarl.environments.registry import load_task
from muarl.environments.results import PlayResult
from muarl.environments.sessions import Session
from muarl.environments.task_addresses import TaskAddress
from muarl.environments.usual import check_playable, configured, usual_users
from muarl.rewards.judge import Judge
from muarl.rollouts.conversation import Limits
from muarl.rollouts.episode_runner import EpisodeRunner, RolloutRequest
from muarl.users.base import UserFactory


async def play(
    task: Task | str,
    *,
    base_url: str,
    model: str,
    api_key: str | None = None,
    seed: int = 0,
    user_seed: int | None = None,
    users: UserFactory | Endpoint | None = None,
    limits: Limits | None = None,
    judge: Judge | None = None,
    retries: int = 0,
    connections: Connections | None = None,
    **options: Any,
) -> PlayResult:
    """Play one task to its end with the model at an OpenAI-compatible ``base_url``, and score it.

    ``task``: a task of an environment, or its address, such as "retail-generated:test:17" (``load_task``). That of a
    benchmark is played by its own protocol. ``api_key``: None reads OPENAI_API_KEY, "" sends none.

    ``seed``: of the agent, which gets it with every request, and of the user: give each rollout of a task its own.
    ``user_seed``: the user's alone, for rollouts that are to meet the same one. ``users``: a factory, or an
    ``Endpoint`` whose model plays the customer; None: the environment's rule-based user. ``judge``: of assertions in
    words, where tasks have some. ``options``: fields of EndpointSettings, such as temperature, max_tokens, timeout,
    extra; sampling settings that are left out are the server's. What the model said goes back to it as its server said
    it (``verbatim``), since a server that records tokens goes on from its own.

    ``retries``: further tries where something outside the agent failed. A server that records what it is asked sees
    all of them, so there are none by default. Such a failure is ``failure`` of the result, whose reward is then None.

    ConfigError for what cannot be played (no such task, no user, no judge); DataError for a task whose gold actions
    fail, or a benchmark whose data are not installed. ``connections``: None shares them with other calls of the moment.
    """
    found = load_task(task) if isinstance(task, str) else task
    if found.origin is None:
        raise ConfigError(
            f"task {found.id} does not say which environment it is of: take it from Environment.make_tasks, or play it "
            "by Environment.start"
        )
    chosen: dict[str, Any] = {"temperature": None, "concurrency": 1, "verbatim": True, **_known(options)}
    if api_key is not None:
        chosen["api_key_env"] = "api_key"  # what messages call it
    settings = EndpointSettings(model=model, base_url=base_url, **chosen)
    place = configured(found.origin.environment, found.origin.address.size, limits, judge)
    check_playable(place, found)
    factory, request = usual_users(place, users), _request(place, found, seed, user_seed)
    async with AsyncExitStack() as stack:
        shared = connections or await stack.enter_async_context(shared_connections())
        agent = place.endpoint_agent(Endpoint(settings, api_key=api_key, connections=shared))
        episode = await _runner(place, agent, factory, retries).play(request)
    return PlayResult.of(episode, place.rules)


def start(
    environment: Environment,
    task: Task | str,
    *,
    seed: int = 0,
    user_seed: int | None = None,
    users: UserFactory | Endpoint | None = None,
    size: str | None = None,
    limits: Limits | None = None,
    judge: Judge | None = None,
    retrieval: RetrievalConfig | None = None,
) -> Session:
    """See ``Environment.start``."""
    found = _task_of(environment, task) if isinstance(task, str) else task
    if found.origin is not None:
        if found.origin.environment is not environment:
            raise ConfigError(f"task {found.id} is of {found.origin.environment.name}, not of {environment.name}")
        size = size or found.origin.address.size
    mode = "native" if environment.is_benchmark else "auto"
    place = configured(environment, size, limits, judge, mode=mode, retrieval=retrieval)
    check_playable(place, found)
    agent, factory = OutsideAgent(), usual_users(place, users)
    return Session(_runner(place, agent, factory, 0), _request(place, found, seed, user_seed), agent)


def _task_of(environment: Environment, place: str) -> Task:
    """A task of this environment by its place, SPLIT:NUMBER."""
    wanted = TaskAddress.parse(f"{environment.name}:{place}")
    return environment.task(wanted.split, wanted.index, size=wanted.size, seed=wanted.seed)


def _runner(place: ConfiguredEnvironment, agent: Agent, users: UserFactory, retries: int) -> EpisodeRunner:
    runner = make_runner(place, agent, users)
    assert isinstance(runner, EpisodeRunner)  # of one environment
    return replace(runner, retries=retries)


def _request(place: ConfiguredEnvironment, task: Task, seed: int, user_seed: int | None) -> RolloutRequest:
    """The task's only rollout, with a user of this seed (None: one that follows from the request's)."""
    (request,) = place.requests([task], 1, seed, "")
    return request if user_seed is None else replace(request, user_seed=user_seed)


def _known(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """ConfigError for an option that is no setting of an endpoint."""
    known = set(EndpointSettings.__dataclass_fields__) - {"model", "base_url", "api_key_env"}
    for name in options:
        if name not in known:
            raise ConfigError(f"play: there is no option {name!r}; known: {', '.join(sorted(known))}")
    return options
