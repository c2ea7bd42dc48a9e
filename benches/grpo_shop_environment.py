"""grpo_shop as a muarl environment, which the processes that play episodes (``engine.processes``) can import, too."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import grpo_shop as shop
from muarl.domains.base import Domain
from muarl.domains.database import Database
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.environments.environment import Environment
from muarl.types.chat import Requestor, ToolSpec
from muarl.users.base import User
from muarl.users.scripted import ScriptedUser


class Shop(Domain):
    """The shop; the customer's answer is a record that only ``ask_customer`` reads."""

    name = "shop"
    policy = shop.POLICY

    @tool
    def ask_customer(self, question: str) -> str:
        """Ask the customer something."""
        return str(self.db["customer"]["errand"]["answer"])

    @tool(writes=True)
    def cancel_order(self, order_id: str, reason: str) -> str:
        """Cancel a pending order."""
        return self._close("cancel_order", order_id, reason)

    @tool
    def look_up_order(self, order_id: str) -> str:
        """Show an order and its status."""
        if order_id not in self.db["orders"]:
            raise ValueError("there is no such order")
        return shop.show(dict(self.db["orders"][order_id]))

    @tool(writes=True)
    def return_order(self, order_id: str, reason: str) -> str:
        """Return a delivered order."""
        return self._close("return_order", order_id, reason)

    def _close(self, name: str, order_id: str, reason: str) -> str:
        orders = self.db["orders"]
        orders[order_id] = shop.closed({key: dict(order) for key, order in orders.items()}, name, order_id, reason)
        return shop.show(dict(orders[order_id]))

    def tool_specs(self, requestor: Requestor = "assistant") -> tuple[ToolSpec, ...]:
        """The specs with TRL's keys and nothing else, so that both sides' prompts are the same ids."""
        return tuple(ToolSpec(name, text, shop.parameters(name)) for name, (text, _) in shop.TOOLS.items())


def task_of(errand: shop.Errand) -> Task:
    """The task of an errand."""
    tables = {"orders": errand.orders, "customer": {"errand": {"answer": errand.answer}}}
    gold = Action(errand.closing, {"order_id": errand.order_id, "reason": errand.reason})
    return Task(str(errand.number), Shop.name, shop.OPENING, (gold,), database=Database(tables))


def tasks(split: str, *, start: int = 0) -> Iterator[Task]:
    """The errands from number ``start`` on."""
    return (task_of(shop.errand(number)) for number in count(start))


def customer(task: Task, *, seed: int, persona: str | None = None) -> User:
    """Who only says that there is something to be done."""
    return ScriptedUser([shop.OPENING])


SHOP = Environment(name="shop", domain=Shop, tasks=tasks, replayed=True, rule_based_user=customer)
