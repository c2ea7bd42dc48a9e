"""Benchmarks: what is declared of one, and the place that it is when it is played: trained on, or to the letter.

An environment that is a benchmark declares a ``Benchmark`` (``Environment.protocol``), which says which kind of
``BenchmarkPlace`` it is played in. muarl_worlds has those of TAU1, TAU2, BFCL and ACEBench.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from muarl.basics.errors import ConfigError
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain, Semantics, World
from muarl.domains.tasks import Task
from muarl.environments.place import Draw, Place
from muarl.environments.task_pool import HELD_OUT, held_out_note
from muarl.rewards import outcome
from muarl.rollouts.episode_runner import RolloutRequest, requests_for
from muarl.rollouts.rules import Limits, Rules
from muarl.types.episode import Episode, Verdict

if TYPE_CHECKING:
    from muarl.agents.base import Agent
    from muarl.endpoints.client import Endpoint
    from muarl.rewards.judge import Judge
    from muarl.users.guidelines import Style

Mode = Literal["native", "qwen", "text", "text-api"]
"""How an agent's tool calls reach the benchmark: by function calling, by Qwen's with the benchmark's own documents of
the tools, or in the agent's words; "text-api": in words, as the benchmark's own runner asks models behind an API."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One domain of a benchmark, as it is declared: what can be said of it before anything is played."""

    family: str
    """The benchmark, such as "tau2"."""

    own_name: str
    """The domain's name within its benchmark, such as "telecom-workflow"."""

    place: type[BenchmarkPlace]
    """How it is played."""

    load: Callable[[], Any] = field(repr=False, compare=False)
    """Gives the benchmark's module, with ``domain(own_name, semantics=...)`` and ``tasks(own_name, split)``."""

    task_domain: str
    """The name of the domain that its tasks are of (``Task.domain``), which takes no data to say."""

    splits: tuple[str, ...] = ("test",)
    """The first is the one that published scores are about."""

    training_split: str = "train"
    """The tasks that are trained on, where that is allowed."""

    validation_split: str | None = None
    """The tasks that training validates on; None: the benchmark has none for that."""

    @property
    def name(self) -> str:
        """Such as "tau2-retail"."""
        return f"{self.family}-{self.own_name}"

    @property
    def module(self) -> Any:
        """The benchmark's module."""
        return self.load()

    def domain(self, semantics: Semantics) -> Domain:
        """The world, from the installed data. DataError if they are not installed."""
        domain: Domain = self.module.domain(self.own_name, semantics=semantics)
        return domain

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split, in the benchmark's order. DataError if there is none of that name."""
        tasks: Sequence[Task] = self.module.tasks(self.own_name, split)
        return tasks

    def measured(
        self,
        domain: Domain,
        mode: Mode,
        *,
        solo: bool = False,
        policy: str | None = None,
        steps: int | None = None,
        errors: int | None = None,
        **of_environment: Any,
    ) -> BenchmarkPlace:
        """The benchmark, played and scored by its protocol. ``domain``: in the semantics of the mode. ``policy``:
        another than the benchmark's; ``steps``, ``errors``: other limits. ``of_environment``: further fields of
        ``Place``."""
        kind = self.place
        if solo:
            system = kind.prompt_of(self, policy or kind.solo_policy_of(self), solo=True)
        else:
            system = self.prompt_around(domain, policy)
        return kind(
            benchmark=self,
            mode=mode,
            domain=domain,
            draw=draw_of(self),
            rules=kind.rules_of(self, mode, solo=solo),
            limits=kind.limits_of(self, steps=steps, errors=errors),
            system=system,
            retries=kind.attempts - 1,
            score_cut=kind.scores_cut,
            completes=not kind.scores_cut,
            **of_environment,
        )

    def trained_on(
        self, domain: Domain, limits: Limits, *, policy: str | None = None, **of_environment: Any
    ) -> BenchmarkPlace:
        """The benchmark as a place to train. ``domain``: in the repaired semantics; ``limits``: the configuration's.
        ``of_environment``: further fields of ``Place``, among them ``draw``."""
        kind = self.place
        return kind(
            benchmark=self,
            mode=kind.training_mode,
            measured=False,
            domain=domain,
            rules=kind.training_rules_of(self),
            limits=kind.training_limits_of(self, limits),
            system=self.prompt_around(domain, policy),
            **of_environment,
        )

    def prompt_around(self, domain: Domain, policy: str | None = None) -> str | None:
        """The system prompt around another ``policy`` or the domain's; None where every task has one of its own."""
        if policy is None and getattr(domain, "policy_by_task", False):
            return None
        return self.place.prompt_of(self, policy or domain.policy_text)


@dataclass(frozen=True, kw_only=True, eq=False)
class BenchmarkPlace(Place):
    """A benchmark's tasks: played and scored to the letter, or trained on, and played in our own way.

    The defaults are what most benchmarks have in common.
    """

    benchmark: Benchmark
    mode: Mode = "native"
    measured: bool = True
    """Whether they are played and scored to the letter."""

    replayed: bool = True

    modes: ClassVar[tuple[Mode, ...]] = ("native",)
    """What ``mode`` may be; the first is meant where none is named and a model behind an endpoint serves."""

    sampled_mode: ClassVar[Mode] = "native"
    """What is meant where none is named and a checkpoint serves."""

    training_mode: ClassVar[Mode] = "native"
    """The mode in which a policy is trained."""

    max_tokens: ClassVar[int | None] = None
    """Longest completion of a model behind an endpoint; None leaves it to the server."""

    scores_cut: ClassVar[bool] = False
    """Whether an episode that a limit cut is scored by its world, too, and the score has parts of its own."""

    own_score: ClassVar[bool] = False
    """Whether training, too, scores by the benchmark's own rules, so that a task has no reward basis to choose from."""

    fixed_users: ClassVar[bool] = False
    """Whether users say the same whatever they hear, so that there is no looking for their errors."""

    attempts: ClassVar[int] = 4
    """How often an episode is begun at most, where something outside the agent breaks it off (TAU2's)."""

    temperature: ClassVar[float] = 0.0
    """The agent's."""

    user_temperature: ClassVar[float | None] = 0.0
    """The simulated user's; None leaves it to the server."""

    style: ClassVar[Style] = "tau2"
    """The guidelines that its users are prompted with (users/guidelines.py)."""

    # what is known of a benchmark before it is played

    @classmethod
    def chosen_mode(cls, mode: str, name: str, *, sampled: bool = False) -> Mode:
        """The mode of a name; of "auto" the benchmark's own, which may depend on whether the agent is ``sampled`` from
        a checkpoint. ConfigError if the environment ``name`` is not played in that mode."""
        usual: Mode = cls.sampled_mode if sampled else cls.modes[0]
        chosen = next((m for m in cls.modes if m == (usual if mode == "auto" else mode)), None)
        if chosen is None:
            raise ConfigError(f"eval.mode: {name} is played in mode {' or '.join(cls.modes)}, not {mode}")
        return chosen

    @classmethod
    def semantics_of(cls, mode: Mode) -> Semantics:
        """The semantics of the world in which scores are official."""
        return "official"

    @classmethod
    def rules_of(cls, benchmark: Benchmark, mode: Mode, *, solo: bool = False) -> Rules:
        """How episodes are played."""
        return Rules()

    @classmethod
    def training_rules_of(cls, benchmark: Benchmark) -> Rules:
        """How episodes are played where a policy is trained on its tasks."""
        return Rules()

    @classmethod
    def limits_of(cls, benchmark: Benchmark, *, steps: int | None = None, errors: int | None = None) -> Limits:
        """Where episodes are cut; None: the benchmark's own limit."""
        return Limits()

    @classmethod
    def training_limits_of(cls, benchmark: Benchmark, configured: Limits) -> Limits:
        """Limits of episodes in training, from those of the configuration."""
        return configured

    @classmethod
    def prompt_of(cls, benchmark: Benchmark, policy: str, *, solo: bool = False) -> str | None:
        """The agent's system prompt around a policy, with ``{ticket}`` still to be filled for an agent that works
        alone; None where every task has a prompt of its own (``told``)."""
        return None

    @classmethod
    def solo_policy_of(cls, benchmark: Benchmark) -> str:
        """The policy for an agent that works alone. ConfigError where the benchmark has no such mode."""
        raise ConfigError(f"eval.solo: {benchmark.name} has no solo mode")

    @classmethod
    def needs_user_model(cls, split: str) -> bool:
        """Whether a model must play the users of a split, so that one must be named."""
        return True

    # tasks

    def eval_tasks(self, split: str, count: int | None, *, seed: int, ids: Sequence[str] = ()) -> Sequence[Task]:
        """In the benchmark's order. Where the split has fewer than are asked for, all of them; for an agent that works
        alone, those with a ticket. ConfigError names an id that the split does not have."""
        if not self.measured:
            return super().eval_tasks(split, count, seed=seed, ids=ids)
        if split == "validation":
            raise ConfigError(f"eval.split: {self.name} has no validation tasks; eval.split=test has some")
        tasks = self.benchmark.tasks(split)
        if ids:
            task_ids = {task.id for task in tasks}
            missing = [i for i in ids if i not in task_ids]
            if missing:
                raise ConfigError(f"eval.task_ids: the {split} split of {self.name} has no task {missing[0]!r}")
            tasks = [task for task in tasks if task.id in ids]
        if self.rules.solo:
            tasks = [task for task in tasks if self.has_ticket(task)]
            if not tasks:
                raise ConfigError(f"eval.solo: no task of the {split} split of {self.name} has a ticket to work from")
        return tasks[:count]

    def has_ticket(self, task: Task) -> bool:
        """Whether an agent can work on a task alone."""
        return task.ticket is not None

    def requests(self, tasks: Sequence[Task], trials: int, seed: int, label: str) -> list[RolloutRequest]:
        """One request for each task and trial, all tasks of a trial before the next trial. Seeds are ours: they follow
        from task and trial."""
        made = requests_for(tasks, trials, seed=seed, label=label)
        return sorted(made, key=lambda request: request.number)

    def seeds(self, seed: int, trials: int) -> Sequence[int] | None:
        """The trials' seeds, where the benchmark draws some."""
        return None

    def validation_notes(self) -> list[str]:
        """That some training tasks are held out, where the benchmark has none to validate on."""
        if self.benchmark.validation_split is not None:
            return []
        trained, held = (len(part) for part in held_out(self.benchmark))
        return [held_out_note(self.name, trained, held)]

    # who takes part

    def system_prompt(self, task: Task) -> str:
        """The benchmark's prompt; with the task's ticket for an agent that works alone."""
        if self.system is None:
            return self.own_prompt(task)
        return self.system.replace("{ticket}", str(task.ticket)) if self.rules.solo else self.system

    def own_prompt(self, task: Task) -> str:
        """A task's own system prompt, where there is none for all of them."""
        return self.domain.policy_for(task)

    def endpoint_agent(self, endpoint: Endpoint) -> Agent:
        """As the benchmark asks a model."""
        from muarl.agents.endpoint import EndpointAgent

        return EndpointAgent(endpoint, keep_cut=True)

    @property
    def user_style(self) -> Style:
        """The benchmark's."""
        return self.style

    @property
    def reviews_users(self) -> bool:
        """Not where they say the same whatever they hear."""
        return super().reviews_users and not self.fixed_users

    # scoring

    async def _score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        if self.measured or self.own_score:
            return await self.official_score(task, world, episode, judge)
        return await super()._score(task, world, episode, judge)

    async def official_score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        """The verdict on an episode, as the benchmark gives it."""
        return await outcome.score(task, world, episode.messages, episode.stop, judge=judge)

    def audit_rules(self, task: Task) -> AuditRules:
        """Who works alone has nobody to ask or to tell."""
        rules = super().audit_rules(task)
        return rules.alone() if self.rules.solo else rules

    def do_nothing(self) -> Callable[[Task], Awaitable[Verdict]] | None:
        """The verdict on an untouched world, so that no user has to be asked."""
        return self.untouched if self.measured else None

    async def untouched(self, task: Task) -> Verdict:
        """The verdict on an agent that never acts and says nothing."""
        from muarl.rewards.judge import FixedJudge

        return await outcome.do_nothing(self.domain, task, judge=FixedJudge(False))

    def figures(self, episodes: Sequence[Episode]) -> Mapping[str, float]:
        """The benchmark's own headline figures, by name; empty where the mean reward is all there is."""
        return {}

    def about_scores(self, split: str, trials: int, seed: int, tasks: Sequence[Task], scored: Sequence[Episode]) -> Any:
        """The tasks, the protocol's limits, the seeds, and the benchmark's own figures."""
        if not self.measured:
            return None
        return {
            "name": self.name,
            "split": split,
            "tasks": len(tasks),
            "trials": trials,
            "solo": self.rules.solo,
            "steps": self.limits.steps,
            "turns": self.limits.turns,
            "tool_errors": self.limits.tool_errors,
            "agent_calls": self.limits.agent_calls,
            "seeds": self.seeds(seed, trials),
            "mode": self.mode,
            **({"retrieval": self.domain.retrieval_text} if hasattr(self.domain, "retrieval_text") else {}),
            "figures": dict(self.figures(scored)),
        }


def held_out(benchmark: Benchmark) -> tuple[Sequence[Task], Sequence[Task]]:
    """A benchmark's training tasks as (trained on, validated on), the same ones in every run."""
    tasks = benchmark.tasks(benchmark.training_split)
    chosen = set(random.Random(f"held out of {benchmark.name}").sample(range(len(tasks)), len(tasks) // HELD_OUT))
    return [t for n, t in enumerate(tasks) if n not in chosen], [t for n, t in enumerate(tasks) if n in chosen]


def draw_of(benchmark: Benchmark, *, validating: bool = False) -> Draw:
    """``draw(split, count, seed, start)`` over official tasks: in file order, as many as there are; ``train`` without
    end.

    Training goes round the official training tasks, each round in a new order. A round is as many whole draws as there
    are tasks for, so that no draw holds a task twice; a draw larger than the split is the whole split.

    ``validation`` is the split that the benchmark has for it. Where there is none, training that is ``validating``
    holds out a share of its tasks, which are then not trained on; otherwise ConfigError.
    """

    def draw(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        shares = validating and benchmark.validation_split is None
        if split == "validation" and benchmark.validation_split is None and not shares:
            raise ConfigError(
                f"{benchmark.name} has no validation tasks: set rl.eval_every=0 in training, and eval.split=test in "
                "evaluation"
            )
        if shares and split in ("train", "validation"):
            tasks = held_out(benchmark)[split == "validation"]
        else:
            own = {"train": benchmark.training_split, "validation": benchmark.validation_split}
            tasks = benchmark.tasks(own.get(split) or split)
        if split != "train":
            return tasks[start : start + count]
        turn, place = divmod(start // count, max(1, len(tasks) // count))
        order = random.Random(f"official round {seed} {turn}").sample(tasks, len(tasks))
        return order[place * count : (place + 1) * count]

    return draw
