"""What the owner of a phone wants of its food platform, and how each request is served by the policy."""

from __future__ import annotations

import re

from muarl.domains.kit.declaration import DrawContext, Slot, intent, names, of, one_of, pattern, rows
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl.domains.kit.records import rows as records_of
from muarl_worlds.acebench import catalogue as cat
from muarl_worlds.acebench.phone_intents import (
    ASKING,
    REMINDER,
    ROOM,
    TO,
    find_reminder,
    message_from,
    send,
    written,
)  # fmt: skip

TASKS = re.compile(re.escape(cat.TASKS).replace(re.escape("{}"), "(.+?)"))


def _dishes(drawn: DrawContext) -> list[Record]:
    """The merchant's dishes, and one of another merchant's."""
    mine: list[Record] = []
    others: list[Record] = []
    for merchant in records_of(drawn.tables.merchants):
        (mine if merchant.name == drawn.merchant.name else others).extend(merchant.menu)
    return [*mine, *others[:1]]


PASSWORD = Slot(
    "password",
    pattern(r"[a-z]{5,8}[0-9]{3,4}"),
    ask=["May I have your password?", "What is your password for the food platform?"],
    say=["My password is {}.", "It is password {}.", "The password is {}."],
    draw=of(lambda drawn: [drawn.user], "password"),
    wrong=True,
    asked=r"\bpassword\b",
)
MERCHANT = Slot(
    "merchant",
    names(cat.MENUS),
    ask=["Which merchant is it?", "From which merchant?"],
    say=["From {}, please.", "I want it from {}."],
    draw=rows("merchants", "name"),
    asked=r"(?:which|what)[^?]{0,12} (?:merchant|restaurant|store|shop|place|vendor)"
    r"|(?:order(?:ed)?|food)[^?]{0,20} from[^?]{0,10}\?|(?:name of|provide)[^?.]{0,30}(?:merchant|restaurant)",
)
PRODUCT = Slot(
    "product",
    names([dish for menu in cat.MENUS.values() for dish in menu]),
    ask=["Which dish would you like?", "What would you like from the menu?"],
    say=["{}, please.", "I want {}.", "Make it {}."],
    change=["Actually, make it {}.", "Wait, I want {} instead."],
    draw=of(_dishes, "product"),
    asked=r"(?:which|what)(?: other)? (?:dish|product|item|food|meal)|what would you like|(?:something|anything) else"
    r"[^?]{0,20}(?:instead|order)|another (?:dish|product|item)|change the order|modify (?:the|your) order",
)
QUANTITY = Slot(
    "quantity",
    "number",
    ask=["How many would you like?", "How many of it?"],
    say=["{} of it, please.", "{}."],
    change=["Actually, I want {} of it.", "Wait, make that {}."],
    draw=one_of(1, 2, 2, 3, 3, 4),
    asked="how (?:many|much of)|quantit",
)
ASKER = Slot(
    "asker",
    "person",
    ask="Whose message is it in?",
    say=["In the one from {}.", "{} asked me."],
    draw=of(lambda drawn: written(drawn, to_me=True, asking=True), "sender"),
    asked="whose message|who asked",
)
TOTAL_TEXT = Slot(
    "total_text",
    "quoted",
    ask="What should the message say?",
    say="It should say {}.",
    draw=one_of(*cat.TOTALS),
    asked="what should the message",
)
ACCOUNT = Slot(
    "account",
    "person",
    ask="Whose account is it?",
    say="That of {}.",
    draw=rows("people", "name"),
    cue="account of",
    asked="whose account",
)


def log_in(it: Plan) -> None:
    """Log in to the food platform, unless that has been done."""
    it.open = it.peek("view_logged_in_users")
    if it.open is None or it.user.name not in it.open.logged_in_users:
        entered = it.do("login_food_platform", username=it.user.name, password=it.password, fails="incorrect password")
        if "ncorrect" in entered:
            it.missing(PASSWORD, "The password is not right.")


def order(it: Plan, merchant: str, product: str, quantity: int, *, also: str = "", fixed: bool = False) -> None:
    """Order a dish. ``also``: what is proposed with it. ``fixed``: the user would have no other dish."""
    it.place, it.count = merchant, quantity
    it.menu = it.look("get_products", merchant_name=merchant)
    it.dish = it.pick(it.menu, product=product)
    if it.dish is None:
        it.refuse("{place} does not have it") if fixed else it.unavailable(PRODUCT, [d.product for d in it.menu])
    placed = it.write(
        "add_food_delivery_order",
        username=it.user.name,
        merchant_name=merchant,
        items=[{"product": it.dish.product, "quantity": quantity}],
        propose=f"order {{count}} x {{dish.product}} at {{dish.price}} yuan each from {{place}}{also}",
        done="{count} x {dish.product} from {place} is ordered.",
        fails="insufficient balance",
    )
    if "nsufficient" in placed:
        it.refuse("the balance is insufficient") if fixed else it.unavailable(PRODUCT)


@intent(
    says=["order {quantity} x {product} from {merchant} on the account of {account}"],
    slots=[MERCHANT, PRODUCT, QUANTITY, ACCOUNT, PASSWORD],
    share=0.6,
    heard=r"\border\b.*\bon the account of\b",
)
def order_on_account(it: Plan) -> None:
    it.refuse_unless(it.account == it.user.name, "I use no accounts of other people")
    log_in(it)
    order(it, it.merchant, it.product, it.quantity)


@intent(
    says=[
        "order {quantity} x {product} from {merchant} and then send {to} the message {total_text} with the total in "
        "the brackets"
    ],
    slots=[MERCHANT, PRODUCT, QUANTITY, TO, TOTAL_TEXT, PASSWORD, ROOM],
    share=0.9,
    heard=r"^(?!.*\bas your reminder\b).*\border\b.*\bsend\b",
)
def order_and_tell(it: Plan) -> None:
    log_in(it)
    order(it, it.merchant, it.product, it.quantity, also=" and then send {to} the message {total_text} with the total")
    it.total = float(it.dish.price * it.quantity)
    send(it, it.to, it.total_text.replace("()", str(it.total)), done="It is ordered, and the message to {to} is sent.")


@intent(
    says=["get the tasks in my reminder {reminder} done", "have the tasks in my reminder {reminder} done"],
    slots=[REMINDER, PASSWORD, ROOM],
    share=0.8,
    heard=r"\btasks in (?:my|your) reminder\b|\bas your reminder\b",
)
def do_tasks(it: Plan) -> None:
    it.r = find_reminder(it)
    tasks = TASKS.fullmatch(it.r.description)
    if tasks is None:
        it.refuse("the reminder {reminder} has no tasks")
    it.receiver, it.words = tasks[4], tasks[5]
    log_in(it)
    also = ' and then send {receiver} the message "{words}" with the total, as your reminder {reminder} says'
    order(it, tasks[3], tasks[2], int(tasks[1]), also=also, fixed=True)
    it.total = float(it.dish.price * it.count)
    send(it, it.receiver, it.words.replace("()", str(it.total)), done="All tasks are done: {place}, {receiver}.")


@intent(
    says=["order {quantity} of the cheapest dish from {merchant}", "order the cheapest dish from {merchant}"],
    slots=[MERCHANT, QUANTITY, PASSWORD],
    share=0.6,
    heard=r"\border\b.*\bcheapest\b",
)
def order_cheapest(it: Plan) -> None:
    log_in(it)
    it.menu = it.look("get_products", merchant_name=it.merchant)
    cheapest = min(it.menu, key=lambda dish: dish.price)
    order(it, it.merchant, cheapest.product, it.quantity, also=", the cheapest dish", fixed=True)


@intent(
    says=["order the food that {asker} asked me for in a message", "order what {asker} asked me for in a message"],
    slots=[ASKER, PASSWORD],
    share=0.8,
    heard=r"\border\b.*\basked(?: me for)?\b",
)
def order_asked_for(it: Plan) -> None:
    it.m = message_from(it, it.asker)
    asked = ASKING.fullmatch(it.m.message)
    if asked is None:
        it.refuse("the message from {asker} asks for no food")
    log_in(it)
    order(it, asked[3], asked[2], int(asked[1]), also=", as {asker} asked", fixed=True)


@intent(
    says=[
        "order {quantity} x {product} from {merchant}",
        "order some {product} from {merchant}",
        "order food from {merchant}",
        "order food",
    ],
    slots=[MERCHANT, PRODUCT, QUANTITY, PASSWORD],
    share=2.4,
    because=["We are hungry.", "The fridge is empty."],
    heard=r"\border\b",
)
def order_food(it: Plan) -> None:
    log_in(it)
    order(it, it.merchant, it.product, it.quantity)


@intent(
    says=["know the balance of my food account", "check how much money my food account has"],
    slots=[PASSWORD],
    share=0.8,
    heard=r"\bfood account\b",
)
def ask_balance(it: Plan) -> None:
    log_in(it)
    it.amount = f"{it.look('check_balance', user_name=it.user.name):g}"
    it.answer(["Your balance is {amount} yuan.", "There are {amount} yuan on your account."], tell="{amount}")


INTENTS = (
    order_on_account, order_and_tell, do_tasks, order_cheapest, order_asked_for, order_food, ask_balance,
)  # fmt: skip
