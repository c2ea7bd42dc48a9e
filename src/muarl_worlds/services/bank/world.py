"""A made world of the bank: customers, accounts, cards, payees, card payments and standing orders."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.people import Maker
from muarl_worlds.services.bank import catalogue as cat
from muarl_worlds.services.bank.tools import TODAY


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """The tables of one world."""
    names = ("customers", "accounts", "cards", "payees", "transactions", "standing_orders", "payments")
    tables: dict[str, dict[str, Any]] = {name: {} for name in names}
    for _ in range(make.people):
        customer = {
            "customer_id": make.id("customer", "K-", 5),
            "name": make.name(),
            "date_of_birth": make.birthdate(),
            "passcode": make.id("passcode", "", 6),
        }
        tables["customers"][customer["customer_id"]] = customer
        _accounts(make, customer["customer_id"], tables)
        _payments(make, customer["customer_id"], tables)
    return tables


def _accounts(make: Maker, owner: str, tables: dict[str, dict[str, Any]]) -> None:
    rng = make.rng
    for kind in ("checking", *rng.sample(("savings", "joint"), rng.randint(1, 2))):
        balance = make.amount(40, 7000)
        account: dict[str, Any] = {
            "account_id": make.id("account", "AC-", 6),
            "customer_id": owner,
            "kind": kind,
            "balance": balance,
        }
        tables["accounts"][account["account_id"]] = account
    for kind in ("debit", "credit", "credit")[: rng.randint(1, 3)]:
        status = rng.choice(("active", "active", "active", "locked", "locked", "expired"))
        card: dict[str, Any] = {
            "card_id": make.id("card", "CD-", 5),
            "customer_id": owner,
            "kind": kind,
            "last_four": make.id("last four", "", 4),
            "status": status,
            "locked_by": rng.choice(("customer", "customer", "bank")) if status == "locked" else "nobody",
            "daily_limit": float(rng.choice((500, 800, 1000, 1500))),
            "replacement": status == "locked" and make.chance(0.2),
        }
        tables["cards"][card["card_id"]] = card


def _payments(make: Maker, owner: str, tables: dict[str, dict[str, Any]]) -> None:
    rng = make.rng
    known = rng.sample(cat.PAYEES, 3 if make.tiny else rng.randint(3, 5))
    for name in known:
        payee = {"payee_id": make.id("payee", "PY-", 4), "customer_id": owner, "name": name}
        tables["payees"][payee["payee_id"]] = payee
    for name in rng.sample(known, rng.randint(1, 2)):
        order: dict[str, Any] = {
            "standing_order_id": make.id("standing order", "S-", 4),
            "customer_id": owner,
            "payee": name,
            "amount": float(int(make.amount(15, 400))),
            "day": rng.randint(1, 28),
            "status": rng.choice(("active", "active", "active", "cancelled")),
        }
        tables["standing_orders"][order["standing_order_id"]] = order
    for merchant in rng.sample(cat.MERCHANTS, rng.randint(2, 3) if make.tiny else rng.randint(3, 6)):
        status = rng.choice(("posted", "posted", "posted", "pending"))
        transaction: dict[str, Any] = {
            "transaction_id": make.id("transaction", "T-", 6),
            "customer_id": owner,
            "merchant": merchant,
            "amount": make.amount(4, 1400),
            "date": make.date(TODAY, -2, 0) if status == "pending" else make.date(TODAY, -90, -1),
            "status": status,
            "dispute": "charged twice" if status == "posted" and make.chance(0.1) else "none",
        }
        tables["transactions"][transaction["transaction_id"]] = transaction
