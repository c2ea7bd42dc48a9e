"""The agent's discoverable tools for limits of cards, and the history of payments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from muarl_worlds.tau.banking import ids
from muarl_worlds.tau.banking.credit_cards import MISSING, MISSING_ACCOUNT, amount_in, missing
from muarl_worlds.tau.banking.discovery import BankSide, discoverable, told
from muarl_worlds.tau.banking.query import nothing

DENIED_FOR = (
    "insufficient_account_age", "cooldown_period_active", "pending_disputes", "pending_replacement_card",
    "past_due_balance", "high_utilization", "insufficient_payment_history", "requested_amount_exceeds_limit", "other",
)  # fmt: skip
ATM_LIMITS = {
    "blue account": 500,
    "green account": 600,
    "light blue account": 400,
    "green fee-free account": 500,
    "evergreen account": 750,
    "bluest account": 1500,
    "dark green account": 300,
    "gold years account": 600,
    "purple account": 1000,
}
"""Daily dollars at a machine by the account's level, in lower case, for cards that state none."""


class LimitTools(BankSide):
    """Credit limits and the daily limits of debit cards."""

    @discoverable("write")
    def submit_credit_limit_increase_request_7392(
        self, credit_card_account_id: str, user_id: str, requested_increase_amount: int
    ) -> str:
        if not credit_card_account_id or not user_id or requested_increase_amount is None:
            return MISSING
        try:
            asked = float(requested_increase_amount)
        except (TypeError, ValueError):
            return "Error: Invalid requested_increase_amount. Must be a whole number."
        if not asked.is_integer():
            return "Error: Invalid requested_increase_amount. Must be a whole number of dollars."
        amount = int(asked)
        if amount <= 0:
            return "Error: Requested increase amount must be positive."
        if problem := self._not_the_users(credit_card_account_id, user_id):
            return problem
        request_id = ids.limit_request(credit_card_account_id, user_id, amount)
        record = {
            "request_id": request_id,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "requested_increase_amount": amount,
            "submitted_at": ids.TODAY,
            "status": "PENDING",
        }
        if not self._add("credit_limit_increase_requests", request_id, record):
            return "Error: A similar request may already exist."
        return told(
            "Credit limit increase request submitted successfully.",
            "",
            "Executed: submit_credit_limit_increase_request_7392",
            f"  - Request ID: {request_id}",
            f"  - Account: {credit_card_account_id}",
            f"  - Requested Increase: ${amount:,}",
            "  - Status: PENDING",
        )

    def _not_the_users(self, account_id: Any, user_id: Any) -> str | None:
        accounts = self.db["credit_card_accounts"]
        if account_id not in accounts:
            return f"Error: Credit card account '{account_id}' not found."
        if accounts.peek(account_id).get("user_id") != user_id:
            return f"Error: Credit card account '{account_id}' does not belong to user '{user_id}'."
        return None

    @discoverable("read")
    def get_credit_limit_increase_history_4829(self, credit_card_account_id: str) -> str:
        if not credit_card_account_id:
            return MISSING_ACCOUNT
        found = self._report("credit_limit_increase_requests", "credit_card_account_id", credit_card_account_id)
        return told(
            "Credit limit increase history retrieved.",
            "",
            "Executed: get_credit_limit_increase_history_4829",
            f"Credit limit increase history for account {credit_card_account_id}:",
            "\nNo credit limit increase requests found for this account." if nothing(found) else found,
        )

    @discoverable("read")
    def get_payment_history_6183(self, credit_card_account_id: str, months: int) -> str:
        if not credit_card_account_id or months is None:
            return missing("credit_card_account_id", "months")
        try:
            months = int(months)
        except (ValueError, TypeError):
            return "Error: Invalid months value. Must be a positive integer."
        if months <= 0:
            return "Error: months must be a positive integer."
        rows = self.db["payment_history"].scan()
        payments = [p for _, p in rows if p.get("credit_card_account_id") == credit_card_account_id]
        if not payments:
            return f"No payment history found for account '{credit_card_account_id}'."
        payments.sort(key=lambda p: p.get("payment_date") or "", reverse=True)
        payments = payments[:months]
        late = (n for n, p in enumerate(payments) if p.get("status") != "ON_TIME")
        return told(
            f"Payment history for account '{credit_card_account_id}' (last {months} months):",
            f"Consecutive on-time payments: {next(late, len(payments))}",
            *(
                f"\n  - Payment Date: {p.get('payment_date')}\n"
                f"    Amount: {p.get('amount')}\n    Status: {p.get('status')}"
                for p in payments
            ),
        )

    @discoverable("write")
    def approve_credit_limit_increase_5847(
        self, credit_card_account_id: str, user_id: str, new_credit_limit: int
    ) -> str:
        if not credit_card_account_id or not user_id or new_credit_limit is None:
            return MISSING
        if problem := self._not_the_users(credit_card_account_id, user_id):
            return problem
        accounts = self.db["credit_card_accounts"]
        card = accounts.peek(credit_card_account_id)
        if self._barred(credit_card_account_id, user_id, card):
            return "Error: Credit limit increase request cannot be approved at this time."
        before, after = amount_in(card, "credit_limit"), float(new_credit_limit)
        accounts[credit_card_account_id]["credit_limit"] = f"${after:.2f}"
        request_id = ids.limit_request(credit_card_account_id, user_id, after - before)
        record = {
            "request_id": request_id,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "previous_limit": f"${before:.2f}",
            "new_limit": f"${after:.2f}",
            "increase_amount": f"${after - before:.2f}",
            "decision_date": ids.TODAY,
            "status": "APPROVED",
        }
        self._add("credit_limit_increase_requests", request_id, record)
        return told(
            "Credit limit increase approved!",
            f"  - Account: {credit_card_account_id}",
            f"  - Previous Limit: ${before:.2f}",
            f"  - New Limit: ${after:.2f}",
            f"  - Increase: ${after - before:.2f}",
            f"  - Effective Date: {ids.TODAY}",
            "The customer will receive a confirmation email.",
        )

    def _barred(self, account_id: Any, user_id: Any, card: Any) -> bool:
        """Whether an open dispute, a card under way or the account's standing forbid a higher limit."""
        disputes, orders = self.db["transaction_disputes"].scan(), self.db["credit_card_orders"].scan()
        open_now, under_way = ("SUBMITTED", "UNDER_REVIEW", "PENDING"), ("PENDING", "PROCESSING", "SHIPPED")
        if any(d.get("user_id") == user_id and d.get("status") in open_now for _, d in disputes):
            return True
        if any(o.get("credit_card_account_id") == account_id and o.get("status") in under_way for _, o in orders):
            return True
        return card.get("account_status", "").upper() in ("PAST_DUE", "DELINQUENT", "COLLECTIONS", "CLOSED")

    @discoverable("write")
    def deny_credit_limit_increase_5848(self, credit_card_account_id: str, user_id: str, denial_reason: str) -> str:
        if not credit_card_account_id or not user_id or not denial_reason:
            return MISSING
        if denial_reason not in DENIED_FOR:
            return f"Error: Invalid denial_reason. Must be one of: {', '.join(DENIED_FOR)}"
        if credit_card_account_id not in self.db["credit_card_accounts"]:
            return f"Error: Credit card account '{credit_card_account_id}' not found."
        request_id = ids.limit_request(credit_card_account_id, user_id, 0.0)
        record = {
            "request_id": request_id,
            "credit_card_account_id": credit_card_account_id,
            "user_id": user_id,
            "denial_reason": denial_reason,
            "decision_date": ids.TODAY,
            "status": "DENIED",
        }
        self._add("credit_limit_increase_requests", request_id, record)
        return told(
            "Credit limit increase request denied.",
            f"  - Account: {credit_card_account_id}",
            f"  - Denial Reason: {denial_reason}",
            f"  - Date: {ids.TODAY}",
            "The customer will receive a notification explaining the denial.",
        )

    @discoverable("write")
    def request_temporary_debit_card_limit_increase_8374(self, card_id: str, limit_type: str, new_limit: int) -> str:
        if not card_id:
            return "Error: Missing required parameter: card_id."
        if not limit_type:
            return "Error: Missing required parameter: limit_type."
        if limit_type not in ("atm", "purchase"):
            return f"Error: Invalid limit_type '{limit_type}'. Must be 'atm' or 'purchase'."
        if new_limit is None:
            return "Error: Missing required parameter: new_limit."
        asked: Any = new_limit
        try:
            asked = float(asked)
            whole = asked.is_integer()
        except (ValueError, TypeError):
            whole = False
        if not whole:
            return f"Error: new_limit must be an integer, got '{asked}'."
        wanted = int(asked)
        if wanted <= 0:
            return "Error: new_limit must be a positive amount."
        cards, accounts = self.db["debit_cards"], self.db["accounts"]
        if card_id not in cards:
            return f"Error: Debit card '{card_id}' not found."
        card = cards.peek(card_id)
        if card.get("status") != "ACTIVE":
            return (
                f"Error: Debit card '{card_id}' is not active. Current status: {card.get('status')}. "
                "Only ACTIVE cards can have limit increases."
            )
        account_id = card.get("account_id")
        if not account_id or account_id not in accounts:
            return f"Error: Could not find linked account for debit card '{card_id}'."
        account = accounts.peek(account_id)
        if account.get("status") != "OPEN":
            return (
                f"Error: The linked account '{account_id}' is not in good standing. "
                f"Account status: {account.get('status')}."
            )
        if problem := _too_young(account.get("date_opened")):
            return problem
        at_machine = limit_type == "atm"
        field = "daily_atm_limit" if at_machine else "daily_purchase_limit"
        name = "Daily ATM Withdrawal Limit" if at_machine else "Daily Purchase Limit"
        now = card.get(field)
        if now is None and at_machine:
            level = account.get("level", "").lower()
            if "light green" in level:
                return (
                    "Error: Light Green Account (teen checking) cards have policy-based limits that cannot be "
                    "modified. The daily ATM withdrawal limit of $150 is fixed by account policy for safety reasons. "
                    "The customer may request the parent/guardian to withdraw cash from their own account if needed."
                )
            now = ATM_LIMITS.get(level)
            if now is None:
                return (
                    "Error: Could not determine the default ATM limit for account type "
                    f"'{account.get('level')}'. Please verify the account type."
                )
        if now is None:
            return (
                f"Error: The card does not have a {name.lower()} configured. This may be a restricted account type "
                "where limits are set by account policy and cannot be modified."
            )
        most = int(now * 1.5)
        if wanted > most:
            return (
                f"Error: Requested limit ${wanted} exceeds the maximum allowed temporary increase. Maximum temporary "
                f"limit is ${most} (150% of current ${now} limit)."
            )
        if wanted <= now:
            return f"Error: Requested limit ${wanted} is not higher than the current limit of ${now}."
        changes = {
            field: wanted,
            f"temporary_{limit_type}_limit_increase": True,
            f"original_{limit_type}_limit": now,
            f"temporary_{limit_type}_limit_expires": ids.TODAY,
        }
        cards[card_id].update(changes)
        return told(
            f"Temporary {name} Increase Granted Successfully",
            f"Card ID: {card_id}",
            f"Previous Limit: ${now}",
            f"New Temporary Limit: ${wanted}",
            f"Increase Amount: ${wanted - now}",
            "",
            "Important Information:",
            "- This temporary increase expires in 24 hours",
            f"- After expiration, the limit will revert to ${now}",
            "- Only one temporary increase is allowed per 24-hour period",
            "",
            "Note: If the customer is at a third-party (non-Rho-Bank) ATM, that ATM may have its own",
            "per-transaction or daily limits that Rho-Bank cannot override. The customer may need to",
            "use a Rho-Bank ATM or make multiple smaller withdrawals at third-party ATMs.",
        )


def _too_young(opened: Any) -> str | None:
    """The refusal if the account is less than 60 days old; nothing if its date is unknown."""
    if not opened:
        return None
    try:
        age = (ids.NOW - datetime.strptime(opened, ids.DAY)).days
    except ValueError:
        return None
    if age < 60:
        return f"Error: Account must be at least 60 days old for a temporary limit increase. Account age: {age} days."
    return None
