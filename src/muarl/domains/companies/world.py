"""A made world: some customers of a company, and what they have."""

from __future__ import annotations

from functools import partial
from typing import Any

from muarl.domains.companies.company import COMPANY_SIZES
from muarl.domains.companies.making import company, company_key
from muarl.domains.companies.trades import Trade
from muarl.domains.kit.people import Maker
from muarl.domains.kit.service import MakeTables

STATUSES = ("active",) * 9 + ("closed",)
NEW = 200
"""Of how many companies that training never meets the tasks of the split test are."""


def tables_of(trade: Trade) -> MakeTables:
    """What makes worlds of a trade. Tasks to train and to validate with are of the companies that training knows, tasks
    to test with of others."""
    return partial(_tables, trade)


def _tables(trade: Trade, make: Maker) -> dict[str, dict[str, Any]]:
    size = COMPANY_SIZES[make.size if make.size in COMPANY_SIZES else "small"]
    known = make.split != "test"
    key = company_key(size.name, make.rng.randrange(size.known if known else NEW), known=known)
    made = company(trade, key)
    tables: dict[str, dict[str, Any]] = {
        "company": {key: {"company": key, "name": made.name, "products": list(made.products)}},
        "customers": {},
        "contracts": {},
        "orders": {},
    }
    for _ in range(make.people):
        customer = {
            "customer_id": make.id("customer", "C-", 6),
            "name": make.name(),
            "postcode": make.id("postcode", "", 5),
            "group": make.rng.choice((*trade.groups, "none")),
        }
        tables["customers"][customer["customer_id"]] = customer
        for product in make.rng.sample(made.products, make.rng.randint(1, 2) if size.brief else make.rng.randint(2, 3)):
            contract = {
                trade.key: make.id("contract", trade.prefix, 5),
                "customer_id": customer["customer_id"],
                "product": product,
                "status": make.rng.choice(STATUSES),
            }
            if not size.brief:
                contract |= {"held_for_days": make.rng.randint(10, 500), **_amounts(trade, make)}
            tables["contracts"][contract[trade.key]] = contract
    return tables



def _amounts(trade: Trade, make: Maker) -> dict[str, float]:
    """What can be set, as it is now."""
    settable = [operation for operation in trade.operations if operation.kind == "amount"]
    return {o.field: float(min(trade.topic(o.topic).values) // make.rng.randint(2, 5)) for o in settable}
