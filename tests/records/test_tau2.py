"""TAU2's results.json: read back here, and by TAU2's own models, metrics, viewer and leaderboard check."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import GREETING, Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_worlds import data
from muarl_worlds.tau.tau2_benchmark import task_rows
from muarl_worlds.tau.tau2_results import TERMINATIONS, WRITTEN, Tau2Run, is_results, results, results_of
from support.episodes import episodes
from support.other_side import TAU2, ask

RUN = Tau2Run("retail", "Be kind.", [{"id": "task-1"}], "m", "u", "2026-11-22T20:00:00+00:00", 200, 10, seeds=(7, 8))


@given(episodes())
def test_what_was_said_and_done_is_read_back(episode: Episode) -> None:
    made = json.loads(json.dumps(results_of(RUN, [episode])))
    assert is_results(made)
    back = results(made, Path("results.json"))
    (simulation,) = back.simulations
    assert (back.domain, back.agent, back.user, back.solo) == ("retail", "m", "u", False)
    assert simulation.reward == (None if episode.verdict is None else episode.verdict.reward)
    assert simulation.termination_reason == WRITTEN[episode.stop]
    for read, message in zip(simulation.messages, episode.messages, strict=True):
        calls = tuple(replace(c, invalid=None, raw=None) for c in message.tool_calls)
        assert (read.role, read.content, read.tool_calls) == (message.role, message.content, calls)
        assert (read.tool_call_id or "") == (message.tool_call_id or "")
        assert (read.error, read.requestor) == (message.error, message.requestor)


def test_every_end_has_a_name_there() -> None:
    assert set(WRITTEN) == set(StopReason)
    assert set(WRITTEN.values()) <= set(TERMINATIONS)


def test_trials_are_told_by_their_seeds() -> None:
    one = Episode("a", "task-1", "retail", [Turn(Message("user", "Hi"), 1.5)], StopReason.USER_STOP, 8)
    made = results_of(RUN, [one, replace(one, id="b", seed=7)])
    assert [(s["trial"], s["seed"]) for s in made["simulations"]] == [(1, 8), (0, 7)]
    assert made["info"]["num_trials"] == 2
    assert made["simulations"][0]["end_time"] == "2026-11-22T20:00:01.500000+00:00"
    assert len({s["id"] for s in made["simulations"]}) == 2


CHECK = """
import sys
from tau2.data_model.simulation import Results
from tau2.metrics.agent_metrics import compute_metrics
from tau2.scripts.leaderboard.verify_trajectories_public import check_format, check_num_trials, check_tasks
from tau2.scripts.view_simulations import display_simulation_list
from tau2.utils.display import ConsoleDisplay
results, sound, why = check_format(sys.argv[1])
assert sound, why
for sound, why in (check_tasks(results), check_num_trials(results)):
    assert sound, why
display_simulation_list(results)
ConsoleDisplay.display_simulation(results.simulations[0], show_details=True)
print("mean reward", compute_metrics(results).avg_reward)
"""


@pytest.mark.data
def test_the_leaderboard_check_and_the_viewer_take_an_evaluation(install_data: Any, tmp_path: Path) -> None:
    made = evaluation(install_data, tmp_path)
    told = json.loads(made.read_text())
    assert told["info"]["agent_info"]["llm_args"] == {"temperature": 0.0}, "nothing of what else requests carried"
    assert "sk-secret" not in made.read_text()
    assert "mean reward 0.5" in ask(TAU2, "-c", CHECK, made)


def evaluation(install_data: Any, tmp_path: Path) -> Path:
    """The results file of a run over all of airline's tasks, of which every second one succeeds."""
    data.manifest.cache_clear()
    install_data("tau2")
    call = ToolCall("c1", "get_user_details", {"user_id": "mia_li_3668"})
    turns = [
        Turn(Message("assistant", GREETING)),
        Turn(Message("user", "Hi"), 0.5),
        Turn(Message("assistant", None, (call,)), 0.5),
        Turn(Message("tool", "Error: User mia_li_3668 not found", tool_call_id="c1", error=True)),
        Turn(Message("user", "###STOP###"), 0.5),
    ]
    played = [
        Episode(f"evaluation/{row['id']}#0", row["id"], "airline", turns, StopReason.USER_STOP, verdict=Verdict(
            float(number % 2), {"DB": float(number % 2), "COMMUNICATE": 1.0}))
        for number, row in enumerate(task_rows("airline"))
    ]  # fmt: skip
    run = RunDirectory(tmp_path, "r")
    endpoint: dict[str, Any] = {"model": "m", "temperature": 0.0, "extra": {"key": "sk-secret"}}
    run.write_config({"domain": {"name": "tau2-airline"}, "eval": {"endpoint": endpoint, "seed": 300}})
    run.write_episodes("eval", played)
    result = CliRunner().invoke(app, ["export", str(run.path), "--as", "tau2", "--out", str(tmp_path / "results.json")])
    assert result.exit_code == 0, result.output
    return tmp_path / "results.json"


def test_a_run_that_is_no_evaluation_on_tau2_is_refused(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, "r")
    run.write_config({"domain": {"name": "retail-generated"}})
    run.write_episodes("eval", [Episode("e", "t", "retail", [], StopReason.USER_STOP)])
    out = tmp_path / "results.json"
    result = CliRunner().invoke(app, ["export", str(run.path), "--as", "tau2", "--out", str(out)])
    assert result.exit_code == 2 and "this run is in retail-generated" in " ".join(result.output.split())
    assert not out.exists()
