"""Evaluations with users who are harder to serve, beside the one with easy users."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.observe.rundir import RunDirectory
from support.eval_servers import brief, cast, polite
from support.evaluating import lasting, models, rows, stop, summary
from support.fake_openai import Answer, FakeOpenAI, status

Muarl = Callable[..., Any]
EXPERT = ("--agent", "expert", "--tasks", "6", "eval.harder_users=[typical,hard]", "rollout.max_turns=40")


def test_the_same_tasks_are_played_with_users_of_each_level(muarl: Muarl, tmp_path: Path) -> None:
    result = muarl("eval", *EXPERT, "--name", "e")
    assert result.exit_code == 0, result.output
    assert "By how hard users are to serve" in result.output
    run = tmp_path / "runs" / "e"
    blocks = summary(run)["harder_users"]
    assert list(blocks) == ["typical", "hard"]
    assert all(block["tasks"] == block["episodes"] == 6 and block["success"] == 1 for block in blocks.values())
    assert all(block["success_without_violation"]["value"] == 1 for block in blocks.values())
    of_level = {level: RunDirectory.at(run).read_episodes(f"eval-{level}") for level in blocks}
    easy = RunDirectory.at(run).read_episodes("eval")
    for level, withholding in (("typical", 0.4), ("hard", 0.9)):
        assert [(e.task_id, e.seed) for e in of_level[level]] == [(e.task_id, e.seed) for e in easy]
        assert {e.tags["traits"]["withholding"] for e in of_level[level]} == {withholding}
    assert sum(len(e.messages) for e in easy) < sum(len(e.messages) for e in of_level["hard"])
    assert "| hard | 100.0% (" in (run / "report.md").read_text()


def test_a_stopped_run_goes_on_at_the_level_where_it_stopped(
    muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert muarl("eval", *EXPERT, "--name", "whole").exit_code == 0
    mend = stop(monkeypatch, 9)
    assert muarl("eval", *EXPERT, "--name", "cut").exit_code == 130
    mend()
    whole, cut = tmp_path / "runs" / "whole", tmp_path / "runs" / "cut"
    assert len(rows(cut)) == 6 and not (cut / "summary.json").exists()
    assert muarl("eval", "--resume", str(cut)).exit_code == 0
    assert lasting(summary(cut)) == lasting(summary(whole))
    for name in ("eval", "eval-typical", "eval-hard"):
        one, other = ((run / "episodes" / f"{name}.jsonl").read_text() for run in (whole, cut))
        assert [json.loads(line)["id"] for line in one.splitlines()] == [
            json.loads(line)["id"] for line in other.splitlines()
        ]


def test_what_they_cost_counts(muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key")
    with FakeOpenAI(cast(agent=polite, user=brief)) as server:
        prices = ("--price", "agent=1/2", "--price", "user=3/4")
        result = muarl("eval", *models(server), "--tasks", "3", *prices, "eval.harder_users=[hard]", "--name", "e")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "e"
    episodes = [*RunDirectory.at(run).read_episodes("eval"), *RunDirectory.at(run).read_episodes("eval-hard")]
    assert len(episodes) == 6
    spent = sum((e.agent_usage + e.user_usage).cost or 0 for e in episodes)
    assert summary(run)["cost"]["total"] == pytest.approx(spent) and spent > 0


@pytest.mark.parametrize(
    "options", [("eval_user.traits=typical",), ("eval_user.strata=all",), ("domain.name=bfcl-generated",)]
)
def test_users_that_have_traits_of_their_own_or_none_are_not_made_harder(
    muarl: Muarl, tmp_path: Path, options: tuple[str, ...]
) -> None:
    result = muarl("eval", *EXPERT, *options, "--name", "e")
    assert result.exit_code == 0, result.output
    assert "harder_users" not in summary(tmp_path / "runs" / "e")


PAID = ("--tasks", "10", "--trials", "1", "eval.harder_users=[typical,hard]", "rollout.concurrency=1")


@pytest.fixture
def served(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between tries, and a key in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key")


def refusing(number: int) -> Callable[[dict[str, Any]], Answer]:
    """A customer whose endpoint refuses all of conversation ``number`` (from 1), told by what it is prompted with."""
    prompts = dict[str, int]()

    def answer(body: dict[str, Any]) -> Answer:
        begun = prompts.setdefault(body["messages"][0]["content"], len(prompts) + 1)
        return status(400, message="refused") if begun == number else brief(body)

    return answer


@pytest.mark.usefixtures("served")
def test_failures_with_harder_users_are_told(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(cast(agent=polite, user=refusing(21))) as server:
        result = muarl("eval", *models(server), *PAID, "--name", "e")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "e"
    blocks = summary(run)["harder_users"]
    names = ("planned", "episodes", "excluded", "excluded_by", "ended")
    assert [blocks["typical"][name] for name in names] == [10, 10, 0, {}, "complete"]
    assert [blocks["hard"][name] for name in names] == [10, 9, 1, {"user": 1}, "complete"]
    assert (summary(run)["ended"], summary(run)["excluded_by"]) == ("complete", {})
    text = (run / "report.md").read_text()
    assert "| failed, not scored | user 1 (with hard users) |" in text
    assert "| hard (9 of 10 scored, 1 failed) |" in text and "| typical |" in text and "Not complete" not in text
    assert "9 of 10" in result.output.partition("By how hard users are to serve")[2]


@pytest.mark.usefixtures("served")
def test_a_budget_that_is_spent_by_harder_users_is_told_and_the_rest_resumed(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(cast(agent=polite, user=brief)) as server:
        whole = muarl("eval", *models(server), *PAID, "eval.harder_users=[]", "--name", "easy")
        usage = summary(tmp_path / "runs" / "easy")["usage"]
        each = sum(usage[f"{side}/{kind}_tokens"] for side in ("agent", "user") for kind in ("prompt", "completion"))
        bound = ("--max-tokens", str(round(each * 15)))
        result = muarl("eval", *models(server), *PAID, *bound, "--name", "e")
        assert whole.exit_code == result.exit_code == 0, result.output
        run = tmp_path / "runs" / "e"
        found = summary(run)
        played = found["harder_users"]["typical"]["episodes"]
        assert 0 < played < 10 and found["evaluation"]["episodes"] == found["planned"] == 10
        assert found["ended"] == found["harder_users"]["typical"]["ended"] == "token_budget"
        left = found["harder_users"]["hard"]
        assert (left["episodes"], left["planned"], left["success"], left["ended"]) == (0, 10, None, "token_budget")
        said = " ".join(result.stderr.split())
        counts = f"played; with typical users {played} of 10; with hard users 0 of 10"
        assert f"10 of 10 episodes were {counts}: the token budget is spent. `muarl eval --resume" in said
        text = (run / "report.md").read_text()
        assert "**Not complete**: the token budget is spent." in text and f"| episodes | 10 of 10 {counts} |" in text
        assert f"| typical ({played} of 10 scored) |" in text and "| hard (0 of 10 scored) | – |" in text
        assert muarl("eval", "--resume", str(run), "--max-tokens", "9999999").exit_code == 0
    found = summary(run)
    assert found["ended"] == "complete"
    assert all(block["episodes"] == block["planned"] == 10 for block in found["harder_users"].values())
