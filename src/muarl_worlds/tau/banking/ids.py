"""The bank's fixed date, and identifiers made from what they name, as TAU2 makes them."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

TODAY = "11/14/2025"
NOW = datetime(2025, 11, 14, 3, 40)
DAY = "%m/%d/%Y"


def digits(seed: str, length: int = 16) -> str:
    """The first hex digits of the seed's sha256."""
    return hashlib.sha256(seed.encode()).digest()[: length // 2].hex()


def named(prefix: str, *parts: Any) -> str:
    """``prefix_`` and 12 hex digits of the parts, joined by colons, whatever their types are."""
    return f"{prefix}_{digits(':'.join(f'{part}' for part in parts), 12)}"


def transaction(user_id: str, card_type: str, merchant: str, amount: float, category: str) -> str:
    """A credit card transaction's. TypeError if a text is none, ValueError if the amount is no number."""
    return f"txn_{digits(':'.join(['transaction', user_id, card_type, merchant, f'{amount:.2f}', category]), 12)}"


def referral(referrer_id: str, account_type: str) -> str:
    """A referral's. TypeError if one of them is no text."""
    return digits(":".join(["referral", referrer_id, account_type]))


def dispute(user_id: Any, transaction_id: Any) -> str:
    """A dispute's: one for each user and transaction."""
    return named("dsp", "dispute", user_id, transaction_id)


def limit_request(account_id: Any, user_id: Any, amount: float) -> str:
    """A credit limit request's: one for each account, user and amount."""
    return named("cli", "cli_request", account_id, user_id, f"{amount:.2f}")


def user_call(tool_name: str, arguments: dict[str, Any]) -> str:
    """The record's of a call that the user made."""
    return digits(f"user_discoverable_tool_call:{tool_name}:{json.dumps(arguments, sort_keys=True)}")
