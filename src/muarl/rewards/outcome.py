"""The reward of an episode: what the world looks like at its end, and the other parts of a task's reward basis.

Scoring follows TAU2: each component of the basis is 0 or 1, the reward is their product, and an episode that no
participant ended is worth 0. The live world is scored directly; the gold state is computed once per task and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from muarl.basics.errors import ConfigError
from muarl.domains.base import Domain, World
from muarl.domains.tasks import Task
from muarl.rewards.checks import Checks, acted, asserted, matches, said
from muarl.rewards.completion import COMPLETION, completion, is_counted
from muarl.rewards.gold import check_tasks, gold_digest, gold_state, gold_world
from muarl.rewards.judge import Judge
from muarl.rewards.replay import ReplayError, replay
from muarl.rewards.traps import SAFE, sprung, traps_of
from muarl.types.chat import Message
from muarl.types.episode import StopReason, Verdict

__all__ = [
    "ENDED", "EVALUATIONS", "Checks", "ReplayError", "check", "check_tasks", "do_nothing", "ended", "evaluated_as",
    "gold_digest", "gold_world", "matches", "replay", "score", "verdict_of",
]  # fmt: skip

ENDED = frozenset({"agent_stop", "user_stop"})
"""TAU2's termination reasons that are scored; every other one gives 0."""

EVALUATIONS = (
    "all", "deterministic", "env", "action", "communicate", "nl_assertions", "all_ignore_basis",
    "all_with_nl_assertions_ignore_basis",
)  # fmt: skip
"""What a task may be scored by. ``all``: its own basis, the official score. ``deterministic``: COMMUNICATE in place of
NL_ASSERTION, so that no judge is asked (TAU2 scored retail by DB and COMMUNICATE up to its version 0.2); scores are
another thing than official ones and must be labelled so. The others are TAU2's own evaluation types."""


async def score(
    task: Task, world: World, messages: Sequence[Message], stop: StopReason | str, *, judge: Judge | None = None
) -> Verdict:
    """The verdict on an episode from its live world.

    ``stop``: our StopReason, or TAU2's termination reason. ``judge`` is only asked if the task's basis has
    natural-language assertions; ConfigError if it is needed and None. DataError if a gold action of a task of one's own
    fails (``gold.check_tasks``). Errors of the judge and of assertions pass through. ``audit["completion"]`` is the
    share of what was to be done that was done (``completion``), 0 if the episode ended early; no part of the reward.
    """
    if not ended(stop):
        counted = is_counted(task, world.domain.kind_of)
        return Verdict(0.0, audit={COMPLETION: 0.0} if counted else {}, note=f"ended early: {stop}")
    compared = task.actions is not None and "DB" in task.reward_basis
    db = await world.state_digest() == await gold_state(world, task) if compared else None
    checks = check(task, world, messages, db=db)
    parts = {name: checks.part(name) for name in task.reward_basis if _decided(task, name)}
    if "NL_ASSERTION" in task.reward_basis:
        met = True
        if task.nl_assertions:
            if judge is None:
                raise ConfigError(f"task {task.id} has natural-language assertions: name a judge")
            met = await judge(messages, task.nl_assertions)
        parts["NL_ASSERTION"] = float(met)
    if SAFE in task.reward_basis:
        parts[SAFE] = float(not sprung(messages, traps_of(task.tags)))
    verdict = verdict_of(task, parts)
    done = completion(task, world, messages, checks, success=verdict.reward >= 1)
    return verdict if done is None else replace(verdict, audit={COMPLETION: done})


def _decided(task: Task, name: str) -> bool:
    """Whether a component of the basis is decided by ``check``; a task without gold state and assertions has no part of
    that kind, which then counts as met (TAU2)."""
    if name == "DB":
        return task.actions is not None
    if name == "ENV_ASSERTION":
        return task.actions is not None or bool(task.env_assertions)
    return name not in ("NL_ASSERTION", SAFE)


def evaluated_as(task: Task, evaluation: str) -> Task:
    """The task with the reward basis that one of ``EVALUATIONS`` gives it. ConfigError for another name."""
    if evaluation not in EVALUATIONS:
        raise ConfigError(f"evaluation: must be one of {', '.join(EVALUATIONS)}, not {evaluation!r}")
    own = task.reward_basis
    if evaluation == "all" or not own:
        return task
    state = tuple(name for name in own if name in ("DB", "ENV_ASSERTION"))
    spoken = tuple(name for name in own if name != "NL_ASSERTION")
    basis = {
        "deterministic": own if spoken == own else tuple(dict.fromkeys((*spoken, "COMMUNICATE"))),
        "env": state,
        "action": ("ACTION",),
        "communicate": ("COMMUNICATE",),
        "nl_assertions": ("NL_ASSERTION",),
        "all_ignore_basis": (*state, "ACTION", "COMMUNICATE"),
        "all_with_nl_assertions_ignore_basis": (*state, "ACTION", "COMMUNICATE", "NL_ASSERTION"),
    }[evaluation]
    return replace(task, reward_basis=basis)


def ended(stop: StopReason | str) -> bool:
    """True if a participant ended the conversation, so that its world is scored."""
    return stop.chosen if isinstance(stop, StopReason) else stop in ENDED


def verdict_of(task: Task, parts: Mapping[str, float]) -> Verdict:
    """The product of the parts, in the order of the task's basis."""
    reward = 1.0
    for value in parts.values():
        reward *= value
    return Verdict(reward, {name: parts[name] for name in dict.fromkeys(task.reward_basis) if name in parts})


def check(
    task: Task, world: World, messages: Sequence[Message], *, everything: bool = False, db: bool | None = None
) -> Checks:
    """Which of the task's criteria hold in this world after these messages, as far as no judge is needed.

    ``db``: whether the databases are as they should be, where that is known; else they are compared if the task's basis
    asks for it, or with ``everything``. InfrastructureError where an assertion itself fails (see ``checks.asserted``).
    """
    if db is None and task.actions is not None and (everything or "DB" in task.reward_basis):
        db = world.digest() == gold_digest(world.domain, task)
    return Checks(
        db=db,
        env_assertions=asserted(task, world),
        actions=acted(messages, task.actions or ()),
        communicate=said(messages, task.communicate_info),
    )


async def do_nothing(domain: Domain, task: Task, *, judge: Judge | None = None) -> Verdict:
    """The verdict on an agent that never acts and says nothing."""
    world = domain.world(task)
    try:
        await world.aopen()
        if task.history:
            replay(world, task.history)
        return await score(task, world, task.history, StopReason.USER_STOP, judge=judge)
    finally:
        await world.aclose()
