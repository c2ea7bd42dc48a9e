"""What a benchmark says of how its official tasks are played; each benchmark's own module fills it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.basics.errors import ConfigError
from muarl.domains.base import Domain, Semantics, Task, World
from muarl.endpoints import Endpoint
from muarl.rewards import outcome
from muarl.rewards.judge import Judge
from muarl.rollouts.conversation import Limits, Rules
from muarl.rollouts.rollout import RolloutRequest, requests_for
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import Episode, StopReason, Verdict
from muarl.users.base import UserFactory
from muarl.users.guidelines import Style

Mode = Literal["native", "qwen", "text", "text-api"]
"""How an agent's tool calls reach the benchmark: by function calling, by Qwen's with the benchmark's own documents of
the tools, or in the agent's words; "text-api": in words, as the benchmark's own runner asks models behind an API."""


@dataclass(frozen=True)
class Official:
    """One domain of a benchmark: where its worlds and tasks come from, and how its episodes are played.

    ``name``: such as "tau2-retail". ``mode``: see Mode. The defaults are what most benchmarks have in common.
    """

    name: str
    mode: Mode = "native"

    modes: ClassVar[tuple[Mode, ...]] = ("native",)
    """What ``mode`` may be; the first is meant where none is named and a model behind an endpoint serves."""

    sampled_mode: ClassVar[Mode] = "native"
    """What is meant where none is named and a checkpoint serves."""

    training_mode: ClassVar[Mode] = "native"
    """The mode in which a policy is trained."""

    max_tokens: ClassVar[int | None] = None
    """Longest completion of a model behind an endpoint; None leaves it to the server."""

    scores_cut: ClassVar[bool] = False
    """Whether an episode that a limit cut is scored by its world, too, rather than being 0."""

    own_score: ClassVar[bool] = False
    """Whether training, too, scores by the benchmark's own rules, so that a task has no reward basis to choose from."""

    fixed_users: ClassVar[bool] = False
    """Whether users say the same whatever they hear, so that there is no looking for their errors."""

    splits: ClassVar[tuple[str, ...]] = ("test",)
    """The first is the one that published scores are about."""

    attempts: ClassVar[int] = 4
    """How often an episode is begun at most, where something outside the agent breaks it off (TAU2's)."""

    temperature: ClassVar[float] = 0.0
    """The agent's."""

    user_temperature: ClassVar[float | None] = 0.0
    """The simulated user's; None leaves it to the server."""

    user_style: ClassVar[Style] = "tau2"
    """The guidelines that its users are prompted with (users/guidelines.py)."""

    @property
    def split_names(self) -> tuple[str, ...]:
        """All of the domain's splits."""
        return self.splits

    @property
    def semantics(self) -> Semantics:
        """The semantics of the world in which scores are official."""
        return "official"

    def training_rules(self) -> Rules:
        """How episodes are played where a policy is trained on its tasks."""
        return Rules()

    def training_limits(self, configured: Limits) -> Limits:
        """Limits of episodes in training, from those of the configuration."""
        return configured

    @property
    def training_split(self) -> str:
        """The tasks that are trained on, where that is allowed."""
        return "train"

    @property
    def validation_split(self) -> str | None:
        """The tasks that training validates on; None: the benchmark has none for that."""
        return None

    @property
    def family(self) -> str:
        """The benchmark, such as "tau2"."""
        return self.name.partition("-")[0]

    @property
    def own_name(self) -> str:
        """The domain's name within its benchmark, such as "telecom-workflow"."""
        return self.name.partition("-")[2]

    @property
    def domain_name(self) -> str:
        """The name of the domain that its tasks are of (``Task.domain``), which takes no data to say."""
        return self.family

    @property
    def module(self) -> Any:
        """The benchmark's module, with ``domain(name, semantics=...)`` and ``tasks(name, split)``."""
        raise NotImplementedError

    def domain(self, semantics: Semantics) -> Domain:
        """The world, from the installed data. DataError if they are not installed."""
        found: Domain = self.module.domain(self.own_name, semantics=semantics)
        return found

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split, in the benchmark's order. DataError if there is none of that name."""
        found: Sequence[Task] = self.module.tasks(self.own_name, split)
        return found

    def rules(self, *, solo: bool = False) -> Rules:
        """How episodes are played."""
        return Rules()

    def limits(self, *, steps: int | None = None, errors: int | None = None) -> Limits:
        """Where episodes are cut; None: the benchmark's own limit."""
        return Limits()

    def prompt(self, policy: str, *, solo: bool = False) -> str | None:
        """The agent's system prompt around a policy, with ``{ticket}`` still to be filled for an agent that works
        alone; None where every task has a prompt of its own (``told``)."""
        return None

    def system_prompt(self, domain: Domain, task: Task) -> str:
        """A task's own system prompt, where ``prompt`` has none."""
        return domain.policy_for(task)

    def offered(self, domain: Domain, task: Task, *, solo: bool = False) -> Sequence[ToolSpec]:
        """The tools that the agent has at the start of a task."""
        return domain.specs_for(task)

    def endpoint_agent(self, endpoint: Endpoint, *, solo: bool = False) -> Agent:
        """The agent that a model behind an endpoint is."""
        return EndpointAgent(endpoint, keep_cut=True)

    def sampled_agent(self, agent: Agent) -> Agent:
        """The agent that a checkpoint is."""
        return agent

    def users(self, domain: Domain, model: Callable[[], Endpoint] | None) -> UserFactory | None:
        """Its simulated users, None for those that are prompted as TAU's are. ``model`` makes the client of the model
        that plays them, None if there is none."""
        return None

    def needs_user_model(self, split: str) -> bool:
        """Whether a model must play the users of a split, so that one must be named."""
        return True

    async def score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        """The verdict on an episode, as the benchmark gives it."""
        return await outcome.score(task, world, episode.messages, episode.stop, judge=judge)

    async def training_score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        """The verdict where a policy is trained on its tasks."""
        return await outcome.score(task, world, episode.messages, episode.stop, judge=judge)

    async def do_nothing(self, domain: Domain, task: Task, judge: Judge | None) -> Verdict:
        """The verdict on an agent that never acts and says nothing."""
        return await outcome.do_nothing(domain, task, judge=judge)

    def figures(self, episodes: Sequence[Episode]) -> Mapping[str, float]:
        """The benchmark's own headline figures, by name; empty where the mean reward is all there is."""
        return {}

    def solo_policy(self) -> str:
        """The policy for an agent that works alone. ConfigError where the benchmark has no such mode."""
        raise ConfigError(f"eval.solo: {self.name} has no solo mode")

    def requests(self, tasks: Sequence[Task], trials: int, seed: int, label: str) -> list[RolloutRequest]:
        """One request for each task and trial, all tasks of a trial before the next trial. Seeds are ours: they follow
        from task and trial."""
        made = requests_for(tasks, trials, seed=seed, label=label)
        return sorted(made, key=lambda request: request.number)

    def seeds(self, seed: int, trials: int) -> Sequence[int] | None:
        """The trials' seeds, where the benchmark draws some."""
        return None


def has_ticket(task: Task) -> bool:
    """Whether an agent can work on a task alone: TAU2's own test, and a ticket to work from."""
    if task.history:
        return all(m.role != "user" and (m.role != "assistant" or bool(m.tool_calls)) for m in task.history)
    begun = task.initial_data is not None or bool(task.initial_actions)
    return task.ticket is not None and (begun or bool(task.actions))


class LenientRules(Rules):
    """A message that is empty, that was cut, or with a call that cannot be read is as good as words: the user is next
    (BFCL, ACEBench)."""

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        """Only a full context ends the episode."""
        return message, None if stop in (StopReason.EMPTY_REPLY, StopReason.TURN_LENGTH) else stop

    def calls_to_run(self, message: Message) -> tuple[ToolCall, ...]:
        """None, if one of them cannot be read."""
        return () if any(c.invalid is not None for c in message.tool_calls) else message.tool_calls

    def check_user(self, message: Message) -> None:
        """A user may say nothing, too."""
