"""Steps that update nothing: counted, and said."""

from __future__ import annotations

from typing import Any

from muarl.observe.headline import idle_text, training_summary, what_went_wrong
from muarl.report.report import ReportData, render
from muarl.sign_rules import no_update


def rows(*updated: bool) -> list[dict[str, Any]]:
    return [
        {
            "phase": "rl",
            "step": n,
            "groups_kept": 3.0,
            "groups_equal": 1.0 if made else 3.0,
            "samples": 8.0 * made,
        }
        for n, made in enumerate(updated)
    ]


def test_what_a_run_learned_from() -> None:
    assert training_summary(rows(True, False, False)) == {
        "steps": 3,
        "steps_without_update": 2,
        "groups": 9,
        "groups_equal": 7,
        "signs": [],
    }
    assert training_summary([{"phase": "evaluation", "samples": 0}]) == {
        "steps": 0,
        "steps_without_update": 0,
        "groups": 0,
        "signs": [],
    }


def test_rows_of_older_runs_count_as_far_as_they_tell() -> None:
    old = [{"phase": "rl", "step": 0, "groups_kept": 3.0, "groups_dropped": 0.0, "samples": 0.0, "update/skipped": 1.0}]
    assert training_summary(old) == {"steps": 1, "steps_without_update": 1, "groups": 3, "signs": []}
    assert not no_update({"phase": "rl", "step": 0}), "a row that does not tell"
    assert str(idle_text(old)).startswith("No step of the training updated the weights: ")


def test_a_run_without_a_single_update_says_so_on_its_pages() -> None:
    told = str(idle_text(rows(False, False)))
    assert told.startswith("No step of the training updated the weights (0 of 6 groups had differing rewards)")
    assert "rl.group_size" in told
    assert what_went_wrong(rows(False, False)) == [told], "however short the run"
    page = render(ReportData(name="r", summary={}, metrics=rows(False, False)))
    assert "No step of the training updated the weights" in page
    assert idle_text(rows(True, True)) is None and what_went_wrong(rows(True, True)) == []
    assert "updated nothing" not in render(ReportData(name="r", summary={}, metrics=rows(True, True)))
    assert str(idle_text(rows(True, True, False))).startswith("1 of 3 training steps updated nothing.")


def test_the_advice_about_tasks_is_told_once_and_not_where_another_cause_stands() -> None:
    alone = what_went_wrong(rows(*[True] * 3, *[False] * 6))
    assert len(alone) == 2 and alone[0].startswith("no-signal (since step 5): The last 6 steps updated nothing")
    assert "choose tasks that the agent solves sometimes" in alone[0] and "choose" not in alone[1]
    away = [row | {"kl": kl} for row, kl in zip(rows(*[True] * 3, *[False] * 6), [0, 0.7, 2] + [2.0] * 6, strict=True)]
    told = what_went_wrong(away)
    assert told[0].startswith("kl-runs-away (since step 1)") and "lower rl.lr" in told[0]
    assert "It follows from kl-runs-away" in told[1] and told[2].startswith("6 of 9 training steps updated nothing")
    assert not any("choose tasks" in text for text in told)
    assert [s["name"] for s in training_summary(away)["signs"]] == ["kl-runs-away", "no-signal"]


def test_rows_of_others_may_hold_anything() -> None:
    row = {"phase": "rl", "step": 0, "groups_kept": "many", "groups_equal": None, "samples": 0}
    assert training_summary([row])["groups"] == training_summary([row])["groups_equal"] == 0
    assert idle_text([row]) is not None
