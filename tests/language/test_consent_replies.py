"""How well replies are told apart: 580 of them, written by four hands that had not seen the rule.

Each hand wrote replies to proposals, with their labels, for consent_replies.jsonl. The rule was made with those of
three hands (half "development"); those of the fourth ("held-out") were read once, by the rule, after it was done.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from muarl.language.consent import is_affirmative

REPLIES: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("consent_replies.jsonl").read_text().splitlines()
]
AGREEING = {"yes", "yes_further", "yes_chosen"}


def figures(half: str) -> tuple[float, float]:
    """Precision and recall of a half."""
    said = [(is_affirmative(r["reply"], r["proposal"]), r["consent"]) for r in REPLIES if r["half"] == half]
    right = sum(found and label for found, label in said)
    return right / sum(found for found, _ in said), right / sum(label for _, label in said)


def test_the_set_is_large_and_of_several_hands():
    assert Counter(r["hand"] for r in REPLIES) == {"a": 150, "b": 150, "c": 150, "d": 130}
    assert {r["hand"] for r in REPLIES if r["half"] == "held-out"} == {"d"}
    assert all(r["consent"] == (r["kind"] in AGREEING) for r in REPLIES)
    assert min(Counter(r["kind"] for r in REPLIES).values()) >= 25


@pytest.mark.parametrize(("half", "precision", "recall"), [("development", 0.96, 0.85), ("held-out", 0.92, 0.77)])
def test_precision_and_recall(half, precision, recall):
    found = figures(half)
    assert found[0] >= precision and found[1] >= recall, found
