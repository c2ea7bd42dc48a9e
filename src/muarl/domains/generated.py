"""Tasks made from seeds, so that training needs no benchmark's: their splits and ids, the requests that they are made
of, what makes their experts, and the replay that proves their gold actions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from muarl.domains.agenda import AgendaRequest
from muarl.domains.base import Domain, World
from muarl.domains.scripted_expert import ErrorProfile, Expert
from muarl.domains.tasks import Task
from muarl.types.chat import ToolCall

SPLITS = ("train", "validation", "test")


class MakeExpert(Protocol):
    """A scripted expert for one conversation."""

    def __call__(self, *, seed: int, error_profile: ErrorProfile) -> Expert: ...


_END = r"-(?P<split>train|validation|test)-(?P<seed>\d{1,18})-(?P<index>\d{1,15})"
_SEEDED = re.compile(r"(?P<domain>.{1,60})-(?P<size>[a-z]{1,20})" + _END)
_OF_ONE_SIZE = re.compile(r"(?P<domain>[^-]{1,60})(?P<size>)" + _END)
_AFTER_DOMAIN = re.compile(r"(-(?P<size>[a-z]{1,20}))?" + _END)


@dataclass(frozen=True, slots=True)
class SeededId:
    """A made task."""

    domain: str
    """Which domain's it is."""
    size: str
    """Empty where an environment of one size leaves it out."""
    split: str
    seed: int
    index: int
    """Its number among the tasks of a seed."""

    def __str__(self) -> str:
        """The id, such as "retail-tiny-train-0-12", or "library-train-0-12" without a size."""
        return "-".join(part for part in (self.domain, self.size, self.split, str(self.seed), str(self.index)) if part)


def parse_id(text: str, domain: str = "") -> SeededId | None:
    """What a task's id says; None for one that was not made from a seed.

    ``domain``: the name of the task's domain, where it is known. Without it, an id without a size whose domain has a
    hyphen in its name ("city-library-train-0-12") reads like one of the domain "city" and the size "library".
    """
    if domain and (rest := _AFTER_DOMAIN.fullmatch(text.removeprefix(domain))) and text.startswith(domain):
        return SeededId(domain, rest["size"] or "", rest["split"], int(rest["seed"]), int(rest["index"]))
    match = _SEEDED.fullmatch(text) or _OF_ONE_SIZE.fullmatch(text)
    if match is None:
        return None
    return SeededId(match["domain"], match["size"], match["split"], int(match["seed"]), int(match["index"]))


DRAWS = 5
"""How many kinds of first request are tried for a task before it is given up: rare worlds have no place for some."""


class Infeasible(Exception):
    """The world that was made cannot host the request that was drawn; another one is tried."""


@lru_cache(maxsize=65536)
def split_of(*key: str) -> str:
    """The split that a combination belongs to: eight tenths train, one tenth each validation and test, by hash."""
    bucket = int(hashlib.sha256("|".join(key).encode()).hexdigest(), 16) % 10
    return "train" if bucket < 8 else "validation" if bucket == 8 else "test"


@dataclass(slots=True)
class UserRequest:
    """One thing the user wants. A goal gives slots their values, in the user's words."""

    kind: str
    goal: dict[str, Any]
    """What is asked first."""
    then: dict[str, Any] | None = None
    """The goal after the agent's proposal."""
    fallback: dict[str, Any] | None = None
    """The goal once the agent has said that the first is not available."""
    final: dict[str, Any] | None = None
    """The goal that is right in the end; None: nothing is to be done (refused or given up)."""
    unknown: list[str] = field(default_factory=list)
    """Slots that the user does not remember."""
    intent: str = ""
    """What reports call it, the kind where empty."""
    answer: str | None = None
    """What the agent must say."""
    approval: bool = False
    """See ``agenda.AgendaRequest``."""
    presses: list[str] = field(default_factory=list)
    """See ``agenda.AgendaRequest``."""

    def to_agenda(self) -> AgendaRequest:
        """What an agenda user may know of it: everything but ``final``."""
        request: AgendaRequest = {
            "kind": self.kind, "goal": self.goal, "then": self.then, "fallback": self.fallback, "unknown": self.unknown,
            "intent": self.intent, "answer": self.answer,
        }  # fmt: skip
        if self.approval:
            request["approval"] = True
        if self.presses:
            request["presses"] = self.presses
        return request


def replay_gold(task: Task, domain: Domain, writes: Collection[str]) -> None:
    """Replay the gold actions in a fresh world. Infeasible if a call fails, if ``writes`` leave no trace, or if they do
    not prove the task's assertions.

    Assertions hold after the last writing action and not before it, whoever takes it; without any, from the start.
    """
    world = domain.world(task)
    before = world.digest()
    wrote = False
    actions = task.actions or ()
    changes = [n for n, a in enumerate(actions) if a.requestor == "user" or a.name in writes]
    for number, action in enumerate(actions):
        if task.env_assertions and changes[-1:] == [number] and assertions_hold(task, world):
            raise Infeasible
        if world.call(action.requestor, ToolCall("gold", action.name, action.arguments, action.requestor)).error:
            raise Infeasible
        wrote = wrote or number in changes
    if wrote == (world.digest() == before) or not assertions_hold(task, world):
        raise Infeasible


def assertions_hold(task: Task, world: World) -> bool:
    """Whether all assertions of a task hold in a world."""
    for assertion in task.env_assertions:
        try:
            kit = world.toolkit(assertion["env_type"])
            if getattr(kit, assertion["func_name"])(**assertion["arguments"]) is not True:
                return False
        except ValueError:  # an assertion about a record that is not there any more
            return False
    return True
