"""The agent's discoverable tools for bank accounts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from muarl_worlds.tau.banking import ids
from muarl_worlds.tau.banking.credit_cards import MISSING, missing
from muarl_worlds.tau.banking.discovery import BankSide, discoverable, holdings, not_one_of, told
from muarl_worlds.tau.banking.query import found as search
from muarl_worlds.tau.banking.query import listing, nothing

TYPES = ("checking", "savings", "business_checking", "business_savings")
LIVE = ("ACTIVE", "OPEN")
PERSONAL = ("checking", "personal_checking")
INELIGIBLE = "Error: Account eligibility requirements not met."
EARLY_CLOSURE = {
    "checking": {
        "Light Blue Account": (15, 30),
        "Light Green Account": (15, 30),
        "Green Fee-Free Account": (15, 30),
        "Blue Account": (25, 60),
        "Green Account": (25, 60),
        "Evergreen Account": (50, 90),
        "Bluest Account": (100, 180),
    },
    "savings": {
        "Bronze Account": (20, 60),
        "Silver Account": (35, 90),
        "Silver Plus Account": (35, 90),
        "Gold Account": (75, 180),
        "Gold Plus Account": (75, 180),
        "Gold Years Account": (75, 180),
        "Platinum Account": (150, 270),
        "Platinum Plus Account": (150, 270),
        "Diamond Elite Account": (150, 270),
    },
}
"""By class and level: (fee in dollars, days within which closing costs it)."""
CREDITS = {
    "rebate_credit": "REBATE CREDIT - CUSTOMER SERVICE",
    "fee_refund": "FEE REFUND - CUSTOMER SERVICE",
    "interest_correction": "INTEREST CORRECTION - CUSTOMER SERVICE",
    "goodwill_credit": "GOODWILL CREDIT - CUSTOMER SERVICE",
}


class AccountTools(BankSide):
    """Bank accounts: opening, closing, transfers, credits and their history."""

    @discoverable("write")
    def open_bank_account_4821(self, user_id: str, account_type: str, account_class: str) -> str:
        if not user_id or not account_type or not account_class:
            return MISSING
        if account_type not in TYPES:
            return not_one_of("account_type", TYPES)
        own = [account for _, account in self.db["accounts"].scan() if account.get("user_id") == user_id]
        if not _eligible(account_type, own):
            return INELIGIBLE
        account_id = ids.digits(f"account:{user_id}:{account_type}:{account_class}")
        record = {
            "account_id": account_id,
            "user_id": user_id,
            "account_type": account_type,
            "account_class": account_class,
            "current_holdings": "0.00",
            "status": "OPEN",
            "date_opened": ids.TODAY,
        }
        if not self._add("accounts", account_id, record):
            return f"Failed to open account: Account ID '{account_id}' may already exist."
        return told(
            "Bank account opened successfully!",
            f"  - Account ID: {account_id}",
            f"  - User ID: {user_id}",
            f"  - Account Type: {account_type}",
            f"  - Account Class: {account_class}",
            "  - Status: OPEN",
            "  - Initial Balance: $0.00",
            f"  - Date Opened: {ids.TODAY}",
        )

    @discoverable("write")
    def close_bank_account_7392(
        self,
        account_id: str,
        reason: str = "Customer requested closure",
        waive_early_closure_fee: bool = False,
    ) -> str:
        if not account_id:
            return "Error: Missing required parameter (account_id)."
        accounts = self.db["accounts"]
        if account_id not in accounts:
            return f"Error: Account '{account_id}' not found."
        account = accounts.peek(account_id)
        if account.get("status") == "CLOSED":
            return f"Error: Account '{account_id}' is already closed."
        balance = holdings(account)
        fee = 0.0 if waive_early_closure_fee else _closing_fee(account)
        if fee and balance < fee:
            return "Error: Account unable to be closed."
        if balance - fee != 0:
            return f"Error: Account balance must be $0.00 before closing. Current balance: ${balance:.2f}"
        account = accounts[account_id]
        account["status"] = "CLOSED"
        account["date_closed"] = ids.TODAY
        account["closure_reason"] = reason
        account["early_closure_fee_waived"] = waive_early_closure_fee
        return told(
            "Bank account closed successfully!",
            f"  - Account ID: {account_id}",
            f"  - Account Type: {account.get('account_type', 'N/A')}",
            f"  - Account Class: {account.get('account_class', 'N/A')}",
            "  - Status: CLOSED",
            f"  - Date Closed: {ids.TODAY}",
            f"  - Reason: {reason}",
            f"  - Early Closure Fee Waived: {'Yes' if waive_early_closure_fee else 'No'}",
        )

    @discoverable("read")
    def get_all_user_accounts_by_user_id_3847(self, user_id: str) -> str:
        if not user_id:
            return "Error: Missing required parameter: user_id"
        bank, cards = (self._report(table, "user_id", user_id) for table in ("accounts", "credit_card_accounts"))
        return told(
            "User accounts retrieved successfully.",
            "",
            "Executed: get_all_user_accounts_by_user_id_3847",
            f"Accounts for user {user_id}:",
            "",
            "Bank Accounts:",
            "  No bank accounts found." if nothing(bank) else bank,
            "\nCredit Card Accounts:",
            "  No credit card accounts found." if nothing(cards) else cards,
        )

    @discoverable("write")
    def transfer_funds_between_bank_accounts_7291(
        self, source_account_id: str, destination_account_id: str, amount: float
    ) -> str:
        if not source_account_id or not destination_account_id or amount is None:
            return missing("source_account_id", "destination_account_id", "amount")
        try:
            amount = float(amount)
        except (ValueError, TypeError):
            return f"Error: Invalid amount '{amount}'. Must be a number."
        if amount <= 0:
            return "Error: Transfer amount must be positive."
        if source_account_id == destination_account_id:
            return "Error: Source and destination accounts cannot be the same."
        accounts, sides = self.db["accounts"], (("Source", source_account_id), ("Destination", destination_account_id))
        for side, account_id in sides:
            if account_id not in accounts:
                return f"Error: {side} account '{account_id}' not found."
        for side, account_id in sides:
            if accounts.peek(account_id).get("status") not in LIVE:
                return f"Error: {side} account '{account_id}' is not active."
        source = holdings(accounts.peek(source_account_id))
        if source < amount:
            return (
                f"Error: Insufficient funds. Source account balance is ${source:.2f}, "
                f"but transfer amount is ${amount:.2f}."
            )
        source, destination = source - amount, holdings(accounts.peek(destination_account_id)) + amount
        accounts[source_account_id]["current_holdings"] = f"${source:.2f}"
        accounts[destination_account_id]["current_holdings"] = f"${destination:.2f}"
        return told(
            "Transfer completed successfully!",
            f"  - Amount: ${amount:.2f}",
            f"  - From: {source_account_id} (new balance: ${source:.2f})",
            f"  - To: {destination_account_id} (new balance: ${destination:.2f})",
        )

    @discoverable("write")
    def apply_checking_account_credit_5829(self, account_id: str, amount: float, credit_type: str) -> str:
        def refusal(account: Mapping[str, Any]) -> str | None:
            if account.get("class", "").lower() != "checking":
                return (
                    f"Error: Account '{account_id}' is not a checking account. Credits can only be applied to checking "
                    "accounts."
                )
            return None

        kinds = ("rebate_credit", "fee_refund")
        return self._credit(account_id, amount, credit_type, kinds, refusal, "checking_credit", "$")

    @discoverable("write")
    def apply_savings_account_credit_6831(self, account_id: str, amount: float, credit_type: str) -> str:
        def refusal(account: Mapping[str, Any]) -> str | None:
            if account.get("class", "").lower() not in ("saving", "savings"):
                return (
                    f"Error: Account '{account_id}' is not a savings account. This tool only applies to savings "
                    "accounts."
                )
            return None

        kinds = ("interest_correction", "fee_refund", "goodwill_credit")
        return self._credit(account_id, amount, credit_type, kinds, refusal, "savings_credit", "")

    def _credit(
        self,
        account_id: str,
        amount: float,
        credit_type: str,
        kinds: tuple[str, ...],
        refusal: Any,
        seed: str,
        sign: str,
    ) -> str:
        """Add money to an account. ``sign`` stands before its new balance, which TAU2 writes in two ways."""
        if not account_id or amount is None or not credit_type:
            return MISSING
        try:
            amount = float(amount)
        except (TypeError, ValueError):
            return "Error: Invalid credit amount. Must be a number."
        if amount <= 0:
            return "Error: Credit amount must be positive."
        if credit_type not in kinds:
            return not_one_of("credit_type", kinds)
        accounts = self.db["accounts"]
        if account_id not in accounts:
            return f"Error: Account '{account_id}' not found."
        account = accounts.peek(account_id)
        problem: str | None = refusal(account)
        if problem is not None:
            return problem
        if account.get("status") not in LIVE:
            return f"Error: Account '{account_id}' is not active."
        before = holdings(account)
        after = before + amount
        accounts[account_id]["current_holdings"] = f"{sign}{after:.2f}"
        transaction_id = f"txn_{ids.digits(f'{seed}:{account_id}:{credit_type}:{amount}:{ids.TODAY}')}"
        self.db["bank_account_transaction_history"][transaction_id] = {
            "transaction_id": transaction_id,
            "account_id": account_id,
            "date": ids.TODAY,
            "description": CREDITS[credit_type],
            "amount": amount,
            "type": credit_type,
            "status": "posted",
        }
        return told(
            "\nCredit applied successfully!",
            f"  - Transaction ID: {transaction_id}",
            f"  - Account: {account_id}",
            f"  - Credit Type: {credit_type}",
            f"  - Amount: ${amount:.2f}",
            f"  - Previous Balance: ${before:.2f}",
            f"  - New Balance: ${after:.2f}",
        )

    @discoverable("write")
    def submit_interest_discrepancy_report_7294(
        self, account_id: str, user_id: str, expected_apy: float, actual_apy: float, amount_difference: float
    ) -> str:
        if not account_id or not user_id or expected_apy is None or actual_apy is None or amount_difference is None:
            return MISSING
        try:
            expected_apy, actual_apy = float(expected_apy), float(actual_apy)
            amount_difference = float(amount_difference)
        except (ValueError, TypeError):
            return "Error: expected_apy, actual_apy, and amount_difference must be numbers."
        accounts, users = self.db["accounts"], self.db["users"]
        if account_id not in accounts:
            return f"Error: Account '{account_id}' not found."
        if user_id not in users:
            return f"Error: User '{user_id}' not found."
        account, user = accounts.peek(account_id), users.peek(user_id)
        seed = f"interest_report:{account_id}:{user_id}:{expected_apy}:{actual_apy}:{ids.TODAY}"
        level, difference = account.get("level", "Unknown"), round(expected_apy - actual_apy, 4)
        return told(  # the report itself is stored nowhere: TAU2 has no table for it
            "\nInterest Discrepancy Report Submitted Successfully!",
            f"  - Report ID: IDR_{ids.digits(seed)}",
            f"  - Account: {account_id} ({level})",
            f"  - Customer: {user.get('name', 'Unknown')}",
            f"  - Expected APY: {expected_apy}%",
            f"  - Actual APY: {actual_apy}%",
            f"  - APY Difference: {difference}%",
            f"  - Amount Difference: ${amount_difference:.2f}",
            "  - Status: PENDING_REVIEW",
            "\nThe backend team will investigate this discrepancy and ensure correct APY calculations are applied "
            "going forward.",
        )

    @discoverable("read")
    def get_bank_account_transactions_9173(self, account_id: str) -> str:
        if not account_id:
            return "Error: Missing required parameter: account_id"
        if account_id not in self.db["accounts"]:
            return f"Error: Account '{account_id}' not found."
        table = "bank_account_transaction_history"
        rows = sorted(search(self.db, table, {"account_id": account_id}), key=_moment, reverse=True)
        return told(
            "Bank account transactions retrieved successfully.",
            "",
            "Executed: get_bank_account_transactions_9173",
            f"Transactions for account {account_id}:",
            listing(table, rows) if rows else "\nNo transactions found for this account.",
        )


def _kind(account: Mapping[str, Any]) -> Any:
    return account.get("account_type", account.get("class", ""))


def _live(account: Mapping[str, Any], kinds: tuple[str, ...], days: int = 0) -> bool:
    """Whether an account is of one of the kinds, open, and (if asked) so many days old."""
    if _kind(account) not in kinds or account.get("status", "") not in LIVE:
        return False
    if not days:
        return True
    try:
        return (ids.NOW - datetime.strptime(account.get("date_opened", ""), ids.DAY)).days >= days
    except ValueError:
        return False


def _eligible(account_type: str, own: list[Any]) -> bool:
    """Whether a customer with these accounts may open one of the type."""
    if account_type == "savings":
        return any(_live(account, PERSONAL, 14) for account in own)
    if account_type == "business_checking":
        return all(a.get("status") != "CLOSED" for a in own) and any(_live(account, PERSONAL) for account in own)
    if account_type == "business_savings":
        if any(holdings(account) < 0 for account in own):
            return False
        return any(_live(account, ("business_checking",), 30) for account in own)
    return True


def _closing_fee(account: Mapping[str, Any]) -> float:
    """What closing the account now costs, in dollars. TypeError if its class or level cannot be looked up."""
    level, kind, opened = account.get("level", ""), account.get("class", ""), account.get("date_opened", "")
    terms = EARLY_CLOSURE[kind].get(level) if kind in ("checking", "savings") else None
    if not terms or not opened:
        return 0.0
    try:
        age = (ids.NOW - datetime.strptime(opened, ids.DAY)).days
    except ValueError:
        return 0.0
    return terms[0] if age < terms[1] else 0.0


def _moment(row: tuple[str, Any]) -> datetime:
    text = str(row[1].get("date", ""))
    for layout in ("%m/%d/%Y %H:%M:%S", ids.DAY):
        try:
            return datetime.strptime(text, layout)
        except ValueError:
            continue
    return datetime.min
