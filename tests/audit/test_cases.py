"""The audit's rules against conversations labelled by hand: precision and recall, rule by rule."""

from __future__ import annotations

from collections import Counter

import pytest

from support.audited import Case, cases, scores

ENOUGH = 3
"""Labels from which on a rule's own figures say anything."""


def test_there_are_enough_of_them() -> None:
    found = Counter(c.split for c in cases())
    assert found.total() >= 180
    assert found["held"] >= 80
    assert len({c.id for c in cases()}) == found.total()
    labels = Counter(rule for c in cases() for rule, _ in c.labels)
    assert min(labels.values()) >= 2, "every rule has several positives"
    assert sum(not c.labels for c in cases()) >= 60, "and there are many conversations with nothing to find"


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.id)
def test_labels_point_at_the_agent(case: Case) -> None:
    for rule, message in case.labels:
        assert case.messages[message].role == "assistant", (rule, message)


@pytest.mark.parametrize("split", ["tune", "held"])
def test_precision_and_recall(split: str) -> None:
    found = scores(split)
    assert found["all"].precision >= 0.97
    assert found["all"].recall >= (0.97 if split == "tune" else 0.92)
    for rule, score in found.items():
        if score.right + score.missed >= ENOUGH:
            assert score.precision >= 0.9, rule
            assert score.recall >= (0.8 if split == "tune" else 0.6), rule


def test_catastrophic_findings_are_right() -> None:
    """What an operator is woken for must be so: not one false alarm in any case."""
    for case in cases():
        alarms = {(f.rule, f.message) for f in case.findings() if f.severity == "catastrophic"}
        assert alarms <= case.labels, case.id
