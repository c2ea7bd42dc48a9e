"""What employees want of the expenses desk, how they say it, how each request is served, and what needs approval."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.kit.authority import Limit
from muarl.domains.kit.declaration import Fact, Identity, RecordDescription, Slot, intent, names, one_of, own, pattern
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.service import Service
from muarl_worlds.services.expenses.tools import PURPOSES, STEPS, TODAY, Expenses, make_tables

IDENTITY = Identity(
    tool="identify_employee",
    table="employees",
    key="employee_id",
    facts=(
        Fact("name", "person", tells="My name is {name}."),
        Fact(
            "date_of_birth",
            "birthdate",
            tells="I was born on {date_of_birth}.",
            wrong=True,
            noun=["date of birth", "born", "birthday"],
        ),
    ),
    ask=("May I have your full name and date of birth?", "What are your full name and date of birth, please?"),
    say=("I'm {name}, born on {date_of_birth}.", "{name}, {date_of_birth}.", "It's {name}, {date_of_birth}."),
)
CLAIM = Slot(
    "claim",
    pattern(r"EX-\d{5}"),
    ask=("Which claim is it?", "What is the number of the claim?"),
    phrase="claim {}",
    say=("It's claim {}.", "Claim {}.", "The number is {}."),
    draw=own("claims", "claim_id", mark="purpose"),
    described=RecordDescription(
        kind=names(PURPOSES),
        match="purpose",
        id="claim_id",
        look="list_claims",
        records="claims",
        given={"employee_id": "employee_id"},
        phrase="my claim for the {}",
        say=("I don't have the number. It's the one for the {}.", "The claim for the {}."),
        cue="for the",
    ),
)
CARD = Slot(
    "card",
    pattern(r"CC-\d{4}"),
    ask=("Which card is it?", "What is the number of the card?"),
    phrase="card {}",
    say=("It's card {}.", "Card {}."),
    draw=own("cards", "card_id", mark="limit"),
)
AMOUNT = Slot(
    "amount",
    "money",
    ask=("What should the limit be?", "To which amount?"),
    say=("{}, please.", "To {}."),
    change=("Actually, make it {}.", "Wait, {} would be better."),
    noun=("amount", "limit"),
    draw=one_of(700, *STEPS, *STEPS[4:]),
)


def own_claim(it: Plan) -> None:
    """The employee's claim, which must be open."""
    it.c = it.look("get_claim", claim_id=it.claim)
    it.refuse_unless(it.c.employee_id == it.user.employee_id, "claim {claim} is not yours", rule=3)
    it.refuse_unless(it.c.status == "submitted", "claim {claim} is {c.status}", rule=6)


def own_card(it: Plan) -> None:
    """The employee's card."""
    it.k = it.look("get_card", card_id=it.card)
    it.refuse_unless(it.k.employee_id == it.user.employee_id, "card {card} is not yours", rule=3)


@intent(says=("have {claim} paid out", "get {claim} paid", "have a claim paid out"), slots=[CLAIM], share=2.0)
def pay_claim(it: Plan) -> None:
    own_claim(it)
    it.transfer_if(it.c.purpose == "moving house", "The employee wants {claim} for moving house paid.", rule=8)
    it.refuse_if(it.c.receipt == "missing", "the receipt of claim {claim} is missing", rule=7)
    propose = ("pay out claim {claim}, {c.amount|money} for the {c.purpose}", "pay {c.amount|money} for claim {claim}")
    it.write("pay_claim", claim_id=it.claim, propose=propose, done="{c.amount|money} are paid for claim {claim}.")


@intent(says=("withdraw {claim}", "take back {claim}", "withdraw a claim"), slots=[CLAIM], heard="withdraw|take back")
def withdraw_claim(it: Plan) -> None:
    own_claim(it)
    it.write("withdraw_claim", claim_id=it.claim, propose="withdraw claim {claim}", done="Claim {claim} is withdrawn.")


@intent(
    says=("raise the limit of {card} to {amount}", "raise the limit of {card}", "raise the limit of my company card"),
    slots=[CARD, AMOUNT],
    share=1.5,
    heard=r"\braise\b|\bhigher limit",
)
def raise_limit(it: Plan) -> None:
    own_card(it)
    it.refuse_unless(it.k.status == "active", "card {card} is {k.status}", rule=9)
    it.unavailable_if(it.amount not in STEPS, AMOUNT, [step for step in STEPS if step > it.k.limit], rule=10)
    it.refuse_if(it.amount <= it.k.limit, "card {card} has a limit of {k.limit|money} already", rule=9)
    propose, done = "raise the limit of card {card} to {amount}", "Card {card} now has a limit of {amount}."
    it.write("set_card_limit", card_id=it.card, limit=it.amount, propose=propose, done=done)


@intent(says=("unlock {card}", "have {card} unlocked", "unlock my company card"), slots=[CARD], heard=r"\bunlock")
def unlock_card(it: Plan) -> None:
    own_card(it)
    it.refuse_if(it.k.status == "active", "card {card} is active", rule=11)
    it.write("unlock_card", card_id=it.card, propose="unlock card {card}", done="Card {card} is active again.")


@intent(says=("know the amount of {claim}", "know how much {claim} is about", "ask about a claim"), slots=[CLAIM])
def claim_amount(it: Plan) -> None:
    it.c = it.look("get_claim", claim_id=it.claim)
    it.refuse_unless(it.c.employee_id == it.user.employee_id, "claim {claim} is not yours", rule=3)
    it.answer("Claim {claim} is about {c.amount|money}.", tell="{c.amount|plain}")


SERVICE = Service(
    domain=Expenses,
    about="a company's desk for expenses and company cards",
    today=TODAY,
    identity=IDENTITY,
    intents=(pay_claim, withdraw_claim, raise_limit, unlock_card, claim_amount),
    tables=make_tables,
    limits=(
        Limit("pay_claim", record="claim", amount="c.amount", above=250, reason="Spent on the {c.purpose}."),
        Limit("set_card_limit", record="card", amount="amount", above=2000),
        Limit(
            "unlock_card",
            record="card",
            when=lambda it: it.k.status == "under suspicion",
            told="for a card under suspicion",
        ),
    ),
    caller="employee",
    outside=("a question about my salary", "a complaint about a colleague"),
    policy_compact=Path("policy_compact.md"),
    rules={
        1: "identity",
        2: "consent",
        4: "look-ups, which every plan makes before it writes",
        5: "manner, which the conversation loop enforces",
        12: "outside",
    },
)
