"""An environment as a run configures it: the protocol that all kinds share, and the small classes of our own kinds.

A benchmark's are in ``benchmark``; ``configure_environment`` chooses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.agents.expert import ExpertAgent
from muarl.audit import audit_episode
from muarl.audit.metrics import audit
from muarl.audit.rules import rules_for
from muarl.basics.errors import ConfigError, InfrastructureError, MuarlError
from muarl.basics.event_loop import Closable
from muarl.config.sections import EvalConfig
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain, Task, World
from muarl.domains.error_profile import ErrorProfile
from muarl.domains.generated import MakeExpert
from muarl.endpoints import Endpoint
from muarl.environments.draws import Draw
from muarl.environments.environment import Environment, MakeUser
from muarl.environments.registry import built_in
from muarl.rewards import layered, outcome, shaped
from muarl.rewards.completion import COMPLETION, is_counted
from muarl.rewards.gold import check_tasks
from muarl.rewards.judge import Judge
from muarl.rollouts.conversation import Limits, Rules
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.types.chat import ToolSpec
from muarl.types.episode import Episode, Usage, Verdict
from muarl.users.base import UserFactory
from muarl.users.guidelines import Style

PLAYED = "played"
"""The tag with what a model answered as the tools, from which a conversation can be had again."""


@dataclass(frozen=True)
class RewardTerms:
    """What audits note for rewards: ``shaped``, the terms of shaped rewards; ``layered``, those of layered ones."""

    shaped: bool = False
    layered: bool = False


@dataclass(frozen=True)
class ConfiguredEnvironment:
    """Where a run's episodes take place; as it stands, the tasks that a program draws.

    ``draw``: see Draw. ``judge``: of assertions about words. ``system``: what the agent is told, None for the domain's
    policy. ``environment``: what the tasks are of, None where a program brings its own. ``terms``: see RewardTerms.
    """

    domain: Domain
    draw: Draw
    rules: Rules
    limits: Limits
    judge: Judge
    system: str | None = None
    environment: Environment | None = None
    terms: RewardTerms = RewardTerms()
    _examples: dict[str, Task] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """What people call it."""
        return self.domain.name if self.environment is None else self.environment.name

    # of which domain

    @property
    def parts(self) -> tuple[ConfiguredEnvironment, ...]:
        """One for each of its domains: several in a ``Mixture``."""
        return (self,)

    def part_of(self, played: Task | Episode) -> ConfiguredEnvironment:
        """The one of these that a task or an episode belongs to."""
        return self

    def domain_task(self, task: Task) -> Task:
        """A task as ``part_of`` it knows it."""
        return task

    # tasks

    @property
    def unchecked(self) -> bool:
        """Whether nobody has replayed the gold actions of the tasks that are drawn."""
        return True

    def check(self, tasks: Sequence[Task]) -> None:
        """Replay the gold actions of tasks that nobody has replayed yet: generators may replay their own, task files
        are checked when they are read, and official ones may fail. DataError names one that fails."""
        if self.unchecked:
            check_tasks(self.domain, tasks)

    def example_task(self, split: str) -> Task:
        """A task of the split, for what can only be looked at in one; made once."""
        if split not in self._examples:
            self._examples[split] = self.draw(split, 1, 0, 0)[0]
        return self._examples[split]

    def example_tasks(self, split: str) -> list[Task]:
        """The same of every domain."""
        return [self.example_task(split)]

    def eval_tasks(self, eval_config: EvalConfig) -> Sequence[Task]:
        """The held-out tasks of a configuration, the same ones for every agent and every seed of the run."""
        if eval_config.tasks is None:
            raise ConfigError(f"eval.tasks is null, and {self.name} has tasks without end: say how many")
        return self.draw(eval_config.split, eval_config.tasks, eval_config.seed, 0)

    def requests(self, tasks: Sequence[Task], trials: int, seed: int, label: str) -> list[RolloutRequest]:
        """The episodes of an evaluation: ``trials`` of each task."""
        return requests_for(tasks, trials, seed=seed, label=label)

    def validation_notes(self) -> list[str]:
        """What is worth knowing about the tasks that training validates on, line by line."""
        return []

    # who takes part

    def system_prompt(self, task: Task) -> str:
        """What the agent is told of a task before it begins."""
        return self.domain.policy_for(task) if self.system is None else self.system

    def tools(self, task: Task) -> Sequence[ToolSpec]:
        """The agent's tools in a task."""
        return self.domain.specs_for(task)

    def user_tools(self, task: Task) -> tuple[ToolSpec, ...]:
        """The tools that the user of a task has."""
        allowed = task.user_tools
        return tuple(t for t in self.domain.tool_specs("user") if allowed is None or t.name in allowed)

    def expert(self) -> MakeExpert:
        """The scripted expert. ConfigError if there is none."""
        if self.environment is None:
            raise ConfigError(f"{self.name} has no scripted expert: give it an Environment with `expert`")
        return self.environment.needed_expert()

    def experts(self, errors: ErrorProfile = ErrorProfile()) -> Agent:
        """The agent that the expert is, with these errors. ConfigError if there is none."""
        return ExpertAgent(errors, make=self.expert())

    def rule_based_user(self) -> MakeUser:
        """The simulated user that needs no model. ConfigError if there is none."""
        if self.environment is None:
            raise ConfigError(f"{self.name} has no rule-based user: give it an Environment with `rule_based_user`")
        return self.environment.needed_user()

    def own_users(self, model: Callable[[], Endpoint] | None) -> UserFactory | None:
        """Users that are played whatever the configuration says, None where it decides. ``model`` makes the client of
        the model that plays them."""
        return None

    @property
    def user_style(self) -> Style:
        """The guidelines with which a model is told to play the user."""
        return "muarl"

    @property
    def reviews_users(self) -> bool:
        """Whether users may make mistakes that are worth looking for."""
        return not self.rules.solo

    def endpoint_agent(self, endpoint: Endpoint) -> Agent:
        """The agent that a model behind an endpoint is."""
        return EndpointAgent(endpoint)

    def sampled_agent(self, agent: Agent) -> Agent:
        """The agent that a checkpoint is."""
        return agent

    @property
    def can_transfer(self) -> bool:
        """Whether the agent has a tool to transfer with."""
        return bool(self.transfer_tools)

    @property
    def transfer_tools(self) -> tuple[str, ...]:
        """The tool with which the agent hands the user over to a person; none if it has none."""
        found = self.rules.transfer_tool(spec.name for spec in self.domain.tool_specs())
        return () if found is None else (found,)

    # playing and scoring

    @property
    def playing(self) -> Mapping[str, Any]:
        """How the runner differs from the usual one (``EpisodeRunner``)."""
        return {}

    @property
    def checkable(self) -> bool:
        """Whether an episode can be found right or wrong."""
        return True

    @property
    def searching_usage(self) -> Usage:
        """What models have used that were asked when documents were searched."""
        return sum((getattr(part.domain, "searching_usage", Usage()) for part in self.parts), Usage())

    async def aclose(self) -> None:
        """Close the connections of the judge, and of a model that plays the tools."""
        await self.judge.aclose()
        if isinstance(self.domain, Closable):
            await self.domain.aclose()

    async def score(self, task: Task, world: World, episode: Episode) -> Verdict:
        """The verdict on an episode from its world and, where the task has assertions, the judge's answer.

        InfrastructureError if scoring itself breaks off, as benchmarks do where an assertion fails to run.
        """
        judge = self.judge if task.nl_assertions else None
        try:
            return await self._score(task, world, episode, judge)
        except MuarlError:
            raise
        except Exception as bug:
            text = f"task {task.id} cannot be scored: {type(bug).__name__}: {bug}"
            raise InfrastructureError(text, boundary="world") from bug

    async def _score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        return await outcome.score(task, world, episode.messages, episode.stop, judge=judge)

    def audit_rules(self, task: Task) -> AuditRules:
        """The rules by which a task's episodes are audited."""
        return rules_for(self.domain) if self.environment is None else self.environment.audit_rules(self.domain)

    @property
    def own_rules(self) -> AuditRules | None:
        """The audit rules that a stranger's environment declares, which whoever reads the run later may not have; None
        where the domain's class declares them, or muarl has them."""
        if self.environment is None or self.environment.name in built_in():
            return None
        return self.environment.audit

    def audit(self, task: Task, world: World, episode: Episode) -> Mapping[str, float]:
        """The audit of an episode."""
        rules = self.audit_rules(task)
        found = audit(episode, task, self.domain.kind_of, rules, world=world)
        if self.completes and episode.stop.truncated and is_counted(task, self.domain.kind_of):
            found |= {COMPLETION: 0.0}  # as the verdict has it of those that a participant ended
        if self.terms.shaped:
            found |= {f"{shaped.PREFIX}{name}": value for name, value in shaped.terms(task, episode.messages).items()}
        if self.terms.layered:
            found |= layered.terms(audit_episode(episode, task, domain=self.domain, rules=rules))
        return found

    @property
    def completes(self) -> bool:
        """Whether verdicts tell how much of a task was done."""
        return True

    def do_nothing(self) -> Callable[[Task], Awaitable[Verdict]] | None:
        """What gives the verdict on an agent that does nothing without playing an episode; None: it must be played."""
        return None

    def about_scores(self, eval_config: EvalConfig, tasks: Sequence[Task], scored: Sequence[Episode]) -> Any:
        """What a benchmark's scores must be read with, for reports; None for other tasks."""
        return None


@dataclass(frozen=True)
class EnvironmentTasks(ConfiguredEnvironment):
    """The tasks of an environment."""

    @property
    def unchecked(self) -> bool:
        """Whether nobody has replayed their gold actions: their generator may have."""
        return self.environment is None or not self.environment.replayed

    def eval_tasks(self, eval_config: EvalConfig) -> Sequence[Task]:
        """As many as are asked for; of a fixed set all, where nobody says how many."""
        if eval_config.tasks is None and self.environment is not None and not self.environment.endless:
            return self.environment.fixed_tasks(eval_config.split)
        return super().eval_tasks(eval_config)


@dataclass(frozen=True)
class FileTasks(EnvironmentTasks):
    """The tasks of a file, in the domain of an environment."""

    @property
    def unchecked(self) -> bool:
        """They are replayed when the file is read."""
        return False


@dataclass(frozen=True)
class ImaginedTools(EnvironmentTasks):
    """Tools that a model plays: the world has no state that a reward could come from. ``goal`` says whether what was
    done is what the task asks for; without one, or a task that does not say, the reward is 0 with the part
    "unscored"."""

    goal: Callable[[Task, World], bool | None] | None = None

    @property
    def completes(self) -> bool:
        """There is no world to tell it."""
        return False

    @property
    def unchecked(self) -> bool:
        """There is no world to replay anything in."""
        return False

    @property
    def checkable(self) -> bool:
        """Whether there is a goal."""
        return self.goal is not None

    async def score(self, task: Task, world: World, episode: Episode) -> Verdict:
        """Whether the goal was met. What the tools answered is kept with the episode."""
        if played := getattr(world, "calls", None):
            episode.tags[PLAYED] = [call.to_json() for call in played]
        met = None if self.goal is None else self.goal(task, world)
        return Verdict(0.0, {"unscored": 0.0}) if met is None else Verdict(float(met), {"GOAL": float(met)})
