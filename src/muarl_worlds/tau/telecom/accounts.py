"""The carrier's accounts: how records are found and charged, how a task breaks them, and what can be asserted of them.

None of these methods is a tool. Names, error texts and the order of checks are TAU2's.
"""

from __future__ import annotations

import uuid
from typing import Any

from muarl.domains.base import Domain
from muarl_worlds.tau.telecom.records import IDS, free_key

Record = dict[str, Any]

TODAY = "2025-02-25"
CYCLE_END = "2025-02-28"
LAST_MONTH = ("2025-01-01", "2025-01-31", "2025-01-15")
NEXT_MONTH = ("2025-03-01", "2025-03-31", "2025-03-15")
"""First day (also the day of issue), last day, and the day on which the bill is due."""


def _bill(bill_id: str, customer_id: str, month: tuple[str, str, str], status: str) -> Record:
    start, end, due = month
    return {
        "bill_id": bill_id, "customer_id": customer_id, "period_start": start, "period_end": end, "issue_date": start,
        "total_due": 0.0, "due_date": due, "line_items": [], "status": status,
    }  # fmt: skip


def _add_item(bill: Record, description: str, amount: float) -> None:
    kind = "Credit" if amount < 0 else "Charge"
    bill["line_items"].append({"description": description, "amount": amount, "date": TODAY, "item_type": kind})
    bill["total_due"] += amount


class TelecomAccounts(Domain):
    """The accounts behind the agent's tools. Underscored methods find records; reads peek, writes take their own."""

    def _by_id(self, table: str, record_id: Any) -> Record:
        """A record for reading only. ValueError if there is none; ids of a wrong type find nothing either."""
        records = self.db[table]
        if isinstance(record_id, str) and record_id in records:
            found: Record = records.peek(record_id)
            if found[IDS[table]] == record_id:
                return found
        raise ValueError(f"{table[:-1].capitalize()} with ID {record_id} not found")

    def _line_of(self, customer_id: Any, line_id: Any) -> Record:
        """A customer's line for reading only. ValueError if there is no such customer, or it is not his."""
        if line_id not in self._by_id("customers", customer_id)["line_ids"]:
            raise ValueError(f"Line {line_id} not found for customer {customer_id}")
        return self._by_id("lines", line_id)

    def _line_by_phone(self, phone_number: Any) -> Record:
        for _, line in self.db.lines.scan():
            if line["phone_number"] == phone_number:
                return line
        raise ValueError(f"Line with phone number {phone_number} not found")

    def _customer_by_phone(self, phone_number: Any) -> Record:
        lines = dict(self.db.lines.scan())  # looked through after every call of both sides
        for _, customer in self.db.customers.scan():
            if customer["phone_number"] == phone_number:
                return customer
            for line_id in customer["line_ids"]:
                line = lines.get(line_id) if isinstance(line_id, str) else None
                if line is None or line["line_id"] != line_id:
                    line = self._by_id("lines", line_id)  # says that there is none
                if line["phone_number"] == phone_number:
                    return customer
        raise ValueError(f"Customer with phone number {phone_number} not found")

    def _bills_of(self, customer: Record, status: str) -> list[Record]:
        bills = [self._by_id("bills", bill_id) for bill_id in customer["bill_ids"]]
        return [bill for bill in bills if bill["status"] == status]

    def _set_bill_to_paid(self, bill_id: str) -> None:
        self._by_id("bills", bill_id)
        self.db.bills[bill_id]["status"] = "Paid"

    def _add_bill(self, bill: Record) -> None:
        self.db.bills[free_key(self.db.bills, bill["bill_id"])] = bill
        self.db.customers[bill["customer_id"]]["bill_ids"].append(bill["bill_id"])

    def _charge(self, customer_id: str, amount: float, description: str) -> None:
        """Put an amount (USD) on the customer's draft bill; next month's is opened if he has none."""
        customer = self._by_id("customers", customer_id)
        for bill_id in customer["bill_ids"]:
            if self._by_id("bills", bill_id)["status"] == "Draft":
                _add_item(self.db.bills[bill_id], description, amount)
                return
        bill = _bill(self._new_bill_id(), customer_id, NEXT_MONTH, "Draft")
        _add_item(bill, description, amount)
        self._add_bill(bill)

    def _new_bill_id(self) -> str:
        """TAU2's is random, so that the same calls never give the same state twice; the fixed one counts on."""
        if self.semantics == "official":
            return f"B{uuid.uuid4().hex[:8]}"
        number = 1001 + len(self.db.bills)
        while f"B{number}" in self.db.bills:
            number += 1
        return f"B{number}"

    # How a task sets up its world

    def set_data_usage(self, customer_id: str, line_id: str, data_used_gb: float) -> str:
        """Say how much data (GB) a line has used this month. ValueError if there is no such line of the customer."""
        self._line_of(customer_id, line_id)
        self.db.lines[line_id]["data_used_gb"] = data_used_gb
        return f"Data usage set to {data_used_gb} GB for line {line_id}"

    def suspend_line_for_overdue_bill(
        self, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool
    ) -> str:
        """Suspend an active line for a new bill of last month that is overdue, its contract at an end or not.

        ValueError if the line is not active, its plan is free, or the customer has an overdue bill already.
        """
        line = self._by_id("lines", line_id)
        if line["status"] != "Active":
            raise ValueError("Line must be active to suspend for unpaid bill")
        amount = self._by_id("plans", line["plan_id"])["price_per_month"]
        if amount <= 0:
            raise ValueError("Amount must be positive for overdue bill")
        if self._bills_of(self._by_id("customers", customer_id), "Overdue"):
            raise ValueError("Customer already has an overdue bill")
        bill = _bill(new_bill_id, customer_id, LAST_MONTH, "Overdue")
        _add_item(bill, f"Charge for line {line_id}", amount)
        self._add_bill(bill)
        line = self.db.lines[line_id]
        line["status"] = "Suspended"
        line["suspension_start_date"] = TODAY
        if contract_ended:
            line["contract_end_date"] = LAST_MONTH[1]
        return f"Line {line_id} suspended for unpaid bill {new_bill_id}. Contract ended: {contract_ended}"

    # What can be asserted

    def assert_data_refueling_amount(self, customer_id: str, line_id: str, expected_amount: float) -> bool:
        """True if that much data (GB) was added to the line."""
        return bool(abs(self._line_of(customer_id, line_id)["data_refueling_gb"] - expected_amount) < 1e-6)

    def assert_line_status(self, customer_id: str, line_id: str, expected_status: str) -> bool:
        """True if the line has that status."""
        return bool(self._line_of(customer_id, line_id)["status"] == expected_status)

    def assert_overdue_bill_exists(self, customer_id: str, overdue_bill_id: str) -> bool:
        """True if the customer's bill is overdue; ValueError, as in TAU2, if it is not or is none of his."""
        if overdue_bill_id not in self._by_id("customers", customer_id)["bill_ids"]:
            raise ValueError(f"Overdue bill {overdue_bill_id} not found")
        if self._by_id("bills", overdue_bill_id)["status"] != "Overdue":
            raise ValueError(f"Overdue bill {overdue_bill_id} is not overdue")
        return True

    def assert_no_overdue_bill(self, overdue_bill_id: str) -> bool:
        """True if there is no such bill, or it is paid."""
        try:
            return bool(self._by_id("bills", overdue_bill_id)["status"] == "Paid")
        except ValueError:
            return True
