"""The agent's discoverable tools for debit cards that are there already."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muarl_worlds.tau.banking import ids
from muarl_worlds.tau.banking.discovery import BankSide, discoverable, not_one_of, titled, told


def _new(reason: Any, others: list[str]) -> list[str]:
    lines = [
        "Your card is now ready to use at any ATM or point of sale terminal.",
        "For security, please sign the back of your card.",
    ]
    if others:
        lines.append(f"\nNote: Previous card(s) have been deactivated: {', '.join(others)}")
    return lines


def _replaced(reason: Any, others: list[str]) -> list[str]:
    lines = [
        "Your replacement card is now ready to use.",
        "",
        "IMPORTANT SECURITY REMINDERS:",
        "- Please review your recent transactions for any unauthorized charges",
        "- Report any suspicious activity immediately",
    ]
    if reason == "fraud":
        lines.append("- Since fraud was suspected, we recommend changing your online banking password")
    if others:
        lines.append(f"\nPrevious card(s) have been deactivated for security: {', '.join(others)}")
    return lines


def _reissued(reason: Any, others: list[str]) -> list[str]:
    lines = ["Your reissued card is now ready to use."]
    if others:
        lines.append(
            f"\nNote: Your previous card(s) ({', '.join(others)}) will remain active for 24 hours as a grace period."
        )
        lines.append("After 24 hours, the old card(s) will be automatically deactivated.")
    if reason in ("expired", "bank_reissue"):
        lines.append(
            "\nReminder: If your card number changed, please update any recurring payments with your new card details."
        )
    return lines


@dataclass(frozen=True)
class Activator:
    """One of the tools that activate cards.

    ``title``: what it calls such cards. ``issued_for``: the reasons for which they were issued. ``retires``: the status
    that the account's other cards get, and why, with a place for the reason. ``ending``: its last lines, by the reason
    and the ids of those other cards. ``why``: what it calls the reason, empty where it does not tell it.
    """

    title: str
    issued_for: tuple[str, ...]
    retires: tuple[str, str]
    ending: Callable[[Any, list[str]], list[str]]
    why: str = ""


ACTIVATORS = {
    "activate_debit_card_8291": Activator(
        "New", ("new_account", "first_card"), ("DEACTIVATED", "New card activated"), _new
    ),
    "activate_debit_card_8292": Activator(
        "Replacement",
        ("lost", "stolen", "fraud"),
        ("DEACTIVATED", "Replacement card activated ({})"),
        _replaced,
        "Replacement Reason",
    ),
    "activate_debit_card_8293": Activator(
        "Reissued",
        ("expired", "damaged", "upgrade", "bank_reissue"),
        ("GRACE_PERIOD", "Reissued card activated ({})"),
        _reissued,
        "Reissue Reason",
    ),
}
"""The tools that activate cards, by name."""
CLOSED_FOR = ("lost", "stolen", "fraud_suspected", "damaged", "no_longer_needed", "account_closing")
SECRET = "Security reminder: Never share your PIN with anyone."


class DebitCardTools(BankSide):
    """Debit cards: activating, freezing, closing, listing, and blocking recurring payments."""

    def _card(self, card_id: Any) -> Any:
        """The card for reading, None if there is none."""
        cards = self.db["debit_cards"]
        return cards.peek(card_id) if card_id in cards else None

    @discoverable("write")
    def set_debit_card_recurring_block_7382(self, card_id: str, block_recurring: bool) -> str:
        if not card_id:
            return "Error: Missing required parameter: card_id"
        card = self._card(card_id)
        if not card:
            return no_card(card_id)
        status = card.get("status", "").upper()
        if status != "ACTIVE":
            return (
                f"Error: Cannot update recurring block settings for a card with status '{status}'. Card must be ACTIVE."
            )
        self.db["debit_cards"][card_id]["recurring_blocked"] = block_recurring
        if block_recurring:
            return told(
                f"Recurring payments BLOCKED for debit card {card_id}.",
                "All recurring/subscription charges will be declined.",
                "One-time purchases are not affected.",
                "This change takes effect within 24 hours.",
            )
        return told(
            f"Recurring payments UNBLOCKED for debit card {card_id}.",
            "Recurring/subscription charges will now be allowed.",
            "This change takes effect within 24 hours.",
        )

    @discoverable("write")
    def activate_debit_card_8291(
        self, card_id: str, last_4_digits: str, expiration_date: str, cvv: str, pin: str
    ) -> str:
        return self._activate("activate_debit_card_8291", (card_id, last_4_digits, expiration_date, cvv, pin))

    @discoverable("write")
    def activate_debit_card_8292(
        self, card_id: str, last_4_digits: str, expiration_date: str, cvv: str, pin: str
    ) -> str:
        return self._activate("activate_debit_card_8292", (card_id, last_4_digits, expiration_date, cvv, pin))

    @discoverable("write")
    def activate_debit_card_8293(
        self, card_id: str, last_4_digits: str, expiration_date: str, cvv: str, pin: str
    ) -> str:
        return self._activate("activate_debit_card_8293", (card_id, last_4_digits, expiration_date, cvv, pin))

    def _activate(self, tool: str, given: tuple[Any, ...]) -> str:
        """Activate a card, retire the account's other active ones, and tell of it.

        ``given``: id, last four digits, expiration date, CVV, PIN.
        """
        problem = self._not_to_activate(tool, given)
        if problem:
            return problem
        by, card_id, cards = ACTIVATORS[tool], given[0], self.db["debit_cards"]
        card = cards[card_id]
        reason, account_id = card.get("issue_reason", "new_account"), card.get("account_id")
        card["status"] = "ACTIVE"
        card["activated_date"] = ids.TODAY
        others = [
            key
            for key, other in cards.scan()
            if key != card_id and other.get("account_id") == account_id and other.get("status") == "ACTIVE"
        ]
        status, why = by.retires
        until = "grace_period_ends" if status == "GRACE_PERIOD" else "deactivated_date"
        for key in others:
            cards[key].update({"status": status, until: ids.TODAY, "deactivation_reason": why.format(reason)})
        return told(
            f"{by.title} Debit Card Activation Successful",
            f"Card ID: {card_id}",
            *([f"{by.why}: {titled(reason)}"] if by.why else []),
            "Status: ACTIVE",
            f"Activation Date: {ids.TODAY}",
            "",
            *by.ending(reason, others),
        )

    def _not_to_activate(self, tool: str, given: tuple[Any, ...]) -> str | None:
        """Why the tool must not activate the card, if so."""
        card_id, last_4_digits, _, cvv, pin = given
        if not all(given):
            return "Error: Missing required parameters. Required: card_id, last_4_digits, expiration_date, cvv, pin."
        if problem := weak(pin):
            return f"Error: {problem}"
        if not cvv.isdigit() or len(cvv) != 3:
            return "Error: CVV must be exactly 3 digits."
        if not last_4_digits.isdigit() or len(last_4_digits) != 4:
            return "Error: Last 4 digits must be exactly 4 digits."
        card = self._card(card_id)
        if card is None:
            return no_card(card_id)
        reason = card.get("issue_reason", "new_account")
        if reason not in ACTIVATORS[tool].issued_for:
            right = next((name for name, by in ACTIVATORS.items() if reason in by.issued_for), "unknown")
            return (
                f"Error: Wrong activation tool. This card has issue_reason='{reason}'. Please use {right} instead of "
                f"{tool}."
            )
        if problem := _not_in_state(card_id, card, "activated", ("PENDING",), already="ACTIVE"):
            return problem
        if card.get("last_4_digits") != last_4_digits:
            return "Error: Card verification failed. The last 4 digits do not match our records."
        return self._account_shut(card, "activated")

    def _account_shut(self, card: Any, what: str) -> str | None:
        """The refusal if the card's account is there but not open."""
        account_id, accounts = card.get("account_id"), self.db["accounts"]
        if account_id and account_id in accounts and accounts.peek(account_id).get("status") != "OPEN":
            return f"Error: The linked checking account '{account_id}' is no longer open. Card cannot be {what}."
        return None

    @discoverable("write")
    def close_debit_card_4721(self, card_id: str, reason: str) -> str:
        if not card_id or not reason:
            return "Error: Missing required parameters. Required: card_id, reason."
        if reason.lower() not in CLOSED_FOR:
            return not_one_of("reason", CLOSED_FOR)
        reason = reason.lower()
        card = self._card(card_id)
        if card is None:
            return no_card(card_id)
        if problem := _not_in_state(card_id, card, "closed", ("ACTIVE", "PENDING")):
            return problem
        before = card["status"]
        self.db["debit_cards"][card_id].update(status="CLOSED", closed_date=ids.TODAY, closure_reason=reason)
        lines = [
            "Debit Card Closed Successfully",
            f"Card ID: {card_id}",
            f"Previous Status: {before}",
            "New Status: CLOSED",
            f"Closure Reason: {titled(reason)}",
            f"Closure Date: {ids.TODAY}",
            "",
        ]
        if reason in ("lost", "stolen", "fraud_suspected"):
            lines.append("IMPORTANT: This card has been immediately deactivated for security.")
            lines.append("Any pending transactions may still be processed.")
        if reason == "fraud_suspected":
            lines.append(
                "Please advise the customer to review recent transactions and file disputes for any unauthorized "
                "charges."
            )
            lines.append("Also recommend changing their online banking password.")
        return told(
            *lines,
            "",
            "Note: This card cannot be reactivated. If the customer needs a new card, they can order one through the "
            "standard ordering process.",
            "Any recurring payments linked to this card will need to be updated with new payment information.",
        )

    @discoverable("write")
    def freeze_debit_card_3892(self, card_id: str) -> str:
        if not card_id:
            return "Error: Missing required parameter: card_id."
        card = self._card(card_id)
        if card is None:
            return no_card(card_id)
        if problem := _not_in_state(card_id, card, "frozen", ("ACTIVE",), already="FROZEN"):
            return problem
        self.db["debit_cards"][card_id].update(status="FROZEN", frozen_date=ids.TODAY)
        return told(
            "Debit Card Frozen Successfully",
            f"Card ID: {card_id}",
            "Status: FROZEN",
            f"Frozen Date: {ids.TODAY}",
            "",
            "While frozen:",
            "- All new purchase transactions will be declined",
            "- Recurring payments and subscriptions will be declined",
            "- Pending transactions already authorized may still process",
            "",
            "To unfreeze, the customer can call customer service or use the mobile app.",
            "If the card is confirmed lost or stolen, recommend closing the card permanently instead.",
        )

    @discoverable("write")
    def unfreeze_debit_card_3893(self, card_id: str) -> str:
        if not card_id:
            return "Error: Missing required parameter: card_id."
        card = self._card(card_id)
        if card is None:
            return no_card(card_id)
        if problem := _not_in_state(card_id, card, "unfrozen", ("FROZEN",), already="ACTIVE"):
            return problem
        if problem := self._account_shut(card, "unfrozen"):
            return problem
        self.db["debit_cards"][card_id].update(status="ACTIVE", unfrozen_date=ids.TODAY)
        return told(
            "Debit Card Unfrozen Successfully",
            f"Card ID: {card_id}",
            "Status: ACTIVE",
            f"Unfrozen Date: {ids.TODAY}",
            "",
            "The card is now active and ready to use immediately.",
            "All transactions will process normally.",
        )

    @discoverable("read")
    def get_debit_cards_by_account_id_7823(self, account_id: str) -> str:
        if not account_id:
            return "Error: Missing required parameter 'account_id'."
        accounts = self.db["accounts"]
        if account_id not in accounts:
            return f"Error: Account '{account_id}' not found."
        if accounts.peek(account_id).get("class", "").lower() not in ("checking", "business_checking"):
            return (
                f"Error: Account '{account_id}' is not a checking account. Debit cards are only available for checking "
                "accounts."
            )
        rows = self.db["debit_cards"].scan()
        cards = [_renamed({"card_id": key, **card}) for key, card in rows if card.get("account_id") == account_id]
        if not cards:
            return f"No debit cards found for account '{account_id}'."
        cards.sort(key=lambda card: card.get("date_issued") or "", reverse=True)
        return json.dumps(cards, indent=2)


def _renamed(card: dict[str, Any]) -> dict[str, Any]:
    """A card with the names that the listing has for two of its fields."""
    if "last_4_digits" in card and "card_number_last_4" not in card:
        card["card_number_last_4"] = card.pop("last_4_digits")
    for name in ("issue_date", "created_date"):
        if name in card and "date_issued" not in card:
            card["date_issued"] = card.pop(name)
    return card


def _not_in_state(card_id: str, card: Any, done: str, states: tuple[str, ...], *, already: str = "") -> str | None:
    """Why a card cannot be ``done`` (such as "frozen"), if so: it must be in one of the states.

    ``already``: the state in which it need not be done.
    """
    status = card.get("status")
    if already and status == already:
        return f"Error: Debit card '{card_id}' is already {already.lower()}."
    if status in states:
        return None
    only = f"Only {' or '.join(states)} cards can be {done}."
    return f"Error: Debit card '{card_id}' cannot be {done}. Current status: {status}. {only}"


def no_card(card_id: Any) -> str:
    """The refusal of an id that no card has."""
    return f"Error: Debit card '{card_id}' not found."


def weak(pin: Any) -> str | None:
    """What is wrong with a PIN: not four digits, in a row up or down, or all the same."""
    if not pin or not pin.isdigit() or len(pin) != 4:
        return "PIN must be exactly 4 digits."
    if pin in "0123456789" or pin in "9876543210":
        return "PIN cannot be sequential (e.g., 1234). Please choose a more secure PIN."
    if len(set(pin)) == 1:
        return "PIN cannot be all the same digit (e.g., 1111). Please choose a more secure PIN."
    return None
