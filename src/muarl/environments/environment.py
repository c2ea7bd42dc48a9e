"""An environment: everything that muarl must know of a place where agents practise, in one object.

Only a name, a domain and tasks are needed; what is left out is not offered, and who asks for it is told so.

    CLINIC = Environment(name="clinic", domain=Clinic, tasks=tasks)

``registry`` finds environments by name. muarl's own and the benchmarks' are such objects too (``builtin``).
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import ConfigError, attributed
from muarl.basics.signatures import named_arguments, only, takes
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain
from muarl.domains.checking import Check
from muarl.domains.faults.rates import FaultRates
from muarl.domains.generated import SPLITS, MakeExpert
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.place import MakeUser, NoJudge, Place, no_expert, no_user, rules_of
from muarl.environments.task_addresses import TaskAddress, TaskOrigin
from muarl.rollouts.rules import Limits, Rules

if TYPE_CHECKING:
    from muarl.config.rollout import RetrievalConfig
    from muarl.domains.world_from_log import Observer
    from muarl.endpoints.client import Endpoint
    from muarl.environments.benchmark import Benchmark
    from muarl.environments.session import Session
    from muarl.rewards.judge import Judge
    from muarl.users.base import UserFactory
    from muarl.users.redteam.support import RedTeamSource, RedTeamSupport

GENERATED_RULES = Rules(greeting_in_context=False, transfer_ends=True)
"""How episodes are played in training and out of it, unless an environment says otherwise (MUA-RL's way). TAU2's own
are Rules()."""

ONLY_SIZE = "tiny"
"""What the size of an environment is called that comes in one, whatever ``domain.size`` says."""


BY_STARS = ("size", "seed", "start")
"""What a function for tasks is given that takes any argument by ``**``."""

Tasks = Callable[..., Any] | Mapping[str, Sequence[Task]] | Path
"""Where tasks come from; see ``Environment``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Environment:
    """A place to practise: a domain, its tasks, and the simulated users, experts and audits that go with them."""

    name: str
    """What people call it."""
    domain: type[Domain] | Domain | Callable[[str], Domain] | None = None
    """Policy, database and tools: a ``Domain`` class or instance, or a function of a size."""
    tasks: Tasks | None = None
    """The same arguments must give the same tasks. One of: a function ``(split, *, size, seed, start)`` that gives
    tasks without end, from number ``start`` on; a function of ``split``, ``index`` and ``seed`` (those of them, and of
    ``size``, that it names) that gives task number ``index``; a mapping from splits to their tasks; the Path of a task
    file (``muarl tasks`` writes such files), relative to the module of the domain class."""
    intents: Callable[[str], Sequence[str]] | None = None
    """``intents(size)``: all that the tag "intent" of its tasks can be; None: tasks are looked at to know."""
    about: str = ""
    """One line for lists."""
    replayed: bool = False
    """Whether the generator has replayed the gold actions of every task; otherwise muarl does, before tasks are
    played."""
    sizes: tuple[str, ...] = ()
    """What ``domain.size`` can scale its worlds to, smallest first; empty: it comes in one size."""
    practice: str | None = None
    """Of a benchmark, the environment with made tasks of the same kind."""
    rule_based_user: MakeUser | None = None
    """A simulated user that needs no model; None: a language model must play the user."""
    expert: MakeExpert | None = None
    """A scripted expert; which mistakes it makes, the configuration says (``sft.error_profile``)."""
    audit: AuditRules | None = None
    """The rules of audits; None: those that the domain class declares."""
    rules: Rules = GENERATED_RULES
    """How conversations are played."""
    caller: str = "customer"
    """What a user is called where people read of one, such as "member"."""
    checkpoint: str | None = None
    """The shipped checkpoint that goes with it."""
    entities: Callable[[], Sequence[str]] = tuple
    """The ids, names and values that a tiny model's tokenizer makes one token each (``muarl base``)."""
    phrases: Callable[[], Sequence[str]] = tuple
    """The fixed pieces of text that a tiny model's tokenizer makes one token each."""
    imagined: Callable[[str, Any], Domain] | None = None
    """``imagined(size, endpoint)``: the same domain with tools played by a model."""
    observer: Observer | Callable[[], Observer] | None = None
    """How its results show records, from which tasks are made of logs, or a function that gives it."""
    red_team: Callable[[], RedTeamSupport] | None = None
    """Gives what red-team users must know of it."""
    own_checks: Callable[[], Sequence[Check]] = tuple
    """What ``muarl domains check`` is to look at besides (``domains.checking``)."""
    on_server: bool = False
    """Its tools run on an MCP server, which must be installed."""
    protocol: Benchmark | None = None
    """Of environments that are benchmarks, the benchmark, which says by what protocol it is played."""

    def __post_init__(self) -> None:
        if not self.name or any(c.isspace() or c in ":/\\" for c in self.name):
            raise ConfigError(f"Environment: name must be a word without spaces, colons and slashes, not {self.name!r}")
        if self.protocol is not None:
            return
        if not callable(self.domain) and not isinstance(self.domain, Domain):
            kind = type(self.domain).__name__
            raise ConfigError(
                f"environment {self.name}: domain must be a Domain class, a Domain or a function of a size, not {kind}"
            )
        if self.tasks is None:
            raise ConfigError(f"environment {self.name}: tasks are missing: give a function, a mapping or a task file")
        self._check_calls()

    def _check_calls(self) -> None:
        """ConfigError if one of the functions cannot be called as it will be: better here than within a run."""
        user, expert = self.rule_based_user, self.expert
        if user is not None and not takes(user, None, seed=0, persona=None):
            raise ConfigError(f"environment {self.name}: rule_based_user must take (task, *, seed, persona=None)")
        if expert is not None and not takes(expert, seed=0, error_profile=ErrorProfile()):
            raise ConfigError(f"environment {self.name}: expert must take (*, seed, error_profile)")
        if callable(self.tasks):
            named = named_arguments(self.tasks, *BY_STARS)
            offered = only(dict.fromkeys(("split", "size", "seed", "start", "index")), named)
            by_index = "index" in named
            arguments = () if by_index else (offered.pop("split", None),)
            if not takes(self.tasks, *arguments, **offered):
                raise ConfigError(
                    f"environment {self.name}: tasks must take (split, index, seed) or (split, *, size, seed, start)"
                )

    @property
    def is_benchmark(self) -> bool:
        """Whether its tasks are a benchmark's, which are for measuring."""
        return self.protocol is not None

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of its splits."""
        if self.protocol is not None:
            return self.protocol.splits
        return SPLITS if self.endless else tuple(self.fixed_splits())

    @property
    def endless(self) -> bool:
        """Whether its tasks are made by a function, so that there are as many as are asked for."""
        return callable(self.tasks)

    def seen_in_logs(self) -> Observer | None:
        """How its results show records; None where nobody has said."""
        return self.observer() if callable(self.observer) else self.observer

    def check_size(self, size: str, where: str = "domain.size") -> None:
        """ConfigError, naming ``where`` it is said, if the environment does not come in this size."""
        if self.sizes and size not in self.sizes:
            raise ConfigError(f"{where} is {size}; the sizes of {self.name} are {', '.join(self.sizes)}")

    def check_split(self, split: str, where: str = "") -> None:
        """ConfigError, naming ``where`` it is said, if it has no tasks for this split."""
        if split not in self.splits:
            label, splits = f"{where}: {self.name}" if where else self.name, ", ".join(self.splits)
            raise ConfigError(f"{label} has no tasks for the split {split!r}; it has {splits}")

    def make_domain(self, size: str | None = None) -> Domain:
        """The domain at a size (None: the smallest), the same object each time. ConfigError for an unknown size."""
        return _domain(self, self._size(size))

    def _size(self, size: str | None) -> str:
        if not self.sizes:
            return ONLY_SIZE
        self.check_size(size or self.sizes[0])
        return size or self.sizes[0]

    def declared_intents(self, size: str | None = None) -> Sequence[str] | None:
        """All that the tag "intent" of its tasks can be at a size; None where that is not declared. ConfigError for an
        unknown size."""
        return None if self.intents is None else self.intents(self._size(size))

    def iter_tasks(self, split: str, *, size: str | None = None, seed: int = 0, start: int = 0) -> Iterator[Task]:
        """The tasks of a split from number ``start`` on: without end where a function makes them. The same arguments
        give the same tasks. ConfigError for a size or split that there is not."""
        size = self._size(size)
        if not callable(self.tasks):
            yield from self.fixed_tasks(split)[start:]
            return
        self.check_split(split)
        offered = {"size": size, "seed": seed, "start": start, "split": split}
        named = size if size in self.sizes[1:] else None
        with attributed(f"environment {self.name}: its function for tasks", self.tasks):
            for index, task in enumerate(self._made(offered), start):
                yield replace(task, origin=TaskOrigin(self, TaskAddress(self.name, split, index, named, seed)))

    def _made(self, offered: dict[str, Any]) -> Iterator[Task]:
        """The tasks that the function makes."""
        assert callable(self.tasks)
        named, start = named_arguments(self.tasks, *BY_STARS), offered["start"]
        if "index" in named:
            for index in itertools.count(start):
                yield _task(self, self.tasks(**only({**offered, "index": index}, named)))
        made = self.tasks(offered["split"], **only({n: v for n, v in offered.items() if n != "split"}, named))
        for task in made if "start" in named else itertools.islice(made, start, None):
            yield _task(self, task)

    def make_tasks(
        self, split: str, count: int, *, size: str | None = None, seed: int = 0, start: int = 0
    ) -> list[Task]:
        """``count`` tasks of a split, fewer where it has no more; see ``iter_tasks``.

        ConfigError if two have the same id.
        """
        made = list(itertools.islice(self.iter_tasks(split, size=size, seed=seed, start=start), count))
        twice = next((name for name, times in Counter(task.id for task in made).items() if times > 1), None)
        if twice is not None:
            raise ConfigError(
                f"environment {self.name}: {count} tasks of the split {split}, and more than one has the id {twice!r}: "
                "let ids end in -SPLIT-SEED-INDEX"
            )
        return made

    def task(self, split: str, index: int, *, size: str | None = None, seed: int = 0) -> Task:
        """Task number ``index`` of a split; see ``iter_tasks``. ConfigError if there is none."""
        task = next(self.iter_tasks(split, size=size, seed=seed, start=index), None)
        if task is None:
            raise ConfigError(f"the split {split} of {self.name} has no task number {index}")
        return task

    def place(
        self,
        size: str | None = None,
        *,
        limits: Limits | None = None,
        judge: Judge | None = None,
        mode: str = "auto",
        retrieval: RetrievalConfig | None = None,
        faults: FaultRates | None = None,
    ) -> Place:
        """The environment as it is played where nobody says more, of a size (None: the smallest); a benchmark by its
        own protocol, in a ``mode`` of it.

        ``limits``: None for the usual ones, or the benchmark's. ``judge``: None for one that refuses to be asked.
        ``retrieval``: how documents are found; ConfigError where there are none, or not that way. ``faults``: how
        often tools fail; ConfigError for a benchmark, whose scores know of none.
        """
        judge, benchmark = judge or NoJudge(), self.protocol
        if faults and benchmark is not None:
            raise ConfigError(f"faults: {self.name} is played by its own protocol, which knows of none: leave them out")
        if benchmark is not None:
            chosen = benchmark.place.chosen_mode(mode, self.name)
            domain = benchmark.domain(benchmark.place.semantics_of(chosen))
        else:
            domain = self.make_domain(size)
        if retrieval is not None:
            domain = _searched(domain, retrieval.model_dump_json())
        if benchmark is not None:
            place = benchmark.measured(domain, chosen, judge=judge, **self.as_declared())
            return place if limits is None else replace(place, limits=limits)
        return Place(
            domain=domain,
            draw=lambda split, count, seed, start: self.make_tasks(split, count, size=size, seed=seed, start=start),
            rules=self.rules,
            limits=limits or Limits(),
            judge=judge,
            replayed=self.replayed,
            faults=faults or None,
            **self.as_declared(),
        )

    def as_declared(self) -> dict[str, Any]:
        """What a ``Place`` takes from the environment as it is declared, however it is played."""
        return {
            "name": self.name,
            "declared": True,
            "expert": self.expert,
            "rule_based_user": self.rule_based_user,
            "declared_audit": self.audit,
            "fixed_tasks": None if self.protocol is not None or self.endless else self.fixed_tasks,
        }

    def start(
        self,
        task: Task | str,
        *,
        seed: int = 0,
        user_seed: int | None = None,
        users: UserFactory | Endpoint | None = None,
        size: str | None = None,
        limits: Limits | None = None,
        judge: Judge | None = None,
        retrieval: RetrievalConfig | None = None,
        faults: FaultRates | None = None,
    ) -> Session:
        """A conversation about a task in which the caller is the agent: ``session = await environment.start(task)``.

        ``task``: one of its tasks, or "SPLIT:NUMBER". ``size``: of a task that this environment has not made. A
        benchmark's is played by its own protocol, with native tool calls. ``retrieval``: how its documents are found,
        as in a configuration's section of that name. ``faults``: how often its tools fail. The rest is as for
        ``muarl.play``.

        ConfigError for what cannot be played: another environment's task, no user, no judge.
        """
        # Runs have agents of their own: only a program that plays itself has a session.
        from muarl.agents.outside import OutsideAgent
        from muarl.environments.session import Session

        resolved = self._task_at(task) if isinstance(task, str) else task
        if resolved.origin is not None:
            if resolved.origin.environment is not self:
                raise ConfigError(f"task {resolved.id} is of {resolved.origin.environment.name}, not of {self.name}")
            size = size or resolved.origin.address.size
        mode = "native" if self.is_benchmark else "auto"
        place = self.place(size, limits=limits, judge=judge, mode=mode, retrieval=retrieval, faults=faults)
        place.check_playable(resolved)
        agent = OutsideAgent()
        runner = place.runner(agent, place.users(users), retries=0)
        return Session(runner, place.request(resolved, seed, user_seed), agent)

    def _task_at(self, number: str) -> Task:
        """A task by SPLIT:NUMBER."""
        address = TaskAddress.parse(f"{self.name}:{number}")
        return self.task(address.split, address.index, size=address.size, seed=address.seed)

    @property
    def task_domain(self) -> str:
        """The name of the domain that its tasks are of (``Task.domain``), as audits and task files say it."""
        return self.make_domain().name if self.protocol is None else self.protocol.task_domain

    def fixed_splits(self) -> Mapping[str, Sequence[Task]]:
        """All tasks by split of an environment whose tasks are a mapping or a file."""
        return _splits(self)

    def fixed_tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split of an environment whose tasks are a mapping or a file, or a benchmark's. ConfigError
        for a split that it has not."""
        if self.protocol is not None:
            return _official_tasks(self, split)
        splits = _splits(self)
        self.check_split(split)
        return splits[split]

    def official(self) -> Benchmark:
        """The benchmark that it is. ConfigError if it is none."""
        if self.protocol is None:
            raise ConfigError(f"{self.name} is not a benchmark and has no protocol")
        return self.protocol

    def audit_rules(self, domain: Domain | None = None) -> AuditRules:
        """The rules of audits, as far as the ``domain``'s tools allow where it is given."""
        return rules_of(self.audit, domain)

    def needed_expert(self) -> MakeExpert:
        """Its scripted expert. ConfigError says what to do where it has none."""
        if self.expert is None:
            raise no_expert(self.name)
        return self.expert

    def needed_user(self, section: str = "user") -> MakeUser:
        """Its rule-based user. ConfigError says what to do where it has none. ``section``: of the configuration."""
        if self.rule_based_user is None:
            raise no_user(self.name, section)
        return self.rule_based_user

    def red_team_source(self, where: str = "eval.red_team") -> RedTeamSource:
        """What red-team tasks are made of. ConfigError, naming the setting that asks for them, where it has none."""
        if self.red_team is None:
            raise ConfigError(
                f"{where}: {self.name} has no red-team tasks (docs/redteam.md says which environments have)"
            )
        from muarl.users.redteam.support import RedTeamSource

        return RedTeamSource(self.task_domain, self.make_tasks, self.make_domain, self.red_team(), self.sizes)


@lru_cache(maxsize=32)
def _searched(domain: Domain, retrieval: str) -> Domain:
    """A domain that is searched in another way: one for all conversations, which share what is right in their end."""
    from muarl.config.rollout import RetrievalConfig
    from muarl.environments.retrieval import searched

    return searched(domain, RetrievalConfig.model_validate_json(retrieval))


@lru_cache(maxsize=64)
def _domain(environment: Environment, size: str) -> Domain:
    declared = environment.domain
    if declared is None:
        return environment.official().domain("fixed")
    if isinstance(declared, Domain):
        return declared
    with attributed(f"environment {environment.name}: its domain", declared):
        made = declared() if isinstance(declared, type) else declared(size)
    if not isinstance(made, Domain):
        raise ConfigError(f"environment {environment.name}: domain gave a {type(made).__name__}, not a Domain")
    return made


@lru_cache(maxsize=16)
def _splits(environment: Environment) -> Mapping[str, Sequence[Task]]:
    """The tasks of a mapping or a file. DataError says what is wrong with the file."""
    if isinstance(environment.tasks, Mapping):
        for split, tasks in environment.tasks.items():
            if not isinstance(tasks, Sequence) or isinstance(tasks, str):
                raise ConfigError(
                    f"environment {environment.name}: tasks[{split!r}] is a {type(tasks).__name__}, not a list of tasks"
                )
            for task in tasks:
                _task(environment, task)
        splits: Mapping[str, Sequence[Task]] = environment.tasks
    else:
        from muarl.environments.task_files import TaskFile

        assert isinstance(environment.tasks, (str, Path))
        domain = environment.make_domain()
        splits = TaskFile(_beside(type(domain), Path(environment.tasks)), domain, domain.name).splits
    return {split: _numbered(environment, split, tasks) for split, tasks in splits.items()}


@lru_cache(maxsize=32)
def _official_tasks(environment: Environment, split: str) -> Sequence[Task]:
    """All tasks of a benchmark's split."""
    return _numbered(environment, split, environment.official().tasks(split))


def _numbered(environment: Environment, split: str, tasks: Sequence[Task]) -> Sequence[Task]:
    """Tasks that know where they come from."""
    addresses = (TaskAddress(environment.name, split, index) for index in itertools.count())
    return [replace(t, origin=TaskOrigin(environment, a)) for t, a in zip(tasks, addresses, strict=False)]


def _task(environment: Environment, made: Any) -> Task:
    if not isinstance(made, Task):
        raise ConfigError(f"environment {environment.name}: tasks gave a {type(made).__name__}, not a Task")
    if made.domain != environment.task_domain:
        raise ConfigError(
            f"environment {environment.name}: task {made.id} is of the domain {made.domain!r}, and must be of "
            f"{environment.task_domain!r}, the name of its domain"
        )
    return made


def _beside(domain: type[Domain], path: Path) -> Path:
    """A path relative to the module that defines a domain."""
    file = getattr(sys.modules.get(domain.__module__), "__file__", None)
    return path if file is None else Path(file).parent / path.expanduser()
