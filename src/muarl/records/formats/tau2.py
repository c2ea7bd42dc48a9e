"""TAU2's results.json (tau2-bench 1.0): an evaluation of ours as its viewer, metrics and leaderboard check read one."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from muarl.basics.version import __version__
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn

TERMINATIONS: Mapping[StopReason, str] = {
    StopReason.USER_STOP: "user_stop",
    StopReason.AGENT_STOP: "agent_stop",
    StopReason.TRANSFER: "user_stop",
    StopReason.MAX_TURNS: "max_steps",
    StopReason.TURN_LENGTH: "agent_error",
    StopReason.CONTEXT_FULL: "context_window_exceeded",
    StopReason.TOOL_ERRORS: "too_many_errors",
    StopReason.EMPTY_REPLY: "agent_error",
    StopReason.BROKEN_CALL: "agent_error",
    StopReason.INFRASTRUCTURE: "infrastructure_error",
}
PARTS = ("DB", "ENV_ASSERTION", "NL_ASSERTION", "ACTION", "COMMUNICATE")
_IDS = uuid.UUID("6f1f3a52-3c1c-5d0e-9a0b-7d1f3f0f6a10")


@dataclass(frozen=True)
class Tau2Run:
    """What TAU2 tells of a run besides its conversations.

    ``tasks``: as its task files have them. ``agent`` and ``user``: names of models, with the settings that requests
    carried. ``began``: ISO 8601. ``commit``: of muarl, as nobody's of TAU2 has played it. ``retrieval``: of
    banking_knowledge.
    """

    domain: str
    policy: str
    tasks: Sequence[Mapping[str, Any]]
    agent: str
    user: str | None
    began: str
    max_steps: int
    max_errors: int
    seed: int | None = None
    seeds: Sequence[int] = ()
    solo: bool = False
    agent_args: Mapping[str, Any] = field(default_factory=dict)
    user_args: Mapping[str, Any] = field(default_factory=dict)
    guidelines: str | None = None
    commit: str | None = None
    retrieval: str | None = None


def results_of(run: Tau2Run, episodes: Sequence[Episode]) -> dict[str, Any]:
    """The file's contents. Each task's trials are numbered by the trials' seeds, else as they come."""
    tried: Counter[str] = Counter()
    simulations = []
    for episode in episodes:
        number = tried[episode.task_id]
        tried[episode.task_id] += 1
        trial = run.seeds.index(episode.seed) if episode.seed in run.seeds else number
        simulations.append(_simulation(run, episode, trial))
    info: dict[str, Any] = {
        "git_commit": run.commit or f"muarl {__version__}",
        "num_trials": max(tried.values(), default=0),
        "max_steps": run.max_steps,
        "max_errors": run.max_errors,
        "user_info": {
            "implementation": "dummy_user" if run.solo else "user_simulator",
            "llm": run.user,
            "llm_args": dict(run.user_args),
            "global_simulation_guidelines": run.guidelines,
        },
        "agent_info": {
            "implementation": "llm_agent_solo" if run.solo else "llm_agent",
            "llm": run.agent,
            "llm_args": dict(run.agent_args),
        },
        "environment_info": {"domain_name": run.domain, "policy": run.policy, "tool_defs": None},
        "seed": run.seed,
    }
    if run.retrieval is not None:
        info["retrieval_config"] = run.retrieval
    return {"timestamp": run.began, "info": info, "tasks": list(run.tasks), "simulations": simulations}


def _simulation(run: Tau2Run, episode: Episode, trial: int) -> dict[str, Any]:
    seconds = sum(turn.seconds for turn in episode.turns)
    end = datetime.fromisoformat(run.began) + timedelta(seconds=seconds)
    return {
        "id": str(uuid.uuid5(_IDS, f"{run.began} {episode.id} {episode.seed}")),
        "task_id": episode.task_id,
        "timestamp": run.began,
        "start_time": run.began,
        "end_time": end.isoformat(),
        "duration": seconds,
        "termination_reason": TERMINATIONS[episode.stop],
        "agent_cost": episode.agent_usage.cost,
        "user_cost": episode.user_usage.cost,
        "reward_info": _reward(run, episode),
        "messages": [_message(turn, index) for index, turn in enumerate(episode.turns)],
        "trial": trial,
        "seed": episode.seed,
        "mode": "half_duplex",
        "info": {"muarl": {"id": episode.id, "stop": episode.stop.value, "error": episode.error}},
    }


def _reward(run: Tau2Run, episode: Episode) -> dict[str, Any] | None:
    """The verdict; what a part consists of is not kept with episodes (``muarl score --details`` tells it)."""
    verdict = episode.verdict
    if verdict is None:
        return None
    parts = {name: float(value) for name, value in verdict.breakdown.items() if name in PARTS}
    out: dict[str, Any] = {"reward": verdict.reward, "reward_basis": list(parts) or None, "reward_breakdown": parts}
    if "DB" in parts:
        out["db_check"] = {"db_match": parts["DB"] == 1.0, "db_reward": parts["DB"]}
    if verdict.note is not None:
        out["info"] = {"note": verdict.note}
    return out


def _message(turn: Turn, index: int) -> dict[str, Any]:
    message = turn.message
    out: dict[str, Any] = {"role": message.role, "content": message.content, "turn_idx": index, "timestamp": None}
    if message.role == "tool":
        identity = message.tool_call_id or ""
        return {**out, "id": identity, "requestor": message.requestor, "error": message.error}
    calls = [
        {"id": c.id, "name": c.name, "arguments": dict(c.arguments), "requestor": c.requestor}
        for c in message.tool_calls
    ]
    out |= {"tool_calls": calls or None, "generation_time_seconds": turn.seconds}
    raw = _raw(message)
    return out | {"raw_data": raw} if raw else out


def _raw(message: Message) -> dict[str, Any]:
    """What TAU2 has no field for: thoughts, and calls that could not be read."""
    broken = [c.to_json() for c in message.tool_calls if c.invalid is not None]
    found = {"reasoning": message.reasoning, "unreadable_calls": broken or None}
    return {name: value for name, value in found.items() if value is not None}
