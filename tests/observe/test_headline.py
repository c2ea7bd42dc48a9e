"""What no headline may leave out: an agent that succeeds more and obeys less."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.accounts.intervals import wilson
from muarl.observe.headline import by_difficulty, cost_text, headline_of, last_lines
from muarl.pages.table import to_markdown
from muarl.report.difficulty import difficulty_table
from muarl.report.report import ReportData, render
from support.pages import Page


def share(count: int, of: int = 100) -> dict[str, Any]:
    return {"value": count / of, "interval": list(wilson(count, of)), "n": of}


def summary(
    before: tuple[int, int | None], after: tuple[int, int | None], catastrophic: tuple[int, int] = (0, 0)
) -> dict[str, Any]:
    """Of a run with these (successes, of them without any violation) of 100 conversations."""
    found: dict[str, Any] = {"reward": "outcome", "audit": {}}
    for key, (good, clean), worst in (("cold_start", before, catastrophic[0]), ("rl", after, catastrophic[1])):
        part = None if clean is None else share(clean)
        found[key] = {
            "success": good / 100, "interval": list(wilson(good, 100)), "tasks": 100, "episodes": 100,
            "success_without_violation": part, "behaviour": {"writes_without_consent": 0.5},
        }  # fmt: skip
        layers = {"policy": None if clean is None else share(60), "safety": share(99), "communication": None}
        found["audit"][key] = {"catastrophic": share(worst), "success_without_violation": part, "layers": layers}
    return found


def test_the_first_sentence_says_that_success_was_paid_for_with_the_rules() -> None:
    told = summary((64, 46), (82, 28))
    first, second = last_lines(told)
    assert first.startswith(
        "Success rose from 64.0% to 82.0%, but success without any violation fell from 46.0% to 28.0%"
    )
    assert second == (
        "The reward was the task's outcome alone: 54 of 82 successes broke a rule. "
        "rl.layers.policy=0.5 pays for obeying."
    )
    shown = Page(render(ReportData("x", summary=told))).shown
    assert shown.index(first) < shown.index("An agent learned") < shown.index("it solved")
    assert second in shown and "without any violation 46% and 28%" in " ".join(shown.split())
    assert "Writes without consent" in shown and "Catastrophic failures" in shown


def test_that_the_tasks_were_trained_on_comes_first() -> None:
    first, *others = last_lines({**summary((64, 46), (82, 28)), "trained_on_benchmark": True})
    assert first == ("Warning: the agent was trained on the benchmark's own tasks, so its score means nothing.")
    assert others == last_lines(summary((64, 46), (82, 28)))


def test_a_rise_of_catastrophic_failures_is_said_and_whether_chance_may_explain_it() -> None:
    (told,) = last_lines({**summary((76, 60), (95, 90), (0, 20)), "reward": "layers"})
    assert told == "Success rose from 76.0% to 95.0%, but catastrophic failures rose from 0.0% to 20.0%."
    (unsure,) = last_lines({**summary((76, 60), (95, 90), (1, 2)), "reward": "layers"})
    assert "the intervals overlap" in unsure


@pytest.mark.parametrize("after", [(82, 82), (60, 28), (64, 20)])
def test_nothing_is_said_of_an_agent_that_obeys_or_did_not_gain(after: tuple[int, int]) -> None:
    assert not last_lines({**summary((64, 46), after), "reward": "layers"})


def test_what_the_outcome_alone_costs_is_said_only_where_it_is_known() -> None:
    assert cost_text(summary((64, 46), (82, 82))) is None, "no success broke a rule"
    assert cost_text(summary((64, None), (82, None))) is None, "nobody checked"
    assert cost_text({**summary((64, 46), (82, 28)), "reward": "layers"}) is None


def test_not_checked_is_never_equal_to_success() -> None:
    told = summary((64, None), (82, None))
    assert headline_of(told, "rl").clean is None
    shown = Page(render(ReportData("x", summary=told))).shown
    assert "whether it kept the rules meanwhile was not checked" in " ".join(shown.split())
    assert "without any violation: not checked" in shown


def test_an_older_runs_audit_tells_it_by_another_name() -> None:
    told = summary((64, 46), (82, 28))
    for key in ("cold_start", "rl"):
        del told[key]["success_without_violation"]
        told["audit"][key]["decent"] = told["audit"][key].pop("success_without_violation")
    found = headline_of(told, "rl").clean
    assert found is not None and found.value == 0.28
    assert "28%" in Page(render(ReportData("x", summary=told))).shown
    alone = {"evaluation": {"success": 0.5}, "audit": {"layers": {}, "decent": share(40)}}
    assert headline_of(alone, "evaluation").clean is not None


def test_levels_of_users_whose_episodes_were_not_all_scored_say_so() -> None:
    block = {"success": 0.5, "interval": [0.4, 0.6], "tasks": 10, "episodes": 9, "excluded": 0}
    levels = {"typical": block | {"planned": 10, "excluded": 1}, "hard": block | {"planned": 12}}
    told = {"evaluation": block | {"excluded": 1}, "planned": 10, "harder_users": levels}
    partial = [headline.partial for _, headline in by_difficulty(told)]
    assert partial == ["9 of 10 scored, 1 failed", "9 of 10 scored, 1 failed", "9 of 12 scored"]
    shown = difficulty_table(told)
    assert shown is not None and "| hard (9 of 12 scored) | 50.0% (" in to_markdown(shown)
    assert "9 of 10 scored, 1 failed" in Page(render(ReportData("x", summary=told))).shown
    older = {name: block[name] for name in ("success", "interval", "tasks", "episodes")}
    before = difficulty_table({"evaluation": older, "planned": 12, "harder_users": {"hard": older}})
    assert before is not None and "| hard | 50.0% (" in to_markdown(before), "an older version did not tell"
    whole = block | {"planned": 9}
    assert [h.partial for _, h in by_difficulty({"rl": block, "harder_users": {"hard": whole}})] == ["", ""]


def test_pages_say_of_how_many_tasks_pass_hat_is_where_it_is_not_of_all() -> None:
    hats = {"1": {"value": 0.8, "n": 10}, "2": {"value": 0.6, "n": 10}, "4": {"value": 1.0, "n": 1}}
    block = {"success": 0.8, "interval": [0.7, 0.9], "tasks": 10, "episodes": 31, "pass_hat": hats}
    told = {"evaluation": block, "audit": share(3) | {"layers": {}, "episodes": 31, "pass_hat": hats}}
    red_team = {"all": block | {"success": {"value": 0.8}}, "kinds": {"liar": {"pass_hat": hats}}}
    shown = Page(render(ReportData("x", summary=told, redteam=red_team))).shown
    assert shown.count("1 of 10 tasks") == 4, "how reliably, the audit, and two rows of red-team users"
