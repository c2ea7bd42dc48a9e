"""What checkpoints are chosen by."""

from __future__ import annotations

from typing import Any

from muarl.recipes.training.loop import validation_scores


def row(step: int, success: float, clean: float | None = None, phase: str = "validation") -> dict[str, Any]:
    told = {} if clean is None else {"success_without_violation": clean}
    return {"phase": phase, "step": step, "success": success, **told}


def test_the_agent_that_obeys_is_kept_and_not_the_one_that_only_succeeds() -> None:
    rows = [row(4, 0.7, 0.6), row(9, 0.9, 0.3), row(9, 1.0, 1.0, phase="rl")]
    assert validation_scores(rows) == {5: 0.6, 10: 0.3}


def test_where_one_validation_was_not_audited_success_decides_among_all() -> None:
    assert validation_scores([row(4, 0.7), row(9, 0.9, 0.3)]) == {5: 0.7, 10: 0.9}
