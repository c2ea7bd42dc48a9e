"""What must hold of the marina, whatever is changed in it. Run: pytest"""

from __future__ import annotations

import asyncio
from pathlib import Path

from muarl import ExpertAgent, KnowledgeDomain, evaluate, load_environment
from muarl.agents.idle import IdleAgent

MARINA = load_environment(f"{Path(__file__).with_name('marina.py')}:MARINA")


def test_the_expert_serves_the_rule_based_users() -> None:
    report = asyncio.run(evaluate(MARINA, ExpertAgent(make=MARINA.needed_expert()), tasks=50))
    assert report.success.value >= 0.98


def test_doing_nothing_is_rarely_right() -> None:
    report = asyncio.run(evaluate(MARINA, IdleAgent(), tasks=50))
    assert report.success.value <= 0.15


def test_every_intent_is_practised() -> None:
    intents = {task.tags["intent"] for task in MARINA.make_tasks("train", 200)}
    assert {"winter", "winter_unavailable", "guest_night", "crane", "forbidden"} <= intents


def test_the_tool_that_books_is_in_no_list() -> None:
    domain = MARINA.make_domain()
    assert isinstance(domain, KnowledgeDomain)
    assert "book_winter_place_2283" not in domain.tool_names()
    naming = [one.id for one in domain.knowledge.documents if "book_winter_place_2283" in one.content]
    assert naming == ["desk/booking-winter-places"]
