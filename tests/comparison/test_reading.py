"""Results of every program in one table, and what is wrong with a file said clearly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl_tools.compare.pairing import pair
from muarl_tools.compare.reading import read, read_all
from muarl_tools.compare.rows import verdicts_of
from muarl_worlds.tau.tau2_results import Tau2Run, results_of
from support.compared import episode, outcomes, run_folder

# ── TAU2, TAU1 ───────────────────────────────────────────────────────────────────────────────────────────────────────


def tau2_run(*rows: tuple[str, int, str, float | None], **task: Any) -> dict[str, Any]:
    simulations = [
        {"id": f"s{n}", "task_id": t, "trial": trial, "seed": 50 + trial, "termination_reason": why, "messages": [],
         "reward_info": None if reward is None else {"reward": reward}}
        for n, (t, trial, why, reward) in enumerate(rows)
    ]  # fmt: skip
    names = dict.fromkeys(t for t, *_ in rows)
    return {
        "info": {
            "environment_info": {"domain_name": "retail"},
            "agent_info": {"implementation": "llm_agent", "llm": "model-a"},
            "user_info": {"implementation": "user_simulator", "llm": "model-u"},
        },
        "tasks": [{"id": name, "user_scenario": {"instructions": "x"}, **task} for name in names],
        "simulations": simulations,
    }


def test_tau2_as_its_own_metrics_count_it(tmp_path: Path) -> None:
    rows = tau2_run(
        ("1", 0, "user_stop", 1.0),
        ("1", 1, "max_steps", None),
        ("2", 0, "infrastructure_error", 0.0),
        ("2", 1, "agent_stop", 0.5),
        ("3", 0, "user_stop", None),
    )
    file = tmp_path / "published.json"
    file.write_text(json.dumps(rows, indent=1))
    found = read(file)
    assert outcomes(found) == [("1", 0, True), ("1", 1, False), ("2", 1, False)]
    assert [(x.task, x.why) for x in found.excluded] == [("2", "infrastructure_error"), ("3", "it has no reward")]
    assert (found.name, found.agent, found.user, found.domain) == ("published", "model-a", "model-u", "tau2-retail")
    assert [a.seed for a in found.attempts] == [50, 51, 51]
    folder = tmp_path / "as_folder"
    (folder / "simulations").mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps({**rows, "simulations": None}))
    for row in rows["simulations"]:
        (folder / "simulations" / f"{row['id']}.json").write_text(json.dumps(row))
    for path in (folder, folder / "results.json"):
        assert (read(path).name, outcomes(read(path))) == ("as_folder", outcomes(found))
    single = tmp_path / "single"
    single.mkdir()
    (single / "results.json").write_text(json.dumps(rows))
    assert read(single).name == "single"


def test_what_muarl_exports_to_tau2_is_read_as_the_run_itself(tmp_path: Path) -> None:
    played = [episode("a", 0, 1.0, seed=7), episode("a", 1, 0.0, seed=8), episode("b", 0, None, seed=7)]
    about = Tau2Run("retail", "", [{"id": "a"}], "m", "u", "2026-11-22T20:00:00+00:00", 200, 10, seeds=(7, 8))
    (tmp_path / "results.json").write_text(json.dumps(results_of(about, played)))
    found, own = read(tmp_path / "results.json"), read(run_folder(tmp_path / "run", played))
    assert outcomes(found) == outcomes(own)
    assert [x.task for x in found.excluded] == ["b"]


def test_tau1_trajectories(tmp_path: Path) -> None:
    said = [{"role": "system", "content": "# Retail agent policy"}, {"role": "user", "content": "Hi"}]
    rows = [
        {"task_id": 3, "trial": 0, "reward": 1.0, "info": {"task": {"instruction": "x", "actions": []}}, "traj": said},
        {"task_id": 3, "trial": 1, "reward": 0.0, "info": {}, "traj": said},
        {"task_id": 4, "trial": 0, "reward": 0.0, "info": {"error": "timed out"}, "traj": []},
    ]
    (tmp_path / "old.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    for name in ("old.json", "lines.jsonl"):
        found = read(tmp_path / name)
        assert outcomes(found) == [("test/3", 0, True), ("test/3", 1, False)]
        assert [x.why for x in found.excluded] == ["timed out"]
        assert set(found.fingerprints) == {"test/3"}


# ── BFCL, ACEBench, rows ─────────────────────────────────────────────────────────────────────────────────────────────


def score_file(path: Path, correct: int, total: int, failed: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"accuracy": correct / total, "correct_count": correct, "total_count": total}]
    lines += [{"id": name, "valid": False, "error": {}} for name in failed]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_bfcls_score_files_list_failures_only(tmp_path: Path) -> None:
    failed = ["multi_turn_base_3", "multi_turn_base_199"]
    file = score_file(tmp_path / "m" / "BFCL_v4_multi_turn_base_score.json", 198, 200, failed)
    found = read(file)
    assert (len(found.attempts), found.domain) == (200, "bfcl-v4")
    assert {a.task for a in found.attempts if not a.success} == set(failed)
    assert outcomes(read(tmp_path / "m")) == outcomes(found)
    with pytest.raises(DataError, match="198 of 200 correct and lists 1 failures"):
        read(score_file(tmp_path / "x" / file.name, 198, 200, failed[:1]))
    with pytest.raises(DataError, match="does not fit"):
        read(score_file(tmp_path / "x" / file.name, 199, 200, ["multi_turn_base_200"]))
    with pytest.raises(DataError, match="must hold the totals"):
        read(score_file(tmp_path / "x" / file.name, 5, 2, []))


def test_other_categories_need_their_result_file(tmp_path: Path) -> None:
    score = score_file(tmp_path / "m" / "BFCL_v4_live_simple_score.json", 1, 2, ["live_simple_1-1-0"])
    with pytest.raises(DataError, match="BFCL_v4_live_simple_result.json"):
        read(score)
    with pytest.raises(DataError, match="there is no such file"):
        read(tmp_path / "nothing")
    result = tmp_path / "m" / "BFCL_v4_live_simple_result.json"
    result.write_text('{"id": "live_simple_0-0-0", "result": ""}\n{"id": "live_simple_1-1-0", "result": ""}\n')
    assert outcomes(read(tmp_path / "m")) == [("live_simple_0-0-0", 0, True), ("live_simple_1-1-0", 0, False)]
    with pytest.raises(DataError, match="multi-turn categories only"):
        read(result)
    score_file(tmp_path / "n" / "BFCL_v4_live_simple_score.json", 2, 2, [])
    with pytest.raises(DataError, match=r"several models in it \(m, n\)"):
        read(tmp_path)


def test_acebenchs_score_files_number_their_failures(tmp_path: Path) -> None:
    folder = tmp_path / "score_en" / "model"
    score_file(folder / "data_agent_multi_turn_score.json", 28, 30, [0, 29])
    score_file(folder / "data_agent_multi_step_score.json", 20, 20, [])
    found = read(folder)
    assert {a.task for a in found.attempts if not a.success} == {"agent_multi_turn_0", "agent_multi_turn_29"}
    assert len(found.attempts) == 50


@pytest.mark.data
def test_result_files_are_scored_by_the_benchmarks_rules(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from muarl_worlds import install
    from muarl_worlds.bfcl import official as bfcl

    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "data"))
    install.add("bfcl", shared_data / "bfcl")
    # BFCL drops arguments without a name when it decodes, so not every gold answer passes as a message.
    named = [t for t in bfcl.tasks("v4", "base") if all("=" in c for turn in bfcl.ground_truth(t) for c in turn)]
    good, bad = named[:2]
    rows = [{"id": good.id, "result": [[f"[{', '.join(turn)}]"] for turn in bfcl.ground_truth(good)]}]
    rows.append({"id": bad.id, "result": [[]]})
    file = tmp_path / "BFCL_v4_multi_turn_base_result.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert outcomes(read(file)) == [(good.id, 0, True), (bad.id, 0, False)]


def test_rows_of_anybody(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows: list[dict[str, Any]] = [
        {"task_id": 1, "success": True, "agent": "a"},
        {"task_id": 1, "success": False},
        {"id": "x", "valid": True},
        {"task_id": "y", "reward": 0.9999999},
        {"task_id": "z", "reward": None, "error": "no answer"},
        {"task_id": "z", "reward": 1, "excluded": True},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read(file)
    assert outcomes(found) == [("1", 0, True), ("1", 1, False), ("x", 0, True), ("y", 0, True)]
    assert [x.why for x in found.excluded] == ["no answer", "excluded"]
    assert found.agent == "a"
    judged = [{"task_id": "t", "reward": r, "verdict": v} for r, v in ((1, 0), (0, 1), (1, 0), (1, 1), (0, 0))]
    file.write_text("".join(json.dumps(row) + "\n" for row in judged))
    assert outcomes(read(file)) == [("t", 0, True), ("t", 1, True), ("t", 2, False)]
    assert verdicts_of(file) == {"t": [[True, False], [True, True]]}


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("word", [lambda good: good, lambda good: "solved" if good else "failed", lambda good: None])
def test_a_column_verdict_of_somebody_else_hides_no_row(tmp_path: Path, word: Any) -> None:
    file = written(
        tmp_path / "rows.jsonl", *({"task_id": n, "success": n < 8, "verdict": word(n < 8)} for n in range(10))
    )
    found = read(file)
    assert [a.success for a in found.attempts] == [True] * 8 + [False] * 2
    assert (found.left_out, verdicts_of(file)) == ((), {})


def test_further_verdicts_are_left_out_by_number_and_others_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    judged = [{"task_id": t, "trial": n, "reward": 1.0, "verdict": v} for t in "ab" for n in (0, 1) for v in range(3)]
    (told,) = read(written(file, *judged)).left_out
    assert told == "8 lines are further verdicts on conversations that count once, by the first"
    labels = [{"task_id": n, "success": n < 8, "verdict": int(n < 8)} for n in range(10)]
    with pytest.raises(DataError, match=r"line 1: verdict 1 is on a conversation without a verdict 0: .* call it"):
        read(written(file, *labels))
    with pytest.raises(DataError, match=r"line 13: verdict is 'good', and a whole number on other lines"):
        read(written(file, *judged, {"task_id": "c", "trial": 0, "reward": 1.0, "verdict": "good"}))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_reward_that_is_no_number_is_no_failure(tmp_path: Path, number: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f'{{"task_id": "a", "reward": {number}}}\n{{"task_id": "b", "reward": 1}}\n')
    found = read(file)
    assert outcomes(found) == [("b", 0, True)]
    assert "which is no number" in found.excluded[0].why and found.excluded[0].task == "a"
    rows = tau2_run(("1", 0, "user_stop", 0.25), ("2", 0, "user_stop", 1.0))
    (tmp_path / "tau2.json").write_text(json.dumps(rows).replace("0.25", number))
    assert (outcomes(read(tmp_path / "tau2.json")), len(read(tmp_path / "tau2.json").excluded)) == ([("2", 0, True)], 1)


def test_rewards_of_another_scale_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    for high in (100.0, 2, 10**400):
        with pytest.raises(DataError, match=r"rows.jsonl, line 2: reward: .* they go from 0 to 1"):
            read(written(file, {"task_id": "a", "reward": 0}, {"task_id": "b", "reward": high}))
    assert outcomes(read(written(file, {"task_id": "a", "reward": -(10**400)}))) == [("a", 0, False)], "a penalty"


def test_rewards_that_no_number_can_hold_are_refused_by_place(tmp_path: Path) -> None:
    large = "1" + 400 * "0"
    text = json.dumps(tau2_run(("1", 0, "user_stop", 0.25))).replace("0.25", large)
    (tmp_path / "tau2.json").write_text(text)
    traj = [{"role": "user", "content": "Hi"}]
    (tmp_path / "tau1.json").write_text(f'[{{"task_id": 3, "reward": {large}, "traj": {json.dumps(traj)}}}]')
    for name, place in (("tau2.json", "reward_info.reward"), ("tau1.json", "entry 0: reward")):
        with pytest.raises(DataError, match=rf"{name}.*{place}: a whole number of more than 300 digits is too large"):
            read(tmp_path / name)


def test_copies_of_an_attempt_are_no_trials(tmp_path: Path) -> None:
    one = {"task_id": "a", "trial": 0, "seed": 5, "success": True}
    other = {**one, "task_id": "b"}
    file = tmp_path / "rows.jsonl"
    with pytest.raises(DataError, match="task a, trial 0, seed 5 stands there 3 times, and so do 1 other attempts"):
        read(written(file, one, other, one, other, one))
    assert len(read(written(file, one, {**one, "trial": 1}, {**one, "seed": 6, "trial": 2})).attempts) == 3
    (tmp_path / "tau2.json").write_text(json.dumps(tau2_run(*[("1", 0, "user_stop", 1.0)] * 2)))
    with pytest.raises(DataError, match="task 1, trial 0, seed 50 stands there 2 times"):
        read(tmp_path / "tau2.json")
    unnumbered = {"task_id": "a", "seed": 5, "success": True}
    assert "2 of 3 lines have task and seed of another" in read(written(file, *[unnumbered] * 3)).notes[0]


def test_success_beside_another_reward_is_told(tmp_path: Path) -> None:
    lines = [{"task_id": n, "success": True, "reward": float(n > 1)} for n in range(5)]
    found = read(written(tmp_path / "rows.jsonl", *lines))
    assert found.notes == (
        "2 of 5 lines say one thing as success and another as reward: success counts (a reward is a success if it is "
        "1).",
    )
    assert pair([found]).warnings == (f"{found.name}: {found.notes[0]}",)


def test_a_task_of_several_domains_has_one_name_wherever_its_lines_stand(tmp_path: Path) -> None:
    lines = [{"task_id": 1, "domain": name, "success": True} for name in ("retail", "airline", "retail")]
    found = read(written(tmp_path / "rows.jsonl", *lines))
    assert outcomes(found) == [("retail:1", 0, True), ("airline:1", 0, True), ("retail:1", 1, True)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("no json", "is not JSON"),
        ("[1, 2]", "no results that muarl can read. It reads a run or evaluation of muarl"),
        ('"text"', "no results that muarl can read"),
        ('{"task_id": "a"}\n', "line 1: it lacks the field success"),
        ('{"success": true}\n', "line 1: it lacks the field task_id"),
        ('{"task_id": "a", "success": "yes"}\n', "success must be true, false, a number or null"),
        ('{"task_id": "a", "success": true, "trial": "x"}\n', "trial must be a whole number"),
        ('{"task_id": "a", "success": true, "trial": 1}\n{"task_id": "a", "success": true}\n', "some have none"),
        ('{"task_id": "a", "success": true}\nnot json\n', "line 2: not JSON"),
        ('{"simulations": [], "tasks": []}', "info must be an object"),
        ("[" * 5000, "is not JSON: nested deeper"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)
    with pytest.raises(DataError, match=says) as problem:
        read(file)
    assert "file.json" in str(problem.value)


@settings(max_examples=40)
@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda t: json.dumps({"task_id": t, "turns": 1}).encode()))
def test_no_file_is_more_than_an_error(raw: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.json"
        file.write_bytes(raw)
        try:
            read(file)
        except MuarlError:
            pass


# ── names and pairs ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_names_are_given_or_told_apart_by_folders(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.jsonl").write_text('{"task_id": "a", "success": true}\n')
    one, two = (str(tmp_path / name / "rows.jsonl") for name in ("one", "two"))
    assert [r.name for r in read_all([one, two])] == ["one", "two"]
    assert [r.name for r in read_all([f"base={one}", two])] == ["base", "two"]
    assert len({r.name for r in read_all([one, one])}) == 2
    with pytest.raises(ConfigError, match="two runs are called 'x'"):
        read_all([f"x={one}", f"x={two}"])
    with pytest.raises(ConfigError, match="after the name comes the path"):
        read_all(["x="])
