"""Tasks of an environment are played and scored: requests for episodes become episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from muarl.agents.base import Agent
from muarl.domains.base import Task
from muarl.environments.configure import ConfiguredEnvironment
from muarl.environments.mixture import AgentByDomain, Mixture
from muarl.rollouts.episode_runner import EpisodeRunner, RolloutRequest, requests_for
from muarl.rollouts.rollout import LocalExecutor, Rollout, rollout
from muarl.types.episode import Episode
from muarl.users.base import UserFactory


async def play(
    environment: ConfiguredEnvironment,
    agent: Agent,
    users: UserFactory,
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
    return await rollout(requests, local_executor(environment, agent, users))


@dataclass(frozen=True, slots=True)
class RunnerByDomain:
    """Who plays the episodes of a mixture: each domain's own runner, by its rules and limits."""

    environment: Mixture
    agent: Agent
    runners: Mapping[str, EpisodeRunner | RunnerByDomain]

    async def play(self, request: RolloutRequest) -> Episode:
        """One scored episode; see ``EpisodeRunner.play``."""
        task = request.task
        runner = self.runners[self.environment.part_of(task).name]
        episode = await runner.play(replace(request, task=self.environment.domain_task(task)))
        episode.task_id = task.id
        return episode


def make_runner(environment: ConfiguredEnvironment, agent: Agent, users: UserFactory) -> EpisodeRunner | RunnerByDomain:
    """Who plays the episodes of an environment."""
    if isinstance(environment, Mixture):
        agents = agent.agents if isinstance(agent, AgentByDomain) else dict.fromkeys(environment.by_domain, agent)
        runners = {name: make_runner(part, agents[name], users) for name, part in environment.by_domain.items()}
        return RunnerByDomain(environment, agent, runners)
    return EpisodeRunner(
        make_world=environment.domain.world,
        agent=agent,
        make_user=users,
        score=environment.score,
        audit=environment.audit,
        limits=environment.limits,
        rules=environment.rules,
        system=environment.system_prompt,
        tools=environment.tools,
        **environment.playing,
    )


def local_executor(
    environment: ConfiguredEnvironment, agent: Agent, users: UserFactory, concurrency: int = 256
) -> LocalExecutor:
    """Plays the episodes of an environment in this process, at most ``concurrency`` of them at the same time."""
    return LocalExecutor(make_runner(environment, agent, users).play, concurrency)
