"""Of benches/referee.py: which published files are read, from which commits; and TAU2's leaderboard."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.basics.errors import MuarlError
from muarl_tools.compare.published import PublishedScore
from muarl_worlds.tau import tau2_benchmark

TRAINING = "src/experiments/model_training/results"
BOARD = "web/leaderboard/public/submissions"
TAU2, TAU1 = "sierra-research/tau2-bench", "sierra-research/tau-bench"
TUNED = "ft:gpt-4.1-2025-04-14:sierra:tau2-full-sft:BzrYdMNm"
SIZES = {"retail": 114, "airline": 50, "telecom": 114, "banking_knowledge": 97}


@dataclass(frozen=True)
class Source:
    """A published file of conversations."""

    name: str
    commit: str
    path: str
    published: float | None = None
    """The score in percent, as the submission beside the file or the repository's README says it; None: the file's."""
    repository: str = TAU2
    where: str = ""
    """The branch or pull request that the commit is of."""


FILES = (
    Source("Button (Claude Opus 4.6)", "dfdc3f7", f"{BOARD}/button-claude-opus-4-6_distyl-ai_2026-03-04/trajectories/airline.json", 76.0, where="pull/168"),
    Source("AdaptiveAgent (Claude Opus 4.6)", "e09732d", f"{BOARD}/adaptive-agent_ironshell-ui_2026-03-22/trajectories/adaptive-agent_airline_claude-opus-4-6_1trial.json", 98.0, where="pull/171"),
    Source("AdaptiveAgent, best of several runs", "59b1453", f"{BOARD}/adaptive-agent_community_2026-03-23/trajectories/adaptive_agent_airline_opus46_cascata.json", 98.0, where="pull/185"),
    Source("Claude Sonnet 4.5, interleaved thinking", "bfe508e", f"{BOARD}/claude-sonnet-4-5_aide-platform_2025-10-31/trajectories/claude-sonnet-4-5_airline_default_gpt4.1_1trials.json", 72.0, where="pull/73"),
    Source("Claude Opus 4.6 (IronShell run 1)", "17044a0", f"{BOARD}/ironshell-ironforge_ironshell-ui_2026-03-09/trajectories/ironshell_airline_opus46_run1.json", where="pull/171"),
    Source("GPT-5.4 (IronShell run 1)", "17044a0", f"{BOARD}/ironshell-ironforge_ironshell-ui_2026-03-09/trajectories/ironshell_airline_gpt54_run1.json", where="pull/171"),
    Source("Nemotron-Orchestrator-8B, airline", "4c87b43", f"{BOARD}/toolorchestra_nvidia_2025-12-02/trajectories/toolorchestra_airline_gpt-5_1trial.json", 56.0, where="fix-toolorchestrator-trajectory-loading"),
    Source("Whissle", "bbcb86f", "results/whissle/airline_run1.json", where="pull/448"),
    Source("gpt-4o, airline", "07c6aac", "judge_viewer/data/simulations/azure-airline-full.json", where="pull/103"),
    Source("gpt-oss-120b (LangChain)", "52a4ed7", f"{BOARD}/gpt-oss-120b_openai_2025-11-26/trajectories/langchain_agent_airline_2025-11-26_00-37-06.json", 38.0, where="pull/133"),
    Source("gpt-4.1 fine-tuned, airline test", "59d0fb9", f"{TRAINING}/{TUNED}_airline_default_gpt-4.1_1trials.json", where="feature/gym"),
    Source("gpt-4.1, airline test", "59d0fb9", f"{TRAINING}/gpt-4.1_airline_default_gpt-4.1_1trials.json", where="feature/gym"),
    Source("Nemotron-Orchestrator-8B, retail", "4c87b43", f"{BOARD}/toolorchestra_nvidia_2025-12-02/trajectories/toolorchestra_retail_gpt-5_1trial.json", 84.2, where="fix-toolorchestrator-trajectory-loading"),
    Source("gpt-4.1 fine-tuned, retail test", "59d0fb9", f"{TRAINING}/{TUNED}_retail_default_gpt-4.1_1trials.json", where="feature/gym"),
    Source("gpt-4.1, retail test", "59d0fb9", f"{TRAINING}/gpt-4.1_retail_defautl_gpt-4.1_1trials.json", where="feature/gym"),
    Source("gpt-4.1 fine-tuned, telecom test", "59d0fb9", f"{TRAINING}/{TUNED}_telecom_default_gpt-4.1_1trials.json", where="feature/gym"),
    Source("gpt-4.1, telecom test", "59d0fb9", f"{TRAINING}/gpt-4.1_telecom_default_gpt-4.1_1trials.json", where="feature/gym"),
    Source("gpt-4.1 fine-tuned, telecom test, alone", "59d0fb9", f"{TRAINING}/{TUNED}_telecom_no-user_gpt-4.1_1trials.json", where="feature/gym"),
    Source("gpt-4.1, telecom test, alone", "59d0fb9", f"{TRAINING}/gpt-4.1_telecom_no-user_gpt-4.1_1trials.json", where="feature/gym"),
    Source("gpt-4o, telecom small", "8d9b507", "data/simulations/2025-08-10T02:44:06.496849_telecom_llm_agent_gpt-4o_user_simulator_gpt-4o.json", where="pull/17"),
    Source("gpt-4o, TAU1 airline", "HEAD", "historical_trajectories/gpt-4o-airline.json", 42.0, TAU1, "main"),
)  # fmt: skip
FOLDERS = ((TAU2, "data/tau2/results/final"), (TAU1, "historical_trajectories"))


class Repository:
    """A git directory that is read by commit and path."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        self.head = self._git("rev-parse", "HEAD").decode().strip()

    def _git(self, *words: str) -> bytes:
        ran = subprocess.run(["git", "--git-dir", str(self.path), *words], capture_output=True)
        if ran.returncode:
            raise MuarlError(f"{self.name}: git {' '.join(words)}: {ran.stderr.decode(errors='replace').strip()}")
        return ran.stdout

    def read(self, commit: str, path: str) -> bytes:
        """A file. MuarlError if it is not there."""
        return self._git("show", f"{commit}:{path}")

    def names(self, folder: str, ending: str = ".json") -> list[str]:
        """The files in a folder at the newest commit, those included whose contents are not at hand."""
        listed = self._git("ls-tree", "--name-only", "HEAD", f"{folder}/").decode().splitlines()
        return [name for name in listed if name.endswith(ending)]


def whole(value: Any) -> tuple[dict[str, Any], list[str]]:
    """A run of TAU2 as its own program writes one: bare simulations get the installed tasks of their domain."""
    if isinstance(value, dict) and "tasks" in value and "info" in value:
        return value, []
    domain = value.get("domain", "airline") if isinstance(value, dict) else "airline"
    simulations = value["simulations"] if isinstance(value, dict) else value
    tasks = tau2_benchmark.task_rows(domain)
    info = {"environment_info": {"domain_name": domain}}
    return (
        {"info": info, "tasks": tasks, "simulations": simulations},
        ["The file holds no tasks: scored by the installed ones"],
    )


def contradicted(value: Mapping[str, Any]) -> list[Any]:
    """The simulations whose task has other gold actions than the ones that they were graded by."""
    own = {t["id"]: _actions((t.get("evaluation_criteria") or {}).get("actions")) for t in value["tasks"]}
    return [s for s in value["simulations"] if (told := graded_by(s)) is not None and told != own.get(s.get("task_id"))]


def graded_by(simulation: Mapping[str, Any]) -> str | None:
    """The gold actions in a simulation's own reward_info; None where it has none."""
    checks = (simulation.get("reward_info") or {}).get("action_checks")
    return None if not checks else _actions([check["action"] for check in checks])


def _actions(given: Sequence[Mapping[str, Any]] | None) -> str:
    return json.dumps([[a.get("action_id"), a["name"], a["arguments"]] for a in given or ()], sort_keys=True)


def rejoined(value: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """The run with each simulation at the task whose gold actions (and, where these are the same, assertions) it was
    graded by; and how many fit several tasks, which are left out."""
    kept, unclear = [], 0
    for simulation in value["simulations"]:
        info = simulation.get("reward_info") or {}
        told, words = (
            graded_by(simulation) or _actions([]),
            [n["nl_assertion"] for n in info.get("nl_assertions") or ()],
        )
        fits = [t for t in value["tasks"] if _actions((t.get("evaluation_criteria") or {}).get("actions")) == told]
        if len(fits) > 1:
            fits = [t for t in fits if (t["evaluation_criteria"].get("nl_assertions") or []) == words]
        if len(fits) == 1:
            kept.append({**simulation, "task_id": fits[0]["id"]})
        else:
            unclear += 1
    return {**value, "simulations": kept}, unclear


@dataclass(frozen=True)
class Placed:
    """A row of the leaderboard."""

    score: PublishedScore
    user: str
    figures: tuple[float, ...]
    """pass^1 to pass^4 as they stand there, in percent."""
    whole: bool | None
    """Whether pass^1 is a whole number of the attempts that there should be; None where it is rounded too far."""


def leaderboard(repository: Repository) -> dict[str, list[Placed]]:
    """TAU2's leaderboard of text agents by domain, the highest pass^1 first, with those of single trials left out."""
    found: dict[str, list[Placed]] = {name: [] for name in SIZES}
    listed = json.loads(repository.read("HEAD", f"{BOARD}/manifest.json"))
    for name in [*listed["submissions"], *listed["legacy_submissions"]]:
        told = json.loads(repository.read("HEAD", f"{BOARD}/{name}/submission.json"))
        user = str(told.get("methodology", {}).get("user_simulator") or "not said")
        for domain, figures in (told.get("results") or {}).items():
            given = [(figures or {}).get(f"pass_{k}") for k in (1, 2, 3, 4)]
            if domain not in SIZES or any(g is None for g in given):
                continue
            score = PublishedScore(told["model_name"], SIZES[domain], 4, given[0] / 100, given[1] / 100)
            found[domain].append(Placed(score, user, tuple(given), _is_whole(given[0], SIZES[domain] * 4)))
    return {d: sorted(rows, key=lambda p: -p.score.first) for d, rows in found.items()}


def _is_whole(percent: float, attempts: int) -> bool | None:
    """Whether a share in percent is one of so many attempts, as far as its decimals tell."""
    text = repr(float(percent))
    decimals = len(text.partition(".")[2])
    slack = 0.5 * 10**-decimals * attempts / 100 if decimals < 6 else 1e-6
    count = percent * attempts / 100
    return None if slack >= 0.25 else abs(count - round(count)) <= slack + 1e-6
