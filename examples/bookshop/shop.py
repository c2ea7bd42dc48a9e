"""A bookshop to train in: who calls, what they want, and how the policy serves each wish. The rest follows from it."""

from pathlib import Path

from desk import FORMATS, IN_STOCK, TITLES, Bookshop, make_tables

from muarl.kit import (
    Fact,
    Identity,
    Plan,
    RecordDescription,
    Service,
    Slot,
    environment,
    intent,
    names,
    own,
    pattern,
    rows,
    words,
)

CUSTOMER = Identity(
    tool="find_customer",
    table="customers",
    key="customer_id",
    facts=(
        Fact("name", "person", tells="My name is {name}."),
        Fact(
            "email", pattern(r"[a-z.]+@[a-z]+\.com"), tells="My e-mail address is {email}.", asked="e-?mail", wrong=True
        ),
    ),
    ask="May I have your name and e-mail address?",
    retry="I could not find you by this name and e-mail address. Could you check them, please?",
    say=("I'm {name}, {email}.", "My name is {name}, and my e-mail address is {email}.", "{name}, {email}."),
)
ORDER = Slot(
    "order",
    pattern(r"B-\d{4,5}"),
    ask="Which order is it?",
    phrase="order {}",
    say=("It's order {}.", "Order {}.", "The number is {}."),
    draw=own("orders", "order_id", mark="title"),
    described=RecordDescription(  # how customers speak of it who have no number at hand
        kind=names(TITLES),
        match="title",
        id="order_id",
        look="list_orders",
        records="orders",
        given={"customer_id": "customer_id"},
        phrase="my order of {}",
        say=("I don't have the number. It's my order of {}.", "The order of {}."),
        cue="order of",
    ),
)
ADDRESS = Slot(
    "address",
    "address",
    ask="To which address?",
    say=("To {}.", "{}, please."),
    change=("Actually, send it to {}.", "Wait, {} would be better."),
    draw=rows("customers", "address"),
)
REASON = Slot(
    "reason",
    words({"damaged": "damaged", "lost": "lost"}),
    ask="Was it damaged or lost?",
    say=("It was {}.", "{}."),
)
TITLE = Slot(
    "title",
    names(TITLES),
    ask="Which book would you like?",
    say=("{}.", "{}, please."),
    change=("Actually, I'd rather have {}.", "Wait, make it {}."),
    draw=rows("books", "title"),
)
FORM = Slot(
    "form",
    words({form: f"the {form}" for form in FORMATS}),
    ask="In which format would you like it?",
    say=("{}, please.", "I'd like {}."),
    change=("Actually, I'll take {}.", "Hmm, {} would be better."),
)


def look_up(it: Plan, status: str) -> None:
    """The order that a request is about."""
    it.o = it.look("get_order", order_id=it.order)
    it.refuse_unless(it.o.customer_id == it.user.customer_id, "order {order} is not yours")
    it.refuse_unless(it.o.status == status, "order {order} is {o.status}")


@intent(says=("cancel {order}", "call off {order}", "cancel an order"), slots=[ORDER], heard="cancel|call off")
def cancel_order(it: Plan) -> None:
    look_up(it, "open")
    propose, done = "cancel order {order} of {o.title}", "Order {order} is cancelled."
    it.write("cancel_order", order_id=it.order, propose=propose, done=done)


@intent(says=("send {order} to {address}", "send {order} elsewhere", "send an order elsewhere"), slots=[ORDER, ADDRESS])
def change_address(it: Plan) -> None:
    look_up(it, "open")
    propose, done = "send order {order} to {address}", "Order {order} will be sent to {address}."
    it.write("change_address", order_id=it.order, address=it.address, propose=propose, done=done)


@intent(says=("get a refund for {order}, which was {reason}", "get a refund"), slots=[ORDER, REASON], heard="refund")
def refund_order(it: Plan) -> None:
    look_up(it, "shipped")
    it.transfer_if(it.o.price > 50, "The customer wants a refund of more than $50 for order {order}.")
    propose, done = "refund {o.price|money} for order {order}, which was {reason}", "{o.price|money} are paid back."
    it.write("refund_order", order_id=it.order, reason=it.reason, propose=propose, done=done)


@intent(says=("buy {form} of {title}", "buy {title}", "buy a book"), slots=[TITLE, FORM])
def order_book(it: Plan) -> None:
    it.book = it.look("get_book", title=it.title)
    it.unavailable_if(it.book[it.form] != IN_STOCK, FORM, [form for form in FORMATS if it.book[form] == IN_STOCK])
    propose, done = "order {form} of {title} for {book.price|money}", "{title} is on its way to you."
    wanted = {"customer_id": it.user.customer_id, "title": it.title, "form": it.form}
    it.write("order_book", **wanted, propose=propose, done=done)


@intent(says=("know the number of the parcel with {order}", "know the number of a parcel"), slots=[ORDER])
def track_order(it: Plan) -> None:
    look_up(it, "shipped")
    it.answer("The parcel with order {order} is {o.parcel}.", tell="{o.parcel}")


SERVICE = Service(
    domain=Bookshop,
    about="An online bookshop: books are ordered, sent elsewhere, cancelled and refunded.",
    today="2026-03-14",
    identity=CUSTOMER,
    intents=(cancel_order, change_address, refund_order, order_book, track_order),
    tables=make_tables,
    outside=("a job in the shop", "a reading by an author", "a gift card that does not work"),
    open_tools=("get_book",),
    policy_compact=Path("policy_compact.md"),
)
BOOKSHOP = environment(SERVICE)
