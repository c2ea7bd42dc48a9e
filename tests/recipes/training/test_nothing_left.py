"""What is told where a step has nothing to learn from."""

from __future__ import annotations

from muarl.recipes.training.pipeline import nothing_left
from muarl.types.episode import SPOILED, Episode, StopReason


def episode(number: int, stop: StopReason, **more: object) -> Episode:
    fields = {"id": str(number), "task_id": "t", "domain": "d", "seed": 0, "turns": (), "stop": stop}
    return Episode(**{**fields, **more})  # type: ignore[arg-type]


def test_each_cause_is_counted_and_the_user_is_named() -> None:
    spoiled = [episode(n, StopReason.USER_STOP, tags={SPOILED: True}) for n in range(3)]
    failed = [episode(9, StopReason.INFRASTRUCTURE, error="no answer from the user's endpoint")]
    both = str(nothing_left(4, [*spoiled, *failed]))
    assert "step 4: no group of 4 episodes" in both
    assert "1 failed for reasons outside the policy, the first: no answer from the user's endpoint" in both
    assert "In 3 the simulated user broke a rule" in both and "muarl user check" in both
    alone = str(nothing_left(4, spoiled))
    assert "outside the policy" not in alone and "In 3 " in alone
