"""A small bank for tests, in TAU2's layout."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy

from muarl.retrieval.documents import Document
from muarl.types.chat import ToolCall
from muarl_worlds.tau.banking.domain import Banking
from muarl_worlds.tau.banking.records import NOTES, TABLES

ANN = {"name": "Ann Lee", "user_id": "u1", "address": "1 Main St", "email": "ann@x.org", "phone_number": "512-555-0100",
       "date_of_birth": "01/02/1990"}  # fmt: skip


def account(key, **fields):
    return {
        "account_id": key, "user_id": "u1", "class": "checking", "level": "Blue Account", "date_opened": "01/02/2020",
        "status": "OPEN", "current_holdings": "100.00", **fields,
    }  # fmt: skip


def card(key, **fields):
    return {
        "card_id": key, "account_id": "chk", "user_id": "u1", "last_4_digits": "4821", "status": "ACTIVE",
        "issue_date": "03/20/2024", "issue_reason": "new_account", **fields,
    }  # fmt: skip


DATA = {
    "users": {"u1": ANN, "u2": {"user_id": "u2", "name": "Bob Ray"}},
    "accounts": {
        "chk": account("chk"),
        "sav": account("sav", **{"class": "savings"}, level="Silver Account", current_holdings="$2,000.00"),
        "new": account("new", date_opened="11/01/2025", current_holdings="25"),
        "hers": account("hers", user_id="u2", current_holdings=0),
    },
    "debit_cards": {
        "old": card("old"),
        "lost": card("lost", status="PENDING", issue_reason="lost"),
        "iced": card("iced", account_id="gone", status="FROZEN"),
    },
    "credit_card_accounts": {
        "cc": {"account_id": "cc", "user_id": "u1", "status": "ACTIVE", "current_balance": "$842.15",
               "credit_limit": "$5,000.00"},
    },
    "bank_account_transaction_history": {
        "b1": {"transaction_id": "b1", "account_id": "chk", "date": "11/01/2025", "amount": -5.0},
        "b2": {"transaction_id": "b2", "account_id": "chk", "date": "11/03/2025", "amount": -6.0},
        "b3": {"transaction_id": "b3", "account_id": "chk", "date": "11/03/2025", "amount": -7.0},
        "atm": {"transaction_id": "atm", "account_id": "chk", "date": "11/02/2025", "type": "atm_deposit",
                "description": "RHO-BANK ATM #1", "amount": -20},
    },
    "payment_history": {
        f"p{month}": {"credit_card_account_id": "cc", "payment_date": f"{month}/15/2025", "amount": "$1", "status": how}
        for month, how in (("08", "LATE"), ("09", "ON_TIME"), ("10", "ON_TIME"))
    },
}  # fmt: skip
TABLES_GIVEN = {name: {"data": rows, "notes": f"about {name}"} for name, rows in DATA.items()}
DOCUMENTS = (
    Document("d1", "Fees", "The ATM fee is $3. A fee may be refunded."),
    Document("d2", "Cards", "Credit card and debit card rules."),
    Document("d3", "Loans", "Nothing to see here."),
)


def bank(semantics="official", **options):
    given = {"database": TABLES_GIVEN, "documents": DOCUMENTS, "policy": "Be kind.", **options}
    return Banking(semantics=semantics, **given)


def use(world, name, requestor="assistant", **arguments):
    return world.call(requestor, ToolCall("c", name, arguments, requestor))


def find(world, name, given=None, **arguments):
    """Unlock a discoverable tool of the agent's and call it."""
    use(world, "unlock_discoverable_agent_tool", agent_tool_name=name)
    text = json.dumps(arguments) if given is None else given
    return use(world, "call_discoverable_agent_tool", agent_tool_name=name, arguments=text)


def hash_in_layout(tables):
    """TAU2's hash of plain tables (with the notes as one of them), computed without any of the library's means."""
    tables, rest = deepcopy(tables), {}
    notes = tables.pop(NOTES)
    for name in TABLES:
        rest[name] = {"data": tables[name], "notes": notes[name]}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
