"""TAU2 banking's user tools, and the discoverable ones that an agent can give to a user.

The docstrings are the tools' interface, word for word as TAU2 gives it to models (sierra-research/tau2-bench, MIT
licence, Copyright Sierra Research). What the tools do is written anew.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from typing import Any

from muarl.domains.tooling import tool
from muarl_worlds.tau.banking import ids
from muarl_worlds.tau.banking.accounts import LIVE
from muarl_worlds.tau.banking.discovery import DESCRIPTIONS, BankSide, discoverable, executed, holdings, told
from muarl_worlds.tau.banking.parsing import called, parsed, words_of
from muarl_worlds.tau.banking.query import nothing

APPLICABLE = (
    "Bronze Rewards Card", "Business Bronze Rewards Card", "Business Gold Rewards Card",
    "Business Platinum Rewards Card", "Business Silver Rewards Card", "Crypto-Cash Back", "Diamond Elite Card",
    "EcoCard", "Gold Rewards Card", "Green Rewards Card", "Platinum Rewards Card", "Silver Rewards Card",
    "Silver Zoom Card",
)  # fmt: skip
REWARDS = {
    "Bronze Rewards Card": {"default": 1.0},
    "Silver Rewards Card": {"Travel": 4.0, "Software": 4.0, "default": 1.0},
    "Gold Rewards Card": {"default": 2.5},
    "Platinum Rewards Card": {"default": 10.0},
    "Business Bronze Rewards Card": {"default": 1.0},
    "Business Silver Rewards Card": {"Travel": 10.0, "Software": 10.0, "default": 1.0},
    "Green Rewards Card": {"Sustainable": 3.0, "default": 1.0},
    "Business Gold Rewards Card": {"Operations": 2.5, "default": 1.0},
    "Business Platinum Rewards Card": {"Travel": 4.0, "Software": 4.0, "Media": 4.0, "default": 1.5},
    "Silver Zoom Card": {"Transportation": 3.0, "default": 1.0},
    "Diamond Elite Card": {"default": 5.0},
    "EcoCard": {"Green": 5.0, "default": 1.0},
    "Crypto-Cash Back": {"default": 2.0},
}
"""Percent that comes back, by card and category."""


class KnowledgeUserTools(BankSide):
    """The user's side."""

    discoverables = DESCRIPTIONS["user"]

    def _opened(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Record a call of a tool that the agent gave; the refusal if it was not given."""
        if "No records found" in self._report("user_discoverable_tools", "tool_name", name):
            return (
                f"Error: Tool '{name}' has not been given to you by the agent. The agent must first use "
                "`give_discoverable_user_tool` to give this tool to you."
            )
        record = {"tool_name": name, "arguments": arguments, "called_at": ids.TODAY, "status": "CALLED"}
        self._add("user_discoverable_tool_calls", ids.user_call(name, arguments), record)
        return None

    @discoverable("write", "user")
    def submit_cash_back_dispute_0589(self, user_id: str, transaction_id: str) -> str:
        given = {"user_id": user_id, "transaction_id": transaction_id}
        if problem := self._opened("submit_cash_back_dispute_0589", given):
            return problem
        dispute_id = ids.dispute(user_id, transaction_id)
        settings = dict(self.db["task_config"].scan()).get("dispute_settings", {})
        record = {"dispute_id": dispute_id, **given, "submitted_at": ids.TODAY}
        if settings.get("auto_resolve_disputes", False):
            record |= {"status": "RESOLVED", "resolution": "APPROVED"}
            status = (
                "Status: RESOLVED - The dispute has been reviewed and approved. The transaction rewards need to be "
                "updated."
            )
        else:
            record |= {"status": "SUBMITTED"}
            status = "Status: SUBMITTED - Your dispute has been queued for review."
        stored = self._add("cash_back_disputes", dispute_id, record)
        return told(
            "Cash back dispute submitted successfully. Your case has been queued for review.",
            "",
            *executed("submit_cash_back_dispute_0589", given),
            f"Dispute ID: {dispute_id}\n{status}"
            if stored
            else "Note: Dispute may have already been submitted for this transaction.",
        )

    @discoverable("write", "user")
    def get_referral_link(self, user_id: str, card_name: str) -> str:
        given = {"user_id": user_id, "card_name": card_name}
        if problem := self._opened("get_referral_link", given):
            return problem
        referral_id = ids.digits(f"referral_link:{user_id}:{card_name}")
        stored = self._add("referrals", referral_id, _referral(referral_id, user_id, card_name))
        return told(
            "Referral link generated successfully. Share this link with the person you want to refer.",
            "",
            *executed("get_referral_link", given),
            f"Referral ID: {referral_id}\nReferral link: https://rhobank.com/refer/{referral_id}"
            if stored
            else "Note: A referral link for this card may have already been generated.",
        )

    @discoverable("read", "user")
    def get_card_last_4_digits(self, credit_card_account_id: str) -> str:
        given = {"credit_card_account_id": credit_card_account_id}
        if problem := self._opened("get_card_last_4_digits", given):
            return problem
        if nothing(self._report("credit_card_accounts", "account_id", credit_card_account_id)):
            return f"Error: Credit card account '{credit_card_account_id}' not found."
        found = hashlib.sha256(f"card_last4:{credit_card_account_id}".encode()).hexdigest()
        last = "".join(c for c in found if c.isdigit())[:4].ljust(4, "0")
        return told(
            "Card information retrieved successfully.",
            "",
            *executed("get_card_last_4_digits", given),
            f"Last 4 digits of card: {last}",
        )

    @discoverable("write", "user")
    def deposit_check_3847(self, account_id: str, check_amount: float) -> str:
        given = {"account_id": account_id, "check_amount": check_amount}
        if problem := self._opened("deposit_check_3847", given):
            return problem
        try:
            amount = float(check_amount)
        except (ValueError, TypeError):
            return f"Error: Invalid check amount '{check_amount}'. Must be a number."
        if amount <= 0:
            return "Error: Check amount must be positive."
        accounts = self.db["accounts"]
        if account_id not in accounts:
            return f"Error: Account '{account_id}' not found."
        account = accounts.peek(account_id)
        if account.get("status") not in LIVE:
            return f"Error: Account '{account_id}' is not active."
        before = holdings(account)
        after = before + amount
        accounts[account_id]["current_holdings"] = f"${after:.2f}"
        return told(
            "Check deposited successfully. Funds will be available according to your account's deposit policy.",
            "",
            *executed("deposit_check_3847", given),
            "Check deposit processed!",
            f"  - Account: {account_id}",
            f"  - Check Amount: ${amount:.2f}",
            f"  - Previous Balance: ${before:.2f}",
            f"  - New Balance: ${after:.2f}",
        )

    @tool(writes=True)
    def apply_for_credit_card(
        self, card_type: str, customer_name: str, annual_income: float, rho_bank_subscription: bool = False
    ) -> str:
        """Apply for a credit card.

        Args:
            card_type: Type of credit card
            customer_name: Full legal name
            annual_income: Annual income in USD
            rho_bank_subscription: Whether user has Rho-Bank+ subscription
        """
        if card_type not in APPLICABLE:
            return f"Error: Invalid card_type '{card_type}'. Must be one of: {list(APPLICABLE)}"
        try:
            income = float(annual_income)
        except (TypeError, ValueError):
            return "Error: Invalid annual_income. Must be a number."
        key = ids.digits(f"credit_card:{card_type}:{customer_name}:{income}:{rho_bank_subscription}")
        record = {
            "application_id": key,
            "card_type": card_type,
            "customer_name": customer_name,
            "annual_income": income,
            "rho_bank_subscription": rho_bank_subscription,
            "status": "PENDING",
            "date": ids.TODAY,
        }
        if not self._add("credit_card_applications", key, record):
            return f"Failed to submit application: Record ID '{key}' may already exist."
        return told(
            "Credit card application submitted:",
            "Your application has been successfully submitted. You will receive a decision within 5-7 business days "
            "via email.",
        )

    @tool(writes=True)
    def submit_referral(self, user_id: str, account_type: str) -> str:
        """Submit a referral request to refer someone to open an account.

        Args:
            user_id: Your user ID (the referrer)
            account_type: The type of account you are referring someone to open
        """
        key = ids.referral(user_id, account_type)
        if not self._add("referrals", key, _referral(key, user_id, account_type)):
            return f"Failed to submit referral: Record ID '{key}' may already exist."
        return told(
            "Referral request submitted successfully!",
            f"  - Referral ID: {key}",
            f"  - Referrer ID: {user_id}",
            f"  - Account Type: {account_type}",
            "  - Status: NO_PROGRESS",
            f"  - Date: {ids.TODAY}",
            "",
            "Share your referral ID with the person you're referring. They will need to use this when applying for "
            "their account.",
        )

    @tool(writes=True)
    def call_discoverable_user_tool(self, discoverable_tool_name: str, arguments: str = "{}") -> str:
        """Call a tool that was given to you by the agent.

        Use this when the agent has instructed you to perform an action using
        a discoverable tool. The agent will have told you the tool name and arguments.

        This simulates you performing the action in the real world (e.g., opening
        a webpage, navigating to a section, clicking a button).

        Args:
            discoverable_tool_name: The name of the discoverable tool to call (e.g., "open_webpage")
            arguments: JSON string of arguments for the tool (e.g., '{"url": "https://example.com"}')

        Returns:
            The result of executing the discoverable tool
        """
        name = discoverable_tool_name
        if name not in self.discoverables:
            return f"Error: Unknown discoverable tool '{name}'."
        try:
            given = parsed(arguments, parse_int=float)  # 33 and 33.0 are one number, and must leave one record
        except json.JSONDecodeError as problem:
            return f"Error: Invalid JSON in arguments: {problem}"
        method = getattr(self, name)
        known = inspect.signature(method).parameters
        for parameter in known:
            if parameter not in given:
                return f"Error: Missing required parameter: {parameter}"
        for argument in given:
            if argument not in known:
                return f"Error: Unexpected parameter: {argument}"
        try:
            answer: str = called(method, given)
        except TypeError as problem:
            return self._refused(f"Invalid arguments for tool '{name}': {words_of(problem)}")
        return answer

    @tool
    def list_discoverable_user_tools(self) -> str:
        """List all tools that have been given to you by the agent.

        Use this to see what actions the agent has instructed you to perform.

        Returns:
            A list of tools that have been given to you
        """
        return f"Tools given to you by the agent:\n{self._everything('user_discoverable_tools')}"

    @tool(writes=True)
    def request_human_agent_transfer(self) -> str:
        """Request to be transferred to a human agent for assistance.

        Use this when you want to speak with a real human agent instead of
        the automated system. Each request will be logged and processed.

        Returns:
            Confirmation that your transfer request has been submitted
        """
        known = self._everything("human_transfer_requests")
        number = 1 if nothing(known) else known.count("request_id") + 1
        key = f"transfer_request_{number}"
        record = {"request_id": key, "request_number": number, "requested_at": ids.TODAY, "status": "PENDING"}
        self._add("human_transfer_requests", key, record)
        return f"Transfer request #{number} submitted.\nThe agent will process your request."

    @tool(writes=True)
    def submit_transaction(
        self, user_id: str, credit_card_type: str, merchant_name: str, amount: float, category: str
    ) -> str:
        """Submit a credit card transaction.

        Args:
            user_id: Your user ID
            credit_card_type: Type of credit card used (e.g., "Bronze Rewards Card", "Gold Rewards Card")
            merchant_name: Name of the merchant where the purchase was made
            amount: Transaction amount in USD (e.g., 127.43)
            category: Transaction category (e.g., "Groceries", "Dining", "Travel", "Software", "Entertainment", "Utilities", "Shopping")
        """  # noqa: E501
        if credit_card_type not in REWARDS:
            return f"Error: Unknown credit card type '{credit_card_type}'. Available types: {list(REWARDS)}"
        key = ids.transaction(user_id, credit_card_type, merchant_name, amount, category)
        rates = REWARDS[credit_card_type]
        rate = rates.get(category, rates["default"])
        points = int(amount * rate)
        record = {
            "transaction_id": key,
            "user_id": user_id,
            "credit_card_type": credit_card_type,
            "merchant_name": merchant_name,
            "transaction_amount": f"${amount:.2f}",
            "transaction_date": ids.TODAY,
            "category": category,
            "status": "COMPLETED",
            "rewards_earned": f"{points} points",
        }
        if not self._add("credit_card_transaction_history", key, record):
            return f"Failed to submit transaction: Record ID '{key}' may already exist."
        return told(
            "Transaction submitted successfully!",
            f"  - Transaction ID: {key}",
            f"  - User ID: {user_id}",
            f"  - Card Type: {credit_card_type}",
            f"  - Merchant: {merchant_name}",
            f"  - Amount: ${amount:.2f}",
            f"  - Category: {category}",
            f"  - Date: {ids.TODAY}",
            f"  - Rewards Earned: {points} points ({rate}% cashback rate)\n",
        )


def _referral(key: str, user_id: Any, account_type: Any) -> dict[str, Any]:
    return {
        "referral_id": key,
        "referrer_id": user_id,
        "referred_account_type": account_type,
        "referral_status": "NO_PROGRESS",
        "date": ids.TODAY,
    }
