"""What the reward of a task lets through: what trivial agents earn, and checks that pass whatever is done or said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from muarl.agents.idle import SORRY, TRANSFERRED
from muarl.basics.errors import InfrastructureError
from muarl.domains.base import World
from muarl.domains.checking import CheckFinding, Fix, Level
from muarl.domains.tasks import Action, Task
from muarl.rewards.checks import asserted
from muarl_tools.checks.tasks.checked_task import CheckedTask
from muarl_tools.checks.tasks.derived_figures import NUMBER, derivable

AGENTS = ("do-nothing", "always-transfer", "say-yes", "repeat-user")
"""Agents that know and change nothing. say-yes agrees to everything in words and does nothing; repeat-user says the
whole scenario, as one that repeats each of the user's words would."""
YES = "Yes, of course. I have done that for you. Is there anything else?"
SHORT = 2
"""A figure of so many digits or fewer stands within many others."""


def earned(checked: CheckedTask) -> Mapping[str, float | None]:
    """The reward of each trivial agent that the task's tools allow; None where only a judge could say."""
    found = {"do-nothing": checked.reward(said=SORRY)}
    transfer = _transfer(checked)
    if transfer is not None:
        found["always-transfer"] = checked.reward([transfer], TRANSFERRED)
    found |= {"say-yes": checked.reward(said=YES), "repeat-user": checked.reward(said=checked.task.scenario)}
    return {name: None if checked.judged and reward > 0 else reward for name, reward in found.items()}


def _transfer(checked: CheckedTask) -> Action | None:
    for spec in checked.domain.tool_specs():
        if spec.name.startswith("transfer"):
            required = spec.parameters.get("required", list(spec.parameters.get("properties", {})))
            return Action(spec.name, dict.fromkeys(required, "The user asks for help."))
    return None


def reward_parts(checked: CheckedTask, rewards: Mapping[str, float | None]) -> Iterator[CheckFinding]:
    """What is wrong with how a task is scored. ``rewards``: what ``earned`` gave."""
    yield from _parts(checked)
    yield from _said(checked)
    yield from _held(checked)
    winners = [name for name, reward in rewards.items() if reward == 1]
    if winners and not any(s.failed is None and s.changed for s in checked.steps):
        told = ", ".join(winners)
        evidence = f"{told} earn{'s' * (len(winners) == 1)} the reward 1: no gold action changes anything"
        yield checked.found("earned-by-nothing", "note", evidence, "Right where a refusal is; let the reward ask for "
                    "what a good refusal says, and count such tasks apart")  # fmt: skip
    elif winners:
        evidence = f"{', '.join(winners)}: reward 1, though gold actions change the world"
        yield checked.found("earned-by-nothing", "error", evidence, "Let the reward look at the database")


def _parts(checked: CheckedTask) -> Iterator[CheckFinding]:
    task, basis = checked.task, checked.task.reward_basis
    if not _decides(task):
        evidence = f"the reward is made of {', '.join(basis) or 'nothing'}, and the task has nothing of it to look at"
        yield checked.found("nothing-scored", "error", evidence, "Give gold actions, or something that must be said")
    if "NL_ASSERTION" in basis and not task.nl_assertions and _decides(task):
        rest = tuple(part for part in basis if part != "NL_ASSERTION")
        yield checked.found("assertions-missing", "warning", "NL_ASSERTION is part of the reward, and the task has no "
                    "assertion", "Write assertions, or take NL_ASSERTION out of the reward so that nobody takes it for "
                    "checked", Fix("basis", rest, settled=True))  # fmt: skip
    if task.communicate_info and "COMMUNICATE" not in basis:
        quoted = ", ".join(map(repr, task.communicate_info[:4]))
        covered = [c for c in task.communicate_info if any(_plainly(c) in _plainly(a) for a in task.nl_assertions)]
        if "NL_ASSERTION" in basis and len(covered) == len(task.communicate_info):
            return
        evidence = f"{quoted} must be said, and neither COMMUNICATE nor an assertion that is scored looks at it"
        yield checked.found("communicate-unscored", "warning", evidence, "Add COMMUNICATE to the reward, or write "
                    "assertions", Fix("basis", (*basis, "COMMUNICATE"), settled=True))  # fmt: skip
    if task.nl_assertions and "NL_ASSERTION" not in basis:
        evidence = f"{len(task.nl_assertions)} assertions in words count for nothing"
        yield checked.found("assertions-unscored", "note", evidence, "Add NL_ASSERTION to the reward, or let actions "
                    "and communicate_info say the same")  # fmt: skip


def _decides(task: Task) -> bool:
    """Whether any component of the basis has something to look at."""
    has = {
        "DB": task.actions is not None,
        "ACTION": bool(task.actions),
        "COMMUNICATE": bool(task.communicate_info),
        "NL_ASSERTION": bool(task.nl_assertions),
        "ENV_ASSERTION": bool(task.env_assertions),
        "SAFE": True,
    }
    return any(has.get(part, True) for part in task.reward_basis)


def _said(checked: CheckedTask) -> Iterator[CheckFinding]:
    task = checked.task
    scored = "COMMUNICATE" in task.reward_basis
    spoken = task.scenario.lower().replace(",", "")
    given = [info for info in task.communicate_info if info.lower() in spoken]
    if given and scored and len(given) == len(task.communicate_info):
        evidence = f"{', '.join(map(repr, given))} stand{'s' * (len(given) == 1)} in the scenario itself"
        yield checked.found("communicate-given", "warning", evidence, "Ask for something that only the database tells")
    short = [i for i in task.communicate_info if re.fullmatch(r"[\d.]+", i) and len(i) <= SHORT and i not in given]
    if short and scored:
        held = _holding(checked, short[0])
        also = f", as {held} does, which the gold actions' results show" if held else ""
        evidence = f"any text that holds the characters {short[0]!r} passes{also}"
        yield checked.found("communicate-short", "note", evidence, "Ask for a longer text, such as the figure with "
                    "its unit")  # fmt: skip
    figures = [i for i in task.communicate_info if i not in given and NUMBER.fullmatch(i.strip())]
    lost = [] if not figures else [info for info in figures if not derivable(checked, info)]
    if lost:
        evidence = f"{', '.join(map(repr, lost))}: neither in a result of the gold actions nor a sum of figures there"
        yield checked.found("communicate-underivable", "warning", evidence, "Look it up again; add the calculation "
                    "to the gold actions where it is right")  # fmt: skip


def _plainly(text: str) -> str:
    return re.sub(r"[$, ]", "", text.lower())


def _holding(checked: CheckedTask, short: str) -> str | None:
    for step in checked.steps:
        for figure in NUMBER.findall(step.result):
            if short in figure.replace(",", "") and figure != short:
                return str(figure)
    return None


def _held(checked: CheckedTask) -> Iterator[CheckFinding]:
    task = checked.task
    if not task.env_assertions or "ENV_ASSERTION" not in task.reward_basis:
        return
    before, after = _holding_in(task, checked.world()), _holding_in(task, checked.world_before(len(task.actions or ())))
    # Without gold actions, assertions alone say what is right. With DB in the reward, no other end state is right.
    if task.actions and (isinstance(after, str) or not all(after)):
        lost = after if isinstance(after, str) else _names(task, [not held for held in after])
        told = f"after all gold actions {lost} {'does not hold' if not isinstance(after, str) else ''}".rstrip()
        weight: Level = "error" if "DB" in task.reward_basis else "warning"
        yield checked.found("assertion-fails", weight, told, "Fix the assertion, or the gold actions")
    if isinstance(before, str):
        return
    changes = any(s.changed for s in checked.steps)
    if all(before) and changes:
        level: Level = "error" if not {"DB", "ACTION"} & set(task.reward_basis) else "warning"
        evidence = f"{_names(task, before)} hold{'s' * (len(before) == 1)} before anything is done"
        yield checked.found("assertion-holds", level, evidence, "Assert what the gold actions bring about")


def _holding_in(task: Task, world: World) -> Sequence[bool] | str:
    """Which assertions hold in a world, or what keeps one from being asked."""
    try:
        return asserted(task, world)
    except InfrastructureError as problem:
        return str(problem)


def _names(task: Task, which: Sequence[bool]) -> str:
    chosen = [str(a.get("func_name")) for a, one in zip(task.env_assertions, which, strict=True) if one]
    return ", ".join(dict.fromkeys(chosen))
