"""The agent's discoverable tool that orders debit cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl_worlds.tau.banking import ids
from muarl_worlds.tau.banking.discovery import BankSide, discoverable, not_one_of, told

DELIVERIES = {"STANDARD": "7-10 business days", "EXPEDITED": "3-5 business days", "RUSH": "1-2 business days"}
DESIGNS = ("CLASSIC", "PREMIUM", "CUSTOM")
LEAST = 25.0
"""Dollars that an account must hold for a card to be ordered."""


class CardOrderTools(BankSide):
    """Orders of debit cards."""

    @discoverable("write")
    def order_debit_card_5739(
        self,
        account_id: str,
        user_id: str,
        delivery_option: str,
        delivery_fee: float,
        card_design: str,
        design_fee: float,
        shipping_address: str,
        excess_replacement_fee: float | None = None,
    ) -> str:
        fees: dict[str, Any] = {"delivery_fee": delivery_fee, "design_fee": design_fee}
        for name, fee in fees.items():
            try:
                fees[name] = None if fee is None else float(fee)
            except (TypeError, ValueError):
                return f"Error: {name} must be a number."
        delivery_fee, design_fee = fees["delivery_fee"], fees["design_fee"]
        try:
            excess: float = float(excess_replacement_fee or 0)
        except (TypeError, ValueError):
            excess = 0
        needed = (account_id, user_id, delivery_option, card_design, shipping_address)
        if not all(needed) or delivery_fee is None or design_fee is None:
            return (
                "Error: Missing required parameters. Required: account_id, user_id, delivery_option, delivery_fee, "
                "card_design, design_fee, shipping_address."
            )
        if delivery_option.upper() not in DELIVERIES:
            return not_one_of("delivery_option", tuple(DELIVERIES))
        if card_design.upper() not in DESIGNS:
            return not_one_of("card_design", DESIGNS)
        delivery, design = delivery_option.upper(), card_design.upper()
        accounts = self.db["accounts"]
        if account_id not in accounts:
            return f"Error: Account '{account_id}' not found."
        account = accounts.peek(account_id)
        if problem := _refusal(account, account_id, user_id):
            return problem
        balance = _balance(account)
        if balance < LEAST:
            return f"Error: Account must have a minimum balance of $25. Current balance: ${balance:.2f}"
        if problem := self._occupied(account_id):
            return problem
        total = delivery_fee + design_fee + excess
        if total > 0 and balance < total:
            return f"Error: Insufficient funds for fees. Total fees: ${total:.2f}. Current balance: ${balance:.2f}"
        order_id = ids.named("dcord", "debit_card_order", account_id, user_id, delivery)
        order = {
            "order_id": order_id,
            "account_id": account_id,
            "user_id": user_id,
            "delivery_option": delivery,
            "card_design": design,
            "shipping_address": shipping_address,
            "delivery_fee": delivery_fee,
            "design_fee": design_fee,
            "excess_replacement_fee": excess,
            "total_fee": total,
            "order_date": ids.TODAY,
            "expected_delivery": DELIVERIES[delivery],
            "status": "PENDING",
        }
        if not self._add("debit_card_orders", order_id, order):
            return "Error: Failed to create debit card order. Order may already exist."
        parts = (("Delivery", delivery_fee, f"{delivery_fee}"), ("Design", design_fee, f"{design_fee}"))
        charged = [p for p in (*parts, ("Excess Replacement", excess, f"{excess:.0f}")) if p[1] > 0]
        if total > 0:
            accounts[account_id]["current_holdings"] = f"{balance - total:.2f}"
            fee_id = f"btxn_dcfee_{order_id[-8:]}"
            fee_record = {
                "transaction_id": fee_id,
                "account_id": account_id,
                "date": ids.TODAY,
                "description": f"DEBIT CARD ORDER FEE - {', '.join(f'{name} ${text}' for name, _, text in charged)}",
                "amount": -total,
                "type": "debit_card_fee",
                "status": "posted",
            }
            self._add("bank_account_transaction_history", fee_id, fee_record)
        card_id = self._new_card(account_id, user_id, design)
        lines = [
            "Debit Card Order Confirmed",
            f"Order ID: {order_id}",
            f"Card ID: {card_id}",
            f"Linked Account: {account_id}",
            f"Delivery Option: {delivery}",
            f"Card Design: {design}",
            f"Shipping Address: {shipping_address}",
            f"Expected Delivery: {DELIVERIES[delivery]}",
            "",
            "Note: Card will arrive with status PENDING. Customer must call to activate after receiving the card.",
        ]
        if total > 0:
            details = ", ".join(f"{name}: ${text}" for name, _, text in charged)
            lines.append(f"Total Fees: ${total:.2f} ({details}) - CHARGED to account {account_id}")
            lines.append(f"New Account Balance: ${balance - total:.2f}")
        else:
            lines.append("Total Fees: $0 (No additional charges)")
        return told(*lines)

    def _occupied(self, account_id: Any) -> str | None:
        """The refusal if a card of the account is ordered already, or active."""
        for _, order in self.db["debit_card_orders"].scan():
            if order.get("account_id") == account_id and order.get("status") == "PENDING":
                return f"Error: There is already a pending debit card order for account '{account_id}'."
        for _, card in self.db["debit_cards"].scan():
            if card.get("account_id") == account_id and card.get("status") == "ACTIVE":
                return (
                    f"Error: Account '{account_id}' already has an active debit card. Maximum 1 active card per "
                    "checking account."
                )
        return None

    def _new_card(self, account_id: Any, user_id: Any, design: str) -> str:
        """The id of a new card, which waits to be activated."""
        card_id = ids.named("dbc", "debit_card", account_id, user_id, ids.TODAY)
        seed = f"card_details:{card_id}"
        holder = "CARDHOLDER"
        if user_id in self.db["users"]:
            holder = self.db["users"].peek(user_id).get("name", "CARDHOLDER").upper()
        month, _, year = ids.TODAY.split("/")
        record = {
            "card_id": card_id,
            "account_id": account_id,
            "user_id": user_id,
            "cardholder_name": holder,
            "last_4_digits": _decimals(ids.digits(f"{seed}:last4", 8), 4),
            "cvv": _decimals(ids.digits(f"{seed}:cvv", 6), 3),
            "status": "PENDING",
            "issue_date": ids.TODAY,
            "expiration_date": f"{month}/30/{int(year) + 4}",
            "card_design": design,
            "issue_reason": self._issue_reason(account_id),
        }
        self._add("debit_cards", card_id, record)
        return card_id

    def _issue_reason(self, account_id: Any) -> Any:
        """Why the account gets a new card: by the first of its closed cards, if it has one."""
        cards = [card for _, card in self.db["debit_cards"].scan() if card.get("account_id") == account_id]
        closed = next((card for card in cards if card.get("status") == "CLOSED"), None)
        if closed is None:
            return "first_card" if cards else "new_account"
        reason = closed.get("closure_reason", "first_card")
        if reason in ("lost", "stolen", "fraud"):
            return reason
        return "fraud" if reason == "fraud_suspected" else "first_card"


def _refusal(account: Mapping[str, Any], account_id: Any, user_id: Any) -> str | None:
    """Why no card can be ordered for the account by the user, if so."""
    if account.get("class") != "checking":
        return (
            f"Error: Debit cards can only be ordered for checking accounts. Account '{account_id}' is a "
            f"{account.get('class')} account."
        )
    if account.get("status") != "OPEN":
        return f"Error: Account must be OPEN. Account '{account_id}' has status: {account.get('status')}"
    if account.get("user_id") != user_id:
        return f"Error: Account '{account_id}' does not belong to user '{user_id}'."
    return None


def _balance(account: Mapping[str, Any]) -> float:
    """Dollars; 0 where the text has a dollar sign, which TAU2 cannot read here."""
    try:
        return float(str(account.get("current_holdings", "0")).replace(",", ""))
    except ValueError:
        return 0.0


def _decimals(text: str, count: int) -> str:
    """The first decimal digits of a text, with zeros before them if there are too few."""
    return "".join(c for c in text if c.isdigit())[:count].zfill(count)
