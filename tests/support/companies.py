"""What tests of companies share: their names, and people who read documents carelessly."""

from __future__ import annotations

from collections.abc import Sequence

from muarl_worlds.companies.rules import DocumentedRule, rule_that_holds

NAMES = ("bank-knowledge", "insurer-knowledge", "utility-knowledge")


def first_shown(
    rules: Sequence[DocumentedRule], topic: str, product: str, group: str, today: str
) -> DocumentedRule | None:
    """What somebody goes by who takes the first figure that a search shows."""
    return next((rule for rule in rules if rule.topic == topic and rule.product == product), None)


def for_all(rules: Sequence[DocumentedRule], topic: str, product: str, group: str, today: str) -> DocumentedRule | None:
    """What somebody goes by who knows no exceptions."""
    return rule_that_holds(rules, topic, product, "", today)
