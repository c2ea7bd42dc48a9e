"""pass^k and intervals against values worked out by hand, and reports on small evaluations."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from muarl.accounts.metrics import BEHAVIOUR
from muarl.accounts.statistics import (
    LABELS,
    EvaluationReport,
    breakdown,
    cluster_bootstrap,
    evaluate_summary,
    pass_hat,
    pass_hats,
    scores_by_domain,
    success_rate,
    task_completion,
    wilson,
)
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict


def make(task: str, reward: float | None, stop: StopReason = StopReason.USER_STOP, **tags: Any) -> Episode:
    verdict = None if reward is None else Verdict(reward, audit={"writes": 1, "writes_without_consent": 1 - reward})
    turns = [Turn(Message("user", "hi")), Turn(Message("assistant", "bye"))]
    return Episode(f"{task}-e", task, "retail", turns, stop, verdict=verdict, tags=tags)


def attempts(**tasks: str) -> list[Episode]:
    """attempts(a="110") is task a, three times, of which two succeeded."""
    return [make(task, float(o)) for task, outcomes in tasks.items() for o in outcomes]


class TestPassHat:
    @pytest.mark.parametrize(
        ("c", "n", "k", "expected"),
        [
            (4, 4, 4, 1),
            (3, 4, 1, 0.75),
            (3, 4, 2, 0.5),
            (3, 4, 3, 0.25),
            (3, 4, 4, 0),
            (0, 4, 1, 0),
            (5, 8, 3, 10 / 56),
        ],
    )
    def test_by_hand(self, c: int, n: int, k: int, expected: float) -> None:
        assert pass_hat(c, n, k) == pytest.approx(expected)

    @pytest.mark.parametrize(("c", "n", "k"), [(5, 4, 1), (-1, 4, 1), (1, 4, 5), (1, 4, 0)])
    def test_impossible(self, c: int, n: int, k: int) -> None:
        with pytest.raises(ValueError, match="cannot be estimated"):
            pass_hat(c, n, k)

    @given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
    def test_falls_with_k(self, counts: tuple[int, int]) -> None:
        values = [pass_hat(*counts, k) for k in range(1, counts[1] + 1)]
        assert all(0 <= b <= a <= 1 for a, b in itertools.pairwise(values))

    def test_mean_over_tasks(self) -> None:
        found = pass_hats(attempts(a="1111", b="1100", c="0000"))
        assert [found[k].value for k in (1, 2, 3, 4)] == pytest.approx([0.5, (1 + 1 / 6) / 3, 1 / 3, 1 / 3])
        assert found[1].n == 3

    def test_only_tasks_with_enough_attempts_count(self) -> None:
        found = pass_hats(attempts(a="11", b="0"))
        assert found[1].n == 2 and found[2].n == 1 and set(found) == {1, 2}

    def test_excluded_attempts_are_no_attempts(self) -> None:
        broken = make("a", None, StopReason.INFRASTRUCTURE)
        assert pass_hats([*attempts(a="11"), broken])[2].value == 1


class TestIntervals:
    def test_wilson_by_hand(self) -> None:
        # Newcombe 1998, table I: 81/263 and 0/20.
        assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
        assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
        assert wilson(0, 0) == (0.0, 1.0)

    def test_bootstrap_is_seeded_and_sensible(self) -> None:
        values = [0.0, 1.0] * 50
        assert cluster_bootstrap(values) == cluster_bootstrap(values)
        low, high = cluster_bootstrap(values)
        assert low == pytest.approx(0.4, abs=0.02) and high == pytest.approx(0.6, abs=0.02)

    def test_perfect_scores_are_not_certain(self) -> None:
        assert cluster_bootstrap([1.0] * 10) == wilson(10, 10)
        assert pass_hats(attempts(a="11", b="11"))[2].interval[0] < 0.5

    def test_attempts_at_one_task_are_not_independent(self) -> None:
        single = success_rate(attempts(**{f"t{i}": str(i % 2) for i in range(40)}))
        same = success_rate(attempts(**{f"t{i}": str(i % 2) * 4 for i in range(10)}))
        assert same.value == single.value == 0.5
        assert same.interval[1] - same.interval[0] > 1.5 * (single.interval[1] - single.interval[0])

    @given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1)))
    def test_success_and_pass_1_of_equal_trials_are_one_figure_with_one_interval(self, tasks: list[list[bool]]) -> None:
        episodes = [make(str(i), float(o)) for i, outcomes in enumerate(tasks) for o in outcomes]
        success, first = success_rate(episodes), pass_hats(episodes)[1]
        assert (first.value, first.interval) == (pytest.approx(success.value), pytest.approx(success.interval))

    def test_tasks_that_count_as_0_or_1_have_wilsons_interval(self) -> None:
        assert success_rate(attempts(a="1", b="0", c="1")).interval == wilson(2, 3)
        assert pass_hats(attempts(a="11", b="10", c="01"))[2].interval == wilson(1, 3)

    def test_uneven_attempts(self) -> None:
        found = success_rate(attempts(a="1111", b="0", c="10"))
        assert found.value == pytest.approx(5 / 7) and found.n == 7
        assert 0 <= found.interval[0] <= found.value <= found.interval[1] <= 1
        assert success_rate(attempts(a="11", b="1")).interval == wilson(2, 2)


class TestReport:
    def test_the_table_shows_one_interval_for_one_figure(self) -> None:
        report = EvaluationReport.of(attempts(**{f"t{i}": str(int(i < 13)) for i in range(20)}))
        success, clean, first = report.rows()[:3]
        assert clean == ("success without any violation", "not checked", "", "")
        assert first[0] == "pass^1" and success[1:] == first[1:] == ("65.0%", "43.3% – 81.9%", "")
        found = report.to_json()
        assert found["interval"] == found["pass_hat"]["1"]["interval"]

    def report(self) -> EvaluationReport:
        episodes = [
            make("a", 1, intent="cancel", persona="terse", difficulty=10),
            make("b", 0, StopReason.MAX_TURNS, intent="cancel", persona="chatty", difficulty=9),
            make("c", 1, intent="return", persona="terse", difficulty=9),
            make("d", None, StopReason.INFRASTRUCTURE, intent="return"),
        ]
        return EvaluationReport.of(
            episodes, name="held-out", baselines={"do nothing": 0.04, "always_transfer": attempts(a="1000000000")}
        )

    def test_figures(self) -> None:
        report = self.report()
        assert (report.tasks, report.episodes, report.excluded) == (3, 3, 1)
        assert report.success.value == pytest.approx(2 / 3)
        assert {k: v.value for k, v in report.by_tag["intent"].items()} == {"cancel": 0.5, "return": 1.0}
        assert list(report.by_tag["difficulty"]) == ["9", "10"]  # as numbers, not as text
        assert report.by_stop["max_turns"].value == 0
        assert report.behaviour["writes_without_consent"] == pytest.approx(1 / 3)

    def test_success_by_the_level_of_users_traits(self) -> None:
        def met(task: str, reward: float, level: float, gave_up: bool) -> Episode:
            return make(task, reward, traits={"withholding": level, "mistakes": 0.0}, user_gave_up=gave_up)

        episodes = [met("a", 1, 0.0, False), met("b", 1, 0.25, False), met("c", 0, 0.26, True), met("d", 0, 1.0, False)]
        found = EvaluationReport.of(episodes)
        levels = found.by_tag["user's withholding"]
        assert {part: (e.value, e.n) for part, e in levels.items()} == {
            "0 to 0.25": (1, 2), "0.25 to 0.5": (0, 1), "0.75 to 1": (0, 1),
        }  # fmt: skip
        assert "user's mistakes" not in found.by_tag, "nobody makes any"
        assert found.by_tag["user gave up"]["no"].value == pytest.approx(2 / 3)
        assert "| user's withholding: 0 to 0.25 (2) | 100.0% |" in found.to_markdown()
        assert not any("user" in tag for tag in self.report().by_tag), "nothing about users without traits"

    def test_json_and_tables(self) -> None:
        report = self.report()
        data = json.loads(json.dumps(report.to_json()))
        assert data["interval"] == list(report.success.interval) and data["pass_hat"]["1"]["n"] == 3
        text = report.to_markdown()
        assert "| pass^1 | 66.7% |" in text and "| intent: cancel (2) | 50.0% |" in text
        assert "| 4.0% |" in text.splitlines()[2]  # the do-nothing column
        assert "| always transfer | 10.0% |" in text
        console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
        console.print(report.to_table())
        assert "excluded (infrastructure)" in console.export_text()
        assert (
            "excluded (infrastructure)" in str(report) and "success" in str(report) and "object at" not in str(report)
        )

    def test_every_figure_of_behaviour_says_of_what_it_is(self) -> None:
        assert set(BEHAVIOUR) <= set(LABELS)
        assert all(re.search(r", an episode|, a turn|\(.*of .*\)", LABELS[name]) for name in BEHAVIOUR)

    def test_summary_block(self) -> None:
        block = evaluate_summary(attempts(a="1", b="0"))
        assert {"success", "interval", "tasks", "tokens_per_episode", "turns", "behaviour"} <= set(block)
        assert block["success"] == 0.5 and block["tasks"] == 2 and block["turns"] == 1

    def test_nothing_to_measure(self) -> None:
        block = evaluate_summary([])
        assert block["tasks"] == 0 and block["interval"] == [0.0, 1.0]

    def test_breakdown_leaves_out_what_has_no_key(self) -> None:
        assert breakdown(attempts(a="1"), lambda e: e.tags.get("intent")) == {}


class TestTaskCompletion:
    def finished(self, share: float | None, stop: StopReason = StopReason.USER_STOP) -> Episode:
        episode = make("a", 0.0, stop)
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


def test_a_report_on_several_domains_has_one_of_each() -> None:
    mixed = [make("a:1", 1.0, domain="a"), make("a:2", 0.0, domain="a"), make("b:1", 0.0, domain="b")]
    floors = {"a": {"do_nothing": 0.5}}
    found = EvaluationReport.of(mixed, baselines={"do_nothing": 0.25}, domain_baselines=floors)
    assert {name: (part.success.value, part.tasks) for name, part in found.by_domain.items()} == {
        "a": (0.5, 2),
        "b": (0.0, 1),
    }
    rows = {row[0]: row[1:] for row in found.rows()}
    assert rows["a: success (2 episodes, 2 tasks)"][0::2] == ("50.0%", "50.0%")
    assert rows["b: success (1 episodes, 1 tasks)"][2] == ""
    block = evaluate_summary(mixed)
    assert block["by_domain"]["a"] == evaluate_summary([make("a:1", 1.0), make("a:2", 0.0)])
    assert "by_domain" not in evaluate_summary([make("a:1", 1.0)])
    assert scores_by_domain({"rl": mixed, "do_nothing": mixed[:2]}) == {
        "a": {"rl": 0.5, "do_nothing": 0.5},
        "b": {"rl": 0.0},
    }
