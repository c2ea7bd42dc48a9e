"""A made world: some customers of a company, and what they have."""

from __future__ import annotations

from functools import partial
from typing import Any

from muarl.domains.kit.people import Maker
from muarl.domains.kit.service import MakeTables
from muarl_worlds.companies.company import COMPANY_SIZES, Company
from muarl_worlds.companies.making import company, company_key
from muarl_worlds.companies.trades import Trade

STATUSES = ("active",) * 9 + ("closed",)
EXCEPTIONS, CONTESTED = 0.6, 0.6
"""How often a customer is of a group for which something of theirs has an exception, and has something of which
several documents speak: without it most requests would be answered right by the first document that is found."""
NEW = 60
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
        products = _products(make, made)
        exceptions = [rule.group for rule in made.rules if rule.group and rule.product in products]
        some = exceptions if exceptions and make.chance(EXCEPTIONS) else [*trade.groups, "none"]
        customer = {
            "customer_id": make.id("customer", "C-", 6),
            "name": make.name(),
            "postcode": make.id("postcode", "", 5),
            "group": make.rng.choice(some),
        }
        tables["customers"][customer["customer_id"]] = customer
        for product in products:
            contract: dict[str, Any] = {
                trade.key: make.id("contract", trade.prefix, 5),
                "customer_id": customer["customer_id"],
                "product": product,
                "status": make.rng.choice(STATUSES),
            }
            if not size.brief:
                contract |= {"held_for_days": make.rng.randint(10, 500), **_amounts(trade, make)}
            tables["contracts"][contract[trade.key]] = contract
    return tables


def _products(make: Maker, made: Company) -> list[str]:
    """What a customer has: often something of which several documents speak."""
    count = make.rng.randint(1, 2) if made.size.brief else make.rng.randint(2, 3)
    contested = [product for product in made.products if product in made.contested]
    found = make.rng.sample(contested, min(len(contested), sum(make.chance(CONTESTED) for _ in range(count))))
    rest = [product for product in made.products if product not in found]
    return [*found, *make.rng.sample(rest, count - len(found))]


def _amounts(trade: Trade, make: Maker) -> dict[str, float]:
    """What can be set, as it is now."""
    settable = [operation for operation in trade.operations if operation.kind == "amount"]
    return {o.field: float(min(trade.topic(o.topic).values) // make.rng.randint(2, 5)) for o in settable}
