"""``muarl eval`` as a whole: kept and resumed runs, budgets, failing endpoints, and what users did wrong."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from muarl.episode import Episode, StopReason
from muarl.observe.rundir import RunDirectory
from muarl.recipes import common, ledger
from support.eval_servers import brief, cast, digest, flaky, moody, polite, without
from support.fake_openai import Answer, FakeOpenAI, completion, status, text

Muarl = Callable[..., Any]
KEY = "sk-a-key"
GENERATED = ["domain.size=tiny", "eval_user.guidelines=muarl", "eval.baseline=false"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between tries, and a key in the environment."""
    monkeypatch.setattr(common, "Player", functools.partial(common.Player, backoff=0.0))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(cast(agent=polite, user=brief)) as fake:
        yield fake


def models(server: FakeOpenAI) -> list[str]:
    url = f"@{server.url}"
    once = ["eval.endpoint.attempts=1", "eval_user.endpoint.attempts=1"]
    return ["--agent", f"endpoint:agent{url}", "--user", f"endpoint:user{url}", *GENERATED, *once, "-j", "2"]


def summary(run: Path) -> dict[str, Any]:
    return json.loads((run / "summary.json").read_text())


def rows(run: Path) -> list[dict[str, Any]]:
    """The run's episodes, without what a clock or a retry leaves in them."""
    out = []
    for line in (run / "episodes" / "eval.jsonl").read_text().splitlines():
        row = without(json.loads(line), "timings")
        row["turns"] = [t["message"] for t in row["turns"]]
        row["tags"].pop("resumed", None)
        out.append(row)
    return out


def lasting(found: dict[str, Any]) -> dict[str, Any]:
    return without(found, "seconds")


class Stop:
    """Ctrl-C in place of keeping episode number ``at``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.kept, original = 0, ledger.Ledger.keep

        def keep(this: Any, episode: Episode, judged: Any) -> None:
            self.kept += 1
            if self.kept == at:
                raise KeyboardInterrupt
            original(this, episode, judged)

        monkeypatch.setattr(ledger.Ledger, "keep", keep)
        self.mend = lambda: monkeypatch.setattr(ledger.Ledger, "keep", original)


# ── runs that were stopped ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_stopped_run_goes_on_and_ends_as_if_it_had_never_stopped(
    muarl: Muarl, server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*models(server), "--tasks", "5", "--trials", "3", "--price", "agent=1/2", "--price", "user=3/4"]
    assert muarl("eval", *options, "--name", "whole").exit_code == 0
    whole = tmp_path / "runs" / "whole"
    stop = Stop(monkeypatch, 7)
    stopped = muarl("eval", *options, "--name", "cut")
    stop.mend()
    assert stopped.exit_code == 130
    cut = tmp_path / "runs" / "cut"
    assert f"muarl eval --resume {cut}" in stopped.stderr.replace("\n", "")
    assert len(rows(cut)) == 6
    assert not (cut / "summary.json").exists()
    with open(cut / "episodes" / "eval.jsonl", "a", encoding="utf-8") as file:
        file.write('{"schema": 1, "id": "evaluat')  # what a killed process leaves
    assert len(RunDirectory.at(cut).read_episodes("eval")) == 6
    before = len(server.requests)
    resumed = muarl("eval", "--resume", str(cut))
    assert resumed.exit_code == 0, resumed.output
    assert "6 of 15 episodes were finished before" in resumed.stderr.replace("\n", " ")
    assert rows(cut) == rows(whole)
    assert lasting(summary(cut)) == lasting(summary(whole))
    assert len(server.requests) - before < before / 2, "what was finished is not asked again"
    assert (cut / "report.md").read_text() == (whole / "report.md").read_text()
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"whole", "cut"}


def test_an_evaluation_that_called_its_checkpoint_policy_goes_on(
    tmp_path: Path,
) -> None:
    """As versions did that knew no other name."""
    from muarl.chat import Message
    from muarl.domains.base import Task
    from muarl.episode import Episode, StopReason, Turn
    from muarl.errors import ConfigError
    from muarl.player import requests_for
    from muarl.recipes.ledger import Ledger

    (request,) = requests_for([Task(id="t", domain="d", scenario="", actions=())], 1, seed=0, label="evaluation")
    with RunDirectory(tmp_path, "old") as run:
        turns = [Turn(Message("user", "###STOP###"))]
        played = Episode(
            id=request.episode_id, task_id=request.task.id, domain="d", turns=turns, stop=StopReason.USER_STOP,
            seed=request.seed, agent="policy", user="agenda",
        )  # fmt: skip
        run.write_episodes("eval", [played])
        found = Ledger(run)
        found.check([request], "mine (RL step 3)", "agenda", former="policy")
        for agent, former in (("mine (RL step 3)", None), ("expert", None)):
            with pytest.raises(ConfigError, match="policy with agenda, and not of"):
                found.check([request], agent, "agenda", former=former)


def test_a_finished_run_may_be_resumed_with_more_trials(muarl: Muarl, server: FakeOpenAI, tmp_path: Path) -> None:
    assert muarl("eval", *models(server), "--tasks", "2", "--trials", "1", "--name", "e").exit_code == 0
    run = tmp_path / "runs" / "e"
    first, asked = rows(run), len(server.requests)
    assert muarl("eval", "--resume", str(run)).exit_code == 0
    assert rows(run) == first
    assert len(server.requests) - asked == 2, "only whether agent and user are there"
    assert muarl("eval", "--resume", str(run), "--trials", "2").exit_code == 0
    assert len(rows(run)) == 4
    assert [r for r in rows(run) if r["id"].endswith("#0")] == first


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["eval.seed=9"], ["eval.seed was 0, not 9", "A resumed run keeps its own"]),
        (["--tasks", "1"], ["none of this evaluation's", "can only be resumed with its own"]),
        (["--agent", "idle"], ["eval.agent was 'endpoint', not 'idle'"]),
    ],
)
def test_a_run_is_not_resumed_as_another(
    muarl: Muarl, server: FakeOpenAI, tmp_path: Path, options: list[str], words: list[str]
) -> None:
    assert muarl("eval", *models(server), "--tasks", "2", "--trials", "1", "--name", "e").exit_code == 0
    run = tmp_path / "runs" / "e"
    kept = rows(run)
    result = muarl("eval", "--resume", str(run), *options)
    assert result.exit_code == 2
    for word in words:
        assert word in result.stderr.replace("\n", " ")
    assert rows(run) == kept


def test_a_damaged_line_in_the_middle_is_named_and_nothing_is_lost(
    muarl: Muarl, server: FakeOpenAI, tmp_path: Path
) -> None:
    assert muarl("eval", *models(server), "--tasks", "2", "--trials", "1", "--name", "e").exit_code == 0
    file = tmp_path / "runs" / "e" / "episodes" / "eval.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0][:50], lines[1]]) + "\n")
    result = muarl("eval", "--resume", str(tmp_path / "runs" / "e"))
    assert result.exit_code == 2
    assert "eval.jsonl, line 1" in result.stderr.replace("\n", "")
    assert lines[1] in file.read_text()


def test_failed_episodes_are_played_again_on_resume_and_stay_paid_for(muarl: Muarl, tmp_path: Path) -> None:
    broken, asked = True, 0

    def counted(role: Callable[..., Answer]) -> Callable[..., Answer]:
        def answer(body: dict[str, Any]) -> Answer:
            nonlocal asked
            asked += 1
            return role(body)

        return answer

    def user(body: dict[str, Any]) -> Answer:
        return moody(brief)(body) if broken else brief(body)

    with FakeOpenAI(cast(agent=counted(polite), user=counted(user))) as server:
        options = [*models(server), "--tasks", "6", "--trials", "1", "--price", "agent=1/1", "--price", "user=1/1"]
        assert muarl("eval", *options, "--name", "e").exit_code == 0
        run = tmp_path / "runs" / "e"
        found = summary(run)
        failed = [r["id"] for r in rows(run) if r["stop"] == "infrastructure"]
        assert 0 < len(failed) < 6
        assert found["excluded_by"] == {"user": len(failed)}
        assert found["evaluation"]["excluded"] == len(failed)
        assert found["evaluation"]["episodes"] == 6 - len(failed)
        broken = False
        assert muarl("eval", "--resume", str(run)).exit_code == 0
        after = summary(run)
        assert after["evaluation"]["episodes"] == 6
        assert after["excluded_by"] == {}
        paid = sum(r[side]["requests"] for r in rows(run) for side in ("agent_usage", "user_usage"))
        assert paid == asked, "every request is in the account once, the failed ones too"


@pytest.mark.slow
def test_a_killed_run_loses_nothing_that_was_finished(base_run: Path, tmp_path: Path, server: FakeOpenAI) -> None:
    def slowly(body: dict[str, Any]) -> Answer:
        answer = polite(body)
        return Answer(answer.body, delay=0.05)

    with FakeOpenAI(cast(agent=slowly, user=brief)) as slow:
        options = [
            "-c",
            "quickstart",
            *models(slow),
            "--tasks",
            "30",
            "--trials",
            "2",
            f"runs_dir={tmp_path}",
            "name=k",
        ]
        command = [sys.executable, "-c", "from muarl.cli import main; main()", "eval"]
        file = tmp_path / "k" / "episodes" / "eval.jsonl"
        job = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + 120
            while job.poll() is None and time.monotonic() < deadline:
                if file.is_file() and file.read_text().count("\n") >= 5:
                    break
                time.sleep(0.02)
            job.send_signal(signal.SIGKILL)
        finally:
            job.kill()
            job.communicate(timeout=60)
        kept = [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        assert 5 <= len(kept) < 60
        resumed = subprocess.run(
            [*command, "--resume", str(tmp_path / "k")], capture_output=True, text=True, timeout=120
        )
        assert resumed.returncode == 0, resumed.stderr
    after = {r["id"]: r for r in map(json.loads, file.read_text().splitlines())}
    assert len(after) == 60
    for row in kept:
        assert without(after[row["id"]], "tags") == without(row, "tags"), "not one of them was played again"
    assert summary(tmp_path / "k")["evaluation"]["episodes"] == 60


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("bound", "end"), [(["--max-cost", "0.0002"], "cost_budget"), (["--max-tokens", "200"], "token_budget")]
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
    assert f"**Not complete**: the {end.replace('_', ' ')} was spent" in (run / "report.md").read_text()
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
        result = muarl("eval", *models(server), "--tasks", "100", "--trials", "1", "--name", "e")
    assert result.exit_code == 2
    assert "20 episodes in a row failed" in result.stderr.replace("\n", " ")
    run = tmp_path / "runs" / "e"
    assert json.loads((run / "status.json").read_text())["state"] == "failed"
    assert 0 < sum(r["stop"] != "infrastructure" for r in rows(run)) < 12
    assert len(rows(run)) < 40, "the other sixty were not tried"


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
    from muarl.observe.report import collect, render

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
    assert config["rl"]["concurrency"] == 256
    assert server.peak <= 2


def test_an_agent_of_ones_own_is_resumed_too(muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--tasks", "3", "--trials", "2", "eval.baseline=false"]
    assert muarl("eval", *options, "--name", "whole").exit_code == 0
    stop = Stop(monkeypatch, 4)
    assert muarl("eval", *options, "--name", "cut").exit_code == 130
    stop.mend()
    assert muarl("eval", "--resume", str(tmp_path / "runs" / "cut")).exit_code == 0
    whole, cut = (rows(tmp_path / "runs" / name) for name in ("whole", "cut"))
    assert [r["id"] for r in whole] == [r["id"] for r in cut]
    assert [(r["turns"], r["stop"], r["verdict"]) for r in whole] == [
        (r["turns"], r["stop"], r["verdict"]) for r in cut
    ]
    assert all(StopReason(r["stop"]) for r in cut)
