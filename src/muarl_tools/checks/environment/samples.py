"""What checks look at: tasks and episodes of an environment, made when first asked for and shared by all checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from muarl.agents.idle import IdleAgent
from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.domains.base import Domain
from muarl.domains.checking import NotChecked
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.rewards.gold import gold_failures
from muarl.rewards.replay import ReplayError
from muarl.types.chat import ToolSpec
from muarl_tools.checks.environment.other_process import TaskRequest, fingerprints_elsewhere
from muarl_tools.checks.expert_plays import Played, ScriptedPlays

T = TypeVar("T")


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
    def writing(self) -> Sequence[str]:
        """The agent's tools that write."""
        return [name for name in self.domain.tool_names() if self.domain.kind_of(name) == "write"]

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

    @cached_property
    def plays(self) -> ScriptedPlays:
        """Who plays its tasks. A bug of the expert's is to be found, not to end the check."""
        return ScriptedPlays(self.environment, self.domain, self.seed, "check", lenient=True)

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
            agent, users = self.plays.expert(errors), self.plays.users(persona)
            return self.plays.play(agent, self.playable(split, count), users)

        return self._once(key, make, "the expert's episodes could not be played")

    def idle_episodes(self) -> Played:
        """What becomes of conversations with an agent that does nothing."""

        def make() -> Played:
            return self.plays.play(IdleAgent(), self.playable())

        return self._once("idle", make, "no conversation could be played")
