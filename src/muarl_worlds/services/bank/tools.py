"""The tools of a bank's telephone desk, on a small database of customers, accounts, cards and payments."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.base import Domain
from muarl.domains.kit.people import made_id
from muarl.domains.tooling import tool
from muarl_worlds.services.bank.records import (
    Accounts,
    Card,
    CardReason,
    Cards,
    Customer,
    DisputeReason,
    LockReason,
    Moved,
    Payees,
    Payment,
    StandingOrder,
    StandingOrders,
    Transaction,
    Transactions,
)

TODAY = "2026-03-14"


class Bank(Domain):
    """A bank's telephone desk."""

    name: ClassVar[str] = "bank"
    policy: ClassVar[Path | str] = Path("policy.md")

    def _one(self, table: str, key: str) -> Any:
        """A record to change. ValueError if there is none."""
        if key not in self.db[table]:
            raise ValueError(f"{key} not found")
        return self.db[table][key]

    def _own(self, table: str, customer_id: str) -> list[Any]:
        """All records of a customer's in a table."""
        if customer_id not in self.db.customers:
            raise ValueError(f"customer {customer_id} not found")
        return [r for _, r in self.db[table].scan() if r["customer_id"] == customer_id]

    @tool
    def verify_customer(self, name: str, date_of_birth: str, passcode: str) -> Customer:
        """Find the customer by full name, date of birth and telephone passcode; all three must be right.

        name: first and last name, such as 'Ada Lind'
        date_of_birth: such as '1984-05-17'
        passcode: six digits
        """
        for _, c in self.db.customers.scan():
            told = (name.strip().lower(), date_of_birth.strip(), passcode.strip())
            if told == (c["name"].lower(), c["date_of_birth"], c["passcode"]):
                return {"customer_id": c["customer_id"], "name": c["name"], "date_of_birth": c["date_of_birth"]}
        raise ValueError("these details fit no customer")

    @tool
    def list_accounts(self, customer_id: str) -> Accounts:
        """The customer's accounts with their balances.

        customer_id: the customer, such as 'K-12345'
        """
        return {"accounts": self._own("accounts", customer_id)}

    @tool
    def list_cards(self, customer_id: str) -> Cards:
        """The customer's cards.

        customer_id: the customer
        """
        return {"cards": self._own("cards", customer_id)}

    @tool
    def list_payees(self, customer_id: str) -> Payees:
        """Whom the customer can pay: the saved payees.

        customer_id: the customer
        """
        own = self._own("payees", customer_id)
        return {"payees": [{"payee_id": p["payee_id"], "name": p["name"]} for p in own]}

    @tool
    def list_transactions(self, customer_id: str) -> Transactions:
        """The card payments of the last three months, newest first.

        customer_id: the customer
        """
        own = sorted(self._own("transactions", customer_id), key=lambda t: str(t["date"]), reverse=True)
        return {"transactions": own}

    @tool
    def list_standing_orders(self, customer_id: str) -> StandingOrders:
        """The customer's monthly payments.

        customer_id: the customer
        """
        return {"standing_orders": self._own("standing_orders", customer_id)}

    @tool(writes=True)
    def move_money(self, from_account_id: str, to_account_id: str, amount: float) -> Moved:
        """Move money between two accounts of the same customer.

        from_account_id: the account that it leaves, such as 'AC-123456'
        to_account_id: the account that it goes to
        amount: US dollars
        """
        source, target = self._one("accounts", from_account_id), self._one("accounts", to_account_id)
        if from_account_id == to_account_id or source["customer_id"] != target["customer_id"]:
            raise ValueError("money can only be moved between two accounts of one customer")
        if not 0 < amount <= source["balance"]:
            raise ValueError("amount must be above 0 and not above the balance")
        source["balance"] = round(source["balance"] - amount, 2)
        target["balance"] = round(target["balance"] + amount, 2)
        return {"amount": float(amount), "from_account": source, "to_account": target}

    @tool(writes=True)
    def send_payment(self, account_id: str, payee_id: str, amount: float) -> Payment:
        """Send money to a saved payee today.

        account_id: the account that pays
        payee_id: the saved payee, such as 'PY-1234'
        amount: US dollars
        """
        amount = float(amount)
        account, payee = self._one("accounts", account_id), self.db.payees.peek(payee_id)
        if payee["customer_id"] != account["customer_id"]:
            raise ValueError(f"{payee_id} is no payee of this customer")
        if not 0 < amount <= account["balance"]:
            raise ValueError("amount must be above 0 and not above the balance")
        account["balance"] = round(account["balance"] - amount, 2)
        payment: Any = {
            "payment_id": made_id("PM-", 6, account_id, payee_id, amount),
            "account_id": account_id,
            "payee_id": payee_id,
            "payee": payee["name"],
            "amount": amount,
            "date": TODAY,
            "balance": account["balance"],
        }
        self.db.payments[payment["payment_id"]] = payment
        return payment

    @tool(writes=True)
    def lock_card(self, card_id: str, reason: LockReason) -> Card:
        """Lock a card at once, so that nobody can pay with it.

        card_id: the card, such as 'CD-12345'
        reason: why
        """
        card = self._one("cards", card_id)
        if card["status"] != "active":
            raise ValueError(f"card {card_id} is {card['status']}")
        card |= {"status": "locked", "locked_by": "customer"}
        return card

    @tool(writes=True)
    def unlock_card(self, card_id: str) -> Card:
        """Unlock a card.

        card_id: the card
        """
        card = self._one("cards", card_id)
        if card["status"] != "locked":
            raise ValueError(f"card {card_id} is not locked")
        card |= {"status": "active", "locked_by": "nobody"}
        return card

    @tool(writes=True)
    def set_card_limit(self, card_id: str, daily_limit: float) -> Card:
        """Set how much can be spent with a card in a day.

        card_id: the card
        daily_limit: US dollars
        """
        card = self._one("cards", card_id)
        if card["status"] == "expired":
            raise ValueError(f"card {card_id} is expired")
        if daily_limit <= 0:
            raise ValueError("daily_limit must be above 0")
        card["daily_limit"] = float(daily_limit)
        return card

    @tool(writes=True)
    def replace_card(self, card_id: str, reason: CardReason) -> Card:
        """Send the customer a new card by post; the old one is locked.

        card_id: the card that is to be replaced
        reason: why
        """
        card = self._one("cards", card_id)
        if card["status"] == "expired" or card["replacement"]:
            raise ValueError(f"card {card_id} is expired, or a new one is on its way")
        locked_by = "customer" if card["locked_by"] == "nobody" else card["locked_by"]
        card |= {"status": "locked", "locked_by": locked_by, "replacement": True}
        return card

    @tool(writes=True)
    def dispute_transaction(self, transaction_id: str, reason: DisputeReason) -> Transaction:
        """Dispute a card payment. Pending ones cannot be disputed.

        transaction_id: the payment, such as 'T-123456'
        reason: why
        """
        transaction = self._one("transactions", transaction_id)
        if transaction["status"] != "posted" or transaction["dispute"] != "none":
            raise ValueError(f"{transaction_id} is pending, or disputed already")
        transaction["dispute"] = reason
        return transaction

    @tool(writes=True)
    def cancel_standing_order(self, standing_order_id: str) -> StandingOrder:
        """End a monthly payment.

        standing_order_id: the standing order, such as 'S-1234'
        """
        order = self._one("standing_orders", standing_order_id)
        if order["status"] != "active":
            raise ValueError(f"standing order {standing_order_id} is {order['status']}")
        order["status"] = "cancelled"
        return order

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a person.

        summary: what it is about, in one sentence
        """
        return "Transfer successful"
