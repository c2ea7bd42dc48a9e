"""``muarl eval`` as a whole: kept and resumed runs, budgets, failing endpoints, and what users did wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from muarl.observe.rundir import RunDirectory
from muarl.types.episode import StopReason
from support.eval_servers import brief, cast, digest, flaky, moody, polite
from support.evaluating import models, rows, stop, summary
from support.fake_openai import Answer, FakeOpenAI, completion, status, text

Muarl = Callable[..., Any]
KEY = "sk-a-key"


@pytest.fixture(autouse=True)
def quick(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between tries, and a key in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(cast(agent=polite, user=brief)) as fake:
        yield fake


def test_how_many_conversations_there_will_be_is_said_before_the_first(muarl: Muarl, tmp_path: Path) -> None:
    for more, planned in ((["--trials", "3"], True), (["--trials", "1"], False)):
        result = muarl("eval", "--agent", "idle", "--tasks", "2", *more, "--name", f"trials-{more[1]}")
        assert result.exit_code == 0, result.output
        said = result.stderr.replace("\n", " ")
        assert ("6 conversations: each of 2 tasks 3 times (--trials or eval.trials)." in said) == planned
        assert not planned or said.index("6 conversations") < said.index("evaluation of")


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("bound", "end"),
    [
        (["--max-tokens", "200"], "token_budget"),
        pytest.param(["--max-cost", "0.0002"], "cost_budget", marks=pytest.mark.slow),
    ],
)
def test_a_spent_budget_ends_the_run_with_what_is_finished(
    muarl: Muarl, server: FakeOpenAI, tmp_path: Path, bound: list[str], end: str
) -> None:
    options = [*models(server), "--tasks", "20", "--trials", "1", "--price", "agent=1/1", "--price", "user=1/1"]
    result = muarl("eval", *options, *bound, "--name", "e")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "e"
    found = summary(run)
    assert (found["ended"], found["planned"]) == (end, 20)
    played = found["evaluation"]["episodes"]
    assert 0 < played < 20
    spent = found["cost"]["total"]
    assert spent == pytest.approx(sum(a[s]["cost"] for a in rows(run) for s in ("agent_usage", "user_usage")))
    said = result.stderr.replace("\n", " ")
    assert f"{played} of 20 episodes were played" in said
    assert "--resume" in said
    assert f"**Not complete**: the {end.replace('_', ' ')} is spent" in (run / "report.md").read_text()
    assert json.loads((run / "status.json").read_text())["state"] == "finished"
    more = muarl("eval", "--resume", str(run), "--max-cost", "9", "--max-tokens", "999999")
    assert more.exit_code == 0
    assert summary(run)["ended"] == "complete"
    assert summary(run)["evaluation"]["episodes"] == 20


def test_what_was_spent_before_counts_against_the_budget(muarl: Muarl, server: FakeOpenAI, tmp_path: Path) -> None:
    options = [*models(server), "--tasks", "20", "--trials", "1", "--max-tokens", "200"]
    assert muarl("eval", *options, "--name", "e").exit_code == 0
    run = tmp_path / "runs" / "e"
    before = rows(run)
    assert muarl("eval", "--resume", str(run)).exit_code == 0
    assert rows(run) == before, "not one more"


def test_a_bound_in_dollars_needs_prices(muarl: Muarl, server: FakeOpenAI, tmp_path: Path) -> None:
    result = muarl("eval", *models(server), "--max-cost", "1", "--price", "agent=1/1")
    assert result.exit_code == 2
    assert "what user costs is not known" in result.stderr.replace("\n", " ")
    assert not (tmp_path / "runs").exists()
    assert not server.requests


def test_unknown_prices_are_no_zero(muarl: Muarl, server: FakeOpenAI, tmp_path: Path) -> None:
    assert muarl("eval", *models(server), "--tasks", "1", "--price", "agent=1/1", "--name", "e").exit_code == 0
    cost = summary(tmp_path / "runs" / "e")["cost"]
    assert cost["agent"] > 0
    assert cost["user"] is None
    assert cost["total"] is None
    assert "user unknown" in (tmp_path / "runs" / "e" / "report.md").read_text()


# ── endpoints that fail ──────────────────────────────────────────────────────────────────────────────────────────────


def test_an_endpoint_that_fails_once_in_each_conversation_costs_time_only(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(cast(agent=flaky(polite), user=flaky(brief))) as server:
        result = muarl("eval", *models(server), "--tasks", "4", "--trials", "1", "--name", "e")
    assert result.exit_code == 0, result.output
    found = summary(tmp_path / "runs" / "e")
    assert found["evaluation"]["episodes"] == 4
    assert found["evaluation"]["excluded"] == 0
    assert all(r["tags"]["attempts"] == 3 for r in rows(tmp_path / "runs" / "e")), "once by the user, once by the agent"


@pytest.mark.slow
def test_episodes_whose_agent_fails_for_good_are_excluded_and_the_rest_goes_on(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(cast(agent=moody(polite), user=brief)) as server:
        result = muarl("eval", *models(server), "--tasks", "8", "--trials", "2", "--name", "e")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "e"
    found = summary(run)
    failed = [r for r in rows(run) if r["stop"] == "infrastructure"]
    assert 0 < len(failed) < 16
    assert found["evaluation"]["excluded"] == len(failed) == found["excluded_by"]["agent"]
    assert found["evaluation"]["episodes"] == 16 - len(failed)
    assert all(r["verdict"] is None and "overloaded" in r["error"] for r in failed)
    assert f"agent {len(failed)}" in (run / "report.md").read_text()


def test_a_conversation_that_the_server_refuses_does_not_end_the_run(muarl: Muarl, tmp_path: Path) -> None:
    def picky(body: dict[str, Any]) -> Answer:
        return status(400, message="bad role") if body["seed"] % 3 == 0 else polite(body)

    with FakeOpenAI(cast(agent=picky, user=brief)) as server:
        result = muarl("eval", *models(server), "--tasks", "8", "--trials", "1", "--name", "e")
    assert result.exit_code == 0, result.output
    found = summary(tmp_path / "runs" / "e")
    assert found["evaluation"]["excluded"] > 0
    assert found["evaluation"]["episodes"] > 0


def test_an_endpoint_that_goes_down_for_good_ends_the_run_and_what_is_finished_stays(
    muarl: Muarl, tmp_path: Path
) -> None:
    answered = 0

    def dies(body: dict[str, Any]) -> Answer:
        nonlocal answered
        answered += 1
        return polite(body) if answered < 12 else status(503, message="gone")

    with FakeOpenAI(cast(agent=dies, user=brief)) as server:
        result = muarl("eval", *models(server), "--tasks", "60", "--trials", "1", "--name", "e")
    assert result.exit_code == 2
    assert "20 episodes in a row failed" in result.stderr.replace("\n", " ")
    run = tmp_path / "runs" / "e"
    assert json.loads((run / "status.json").read_text())["state"] == "failed"
    assert 0 < sum(r["stop"] != "infrastructure" for r in rows(run)) < 12
    assert len(rows(run)) < 40, "the others were not tried"


# ── users who fail ───────────────────────────────────────────────────────────────────────────────────────────────────


def leaky(body: dict[str, Any]) -> Answer:
    """A customer who, in some conversations, speaks of its scenario."""
    said = sum(m["role"] == "assistant" for m in body["messages"])
    told = int.from_bytes(body["messages"][0]["content"][-40:].encode()[:8], "big")
    if said == 1 and (told + body["seed"]) % 2:
        return text("My scenario does not say that.")
    return text("I have a question." if said < 2 else "No. ###STOP###")


def test_scores_are_shown_with_and_without_the_episodes_of_users_who_failed(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(cast(agent=polite, user=leaky)) as server:
        result = muarl("eval", *models(server), "--tasks", "8", "--trials", "2", "--name", "e")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "e"
    errors = summary(run)["user_errors"]
    flagged = [r for r in rows(run) if "user_errors" in r["tags"]]
    assert 0 < len(flagged) < 16
    assert errors["episodes"] == len(flagged) == errors["by_rule"]["leaks"]
    assert errors["share"] == len(flagged) / 16
    assert errors["without"]["episodes"] == 16 - len(flagged)
    found = flagged[0]["tags"]["user_errors"][0]
    assert (found["rule"], flagged[0]["turns"][found["turn"]]["role"]) == ("leaks", "user")
    report = (run / "report.md").read_text()
    assert "## Users who failed" in report
    assert flagged[0]["id"] in report
    page = RunDirectory.at(run)
    from muarl.report.report import collect, render

    html = render(collect(page))
    assert "Simulator errors" in html
    assert "Without those" in html
    assert "speaks of them" in html


def test_users_who_did_well_leave_no_section(muarl: Muarl, server: FakeOpenAI, tmp_path: Path) -> None:
    assert muarl("eval", *models(server), "--tasks", "2", "--name", "e").exit_code == 0
    run = tmp_path / "runs" / "e"
    errors = summary(run)["user_errors"]
    assert errors["episodes"] == 0
    assert errors["without"]["success"] == summary(run)["evaluation"]["success"]
    assert "Users who failed" not in (run / "report.md").read_text()


@pytest.mark.slow
def test_a_judge_of_users_adds_what_rules_cannot_tell(muarl: Muarl, tmp_path: Path) -> None:
    def judge(body: dict[str, Any]) -> Answer:
        if digest(body) % 4 == 0:
            return text("I cannot say.")
        errors = (
            [{"turn": 1, "rule": "contradicts", "detail": "It wants something else."}] if digest(body) % 4 == 1 else []
        )
        return completion(json.dumps({"errors": errors}))

    with FakeOpenAI(cast(agent=polite, user=brief, judge=judge)) as server:
        spec = f"endpoint:judge@{server.url}"
        options = [*models(server), "--tasks", "10", "--trials", "1", "--user-judge", spec]
        result = muarl("eval", *options, "--name", "e", "--price", "judge=1/1", "--price", "agent=1/1")
        assert result.exit_code == 0, result.output
        run = tmp_path / "runs" / "e"
        errors = summary(run)["user_errors"]
        assert errors["by_rule"].keys() == {"judge"}
        assert errors["unjudged"] > 0
        assert "did not answer" in result.stderr
        assert summary(run)["judge_usage"]["requests"] >= 10
        assert summary(run)["cost"]["judge"] > 0
        asked = sum(b["model"] == "judge" for b in server.bodies)
        assert muarl("eval", "--resume", str(run)).exit_code == 0
        again = sum(b["model"] == "judge" for b in server.bodies) - asked
        assert again <= 1 + 3 * errors["unjudged"], "only those without an answer are asked about again"
        assert summary(run)["user_errors"]["by_rule"] == errors["by_rule"]


def test_the_config_of_the_run_holds_what_was_asked_for(muarl: Muarl, server: FakeOpenAI, tmp_path: Path) -> None:
    assert muarl("eval", *models(server), "--tasks", "1", "--price", "agent=1/2", "--name", "e").exit_code == 0
    config = yaml.safe_load((tmp_path / "runs" / "e" / "config.yaml").read_text())
    assert config["eval"]["prices"] == {"agent": [1.0, 2.0]}
    assert config["eval"]["concurrency"] == 2
    assert config["rollout"]["concurrency"] == 256
    assert server.peak <= 2


def test_an_agent_of_ones_own_is_resumed_too(muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--tasks", "3", "--trials", "2", "eval.baseline=false"]
    assert muarl("eval", *options, "--name", "whole").exit_code == 0
    mend = stop(monkeypatch, 4)
    assert muarl("eval", *options, "--name", "cut").exit_code == 130
    mend()
    assert muarl("eval", "--resume", str(tmp_path / "runs" / "cut")).exit_code == 0
    whole, cut = (rows(tmp_path / "runs" / name) for name in ("whole", "cut"))
    assert [r["id"] for r in whole] == [r["id"] for r in cut]
    assert [(r["turns"], r["stop"], r["verdict"]) for r in whole] == [
        (r["turns"], r["stop"], r["verdict"]) for r in cut
    ]
    assert all(StopReason(r["stop"]) for r in cut)
