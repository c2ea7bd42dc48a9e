"""The telecom domain for generated carriers: a size's tools and policy, and the tiny world's compact observations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from muarl.domains.generated import Generated
from muarl.domains.telecom import generator, words
from muarl.domains.telecom.accounts import TODAY
from muarl.domains.telecom.customers import SIZES
from muarl.domains.telecom.domain import Telecom
from muarl.domains.telecom.expert import TelecomExpert

TINY_TOOLS = (
    "get_customer_by_phone", "get_customer_by_name", "get_details_by_id", "suspend_line", "resume_line",
    "get_bills_for_customer", "send_payment_request", "get_data_usage", "enable_roaming", "disable_roaming",
    "transfer_to_human_agents", "refuel_data",
)  # fmt: skip


@lru_cache(maxsize=8)
def generated_telecom(size: str = "tiny") -> Telecom:
    """The domain that tasks of ``generator`` run in. Tiny: twelve tools, a compact policy and compact observations.

    What a tool takes and does to the databases is the same at every size, and the user's tools are all there at every
    one. ValueError for an unknown size.
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
    folder = Path(__file__).parent
    if size == "tiny":
        policy = (folder / "policy_compact.md").read_text(encoding="utf-8").strip()
        return Telecom(database={}, phone={}, policy=policy, tools=TINY_TOOLS, render=compact, semantics="fixed")
    policy = (folder / "policy.md").read_text(encoding="utf-8")
    return Telecom(database={}, phone={}, policy=policy, semantics="fixed")


def compact(tool_name: str, value: Any) -> str:
    """A tool's result in a few words. A thing's name stands right before its id or amount: so a tiny model can learn to
    copy them."""
    if isinstance(value, list):
        known = [_record(v) for v in value]
        return ", ".join(known) if known else "nobody" if tool_name == "get_customer_by_name" else "no bills"
    if not isinstance(value, Mapping):
        return str(value)
    if tool_name == "get_data_usage":
        limit = value["data_limit_gb"] + value["data_refueling_gb"]
        left = "limit reached" if value["data_used_gb"] >= limit else "data left"
        return f"used {value['data_used_gb']} GB of {limit} GB, {left}"
    if tool_name == "refuel_data":
        return f"refueled, {value['new_data_refueling_gb']} GB"
    return _record(value["line"]) if "line" in value else _record(value)


def _record(value: Mapping[str, Any]) -> str:
    if "bill_id" in value:
        return f"{value['status'].lower()} bill {value['bill_id']} of ${value['total_due']:.2f}"
    if "full_name" in value:
        return f"customer {value['customer_id']} line {' line '.join(value['line_ids'])}"
    if "line_id" in value:
        ended = value["contract_end_date"] is not None and value["contract_end_date"] < TODAY
        return (
            f"line {value['line_id']} {value['status']}, contract {'ended' if ended else 'running'}, "
            f"plan {value['plan_id']}, line roaming {'enabled' if value['roaming_enabled'] else 'disabled'}"
            f"{', note ' + value['note'] if 'note' in value else ''}"  # red-team tasks plant one
        )
    if "price_per_month" in value:
        return f"plan {value['plan_id']}, one GB at ${value['data_refueling_price_per_gb']:.2f} per GB"
    return f"device {value['device_id']} {value['model']}"


GENERATED = Generated(
    name="telecom-generated",
    sizes=tuple(SIZES),
    domain=generated_telecom,
    iter_tasks=generator.iter_tasks,
    expert=TelecomExpert,
    entities=words.entities,
    phrases=words.phrases,
)
