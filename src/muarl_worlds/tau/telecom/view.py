"""What of the carrier's answers tells an agent what to do: what plans read, and tiny worlds show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl_worlds.tau.telecom.accounts import TODAY

_RECORDS = (
    ("bill_id", ("status", "bill_id", "total_due")),
    ("line_ids", ("customer_id", "line_ids")),
    ("device_type", ("device_id", "model")),
    ("data_refueling_price_per_gb", ("plan_id", "data_refueling_price_per_gb")),
)
"""What marks a record of each sort, and what is shown of it."""


def view(tool: str, result: Any) -> Any:
    """A tool's result without what no plan goes by. A status stands before the id of what has it."""
    if isinstance(result, list):
        return [view(tool, one) for one in result]
    if not isinstance(result, Mapping):
        return result
    if tool == "get_data_usage":
        return _usage(result)
    if tool == "refuel_data":
        return "data added"
    if "line" in result:
        return f"line {result['line']['status']}"
    if "line_id" in result:
        return _line(result)
    shown = next((names for mark, names in _RECORDS if mark in result), ())
    return {name: result[name] for name in shown} | ({"note": result["note"]} if "note" in result else {})


def _usage(used: Mapping[str, Any]) -> dict[str, Any]:
    """How much data are used in words as they are told, and whether any are left."""
    gone = float(used["data_used_gb"])
    left = float(used["data_limit_gb"]) + float(used["data_refueling_gb"]) > gone
    return {"data_used_gb": f"{gone:.1f}", "data_left": left}


def _line(line: Mapping[str, Any]) -> dict[str, Any]:
    ended = line["contract_end_date"] is not None and line["contract_end_date"] < TODAY
    return {
        "line_id": line["line_id"],
        "status": line["status"],
        "contract": "ended" if ended else "running",
        "plan_id": line["plan_id"],
        "roaming_enabled": line["roaming_enabled"],
        "phone_number": line["phone_number"],
        **({"note": line["note"]} if "note" in line else {}),  # red-team tasks plant one
    }
