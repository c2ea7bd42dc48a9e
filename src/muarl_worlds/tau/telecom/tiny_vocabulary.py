"""The words of the tiny carrier that the tiny model's tokenizer makes one token each (recipes/tiny.py)."""

from __future__ import annotations

from muarl_worlds.tau.telecom import catalogue as cat
from muarl_worlds.tau.telecom.faults import used_up

_STATUSES = ("Paid", "Overdue", "Issued", "Draft", "Awaiting Payment")
PIECES = (
    # observations
    "; line_ids [", "]", *(f"; status {s}; plan_id " for s in (
        "Active; contract running", "Suspended; contract running", "Suspended; contract ended",
    )),
    "; roaming_enabled yes; phone_number ", "; roaming_enabled no; phone_number ", "; data_left yes", "; data_left no",
    *(f"{before}status {s}; bill_id " for s in _STATUSES for before in ("", "- ", "\n- ")),
    "Error: Customer with phone number ", " not found", "data added", "line Active", "line Suspended",
    "Payment request sent to the customer for bill ", "Roaming enabled successfully", "Roaming disabled successfully",
    "Transfer successful",
    # calls
    '", "gb_amount": ', "}}\n",
    # what is said
    ". ", " GB", " GB.", " GB. ", " GB, ", " GB and ", " GB at $", " GB are added to your line. ", " GB, please.",
    " GB is enough.", " GB to my line", " GB if the data are used up", " of $", " is $", " is paid. ",
    " is suspended. ", " is off. ", " is on. ", "One GB more is $", "here?", " ###STOP###", "talk to somebody about ",
    "at home", *(f"abroad in {country}" for country in cat.ABROAD), "no data at all",
    "I will pay it", "I will not pay that", "The customer wants to talk about ", "The customer needs help.",
)  # fmt: skip
"""What stands between the values in observations and calls, and what joins sentences."""


def entities() -> list[str]:
    """What must be one token wherever it stands: ids, numbers, amounts and prices of the tiny world, and reasons."""
    pieces: list[str] = [*cat.CUSTOMER_IDS, *cat.LINE_IDS, *cat.BILL_IDS, *cat.PHONES]
    pieces += [plan for plan, *_ in cat.PLANS]
    pieces += [f"{price:.2f}" for *_, month, gb in cat.PLANS for price in (month, gb)]
    limits = [limit for _, _, limit, _, _ in cat.PLANS]
    pieces += [str(n) for n in (*cat.USED, *map(used_up, limits), *cat.AMOUNTS, *cat.TOO_MUCH)]
    return list(dict.fromkeys([*pieces, *cat.REASONS, *cat.TOPICS]))
