"""benches/referee.py: files of a git directory scored again, joined where their ids are wrong, and its page."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl_worlds.tau import tau2_benchmark
from support.page_examples import module_of

BOARD = "web/leaderboard/public/submissions"
FIGURES = {
    "Good": (90.0, 85.0, 82.0, 80.0),
    "Odd": (64.2, 58.9, 55.0, 52.1),
    "Alike": (64.2, 58.9, 55.0, 52.1),
}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    benches = Path(__file__).parents[1] / "benches"
    monkeypatch.syspath_prepend(str(benches))
    return module_of(benches / "referee.py")


def commit(folder: Path, files: dict[str, Any]) -> Path:
    """A git directory with these files as JSON."""
    for name, value in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "files")):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return folder / ".git"


def action(number: int, name: str = "cancel_pending_order") -> dict[str, Any]:
    return {"action_id": f"{number}_0", "name": name, "arguments": {"order_id": f"#W{number}"}}


def run(ids: list[str | None]) -> dict[str, Any]:
    """Three tasks with gold actions of their own, and simulations that were graded by them, under these task ids."""
    tasks = [{"id": str(n), "evaluation_criteria": {"actions": [action(n)]}} for n in range(3)]
    simulations = [
        {"task_id": name, "reward_info": {"reward": 1.0, "action_checks": [{"action": action(n)}]}}
        for n, name in enumerate(ids)
    ]
    return {"info": {}, "tasks": tasks, "simulations": simulations}


def test_simulations_under_wrong_ids_are_joined_by_what_they_were_graded_by(bench: Any) -> None:
    right, wrong = run(["0", "1", "2"]), run(["2", "1", None])
    assert bench.contradicted(right) == []
    assert [s["task_id"] for s in bench.contradicted(wrong)] == ["2", None]
    joined, unclear = bench.rejoined(wrong)
    assert [s["task_id"] for s in joined["simulations"]] == ["0", "1", "2"] and unclear == 0
    twins = run(["1", "0", "2"])
    twins["tasks"][1]["evaluation_criteria"]["actions"] = [action(0)]
    kept, unclear = bench.rejoined(twins)
    assert [s["task_id"] for s in kept["simulations"]] == ["2"] and unclear == 2


@pytest.fixture
def board(bench: Any, tmp_path: Path) -> Any:
    files: dict[str, Any] = {f"{BOARD}/manifest.json": {"submissions": list(FIGURES), "legacy_submissions": ["Single"]}}
    for name, given in FIGURES.items():
        results = {"airline": {f"pass_{k}": v for k, v in enumerate(given, 1)}, "retail": None}
        told = {"model_name": name, "results": results, "methodology": {"user_simulator": "gpt-4.1"}}
        files[f"{BOARD}/{name}/submission.json"] = told
    files[f"{BOARD}/Single/submission.json"] = {"model_name": "Single", "results": {"airline": {"pass_1": 70.0}}}
    return bench.leaderboard(bench.Repository("tau2", commit(tmp_path, files)))


def test_the_leaderboard_is_read_with_its_noise(bench: Any, board: Any) -> None:
    rows = board["airline"]
    assert [r.score.name for r in rows] == ["Good", "Odd", "Alike"] and board["retail"] == []
    assert [r.whole for r in rows] == [True, False, False]
    assert rows[0].score.tasks == 50 and rows[0].user == "gpt-4.1"


def test_the_page_says_which_ranks_hold(bench: Any, board: Any) -> None:
    from referee_page import details, page  # type: ignore[import-not-found]

    missing = [(bench.Source("gone", "abc1234", "results/gone.json"), "it is not there")]
    front = page([], [], board, [("BFCL: verdicts", 10, 10)])
    assert "of 2 pairs of neighbours 1 can be told apart" in front and "| BFCL: verdicts | 10 | 10 |" in front
    text = details([], [], missing, board, {"o/r": "abcdef0123"})
    assert "| 1 | Good | gpt-4.1 | 90.0 |" in text and "| 3 | Alike | gpt-4.1 | 64.2 |" in text
    assert "has this pass^1" in text and "Odd and Alike" in text
    assert "`results/gone.json`" in text
    assert max(len(line) for line in (front + text).splitlines() if not line.startswith("|")) <= 120


def test_agents_that_send_objects_are_told_from_those_that_speak(bench: Any) -> None:
    assert bench.is_object('{"message": "Yes?"}')
    assert not any(map(bench.is_object, ("Yes?", "[1]", "{yes", '"yes"')))


@pytest.mark.data
def test_a_published_file_is_scored_audited_and_compared(
    bench: Any, install_data: Callable[[str], Path], oracle_talks: list[dict[str, Any]], tmp_path: Path
) -> None:
    from referee_page import details, page

    install_data("tau2")
    rows = tau2_benchmark.task_rows("airline")
    talks = [t for t in oracle_talks if t["domain"] == "airline"]

    def simulations(shift: int, stop: str = "user_stop") -> list[dict[str, Any]]:
        """Gold conversations of all tasks, under the ids of the tasks that many places further on."""
        found = []
        for n, talk in enumerate(talks):
            gold = (next(r for r in rows if r["id"] == talk["id"])["evaluation_criteria"] or {}).get("actions") or []
            found.append(
                {
                    "id": f"s{n}", "trial": 0, "task_id": talks[(n + shift) % len(talks)]["id"],
                    "termination_reason": stop, "messages": talk["messages"],
                    "reward_info": {
                        "reward": float(stop == "user_stop"), "action_checks": [{"action": a} for a in gold],
                        "nl_assertions": [
                            {"nl_assertion": text}
                            for r in rows if r["id"] == talk["id"]
                            for text in r["evaluation_criteria"].get("nl_assertions") or []
                        ],
                    },
                }
            )  # fmt: skip
        return found

    info = {"environment_info": {"domain_name": "airline"}, "agent_info": {"implementation": "llm_agent", "llm": "m"}}
    files = {
        "good.json": {"info": info, "tasks": rows, "simulations": simulations(0)},
        "shifted.json": {"info": info, "tasks": rows, "simulations": simulations(1)},
        "bare.json": simulations(0, "max_steps"),
        f"{BOARD}/manifest.json": {"submissions": [], "legacy_submissions": []},
    }
    repository = bench.Repository(bench.TAU2, commit(tmp_path / "repository", files))
    found = {}
    for name in ("good", "shifted", "bare"):
        source = bench.Source(name, "HEAD", f"{name}.json")
        folder = tmp_path / name
        folder.mkdir()
        found[name] = bench.score_file(source, repository.read("HEAD", source.path), folder)
    good, shifted, bare = found.values()
    assert good.recorded == good.rewarded == 50 and good.score.value == 1.0 and good.as_published is None
    assert good.nothing == 0.46 and good.prose and good.audit.episodes == 50
    assert shifted.as_published < 0.6 and shifted.score.value == 1.0 and "contradict" in shifted.notes[0]
    assert bare.score.value == 0.0 and "installed ones" in bare.notes[0]
    pairs = bench.neighbours([good, bare])
    assert [(p.first, p.second, p.tasks, p.difference) for p in pairs] == [("good", "bare", 50, 1.0)]
    assert pairs[0].p < 1e-6
    text = page([good, bare], pairs, {}, []) + details([good, bare], pairs, [], {}, {bench.TAU2: repository.head})
    assert "| good | 50 x 1 | 100.0 | 100.0 | 50 of 50 | 46.0 |" in text
    assert "| good | bare | 50 | +100.0 |" in text and "holds" in text and "**Not above doing nothing**" in text


@pytest.fixture
def oracle_talks(shared_data: Path) -> list[dict[str, Any]]:
    text = (shared_data / "oracle" / "tau2_gold_trajectories.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_what_is_not_there_is_named(bench: Any, tmp_path: Path) -> None:
    repository = bench.Repository(bench.TAU2, commit(tmp_path, {"data/tau2/results/final/a.json": {}}))
    names = [s.path for s in bench.sources({bench.TAU2: repository})]
    assert names[-1] == "data/tau2/results/final/a.json" and len(names) == len(bench.FILES) + 1
    _, missing = bench.score_files({})
    assert [source for source, _ in missing] == list(bench.FILES)
    assert all("no git directory" in why for _, why in missing)
