"""``muarl eval`` stopped, killed and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muarl.observe.rundir import RunDirectory
from muarl.types.episode import Episode, StopReason
from support.eval_servers import brief, cast, moody, polite, without
from support.evaluating import lasting, models, rows, stop, summary
from support.fake_openai import Answer, FakeOpenAI

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


def test_a_stopped_run_goes_on_and_ends_as_if_it_had_never_stopped(
    muarl: Muarl, server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*models(server), "--tasks", "5", "--trials", "3", "--price", "agent=1/2", "--price", "user=3/4"]
    assert muarl("eval", *options, "--name", "whole").exit_code == 0
    whole = tmp_path / "runs" / "whole"
    mend = stop(monkeypatch, 7)
    stopped = muarl("eval", *options, "--name", "cut")
    mend()
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


def test_a_resumed_run_meets_the_faults_that_an_uninterrupted_one_meets(
    muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"outage": 0.1, "timeout_after_write": 1, "renamed_field": 0.3, "permission": 0.3, "stale_read": 1}
    options = ["hotel-generated", "--agent", "expert", "domain.size=tiny", "rollout.max_turns=40", "--tasks", "6"]
    options += ["--trials", "2", *(f"world.faults.{kind}={rate}" for kind, rate in rates.items())]
    assert muarl("eval", *options, "--name", "whole").exit_code == 0
    mend = stop(monkeypatch, 5)
    assert muarl("eval", *options, "--name", "cut").exit_code == 130
    mend()
    whole, cut = tmp_path / "runs" / "whole", tmp_path / "runs" / "cut"
    other = muarl("eval", "--resume", str(cut), "world.faults.outage=0.2")
    assert other.exit_code == 2 and "world.faults.outage was 0.1, not 0.2" in other.stderr.replace("\n", " ")
    assert muarl("eval", "--resume", str(cut)).exit_code == 0
    assert rows(cut) == rows(whole)
    met = [set(row["tags"]["system_faults"]) for row in rows(whole)]
    assert {"outage", "timeout_after_write"} <= set.union(*met)


def test_an_evaluation_that_called_its_checkpoint_policy_goes_on(
    tmp_path: Path,
) -> None:
    """As versions did that knew no other name."""
    from muarl.basics.errors import ConfigError
    from muarl.domains.tasks import Task
    from muarl.rollouts.episode_runner import requests_for
    from muarl.runs.results_store import ResultsStore
    from muarl.types.chat import Message
    from muarl.types.episode import Turn

    (request,) = requests_for([Task(id="t", domain="d", scenario="", actions=())], 1, seed=0, label="evaluation")
    with RunDirectory(tmp_path, "old") as run:
        turns = [Turn(Message("user", "###STOP###"))]
        played = Episode(
            id=request.episode_id, task_id=request.task.id, domain="d", turns=turns, stop=StopReason.USER_STOP,
            seed=request.seed, agent="policy", user="agenda",
        )  # fmt: skip
        run.write_episodes("eval", [played])
        found = ResultsStore(run)
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
        command = [sys.executable, "-c", "from muarl.cli.main import main; main()", "eval"]
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
        ended = after[row["id"]]
        noted = without(ended["verdict"]["audit"], "violations")  # what the audit adds once all are played
        ended["verdict"]["audit"] = noted
        assert without(ended, "tags") == without(row, "tags"), "not one of them was played again"
    assert summary(tmp_path / "k")["evaluation"]["episodes"] == 60
