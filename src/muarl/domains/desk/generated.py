"""A described scenario as a generated domain: tools and policy at each size, tasks, expert, words of the tiny one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from muarl.domains.base import Domain, Task
from muarl.domains.desk import compact, words
from muarl.domains.desk.expert import DeskExpert
from muarl.domains.desk.generator import SIZES, MakeTables, TaskMaker
from muarl.domains.desk.oracle import call
from muarl.domains.desk.people import FIRST_NAMES
from muarl.domains.desk.spec import Script, read_spec
from muarl.domains.generated import Generated
from muarl.domains.imagined import Fact, ImaginedDomain, scenario_of


class Desk:
    """A scenario: a folder with ``policy.md``, ``world.md`` and ``intents.yaml``, a domain class and its worlds."""

    def __init__(
        self,
        folder: Path,
        domain: type[Domain],
        make_tables: MakeTables,
        vocabulary: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.folder, self.domain_class, self.make_tables = folder, domain, make_tables
        self._vocabulary = {k: tuple(v) for k, v in (vocabulary or {}).items()}
        self.domain = cache(self._domain)

    @cached_property
    def script(self) -> Script:
        """Its intents, read when they are first needed. DataError says what is wrong with the file."""
        spec = read_spec(self.folder / "intents.yaml")
        return Script(self.domain_class.name, spec, self._vocabulary, FIRST_NAMES)

    @cached_property
    def tasks(self) -> TaskMaker:
        """What makes its tasks."""
        return TaskMaker(self.script, self.domain_class(database={}, policy="none"), self.make_tables)

    def _domain(self, size: str) -> Domain:
        if size not in SIZES:
            raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
        if size != "tiny":
            return self.domain_class(database={})
        policy = (self.folder / "policy_compact.md").read_text(encoding="utf-8").strip()
        tools = self.script.spec.tiny_tools or None
        return self.domain_class(database={}, policy=policy, tools=tools, render=lambda _, value: compact.write(value))

    @property
    def world(self) -> str:
        """The description of the world behind the tools."""
        return (self.folder / "world.md").read_text(encoding="utf-8")

    def imagined(self, size: str, teacher: Any) -> ImaginedDomain:
        """The same domain with tools that a teacher plays; its ledger starts with what each task is about."""
        domain = self.domain(size)
        return ImaginedDomain(scenario_of(domain, self.world), teacher, facts=self.facts, render=domain.render)

    def facts(self, task: Task) -> list[Fact]:
        """What the made world says of a task's caller: the look-ups among its gold actions, before anything changes."""
        if task.database is None:
            return []
        world = self.tasks.domain.world(task)
        found = []
        for action in task.actions or ():
            if self.tasks.domain.kind_of(action.name) == "read":
                result = call(world, action.name, action.arguments)
                if result is not None:
                    found.append((action.name, action.arguments, result))
        return found

    def generated(self) -> Generated:
        """The scenario as a generated domain."""
        return Generated(
            name=f"{self.domain_class.name}-generated",
            sizes=tuple(SIZES),
            domain=self.domain,
            iter_tasks=lambda split, **options: self.tasks.iter_tasks(split, **options),
            expert=lambda *, seed, habits: DeskExpert(self.script, seed=seed, habits=habits),
            entities=lambda: words.entities(self.tasks),
            phrases=lambda: words.phrases(self.tasks),
            imagined=self.imagined,
        )
