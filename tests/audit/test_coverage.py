"""A layer that no rule was declared for is not checked: it has no share, and nothing says 100%."""

from __future__ import annotations

import pytest

from muarl.audit.coverage import checked_layers, made, missing
from muarl.audit.findings import LAYERS, Finding
from muarl.audit.rules import rules_for
from muarl.audit.summary import AuditSummary
from muarl.domains.auditing import UNDECLARED, AuditRules, Obligation
from muarl.domains.base import Domain
from muarl.domains.tooling import tool
from muarl.report.audit_tables import headline, layers, markdown
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_worlds.tau.airline.audit import AIRLINE_BENCHMARK
from support.environments import rules_of

SHIFT = Finding("safety", "followed-injection", "catastrophic", 1, "oh no", "put")
HASTY = Finding("policy", "write-without-consent", "violation", 1, "unasked", "put")


def episode(name: str) -> Episode:
    turns = [Turn(Message("user", "hi")), Turn(Message("assistant", "Hello."))]
    return Episode(name, name, "x", turns, StopReason.USER_STOP, verdict=Verdict(1.0))


def summed(*found: tuple[AuditRules, tuple[Finding, ...]]) -> AuditSummary:
    summary = AuditSummary("test")
    for n, (rules, findings) in enumerate(found):
        summary.add(episode(f"t{n}"), findings, rules=rules)
    return summary


def test_where_nothing_is_declared_nothing_is_said_to_be_kept() -> None:
    found = summed((UNDECLARED, ()), (UNDECLARED, ()))
    data = found.to_json()
    assert [data["layers"][n] for n in ("policy", "communication", "safety")] == [None] * 3
    assert data["catastrophic"] is None
    assert data["success_without_violation"] is None
    assert data["layers"]["outcome"]["value"] == data["layers"]["recovery"]["value"] == 1.0
    assert data["not_checked"]["policy"] == {"authentication": 2, "consent": 2, "eligibility": 2}
    assert {row[0]: row[2] for row in layers(found)}["safety"] == "not checked"
    assert headline(found)[0] == ("catastrophic failures", "not checked", "")
    text = markdown(found)
    assert "| safety | were safety boundaries respected? | not checked |  |" in text
    assert "safety (other people's data; unapproved changes)" in text


def test_what_is_found_all_the_same_is_counted() -> None:
    found = summed((UNDECLARED, (SHIFT, HASTY)), (UNDECLARED, ()))
    assert found.catastrophic is not None
    assert (found.catastrophic.value, found.catastrophic.n) == (1.0, 1), "the other one may hold as much"
    assert found.to_json()["rules"]["write-without-consent"]["findings"] == 1
    assert found.clean("policy") is None


def test_a_share_is_of_the_episodes_whose_layer_was_checked() -> None:
    asked = AuditRules()
    found = summed((asked, (HASTY,)), (asked, ()), (UNDECLARED, ()))
    share = found.clean("policy")
    assert share is not None
    assert (share.value, share.n) == (0.5, 2)
    assert "eligibility" in markdown(found)
    assert "consent, in 1 of 3" in markdown(found)


def test_a_judge_looks_at_policy_and_words_but_not_at_whose_data_they_are() -> None:
    assert checked_layers(UNDECLARED, judged=True) == {"outcome", "policy", "communication", "recovery"}


@pytest.mark.parametrize(
    ("rules", "layer", "names"),
    [
        (AuditRules(auth_tools=frozenset({"log_in"}), consent=False), "safety", {"other people's data"}),
        (AuditRules(told_person=r"C\d+", consent=False), "safety", {"other people's data"}),
        (AuditRules(), "safety", {"unapproved changes"}),
        (AuditRules(forbids={"put": lambda occasion: None}, consent=False), "policy", {"eligibility"}),
        (AuditRules(kinds={"put": "write"}, free_writes=frozenset({"put"})), "policy", set()),
        (AuditRules(obligations=(Obligation("price", frozenset({"put"}), "It."),)), "communication", set()),
        (AuditRules(obligations=(Obligation("price", frozenset({"put"}), "It.", ("x",)),)), "communication",
         {"required information"}),
    ],
)  # fmt: skip
def test_what_switches_a_check_on(rules: AuditRules, layer: str, names: set[str]) -> None:
    assert {c.name for c in made(rules) if c.layer == layer} == names


def test_of_the_domains_that_come_with_muarl() -> None:
    assert not missing(AIRLINE_BENCHMARK)
    for name, benchmark in (("bfcl", True), ("acebench", True), ("mock", False)):
        assert checked_layers(rules_of(name, benchmark=benchmark)) == {"outcome", "recovery"}, name
    assert checked_layers(rules_of("bfcl")) == {"outcome", "recovery", "communication"}
    assert checked_layers(rules_of("acebench")) == set(LAYERS)
    assert not rules_for(None).declared


class Shop(Domain):
    """One tool."""

    name = "own-shop"
    database = {"things": {}}
    audit = AuditRules(consent=False, auth_tools=frozenset({"log_in"}))

    @tool
    def log_in(self, word: str) -> str:
        """Find a person.

        word: the password.
        """
        return word


def test_a_class_that_declares_rules_is_audited_by_them() -> None:
    rules = rules_for(Shop())
    assert rules.declared
    assert {c.name for c in made(rules)} == {"authentication", "other people's data"}
