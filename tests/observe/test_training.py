"""Steps that update nothing: counted, and said."""

from __future__ import annotations

from typing import Any

from muarl.observe.report import ReportData, render
from muarl.observe.training import GapWatch, IdleSteps, idle_text, no_update, training_summary
from muarl.view.signs import signs


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
    }
    assert training_summary([{"phase": "evaluation", "samples": 0}]) == {
        "steps": 0,
        "steps_without_update": 0,
        "groups": 0,
    }


def test_rows_of_older_runs_count_as_far_as_they_tell() -> None:
    old = [{"phase": "rl", "step": 0, "groups_kept": 3.0, "groups_dropped": 0.0, "samples": 0.0, "update/skipped": 1.0}]
    assert training_summary(old) == {"steps": 1, "steps_without_update": 1, "groups": 3}
    assert not no_update({"phase": "rl", "step": 0}), "a row that does not tell"
    assert str(idle_text(old)).startswith("No step of the training updated the weights: ")


def test_a_run_without_a_single_update_says_so_on_its_pages() -> None:
    told = str(idle_text(rows(False, False)))
    assert told.startswith("No step of the training updated the weights (0 of 6 groups had differing rewards)")
    assert "rl.group_size" in told
    assert signs(rows(False, False))[0] == told, "however short the run"
    page = render(ReportData(name="r", summary={}, metrics=rows(False, False)))
    assert "No step of the training updated the weights" in page
    assert idle_text(rows(True, True)) is None and signs(rows(True, True)) == []
    assert "updated nothing" not in render(ReportData(name="r", summary={}, metrics=rows(True, True)))
    assert str(idle_text(rows(True, True, False))).startswith("1 of 3 training steps updated nothing.")


def test_a_warning_comes_after_some_such_steps_and_not_at_each() -> None:
    idle = IdleSteps()
    told = [idle.note(row) for row in rows(*[False] * 12, True, False, False, False)]
    assert [n for n, text in enumerate(told) if text is not None] == [2, 5, 11, 15]
    assert str(told[2]).startswith("The last 3 steps updated nothing")


def test_rows_of_others_may_hold_anything() -> None:
    row = {"phase": "rl", "step": 0, "groups_kept": "many", "groups_equal": None, "samples": 0}
    assert training_summary([row])["groups"] == training_summary([row])["groups_equal"] == 0
    assert idle_text([row]) is not None


def test_a_sampler_that_disagrees_is_told_of_once_unless_it_is_corrected_for() -> None:
    far = {"update/logprob_gap_mean": 0.114, "update/clip_fraction": 0.045, "update/updates": 1.0}
    watch = GapWatch(corrects=False)
    assert watch.note({"update/logprob_gap_mean": 0.004}) is None
    assert watch.note({"update/skipped": 1.0}) is None
    warning = watch.note(far)
    assert warning is not None
    assert "0.114 nats a token (4.5% of the tokens were clipped)" in warning
    assert "rl.correction=token" in warning
    assert watch.note(far) is None
    assert GapWatch(corrects=True).note(far) is None
    several = GapWatch(corrects=False).note({**far, "update/updates": 4.0})
    assert several is not None and "clipped" not in several, "later updates clip for other reasons"
