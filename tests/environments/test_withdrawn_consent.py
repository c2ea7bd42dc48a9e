"""A yes that is taken back, asks, sets a condition or means a part is none, whoever serves; one in other words is.

BFCL's users say at once what is to be done: its expert proposes nothing, so that there is nothing to take back.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from muarl.domains.tasks import Task
from muarl.environments.registry import find
from support import mcp
from support.environments import MADE, ON_SERVERS
from support.replies import AGREED, HELD_BACK, WITHDRAWN, answered_with, writes_once_answered

EACH, FEW_PROPOSALS = 3, {"telecom-generated": 8}
"""Tasks for each wording; and where most requests are served without a write."""
ASKING = [name for name in MADE if name != "bfcl-generated"]
SLOW = (
    "hotel-generated", "clinic-generated", "insurance-generated", "food-delivery-generated", "bank-knowledge-generated",
    "insurer-knowledge-generated", "utility-knowledge-generated", *ON_SERVERS,
)  # fmt: skip
"""Environments that are served by the same expert as others, and those that need a server."""
everywhere = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in (*ASKING, *ON_SERVERS)]
)


@cache
def drawn(name: str, count: int) -> Sequence[Task]:
    return find(name).make_tasks("test", count)


def answered(name: str, replies: tuple[str, ...]) -> list[tuple[str, int, float]]:
    """(reply, writes tried after it, reward) of the conversations in which a proposal was answered."""
    if name in ON_SERVERS:
        mcp.needs_server(name)
    environment, found = find(name), []
    each = FEW_PROPOSALS.get(name, EACH)
    tasks = drawn(name, each * max(map(len, (WITHDRAWN, HELD_BACK, AGREED))))
    for number, reply in enumerate(replies):
        for episode in answered_with(environment, reply, tasks[each * number : each * (number + 1)]):
            writes = writes_once_answered(environment, episode, reply)
            if writes is not None:
                found.append((reply, writes, episode.reward or 0.0))
    assert len({reply for reply, *_ in found}) >= len(replies) - 2, "too few wordings had a proposal to answer"
    return found


def test_an_environment_without_proposals_asks_for_no_consent():
    bfcl = find("bfcl-generated")
    assert not bfcl.audit_rules(bfcl.make_domain()).consent
    (episode,) = answered_with(bfcl, WITHDRAWN[0], bfcl.make_tasks("test", 1))
    assert writes_once_answered(bfcl, episode, WITHDRAWN[0]) is None


@everywhere
def test_a_clean_expert_writes_nothing_after_a_yes_that_was_taken_back(name):
    wrote = [(reply, writes) for reply, writes, _ in answered(name, WITHDRAWN) if writes]
    assert not wrote


@everywhere
def test_a_clean_expert_writes_nothing_after_a_yes_that_holds_something_back(name):
    wrote = [(reply, writes) for reply, writes, _ in answered(name, HELD_BACK) if writes]
    assert not wrote


@everywhere
def test_a_clean_expert_takes_a_yes_in_any_words(name):
    missed = [(reply, writes, reward) for reply, writes, reward in answered(name, AGREED) if not writes or reward < 1]
    assert not missed
