"""TAU2 banking's fourteen agent tools, with which an agent also finds, unlocks and calls the discoverable ones.

The docstrings are the tools' interface, word for word as TAU2 gives it to models (sierra-research/tau2-bench, MIT
licence, Copyright Sierra Research). What the tools do is written anew.
"""

from __future__ import annotations

import inspect
import json
from typing import Any, Literal, get_args

from muarl.domains.tooling import tool
from muarl_worlds.tau.banking import ids
from muarl_worlds.tau.banking.accounts import AccountTools
from muarl_worlds.tau.banking.card_orders import CardOrderTools
from muarl_worlds.tau.banking.card_security import CardSecurityTools
from muarl_worlds.tau.banking.credit_cards import CreditCardTools
from muarl_worlds.tau.banking.customer import KnowledgeUserTools
from muarl_worlds.tau.banking.debit_cards import DebitCardTools
from muarl_worlds.tau.banking.discovery import DESCRIPTIONS, shown, told
from muarl_worlds.tau.banking.disputes import DisputeTools
from muarl_worlds.tau.banking.limits import LimitTools
from muarl_worlds.tau.banking.parsing import called, parsed, words_of

TransferReason = Literal[
    "fraud_or_security_concern",
    "account_closure_request",
    "deceased_account_holder",
    "legal_or_regulatory_matter",
    "account_ownership_dispute",
    "complex_billing_dispute",
    "abusive_customer_behavior",
    "third_party_inquiry",
    "technical_system_error",
    "unconfirmed_external_communication",
    "customer_demands_after_unavailable_offer_refusal",
    "kb_search_unsuccessful_customer_requests_transfer",
    "specialized_department_required",
    "accessibility_or_special_needs",
    "customer_frustrated_demands_human",
    "supervisor_request_service_complaint",
    "customer_requests_human_no_specific_reason",
    "request_completed_customer_wants_human_followup",
    "other",
]


class KnowledgeTools(
    DisputeTools, CreditCardTools, LimitTools, AccountTools, CardOrderTools, DebitCardTools, CardSecurityTools
):
    """The agent's side. Tools that TAU2 calls generic but that change the state are of kind "write" here."""

    discoverables = DESCRIPTIONS["agent"]
    _unlocked: set[str]
    """The discoverable tools that may be called in this world."""
    _recorded_reads: frozenset[str]
    """The reading ones whose calls leave a record, since the task's gold actions call them."""

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str, reason: TransferReason = "other") -> str:
        """Transfer the user to a human agent.

        The proper transfer reason enum can be found in the knowledge base: search it before calling this tool to select the proper applicable reason.

        Args:
            summary: A summary of the user's issue and what was attempted before transfer.
            reason: The specific reason code for the transfer.
        """  # noqa: E501
        if reason not in get_args(TransferReason):
            options = ", ".join(get_args(TransferReason))
            return f"Error: Invalid transfer reason '{reason}'. Must be one of: {options}"
        return f"Transfer successful (reason: {reason}). A human agent will assist you shortly."

    @tool
    def get_current_time(self) -> str:
        """Get the current time. Use this to get the current timestamp for logging verification records.

        Returns:
            The current time in the format "YYYY-MM-DD HH:MM:SS TZ"
        """
        return "The current time is 2025-11-14 03:40:00 EST."

    @tool
    def get_user_information_by_id(self, user_id: str) -> str:
        """Get the information (date of birth, email, phone number, address) for a user by their user id.

        Args:
            user_id: The ID of the user
        """
        return self._report("users", "user_id", user_id)

    @tool
    def get_user_information_by_name(self, customer_name: str) -> str:
        """Get the information (date of birth, email, phone number, address) for a user by their name. Case Sensitive.

        Args:
            customer_name: The name of the user
        """
        return self._report("users", "name", customer_name)

    @tool
    def get_user_information_by_email(self, email: str) -> str:
        """Get the information (date of birth, email, phone number, address) for a user by their email.

        Args:
            email: The email of the user
        """
        return self._report("users", "email", email)

    @tool(writes=True)
    def change_user_email(self, user_id: str, new_email: str) -> str:
        """Change the email address for a user.

        Args:
            user_id: The ID of the user whose email should be changed
            new_email: The new email address to set for the user
        """
        if user_id not in self.db["users"]:
            return f"Error: User with ID '{user_id}' not found."
        self.db["users"][user_id]["email"] = new_email
        return told("Email updated successfully.", f"  - User ID: {user_id}", f"  - New Email: {new_email}")

    @tool
    def get_referrals_by_user(self, user_id: str) -> str:
        """Get all referrals made by a user.

        Args:
            user_id: The ID of the user (referrer) to look up referrals for
        """
        return self._report("referrals", "referrer_id", user_id)

    @tool
    def get_credit_card_transactions_by_user(self, user_id: str) -> str:
        """Get all credit card transactions for a user.

        Args:
            user_id: The ID of the user to look up transactions for
        """
        return self._report("credit_card_transaction_history", "user_id", user_id)

    @tool
    def get_credit_card_accounts_by_user(self, user_id: str) -> str:
        """Get all credit card accounts for a user.

        Returns information about each credit card account including card type,
        date opened, current balance, and reward points.

        Args:
            user_id: The ID of the user to look up credit card accounts for
        """
        return self._report("credit_card_accounts", "user_id", user_id)

    @tool(writes=True)
    def log_verification(
        self,
        name: str,
        user_id: str,
        address: str,
        email: str,
        phone_number: str,
        date_of_birth: str,
        time_verified: str,
    ) -> str:
        """Log a verification record after successfully verifying a user's identity.

        Call this tool after you have verified a user by confirming 2 out of 4 identity fields
        (date of birth, email, phone number, address). This creates an audit record of the verification.

        Args:
            name: The verified user's full name
            user_id: The verified user's ID
            address: The verified user's address
            email: The verified user's email
            phone_number: The verified user's phone number
            date_of_birth: The verified user's date of birth (MM/DD/YYYY format)
            time_verified: The timestamp of the verification (e.g., "2025-11-14 03:40:00 EST")
        """
        moment = time_verified.replace(" ", "_").replace(":", "").replace("-", "")
        record = {
            "name": name,
            "user_id": user_id,
            "address": address,
            "email": email,
            "phone_number": phone_number,
            "date_of_birth": date_of_birth,
            "time_verified": time_verified,
        }
        if not self._add("verification_history", f"{user_id}_{moment}", record):
            return "Failed to log verification: Record may already exist."
        return told(
            "Verification logged successfully.",
            f"  - User: {name} (ID: {user_id})",
            f"  - Verified at: {time_verified}",
        )

    @tool(writes=True)
    def give_discoverable_user_tool(self, discoverable_tool_name: str, arguments: str = "{}") -> str:
        """Pass a tool to the user so they can execute it themselves.

        Use this when the knowledge base indicates that the user should perform
        an action themselves (e.g., "to do X, have the user call tool_name(args)").

        The user will then be able to call `call_discoverable_tool` with the same
        tool name and arguments to simulate executing the action.

        Args:
            discoverable_tool_name: The name of the discoverable tool (e.g., "open_webpage", "navigate_to_section")
            arguments: JSON string of arguments for the tool (e.g., '{"url": "https://example.com"}')

        Returns:
            A confirmation message with instructions for the user
        """
        name = discoverable_tool_name
        if not isinstance(name, str):
            raise TypeError(f"attribute name must be string, not '{type(name).__name__}'")
        if name not in KnowledgeUserTools.discoverables:
            return f"Error: Unknown discoverable tool '{name}'."
        try:
            given = parsed(arguments)
        except json.JSONDecodeError as problem:
            return f"Error: Invalid JSON in arguments: {problem}"
        known = inspect.signature(getattr(KnowledgeUserTools, name)).parameters
        for argument in given:
            if argument not in known and argument != "self":
                return f"Error: Unexpected parameter: {argument}"
        record = {"tool_name": name, "status": "GIVEN"}
        self._add("user_discoverable_tools", ids.digits(f"user_discoverable_tool:{name}"), record)
        return told(
            f"Tool given to user: {name}",
            f"Description: {KnowledgeUserTools.discoverables[name].text}",
            f"Arguments: {json.dumps(given, indent=2) if given else '(no arguments)'}",
            "",
            "The user can now execute this action by calling `call_discoverable_user_tool` with "
            f"discoverable_tool_name='{name}' and the same arguments.",
        )

    @tool(writes=True)
    def unlock_discoverable_agent_tool(self, agent_tool_name: str) -> str:
        """Unlock an agent discoverable tool that was found in the knowledge base.

        Use this when the knowledge base indicates that you have access to a specialized
        internal tool. The knowledge base will tell you the tool name to unlock.

        After unlocking, you can use the tool by calling `call_discoverable_agent_tool` with
        the tool name and required arguments.

        Args:
            agent_tool_name: The name of the agent discoverable tool to unlock
                            (e.g., "calculate_apr_adjustment_7842")

        Returns:
            A confirmation message with the tool's description and parameters
        """
        name = agent_tool_name
        if name not in self.discoverables:
            return f"Error: Unknown agent tool '{name}'. This tool is not available."
        self._unlocked.add(name)
        return told(
            f"Tool unlocked: {name}",
            f"Description: {self.discoverables[name].text}",
            "",
            shown(name),
            "",
            "You can now use this tool by calling `call_discoverable_agent_tool` with "
            f"agent_tool_name='{name}' and the required arguments.",
        )

    @tool(writes=True)
    def call_discoverable_agent_tool(self, agent_tool_name: str, arguments: str = "{}") -> str:
        """Call an agent discoverable tool that you have previously unlocked.

        Use this after unlocking a tool with `unlock_discoverable_agent_tool`. The knowledge base
        will tell you which tool to use and what arguments to provide.

        Args:
            agent_tool_name: The name of the agent discoverable tool to call
            arguments: JSON string of arguments for the tool (e.g., '{"user_id": "abc123"}')

        Returns:
            The result of executing the agent tool
        """
        name = agent_tool_name
        if name not in self.discoverables:
            return f"Error: Unknown agent tool '{name}'. This tool is not available."
        if name not in self._unlocked:
            return (
                f"Error: Tool '{name}' has not been unlocked. You must first use `unlock_discoverable_agent_tool` to "
                "unlock this tool before calling it."
            )
        try:
            given = parsed(arguments, parse_int=float)  # 33 and 33.0 are one number, and must leave one record
        except json.JSONDecodeError as problem:
            return f"Error: Invalid JSON in arguments: {problem}"
        method = getattr(self, name)
        try:
            answer: str = called(method, given)
        except TypeError as problem:
            return self._refused(f"Invalid arguments: {words_of(problem)}")
        if method.__tool_kind__ == "write" or name in self._recorded_reads:
            record = {"tool_name": name, "status": "CALLED"}
            self._add("agent_discoverable_tools", ids.digits(f"agent_discoverable_tool:{name}"), record)
        return answer

    @tool
    def list_discoverable_agent_tools(self) -> str:
        """List all agent discoverable tools that you have called.

        Use this to see what specialized tools you have used.

        Returns:
            A list of tools that you have called
        """
        return f"Your called agent tools:\n{self._everything('agent_discoverable_tools')}"


def recorded_reads(actions: Any) -> frozenset[str]:
    """The discoverable tools that a task's gold actions call, whose calls leave a record even if they only read."""
    names = (a.arguments.get("agent_tool_name") for a in actions or () if a.name == "call_discoverable_agent_tool")
    return frozenset(name for name in names if name)
