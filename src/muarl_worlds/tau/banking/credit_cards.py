"""The agent's discoverable tools for credit cards: replacement, closure, credits, flags and payments."""

from __future__ import annotations

from typing import Any

from muarl_worlds.tau.banking import ids
from muarl_worlds.tau.banking.discovery import (
    BankSide,
    discoverable,
    dollars,
    executed,
    holdings,
    not_one_of,
    titled,
    told,
)
from muarl_worlds.tau.banking.query import nothing

REPLACED_FOR = ("fraud_suspected", "lost", "stolen", "damaged", "expired", "other")
CLOSED_FOR = (
    "annual_fee", "not_using_card", "found_better_card", "unhappy_with_rewards", "simplifying_finances",
    "negative_experience", "other",
)  # fmt: skip
CREDITED_FOR = (
    "goodwill_adjustment", "promotional_credit", "annual_fee_reversal", "late_fee_reversal",
    "interest_charge_reversal", "dispute_resolution", "price_match", "retention_offer", "error_correction", "other",
)  # fmt: skip
FLAGS = ("annual_fee_waived", "promotional_apr", "rewards_bonus", "other")
FLAGGED_FOR = ("retention_offer", "loyalty_benefit", "promotional", "error_correction", "other")
MISSING = "Error: Missing required parameters."
MISSING_ACCOUNT = "Error: Missing required parameter: credit_card_account_id"


def missing(*names: str) -> str:
    """The refusal of a call that lacks something."""
    return f"Error: Missing required parameters ({', '.join(names)})."


class CreditCardTools(BankSide):
    """Credit card accounts."""

    def _no_card_account(self, account_id: Any) -> str | None:
        if nothing(self._report("credit_card_accounts", "account_id", account_id)):
            return f"Error: Credit card account '{account_id}' not found."
        return None

    @discoverable("write")
    def order_replacement_credit_card_7291(
        self,
        credit_card_account_id: str,
        user_id: str,
        shipping_address: str,
        reason: str,
        expedited_shipping: bool = False,
    ) -> str:
        if not credit_card_account_id or not user_id or not shipping_address or not reason:
            return missing("credit_card_account_id", "user_id", "shipping_address", "reason")
        if reason not in REPLACED_FOR:
            return not_one_of("reason", REPLACED_FOR)
        if problem := self._no_card_account(credit_card_account_id):
            return problem
        order_id = ids.named("ccord", "credit_card_order", credit_card_account_id, user_id, reason)
        record = {
            "order_id": order_id,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "shipping_address": shipping_address,
            "reason": reason,
            "expedited_shipping": expedited_shipping,
            "order_date": ids.TODAY,
            "status": "ORDERED",
            "old_card_cancelled": True,
        }
        if not self._add("credit_card_orders", order_id, record):
            return "Error: Order may have already been placed for this card replacement."
        accounts = self.db["credit_card_accounts"]
        if credit_card_account_id in accounts:
            accounts[credit_card_account_id].update(status="CLOSED", closed_date=ids.TODAY)
        return told(
            f"Order ID: {order_id}",
            f"Card Account: {credit_card_account_id}",
            f"Reason: {titled(reason)}",
            f"Shipping Address: {shipping_address}",
            f"Shipping Method: {'Expedited' if expedited_shipping else 'Standard'}",
            f"Expected Delivery: {'2-3 business days' if expedited_shipping else '7-10 business days'}",
            "",
            "The old card has been cancelled for security. The new card will have the same account number but a new "
            "card number and CVV.",
        )

    @discoverable("read")
    def get_pending_replacement_orders_5765(self, credit_card_account_id: str) -> str:
        if not credit_card_account_id:
            return MISSING_ACCOUNT
        found = self._report("credit_card_orders", "credit_card_account_id", credit_card_account_id)
        return told(
            "Pending replacement orders check completed.",
            "",
            "Executed: get_pending_replacement_orders_5765",
            f"Replacement orders for credit card account {credit_card_account_id}:",
            "\nNo pending replacement orders found for this credit card account." if nothing(found) else found,
        )

    @discoverable("write")
    def log_credit_card_closure_reason_4521(
        self, credit_card_account_id: str, user_id: str, closure_reason: str
    ) -> str:
        if not credit_card_account_id or not user_id or not closure_reason:
            return MISSING
        if closure_reason not in CLOSED_FOR:
            return not_one_of("closure_reason", CLOSED_FOR)
        record_id = ids.named("clsr", "closure_reason", credit_card_account_id, user_id)
        given = {
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "closure_reason": closure_reason,
        }
        record = {"record_id": record_id, **given, "logged_at": ids.TODAY, "status": "LOGGED"}
        self._add("credit_card_closure_reasons", record_id, record)
        return told(
            "Closure reason logged successfully.\n",
            *executed("log_credit_card_closure_reason_4521", given),
            f"Closure reason '{closure_reason}' logged for account {credit_card_account_id}.",
        )

    @discoverable("read")
    def get_closure_reason_history_8293(self, credit_card_account_id: str) -> str:
        if not credit_card_account_id:
            return MISSING_ACCOUNT
        found = self._report("credit_card_closure_reasons", "credit_card_account_id", credit_card_account_id)
        return told(
            "Closure reason history retrieved successfully.",
            "",
            "Executed: get_closure_reason_history_8293",
            f"Closure reason history for credit card account {credit_card_account_id}:",
            "\nNo closure reason records found for this credit card account." if nothing(found) else found,
        )

    @discoverable("write")
    def apply_statement_credit_8472(self, user_id: str, credit_card_account_id: str, amount: float, reason: str) -> str:
        if not user_id or not credit_card_account_id or amount is None or not reason:
            return missing("user_id", "credit_card_account_id", "amount", "reason")
        if amount <= 0:
            return "Error: Credit amount must be positive."
        if reason not in CREDITED_FOR:
            return not_one_of("reason", CREDITED_FOR)
        if problem := self._no_card_account(credit_card_account_id):
            return problem
        transaction_id = ids.transaction(user_id, "STATEMENT_CREDIT", reason, amount, "Statement Credit")
        record = {
            "transaction_id": transaction_id,
            "user_id": user_id,
            "credit_card_account_id": credit_card_account_id,
            "credit_card_type": "N/A",
            "merchant_name": "Rho-Bank Statement Credit",
            "transaction_amount": f"-${amount:.2f}",
            "transaction_date": ids.TODAY,
            "category": "Statement Credit",
            "status": "COMPLETED",
            "rewards_earned": "0 points",
            "credit_reason": reason,
        }
        if not self._add("credit_card_transaction_history", transaction_id, record):
            return f"Error: Failed to apply statement credit. Transaction ID '{transaction_id}' may already exist."
        return told(
            "Statement credit applied successfully.",
            "",
            "Executed: apply_statement_credit_8472",
            f"  - Transaction ID: {transaction_id}",
            f"  - User ID: {user_id}",
            f"  - Account: {credit_card_account_id}",
            f"  - Credit Amount: ${amount:.2f}",
            f"  - Reason: {titled(reason)}",
            f"  - Date: {ids.TODAY}",
        )

    @discoverable("write")
    def apply_credit_card_account_flag_6147(
        self, credit_card_account_id: str, user_id: str, flag_type: str, expiration_date: str, reason: str
    ) -> str:
        if not credit_card_account_id or not user_id or not flag_type or not expiration_date or not reason:
            return missing("credit_card_account_id", "user_id", "flag_type", "expiration_date", "reason")
        if flag_type not in FLAGS:
            return not_one_of("flag_type", FLAGS)
        if reason not in FLAGGED_FOR:
            return not_one_of("reason", FLAGGED_FOR)
        if problem := self._no_card_account(credit_card_account_id):
            return problem
        flag_id = ids.named("ccflag", "account_flag", credit_card_account_id, flag_type, expiration_date)
        record = {
            "flag_id": flag_id,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "flag_type": flag_type,
            "effective_date": ids.TODAY,
            "expiration_date": expiration_date,
            "reason": reason,
            "applied_at": ids.TODAY,
            "status": "ACTIVE",
        }
        if not self._add("credit_card_account_flags", flag_id, record):
            return f"Error: Failed to apply account flag. Flag ID '{flag_id}' may already exist."
        return told(
            "Account flag applied successfully!",
            f"  - Flag ID: {flag_id}",
            f"  - Account: {credit_card_account_id}",
            f"  - User ID: {user_id}",
            f"  - Flag Type: {titled(flag_type)}",
            f"  - Effective Date: {ids.TODAY}",
            f"  - Expiration Date: {expiration_date}",
            f"  - Reason: {titled(reason)}",
        )

    @discoverable("write")
    def close_credit_card_account_7834(self, credit_card_account_id: str, user_id: str) -> str:
        if not credit_card_account_id or not user_id:
            return missing("credit_card_account_id", "user_id")
        if problem := self._no_card_account(credit_card_account_id):
            return problem
        accounts = self.db["credit_card_accounts"]
        if credit_card_account_id not in accounts:
            return f"Error: Failed to close credit card account '{credit_card_account_id}'."
        accounts[credit_card_account_id].update(status="CLOSED", closed_date=ids.TODAY, closed_by=user_id)
        given = {"credit_card_account_id": credit_card_account_id, "user_id": user_id}
        return told(
            "Credit card account closed successfully.\n",
            *executed("close_credit_card_account_7834", given),
            f"Account {credit_card_account_id} has been closed.",
        )

    @discoverable("write")
    def pay_credit_card_from_checking_9182(
        self, user_id: str, checking_account_id: str, credit_card_account_id: str, amount: float
    ) -> str:
        if not user_id or not checking_account_id or not credit_card_account_id or amount is None:
            return missing("user_id", "checking_account_id", "credit_card_account_id", "amount")
        try:
            amount = float(amount)
        except (ValueError, TypeError):
            return "Error: Invalid payment amount. Must be a positive number."
        if amount <= 0:
            return "Error: Payment amount must be a positive number."
        accounts, cards = self.db["accounts"], self.db["credit_card_accounts"]
        if checking_account_id not in accounts:
            return f"Error: Checking account '{checking_account_id}' not found."
        checking = accounts.peek(checking_account_id)
        if checking.get("user_id") != user_id:
            return f"Error: Checking account '{checking_account_id}' does not belong to user '{user_id}'."
        if checking.get("class") != "checking":
            return f"Error: Account '{checking_account_id}' is not a checking account."
        available = holdings(checking)
        if amount > available:
            return (
                "Error: Insufficient funds in checking account. "
                f"Available balance: ${available:.2f}, requested payment: ${amount:.2f}."
            )
        if credit_card_account_id not in cards:
            return f"Error: Credit card account '{credit_card_account_id}' not found."
        card = cards.peek(credit_card_account_id)
        if card.get("user_id") != user_id:
            return f"Error: Credit card account '{credit_card_account_id}' does not belong to user '{user_id}'."
        owed = amount_in(card, "current_balance")
        if amount > owed:
            return (
                f"Error: Payment amount (${amount:.2f}) exceeds credit card balance (${owed:.2f}). "
                "Please specify an amount up to the outstanding balance."
            )
        available, owed = available - amount, owed - amount
        accounts[checking_account_id]["current_holdings"] = f"{available:.2f}"
        cards[credit_card_account_id]["current_balance"] = f"${owed:.2f}"
        return told(
            "Payment processed successfully!",
            f"  - Payment Amount: ${amount:.2f}",
            f"  - From Checking Account: {checking_account_id}",
            f"  - To Credit Card Account: {credit_card_account_id}",
            f"  - New Checking Balance: ${available:.2f}",
            f"  - New Credit Card Balance: ${owed:.2f}",
            "The payment has been applied immediately.",
        )


def amount_in(card: Any, field: str) -> float:
    """A card's amount in dollars; 0 if there is none, or what stands there is no number."""
    try:
        return dollars(str(card.get(field, "$0.00")))
    except (ValueError, TypeError):
        return 0.0
