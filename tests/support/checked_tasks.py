"""A shop and an airline with tasks that are right, from which tests make wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from muarl.domains.checking import CheckFinding
from muarl.domains.tasks import Action, Task
from muarl_tools.checks.tasks.report import check_source
from muarl_tools.checks.tasks.sources import TaskSource
from muarl_worlds.tau.airline.audit import AIRLINE_BENCHMARK
from muarl_worlds.tau.airline.domain import Airline, airline_database
from muarl_worlds.tau.airline.task_rules import AIRLINE_TASKS
from muarl_worlds.tau.retail.audit import RETAIL_BENCHMARK
from muarl_worlds.tau.retail.domain import Retail
from muarl_worlds.tau.retail.task_rules import RETAIL_TASKS

ADDRESS = {
    "address1": "12 Oak Lane", "address2": "Suite 4", "city": "Denver", "country": "USA", "state": "CO", "zip": "80201",
}  # fmt: skip


def variant(item_id: str, color: str, size: str, price: float, available: bool = True) -> dict[str, Any]:
    """One variant of the lamp."""
    options = {"color": color, "size": size}
    return {"item_id": item_id, "options": options, "available": available, "price": price}


LAMPS = {
    v["item_id"]: v
    for v in (
        variant("1000000001", "black", "small", 20.0),
        variant("1000000002", "white", "small", 22.0),
        variant("1000000003", "white", "large", 31.0),
        variant("1000000004", "green", "large", 33.0, available=False),
    )
}


def order(order_id: str, user_id: str, status: str, paid_with: str) -> dict[str, Any]:
    """An order of the black lamp."""
    lamp = LAMPS["1000000001"]
    item = {"name": "Lamp", "product_id": "2000000001", **{k: lamp[k] for k in ("item_id", "options", "price")}}
    return {
        "order_id": order_id, "user_id": user_id, "address": ADDRESS, "items": [item], "status": status,
        "fulfillments": [],
        "payment_history": [{"transaction_type": "payment", "amount": 20.0, "payment_method_id": paid_with}],
    }  # fmt: skip


def user(user_id: str, first: str, last: str, orders: list[str], methods: Sequence[str]) -> dict[str, Any]:
    """A customer with these payment methods (source_number)."""
    made = {}
    for name in methods:
        source = name.rpartition("_")[0]
        extra = {"credit_card": {"brand": "visa", "last_four": "1234"}, "gift_card": {"balance": 50.0}}.get(source, {})
        made[name] = {"source": source, "id": name, **extra}
    return {
        "user_id": user_id, "name": {"first_name": first, "last_name": last}, "address": ADDRESS,
        "email": f"{first}.{last}@example.com".lower(), "payment_methods": made, "orders": orders,
    }  # fmt: skip


SHOP = {
    "products": {"2000000001": {"name": "Lamp", "product_id": "2000000001", "variants": LAMPS}},
    "users": {
        "ann_lee_1001": user(
            "ann_lee_1001", "Ann", "Lee", ["#W1000001", "#W1000002"], ["credit_card_11", "gift_card_12"]
        ),
        "bob_roy_1002": user("bob_roy_1002", "Bob", "Roy", ["#W1000003"], ["paypal_13"]),
    },
    "orders": {
        "#W1000001": order("#W1000001", "ann_lee_1001", "delivered", "credit_card_11"),
        "#W1000002": order("#W1000002", "ann_lee_1001", "pending", "credit_card_11"),
        "#W1000003": order("#W1000003", "bob_roy_1002", "pending", "paypal_13"),
    },
}


def call(name: str, **arguments: Any) -> Action:
    """A gold action of the agent's."""
    return Action(name, arguments)


FIND = call("find_user_id_by_name_zip", first_name="Ann", last_name="Lee", zip="80201")
LOOK = call("get_order_details", order_id="#W1000001")
SWAP = call(
    "exchange_delivered_order_items",
    order_id="#W1000001", item_ids=["1000000001"], new_item_ids=["1000000002"], payment_method_id="credit_card_11",
)  # fmt: skip

RIGHT = Task(
    "right",
    "retail",
    "Your name is Ann Lee and your zip code is 80201. You want to exchange the lamp of order #W1000001 for a white one "
    "of the same size, and use the original payment method. If that is not possible, you leave it.",
    (FIND, LOOK, SWAP),
)
"""An exchange that the policy allows, that the scenario settles, and that is scored."""


def shop_source(*tasks: Task, splits: dict[str, list[Task]] | None = None, **options: Any) -> TaskSource:
    """These tasks in the shop, which answers as TAU2's ("official" unless said otherwise)."""
    domain = Retail(database=SHOP, policy="Be kind.", **{"semantics": "official", **options})
    return TaskSource("shop", domain, splits or {"test": list(tasks)}, RETAIL_BENCHMARK, RETAIL_TASKS)


def found(source: TaskSource) -> list[CheckFinding]:
    """What is wrong with the tasks."""
    return list(check_source(source).findings)


def rules_of(task: Task, *levels: str) -> set[str]:
    """The rules that find something in a task of the shop."""
    return {f.rule for f in found(shop_source(task)) if not levels or f.level in levels}


def variant_of(task: Task, **changes: Any) -> Task:
    """A task with other fields."""
    return replace(task, **changes)


# the airline


def passenger(first: str, last: str, born: str) -> dict[str, str]:
    """A passenger."""
    return {"first_name": first, "last_name": last, "dob": born}


def reservation(number: str, cabin: str, insurance: str = "no", status: str | None = None) -> dict[str, Any]:
    """A trip of Ann's from JFK to SEA on the 20th."""
    leg = {"flight_number": "HAT001", "origin": "JFK", "destination": "SEA", "date": "2024-05-20", "price": 100}
    return {
        "reservation_id": number, "user_id": "ann_lee_1001", "origin": "JFK", "destination": "SEA",
        "flight_type": "one_way", "cabin": cabin, "flights": [leg],
        "passengers": [passenger("Ann", "Lee", "1990-01-01")],
        "payment_history": [{"payment_id": "credit_card_11", "amount": 100}], "created_at": "2024-05-01T10:00:00",
        "total_baggages": 0, "nonfree_baggages": 0, "insurance": insurance, "status": status,
    }  # fmt: skip


def flight(number: str, price: int) -> dict[str, Any]:
    """A flight from JFK to SEA that can be booked on two days."""
    cabins = ("basic_economy", "economy", "business")
    day = {
        "status": "available",
        "available_seats": dict.fromkeys(cabins, 9),
        "prices": {c: price * n for n, c in enumerate(cabins, 1)},
    }
    return {
        "flight_number": number, "origin": "JFK", "destination": "SEA", "scheduled_departure_time_est": "08:00:00",
        "scheduled_arrival_time_est": "11:00:00", "dates": dict.fromkeys(("2024-05-20", "2024-05-21"), day),
    }  # fmt: skip


AIR = {
    "flights": {n: flight(n, p) for n, p in (("HAT001", 100), ("HAT002", 100), ("HAT003", 150))},
    "users": {
        "ann_lee_1001": {
            "user_id": "ann_lee_1001", "name": {"first_name": "Ann", "last_name": "Lee"}, "address": ADDRESS,
            "email": "ann.lee@example.com", "dob": "1990-01-01", "membership": "gold",
            "payment_methods": {
                "credit_card_11": {"source": "credit_card", "id": "credit_card_11", "brand": "visa", "last_four": "11"},
                "gift_card_12": {"source": "gift_card", "id": "gift_card_12", "amount": 900.0},
            },
            "saved_passengers": [passenger("Eve", "Lee", "1995-05-05")],
            "reservations": ["AAAAA1", "BBBBB2", "CCCCC3"],
        }
    },
    "reservations": {
        "AAAAA1": reservation("AAAAA1", "economy"),
        "BBBBB2": reservation("BBBBB2", "basic_economy"),
        "CCCCC3": reservation("CCCCC3", "economy", insurance="yes"),
    },
}  # fmt: skip

WHO = "You are Ann Lee, and your user id is ann_lee_1001. If something is not possible, you leave it. "


def flown(wish: str, *actions: Action) -> Task:
    """A task of the airline."""
    return Task("flown", "airline", WHO + wish, actions)


def air_source(*tasks: Task) -> TaskSource:
    """These tasks in the airline."""
    domain = Airline(database=airline_database(AIR), policy="Be kind.", semantics="official")
    return TaskSource("airline", domain, {"test": list(tasks)}, AIRLINE_BENCHMARK, AIRLINE_TASKS)


def air_rules(task: Task, *levels: str) -> set[str]:
    """The rules that find something in a task of the airline."""
    return {f.rule for f in found(air_source(task)) if not levels or f.level in levels}
