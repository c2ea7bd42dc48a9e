"""Reports on small evaluations."""

from __future__ import annotations

import json
import re

import pytest
from rich.console import Console

from muarl.accounts.evaluation_report import LABELS, EvaluationReport, evaluate_summary
from muarl.accounts.metrics import BEHAVIOUR
from muarl.accounts.success import scores_by_domain
from muarl.types.episode import Episode, StopReason
from support.scored_episodes import attempts, scored_episode


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
            scored_episode("a", 1, intent="cancel", persona="terse", difficulty=10),
            scored_episode("b", 0, StopReason.MAX_TURNS, intent="cancel", persona="chatty", difficulty=9),
            scored_episode("c", 1, intent="return", persona="terse", difficulty=9),
            scored_episode("d", None, StopReason.INFRASTRUCTURE, intent="return"),
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
            return scored_episode(task, reward, traits={"withholding": level, "mistakes": 0.0}, user_gave_up=gave_up)

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

    def test_pass_hat_of_some_tasks_alone_says_of_how_many(self) -> None:
        lost = attempts(a="1111", **{f"t{n}": "110" for n in range(9)})
        report = EvaluationReport.of(lost)
        assert [row[0] for row in report.rows()[2:6]] == ["pass^1", "pass^2", "pass^3", "pass^4 (1 of 10 tasks)"]
        assert "| pass^4 (1 of 10 tasks) | 100.0% |" in report.to_markdown() and "(1 of 10 tasks)" in str(report)
        whole = EvaluationReport.of(attempts(a="1111", b="1100"))
        assert [row[0] for row in whole.rows()[2:6]] == ["pass^1", "pass^2", "pass^3", "pass^4"]

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


def test_a_report_on_several_domains_has_one_of_each() -> None:
    mixed = [
        scored_episode("a:1", 1.0, domain="a"),
        scored_episode("a:2", 0.0, domain="a"),
        scored_episode("b:1", 0.0, domain="b"),
    ]
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
    assert block["by_domain"]["a"] == evaluate_summary([scored_episode("a:1", 1.0), scored_episode("a:2", 0.0)])
    assert "by_domain" not in evaluate_summary([scored_episode("a:1", 1.0)])
    assert scores_by_domain({"rl": mixed, "do_nothing": mixed[:2]}) == {
        "a": {"rl": 0.5, "do_nothing": 0.5},
        "b": {"rl": 0.0},
    }
