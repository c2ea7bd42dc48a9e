"""Shares of success and of what was done, with the intervals of means over tasks."""

from __future__ import annotations

import pytest

from muarl.accounts.evaluation_report import EvaluationReport
from muarl.accounts.intervals import wilson
from muarl.accounts.pass_hat import pass_hats
from muarl.accounts.success import success_rate, task_completion
from muarl.types.episode import Episode, StopReason, Verdict
from support.scored_episodes import attempts, scored_episode


def test_attempts_at_one_task_are_not_independent() -> None:
    single = success_rate(attempts(**{f"t{i}": str(i % 2) for i in range(40)}))
    same = success_rate(attempts(**{f"t{i}": str(i % 2) * 4 for i in range(10)}))
    assert same.value == single.value == 0.5
    assert same.interval[1] - same.interval[0] > 1.5 * (single.interval[1] - single.interval[0])


def test_tasks_that_count_as_0_or_1_have_wilsons_interval() -> None:
    assert success_rate(attempts(a="1", b="0", c="1")).interval == wilson(2, 3)
    assert pass_hats(attempts(a="11", b="10", c="01"))[2].interval == wilson(1, 3)


def test_uneven_attempts() -> None:
    found = success_rate(attempts(a="1111", b="0", c="10"))
    assert found.value == pytest.approx(5 / 7) and found.n == 7
    assert 0 <= found.interval[0] <= found.value <= found.interval[1] <= 1
    assert success_rate(attempts(a="11", b="1")).interval == wilson(2, 2)


class TestTaskCompletion:
    def finished(self, share: float | None, stop: StopReason = StopReason.USER_STOP) -> Episode:
        episode = scored_episode("a", 0.0, stop)
        episode.verdict = Verdict(0.0, audit={} if share is None else {"completion": share})
        return episode

    def test_is_the_mean_share_of_those_that_have_one_and_stands_beside_success(self) -> None:
        given = [self.finished(1.0), self.finished(0.5), self.finished(0.0, StopReason.MAX_TURNS), self.finished(None)]
        assert (found := task_completion(given)) is not None
        assert (found.value, found.n) == (0.5, 3)
        report = EvaluationReport.of(given, baselines={"do_nothing": 0.25, "do_nothing_completion": 0.125})
        assert report.behaviour["audit/completion"] == report.to_json()["completion"]["value"] == 0.5
        label, value, _, nothing = next(row for row in report.rows()[:4] if "completion" in row[0])
        assert (label, value, nothing) == ("task completion (share of what was to be done)", "50.0%", "12.5%")
        assert sum("completion" in row[0] for row in report.rows()) == 1

    def test_is_none_where_no_verdict_tells(self) -> None:
        assert task_completion(attempts(a="10")) is None and task_completion([]) is None
        assert EvaluationReport.of(attempts(a="10")).to_json()["completion"] is None
        assert "audit/completion" not in EvaluationReport.of(attempts(a="10")).behaviour
