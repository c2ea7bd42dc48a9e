"""What customers of the bank want, how they say it, and how each request is served by the policy."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.kit.declaration import intent
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.service import Service
from muarl_worlds.services.bank.slots import (
    ACCOUNT,
    AMOUNT,
    CARD,
    CARD_REASON,
    DISPUTE_REASON,
    IDENTITY,
    LIMIT,
    LOCK_REASON,
    PAYEE,
    PAYMENT,
    SOURCE,
    STANDING,
    TARGET,
)
from muarl_worlds.services.bank.tools import TODAY, Bank
from muarl_worlds.services.bank.world import make_tables

# fmt: off
# Wordings stand side by side, and rules below each other.

def own_card(it: Plan) -> None:
    """The customer's card."""
    it.all = it.look("list_cards", customer_id=it.user.customer_id)
    it.c = it.pick(it.all.cards, card_id=it.card) or it.refuse("this card is not yours")


def own_payment(it: Plan) -> None:
    """A payment by one of the customer's cards."""
    it.all = it.look("list_transactions", customer_id=it.user.customer_id)
    it.t = it.pick(it.all.transactions, transaction_id=it.payment) or it.refuse("this payment is not yours")


@intent(
    says=["move {amount} from {source} to {target}", "put {amount} from {source} into {target}",
          "move {amount} out of {source}", "move {amount} between my accounts", "move some money between my accounts"],
    slots=[SOURCE, TARGET, AMOUNT],
    share=1.6,
    because=["The rent is due next week.", "I am putting something aside for the holidays.",
             "I would rather not see it lying around."],
)
def move_money(it: Plan) -> None:
    it.all = it.look("list_accounts", customer_id=it.user.customer_id)
    it.from_account = it.pick(it.all.accounts, kind=it.source) or it.unavailable(
        SOURCE, [r.kind for r in it.all.accounts if r.kind != it.target]
    )
    it.to_account = it.pick(it.all.accounts, kind=it.target) or it.unavailable(
        TARGET, [r.kind for r in it.all.accounts if r.kind != it.source]
    )
    it.refuse_if(it.source == it.target, "money cannot be moved from an account to itself")
    it.refuse_if(it.from_account.balance < it.amount, "the {source} holds only {from_account.balance|money}")
    it.transfer_if(
        it.amount > 2000,
        "The customer wants to move {amount}, which is above the telephone limit of $2,000.",
    )
    it.write(
        "move_money", from_account_id=it.from_account.account_id, to_account_id=it.to_account.account_id,
        amount=it.amount,
        propose=["move {amount|money} from your {source} to your {target}",
                 "move {amount|money}: from {source} {from_account.account_id} to {target} {to_account.account_id}"],
        done=["{amount|money} has been moved; your {source} now holds {result.from_account.balance|money}.",
              "Done, your {target} now holds {result.to_account.balance|money}."],
    )


@intent(
    says=["pay {amount} to {payee} from {source}", "send {amount} from {source} to {payee}", "pay {payee} {amount}",
          "send {amount} to {payee}", "pay {payee}", "send money to somebody"],
    slots=[PAYEE, AMOUNT, SOURCE], share=1.8,
    because=["The bill came in the post today.", "I am a little late with it already.", "They do not take cards."],
)
def send_payment(it: Plan) -> None:
    it.known = it.look("list_payees", customer_id=it.user.customer_id)
    it.to = it.pick(it.known.payees, name=it.payee) or it.unavailable(PAYEE, [r.name for r in it.known.payees])
    it.all = it.look("list_accounts", customer_id=it.user.customer_id)
    it.from_account = it.pick(it.all.accounts, kind=it.source) or it.unavailable(
        SOURCE, [r.kind for r in it.all.accounts if r.kind != "savings"]
    )
    it.refuse_if(it.source == "savings", "payments cannot be sent from a savings account")
    it.refuse_if(it.from_account.balance < it.amount, "the {source} holds only {from_account.balance|money}")
    it.transfer_if(
        it.amount > 2000,
        "The customer wants to send {amount}, which is above the telephone limit of $2,000.",
    )
    it.write(
        "send_payment", account_id=it.from_account.account_id, payee_id=it.to.payee_id, amount=it.amount,
        propose=["send {amount|money} to {payee} from your {source}",
                 "pay {payee} ({to.payee_id}) {amount|money} from the {source}"],
        done=["{amount|money} has been sent to {payee}; your {source} now holds {result.balance|money}.",
              "{payee} will get {amount|money}. The balance is now {result.balance|money}."],
    )


@intent(
    says=["lock {card} because {lock_reason}", "block {card}, {lock_reason}", "lock {card}", "freeze {card}",
          "block a card", "lock a card, {lock_reason}"],
    slots=[CARD, LOCK_REASON], share=1.2,
    because=["I am quite upset about it.", "I only noticed it when I got home."],
)
def lock_card(it: Plan) -> None:
    own_card(it)
    it.refuse_unless(it.c.status == "active", "the card ending in {c.last_four} is {c.status} already")
    it.write(
        "lock_card", card_id=it.c.card_id, reason=it.lock_reason,
        propose=["lock the {c.kind} card ending in {c.last_four} at once",
                 "lock your card {c.card_id} ending in {c.last_four}, so that nobody can pay with it"],
        done=["The card ending in {c.last_four} is locked.",
              "Done, nobody can pay with the card ending in {c.last_four} any more."],
    )


@intent(
    says=["unlock {card}", "unblock {card}", "use {card} again", "unlock a card"],
    slots=[CARD],
    because=["It was in my coat all the time.", "My son had it."],
)
def unlock_card(it: Plan) -> None:
    own_card(it)
    it.refuse_unless(it.c.status == "locked", "the card ending in {c.last_four} is {c.status} and not locked")
    it.transfer_if(
        it.c.locked_by == "bank",
        "The card ending in {c.last_four} was locked by the bank, and the customer wants it unlocked.",
    )
    it.refuse_if(it.c.replacement, "a new card is on its way, and the old one stays locked")
    it.write(
        "unlock_card", card_id=it.c.card_id,
        propose=["unlock the {c.kind} card ending in {c.last_four}",
                 "unlock your card {c.card_id} ending in {c.last_four}"],
        done=["The card ending in {c.last_four} is active again.",
              "You can use the card ending in {c.last_four} again."],
    )


@intent(
    says=["set the daily limit of {card} to {limit}", "change the limit of {card} to {limit} a day",
          "change the limit of {card}", "spend more with {card}", "change the limit of a card"],
    slots=[CARD, LIMIT], share=1.2,
    because=["I am going to buy a sofa.", "We are going abroad for a month."],
)
def set_limit(it: Plan) -> None:
    own_card(it)
    it.refuse_unless(
        it.c.status == "active",
        "the card ending in {c.last_four} is {c.status}, and only an active card's limit can be changed",
    )
    it.refuse_if(it.limit > 3000, "the daily limit can be $3,000 at most")
    it.write(
        "set_card_limit", card_id=it.c.card_id, daily_limit=it.limit,
        propose=["set the daily limit of the card ending in {c.last_four} to {limit|money}",
                 "set a limit of {limit|money} a day for your {c.kind} card ending in {c.last_four}"],
        done=["The limit of the card ending in {c.last_four} is {limit|money} a day now.",
              "Done, you can spend {limit|money} a day with it."],
    )


@intent(
    says=["get a new card for {card}, {card_reason}", "replace {card}, {card_reason}", "replace {card}",
          "get a new card"],
    slots=[CARD, CARD_REASON],
    because=["I hope that it does not take too long.", "I use it every day."],
)
def replace_card(it: Plan) -> None:
    own_card(it)
    it.refuse_if(it.c.status == "expired", "the card ending in {c.last_four} is expired")
    it.refuse_if(it.c.replacement, "a new card is on its way already")
    it.refuse_if(
        it.card_reason == "new name",
        "cards are replaced if they are lost, stolen or damaged only; a new name needs a visit to a branch",
    )
    it.write(
        "replace_card", card_id=it.c.card_id, reason=it.card_reason,
        propose=["replace the {c.kind} card ending in {c.last_four} ({card_reason}); the old one is locked",
                 "replace card {c.card_id} ending in {c.last_four}: a new one comes by post and this one is locked"],
        done=["A new card is on its way; the one ending in {c.last_four} is locked.",
              "Done, you will have the new card within a week."],
    )


@intent(
    says=["dispute {payment}, {dispute_reason}", "contest {payment} because {dispute_reason}", "dispute {payment}",
          "dispute a card payment"],
    slots=[PAYMENT, DISPUTE_REASON],
    share=1.3,
    because=["I have written to them and got no answer.", "I keep all my receipts."],
)
def dispute(it: Plan) -> None:
    own_payment(it)
    it.refuse_if(
        it.t.status == "pending",
        "the payment at {t.merchant} is still pending, and only posted ones can be disputed",
    )
    it.refuse_unless(it.t.dispute == "none", "the payment at {t.merchant} is disputed already")
    it.refuse_if(
        it.t.date < "2026-01-13",
        "the payment at {t.merchant} is from {t.date|date}, and payments can be disputed for 60 days",
    )
    it.transfer_if(
        it.t.amount > 1000,
        "The customer disputes a payment of {t.amount|money} at {t.merchant}, which is above $1,000.",
    )
    it.write(
        "dispute_transaction", transaction_id=it.t.transaction_id, reason=it.dispute_reason,
        propose=["dispute the payment of {t.amount|money} at {t.merchant} ({dispute_reason})",
                 ("dispute {t.transaction_id}, {t.amount|money} at {t.merchant} on {t.date|date}, reason: "
                  "{dispute_reason}")],
        done=["The payment at {t.merchant} is disputed; {t.amount|money} is credited for the time being.",
              "Your dispute of {t.amount|money} at {t.merchant} is on its way."],
    )


@intent(
    says=["cancel {standing}", "stop {standing}", "end {standing}", "cancel a standing order"],
    slots=[STANDING], share=1.1,
    because=["I do not go there any more.", "We have moved away from there."],
)
def cancel_standing(it: Plan) -> None:
    it.all = it.look("list_standing_orders", customer_id=it.user.customer_id)
    it.s = it.pick(it.all.standing_orders, standing_order_id=it.standing) or it.refuse(
        "this standing order is not yours"
    )
    it.refuse_unless(it.s.status == "active", "the standing order for {s.payee} is cancelled already")
    it.write(
        "cancel_standing_order", standing_order_id=it.s.standing_order_id,
        propose=["cancel the standing order of {s.amount|money} a month for {s.payee}",
                 "cancel {s.standing_order_id}, which pays {s.payee} {s.amount|money} every month"],
        done=["The standing order for {s.payee} is cancelled.", "{s.payee} will not be paid any more."],
    )


@intent(
    says=["know the balance of {account}", "find out how much is on {account}", "check the balance of {account}",
          "know the balance of an account"],
    slots=[ACCOUNT], share=0.8,
    because=["I have lost track a little.", "The app is down again."],
    heard=r"\bbalance|\bhow much (?:money )?(?:is|do i have|there is)",
)
def ask_balance(it: Plan) -> None:
    it.all = it.look("list_accounts", customer_id=it.user.customer_id)
    it.a = it.pick(it.all.accounts, kind=it.account) or it.unavailable(ACCOUNT, [r.kind for r in it.all.accounts])
    it.answer(
        ["Your {account} holds {a.balance|money}.", "The balance of the {account} is {a.balance|money}."],
        tell="{a.balance|plain}",
    )


@intent(
    says=["know how much was charged for {payment}", "find out the amount of {payment}",
          "find out the amount of a card payment"],
    slots=[PAYMENT], share=0.6,
    because=["I cannot read the receipt any more.", "It is for my tax return."],
)
def ask_payment(it: Plan) -> None:
    own_payment(it)
    it.answer(
        ["The payment at {t.merchant} on {t.date|date} was {t.amount|money}.",
         "You paid {t.amount|money} at {t.merchant}."],
        tell="{t.amount|plain}",
    )


SERVICE = Service(
    domain=Bank, about="the telephone desk of a bank", today=TODAY, identity=IDENTITY,
    intents=(move_money, send_payment, lock_card, unlock_card, set_limit, replace_card, dispute, cancel_standing,
             ask_balance, ask_payment),
    tables=make_tables,
    outside=("a mortgage", "opening an account for my son", "shares that I want to buy",
             "a letter about somebody who has died", "a cash machine that kept my card",
             "a message that asked for my password"),
    tiny_tools=("verify_customer", "list_accounts", "list_cards", "list_standing_orders", "move_money", "lock_card",
                "unlock_card", "replace_card", "cancel_standing_order", "transfer_to_human_agents"),
    policy_compact=Path("policy_compact.md"),
    texts=("last_four",),
)
