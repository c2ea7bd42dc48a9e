"""What is measured of an environment before it is published: baselines, the scripted expert, and one episode to repeat.

Everything here is scripted, so the same arguments give the same figures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.accounts.evaluation_report import EvaluationReport
from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import SORRY, IdleAgent, TransferAgent
from muarl.basics.errors import ConfigError, DataError
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.play import evaluate
from muarl.types.chat import Message, to_openai

TRIED = 20
"""Tasks among which one is looked for that the expert solves, to be the episode that is repeated."""


@dataclass(frozen=True, slots=True)
class AgentScore:
    """The success of one scripted agent."""

    agent: str
    """What it is called: "do nothing", "always transfer" or "scripted expert"."""

    success: float
    """The share of the tasks that it solves."""

    interval: tuple[float, float]
    """The 95% interval of ``success``."""

    n: int
    """Tasks behind it, one episode each."""


@dataclass(frozen=True, slots=True)
class AgentPrompt:
    """What the agent is told and may call, of the first measured task."""

    policy: str
    """The system message."""

    tools: Sequence[Mapping[str, Any]]
    """The tools in the form of OpenAI's chat API."""


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """An episode that comes out the same wherever its messages are said again."""

    task: str
    """The task's address."""

    seed: int
    """The seed of the conversation."""

    messages: Sequence[Mapping[str, Any]]
    """What the agent says, message by message, in the form of OpenAI's chat API."""

    reward: float
    """What the episode earns."""

    stop: str
    """Why it ends."""


@dataclass(frozen=True, slots=True)
class EnvironmentFigures:
    """All that is measured of an environment."""

    split: str
    """The split that the tasks are of."""

    scores: Sequence[AgentScore]
    """The baselines, then the expert where there is one."""

    prompt: AgentPrompt
    """What the agent is told."""

    episode: RecordedEpisode
    """The one to repeat."""

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> EnvironmentFigures:
        """The same from ``dataclasses.asdict`` and JSON."""
        scores = [AgentScore(**{**score, "interval": tuple(score["interval"])}) for score in value["scores"]]
        return cls(value["split"], scores, AgentPrompt(**value["prompt"]), RecordedEpisode(**value["episode"]))


def measure(environment: Environment, *, size: str | None, tasks: int, seed: int) -> EnvironmentFigures:
    """Play ``tasks`` tasks of the split test (or the last one) with each scripted agent.

    ConfigError for an environment without a rule-based user, or whose tasks need a judge: nobody could play them
    without a model. DataError where conversations break off.
    """
    environment.needed_user()
    split = "test" if "test" in environment.splits else environment.splits[-1]
    chosen = environment.make_tasks(split, tasks, size=size, seed=seed)
    _check(environment, split, chosen)
    place = environment.place(size)
    agents: dict[str, Agent] = {"do nothing": IdleAgent()}
    if place.transfer_tools:
        agents["always transfer"] = TransferAgent(place.transfer_tools)
    if environment.expert is not None:
        agents["scripted expert"] = ExpertAgent(ErrorProfile(), make=environment.expert)
    scores, episode = asyncio.run(_played(environment, agents, chosen, size, seed))
    tools = [spec.to_openai() for spec in place.tools(chosen[0])]
    return EnvironmentFigures(split, scores, AgentPrompt(place.system_prompt(chosen[0]), tools), episode)


def _check(environment: Environment, split: str, tasks: Sequence[Task]) -> None:
    if not tasks:
        raise ConfigError(f"{environment.name} has no tasks in the split {split}: there is nothing to measure")
    judged = next((task for task in tasks if task.nl_assertions and "NL_ASSERTION" in task.reward_basis), None)
    if judged is not None:
        raise ConfigError(
            f"{environment.name}: the reward of task {judged.id} needs a judge (NL_ASSERTION), which a published "
            "environment does not have: let its reward look at the database or at what was said (DB, COMMUNICATE)"
        )


async def _played(
    environment: Environment, agents: Mapping[str, Agent], tasks: Sequence[Task], size: str | None, seed: int
) -> tuple[list[AgentScore], RecordedEpisode]:
    scores = []
    for name, agent in agents.items():
        report = await evaluate(environment, agent, tasks, size=size, seed=seed)
        scores.append(_score(environment, name, report))
    return scores, await _recorded(environment, agents.get("scripted expert"), tasks)


def _score(environment: Environment, agent: str, report: EvaluationReport) -> AgentScore:
    if report.excluded:
        raise DataError(
            f"{environment.name}: {report.excluded} of {report.episodes + report.excluded} conversations of the agent "
            f"{agent!r} broke off, so that nothing is measured: muarl domains check says why"
        )
    success = report.success
    return AgentScore(agent, success.value, (success.interval[0], success.interval[1]), success.n)


async def _recorded(environment: Environment, expert: Agent | None, tasks: Sequence[Task]) -> RecordedEpisode:
    """The first episode in which the expert earns the whole reward, else that of an agent that does nothing."""
    place = environment.place(tasks[0].origin.address.size)
    for task in tasks[:TRIED] if expert is not None else ():
        assert expert is not None
        played = await place.runner(expert, place.users(), retries=0).play(place.request(task, 0))
        said = [m for m in played.messages[len(place.rules.opening(task)[0]) :] if m.role == "assistant"]
        recorded = await _repeated(environment, task, said)
        if recorded.reward == 1.0:
            return recorded
    return await _repeated(environment, tasks[0], ())


async def _repeated(environment: Environment, task: Task, said: Sequence[Message]) -> RecordedEpisode:
    """What comes of saying these messages, and an apology whenever there are no more."""
    left, sent = list(said), []
    async with environment.start(task, seed=0) as session:
        while not session.done:
            message = to_openai(left.pop(0) if left else Message("assistant", SORRY))
            sent.append(message)
            await session.step(message)
        result = session.result
    if result.reward is None:
        raise DataError(f"{environment.name}: the conversation about task {task.id} broke off: {result.failure}")
    return RecordedEpisode(str(task.origin.address), 0, sent, result.reward, result.stop.value)
