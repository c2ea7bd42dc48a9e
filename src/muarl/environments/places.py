"""The places of a run: one or several, by name, and the shares by which tasks are drawn from them.

Outside, where there are several, a task says where it belongs by its tag ``domain``, and its id begins with the same
name (``airline-generated:ID``), so that tasks of two places cannot be taken for each other. A place itself sees its
tasks as it made them (``Places.own``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from muarl.accounts.metrics import DOMAIN
from muarl.basics.errors import ConfigError
from muarl.basics.event_loop import Closable
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.place import Place
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.types.episode import Episode, Usage

if TYPE_CHECKING:
    from muarl.agents.base import Agent
    from muarl.endpoints.client import Endpoint
    from muarl.users.base import UserFactory


class Participant(Protocol):
    """An agent, or who makes users."""

    @property
    def name(self) -> str: ...


Who = TypeVar("Who", bound=Participant)
Agents: TypeAlias = "Agent | ByPlace[Agent]"
"""An agent in all places, or another in each."""
Users: TypeAlias = "UserFactory | ByPlace[UserFactory]"
"""Who makes users in all places, or another in each."""


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


@dataclass(frozen=True)
class ByPlace(Generic[Who]):
    """Who takes part, by the place's name: agents, or who makes users. They may be the same in all places, or others in
    each, as scripted experts are."""

    each: Mapping[str, Who]

    @property
    def name(self) -> str:
        """What reports call them."""
        return ", ".join(dict.fromkeys(one.name for one in self.each.values()))

    @property
    def same(self) -> Who | None:
        """The one that takes part everywhere; None where they differ."""
        first, *others = self.each.values()
        return first if all(other is first for other in others) else None

    def at(self, place: Place) -> Who:
        """The one that takes part in a place."""
        return self.each[place.name]

    async def aclose(self) -> None:
        """Close what they hold open."""
        for one in self.each.values():
            if isinstance(one, Closable):
                await one.aclose()


class Places:
    """The places of a run, in the order of its configuration. ``weights``: in which proportion tasks are drawn from
    them; None: as many from each.

    What belongs to one place (its world, rules, limits, prompt, score) is asked of ``of(task)``.
    """

    def __init__(self, places: Sequence[Place], weights: Sequence[float] | None = None) -> None:
        names = [place.name for place in places]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ConfigError(f"domain: two of the list are called {twice}: give one of the environments another name")
        self.by_name: Mapping[str, Place] = dict(zip(names, places, strict=True))
        self.shares = Shares(dict(zip(names, weights or [1.0] * len(names), strict=True)))
        self._first, self._several = places[0], len(places) > 1

    def __iter__(self) -> Iterator[Place]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def __repr__(self) -> str:
        return f"Places({self.name})"

    @property
    def name(self) -> str:
        """The names of all."""
        return ", ".join(self.by_name)

    def of(self, played: Task | Episode) -> Place:
        """The place that a task or an episode belongs to. Episodes that say of none, such as demonstrations that were
        made elsewhere, count as the first place's."""
        if not self._several:
            return self._first
        return self.by_name.get(str(played.tags.get(DOMAIN)), self._first)

    def own(self, task: Task) -> Task:
        """A task as its place made it."""
        return replace(task, id=task.id.removeprefix(f"{task.tags[DOMAIN]}:")) if self._several else task

    def _outer(self, place: Place, task: Task) -> Task:
        """A task as it is called outside."""
        if not self._several:
            return task
        return replace(task, id=f"{place.name}:{task.id}", tags={**task.tags, DOMAIN: place.name})

    # tasks

    def draw(self, split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        """See ``place.Draw``. Each place's tasks come from a row of their own: which ones does not hang on the other
        places."""
        if not self._several:
            return self._first.draw(split, count, seed, start)
        order, before = self.shares.names(start, count), self.shares.before(start)
        counts = {name: order.count(name) for name in self.by_name if name in order}
        drawn = {name: self.by_name[name].draw(split, number, seed, before[name]) for name, number in counts.items()}
        return self._in_order(order, drawn)

    def _in_order(self, order: Sequence[str], drawn: Mapping[str, Sequence[Task]]) -> list[Task]:
        """Tasks by place in one row; a place with fewer than the row has room for leaves some out."""
        rows = {name: iter(tasks) for name, tasks in drawn.items()}
        pairs = [(self.by_name[name], next(rows[name], None)) for name in order]
        return [self._outer(place, task) for place, task in pairs if task is not None]

    @property
    def replayed(self) -> bool:
        """Whether nobody need replay gold actions; see ``Place.replayed``."""
        return all(place.replayed for place in self)

    def check(self, tasks: Sequence[Task]) -> None:
        """Each place checks its own; see ``Place.check``."""
        for place, own in self.divided(tasks):
            place.check([self.own(task) for task in own])

    def divided(self, tasks: Sequence[Task]) -> list[tuple[Place, list[Task]]]:
        """The places that some of the tasks are of, and which."""
        return [(place, own) for place in self if (own := [task for task in tasks if self.of(task) is place])]

    def example_tasks(self, split: str) -> list[Task]:
        """A task of every place; see ``Place.example_task``."""
        return [self._outer(place, place.example_task(split)) for place in self]

    def eval_tasks(self, split: str, count: int | None, *, seed: int, ids: Sequence[str] = ()) -> Sequence[Task]:
        """``count`` held-out tasks in proportion to the weights, all of every place where it is None; see
        ``Place.eval_tasks``. ConfigError if a place would get none."""
        if not self._several:
            return self._first.eval_tasks(split, count, seed=seed, ids=ids)
        if ids:
            raise ConfigError(f"eval.task_ids: name one domain, such as by domain.name={next(iter(self.by_name))}")
        if count is None:
            drawn = {place.name: list(place.eval_tasks(split, None, seed=seed)) for place in self}
            return [self._outer(self.by_name[name], task) for name, task in _spread(drawn)]
        order = self.shares.names(0, count)
        if missing := [name for name in self.by_name if name not in order]:
            raise ConfigError(f"eval.tasks is {count}, of which {missing[0]} gets none by its weight: raise it")
        drawn = {place.name: list(place.eval_tasks(split, order.count(place.name), seed=seed)) for place in self}
        return self._in_order(order, drawn)

    def requests(self, tasks: Sequence[Task], trials: int, seed: int, label: str) -> list[RolloutRequest]:
        """Each place's own, of all places by turns."""
        if not self._several:
            return self._first.requests(tasks, trials, seed, label)
        made = {}
        for place, own in self.divided(tasks):
            made[place.name] = [
                replace(r, task=self._outer(place, r.task), group=f"{place.name}:{r.group}")
                for r in place.requests([self.own(task) for task in own], trials, seed, label)
            ]
        return [request for _, request in _spread(made)]

    def validation_notes(self) -> list[str]:
        """Those of all places."""
        return [note for place in self for note in place.validation_notes()]

    # who takes part

    def everywhere(self, who: Who | ByPlace[Who]) -> ByPlace[Who]:
        """The same agent, or maker of users, in every place; who differs by place already, as they are."""
        return who if isinstance(who, ByPlace) else self.by_place(lambda _: who)

    def by_place(self, make: Callable[[Place], Who]) -> ByPlace[Who]:
        """What is made for each place."""
        return ByPlace({place.name: make(place) for place in self})

    def experts(self, errors: ErrorProfile = ErrorProfile()) -> ByPlace[Agent]:
        """Each place's expert, with these errors. ConfigError if one has none."""
        return self.by_place(lambda place: place.expert_agent(errors))

    def endpoint_agents(self, endpoint: Endpoint) -> ByPlace[Agent]:
        """As each place asks a model."""
        return self.by_place(lambda place: place.endpoint_agent(endpoint))

    def sampled_agents(self, agent: Agent) -> ByPlace[Agent]:
        """As each place asks a checkpoint."""
        return self.by_place(lambda place: place.sampled_agent(agent))

    @property
    def reviews_users(self) -> bool:
        """Whether users of any place may make mistakes that are worth looking for."""
        return any(place.reviews_users for place in self)

    @property
    def can_transfer(self) -> bool:
        """Whether the agent can transfer in every place."""
        return all(place.can_transfer for place in self)

    @property
    def transfer_tools(self) -> tuple[str, ...]:
        """The tools with which the agent hands users over, of all places."""
        return tuple(tool for place in self for tool in place.transfer_tools)

    # what they hold

    @property
    def searching_usage(self) -> Usage:
        """What models have used that were asked when documents were searched."""
        return sum((place.searching_usage for place in self), Usage())

    async def aclose(self) -> None:
        """Close the connections of all places."""
        for place in self:
            await place.aclose()


def _spread(rows: Mapping[str, Sequence[Any]]) -> list[tuple[str, Any]]:
    """What several rows hold in one, each row spread evenly over it."""
    placed = [((n + 0.5) / len(row), name, item) for name, row in rows.items() for n, item in enumerate(row)]
    return [(name, item) for _, name, item in sorted(placed, key=lambda entry: entry[0])]
