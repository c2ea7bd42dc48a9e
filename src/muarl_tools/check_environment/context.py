"""What checks look at: tasks and episodes of an environment, made when first asked for and shared by all checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import IdleAgent
from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.basics.event_loop import Closable
from muarl.domains.base import Domain
from muarl.domains.checking import NotChecked
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.rewards.gold import gold_failures
from muarl.rewards.replay import ReplayError
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.chat import ToolSpec
from muarl.types.episode import Episode, StopReason
from muarl.users.agenda import AgendaUserFactory
from muarl.users.base import UserFactory
from muarl_tools.check_environment.elsewhere import TaskRequest, fingerprints_elsewhere

Played = Sequence[tuple[Task, Episode]]
T = TypeVar("T")

ON_SERVER = 8
"""Episodes at once where each takes a server of its own."""


@dataclass(frozen=True, slots=True)
class PromptModel:
    """A model that is to read the prompt. ``window``: tokens that it reads at once. ``count``: tokens that its chat
    format makes of a policy and tools."""

    name: str
    window: int
    count: Callable[[str, Sequence[ToolSpec]], int]


@dataclass
class CheckContext:
    """The samples of one environment at one size (``domains.checking.Samples``).

    ``reference``: the name under which another process finds it, None if there is none. ``count``: tasks of the split
    that is measured on. ``seed``: of tasks, users and agents. ``elsewhere``: gives the fingerprints of tasks made in
    another process. ``models``: those that are to read policy and tools; none: their length is estimated.
    """

    environment: Environment
    reference: str | None = None
    size: str | None = None
    count: int = 200
    seed: int = 0
    elsewhere: Callable[[Sequence[TaskRequest]], list[list[str]]] = fingerprints_elsewhere
    models: Sequence[PromptModel] = ()
    _made: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """ConfigError for a size that there is not; what else the environment itself raises passes through."""
        if self.environment.sizes:
            self.size = self.size or self.environment.sizes[0]
            self.environment.check_size(self.size)
        self.domain: Domain = self.environment.make_domain(self.size)
        self.splits = self.environment.splits

    @cached_property
    def split(self) -> str:
        """The split that is measured on."""
        return "test" if "test" in self.splits else self.splits[-1]

    def _once(self, key: Any, make: Callable[[], T], failed: str) -> T:
        """What is made once. The error is raised once, and then NotChecked: one check tells it."""
        if key not in self._made:
            try:
                self._made[key] = make()
            except (MuarlError, NotChecked) as problem:
                self._made[key] = problem
                raise
        found = self._made[key]
        if isinstance(found, NotChecked):
            raise found
        if isinstance(found, MuarlError):
            raise NotChecked(failed)
        return found

    def tasks(self, split: str | None = None, count: int | None = None) -> Sequence[Task]:
        """Tasks of a split: ``count`` of them, never more than the person asked for. None: as many as were asked for,
        and of the splits that are not measured on a quarter of that."""
        split = split or self.split
        count = self.count if split == self.split and count is None else min(count or -(-self.count // 4), self.count)

        def make() -> list[Task]:
            return self.environment.make_tasks(split, count, size=self.size, seed=self.seed)

        whole = self._made.get(("tasks", split))
        if isinstance(whole, list) and count > len(whole):
            del self._made["tasks", split]
        made = self._once(("tasks", split), make, f"the tasks of the split {split} could not be made")
        return made[:count]

    def playable(self, split: str | None = None, count: int | None = None) -> Sequence[Task]:
        """Those of them that can be played and scored. NotChecked where none can, and for a benchmark."""
        if self.environment.is_benchmark:
            raise NotChecked("a benchmark, played by its own protocol (`muarl eval`)")
        found = [task for task in self.tasks(split, count) if not task.nl_assertions]
        if not found:
            raise NotChecked("every task has assertions in words, which need a judge")
        sound = [task for task in found if not self.broken(task)]
        if not sound:
            raise NotChecked("no task has gold actions that all succeed")
        return sound

    def broken(self, task: Task) -> Sequence[Any]:
        """The gold actions of a task that fail. NotChecked where no world can be had, such as a server's."""
        try:
            return gold_failures(self.domain, task)
        except ReplayError as problem:
            return [problem]
        except InfrastructureError as problem:
            raise NotChecked(str(problem)) from problem

    # episodes

    def users(self, persona: str | None = None) -> AgendaUserFactory:
        """Its rule-based users. NotChecked where it has none."""
        if self.environment.rule_based_user is None:
            raise NotChecked("it has no rule-based user")
        return AgendaUserFactory(self.environment.rule_based_user, seed=self.seed, persona=persona)

    def expert(self, errors: ErrorProfile = ErrorProfile()) -> ExpertAgent:
        """Its scripted expert. NotChecked where it has none."""
        if self.environment.expert is None:
            raise NotChecked("it has no expert")
        return ExpertAgent(errors, make=self.environment.expert)

    def expert_episodes(
        self,
        split: str | None = None,
        count: int | None = None,
        *,
        errors: ErrorProfile = ErrorProfile(),
        persona: str | None = None,
    ) -> Played:
        """What the expert does with tasks of a split against the rule-based user."""
        key = ("expert", split or self.split, min(count or self.count, self.count), errors, persona)

        def make() -> Played:
            agent, users = self.expert(errors), self.users(persona)
            return self.play(agent, self.playable(split, count), users)

        return self._once(key, make, "the expert's episodes could not be played")

    def idle_episodes(self) -> Played:
        """What becomes of conversations with an agent that does nothing."""
        return self._once("idle", lambda: self.play(IdleAgent(), self.playable()), "no conversation could be played")

    def play(self, agent: Agent, tasks: Sequence[Task], users: UserFactory | None = None) -> Played:
        """One scored episode of each task, nothing tried twice."""
        users = users or self.users()
        episodes = asyncio.run(self._play(agent, tasks, users))
        lost = next((e for e in episodes if (e.error or "").startswith("world: ")), None)
        if lost is not None and self.environment.on_server:
            raise NotChecked(str(lost.error))
        return list(zip(tasks, episodes, strict=True))

    async def _play(self, agent: Agent, tasks: Sequence[Task], users: UserFactory) -> list[Episode]:
        once = self.environment.place(self.size).runner(agent, users, retries=0)

        async def play(request: RolloutRequest) -> Episode:
            episode = await once.play(request)
            if episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "agent":
                episode.tags["retryable"] = True  # a bug of the expert's is to be found, not to end the check
            return episode

        executor = LocalExecutor(play, ON_SERVER if self.environment.on_server else 256)
        try:
            requests = requests_for(tasks, 1, seed=self.seed, label="check")
            return (await rollout(requests, executor)).episodes
        finally:
            if isinstance(self.domain, Closable):
                await self.domain.aclose()
