"""A place: an environment as one run plays it, with its world, tasks, rules, limits, people and score.

``Environment.place`` makes one where nobody says more, ``configure`` those of a run's configuration, ``benchmark``
those of benchmarks. A program may make its own. A run holds ``Places``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from muarl.agents.expert import ExpertAgent
from muarl.audit.metrics import audit
from muarl.basics.errors import ConfigError, InfrastructureError, MuarlError
from muarl.basics.event_loop import Closable
from muarl.domains.auditing import UNDECLARED, AuditRules
from muarl.domains.base import Domain, World
from muarl.domains.faults.rates import FaultRates
from muarl.domains.generated import MakeExpert
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.rewards import layered, outcome, shaped
from muarl.rewards.completion import COMPLETION, is_counted
from muarl.rewards.gold import check_tasks
from muarl.rollouts.episode_runner import EpisodeRunner, RolloutRequest, requests_for
from muarl.rollouts.rules import Limits, Rules
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import Episode, Usage, Verdict
from muarl.users.agenda import AgendaUserFactory
from muarl.users.base import User, UserFactory
from muarl.users.strata.panel import Strata
from muarl.users.traits.levels import TraitRanges

if TYPE_CHECKING:
    from muarl.agents.base import Agent
    from muarl.endpoints.client import Endpoint
    from muarl.rewards.judge import Judge
    from muarl.users.guidelines import Guidelines, Style
    from muarl.users.llm import LLMUserFactory

PLAYED = "played"
"""The tag with what a model answered as the tools, from which a conversation can be had again."""

Draw = Callable[[str, int, int, int], Sequence[Task]]
"""``draw(split, count, seed, start)``: that many tasks of a split, all different."""


class MakeUser(Protocol):
    """A rule-based simulated user for one conversation; the same arguments give the same user."""

    def __call__(self, task: Task, *, seed: int, persona: str | None = None) -> User: ...


@dataclass(frozen=True)
class RewardTerms:
    """What audits note for rewards."""

    shaped: bool = False
    """The terms of shaped rewards."""
    layered: bool = False
    """The terms of layered rewards."""


class NoJudge:
    """Nobody who could be asked about assertions in words."""

    def refusal(self, assertions: Sequence[str]) -> ConfigError:
        """What to say to who asks."""
        return ConfigError(f"a task has assertions in words ({assertions[0]!r}): give a judge")

    async def __call__(self, messages: Sequence[Message], assertions: Sequence[str]) -> bool:
        """ConfigError: somebody has to judge these words."""
        raise self.refusal(assertions)

    async def aclose(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """An environment as one run plays it.

    Most of it is data. What differs in kind (benchmarks; tools that a model plays) overrides the methods.
    """

    name: str
    """What people call it: its environment's name."""

    domain: Domain
    """Policy, database and tools."""

    draw: Draw
    """The tasks that a run draws."""

    rules: Rules
    """How conversations are played."""

    limits: Limits = field(default_factory=Limits)
    """Where they are cut."""

    judge: Judge = field(default_factory=NoJudge)
    """Of tasks' assertions about words. Whoever made the place closes both."""

    system: str | None = None
    """What the agent is told of every task; None: the domain's policy for it."""

    declared: bool = False
    """Whether an ``Environment`` says what it is, rather than a program of somebody's own."""

    expert: MakeExpert | None = None
    """The scripted expert, if there is one."""

    rule_based_user: MakeUser | None = None
    """The simulated user that needs no model, if there is one."""

    declared_audit: AuditRules | None = None
    """The rules of audits; None: those that the domain's class declares."""

    terms: RewardTerms = RewardTerms()
    """What audits note for rewards besides."""

    fixed_tasks: Callable[[str], Sequence[Task]] | None = None
    """All tasks of a split; None where they have no end."""

    replayed: bool = False
    """Whether nobody need replay the gold actions of the tasks that are drawn: their generator has, a task file's
    were when it was read, and official ones may fail."""

    completes: bool = True
    """Whether verdicts tell how much of a task was done."""

    retries: int = 2
    """How often an episode is restarted that something outside the agent broke off."""

    score_cut: bool = False
    """Whether an episode that a limit cut is scored by its world, too, rather than being 0."""

    faults: FaultRates | None = None
    """How often its tools fail as systems do; None: never."""

    held_out_note: str | None = None
    """That some training tasks are held out to validate on; None where none are."""

    _examples: dict[str, Task] = field(default_factory=dict, init=False, repr=False)

    # tasks

    def check(self, tasks: Sequence[Task]) -> None:
        """Replay the gold actions of tasks, where nobody has (``replayed``). DataError names one that fails."""
        if not self.replayed:
            check_tasks(self.domain, tasks)

    def check_playable(self, task: Task) -> None:
        """Refuse before any work what could not be scored after it: ConfigError for a task that needs a judge and has
        none, DataError for one whose gold actions fail."""
        if isinstance(self.judge, NoJudge) and task.nl_assertions and "NL_ASSERTION" in task.reward_basis:
            raise self.judge.refusal(task.nl_assertions)
        self.check([task])

    def example_task(self, split: str) -> Task:
        """A task of the split, for what can only be looked at in one; made once."""
        if split not in self._examples:
            self._examples[split] = self.draw(split, 1, 0, 0)[0]
        return self._examples[split]

    def eval_tasks(self, split: str, count: int | None, *, seed: int, ids: Sequence[str] = ()) -> Sequence[Task]:
        """The held-out tasks of an evaluation, the same ones for every agent and every seed of the run. ``count``:
        None for all. ``ids``: only these of a benchmark's (``eval.task_ids``). ConfigError where there is no end of
        them."""
        if count is not None:
            return self.draw(split, count, seed, 0)
        if self.fixed_tasks is None:
            raise ConfigError(f"eval.tasks is null, and {self.name} has tasks without end: say how many")
        return self.fixed_tasks(split)

    def requests(self, tasks: Sequence[Task], trials: int, seed: int, label: str) -> list[RolloutRequest]:
        """The episodes of an evaluation: ``trials`` of each task."""
        return requests_for(tasks, trials, seed=seed, label=label)

    def request(self, task: Task, seed: int, user_seed: int | None = None) -> RolloutRequest:
        """The only rollout of a task, with a user of ``user_seed`` (None: one that follows from the request's)."""
        (request,) = self.requests([task], 1, seed, "")
        return request if user_seed is None else replace(request, user_seed=user_seed)

    def validation_notes(self) -> list[str]:
        """What is worth knowing about the tasks that training validates on, line by line."""
        return [] if self.held_out_note is None else [self.held_out_note]

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

    def needed_expert(self) -> MakeExpert:
        """The scripted expert. ConfigError if there is none."""
        if self.expert is not None:
            return self.expert
        if self.declared:
            raise no_expert(self.name)
        raise ConfigError(f"{self.name} has no scripted expert: give it an Environment with `expert`")

    def expert_agent(self, errors: ErrorProfile = ErrorProfile()) -> Agent:
        """The agent that the expert is, with these errors. ConfigError if there is none."""
        return ExpertAgent(errors, make=self.needed_expert())

    def needed_user(self) -> MakeUser:
        """The simulated user that needs no model. ConfigError if there is none."""
        if self.rule_based_user is not None:
            return self.rule_based_user
        if self.declared:
            raise no_user(self.name)
        raise ConfigError(f"{self.name} has no rule-based user: give it an Environment with `rule_based_user`")

    def own_users(self, model: Callable[[], Endpoint] | None) -> UserFactory | None:
        """Users that are played whatever the configuration says, None where it decides. ``model`` makes the client of
        the model that plays them."""
        return None

    def users(self, user: UserFactory | Endpoint | None = None) -> UserFactory:
        """Who plays the customers: the factory that is given, the model behind an endpoint, prompted as this place has
        it, or (None) users that need no model. ConfigError where there are none."""
        if user is None:
            return self.own_users(None) or AgendaUserFactory(self.needed_user())
        from muarl.endpoints.client import Endpoint  # only who has one needs the client's modules

        if not isinstance(user, Endpoint):
            return user
        return self.own_users(lambda: user) or self.model_users(user)

    def model_users(
        self,
        endpoint: Endpoint,
        guidelines: Style | Guidelines | None = None,
        traits: TraitRanges | None = None,
        strata: Strata | None = None,
    ) -> LLMUserFactory:
        """Users that a model plays, by the place's guidelines (None: ``guidelines``) and with its users' tools."""
        from muarl.users.llm import LLMUserFactory

        tau1 = self.user_style == "tau1"
        return LLMUserFactory(
            endpoint,
            guidelines=guidelines or self.user_style,
            tools=self.user_tools,
            send_seed=not tau1,
            empty_ok=tau1,
            traits=traits,
            strata=strata,
        )

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
        from muarl.agents.endpoint import EndpointAgent

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
        tool = self.rules.transfer_tool(spec.name for spec in self.domain.tool_specs())
        return () if tool is None else (tool,)

    # playing and scoring

    def runner(self, agent: Agent, users: UserFactory, *, retries: int | None = None) -> EpisodeRunner:
        """Who plays the episodes that take place here. ``retries``: None for as many as usual."""
        return EpisodeRunner(
            make_world=self.domain.world,
            agent=agent,
            make_user=users,
            score=self.score,
            audit=self.audit,
            limits=self.limits,
            rules=self.rules,
            system=self.system_prompt,
            tools=self.tools,
            retries=self.retries if retries is None else retries,
            score_cut=self.score_cut,
            faults=self.faults,
        )

    @property
    def checkable(self) -> bool:
        """Whether an episode can be found right or wrong."""
        return True

    @property
    def searching_usage(self) -> Usage:
        """What models have used that were asked when documents were searched."""
        usage: Usage = getattr(self.domain, "searching_usage", Usage())
        return usage

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
        return rules_of(self.declared_audit, self.domain)

    def audit(self, task: Task, world: World, episode: Episode) -> Mapping[str, float]:
        """The audit of an episode."""
        rules = self.audit_rules(task)
        figures = audit(episode, task, self.domain.kind_of, rules, world=world)
        if self.completes and episode.stop.truncated and is_counted(task, self.domain.kind_of):
            figures |= {COMPLETION: 0.0}  # as the verdict has it of those that a participant ended
        if self.terms.shaped:
            figures |= {f"{shaped.PREFIX}{name}": value for name, value in shaped.terms(task, episode.messages).items()}
        if self.terms.layered:
            from muarl.audit.episodes import audit_episode  # only these rewards need a whole audit

            figures |= layered.terms(audit_episode(episode, task, domain=self.domain, rules=rules))
        return figures

    def do_nothing(self) -> Callable[[Task], Awaitable[Verdict]] | None:
        """What gives the verdict on an agent that does nothing without playing an episode; None: it must be played."""
        return None

    def about_scores(self, split: str, trials: int, seed: int, tasks: Sequence[Task], scored: Sequence[Episode]) -> Any:
        """What a benchmark's scores of an evaluation must be read with, for reports; None for other tasks."""
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class ImaginedPlace(Place):
    """Tools that a model plays: the world has no state that a reward could come from."""

    goal: Callable[[Task, World], bool | None] | None = None
    """Says whether what was done is what the task asks for; without one, or a task that does not say, the reward is 0
    with the part "unscored"."""

    replayed: bool = True
    """There is no world to replay anything in."""

    completes: bool = False
    """There is no world to tell it."""

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


def rules_of(declared: AuditRules | None, domain: Domain | None) -> AuditRules:
    """The rules of audits: those ``declared`` for an environment, or by its domain's class, as far as its tools allow
    where the ``domain`` is given."""
    if domain is None:
        return declared or UNDECLARED
    return (declared or type(domain).audit or UNDECLARED).for_tools(domain.tool_names())


def no_expert(name: str) -> ConfigError:
    """What to do where an environment has no scripted expert."""
    return ConfigError(
        f"{name} has no scripted expert: let a model serve (agent endpoint:MODEL or a checkpoint), take "
        "demonstrations from a file (sft.demonstrations_file), or give it an expert (docs/domains.md)"
    )


def no_user(name: str, section: str = "user") -> ConfigError:
    """What to do where an environment has no rule-based user. ``section``: of the configuration."""
    return ConfigError(
        f"{name} has no rule-based user: give --user endpoint:MODEL (in a configuration "
        f"{section}.kind=llm and {section}.endpoint.model), or see docs/users.md"
    )
