"""A small carrier with a phone on one of its lines, for tests of the telecom domain."""

from __future__ import annotations

from typing import Any

from muarl.domains.base import World
from muarl.domains.tasks import Task
from muarl.types.chat import ToolCall, ToolResult
from muarl_worlds.tau.telecom.domain import Telecom

PHONE = "555-0101"


def tables() -> dict[str, Any]:
    """Accounts in the form of TAU2's file: Ann has two lines and three bills, Bob one line and no draft."""
    return {
        "plans": [
            {"plan_id": "P1", "name": "S", "data_limit_gb": 5, "price_per_month": 40, "data_refueling_price_per_gb": 2}
        ],
        "customers": [
            _customer("C1", "Ann Öhm", PHONE, ["L1", "L2"], ["B1", "B2", "B3"]),
            _customer("C2", "Bob", "1", ["L3"], []),
        ],
        "lines": [
            {"line_id": "L1", "phone_number": PHONE, "status": "Active", "plan_id": "P1", "data_used_gb": 4.5},
            {"line_id": "L2", "phone_number": "555-0102", "plan_id": "P1", "suspension_start_date": "2025-02-01"},
            {"line_id": "L3", "phone_number": "555-0103", "status": "Closed", "plan_id": "P1", "roaming_enabled": True},
        ],
        "bills": [
            _bill("B1", "2025-01-01", "Paid"),
            _bill("B2", "2025-03-01", "Draft"),
            _bill("B3", "2025-02-01", "Issued"),
        ],
        "devices": [
            {"device_id": "D1", "device_type": "phone", "model": "X", "is_esim_capable": True,
             "activation_date": "2025-01-20T14:30:00"}
        ],
    }  # fmt: skip


def _customer(customer_id: str, name: str, phone: str, lines: list[str], bills: list[str]) -> dict[str, Any]:
    return {
        "customer_id": customer_id,
        "full_name": name,
        "date_of_birth": "1985-06-15",
        "email": "a@example.com",
        "phone_number": phone,
        "address": {"street": "1 Main St", "city": "Anytown", "state": "CA", "zip_code": "90210"},
        "payment_methods": [{"method_type": "PayPal", "account_number_last_4": "1", "expiration_date": "12/2026"}],
        "line_ids": lines,
        "bill_ids": bills,
    }


def _bill(bill_id: str, issued: str, status: str) -> dict[str, Any]:
    dates = {"period_start": issued, "period_end": issued, "issue_date": issued, "due_date": issued}
    return {"bill_id": bill_id, "customer_id": "C1", "total_due": 40, "status": status, **dates}


def carrier(**options: Any) -> Telecom:
    """The carrier as a domain. Options are Telecom's."""
    return Telecom(**{"database": tables(), "phone": {}, "policy": "Be exact.", **options})


def action(side: str, name: str, /, **arguments: Any) -> dict[str, Any]:
    """An initial action, or an assertion, in TAU2's form."""
    return {"env_type": side, "func_name": name, "arguments": arguments}


def task(*actions: dict[str, Any], user: bool = True, **fields: Any) -> Task:
    """A task with these initial actions, the first of which makes Ann the user."""
    first = (action("user", "set_user_info", name="Ann", phone_number=PHONE),) if user else ()
    return Task("t1", "telecom", "", fields.pop("actions", None), initial_actions=(*first, *actions), **fields)


def world(*actions: dict[str, Any], semantics: str = "official", **fields: Any) -> World:
    """A fresh world of such a task."""
    return carrier(semantics=semantics).world(task(*actions, **fields))


def agent(world: World, name: str, /, **arguments: Any) -> ToolResult:
    """One call by the agent."""
    return world.call("assistant", ToolCall("1", name, arguments))


def user(world: World, name: str, /, **arguments: Any) -> str:
    """One call by the user: the text that comes back."""
    return world.call("user", ToolCall("1", name, arguments, "user")).content


def device(world: World, field: str) -> Any:
    """One field of the phone."""
    return world.toolkit("user").db.device.peek(field)


def around(world: World, field: str) -> Any:
    """One field of the user's surroundings."""
    return world.toolkit("user").db.surroundings.peek(field)
