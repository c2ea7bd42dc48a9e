"""Success by kind of episode."""

from __future__ import annotations

from muarl.accounts.breakdowns import breakdown
from support.scored_episodes import attempts


def test_what_has_no_key_is_left_out() -> None:
    assert breakdown(attempts(a="1"), lambda e: e.tags.get("intent")) == {}


def test_numbers_are_in_their_order() -> None:
    episodes = attempts(a="1", b="0", c="11")
    levels = {"a": 10, "b": 9, "c": None}
    shares = breakdown(episodes, lambda e: levels[e.task_id])
    assert [(name, share.value, share.n) for name, share in shares.items()] == [("9", 0.0, 1), ("10", 1.0, 1)]
