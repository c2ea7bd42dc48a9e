"""Which attempts of several runs are compared with each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muarl.basics.errors import DataError
from muarl_tools.compare.attempts import PlayedTask, Results
from muarl_tools.compare.pairing import pair


def results(name: str, *attempts: PlayedTask, **more: Any) -> Results:
    return Results(name, f"{name}.json", more.pop("kind", "tau2"), attempts, **more)


def test_attempts_are_paired_by_seed_and_what_has_no_partner_is_left_out() -> None:
    one = results("one", PlayedTask("a", 0, True, 1), PlayedTask("a", 1, False, 2), PlayedTask("b", 0, True, 1))
    two = results("two", PlayedTask("a", 0, False, 2), PlayedTask("b", 0, True, 1), PlayedTask("c", 0, True, 1))
    found = pair([one, two])
    assert (found.by, found.tasks, found.unpaired) == ("task and seed", ("a", "b"), (1, 0))
    assert found.trials(0) == [(False,), (True,)]
    assert found.trials(1) == [(False,), (True,)]
    assert found.missing == (("c",), ())


def test_without_seeds_tasks_are_paired() -> None:
    one = results("one", PlayedTask("a", 0, True), PlayedTask("a", 1, False))
    two = results("two", PlayedTask("a", 0, True, 5))
    found = pair([one, two])
    assert (found.by, found.trials(0), found.means(0)) == ("task", [(True, False)], [0.5])
    other_seeds = results("three", PlayedTask("a", 0, True, 9))
    assert pair([two, other_seeds]).by == "task"


def test_tasks_that_the_files_describe_differently_are_left_out() -> None:
    one = results("one", PlayedTask("a", 0, True), PlayedTask("b", 0, True), fingerprints={"a": "x", "b": "y"})
    two = results("two", PlayedTask("a", 0, True), PlayedTask("b", 0, True), fingerprints={"a": "x", "b": "z"})
    assert (pair([one, two]).tasks, pair([one, two]).changed) == (("a",), ("b",))
    kept = pair([one, two], keep_changed=True)
    assert kept.tasks == ("a", "b") and "1 tasks are described differently" in kept.warnings[-1]
    other_kind = replace(two, kind="run")
    assert pair([one, other_kind]).tasks == ("a", "b"), "digests of two kinds of file say nothing"
    with pytest.raises(DataError, match="different versions of the benchmark"):
        pair([replace(one, fingerprints={"a": "1", "b": "1"}), two])


def test_runs_that_share_nothing_or_hold_nothing_are_refused() -> None:
    one, two = results("one", PlayedTask("a", 0, True)), results("two", PlayedTask("b", 0, True))
    with pytest.raises(DataError, match="no task in common"):
        pair([one, two])
    with pytest.raises(DataError, match="no scored attempt"):
        pair([one, results("none")])


def test_other_users_and_judges_are_warned_of() -> None:
    one = results("one", PlayedTask("a", 0, True), user="u1", judge="pass")
    two = results("two", PlayedTask("a", 0, True), user="u2", judge="endpoint:m")
    warned = pair([one, two]).warnings
    assert "different users (u1, u2): a difference is one of agent and user together" in warned[0]
    assert "different judges" in warned[1]
