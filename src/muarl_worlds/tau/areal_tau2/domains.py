"""The domains of AReaL-tau2-data: TAU2's own, with TAU2's prompt around the policy; each task brings its database.

The data set has snapshots of the agent's databases alone. Policies, and the phone of telecom's users, are those of the
installed TAU2 (``muarl data add tau2``), as the public loaders have them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.environments.task_files import split_of
from muarl_worlds.tau.airline.domain import Airline
from muarl_worlds.tau.areal_tau2 import installation
from muarl_worlds.tau.areal_tau2.rows import NAME, TASKS_FILE, ArealFile, ArealTask
from muarl_worlds.tau.retail.domain import Retail
from muarl_worlds.tau.tau2_benchmark.prompts import agent_prompt
from muarl_worlds.tau.telecom.domain import Telecom

SPLITS = ("train", "test")
"""One task in five, by its id, is held out to validate on."""


class ArealAirline(Airline):
    """TAU2's airline, for tasks that bring their database."""

    name = f"{NAME}-airline"
    allow_failing_gold = True  # TAU2 passes over a gold action that fails, and so these tasks were made

    def policy_for(self, task: Task) -> str:
        """TAU2's instructions around the policy."""
        return agent_prompt(self.policy_text)


class ArealRetail(Retail):
    """TAU2's shop, for tasks that bring their database."""

    name = f"{NAME}-retail"
    allow_failing_gold = True

    def policy_for(self, task: Task) -> str:
        """TAU2's instructions around the policy."""
        return agent_prompt(self.policy_text)


class ArealTelecom(Telecom):
    """TAU2's carrier, for tasks that bring their accounts; the user's phone is the benchmark's."""

    name = f"{NAME}-telecom"
    allow_failing_gold = True

    def policy_for(self, task: Task) -> str:
        """TAU2's instructions around the policy."""
        return agent_prompt(self.policy_text)


KINDS: Mapping[str, type[Domain]] = {"airline": ArealAirline, "retail": ArealRetail, "telecom": ArealTelecom}


class InstalledTasks(Mapping[str, Sequence[Task]]):
    """The tasks of one domain by split, read from the installed files when they are first asked for."""

    def __init__(self, domain: str) -> None:
        self.domain = domain

    def __getitem__(self, split: str) -> Sequence[Task]:
        if split not in SPLITS:
            raise KeyError(split)
        return tasks(self.domain)[split]

    def __iter__(self) -> Iterator[str]:
        return iter(SPLITS)

    def __len__(self) -> int:
        return len(SPLITS)


def tasks(domain: str) -> Mapping[str, Sequence[Task]]:
    """The tasks of a domain by split, each with its snapshot. DataError if they are not installed."""
    return _tasks(domain, installation.installed())


@cache
def _tasks(domain: str, folder: Path) -> Mapping[str, Sequence[Task]]:
    found: dict[str, list[Task]] = {split: [] for split in SPLITS}
    for one in _file(folder):
        if one.domain == domain:
            split = split_of(one.task.id)
            tags = {**one.task.tags, "split": split}
            found[split].append(replace(one.task, database=installation.snapshot(domain, one.snapshot), tags=tags))
    return found


@cache
def _file(folder: Path) -> tuple[ArealTask, ...]:
    return tuple(ArealFile(folder / TASKS_FILE))


def task_rows(domain: str) -> list[Mapping[str, object]]:
    """The tasks of a domain in the layout of TAU2's task files."""
    return [one.row for one in _file(installation.installed()) if one.domain == domain]
