"""A bookshop: policy, database, three tools, and as many tasks as wanted.

This is all that a domain's author writes. Nothing in it knows of tokens, models or training.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Literal

from muarl.domains.auditing import AuditRules, Obligation
from muarl.domains.base import Action, Database, Domain, Task, tool

TITLES = ("Emma", "Dune", "Persuasion", "Middlemarch", "Dracula", "Ulysses", "Walden", "Ivanhoe")
STREETS = ("Mill Lane", "Harbour Road", "Castle Street", "Station Road")
SPLITS = ("train", "validation", "test")
WRITES = frozenset({"refund", "change_address"})


class Bookshop(Domain):
    """Orders of books, which can be looked up, refunded in part, and sent elsewhere before they are shipped."""

    name = "bookshop"
    policy = Path("policy.md")  # beside this file
    audit = AuditRules(  # what an audit must know of the policy
        consent=True,  # before every write
        spoken={"refund": ("money back",), "change_address": ("send", "address")},  # other words that name a tool
        obligations=(
            Obligation("order-number", WRITES, "The number of the order that is changed.", (r"#B\d+",), when="before"),
        ),
    )

    @tool
    def get_order(self, order_id: str) -> dict[str, Any]:
        """Look up an order.

        order_id: the order, such as '#B1042'.
        """
        return self._order(order_id)

    @tool(writes=True)
    def refund(self, order_id: str, amount: float, reason: Literal["damaged", "lost"]) -> dict[str, Any]:
        """Refund part of an order.

        order_id: the order, such as '#B1042'.
        amount: US dollars.
        reason: why.
        """
        order = self._order(order_id)
        if order["refunded"] + amount > order["price"]:
            raise ValueError("the refund is larger than what was paid")
        order["refunded"] = round(order["refunded"] + amount, 2)
        return order

    @tool(writes=True)
    def change_address(self, order_id: str, address: str) -> dict[str, Any]:
        """Send an order that is not shipped yet to another address.

        order_id: the order, such as '#B1042'.
        address: house number and street.
        """
        order = self._order(order_id)
        if order["status"] != "open":
            raise ValueError(f"the order is {order['status']}")
        order["address"] = address
        return order

    def _order(self, order_id: str) -> Any:
        if order_id not in self.db["orders"]:
            raise ValueError(f"there is no order {order_id}")
        return self.db["orders"][order_id]  # this world's own copy: it may be changed freely


def make_task(split: str, number: int, seed: int = 0) -> Task:
    """Task ``number`` of a split ("train", "validation", "test"), with a database of its own.

    The same arguments give the same task. The order numbers of the splits do not overlap.
    """
    rng = random.Random(f"bookshop {split} {number} {seed}")
    orders = {}
    for place in rng.sample(range(300), 4):
        order_id = f"#B{1000 * (1 + SPLITS.index(split)) + place}"
        orders[order_id] = {
            "id": order_id,
            "title": rng.choice(TITLES),
            "price": rng.randrange(8, 40) / 2,  # a half of it is a whole number of cents
            "status": rng.choice(("open", "shipped")),
            "address": _address(rng),
            "refunded": 0.0,
        }
    order_id = rng.choice(list(orders))
    order = orders[order_id]
    known = f"Your order has the number {order_id}; tell it when you are asked."
    if order["status"] == "shipped":
        intent = "refund"
        wish = f"You bought {order['title']}. Its cover is torn. You want some of your money back."
        half = Action("refund", {"order_id": order_id, "amount": order["price"] / 2, "reason": "damaged"})
        actions, lines = (half,), (f"The cover of my {order['title']} is torn.", f"It is {order_id}.", "Yes, please.")
    else:
        intent, address = "change_address", _address(rng)
        wish = f"You ordered {order['title']} and have moved since. You want it sent to {address}."
        move = Action("change_address", {"order_id": order_id, "address": address})
        actions, lines = (move,), (f"Please send my order to {address}.", f"It is {order_id}.", "Yes, please.")
    return Task(
        id=f"bookshop-{split}-{seed}-{number}",
        domain=Bookshop.name,
        scenario=f"{wish}\n{known}\nAgree to what the agent proposes if it is what you want.",
        actions=actions,  # run in a fresh world, they give the state that a right conversation ends in
        database=Database({"orders": orders}),
        agenda={"lines": lines},  # what `ScriptedUserFactory` says
        tags={"intent": intent, "split": split},
    )


def draw(split: str, count: int, seed: int, start: int) -> list[Task]:
    """``count`` tasks of a split from number ``start`` on: the form in which recipes ask for tasks."""
    return [make_task(split, number, seed) for number in range(start, start + count)]


def _address(rng: random.Random) -> str:
    return f"{rng.randrange(1, 100)} {rng.choice(STREETS)}"
