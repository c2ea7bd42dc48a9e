"""What customers of the food delivery service must tell: who they are, and the details of each request."""

from __future__ import annotations

from muarl.domains.kit.declaration import (
    Fact,
    Identity,
    RecordDescription,
    Slot,
    names,
    of,
    one_of,
    own,
    pattern,
    rows,
    words,
)
from muarl_worlds.services.food_delivery import catalogue as cat

# fmt: off
# Wordings stand side by side, and rules below each other.

DISHES = names(cat.VOCABULARY["dishes"])
RESTAURANTS = names(cat.VOCABULARY["restaurants"])
LABELS = words(
    {"home": ["home", "my home address", "my flat"],
     "work": ["work", "my office", "my work address"],
     "parents": ["my parents' place", "my parents", "my parents' house"],
     "studio": ["the studio", "my studio"]},
    own=True,
)
PAYMENTS = words(
    {"visa": ["visa", "my visa card"],
     "mastercard": ["mastercard", "my mastercard"],
     "wallet": ["wallet", "the wallet in the app"],
     "gift card": ["gift card", "my gift card"]},
)
CANCEL_REASONS = words(
    {"changed plans": ["my plans have changed", "something else came up"],
     "ordered by mistake": ["it was a mistake", "I pressed the wrong button"],
     "takes too long": ["it takes too long", "it is taking too long", "I cannot wait any longer"]},
    own=True,
)
FAULTS = words(
    {"missing": ["it never came", "it was not in the bag"],
     "wrong dish": ["I got something else", "it was not what I ordered"],
     "damaged": ["it had leaked", "it arrived crushed"],
     "taste": ["it did not taste good", "the taste was off", "it was too salty"]},
    own=True,
)
INSTRUCTIONS = words(
    {"leave at the door": ["leave at the door", "leave it at the door"],
     "hand it to me": ["hand it to me", "bring it right into my hands"],
     "do not ring the bell": ["do not ring the bell", "please no ringing", "keep off the bell"],
     "call on arrival": ["call on arrival", "call me on arrival", "ring me up when you are there"],
     "leave with a neighbour": ["leave with a neighbour", "leave it with a neighbour"]},
    own=True,
)

IDENTITY = Identity(
    tool="identify_customer", table="customers", key="customer_id",
    facts=(Fact("name", "person", tells="My name is {name}."),
           Fact("phone", pattern(r"\d{3}-\d{3}-\d{4}|555-\d{4}"), tells="My phone number is {phone}.", wrong=True)),
    ask=("May I have your full name and the phone number on the account?",
         "Could you tell me your full name and phone number, please?",
         "First I need your full name and the phone number of your account.",
         "To find your account I need your name and phone number, please."),
    retry=("I could not find an account with this name and phone number. Could you check them, please?",
           "There is no account under that name and phone number. Would you check both for me?"),
    say=("I'm {name}, and my number is {phone}.", "My name is {name}, phone {phone}.", "{name}, {phone}.",
         "It's {name}, the number should be {phone}.", "This is {name}. You can find me under {phone}."),
)

ORDER = Slot(
    "order", pattern(r"F-\d{5}"),
    ask=["Which order is it?", "What is the order number?", "Which of your orders do you mean?"],
    phrase="order {}",
    say=["It's order {}.", "Order {}.", "The number is {}."],
    draw=own("orders", "order_id", mark="items"),
    described=RecordDescription(
        kind=RESTAURANTS, match="restaurant", id="order_id", look="list_orders", records="orders",
        given={"customer_id": "customer_id"},
        phrase="my order from {}",
        say=["I don't have the number. It's the one from {}.", "No idea, it is the order from {}.", "The one from {}."],
        cue="(?:order|one|it's|it is|was|that) from(?: the)?",
    ),
)
DISH = Slot(
    "dish", DISHES,
    ask=["Which dish is it?", "Which dish do you mean?", "Which of the dishes is it about?"],
    phrase="the {}",
    say=["The {}.", "It's the {}.", "I mean the {}."],
    draw=of(lambda drawn: drawn.order.items, "name"),
    asked=r"(?:which|what) (?:of the )?(?:dish|item)(?:es|s)?\b(?! would you)(?!.*instead)",
)
NEW_DISH = Slot(
    "new_dish", DISHES,
    ask=["Which dish would you like instead?", "What would you like instead of it?",
         "Which dish should it be instead?"],
    phrase="the {}",
    say=["I want the {}.", "I would like to have the {}.", "Let me get the {}."],
    change=["Actually, make it the {}.", "Wait, I would rather have the {}.", "Sorry, I'd prefer to get the {}."],
    draw=of(lambda drawn: drawn.tables.restaurants[drawn.order.restaurant_id].dishes, "name"),
    cue="(?:for|to|with|into|instead of it|want|take|have|get|rather|about|be|make (?:it|that))(?: the| some| a| an)?",
    noun="instead",
)
REASON = Slot(
    "reason", CANCEL_REASONS,
    ask=["May I ask for the reason: changed plans, ordered by mistake, or takes too long?",
         "What is the reason: changed plans, a mistake, or does it take too long?"],
    say=["Well, {}.", "{}.", "Because {}."],
    change=["Sorry, to be exact: {}.", "No wait, put it down as: {}."],
)
LABEL = Slot(
    "label", LABELS,
    ask=["Which of your saved addresses should it go to?", "To which saved address should it go?",
         "Which address would you like?"],
    say=["To {}, please.", "Bring it to {}.", "{}."],
    change=["Actually, send it to {}.", "Hmm, no, better to {}."],
    draw=of(lambda drawn: drawn.user.addresses, "label"), noun="address",
)
INSTRUCTION = Slot(
    "instruction", INSTRUCTIONS,
    ask=["What should the courier do?", "Which instruction should I set for the courier?",
         "What shall I tell the courier?"],
    phrase="'{}'",
    say=["They should {}.", "Tell them: {}.", "{}, please."],
    change=["Actually, tell them: {}.", "On second thought, {}."],
    noun=["courier", "instruction"],
)
AMOUNT = Slot(
    "amount", "money",
    ask=["How much would you like to tip?", "What amount should the tip be?"],
    say=["{}.", "Make it {}.", "I was thinking of {}."],
    change=["Actually, make it {}.", "Let me say {} after all."],
    draw=one_of(2, 3, 4, 5, 6, 8, 10, 12, 15, 25, 30), noun=["amount", "tip"],
)
FAULT = Slot(
    "fault", FAULTS,
    ask=["What was wrong with it?", "What was the matter: missing, wrong dish, or damaged?"],
    say=["Well, {}.", "{}.", "You see, {}."],
    change=["Let me correct that: {}.", "Well, actually {}."],
    draw=one_of("missing", "wrong dish", "damaged", "missing", "wrong dish", "damaged", "taste"),
    noun=["wrong", "matter", "problem", "happened", "reason"],
)
RESTAURANT = Slot(
    "restaurant", RESTAURANTS,
    ask=["Which restaurant would you like to order from?", "From which restaurant?"],
    say=["From {}.", "{}, please."],
    draw=rows("restaurants", "name"),
)
MEAL = Slot(
    "meal", DISHES,
    ask=["Which dish would you like?", "What would you like to eat?", "Which dish may I put down?"],
    say=["The {}.", "I'd like the {}.", "{}, please."],
    change=["Actually, make it the {}.", "Wait, I'd rather have the {}."],
    draw=of(lambda drawn: drawn.restaurant.dishes, "name"), noun=["dish", "item", "eat"],
)
QUANTITY = Slot(
    "quantity", "number",
    ask=["How many of it would you like?", "How many portions?"],
    say=["{}.", "{} of it.", "Make that {}."],
    change=["Actually, make it {}.", "Let's say {} of it instead."],
    draw=one_of(1, 2, 2, 3, 4),
    noun=["portion", "quantity", "serving"],
)
PAYMENT = Slot(
    "payment", PAYMENTS,
    ask=["Which payment method should I use?", "How would you like to pay?"],
    say=["Use {}.", "With {}.", "{}, please."],
    change=["Actually, charge {}.", "Better take {}."],
    draw=of(lambda drawn: drawn.user.payments, "kind"), noun=["pay", "payment"],
)
