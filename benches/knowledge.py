"""Companies with documents: what the expert and agents without any sense earn in them, and how long a search takes.

    python benches/knowledge.py                          # all three trades in all sizes, 200 tasks each
    python benches/knowledge.py --size tiny --tasks 500
    python benches/knowledge.py --smoke                  # a small run that only shows that it works

Agents, on the same held-out tasks of companies that training never meets: the scripted expert; the expert that goes by
the first document which a search shows, and the one that knows no exceptions for groups of customers; and those that do
nothing, that transfer everybody at once, and that answer "Yes." to everything. Success with its 95% interval.

A search is ``KB_search`` as the tool answers it, for each product and topic of the company: milliseconds of processor
time a call, the median over the rounds with the lowest and highest round; and of the first, which makes the index.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("OMP_NUM_THREADS", "1")

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.environments.environment import Environment
from muarl.environments.play import evaluate
from muarl.environments.registry import find
from muarl.types.chat import ToolCall
from muarl_worlds.companies import finding
from muarl_worlds.companies.company import COMPANY_SIZES
from muarl_worlds.companies.rules import DocumentedRule, rule_that_holds
from muarl_worlds.companies.wording import rule_query

TRADES = ("bank-knowledge-generated", "insurer-knowledge-generated", "utility-knowledge-generated")
Holds = Callable[[Sequence[DocumentedRule], str, str, str, str], DocumentedRule | None]


def first_shown(
    rules: Sequence[DocumentedRule], topic: str, product: str, group: str, today: str
) -> DocumentedRule | None:
    """What somebody goes by who takes the first figure that a search shows."""
    return next((rule for rule in rules if rule.topic == topic and rule.product == product), None)


def for_all(rules: Sequence[DocumentedRule], topic: str, product: str, group: str, today: str) -> DocumentedRule | None:
    """What somebody goes by who knows no exceptions."""
    return rule_that_holds(rules, topic, product, "", today)


def agents(environment: Environment) -> dict[str, tuple[Agent, Holds]]:
    """By name, an agent, and what holds in the eyes of the expert."""
    expert = ExpertAgent(make=environment.needed_expert())
    return {
        "expert": (expert, rule_that_holds),
        "first document": (expert, first_shown),
        "no exceptions": (expert, for_all),
        "do nothing": (IdleAgent(), rule_that_holds),
        "always transfer": (TransferAgent(), rule_that_holds),
        "say yes": (IdleAgent("Yes.", name="say-yes"), rule_that_holds),
    }


def earned(environment: Environment, size: str, count: int) -> dict[str, dict[str, Any]]:
    """What each agent earns."""
    tasks = environment.make_tasks("test", count, size=size)
    found = {}
    for name, (agent, holds) in agents(environment).items():
        with mock.patch.object(finding, "rule_that_holds", holds):  # the tasks are made: what is right stays as it is
            report = asyncio.run(evaluate(environment, agent, tasks, size=size))
        success, seen = report.success, report.behaviour
        found[name] = {"value": success.value, "interval": list(success.interval)} | {
            k: seen[k] for k in ("grounded", "audit/searches", "turns") if k in seen
        }
    return found


def searched(environment: Environment, size: str, rounds: int) -> dict[str, Any]:
    """How long a search takes in a company of a size."""
    domain: Any = environment.make_domain(size)
    task = environment.make_tasks("test", 1, size=size)[0]
    world, trade = domain.world(task), domain.trade
    own = world.toolkit("assistant").company
    queries = [rule_query(product, topic.name) for product in own.products for topic in trade.topics]

    def search(query: str) -> None:
        assert not world.call("assistant", ToolCall("c", "KB_search", {"query": query})).error

    own.__dict__.pop("knowledge", None)  # whose index has been made with the task
    begun = time.process_time()
    search(queries[0])
    first, took = time.process_time() - begun, []
    for _ in range(rounds):
        begun = time.process_time()
        for query in queries:
            search(query)
        took.append((time.process_time() - begun) * 1e3 / len(queries))
    return {
        "documents": len(own.documents),
        "first": first * 1e3,
        "median": statistics.median(took),
        "lowest": min(took),
        "highest": max(took),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(COMPANY_SIZES), action="append")
    parser.add_argument("--trade", choices=TRADES, action="append")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    sizes, trades = options.size or list(COMPANY_SIZES), options.trade or TRADES
    count, rounds = (4, 2) if options.smoke else (options.tasks, options.rounds)
    results = []
    for size in sizes[:1] if options.smoke else sizes:
        for trade in trades:
            environment = find(trade)
            took = searched(environment, size, rounds)
            print(f"\n{trade}, {size}: {took['documents']} documents")
            spread = f"{took['lowest']:.3f} to {took['highest']:.3f}"
            print(f"  a search {took['median']:.3f} ms ({spread}), the first {took['first']:.1f} ms", flush=True)
            scores = earned(environment, size, count)
            for name, one in scores.items():
                low, high = one["interval"]
                more = ", ".join(f"{k.removeprefix('audit/')} {one[k]:.2f}" for k in ("grounded", "audit/searches")
                                 if k in one)  # fmt: skip
                print(f"  {name:16} {one['value']:6.1%} ({low:.1%} to {high:.1%}) {more}", flush=True)
            results.append({"trade": trade, "size": size, "search": took, "tasks": count, "agents": scores})
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
