"""Episodes of an environment, for programs of one's own: play tasks, and evaluate an agent, without a run's folder."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.accounts.statistics import EvaluationReport
from muarl.agents.base import Agent
from muarl.audit import audit_episode
from muarl.audit.summary import note_violations
from muarl.basics.errors import ConfigError
from muarl.domains.base import Task
from muarl.endpoints import Endpoint
from muarl.environments.environment import Environment
from muarl.environments.playing import local_executor
from muarl.environments.usual import configured, usual_users
from muarl.rewards.judge import Judge
from muarl.rollouts.conversation import Limits
from muarl.rollouts.episode_runner import requests_for
from muarl.rollouts.rollout import rollout
from muarl.types.episode import Episode
from muarl.users.base import UserFactory

CONCURRENCY = 256
"""Episodes at once."""


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
    concurrency: int = CONCURRENCY,
) -> list[Episode]:
    """Play ``rollouts`` episodes of every task and score them, many at once. Those of one task are a group
    (``Episode.group``), and come one after another.

    ``users``: who plays the customers: a factory, such as an ``LLMUserFactory``, or an ``Endpoint`` whose model does;
    None: the environment's rule-based user.
    ``size``: of the environment, the same as that of the tasks; None: the smallest. The same ``seed`` and ``label``
    give the same users and the same random numbers to the agent, so give every training step a label of its own.
    ``judge``: asked about assertions in words, where tasks have some.

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
    place = configured(environment, size, limits, judge)
    place.check(tasks)
    requests = requests_for(tasks, rollouts, seed=seed, label=label)
    found = await rollout(requests, local_executor(place, agent, usual_users(place, users), concurrency))
    return found.episodes


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
) -> EvaluationReport:
    """Measure an agent: success, and success without any violation, with their intervals, pass^k over ``rollouts`` of
    each task, turns, tokens, behaviour.

    ``tasks``: how many of the ``split``, or the tasks themselves; for the rest see ``play_tasks``. The report's
    ``to_json`` gives it to programs; ``print`` of it shows the table. ``muarl eval`` does the same with a run folder,
    baselines, audits and resuming.
    """
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
    )
    place, known = configured(environment, size), {task.id: task for task in chosen}
    for episode in episodes:
        if episode.verdict is None:
            continue
        task = known[episode.task_id]
        rules = place.audit_rules(task)
        note_violations(episode, audit_episode(episode, task, domain=place.domain, rules=rules), rules)
    return EvaluationReport.of(episodes, name=f"{agent.name} on {environment.name}")
