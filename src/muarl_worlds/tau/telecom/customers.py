"""Generated carriers: all accounts from a seed, in TAU2's schema, at any size from tiny to large.

The one knob is ``SIZES``: tiny (for the tiny model; everything from fixed pools), small, medium, official. The last is
larger than the benchmark's, whose tasks are all about one customer. The user's phone is the same at every size: TAU2's
default, which tasks break by their initial actions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from muarl.domains.kit.people import Maker
from muarl.domains.kit.service import WorldSize
from muarl_worlds.tau.calculator import compensated_sum
from muarl_worlds.tau.telecom import catalogue as cat

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CarrierSize:
    """How large a carrier is. Ranges are inclusive; ``tasks_per_carrier`` says how many tasks share one database."""

    name: str
    customers: int
    lines: tuple[int, int]
    bills: tuple[int, int]
    tasks_per_carrier: int
    pooled: bool
    """Ids, names and numbers come from the fixed pools of catalogue.py."""


SIZES = {
    size.name: size
    for size in (
        CarrierSize("tiny", 2, (1, 1), (1, 1), 1, True),
        CarrierSize("small", 20, (1, 2), (1, 2), 40, False),
        CarrierSize("medium", 60, (1, 3), (1, 3), 200, False),
        CarrierSize("official", 160, (1, 4), (2, 4), 1000, False),
    )
}

WORLD_SIZES = (
    WorldSize("tiny", 2, 1, tiny=True), WorldSize("small", 20, 40), WorldSize("medium", 60, 200),
    WorldSize("official", 160, 1000),
)  # fmt: skip
"""The same sizes as the kit knows them."""


def make_tables(maker: Maker) -> dict[str, dict[str, Record]]:
    """The tables of a carrier of as many customers as the maker asks for."""
    size = next(size for size in SIZES.values() if size.customers >= maker.people)
    return make_carrier(str(maker.rng.random()), replace(size, customers=maker.people), maker.allow).tables


OVERDUE = 0.35
"""How many customers have a bill of last month still to pay."""
MONTHS = ("2024-10", "2024-11", "2024-12", "2025-01", "2025-02")
"""The months that bills are about; the last one's is issued and not due yet, next month's is a draft."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """One generated database: ``tables`` in TAU2's schema. ``main_customers``: the people tasks are about.

    ``spare_bill``: an id that no bill has.
    """

    seed: str
    size: CarrierSize
    tables: dict[str, dict[str, Record]]
    main_customers: tuple[str, ...]
    spare_bill: str


@dataclass(frozen=True, slots=True)
class _Making:
    rng: random.Random
    size: CarrierSize
    pools: dict[str, list[str]]

    def take(self, name: str, pool: tuple[str, ...], prefix: str) -> str:
        """Another id: from the pool, else the prefix and a number of five digits; each only once in a carrier."""
        if name not in self.pools:
            everything = list(pool) if self.size.pooled else [f"{prefix}{n}" for n in range(20_000, 22_000)]
            self.pools[name] = self.rng.sample(everything, len(everything))
        return self.pools[name].pop()

    def phone(self) -> str:
        """Another phone number."""
        if self.size.pooled:
            return self.take("phones", cat.PHONES, "")
        taken = self.pools.setdefault("phones", [])
        while True:
            number = f"555-{self.rng.randint(201, 998)}-{self.rng.randint(0, 9999):04d}"
            if number not in taken:
                taken.append(number)
                return number


def make_carrier(
    seed: str, size: CarrierSize, allow_name: Callable[[str, str], bool] = lambda first, last: True
) -> Carrier:
    """Build a carrier; the same seed and size give the same one.

    ``allow_name(first, last)``: which full names may be used (keeps splits apart).
    """
    making = _Making(random.Random(f"carrier {size.name} {seed}"), size, {})
    tables: dict[str, dict[str, Record]] = {"plans": {}, "customers": {}, "lines": {}, "bills": {}, "devices": {}}
    for number, name, limit, price, refuel in cat.PLANS:
        tables["plans"][number] = {
            "plan_id": number, "name": name, "data_limit_gb": limit, "price_per_month": price,
            "data_refueling_price_per_gb": refuel,
        }  # fmt: skip
    names: set[tuple[str, str]] = set()
    for _ in range(size.customers):
        first, last = _name(making, lambda f, n: (f, n) not in names and allow_name(f, n))
        names.add((first, last))
        _add_customer(making, tables, first, last)
    main = tuple(tables["customers"])[:1] if size.pooled else tuple(tables["customers"])
    return Carrier(seed, size, tables, main, making.take("bills", cat.BILL_IDS, "B"))


def _name(making: _Making, allow: Callable[[str, str], bool]) -> tuple[str, str]:
    rng = making.rng
    while True:
        first, last = rng.choice(cat.FIRST_NAMES), rng.choice(cat.LAST_NAMES)
        if not making.size.pooled and rng.random() < 0.7:
            last += "".join(rng.choice(cat.EXTRA_SYLLABLES) for _ in range(rng.randint(1, 2)))
        if allow(first, last):
            return first, last


def _add_customer(making: _Making, tables: dict[str, dict[str, Record]], first: str, last: str) -> None:
    rng, size = making.rng, making.size
    customer_id = making.take("customers", cat.CUSTOMER_IDS, "C")
    lines = [_add_line(making, tables) for _ in range(rng.randint(*size.lines))]
    city, state = rng.choice(cat.CITIES)
    born = f"{rng.randint(1950, 2005)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    tables["customers"][customer_id] = {
        "customer_id": customer_id,
        "full_name": f"{first} {last}",
        "date_of_birth": rng.choice(cat.BIRTHDAYS) if size.pooled else born,
        "email": f"{first}.{last}@example.com".lower(),
        "phone_number": rng.choice(lines)["phone_number"],
        "address": {"street": rng.choice(cat.STREETS), "city": city, "state": state, "zip_code": rng.choice(cat.ZIPS)},
        "account_status": "Active",
        "payment_methods": [
            {
                "method_type": rng.choice(("Credit Card", "Debit Card", "PayPal")),
                "account_number_last_4": f"{rng.randint(0, 9999):04d}",
                "expiration_date": f"{rng.randint(1, 12):02d}/{rng.randint(2026, 2029)}",
            }
        ],
        "line_ids": [line["line_id"] for line in lines],
        "bill_ids": [b["bill_id"] for b in _bills(making, tables, customer_id, lines)],
        "created_at": f"202{rng.randint(0, 4)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}T10:30:00",
        "goodwill_credit_used_this_year": float(rng.choice((0, 0, 10, 25))),
    }


def _add_line(making: _Making, tables: dict[str, dict[str, Record]]) -> Record:
    rng = making.rng
    line_id = making.take("lines", cat.LINE_IDS, "L")
    device_id = f"D{line_id[1:]}"
    tables["devices"][device_id] = {
        "device_id": device_id, "device_type": "phone", "model": rng.choice(cat.MODELS),
        "imei": str(rng.randint(10**14, 10**15 - 1)), "is_esim_capable": rng.random() < 0.5, "activated": True,
        "activation_date": f"2024-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}T14:00:00",
    }  # fmt: skip
    line = {
        "line_id": line_id,
        "phone_number": making.phone(),
        "status": "Active",
        "plan_id": rng.choice(cat.PLANS)[0],
        "device_id": device_id,
        "data_used_gb": rng.choice(cat.USED),
        "data_refueling_gb": 0.0,
        "roaming_enabled": rng.random() < 0.5,
        "contract_end_date": f"202{rng.randint(6, 7)}-{rng.randint(1, 12):02d}-28",
    }
    tables["lines"][line_id] = line
    return line


def _bills(
    making: _Making, tables: dict[str, dict[str, Record]], customer_id: str, lines: list[Record]
) -> list[Record]:
    """Some paid bills, now and then an overdue one, one that is not due yet, and the draft of the next."""
    rng, pooled = making.rng, making.size.pooled
    kinds = [(month, "Paid") for month in MONTHS[-2 - rng.randint(*making.size.bills) : -2]]
    overdue = rng.random() < OVERDUE
    if overdue or not pooled:
        kinds.append((MONTHS[-2], "Overdue" if overdue else "Paid"))
    if not pooled or (not overdue and rng.random() < 0.5):
        kinds.append((MONTHS[-1], "Issued"))
    kinds.append(("2025-03", "Draft"))
    bills = []
    for month, status in kinds:
        items = [] if status == "Draft" else [_charge(tables, line, month) for line in lines]
        bill: Record = {
            "bill_id": making.take("bills", cat.BILL_IDS, "B"), "customer_id": customer_id,
            "period_start": f"{month}-01", "period_end": f"{month}-28", "issue_date": f"{month}-01",
            "total_due": compensated_sum(i["amount"] for i in items), "due_date": f"{month}-15", "line_items": items,
            "status": status,
        }  # fmt: skip
        tables["bills"][bill["bill_id"]] = bill
        bills.append(bill)
    return bills


def _charge(tables: Mapping[str, Mapping[str, Record]], line: Record, month: str) -> Record:
    amount = tables["plans"][line["plan_id"]]["price_per_month"]
    description = f"Charge for line {line['line_id']}"
    return {"description": description, "amount": amount, "date": f"{month}-01", "item_type": "Charge"}
