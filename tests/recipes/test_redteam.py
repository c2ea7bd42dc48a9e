"""``muarl eval --red-team``: what it plays, what it writes, and that nothing changes where it is not asked for."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from muarl.audit.findings import read_findings
from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.environments.configure import places_of
from muarl.environments.registry import find
from muarl.recipes import evaluate, redteam
from muarl.rewards.traps import SAFE
from muarl.types.episode import read_episodes
from muarl.users.llm import LLMUserFactory
from muarl.users.redteam.kinds import GUIDELINES, KINDS
from muarl_worlds.tau.retail.audit import RETAIL
from support.redteam import COMMON, fooled, play, some


def config(tmp_path, *more):
    return load_config("cpu", [f"runs_dir={tmp_path}", "eval.agent=expert", "threads=1", *more])


def figures(folder):
    return json.loads((folder / "redteam.json").read_text(encoding="utf-8"))


def test_every_kind_is_reported_with_catastrophes_pass_k_and_baselines(tmp_path):
    folder = evaluate.run(config(tmp_path, "eval.red_team=[all]", "eval.red_team_tasks=2", "eval.trials=2"))
    found = figures(folder)
    assert tuple(found["kinds"]) == COMMON
    for part in (found["all"], *found["kinds"].values()):
        assert set(part["baselines"]) == {"do_nothing", "always_transfer"}
        assert 0 <= part["catastrophic"]["interval"][0] <= part["catastrophic"]["interval"][1] <= 1
        assert set(part["pass_hat"]) == {"1", "2"}
    assert found["all"]["episodes"] == found["planned"] == 2 * 2 * len(COMMON)
    table = (folder / "redteam.md").read_text(encoding="utf-8")
    assert all(f"| {name.replace('_', ' ')} |" in table for name in (*COMMON, "all"))
    assert "pass^2" in table and "pass^2" in (folder / "report.md").read_text(encoding="utf-8")
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["red_team"] == {"all": found["all"], "kinds": found["kinds"]}
    played = list(read_episodes(folder / "episodes" / "eval.jsonl"))
    assert all(SAFE in e.verdict.breakdown and e.tags["redteam"] in KINDS for e in played)
    assert all(where["redteam"] in KINDS for where, _ in read_findings(folder / "findings.jsonl"))


def test_where_nobody_can_be_transferred_doing_nothing_is_the_only_baseline():
    assert list(redteam.baselines_of(find("mcp-git").make_domain("tiny"))) == ["do_nothing"]
    assert list(redteam.baselines_of(find("hotel-generated").make_domain("tiny"))) == ["do_nothing", "always_transfer"]


def test_what_the_baselines_earn_is_safe_and_of_no_use(tmp_path):
    idle = config(tmp_path, "eval.red_team=[injection,angry]", "eval.red_team_tasks=4", "eval.agent=idle")
    folder = evaluate.run(idle)
    found = figures(folder)
    where = [w for w, _ in read_findings(folder / "findings.jsonl")]
    assert where and all(w["file"] == "eval" and w["redteam"] in ("injection", "angry") for w in where)
    assert found["all"]["catastrophic"]["value"] == 0.0
    assert found["all"]["success"]["value"] == found["all"]["baselines"]["do_nothing"]["value"] == 0.0


def test_a_killed_run_is_taken_up_again(tmp_path):
    chosen = config(tmp_path, "eval.red_team=[silent]", "eval.red_team_tasks=3", "eval.baseline=false")
    folder = evaluate.run(chosen)
    first, path = figures(folder), folder / "episodes" / "eval.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:1]), encoding="utf-8")
    again = evaluate.run(chosen.model_copy(update={"resume": folder}))
    assert again == folder
    assert figures(folder)["kinds"] == first["kinds"]
    assert first["kinds"]["silent"]["baselines"] == {}


def test_a_sprung_trap_counts_as_catastrophic_where_the_kind_is_about_safety():
    episodes, findings = [], {}
    for kind in ("injection", "pressure"):
        for task in some("retail", kind, 16):
            episode = play(task, fooled(task))
            episode.id = task.id
            episodes.append(episode)
            findings[episode.id] = redteam.trap_findings(episode)
    found = redteam.red_team_summary(episodes, findings, {}, {e.task_id: RETAIL for e in episodes})
    worst = found["kinds"]["injection"]
    assert worst["catastrophic"]["value"] == worst["trapped"]["value"] > 0
    assert found["kinds"]["pressure"]["catastrophic"]["value"] == 0 < found["kinds"]["pressure"]["trapped"]["value"]
    assert redteam.TRAP in redteam.red_team_table(found)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["domain.name=bfcl-generated"], "eval.red_team: bfcl-generated has no red-team tasks"),
        (["eval.split=base"], "eval.split"),
        (["eval.task_ids=[x]"], "task_ids"),
        (["eval.audit_judge=endpoint:m@http://127.0.0.1:9/v1"], "eval.audit_judge: .*rules alone"),
        (["eval.user_judge=endpoint:m@http://127.0.0.1:9/v1"], "eval.user_judge: .*rules alone"),
    ],
)
def test_what_cannot_be_played_is_told_before_there_is_a_folder(tmp_path, settings, told):
    with pytest.raises(ConfigError, match=told):
        evaluate.run(config(tmp_path, "eval.red_team=[angry]", *settings))
    assert not list(tmp_path.iterdir())


def test_a_model_plays_them_by_guidelines_of_their_own(tmp_path):
    asked = ["eval_user.kind=llm", "eval_user.endpoint.model=m", "eval.red_team=[angry]"]
    chosen = config(tmp_path, *asked)
    users = redteam.make_red_team_users(chosen.eval_user, places_of(chosen, measuring=True)).same
    assert isinstance(users, LLMUserFactory)
    assert "red-team guidelines" in users.name
    assert users(some("retail", "angry", 1)[0], seed=0).system.startswith(GUIDELINES.template[:40])
    named = config(tmp_path, *asked, "eval_user.guidelines=tau1")
    assert "tau1" in redteam.make_red_team_users(named.eval_user, places_of(named, measuring=True)).name


def test_the_command_line_takes_kinds_and_tasks_of_each(tmp_path):
    line = ["eval", "--agent", "expert", "--red-team", "impostor,off_topic", "--tasks", "3", "--dry-run"]
    shown = CliRunner().invoke(app, line).output
    assert "red_team:\n  - impostor\n  - off_topic" in shown.replace("    -", "  -")
    assert "  red_team_tasks: 3\n" in shown and "\n  tasks: 3\n" not in shown
    wrong = CliRunner().invoke(app, ["eval", "--agent", "expert", "--red-team", "friendly", "--dry-run"])
    assert wrong.exit_code != 0


def test_a_share_of_the_training_tasks_can_be_red_team_tasks():
    plain, mixed = (places_of(load_config("cpu", s)) for s in ([], ["domain.red_team_share=0.3"]))
    ordinary, tasks = plain.draw("train", 30, 2, 120), mixed.draw("train", 30, 2, 120)
    hostile = [n for n, t in enumerate(tasks) if "redteam" in t.tags]
    assert 4 <= len(hostile) <= 15
    assert all(t.id == o.id for n, (t, o) in enumerate(zip(tasks, ordinary, strict=True)) if n not in hostile)
    assert [t.id for t in mixed.draw("train", 10, 2, 130)] == [t.id for t in tasks[10:20]]
    assert not any("redteam" in t.tags for t in mixed.draw("validation", 20, 2, 0))
    measuring = places_of(load_config("cpu", ["domain.red_team_share=0.3"]), measuring=True)
    assert not any("redteam" in t.tags for t in measuring.draw("train", 20, 2, 0))
    with pytest.raises(ConfigError, match="red_team_share"):
        places_of(load_config("cpu", ["domain.name=bfcl-generated", "domain.red_team_share=0.3"]))
