"""The state that a task's gold actions lead to, computed once per task; and tasks whose gold actions fail, refused.

Where a gold action fails, the state is another than the task's author meant: doing nothing may then earn the whole
reward, silently. So such a task is refused, in ``check_tasks`` before any work and in ``gold_digest`` at the latest.
Official tasks are exempt: some of their gold actions fail, and count as doing nothing (TAU2).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from muarl.basics.errors import DataError
from muarl.domains.authoring import AuthoringWarning
from muarl.domains.base import Domain, World
from muarl.domains.gold import GoldFailure, run_gold, run_gold_slowly, undone_write
from muarl.domains.sources import check_json
from muarl.domains.tasks import Task
from muarl.domains.tooling import finished
from muarl.rewards.replay import ReplayError, replay

REMEDY = (
    "Fix the task, or the tool. To play such tasks all the same, set domain.allow_failing_gold=true (in a script: "
    "allow_failing_gold = True on the Domain)."
)


@dataclass(frozen=True, slots=True)
class _Ending:
    """Where gold actions lead: the digest of the state, and which of them failed."""

    digest: str
    failures: tuple[GoldFailure, ...] = ()


_known: weakref.WeakKeyDictionary[Domain, dict[int, tuple[weakref.ref[Task], _Ending]]] = weakref.WeakKeyDictionary()


def check_tasks(domain: Domain, tasks: Sequence[Task]) -> int:
    """Replay the gold actions of tasks of one's own, before any work. Returns how many tasks have a failing one.

    DataError names the first such task, the action (index, name, arguments) and the cause: an unknown tool, a wrong
    argument, what the tool raised, or the error it returned; likewise where all that they change is undone, since their
    tools are not marked as writing, and for a history that cannot be replayed. Where ``domain.allow_failing_gold`` is
    set, they pass with an AuthoringWarning that says how many. Official tasks are not looked at.

    A replay costs as much as the calls themselves, and scoring uses its result.
    """
    own = [task for task in tasks if task.actions is not None and not exempt(domain, task)]
    for task in own:
        if task.database is not None and not task.database.sound:
            check_json(task.database.to_check(), f"task {task.id}: database")
            task.database.sound = True
    failing = [failures for failures in (_looked_at(domain, task) for task in own) if failures]
    if not failing:
        for task in own:
            _check_marks(domain, task)
        return 0
    if not domain.allow_failing_gold:
        raise DataError(_complaint(failing[0][0], len(failing), len(own)))
    warnings.warn(
        f"{len(failing)} of {len(own)} tasks have a gold action that fails when it is replayed, so that doing nothing "
        f"may earn their reward. The first: {failing[0][0]}",
        AuthoringWarning,
        stacklevel=2,
    )
    return len(failing)


def _looked_at(domain: Domain, task: Task) -> Sequence[GoldFailure]:
    try:
        return gold_failures(domain, task)
    except ReplayError as problem:
        raise DataError(f"task {task.id}: its history cannot be replayed: {problem}") from None


def _check_marks(domain: Domain, task: Task) -> None:
    """DataError where all that the gold actions change is undone, since their tools are not marked as writing."""
    if all(domain.kind_of(action.name) != "read" for action in task.actions or ()):
        return
    world = domain.world(task)
    if _elsewhere(world) or world.digest() != _ending(domain, task).digest:
        return
    undone = undone_write(world, task)
    if undone is not None and not domain.allow_failing_gold:
        raise DataError(f"{undone}. So doing nothing earns the reward. {REMEDY}")


def gold_failures(domain: Domain, task: Task) -> Sequence[GoldFailure]:
    """The gold actions of a task that fail, in order."""
    return _ending(domain, task).failures


def exempt(domain: Domain, task: Task) -> bool:
    """Whether failing gold actions of a task count as doing nothing, as benchmarks have it."""
    return task.benchmark or domain.semantics == "official"


def gold_world(domain: Domain, task: Task) -> World:
    """A fresh world after the task's history and its gold actions; a failing one is passed over, as TAU2 does.

    In "official" semantics the two sides are not brought in step after them, as TAU2 forgets to do.
    """
    world = domain.world(task)
    _play(world, task)
    return world


def gold_digest(domain: Domain, task: Task) -> str:
    """The digest of the state that the gold actions lead to; kept for as long as the domain and the task live.

    DataError if one fails, as ``check_tasks`` says."""
    return _accepted(domain, task, _ending(domain, task))


async def gold_state(world: World, task: Task) -> str:
    """``gold_digest`` for a world that may be slow: its gold actions are replayed in another one, without blocking.

    InfrastructureError if that other world fails.
    """
    domain = world.domain
    if not slow(world):
        return gold_digest(domain, task)
    ending = _kept(domain, task)
    return _accepted(domain, task, ending or await _slow_ending(world.another(), task))


def _play(world: World, task: Task) -> list[GoldFailure]:
    if task.history:
        replay(world, task.history)
    if world.domain.semantics == "fixed":
        return run_gold(world, task)
    for action in task.actions or ():
        try:
            world.invoke(action.requestor, action.name, action.arguments)
        except Exception:  # some official gold actions fail, and the rest still counts
            continue
    return []


def _ending(domain: Domain, task: Task) -> _Ending:
    ending = _kept(domain, task)
    if ending is not None:
        return ending
    world = domain.world(task)
    if slow(world):
        return finished(_slow_ending(world, task))
    failures = _play(world, task)
    return _keep(domain, task, _Ending(world.digest(), tuple(failures)))


async def _slow_ending(world: World, task: Task) -> _Ending:
    try:
        await world.aopen()
        if task.history:
            replay(world, task.history)
        failures = await run_gold_slowly(world, task)
        return _keep(world.domain, task, _Ending(await world.state_digest(), tuple(failures)))
    finally:
        await world.aclose()


def slow(world: World) -> bool:
    """Whether a world must be waited for."""
    return world.domain.waits or _elsewhere(world)


def _elsewhere(world: World) -> bool:
    """Whether the state of a world must be asked for."""
    return type(world).state_digest is not World.state_digest


def _accepted(domain: Domain, task: Task, ending: _Ending) -> str:
    if ending.failures and not domain.allow_failing_gold and not exempt(domain, task):
        raise DataError(_complaint(ending.failures[0], 1, 1))
    return ending.digest


def _complaint(failure: GoldFailure, failing: int, total: int) -> str:
    others = "" if failing < 2 else f" ({failing} of {total} tasks have such an action.)"
    problem = str(failure).rstrip(".")
    return f"{problem}.{others} A gold action that fails may make doing nothing worth the reward. {REMEDY}"


def _kept(domain: Domain, task: Task) -> _Ending | None:
    entry = _known.get(domain, {}).get(id(task))
    return entry[1] if entry is not None and entry[0]() is task else None


def _keep(domain: Domain, task: Task, ending: _Ending) -> _Ending:
    endings = _known.setdefault(domain, {})
    key = id(task)
    endings[key] = (weakref.ref(task, lambda _: endings.pop(key, None) and None), ending)
    return ending
