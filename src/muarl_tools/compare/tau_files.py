"""TAU2's results and TAU1's trajectories as results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.accounts.metrics import is_success
from muarl.basics.errors import DataError
from muarl_tools.compare.attempts import Excluded, PlayedTask, Results, no_reward
from muarl_worlds.tau.tau1_trajectories import Tau1Conversation
from muarl_worlds.tau.tau2_results import Simulation, Tau2Results

VOID = ("infrastructure_error", "unexpected_error")
"""TAU2's terminations that say nothing about the agent."""
ENDED = ("user_stop", "agent_stop")


def tau2(found: Tau2Results) -> Results:
    """A run of TAU2, as its own metrics count it: a conversation that did not end by itself has failed."""
    attempts, excluded = list[PlayedTask](), list[Excluded]()
    counts: dict[str, int] = {}
    for simulation in found.simulations:
        task = simulation.task_id
        trial, seed = simulation.trial, simulation.seed
        trial = counts.get(task, 0) if trial is None else trial
        counts[task] = counts.get(task, 0) + 1
        why = _void(simulation)
        if why is not None:
            excluded.append(Excluded(task, trial, why, seed))
        else:
            good = simulation.reward is not None and is_success(simulation.reward)
            attempts.append(PlayedTask(task, trial, good, seed))
    if not found.simulations:
        raise DataError(f"{found.path}: there is no simulation in it")
    file = found.path
    return Results(
        name=file.resolve().parent.name if file.name == "results.json" else file.stem,
        path=str(file),
        kind="tau2",
        attempts=tuple(attempts),
        excluded=tuple(excluded),
        domain=f"tau2-{found.domain}",
        agent=found.agent,
        user="none (solo mode)" if found.solo else found.user,
        fingerprints={task: _tau2_digest(row) for task, row in found.rows.items()},
    )


def _void(simulation: Simulation) -> str | None:
    """Why no score may count a simulation, None if it counts."""
    reason = simulation.value.get("termination_reason")
    if reason in VOID:
        return str(reason)
    if simulation.reward is None:
        return "it has no reward" if reason in ENDED else None
    return no_reward(simulation.reward, f"{simulation.place}: reward_info.reward")


def _tau2_digest(row: Mapping[str, Any]) -> str:
    """What a user wants and what is checked, without fields that are empty or only describe."""
    scenario, criteria = row.get("user_scenario"), row.get("evaluation_criteria")
    instructions = scenario.get("instructions") if isinstance(scenario, Mapping) else scenario
    actions = criteria.get("actions") if isinstance(criteria, Mapping) else None
    checked = [
        [a.get("name"), a.get("arguments"), a.get("requestor", "assistant")]
        for a in actions or ()
        if isinstance(a, Mapping)
    ]
    others = {k: v for k, v in criteria.items() if k != "actions"} if isinstance(criteria, Mapping) else None
    return _digest([_filled(instructions), checked, _filled(others)])


def _filled(value: Any) -> Any:
    """Without what is null or empty, which versions of TAU2 write or leave out."""
    if isinstance(value, Mapping):
        kept = {k: _filled(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if v not in (None, [], {}, "")}
    if isinstance(value, list):
        return [_filled(v) for v in value]
    return value


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def tau1(found: Sequence[Tau1Conversation], path: Path) -> Results:
    """A run of TAU1. Its tasks are numbers of a split that the file does not name: the test split, as published runs
    have it. A run that broke off before anything was said counts as failed upstream, and is left out here."""
    attempts, excluded, prints = list[PlayedTask](), list[Excluded](), dict[str, str]()
    domains = dict.fromkeys(r.domain for r in found if r.domain is not None)
    for row in found:
        task = f"test/{row.index}"
        if row.error is not None and not row.messages:
            excluded.append(Excluded(task, row.trial, row.error))
        elif row.reward is None:
            excluded.append(Excluded(task, row.trial, "it has no reward"))
        elif (why := no_reward(row.reward, f"{path}: task {row.index}, reward")) is not None:
            excluded.append(Excluded(task, row.trial, why))
        else:
            attempts.append(PlayedTask(task, row.trial, is_success(row.reward)))
        if row.task_row is not None:
            prints[task] = _digest([row.task_row.get(name) for name in ("instruction", "actions", "outputs")])
    return Results(
        name=path.stem,
        path=str(path),
        kind="tau1",
        attempts=tuple(attempts),
        excluded=tuple(excluded),
        domain=", ".join(f"tau1-{name.removeprefix('tau1-')}" for name in domains) or None,
        fingerprints=prints,
    )
