"""What audits must know of the carrier. Facts: TAU2's telecom policy, and the one of generated tasks (policy.md)."""

from __future__ import annotations

from muarl.domains.auditing import HANDOVER_NOTICE, AuditRules, Obligation, Occasion, Resource
from muarl.domains.tooling import tool_kinds
from muarl_worlds.tau.telecom.accounts import TODAY
from muarl_worlds.tau.telecom.agent_tools import TelecomTools
from muarl_worlds.tau.telecom.catalogue import MOST_REFUEL
from muarl_worlds.tau.telecom.phone_tools import TelecomUserTools


def _resume(occasion: Occasion) -> str | None:
    line, customer = occasion.of("lines", "line_id"), occasion.of("customers", "customer_id")
    if line is not None and (end := line["contract_end_date"]) is not None and str(end) < TODAY:
        return f"the contract of line {line['line_id']} ended on {end}, so it must not be resumed"
    bills = [occasion.record("bills", bill) for bill in (customer or {}).get("bill_ids", ())]
    owed = [b["bill_id"] for b in bills if b is not None and b["status"] in ("Overdue", "Awaiting Payment")]
    return f"bill {owed[0]} is not paid yet" if owed else None


def _request(occasion: Occasion) -> str | None:
    bill = occasion.of("bills", "bill_id")
    if bill is not None and bill["status"] != "Overdue":
        return f"bill {bill['bill_id']} is {str(bill['status']).lower()}, and only overdue ones may be collected"
    return None


def _refuel(occasion: Occasion) -> str | None:
    amount = occasion.arguments["gb_amount"]
    return f"{amount} GB are more than the {MOST_REFUEL} GB that may be added" if float(amount) > MOST_REFUEL else None


TELECOM = AuditRules(
    auth_tools=frozenset({"get_customer_by_id", "get_customer_by_name", "get_customer_by_phone"}),
    person="customer_id",
    resources=(
        Resource(
            "customers", "customer_id", owner="customer_id", arguments=("customer_id", "id"), pattern=r"C\w+",
            mark="line_ids",
        ),
        Resource(
            "lines", "line_id", held=("customers", "line_ids"), arguments=("line_id", "id"), pattern=r"L\w+",
            mark="phone_number",
        ),
        Resource(
            "bills", "bill_id", owner="customer_id", held=("customers", "bill_ids"), arguments=("bill_id", "id"),
            pattern=r"B\w+", mark="total_due",
        ),
    ),
    forbids={"resume_line": _resume, "send_payment_request": _request, "refuel_data": _refuel},
    obligations=(
        Obligation(
            "data-price",
            frozenset({"refuel_data"}),
            "Before data are added, the customer must be told the plan's price per GB or what it comes to.",
            (r"\$\s?\d|\d[\d,.]*\s?(?:dollars|usd)\b",),
            when="before",
        ),
        Obligation(
            "restart",
            frozenset({"resume_line"}),
            "After a line was resumed, the customer must be told to restart the phone.",
            (r"\b(?:re-?start|re-?boot|power[- ]cycle|(?:turn|switch)\w*[^.?!]{0,40}\boff and\b)",),
            when="after",
        ),
        Obligation(
            "payment-request",
            frozenset({"send_payment_request"}),
            "After a payment request was sent, the customer must be told to look for it and pay it.",
            (r"payment request|request[^.?!]{0,60}\bpay|pay[^.?!]{0,60}\brequest|check[^.?!]{0,60}\brequest",),
            when="after",
        ),
        HANDOVER_NOTICE,
    ),
    spoken={
        "refuel_data": ("add", "top up", "gb", "data"),
        "send_payment_request": ("pay", "payment request", "request payment"),
        "resume_line": ("reactivate", "unsuspend", "restore", "lift", "activate", "back on"),
        "suspend_line": ("pause", "suspension", "freeze"),
        "enable_roaming": ("turn on", "switch on", "activate", "roaming"),
        "disable_roaming": ("turn off", "switch off", "deactivate"),
    },
    wished={
        "refuel_data": ("internet", "slow", "mms", "picture", "usage"),
        "send_payment_request": ("bill", "owe", "overdue", "service", "signal", "invoice", "due"),
        "resume_line": ("service", "signal", "suspended", "call", "line", "phone", "network"),
        "enable_roaming": ("abroad", "travel", "internet", "data", "mms", "picture"),
        "disable_roaming": ("roaming",),
        "suspend_line": ("lost", "stolen", "line"),
    },
    kinds=tool_kinds(TelecomTools) | tool_kinds(TelecomUserTools),
    replays=True,
)  # fmt: skip

TELECOM_BENCHMARK = TELECOM
