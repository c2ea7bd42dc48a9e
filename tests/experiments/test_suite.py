"""``muarl eval --suite``: the paper's benchmarks in one go, one table, and a way to go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import MuarlError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.pages.table import to_markdown
from muarl_tools.experiments import suite
from muarl_worlds import data, install
from support.eval_servers import brief, cast
from support.fake_openai import FakeOpenAI, text

FIVE = ["tau2-retail", "tau2-airline", "tau2-telecom", "bfcl-v3", "acebench-en"]


@pytest.fixture(scope="module")
def installed(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    data.manifest.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUARL_DATA", str(folder))
        for name in ("tau2", "bfcl", "acebench"):
            install.add(name, shared_data / name)
    return folder


@pytest.fixture
def server(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key")
    with FakeOpenAI(cast(agent=lambda body: text("Is there anything else?"), user=brief)) as fake:
        yield fake


@pytest.fixture
def evaluate(server: FakeOpenAI, tmp_path: Path) -> Callable[..., Any]:
    def run(*arguments: str) -> Any:
        sides = ["--agent", f"endpoint:agent@{server.url}", "--user", f"endpoint:user@{server.url}"]
        own = [] if "--resume" in arguments else [*sides, f"runs_dir={tmp_path}", "threads=1"]
        return CliRunner().invoke(app, ["eval", *arguments, *own])

    return run


def one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Suites of two benchmarks."""
    monkeypatch.setitem(suite.SUITES, "paper", (suite.TAU2[0], suite.TAU2[2], suite.BFCL))  # type: ignore[index]


def test_the_paper_s_table_has_its_five_columns() -> None:
    assert [part.domain for part in suite.parts_of("paper")] == FIVE
    assert {part.domain for part in suite.parts_of("paper-tau1")} == {*FIVE, "tau1-retail", "tau1-airline"}


def summary(success: float, **changes: Any) -> dict[str, Any]:
    block = {"success": success, "interval": [0.1, 0.9], "pass_hat": {"1": {"value": success}}, "episodes": 4}
    found = {"evaluation": block, "completion": None, "do_nothing": 0.05, "benchmark": {"figures": {}}, "planned": 4}
    found |= {"ended": "complete", "excluded_by": {}, "trained_on_benchmark": False, "cost": {"total": 1.5}}
    return found | changes


def test_each_benchmark_is_scored_by_its_own_figure_with_the_floor_beside_it() -> None:
    given = {
        "tau2-retail": summary(0.5, ended="out_of_budget", planned=8),
        "tau2-telecom": summary(0.25, completion=0.6),
        "bfcl-v3": summary(0.4, benchmark={"figures": {"overall": 0.35, "base": 0.5}}),
        "acebench-en": summary(0.9, benchmark={"figures": {"agent": 0.8}}, trained_on_benchmark=True),
    }
    rows = {(r["benchmark"], r["metric"]): r for r in suite.rows_of("paper", given)}
    assert rows["TAU2 retail", "success"]["score"] == 0.5
    assert rows["TAU2 retail", "success"]["note"] == "out of budget"
    assert rows["TAU2 airline", "success"]["note"] == "not played" and rows["TAU2 airline", "success"]["score"] is None
    assert rows["TAU2 telecom", "criteria met"]["score"] == 0.6
    assert rows["BFCL-V3 multi-turn", "mean of the four categories"]["score"] == 0.35, "not the mean of all episodes"
    ace = rows["ACEBench agent", "end-to-end, mean of the two categories"]
    assert (ace["score"], ace["note"], ace["do_nothing"]) == (0.8, "trained on it", 0.05)
    share = {"value": 0.3, "interval": [0.2, 0.4], "n": 4}
    given["tau2-airline"] = summary(0.5)
    given["tau2-airline"]["evaluation"]["success_without_violation"] = share
    checked = next(r for r in suite.rows_of("paper", given) if r["benchmark"] == "TAU2 airline")
    assert (checked["without_violation"], checked["interval_without_violation"]) == (0.3, (0.2, 0.4))
    shown = suite.table_of([rows["TAU2 retail", "success"], checked])
    head, airline = [column.head for column in shown.columns], shown.rows[1]
    assert airline[head.index("without violation, %")] == "30.0" and "20.0 to 40.0" in airline
    first = suite.table_of(list(rows.values())).rows[0]
    assert "not checked" in first and "4 of 8" in first and "do nothing, %" in head


def test_pass_hat_of_some_tasks_alone_says_of_how_many() -> None:
    hats = {"1": {"value": 0.75, "n": 10}, "3": {"value": 0.6, "n": 10}, "4": {"value": 1.0, "n": 1}}
    found = summary(0.75)
    found["evaluation"]["pass_hat"] = hats
    row = next(iter(suite.rows_of("paper", {"tau2-retail": found})))
    assert row["pass_hat_tasks"] == {"1": 10, "3": 10, "4": 1}
    text = to_markdown(suite.table_of([row, next(iter(suite.rows_of("paper", {"tau2-retail": summary(0.5)})))]))
    assert "| 60.0 | 100.0 (1 of 10 tasks) |" in text and text.count(" tasks)") == 1


def test_all_that_is_missing_is_told_before_anything_is_asked(
    evaluate: Callable[..., Any], server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "none"))
    result = evaluate("--suite", "paper")
    assert result.exit_code == 2
    for name in ("tau2", "bfcl", "acebench"):
        assert f"muarl data add {name}" in result.stderr and result.stderr.count(f"muarl data fetch {name}`") == 1
    assert not server.bodies and not list(tmp_path.glob("suite-*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--suite", "papre"], "no suite 'papre'; there are paper, paper-tau1"),
        (["--suite", "paper", "--split", "train"], "--split applies to one benchmark"),
        (["tau2-retail", "--suite", "paper"], "selects the benchmarks itself"),
    ],
)
def test_what_a_suite_cannot_do_is_told(evaluate: Callable[..., Any], arguments: list[str], words: str) -> None:
    result = evaluate(*arguments)
    assert result.exit_code == 2 and words in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "levels"),
    [
        ([], []),
        (["eval.harder_users=[hard]"], ["hard"]),
        (["--config", "cpu"], ["typical", "hard"]),
    ],
)
def test_benchmarks_are_played_with_their_own_users_alone_unless_others_are_asked_for(
    evaluate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, arguments: list[str], levels: list[str]
) -> None:
    checked: list[RunConfig] = []
    monkeypatch.setattr(suite, "check", lambda configs: checked.extend(configs) or ())
    result = evaluate("--suite", "paper", "--dry-run", *arguments)
    assert result.exit_code == 0, result.output
    assert [(one.domain.name, list(one.eval.harder_users)) for one in checked] == [(name, levels) for name in FIVE]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["domain.name=bfcl-generated", "eval_user.traits=hard"], "bfcl-generated: eval_user.traits: the rule-based"),
        (["eval_user.kind=sampled", "eval_user.checkpoint=/no/user"], "eval_user.checkpoint: /no/user: no such"),
        (
            ["domain.name=telecom-generated", "eval_user.kind=sampled", "eval_user.checkpoint=base"],
            "telecom-generated: domain.name: users of telecom-generated have tools of their own",
        ),
        (["eval.agent=expert", "eval.guard=true"], "retail-generated: eval.guard needs agent endpoint, not expert"),
    ],
)
def test_what_a_later_benchmark_would_be_refused_for_is_told_before_the_first(
    server: FakeOpenAI, settings: list[str], words: str
) -> None:
    agent = ["eval.agent=endpoint", "eval.endpoint.model=agent", f"eval.endpoint.base_url={server.url}"]
    few = ["eval.tasks=2", *agent]
    good = load_config("cpu", few)
    assert suite.check([good]) == ["retail-generated: 2 tasks x 4 trial(s), 8 conversations"]
    with pytest.raises(MuarlError, match=words):
        suite.check([good, load_config("cpu", [*few, *settings])])
    assert not server.bodies


@pytest.mark.data
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--guard"], "bfcl-v3: eval.guard: bfcl-v3 declares no audit rules about calls"),
        (["eval_user.traits=hard"], "bfcl-v3: eval_user.traits: bfcl-v3 has users of its own, who have no traits"),
        (
            ["eval_user.kind=sampled", "eval_user.checkpoint=base"],
            "tau2-telecom: domain.name: users of tau2-telecom have tools of their own",
        ),
    ],
)
def test_what_one_of_the_paper_s_benchmarks_cannot_have_is_told_by_a_dry_run(
    installed: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.setenv("MUARL_DATA", str(installed))
    asked = ["--suite", "paper", "--dry-run", "--agent", f"endpoint:agent@{server.url}"]
    user = [] if "eval_user.kind=sampled" in arguments else ["--user", f"endpoint:user@{server.url}"]
    result = CliRunner().invoke(app, ["eval", *asked, *user, *arguments])
    assert result.exit_code == 2 and words in " ".join(result.stderr.split())
    assert not server.bodies


@pytest.mark.data
def test_a_suite_is_played_stopped_and_finished(
    evaluate: Callable[..., Any],
    server: FakeOpenAI,
    installed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MUARL_DATA", str(installed))
    one_each(monkeypatch)
    bound = ["--max-tokens", "40", "-j", "1"]
    result = evaluate("--suite", "paper", "--tasks", "2", "--trials", "2", "--dry-run")
    assert result.exit_code == 0 and "tau2-retail: 2 tasks x 2 trial(s), 4 conversations" in result.stderr
    assert not server.bodies
    result = evaluate("--suite", "paper", "--tasks", "2", "--trials", "2", *bound)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "suite-paper"
    assert f"muarl eval --resume {folder}" in result.stderr.replace("\n", "")
    assert not (folder / "bfcl-v3").exists(), "what is spent is spent for all of them"
    before = len(server.bodies)
    result = evaluate("--resume", str(folder), "--max-tokens", "100000")
    assert result.exit_code == 0, result.output
    found = json.loads((folder / "summary.json").read_text())
    rows = {row["benchmark"] + row["metric"]: row for row in found["rows"]}
    assert rows["TAU2 retailsuccess"]["episodes"] == rows["TAU2 retailsuccess"]["planned"] == 4
    assert rows["TAU2 retailsuccess"]["pass_hat"].keys() == {"1", "2"}
    assert rows["TAU2 retailsuccess"]["do_nothing"] is not None and "TAU2 telecomcriteria met" in rows
    assert rows["BFCL-V3 multi-turnmean of the four categories"]["episodes"] == 4
    assert "| TAU2 telecom | success |" in (folder / "report.md").read_text()
    played = len(server.bodies)
    assert played > before
    again = evaluate("--resume", str(folder))
    assert again.exit_code == 0 and len(server.bodies) == played, "what is finished is not played again"
    assert "Not complete" not in again.output, "a mean that needs tasks of every category is no reason to go on"
    assert "not every category was played" in (folder / "report.md").read_text()
    refused = evaluate("--resume", str(folder), "--trials", "4")
    assert refused.exit_code == 2 and "eval.trials" in refused.stderr


@pytest.mark.data
def test_a_checkpoint_without_room_is_told_with_the_benchmark(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUARL_DATA", str(installed))
    arguments = ["--suite", "paper", "--agent", "base", "--user", "endpoint:user@http://127.0.0.1:9/v1"]
    result = CliRunner().invoke(app, ["eval", *arguments, f"runs_dir={tmp_path}"])
    assert result.exit_code == 2 and "tau2-retail: model.max_context" in result.stderr.replace("\n", " ")
    assert not list(tmp_path.iterdir())
