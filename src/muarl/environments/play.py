"""Playing: requests for episodes become scored episodes, each in the place that its task is of.

``play`` (one task, with a model behind an endpoint), ``play_tasks`` and ``evaluate`` (an agent on many) are for
programs of one's own, without a run's folder. A conversation that is led from outside is a ``session.Session``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from muarl.agents.base import Agent
from muarl.basics.errors import ConfigError
from muarl.domains.faults.rates import FaultRates
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.places import Agents, ByPlace, Places, Users
from muarl.environments.registry import load_task
from muarl.environments.results import PlayResult
from muarl.rollouts.episode_runner import EpisodeRunner, RolloutRequest, requests_for
from muarl.rollouts.rollout import LocalExecutor, Rollout, rollout
from muarl.rollouts.rules import Limits
from muarl.types.episode import Episode
from muarl.users.base import UserFactory

if TYPE_CHECKING:
    from muarl.accounts.evaluation_report import EvaluationReport
    from muarl.endpoints.client import Endpoint
    from muarl.endpoints.connections import Connections
    from muarl.rewards.judge import Judge

CONCURRENCY = 256
"""Episodes at once."""


@dataclass(frozen=True, slots=True)
class Player:
    """Who plays the episodes of a run: each place's own runner, by its rules and limits."""

    places: Places
    agents: ByPlace[Agent]
    """The agents by place."""
    runners: Mapping[str, EpisodeRunner]

    @classmethod
    def of(cls, places: Places, agent: Agents, users: Users) -> Player:
        """The player of an agent and users, which may be others in each place."""
        agents, cast = places.everywhere(agent), places.everywhere(users)
        return cls(places, agents, {place.name: place.runner(agents.at(place), cast.at(place)) for place in places})

    async def play(self, request: RolloutRequest) -> Episode:
        """One scored episode; see ``EpisodeRunner.play``."""
        task = request.task
        runner = self.runners[self.places.of(task).name]
        episode = await runner.play(replace(request, task=self.places.own(task)))
        episode.task_id = task.id
        return episode


def local_executor(
    places: Places,
    agent: Agents,
    users: Users,
    concurrency: int = CONCURRENCY,
) -> LocalExecutor:
    """Plays episodes in this process, at most ``concurrency`` of them at the same time."""
    return LocalExecutor(Player.of(places, agent, users).play, concurrency)


async def play_in(
    places: Places,
    agent: Agents,
    users: Users,
    tasks: Sequence[Task],
    trials: int,
    *,
    seed: int,
    label: str = "",
    same_user: bool = False,
) -> Rollout:
    """Play and score ``trials`` episodes of every task in this process. For budgets, progress or another executor:
    ``rollout``."""
    requests = requests_for(tasks, trials, seed=seed, label=label, same_user=same_user)
    return await rollout(requests, local_executor(places, agent, users))


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
    from muarl.endpoints.client import Endpoint
    from muarl.endpoints.config import EndpointSettings
    from muarl.endpoints.connections import shared_connections

    resolved = load_task(task) if isinstance(task, str) else task
    if resolved.origin is None:
        raise ConfigError(
            f"task {resolved.id} does not say which environment it is of: take it from Environment.make_tasks, or play "
            "it by Environment.start"
        )
    chosen: dict[str, Any] = {"temperature": None, "concurrency": 1, "verbatim": True, **_known(options)}
    if api_key is not None:
        chosen["api_key_env"] = "api_key"  # what messages call it
    settings = EndpointSettings(model=model, base_url=base_url, **chosen)
    place = resolved.origin.environment.place(resolved.origin.address.size, limits=limits, judge=judge)
    place.check_playable(resolved)
    factory, request = place.users(users), place.request(resolved, seed, user_seed)
    async with AsyncExitStack() as stack:
        shared = connections or await stack.enter_async_context(shared_connections())
        agent = place.endpoint_agent(Endpoint(settings, api_key=api_key, connections=shared))
        episode = await place.runner(agent, factory, retries=retries).play(request)
    return PlayResult.of(episode, place.rules)


async def play_tasks(
    environment: Environment,
    agent: Agent,
    tasks: Sequence[Task],
    *,
    rollouts: int = 1,
    users: UserFactory | Endpoint | None = None,
    size: str | None = None,
    seed: int = 0,
    label: str = "",
    limits: Limits | None = None,
    judge: Judge | None = None,
    faults: FaultRates | None = None,
    concurrency: int = CONCURRENCY,
) -> list[Episode]:
    """Play ``rollouts`` episodes of every task and score them, many at once. Those of one task are a group
    (``Episode.group``), and come one after another.

    ``users``: who plays the customers: a factory, such as an ``LLMUserFactory``, or an ``Endpoint`` whose model does;
    None: the environment's rule-based user.
    ``size``: of the environment, the same as that of the tasks; None: the smallest. The same ``seed`` and ``label``
    give the same users and the same random numbers to the agent, so give every training step a label of its own.
    ``judge``: asked about assertions in words, where tasks have some. ``faults``: how often tools fail as systems do.

    An episode that something outside the agent broke off (an endpoint, a tool server) is tried again, and comes back
    without a verdict where that does not help; ``Episode.error`` says why.

    RolloutError where the agent's own code has a bug, such as a TypeError, and where nothing can be played. ConfigError
    for a benchmark, which ``muarl eval`` plays by its own protocol; DataError for a task whose gold actions fail.
    """
    if environment.is_benchmark:
        raise ConfigError(
            f"{environment.name} is played by its own protocol: muarl eval {environment.name}, or muarl.play for one "
            "of its tasks"
        )
    place = environment.place(size, limits=limits, judge=judge, faults=faults)
    place.check(tasks)
    requests = requests_for(tasks, rollouts, seed=seed, label=label)
    result = await rollout(requests, LocalExecutor(place.runner(agent, place.users(users)).play, concurrency))
    return result.episodes


async def evaluate(
    environment: Environment,
    agent: Agent,
    tasks: int | Sequence[Task] = 100,
    *,
    split: str = "test",
    rollouts: int = 1,
    users: UserFactory | Endpoint | None = None,
    size: str | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    judge: Judge | None = None,
    faults: FaultRates | None = None,
) -> EvaluationReport:
    """Measure an agent: success, and success without any violation, with their intervals, pass^k over ``rollouts`` of
    each task, turns, tokens, behaviour.

    ``tasks``: how many of the ``split``, or the tasks themselves; for the rest see ``play_tasks``. The report's
    ``to_json`` gives it to programs; ``print`` of it shows the table. ``muarl eval`` does the same with a run folder,
    baselines, audits and resuming.
    """
    from muarl.accounts.evaluation_report import EvaluationReport  # playing needs neither figures nor audits
    from muarl.audit.episodes import audit_episode
    from muarl.audit.summary import note_violations

    chosen = environment.make_tasks(split, tasks, size=size, seed=seed) if isinstance(tasks, int) else tasks
    episodes = await play_tasks(
        environment,
        agent,
        chosen,
        rollouts=rollouts,
        users=users,
        size=size,
        seed=seed,
        label="evaluation",
        limits=limits,
        judge=judge,
        faults=faults,
    )
    place, by_id = environment.place(size), {task.id: task for task in chosen}
    for episode in episodes:
        if episode.verdict is None:
            continue
        task = by_id[episode.task_id]
        rules = place.audit_rules(task)
        note_violations(episode, audit_episode(episode, task, domain=place.domain, rules=rules), rules)
    return EvaluationReport.of(episodes, name=f"{agent.name} on {environment.name}")


def named_users(
    spec: str, *, concurrency: int = 1024, connections: Connections | None = None, where: str = "user"
) -> Endpoint | None:
    """The endpoint whose model plays the customers, by "endpoint:MODEL" or "endpoint:MODEL@URL"; None, for users by
    rules, by "agenda". ``connections``: None for its own. ConfigError for another name, said at ``where``."""
    if spec == "agenda":
        return None
    if spec.startswith("endpoint:"):
        from muarl.endpoints.client import Endpoint
        from muarl.endpoints.config import parse_endpoint

        return Endpoint(parse_endpoint(spec, concurrency=concurrency), connections=connections)
    raise ConfigError(f"{where}: {spec!r} is unknown; use agenda, endpoint:MODEL or endpoint:MODEL@URL")


def _known(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """ConfigError for an option that is no setting of an endpoint."""
    from muarl.endpoints.config import EndpointSettings

    allowed = set(EndpointSettings.__dataclass_fields__) - {"model", "base_url", "api_key_env"}
    for name in options:
        if name not in allowed:
            raise ConfigError(f"play: there is no option {name!r}; known: {', '.join(sorted(allowed))}")
    return options
