"""An environment: everything that muarl must know of a place where agents practise, in one object.

Only a name, a domain and tasks are needed; what is left out is not offered, and who asks for it is told so.

    CLINIC = Environment(name="clinic", domain=Clinic, tasks=tasks)

``registry`` finds environments by name. muarl's own and the benchmarks' are such objects too (``builtin``).
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from muarl.basics.errors import ConfigError, attributed
from muarl.domains.auditing import UNDECLARED, AuditRules
from muarl.domains.base import Domain, Task
from muarl.domains.checking import Check
from muarl.domains.error_profile import ErrorProfile
from muarl.domains.generated import SPLITS, MakeExpert
from muarl.environments.task_addresses import TaskAddress, TaskOrigin
from muarl.rollouts.conversation import Rules
from muarl.users.base import User

if TYPE_CHECKING:
    from muarl.config.retrieval import RetrievalConfig
    from muarl.domains.world_from_log import Observer
    from muarl.endpoints import Endpoint
    from muarl.environments.official.base import Mode, Official
    from muarl.environments.sessions import Session
    from muarl.rewards.judge import Judge
    from muarl.rollouts.conversation import Limits
    from muarl.users.base import UserFactory
    from muarl.users.redteam.support import RedTeamSource, RedTeamSupport

GENERATED_RULES = Rules(greeting_in_context=False, transfer_ends=True)
"""How episodes are played in training and out of it, unless an environment says otherwise (MUA-RL's way). TAU2's own
are Rules()."""

ONLY_SIZE = "tiny"
"""What the size of an environment is called that comes in one, whatever ``domain.size`` says."""


class MakeUser(Protocol):
    """A rule-based simulated user for one conversation; the same arguments give the same user."""

    def __call__(self, task: Task, *, seed: int, persona: str | None = None) -> User: ...


Tasks = Callable[..., Any] | Mapping[str, Sequence[Task]] | Path
"""Where tasks come from; see ``Environment``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Environment:
    """A place to practise: a domain, its tasks, and the simulated users, experts and audits that go with them.

    ``name``: what people call it. ``domain``: policy, database and tools: a ``Domain`` class or instance, or a function
    of a size. ``about``: one line for lists.

    ``tasks``: one of
    - a function ``(split, *, size, seed, start)`` that gives tasks without end, from number ``start`` on;
    - a function of ``split``, ``index`` and ``seed`` (those of them, and of ``size``, that it names) that gives task
      number ``index``;
    - a mapping from splits to their tasks;
    - the Path of a task file (``muarl tasks`` writes such files), relative to the module of the domain class.
    The same arguments must give the same tasks. ``replayed``: whether the generator has replayed the gold actions of
    every task; otherwise muarl does, before tasks are played.

    ``sizes``: what ``domain.size`` can scale its worlds to, smallest first; empty: it comes in one size. ``practice``:
    of a benchmark, the environment with made tasks of the same kind.
    ``rule_based_user``: a simulated user that needs no model; None: a language model must play the user.
    ``expert``: a scripted expert; which mistakes it makes, the configuration says (``sft.error_profile``).
    ``audit``: the rules of audits; None: those that the domain class declares. ``rules``: how conversations are played.
    ``caller``: what a user is called where people read of one, such as "member". ``checkpoint``: the shipped checkpoint
    that goes with it.

    ``entities``, ``phrases``: the ids, names and values, and the fixed pieces of text, that a tiny model's tokenizer
    makes one token each (``muarl base``). ``imagined(size, endpoint)``: the same domain with tools played by a model.
    ``observer``: how its results show records, from which tasks are made of logs, or a function that gives it.
    ``red_team``: gives what red-team users must know of it. ``own_checks``: what ``muarl domains check`` is to look at
    besides (``domains.checking``).
    ``on_server``: its tools run on an MCP server, which must be installed. ``protocol``: the
    benchmark's protocol, for environments that are benchmarks.
    """

    name: str
    domain: type[Domain] | Domain | Callable[[str], Domain] | None = None
    tasks: Tasks | None = None
    about: str = ""
    replayed: bool = False
    sizes: tuple[str, ...] = ()
    practice: str | None = None
    rule_based_user: MakeUser | None = None
    expert: MakeExpert | None = None
    audit: AuditRules | None = None
    rules: Rules = GENERATED_RULES
    caller: str = "customer"
    checkpoint: str | None = None
    entities: Callable[[], Sequence[str]] = tuple
    phrases: Callable[[], Sequence[str]] = tuple
    imagined: Callable[[str, Any], Domain] | None = None
    observer: Observer | Callable[[], Observer] | None = None
    red_team: Callable[[], RedTeamSupport] | None = None
    own_checks: Callable[[], Sequence[Check]] = tuple
    on_server: bool = False
    protocol: type[Official] | None = None

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
        if user is not None and not _takes(user, None, seed=0, persona=None):
            raise ConfigError(f"environment {self.name}: rule_based_user must take (task, *, seed, persona=None)")
        if expert is not None and not _takes(expert, seed=0, error_profile=ErrorProfile()):
            raise ConfigError(f"environment {self.name}: expert must take (*, seed, error_profile)")
        if callable(self.tasks):
            named = _named(self.tasks)
            offered = _only(dict.fromkeys(("split", "size", "seed", "start", "index")), named)
            by_index = "index" in named
            given = () if by_index else (offered.pop("split", None),)
            if not _takes(self.tasks, *given, **offered):
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
            return self.official().split_names
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
            label, known = f"{where}: {self.name}" if where else self.name, ", ".join(self.splits)
            raise ConfigError(f"{label} has no tasks for the split {split!r}; it has {known}")

    def make_domain(self, size: str | None = None) -> Domain:
        """The domain at a size (None: the smallest), the same object each time. ConfigError for an unknown size."""
        return _domain(self, self._size(size))

    def _size(self, size: str | None) -> str:
        if not self.sizes:
            return ONLY_SIZE
        self.check_size(size or self.sizes[0])
        return size or self.sizes[0]

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
        named, start = _named(self.tasks), offered["start"]
        if "index" in named:
            for index in itertools.count(start):
                yield _task(self, self.tasks(**_only({**offered, "index": index}, named)))
        made = self.tasks(offered["split"], **_only({n: v for n, v in offered.items() if n != "split"}, named))
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
        found = next(self.iter_tasks(split, size=size, seed=seed, start=index), None)
        if found is None:
            raise ConfigError(f"the split {split} of {self.name} has no task number {index}")
        return found

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
    ) -> Session:
        """A conversation about a task in which the caller is the agent: ``session = await environment.start(task)``.

        ``task``: one of its tasks, or "SPLIT:NUMBER". ``size``: of a task that this environment has not made. A
        benchmark's is played by its own protocol, with native tool calls. ``retrieval``: how its documents are found,
        as in a configuration's section of that name. The rest is as for ``muarl.play``.

        ConfigError for what cannot be played: another environment's task, no user, no judge.
        """
        start = import_module("muarl.environments.one_task").start  # by its name, since it is built on this module
        session: Session = start(
            self,
            task,
            seed=seed,
            user_seed=user_seed,
            users=users,
            size=size,
            limits=limits,
            judge=judge,
            retrieval=retrieval,
        )
        return session

    @property
    def task_domain(self) -> str:
        """The name of the domain that its tasks are of (``Task.domain``), as audits and task files say it."""
        return self.make_domain().name if self.protocol is None else self.protocol(self.name).domain_name

    def fixed_splits(self) -> Mapping[str, Sequence[Task]]:
        """All tasks by split of an environment whose tasks are a mapping or a file."""
        return _splits(self)

    def fixed_tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split of an environment whose tasks are a mapping or a file, or a benchmark's. ConfigError
        for a split that it has not."""
        if self.protocol is not None:
            return _official_tasks(self, split)
        found = _splits(self)
        self.check_split(split)
        return found[split]

    def official(self, mode: str = "auto", *, sampled: bool = False, training: bool = False) -> Official:
        """The protocol of a benchmark. ``mode``: see ``official.Mode``; "auto" for its own, which may depend on whether
        the agent is ``sampled`` from a checkpoint. In ``training`` there is but one.

        ConfigError if this is no benchmark, or if it is not played in that mode.
        """
        kind = self.protocol
        if kind is None:
            raise ConfigError(f"{self.name} is not a benchmark and has no protocol")
        if training:
            return kind(self.name, kind.training_mode)
        usual: Mode = kind.sampled_mode if sampled else kind.modes[0]
        chosen = next((m for m in kind.modes if m == (usual if mode == "auto" else mode)), None)
        if chosen is None:
            raise ConfigError(f"eval.mode: {self.name} is played in mode {' or '.join(kind.modes)}, not {mode}")
        return kind(self.name, chosen)

    def audit_rules(self, domain: Domain | None = None) -> AuditRules:
        """The rules of audits, as far as the ``domain``'s tools allow where it is given."""
        declared = None if domain is None else type(domain).audit
        rules = self.audit or declared or UNDECLARED
        return rules if domain is None else rules.for_tools(domain.tool_names())

    def needed_expert(self) -> MakeExpert:
        """Its scripted expert. ConfigError says what to do where it has none."""
        if self.expert is None:
            raise ConfigError(
                f"{self.name} has no scripted expert: let a model serve (agent endpoint:MODEL or a checkpoint), take "
                "demonstrations from a file (sft.demonstrations_file), or give it an expert (docs/domains.md)"
            )
        return self.expert

    def needed_user(self, section: str = "user") -> MakeUser:
        """Its rule-based user. ConfigError says what to do where it has none. ``section``: of the configuration."""
        if self.rule_based_user is None:
            raise ConfigError(
                f"{self.name} has no rule-based user: give --user endpoint:MODEL (in a configuration "
                f"{section}.kind=llm and {section}.endpoint.model), or see docs/users.md"
            )
        return self.rule_based_user

    def red_team_source(self, where: str = "eval.red_team") -> RedTeamSource:
        """What red-team tasks are made of. ConfigError, naming the setting that asks for them, where it has none."""
        if self.red_team is None:
            raise ConfigError(
                f"{where}: {self.name} has no red-team tasks (docs/redteam.md says which environments have)"
            )
        from muarl.users.redteam.support import RedTeamSource

        return RedTeamSource(self.task_domain, self.make_tasks, self.make_domain, self.red_team(), self.sizes)


@lru_cache(maxsize=64)
def _domain(environment: Environment, size: str) -> Domain:
    given = environment.domain
    if given is None:
        return environment.official().domain("fixed")
    if isinstance(given, Domain):
        return given
    with attributed(f"environment {environment.name}: its domain", given):
        made = given() if isinstance(given, type) else given(size)
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


def _takes(function: Callable[..., Any], *args: object, **named: object) -> bool:
    """Whether a function can be called with these arguments, as far as its signature tells."""
    try:
        inspect.signature(function).bind(*args, **named)
    except TypeError:
        return False
    except ValueError:  # it has no signature that could be read
        return True
    return True


def _named(function: Callable[..., Any]) -> frozenset[str]:
    """The arguments that a function names, with those that it takes by ``**``."""
    parameters = inspect.signature(function).parameters.values()
    every = frozenset({"size", "seed", "start"}) if any(p.kind == p.VAR_KEYWORD for p in parameters) else frozenset()
    return every | {p.name for p in parameters}


def _only(offered: Mapping[str, Any], named: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in offered.items() if name in named}


def _beside(domain: type[Domain], path: Path) -> Path:
    """A path relative to the module that defines a domain."""
    file = getattr(sys.modules.get(domain.__module__), "__file__", None)
    return path if file is None else Path(file).parent / path.expanduser()
