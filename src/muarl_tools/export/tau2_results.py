"""An evaluation on one of TAU2's domains as TAU2's own results file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.basics.files import plain, whole_file
from muarl.config.rollout import RetrievalConfig
from muarl.domains.base import Domain
from muarl.environments.benchmark import Benchmark
from muarl.environments.environment import Environment
from muarl.environments.registry import find, names
from muarl.environments.retrieval import searched
from muarl.observe.rundir import RunDirectory
from muarl.types.episode import Episode
from muarl_worlds.tau.protocol import ERRORS, STEPS
from muarl_worlds.tau.tau2_results import Tau2Run, results_of

Named = tuple[str, Episode]
_SENT = ("temperature", "top_p", "max_tokens")
"""Settings of requests that TAU2 keeps with a model's name. Never the others: ``extra`` may hold anything."""


def write_tau2(run: RunDirectory, episodes: Sequence[Named], config: Mapping[str, Any], out: Path) -> None:
    """Write the results file. ConfigError if the run is no evaluation on TAU2 as it is; DataError if its data are not
    installed, or lack a task."""
    environment = _environment(config)
    files = sorted({file for file, _ in episodes})
    if len(files) > 1:
        raise ConfigError(f"--as tau2: the run has episodes in {', '.join(files)}; choose one with --episodes NAME")
    official = environment.official()
    found = [episode for _, episode in episodes]
    told = run.read_json("summary").get("benchmark")
    info = _info(run, config, official, told if isinstance(told, Mapping) else {}, found)
    with whole_file(out) as file:
        json.dump(plain(results_of(info, found)), file, indent=2, ensure_ascii=False)
        file.write("\n")


def _environment(config: Mapping[str, Any]) -> Environment:
    section = config.get("domain")
    name = section.get("name") if isinstance(section, Mapping) else None
    if not isinstance(name, str) or name not in names() or not name.startswith("tau2-"):
        raise ConfigError(
            f"--as tau2: TAU2's results hold evaluations on one of its domains (muarl eval tau2-retail), and this run "
            f"is in {name if isinstance(name, str) else 'several environments'}; use --as messages, rows or atif"
        )
    return find(name)


def _info(
    run: RunDirectory,
    config: Mapping[str, Any],
    official: Benchmark,
    told: Mapping[str, Any],
    episodes: Sequence[Episode],
) -> Tau2Run:
    retrieval = _section(config, "retrieval")
    wanted = RetrievalConfig.model_validate({"variant": retrieval["variant"]}) if retrieval.get("variant") else None
    domain, solo = searched(official.domain("official"), wanted), bool(told.get("solo"))
    asked = _section(config, "eval")
    agent, user = _section(asked, "endpoint"), _section(_section(config, "eval_user"), "endpoint")
    played = {episode.task_id for episode in episodes}
    # The installed data's own entries: TAU2 compares them, field by field, with those that it has.
    tasks = [row for row in official.module.task_rows(official.own_name) if row["id"] in played]
    status = run.read_json("status")
    return Tau2Run(
        domain=official.own_name,
        policy=official.place.solo_policy_of(official) if solo else _policy(domain),
        tasks=tasks,
        agent=str(agent.get("model") or episodes[0].agent),
        user=None if solo else str(user.get("model") or episodes[0].user),
        began=str(status.get("began") or status.get("at") or "1970-01-01T00:00:00+00:00"),
        max_steps=int(told.get("steps") or asked.get("max_steps") or STEPS),
        max_errors=int(told.get("tool_errors") or asked.get("max_errors") or ERRORS),
        seed=asked.get("seed"),
        seeds=tuple(told.get("seeds") or ()),
        solo=solo,
        agent_args={name: agent[name] for name in _SENT if agent.get(name) is not None},
        user_args={name: user[name] for name in _SENT if user.get(name) is not None},
        retrieval=getattr(domain, "retrieval", None),
    )


def _policy(domain: Domain) -> str:
    if getattr(domain, "policy_by_task", False):  # TAU2's words
        return "(Policy is task-specific - see 'policy' field in each simulation)"
    return domain.policy_text


def _section(part: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = part.get(name)
    return found if isinstance(found, Mapping) else {}
