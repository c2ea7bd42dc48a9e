"""What the tools of the bank answer, field by field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from muarl.domains.schema import Date, Id, Money, TypedDict, record

Kind = Literal["checking", "savings", "joint"]
LockReason = Literal["lost", "stolen", "suspicious payment"]
CardReason = Literal["lost", "stolen", "damaged"]
DisputeReason = Literal["not mine", "wrong amount", "charged twice", "goods not received"]
CustomerId = Annotated[str, Id("K-", 5)]
AccountId = Annotated[str, Id("AC-", 6)]
CardId = Annotated[str, Id("CD-", 5)]
PayeeId = Annotated[str, Id("PY-", 4)]
TransactionId = Annotated[str, Id("T-", 6)]
StandingOrderId = Annotated[str, Id("S-", 4)]
LastFour = Annotated[str, Field(pattern=r"^\d{4}$")]


@record("customer_id")
class Customer(TypedDict):
    customer_id: CustomerId
    name: str
    date_of_birth: Date


@record("account_id")
class Account(TypedDict):
    account_id: AccountId
    customer_id: CustomerId
    kind: Kind
    balance: Money


@record()
class Accounts(TypedDict):
    accounts: list[Account]


@record("card_id")
class Card(TypedDict):
    """``locked_by``: "nobody" unless it is locked. ``replacement``: whether a new card is on its way."""

    card_id: CardId
    customer_id: CustomerId
    kind: Literal["debit", "credit"]
    last_four: LastFour
    status: Literal["active", "locked", "expired"]
    locked_by: Literal["nobody", "customer", "bank"]
    daily_limit: Money
    replacement: bool


@record()
class Cards(TypedDict):
    cards: list[Card]


@record("payee_id")
class Payee(TypedDict):
    payee_id: PayeeId
    name: str


@record()
class Payees(TypedDict):
    payees: list[Payee]


@record("transaction_id")
class Transaction(TypedDict):
    """A card payment. ``dispute``: "none", or the reason for which it is disputed."""

    transaction_id: TransactionId
    customer_id: CustomerId
    merchant: str
    amount: Money
    date: Date
    status: Literal["pending", "posted"]
    dispute: Literal["none", "not mine", "wrong amount", "charged twice", "goods not received"]


@record()
class Transactions(TypedDict):
    transactions: list[Transaction]


@record("standing_order_id")
class StandingOrder(TypedDict):
    """A payment that is made every month. ``day``: of the month."""

    standing_order_id: StandingOrderId
    customer_id: CustomerId
    payee: str
    amount: Money
    day: Annotated[int, Field(ge=1, le=28)]
    status: Literal["active", "cancelled"]


@record()
class StandingOrders(TypedDict):
    standing_orders: list[StandingOrder]


@record()
class Moved(TypedDict):
    """Both accounts as they are after money was moved between them."""

    amount: Money
    from_account: Account
    to_account: Account


@record("payment_id")
class Payment(TypedDict):
    """A payment that was sent. ``balance``: of the account afterwards."""

    payment_id: Annotated[str, Id("PM-", 6)]
    account_id: AccountId
    payee_id: PayeeId
    payee: str
    amount: Money
    date: Date
    balance: Money
