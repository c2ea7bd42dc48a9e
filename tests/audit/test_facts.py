"""What an audit can know of records."""

from __future__ import annotations

import warnings

import pytest

from muarl.audit.facts import Facts
from muarl.domains.auditing import AuditRules, Resource
from muarl.domains.authoring import AuthoringWarning


def test_rules_that_can_know_nothing_of_a_record_are_told_so() -> None:
    with pytest.warns(AuthoringWarning, match=r"records of 'pots'.* add replays=True, or a Resource\('pots', ...\)"):
        assert Facts(AuditRules(), None, None).record("pots", "p1") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rules in (
            AuditRules(replays=True),
            AuditRules(resources=(Resource("pans", "pan_id", owner="person_id"),)),
            AuditRules(learns=lambda call, found: ()),
        ):
            assert Facts(rules, None, None).record("pans", "p1") is None
