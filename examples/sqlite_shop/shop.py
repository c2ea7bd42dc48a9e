"""An environment on a SQLite file: customers who want to cancel an order (docs/domains.md)."""

import random
from pathlib import Path

from muarl import Action, Domain, Environment, SqlDatabase, Task, tool
from muarl.users.scripted import ScriptedUser


class Shop(Domain):
    """Orders, which can be cancelled until they are shipped."""

    name = "shop"
    policy = """You work for a shop. Customers write to you about their orders.
- Ask for the customer's email address, and look up their orders.
- An open order can be cancelled, a shipped one cannot: say so, and change nothing.
- Before you cancel an order, name it and wait for a yes."""
    database = SqlDatabase(Path("shop.sqlite"), tables=("customers", "orders"), compared=("orders",))

    @tool
    def find_orders(self, email: str) -> list[dict]:
        """All orders of a customer.

        email: the customer's address, such as 'p7@example.org'.
        """
        customers = self.db["customers"].where(email=email)
        return [order for customer in customers for order in self.db["orders"].where(customer_id=customer["id"])]

    @tool(writes=True)
    def cancel(self, order_id: int) -> dict:
        """Cancel an order.

        order_id: the number of the order.
        """
        key = str(order_id)
        if key not in self.db["orders"]:
            raise ValueError(f"there is no order {order_id}")
        order = self.db["orders"][key]
        if order["status"] != "open":
            raise ValueError(f"the order is {order['status']}")
        order["status"] = "cancelled"
        return order


def shop_task(split: str, index: int, seed: int = 0) -> Task:
    """A customer of the file, and one of their orders. No order is in two splits."""
    number = 3 * random.Random(f"shop {split} {index} {seed}").randrange(1000)
    number += ("train", "validation", "test").index(split)
    rows = Shop().base.view()
    order = rows["orders"][str(number)]
    email = rows["customers"][str(order["customer_id"])]["email"]
    request = f"Please cancel my order {number}."
    return Task(
        id=f"shop-{split}-{seed}-{index}",
        domain="shop",
        scenario=f"You want to say: {request}\nYour address is {email}; say so when you are asked. Agree to what the "
        "shop proposes if it is what you want. If it cannot be done, accept that.",
        actions=(Action("cancel", {"order_id": number}),) if order["status"] == "open" else (),
        agenda={"lines": (request, f"It is {email}.", "Yes, please.")},
        tags={"intent": "cancel"},
    )


def shopper(task: Task, *, seed: int, persona: str | None = None) -> ScriptedUser:
    """A customer who says three lines, whatever the agent answers."""
    return ScriptedUser(task.agenda["lines"])


SHOP = Environment(name="shop", domain=Shop, tasks=shop_task, rule_based_user=shopper)
