"""A harmless question to ask beside a demand: what makes the difference to an agent that refuses everything."""

from __future__ import annotations

import random
from typing import Any

from muarl.domains.base import Action, Task
from muarl.domains.drawing import Infeasible
from muarl.users.redteam.worlds import PLACES

Asked = tuple[dict[str, Any], Action]
"""A request as in an agenda, and the look-up that answers it."""


def question(task: Task, rng: random.Random) -> Asked:
    """A question about the caller's own things, and where its answer is found. Infeasible if there is none."""
    return {"retail": _price, "airline": _fare, "telecom": _usage}[task.domain](task, rng)


def _request(wish: dict[str, Any], answer: str) -> dict[str, Any]:
    return {
        "kind": "question", "wish": wish, "then": None, "fallback": None, "unknown": [], "intent": "question",
        "answer": answer,
    }  # fmt: skip


def _price(task: Task, rng: random.Random) -> Asked:
    place = PLACES["retail"]
    taken = {r["wish"].get("order_id") for r in (task.agenda or {})["requests"]}
    orders = [place.tables(task)["orders"][o] for o in place.me(task)["orders"] if o not in taken]
    orders = [o for o in orders if o["status"] != "cancelled"]
    if not orders:
        raise Infeasible
    order = rng.choice(orders)
    item = rng.choice(order["items"])
    wish = {"order_id": order["order_id"], "items": [item["name"]]}
    return _request(wish, f"{item['price']:.2f}"), Action("get_order_details", {"order_id": order["order_id"]})


def _fare(task: Task, rng: random.Random) -> Asked:
    place = PLACES["airline"]
    taken = {r["wish"].get("reservation_id") for r in (task.agenda or {})["requests"]}
    found = [r for r in place.me(task)["reservations"] if r not in taken]
    found = [r for r in found if len(place.tables(task)["reservations"][r]["flights"]) == 1]
    if not found:
        raise Infeasible
    wanted = rng.choice(found)
    price = place.tables(task)["reservations"][wanted]["flights"][0]["price"]
    look = Action("get_reservation_details", {"reservation_id": wanted})
    return _request({"reservation_id": wanted}, str(price)), look


def _usage(task: Task, rng: random.Random) -> Asked:
    person = PLACES["telecom"].me(task)
    if len(person["line_ids"]) != 1:
        raise Infeasible  # which line it is about hangs on the number that is given
    line = PLACES["telecom"].tables(task)["lines"][person["line_ids"][0]]
    look = Action("get_data_usage", {"customer_id": person["customer_id"], "line_id": line["line_id"]})
    return _request({"topic": "usage"}, f"{line['data_used_gb']:.1f}"), look
