# ruff: noqa: A002 (the interface's own names)
"""TAU2 telecom's 13 agent tools, over plain records.

The docstrings are the tools' interface, word for word as TAU2 gives it to models (sierra-research/tau2-bench, MIT
licence, Copyright Sierra Research): they are part of what the benchmark measures. What the tools do is written anew.

In "official" semantics the order of checks, the error texts and what an error leaves half done are TAU2's. "fixed"
opens bills under ids that can be foretold, and refuses amounts of data that are no number.
"""

from __future__ import annotations

import math

from muarl.domains.tooling import tool
from muarl_worlds.tau.telecom.accounts import CYCLE_END, TODAY, Record, TelecomAccounts

_KINDS = {"L": "lines", "D": "devices", "B": "bills", "C": "customers", "P": "plans"}


class TelecomTools(TelecomAccounts):
    """The tools. Their class names and their own stand in Python's error texts."""

    @tool
    def get_customer_by_phone(self, phone_number: str) -> Record:
        """
        Finds a customer by their primary contact or line phone number.

        Args:
            phone_number: The phone number to search for.
        """
        return self._customer_by_phone(phone_number)

    @tool
    def get_customer_by_id(self, customer_id: str) -> Record:
        """
        Retrieves a customer directly by their unique ID.

        Args:
            customer_id: The unique identifier of the customer.
        """
        return self._by_id("customers", customer_id)

    @tool
    def get_customer_by_name(self, full_name: str, dob: str) -> list[Record]:
        """
        Searches for customers by name and DOB. May return multiple matches if names are similar,
        DOB helps disambiguate.

        Args:
            full_name: The full name of the customer.
            dob: Date of birth for verification, in the format YYYY-MM-DD.
        """
        everyone = [customer for _, customer in self.db.customers.scan()]
        return [c for c in everyone if c["full_name"].lower() == full_name.lower() and c["date_of_birth"] == dob]

    @tool
    def get_details_by_id(self, id: str) -> Record:
        """
        Retrieves the details for a given ID.
        The ID must be a valid ID for a Customer, Line, Device, Bill, or Plan.

        Args:
            id: The ID of the object to retrieve.
        """
        for initial, table in _KINDS.items():
            if id.startswith(initial):
                return self._by_id(table, id)
        raise ValueError(f"Unknown ID format or type: {id}")

    @tool(writes=True)
    def suspend_line(self, customer_id: str, line_id: str, reason: str) -> Record:
        """
        Suspends a specific line (max 6 months).
        Checks: Line status must be Active.
        Logic: Sets line status to Suspended, records suspension_start_date.

        Args:
            customer_id: ID of the customer who owns the line.
            line_id: ID of the line to suspend.
            reason: Reason for suspension.
        """
        if self._line_of(customer_id, line_id)["status"] != "Active":
            raise ValueError("Line must be active to suspend")
        line = self.db.lines[line_id]
        line["status"] = "Suspended"
        line["suspension_start_date"] = TODAY
        return {"message": "Line suspended successfully. $5/month holding fee will apply.", "line": line}

    @tool(writes=True)
    def resume_line(self, customer_id: str, line_id: str) -> Record:
        """
        Resumes a suspended line.
        Checks: Line status must be Suspended or Pending Activation.
        Logic: Sets line status to Active, clears suspension_start_date.

        Args:
            customer_id: ID of the customer who owns the line.
            line_id: ID of the line to resume.
        """
        if self._line_of(customer_id, line_id)["status"] not in ("Suspended", "Pending Activation"):
            raise ValueError("Line must be suspended to resume")
        line = self.db.lines[line_id]
        line["status"] = "Active"
        line["suspension_start_date"] = None
        return {"message": "Line resumed successfully", "line": line}

    @tool
    def get_bills_for_customer(self, customer_id: str, limit: int = 12) -> list[Record]:
        """
        Retrieves a list of the customer's bills, most recent first.

        Args:
            customer_id: ID of the customer.
            limit: Maximum number of bills to return.
        """
        bills = [self._by_id("bills", bill_id) for bill_id in self._by_id("customers", customer_id)["bill_ids"]]
        return sorted(bills, key=lambda bill: bill["issue_date"], reverse=True)[:limit]

    @tool(writes=True)
    def send_payment_request(self, customer_id: str, bill_id: str) -> str:
        """
        Sends a payment request to the customer for a specific bill.
        Checks:
            - Customer exists
            - Bill exists and belongs to the customer
            - No other bills are already awaiting payment for this customer
        Logic: Sets bill status to AWAITING_PAYMENT and notifies customer.
        Warning: This method does not check if the bill is already PAID.
        Always check the bill status before calling this method.

        Args:
            customer_id: ID of the customer who owns the bill.
            bill_id: ID of the bill to send payment request for.
        """
        customer = self._by_id("customers", customer_id)
        if self._bills_of(customer, "Awaiting Payment"):
            raise ValueError("A bill is already awaiting payment for this customer")
        if bill_id not in customer["bill_ids"]:
            raise ValueError(f"Bill {bill_id} not found for customer {customer_id}")
        self._by_id("bills", bill_id)
        self.db.bills[bill_id]["status"] = "Awaiting Payment"
        return f"Payment request sent to the customer for bill {bill_id}"

    @tool
    def get_data_usage(self, customer_id: str, line_id: str) -> Record:
        """
        Retrieves current billing cycle data usage for a line, including data
        refueling amount, data limit, and cycle end date.

        Args:
            customer_id: ID of the customer who owns the line.
            line_id: ID of the line to check usage for.
        """
        line = self._line_of(customer_id, line_id)
        plan = self._by_id("plans", line["plan_id"])
        return {
            "line_id": line_id,
            "data_used_gb": line["data_used_gb"],
            "data_limit_gb": plan["data_limit_gb"],
            "data_refueling_gb": line["data_refueling_gb"],
            "cycle_end_date": CYCLE_END,
        }

    @tool(writes=True)
    def enable_roaming(self, customer_id: str, line_id: str) -> str:
        """
        Enables international roaming on a line.

        Args:
            customer_id: ID of the customer who owns the line.
            line_id: ID of the line to enable roaming for.
        """
        if self._line_of(customer_id, line_id)["roaming_enabled"]:
            return "Roaming was already enabled"
        self.db.lines[line_id]["roaming_enabled"] = True
        return "Roaming enabled successfully"

    @tool(writes=True)
    def disable_roaming(self, customer_id: str, line_id: str) -> str:
        """
        Disables international roaming on a line.

        Args:
            customer_id: ID of the customer who owns the line.
            line_id: ID of the line to disable roaming for.
        """
        if not self._line_of(customer_id, line_id)["roaming_enabled"]:
            return "Roaming was already disabled"
        self.db.lines[line_id]["roaming_enabled"] = False
        return "Roaming disabled successfully"

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """
        Transfer the user to a human agent, with a summary of the user's issue.
        Only transfer if
         -  the user explicitly asks for a human agent
         -  given the policy and the available tools, you cannot solve the user's issue.

        Args:
            summary: A summary of the user's issue.
        """
        return "Transfer successful"

    @tool(writes=True)
    def refuel_data(self, customer_id: str, line_id: str, gb_amount: float) -> Record:
        """
        Refuels data for a specific line, adding to the customer's bill.
        Checks: Line status must be Active, Customer owns the line.
        Logic: Adds data to the line and charges customer based on the plan's refueling rate.

        Args:
            customer_id: ID of the customer who owns the line.
            line_id: ID of the line to refuel data for.
            gb_amount: Amount of data to add in gigabytes.
        """
        line = self._line_of(customer_id, line_id)  # its status is not looked at, whatever the description says
        if gb_amount <= 0 or (self.semantics == "fixed" and not math.isfinite(gb_amount)):
            raise ValueError("Refuel amount must be positive")
        price = self._by_id("plans", line["plan_id"])["data_refueling_price_per_gb"]
        charge = gb_amount * price
        line = self.db.lines[line_id]
        line["data_refueling_gb"] += gb_amount
        self._charge(customer_id, charge, f"Data refueling: {gb_amount} GB at ${price}/GB")
        return {
            "message": f"Successfully added {gb_amount} GB of data for line {line_id} for ${charge:.2f}",
            "new_data_refueling_gb": line["data_refueling_gb"],
            "charge": charge,
        }
