"""What customers of the bank must tell: who they are, and the details of each request."""

from __future__ import annotations

from muarl.domains.kit.declaration import Fact, Identity, RecordDescription, Slot, names, one_of, own, pattern, words
from muarl_worlds.services.bank import catalogue as cat

# fmt: off
# Wordings stand side by side, and rules below each other.

PAYEES = names(cat.VOCABULARY["payees"])
ACCOUNTS = words(
    {"checking": ["checking account", "checking"],
     "savings": ["savings account", "savings"],
     "joint": ["joint account"]},
)
LOCK_REASONS = words(
    {"lost": ["I lost it", "it is lost", "it must have fallen out of my bag"],
     "stolen": ["it was stolen", "somebody stole it"],
     "suspicious payment": ["there is a suspicious payment on it", "I saw a suspicious payment"]},
    own=True,
)
CARD_REASONS = words(
    {"lost": ["I lost it", "it is lost", "it must have fallen out of my bag"],
     "stolen": ["it was stolen", "somebody stole it"],
     "damaged": ["it is damaged", "the chip is broken", "it snapped in two"],
     "new name": ["I have married and have a new name", "my name has changed"]},
    own=True,
)
DISPUTE_REASONS = words(
    {"not mine": ["it is not mine", "I never bought that"],
     "wrong amount": ["the amount is wrong", "that is the wrong amount"],
     "charged twice": ["I was charged twice", "they charged me twice"],
     "goods not received": ["the goods never arrived", "I never received the goods"]},
    own=True,
)

IDENTITY = Identity(
    tool="verify_customer", table="customers", key="customer_id",
    facts=(Fact("name", "person", tells="My name is {name}."),
           Fact("date_of_birth", "birthdate", tells="I was born on {date_of_birth}.",
                noun=["date of birth", "born", "birthday"]),
           Fact("passcode", pattern(r"\d{6}"), tells="My telephone passcode is {passcode}.", wrong=True)),
    ask=("May I have your full name, date of birth and telephone passcode?",
         "For security I need your full name, your date of birth and your six-digit passcode.",
         "Could you tell me your name, date of birth and passcode, please?",
         "Before we begin, please give me your full name, date of birth and telephone passcode."),
    retry=("These details do not fit any customer. Could you give me name, date of birth and passcode again?",
           "I could not verify that. Would you check your name, date of birth and passcode?"),
    say=("I'm {name}, born on {date_of_birth}, passcode {passcode}.",
         "My name is {name}, my date of birth is {date_of_birth} and the passcode is {passcode}.",
         "{name}, {date_of_birth}, {passcode}.",
         "It's {name}. Born {date_of_birth}. The code is {passcode}.",
         "This is {name}, {date_of_birth}, and my passcode would be {passcode}."),
)

AMOUNT = Slot(
    "amount", "money",
    ask=["How much is it?", "What amount?", "How much would you like to send?"],
    say=["{}.", "It's {}.", "{}, please."],
    change=["Actually, make it {}.", "Wait, {} will do.", "Let's say {} instead."],
    draw=one_of(20, 35, 50, 80, 120, 150, 200, 250, 400, 600, 950, 1500, 2400, 3200),
    noun=["amount", "send", "cost"],
)
SOURCE = Slot(
    "source", ACCOUNTS,
    ask=["From which account?", "Which account should it come from?"],
    phrase="my {}",
    say=["From my {}.", "The {}.", "My {}, please."],
    change="Actually, take it from my {}.",
    asked=r"(?:from )?which (?:of your )?accounts?[^.?]*(?:from|pay|\?)|where[^.?]*from",
    cue="(?:from|out of|off)(?: my| the| our)?",
)
TARGET = Slot(
    "target", ACCOUNTS,
    ask=["To which account should it go?", "Into which account?"],
    phrase="my {}",
    say=["To my {}.", "Into the {}."],
    change="Actually, put it into my {}.",
    asked=r"(?:to|into) which|which[^.?]*(?:go to|into|receive)|where[^.?]*\bto\b",
    cue="(?:to|into|onto)(?: my| the| our)?",
)
ACCOUNT = Slot(
    "account", ACCOUNTS,
    ask=["Which account do you mean?", "Which of your accounts is it?"],
    phrase="my {}",
    say=["My {}.", "The {}, please."],
    draw=own("accounts", "kind", key="account_id", mark="balance"),
)
PAYEE = Slot(
    "payee", PAYEES,
    ask=["Who should get the money?", "Which payee is it?"],
    say=["{}.", "It goes to {}.", "{}, please."],
    change=["Sorry, I mean {}.", "No wait, it was for {}."],
    noun=["payee", "paid", "money"],
)
CARD = Slot(
    "card", pattern(r"CD-\d{5}"),
    ask=["Which card is it? The last four digits will do.", "What are the last four digits of the card?",
         "Which of your cards do you mean?"],
    phrase="card {}", say="It's card {}.", draw=own("cards", "card_id", mark="last_four"),
    described=RecordDescription(
        kind=pattern(r"\d{4}"), match="last_four", id="card_id", look="list_cards", records="cards",
        given={"customer_id": "customer_id"},
        phrase="my card ending in {}",
        say=["The one ending in {}.", "The last four are {}.", "It is the card ending with {}."],
        cue="ending (?:in|with)?|digits are|four are", always=True,
    ),
    asked=r"(?:which|what) (?:of your )?cards?\b(?! (?:limit|reason))|last four|card number",
)
LOCK_REASON = Slot(
    "lock_reason", LOCK_REASONS,
    ask=["What has happened: is it lost, stolen, or is there a suspicious payment?", "Why should it be locked?"],
    say=["Well, {}.", "{}.", "I'm afraid {}."],
    change=["To be exact, {}.", "Sorry, no: {}."],
    noun=["happened", "lock", "reason"],
)
CARD_REASON = Slot(
    "card_reason", CARD_REASONS,
    ask=["Why do you need a new card: is it lost, stolen or damaged?", "What is wrong with the card?"],
    say=["Well, {}.", "{}.", "You see, {}."],
    change=["To be exact, {}.", "Sorry, no: {}."],
    noun=["wrong", "new card", "reason"],
)
LIMIT = Slot(
    "limit", "money",
    ask=["What should the daily limit be?", "How high should the limit be?"],
    say=["{}.", "{} a day.", "Let's have {}."],
    change=["Actually, {} a day is enough.", "Make that {}."],
    draw=one_of(200, 300, 600, 900, 1200, 2000, 2500, 3000, 4000, 5000),
)
PAYMENT = Slot(
    "payment", pattern(r"T-\d{6}"),
    ask=["Which payment is it?", "Where was the payment made?", "Which card payment do you mean?"],
    phrase="payment {}", say="Payment {}.", draw=own("transactions", "transaction_id", mark="merchant"),
    described=RecordDescription(
        kind=names(cat.VOCABULARY["merchants"]), match="merchant", id="transaction_id", look="list_transactions",
        records="transactions",
        given={"customer_id": "customer_id"},
        phrase="the card payment at {}",
        say=["It's the one at {}.", "The payment at {}.", "It was at {}."],
        cue="(?:payment|one|it's|it is|was|paid|charge) at", always=True,
    ),
    noun=["payment", "transaction", "purchase"],
)
DISPUTE_REASON = Slot(
    "dispute_reason", DISPUTE_REASONS,
    ask=["What is wrong with it?",
         "Why do you dispute it: not yours, wrong amount, charged twice, or goods not received?"],
    say=["{}.", "Well, {}.", "You see, {}."],
    change=["To be exact, {}.", "Sorry, I checked again: {}."],
    noun=["wrong", "dispute", "reason"],
)
STANDING = Slot(
    "standing", pattern(r"S-\d{4}"),
    ask=["Which standing order is it?", "Which monthly payment do you mean?", "Whom does the standing order pay?"],
    phrase="standing order {}", say="Standing order {}.",
    draw=own("standing_orders", "standing_order_id", mark="day"),
    described=RecordDescription(
        kind=PAYEES, match="payee", id="standing_order_id", look="list_standing_orders", records="standing_orders",
        given={"customer_id": "customer_id"},
        phrase="my standing order for {}",
        say=["The one for {}.", "It's the one to {}.", "It is the order for {}."],
        cue="(?:order|one|it's|it is|that) (?:for|to)", always=True,
    ),
    noun=["standing order", "monthly payment"],
)
