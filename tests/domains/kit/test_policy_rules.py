"""Which numbered rules of a policy are practised and audited, as `muarl domains check` says it."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.auditing import Obligation
from muarl.domains.checking import CheckReport
from muarl.domains.policy_numbers import numbered, numbers_of, whole_rules
from muarl.environments.service import environment
from muarl.kit import Plan
from muarl_tools.checks.environment.samples import CheckContext
from support.kit import DAYS, LOAN, Library, ask_fee, library, own_loan, planned

POLICY = """# Policy

1. Identify readers first.
2. Extend a reader's own loans only.
3. Not where somebody waits for the book,
   which is
10. more than a wish.
4. Ask before you extend.
5. Say until when they have the book.
6. Be kind.
7. Extend by 14 days at most.
8. A job is a matter for a person.
9. Give no opening hours.
"""


class Numbered(Library):
    """The library with a policy whose rules have numbers."""

    name = "library"
    policy = POLICY


def lengthen(it: Plan) -> None:
    own_loan(it)
    it.refuse_if(it.l.waiting, "somebody else waits for {l.title}", rule=(3, 10))
    it.unavailable_if(it.days > 14, DAYS, it.l.choices, rule=7)
    it.write("extend_loan", loan_id=it.loan, days=it.days, propose="extend {loan} by {days} days", done="Ok.", rule=4)


def fee(it: Plan) -> None:
    it.l = it.look("get_loan", loan_id=it.loan)
    it.refuse_if(it.l.reader_id != it.user.reader_id, "loan {loan} is not yours", rule=2)
    it.answer("It has cost {l.fee|money} so far.", tell="{l.fee|plain}", rule=2)


DUTY = Obligation("due", frozenset({"extend_loan"}), "until when", say=("until",), when="after", rule=5)
KEPT: dict[int | str, str] = {1: "identity", 4: "consent", 6: "tone, for a judge", 8: "outside"}


def checked(*plans: Any, **more: Any) -> CheckReport:
    service = library(*plans, domain=Numbered, **more)
    made = environment(service, name="library")
    (check,) = (check for check in made.own_checks() if check.name == "policy-rules")
    found: CheckReport = check.look(CheckContext(made, count=200))
    return found


PLANS = (
    planned(lengthen, [LOAN, DAYS], "extend {loan} by {days} days"),
    planned(fee, [LOAN], "know the fee of {loan}"),
)


def test_each_rule_has_what_keeps_it_the_tasks_that_meet_it_and_its_audit() -> None:
    found = checked(*PLANS, rules=KEPT, obligations=(DUTY,))
    head, *rows = found.rows
    assert head == ("rule", "declared by", "tasks", "audit")
    named = [(number, by, audit) for number, by, _, audit in rows]
    assert named == [
        ("1", "identity", "write-before-authentication, access-before-authentication"),
        ("2", 'fee: refuse "loan {loan} is not yours"', "the reward only"),
        ("", "fee: answer", "the reward only"),
        ("3", 'lengthen: refuse "somebody else waits for {l.title}"', "ineligible-write"),
        ("10", 'lengthen: refuse "somebody else waits for {l.title}"', "ineligible-write"),
        ("4", "consent", "write-without-consent"),
        ("", "lengthen: write extend_loan", "write-without-consent"),
        ("5", "obligation due", "unsaid-due"),
        ("6", 'said: "tone, for a judge"', "–"),
        ("7", 'lengthen: unavailable "days"', "the reward only"),
        ("8", "outside", "the reward only"),
        ("9", "nothing", "nothing"),
    ]
    tasks = {by: int(count) for _, by, count, _ in rows if count}
    assert tasks['fee: refuse "loan {loan} is not yours"'] == 11 and tasks['lengthen: unavailable "days"'] == 26
    assert tasks["consent"] == tasks["obligation due"] and tasks["identity"] == 200
    assert found.rules is not None and found.rules.tasks == 200
    own, told = next(rule for rule in found.rules.rules if rule.number == "2").keepers
    assert (own.what, own.text, own.tasks) == ("fee: refuse", "loan {loan} is not yours", 11)
    first = fee.__code__.co_firstlineno
    assert own.place == f"test_policy_rules.py:{first + 2}" and told.place == f"test_policy_rules.py:{first + 3}"
    (problem,) = found.problems
    assert "nothing practises or audits rule 9 of the policy (Give no opening hours.)" in str(problem)
    assert "Write rule=9" in str(problem) and found.measured == "9 of 10 numbered rules, 200 tasks"


def test_a_number_that_the_policy_has_not() -> None:
    def odd(it: Plan) -> None:
        own_loan(it)
        it.refuse_if(it.l.waiting, "somebody waits", rule="3.2")
        it.write("extend_loan", loan_id=it.loan, days=it.days, propose="extend {loan} by {days} days", done="Done.")

    found = checked(planned(odd, [LOAN, DAYS], "extend {loan} by {days} days"), ask_fee)
    (problem,) = (one for one in found.problems if "has no rule" in one.what)
    assert problem.what == "the policy has no rule 3.2" and problem.where.startswith("intent odd (test_policy_rules.py")


def test_nothing_is_asked_of_who_names_no_rule() -> None:
    found = checked(planned(lambda it: ask_fee.plan(it), [LOAN], "know the fee of {loan}", name="fee"))
    assert not found.problems and not found.rows
    assert found.measured == "the policy numbers 10 rules; no declaration names one (refuse_if(..., rule=10))"
    assert found.rules is not None and not found.rules.declared and len(found.rules.rules) == 10


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        ("1. One.\n2) Two.\n  3. within\n", ["1", "2"]),
        ("### 3.2 Refunds\n**4.** Bold.\nRule 5: Five.\n§ 6 Six.\n3.3 Loans are\n3.5 euros\n", [
            "3.2", "4", "5", "6", "3.3"]),
        ("1. One.\n\n# Again\n\n1. Another.\n2. Two.\n", ["2"]),
        ("They have\n3 days, and pay\n2.50 euros.\n", []),
    ],
)  # fmt: skip
def test_numbered_rules_of_a_text(policy: str, found: list[str]) -> None:
    assert list(numbered(policy)) == found


def test_the_whole_text_of_a_rule_ends_where_something_else_begins() -> None:
    policy = """# Desk
1. Renew twice at most,
   and not where:
   - somebody waits
   - it is late

   even then once.

2. Be kind.

Opening hours are on the door.

3.1 Refunds have limits.
## Rule 4: Loans
Two weeks.

Or three.
## The end
"""
    assert whole_rules(policy) == {
        "1": "Renew twice at most, and not where:\n- somebody waits\n- it is late\n\neven then once.",
        "2": "Be kind.",
        "3.1": "Refunds have limits.",
        "4": "Loans Two weeks.\n\nOr three.",
    }
    assert whole_rules("Be kind.") == {}


def test_what_is_no_number_is_refused() -> None:
    assert numbers_of(None) == () and numbers_of(10) == ("10",) and numbers_of(("3.2", 4)) == ("3.2", "4")
    for wrong in ("ten", -1, True, 1.5, ("3", "x")):
        with pytest.raises(ConfigError, match="is no number of a rule"):
            numbers_of(wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="library: rules: the service has no consent"):
        library(ask_fee, rules={4: "consent"}, consent=False)
