"""Several domains in one run: tasks are drawn from all of them by weight, and each is played in its own environment.

Outside, a task of a mixture says where it belongs by its tag ``domain``, and its id begins with the same name
(``airline-generated:ID``), so that tasks of two domains cannot be taken for each other. A domain's own environment sees
its tasks as it made them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any

from muarl.accounts.metrics import DOMAIN
from muarl.agents.base import Agent, AgentSession
from muarl.agents.expert import ExpertAgent
from muarl.basics.errors import ConfigError
from muarl.basics.event_loop import Closable
from muarl.config.sections import EvalConfig
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Task, World
from muarl.domains.error_profile import ErrorProfile
from muarl.endpoints import Endpoint
from muarl.environments.configured import ConfiguredEnvironment
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.types.chat import ToolSpec
from muarl.types.episode import Episode, Verdict
from muarl.users.base import User, UserFactory


class Shares:
    """Which domain each task of an endless row is of. Every stretch of the row has the domains in proportion to their
    weights, to within a task or two; the row is always the same. ``weights``: by domain, above 0."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        parts = [Fraction(str(weight)) for weight in weights.values()]
        whole = lcm(*(part.denominator for part in parts))
        self._names = list(weights)
        self._weights = [int(part * whole) for part in parts]
        self._row: list[int] = []
        self._before = [[0] for _ in parts]  # by domain, how many of the first n tasks are its own

    def names(self, start: int, count: int) -> list[str]:
        """The domains of ``count`` tasks from number ``start`` on."""
        self._reach(start + count)
        return [self._names[number] for number in self._row[start : start + count]]

    def before(self, start: int) -> dict[str, int]:
        """By domain, how many of the first ``start`` tasks are its own."""
        self._reach(start)
        return {name: counts[start] for name, counts in zip(self._names, self._before, strict=True)}

    def _reach(self, end: int) -> None:
        """The next task is of the domain that lacks most of its share by then; the first of those that lack as much."""
        whole = sum(self._weights)
        for done in range(len(self._row), end):
            lacking = [
                w * (done + 1) - whole * counts[done] for w, counts in zip(self._weights, self._before, strict=True)
            ]
            chosen = max(range(len(lacking)), key=lambda n: (lacking[n], -n))
            self._row.append(chosen)
            for number, counts in enumerate(self._before):
                counts.append(counts[done] + (number == chosen))


class Mixture(ConfiguredEnvironment):
    """The environments of several domains as one. ``by_domain``: each, by name. ``shares``: in which proportion tasks
    are drawn.

    What belongs to one domain (its world, rules and limits) is asked of ``part_of(task)``.
    """

    by_domain: Mapping[str, ConfiguredEnvironment]
    shares: Shares

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(self, parts: Sequence[ConfiguredEnvironment], weights: Sequence[float]) -> None:
        names = [part.name for part in parts]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ConfigError(f"domain: two of the list are called {twice}: give one of the environments another name")
        object.__setattr__(self, "by_domain", dict(zip(names, parts, strict=True)))
        object.__setattr__(self, "shares", Shares(dict(zip(names, weights, strict=True))))
        object.__setattr__(self, "draw", self._draw)
        object.__setattr__(self, "judge", parts[0].judge)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a mixture of domains has no {name} of its own: ask part_of(task) for it")

    def __repr__(self) -> str:
        return f"Mixture({self.name})"

    @property
    def name(self) -> str:
        """The names of its domains."""
        return ", ".join(self.by_domain)

    @property
    def parts(self) -> tuple[ConfiguredEnvironment, ...]:
        """The environments of its domains, in the order of the configuration."""
        return tuple(self.by_domain.values())

    def part_of(self, played: Task | Episode) -> ConfiguredEnvironment:
        """The environment that a task or an episode belongs to. Episodes that say of none, such as
        demonstrations that were made elsewhere, count as the first domain's."""
        return self.by_domain.get(str(played.tags.get(DOMAIN)), self.parts[0])

    def domain_task(self, task: Task) -> Task:
        """A task as its domain made it."""
        prefix = f"{task.tags[DOMAIN]}:"
        return replace(task, id=task.id.removeprefix(prefix))

    def _outer(self, name: str, task: Task) -> Task:
        return replace(task, id=f"{name}:{task.id}", tags={**task.tags, DOMAIN: name})

    # tasks

    def _draw(self, split: str, count: int, seed: int, start: int) -> list[Task]:
        """Each domain's tasks come from a row of their own: which ones does not hang on the other domains."""
        order, before = self.shares.names(start, count), self.shares.before(start)
        wanted = {name: order.count(name) for name in self.by_domain if name in order}
        drawn = {
            name: list(self.by_domain[name].draw(split, number, seed, before[name])) for name, number in wanted.items()
        }
        return self._in_order(order, drawn)

    def _in_order(self, order: Sequence[str], drawn: Mapping[str, list[Task]]) -> list[Task]:
        """Tasks by domain in one row; a domain with fewer than the row has places for leaves some out."""
        rows = {name: iter(tasks) for name, tasks in drawn.items()}
        found = [(name, next(rows[name], None)) for name in order]
        return [self._outer(name, task) for name, task in found if task is not None]

    @property
    def unchecked(self) -> bool:
        """Whether any domain's gold actions are unchecked."""
        return any(part.unchecked for part in self.parts)

    def check(self, tasks: Sequence[Task]) -> None:
        """Each domain's."""
        for part, own in self._divided(tasks):
            part.check(own)

    def _divided(self, tasks: Sequence[Task]) -> list[tuple[ConfiguredEnvironment, list[Task]]]:
        return [
            (p, found) for p in self.parts if (found := [self.domain_task(t) for t in tasks if self.part_of(t) is p])
        ]

    def example_tasks(self, split: str) -> list[Task]:
        """A task of every domain."""
        return [self._outer(name, part.example_task(split)) for name, part in self.by_domain.items()]

    def example_task(self, split: str) -> Task:
        """A task of the first domain."""
        return self.example_tasks(split)[0]

    def eval_tasks(self, eval_config: EvalConfig) -> Sequence[Task]:
        """``wanted.tasks`` in proportion to the weights, all of every domain where it is None. ConfigError if a domain
        would get none."""
        if eval_config.task_ids:
            raise ConfigError(f"eval.task_ids: name one domain, such as by domain.name={next(iter(self.by_domain))}")
        if eval_config.tasks is None:
            drawn = {name: list(part.eval_tasks(eval_config)) for name, part in self.by_domain.items()}
            return [self._outer(name, task) for name, task in _spread(drawn)]
        order = self.shares.names(0, eval_config.tasks)
        if missing := [name for name in self.by_domain if name not in order]:
            raise ConfigError(
                f"eval.tasks is {eval_config.tasks}, of which {missing[0]} gets none by its weight: raise it"
            )
        drawn = {
            name: list(part.eval_tasks(eval_config.model_copy(update={"tasks": order.count(name)})))
            for name, part in self.by_domain.items()
        }
        return self._in_order(order, drawn)

    def requests(self, tasks: Sequence[Task], trials: int, seed: int, label: str) -> list[RolloutRequest]:
        """Each domain's own, of all domains by turns."""
        made = {}
        for part, own in self._divided(tasks):
            made[part.name] = [
                replace(r, task=self._outer(part.name, r.task), group=f"{part.name}:{r.group}")
                for r in part.requests(own, trials, seed, label)
            ]
        return [request for _, request in _spread(made)]

    def validation_notes(self) -> list[str]:
        """Those of all domains."""
        return [note for part in self.parts for note in part.validation_notes()]

    # who takes part

    def system_prompt(self, task: Task) -> str:
        """What the agent is told of a task."""
        return self.part_of(task).system_prompt(self.domain_task(task))

    def tools(self, task: Task) -> Sequence[ToolSpec]:
        """The agent's tools in a task."""
        return self.part_of(task).tools(self.domain_task(task))

    def user_tools(self, task: Task) -> tuple[ToolSpec, ...]:
        """The tools that the user of a task has."""
        return self.part_of(task).user_tools(self.domain_task(task))

    def experts(self, errors: ErrorProfile = ErrorProfile()) -> Agent:
        """Each domain's expert. ConfigError if one has none."""
        return AgentByDomain({name: ExpertAgent(errors, make=part.expert()) for name, part in self.by_domain.items()})

    @property
    def reviews_users(self) -> bool:
        """Whether users of any domain may make mistakes that are worth looking for."""
        return any(part.reviews_users for part in self.parts)

    def endpoint_agent(self, endpoint: Endpoint) -> Agent:
        """As each domain asks a model."""
        return AgentByDomain({name: part.endpoint_agent(endpoint) for name, part in self.by_domain.items()})

    def sampled_agent(self, agent: Agent) -> Agent:
        """As each domain asks a checkpoint."""
        return AgentByDomain({name: part.sampled_agent(agent) for name, part in self.by_domain.items()})

    # playing and scoring

    @property
    def can_transfer(self) -> bool:
        """Whether the agent can transfer in every domain."""
        return all(part.can_transfer for part in self.parts)

    @property
    def transfer_tools(self) -> tuple[str, ...]:
        """The tools with which the agent hands users over, of all domains."""
        return tuple(tool for part in self.parts for tool in part.transfer_tools)

    @property
    def checkable(self) -> bool:
        """Whether an episode of any domain can be found right or wrong."""
        return all(part.checkable for part in self.parts)

    async def aclose(self) -> None:
        """Close the connections of all domains."""
        await _close(*self.parts)

    async def score(self, task: Task, world: World, episode: Episode) -> Verdict:
        """The verdict of the task's domain."""
        return await self.part_of(task).score(self.domain_task(task), world, episode)

    def audit_rules(self, task: Task) -> AuditRules:
        """Those of the task's domain."""
        return self.part_of(task).audit_rules(self.domain_task(task))

    def audit(self, task: Task, world: World, episode: Episode) -> Mapping[str, float]:
        """The audit by the rules of the task's domain."""
        return self.part_of(task).audit(self.domain_task(task), world, episode)


class AgentByDomain:
    """An agent that is another in each domain, such as the scripted experts. ``agents``: by domain."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self.agents = dict(agents)
        self.name = ", ".join(dict.fromkeys(agent.name for agent in agents.values()))

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> AgentSession:
        """Which of them plays follows from the task, so that this cannot be asked: TypeError."""
        raise TypeError("an agent that differs by domain is opened by the player of each domain")

    async def aclose(self) -> None:
        """Close what the agents hold open."""
        await _close(*self.agents.values())


class UsersByDomain:
    """Users that are others in each domain, such as the rule-based ones. ``factories``: by domain."""

    def __init__(self, factories: Mapping[str, UserFactory]) -> None:
        self.factories = dict(factories)
        self.name = ", ".join(dict.fromkeys(factory.name for factory in factories.values()))

    def __call__(self, task: Task, *, seed: int) -> User:
        """The user of a task, by its domain."""
        return self.factories[str(task.tags[DOMAIN])](task, seed=seed)

    async def aclose(self) -> None:
        """Close what the factories hold open."""
        await _close(*self.factories.values())


async def _close(*parts: object) -> None:
    for part in parts:
        if isinstance(part, Closable):
            await part.aclose()


def _spread(rows: Mapping[str, Sequence[Any]]) -> list[tuple[str, Any]]:
    """What several rows hold in one, each row spread evenly over it."""
    placed = [((n + 0.5) / len(row), name, item) for name, row in rows.items() for n, item in enumerate(row)]
    return [(name, item) for _, name, item in sorted(placed, key=lambda found: found[0])]
