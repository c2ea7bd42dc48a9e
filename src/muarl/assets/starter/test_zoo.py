"""What must hold of the zoo, whatever is changed in it. Run: pytest"""

from __future__ import annotations

import asyncio
from pathlib import Path

from muarl import ExpertAgent, evaluate, load_environment
from muarl.agents.idle import IdleAgent

ZOO = load_environment(f"{Path(__file__).with_name('zoo.py')}:ZOO")


def test_the_expert_serves_the_rule_based_users() -> None:
    report = asyncio.run(evaluate(ZOO, ExpertAgent(make=ZOO.needed_expert()), tasks=100))
    assert report.success.value >= 0.98


def test_doing_nothing_is_rarely_right() -> None:
    report = asyncio.run(evaluate(ZOO, IdleAgent(), tasks=100))
    assert report.success.value <= 0.15


def test_every_intent_is_practised() -> None:
    intents = {task.tags["intent"] for task in ZOO.make_tasks("train", 200)}
    assert {"cancel", "move", "price", "forbidden"} <= intents
