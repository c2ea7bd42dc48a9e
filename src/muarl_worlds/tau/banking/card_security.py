"""The agent's discoverable tools for debit cards' alerts and PINs."""

from __future__ import annotations

from typing import Any

from muarl_worlds.tau.banking import ids
from muarl_worlds.tau.banking.debit_cards import SECRET, no_card, weak
from muarl_worlds.tau.banking.discovery import BankSide, discoverable, told


class CardSecurityTools(BankSide):
    """Alerts, blocks and PINs of debit cards."""

    @discoverable("write")
    def clear_debit_card_fraud_alert_4892(self, card_id: str, reason: str) -> str:
        if not card_id:
            return "Error: Missing required parameter: card_id."
        if not reason:
            return "Error: Missing required parameter: reason."
        if reason not in ("customer_verified", "velocity_clear"):
            return f"Error: Invalid reason '{reason}'. Must be one of: customer_verified, velocity_clear"
        cards = self.db["debit_cards"]
        if card_id not in cards:
            return no_card(card_id)
        card = cards.peek(card_id)
        if reason == "velocity_clear":
            if not card.get("velocity_blocked", False):
                return f"Error: Debit card '{card_id}' does not have an active velocity block."
            cards[card_id].update(velocity_blocked=False, velocity_cleared_date=ids.TODAY)
            return told(
                "Velocity Block Cleared Successfully",
                f"Card ID: {card_id}",
                f"Cleared Date: {ids.TODAY}",
                "",
                "The card is now unblocked and ready for normal use.",
                "The velocity monitoring will continue - if the same unusual patterns recur,",
                "the card may be blocked again automatically.",
            )
        if not card.get("fraud_alert_active", False):
            return f"Error: Debit card '{card_id}' does not have an active fraud alert."
        if card.get("alert_source") == "bank_initiated":
            return (
                "Error: BANK_INITIATED_ALERT - This fraud alert was initiated by the bank's fraud detection system and "
                "cannot be cleared by customer service agents. Please transfer the customer to the security team using "
                "transfer_to_human_agents."
            )
        cards[card_id].update(fraud_alert_active=False, alert_source=None, fraud_alert_cleared_date=ids.TODAY)
        return told(
            "Fraud Alert Cleared Successfully",
            f"Card ID: {card_id}",
            f"Cleared Date: {ids.TODAY}",
            "",
            "The fraud alert has been removed from the card.",
            "All transactions will process normally.",
            "",
            "Remind the customer to review recent transactions and report any unauthorized charges.",
        )

    @discoverable("write")
    def reset_debit_card_pin_6284(self, card_id: str, last_4_digits: str, new_pin: str) -> str:
        if not card_id or not last_4_digits or not new_pin:
            return "Error: Missing required parameters. Required: card_id, last_4_digits, new_pin."
        if not last_4_digits.isdigit() or len(last_4_digits) != 4:
            return "Error: Last 4 digits must be exactly 4 digits."
        if problem := weak(new_pin):
            return f"Error: {problem}"
        cards = self.db["debit_cards"]
        if card_id not in cards:
            return no_card(card_id)
        card = cards.peek(card_id)
        if card.get("last_4_digits") != last_4_digits:
            return "Error: Card verification failed. The last 4 digits do not match our records."
        if card.get("status") != "ACTIVE":
            return (
                f"Error: Cannot reset PIN. Card status is {card.get('status')}. Only ACTIVE cards can have their PIN "
                "reset."
            )
        cards[card_id].update(pin_last_changed=ids.TODAY, pin_locked=False, pin_attempts_remaining=3)
        return told(
            "Debit Card PIN Reset Successfully",
            f"Card ID: {card_id}",
            f"PIN Changed: {ids.TODAY}",
            "",
            "The new PIN is effective immediately.",
            "Your card has been unlocked and is ready to use.",
            "Customer can use the new PIN for ATM withdrawals and point-of-sale transactions.",
            "",
            SECRET,
        )

    @discoverable("write")
    def change_debit_card_pin_6285(self, card_id: str, current_pin: str, new_pin: str) -> str:
        if not card_id or not current_pin or not new_pin:
            return "Error: Missing required parameters. Required: card_id, current_pin, new_pin."
        if not current_pin.isdigit() or len(current_pin) != 4:
            return "Error: Current PIN must be exactly 4 digits."
        if problem := weak(new_pin):
            return f"Error: {problem}"
        if current_pin == new_pin:
            return "Error: New PIN must be different from current PIN."
        cards: Any = self.db["debit_cards"]
        if card_id not in cards:
            return no_card(card_id)
        status = cards.peek(card_id).get("status")
        if status != "ACTIVE":
            return f"Error: Cannot change PIN. Card status is {status}. Only ACTIVE cards can have their PIN changed."
        cards[card_id]["pin_last_changed"] = ids.TODAY
        return told(
            "Debit Card PIN Changed Successfully",
            f"Card ID: {card_id}",
            f"PIN Changed: {ids.TODAY}",
            "",
            "The new PIN is effective immediately.",
            "Customer can use the new PIN for ATM withdrawals and point-of-sale transactions.",
            "",
            SECRET,
        )
