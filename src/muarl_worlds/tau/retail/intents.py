"""What a shop's customers want, how they say it, and how each request is served by the policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from muarl.domains.kit.declaration import intent
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import plain
from muarl.domains.kit.service import Service, WorldSize
from muarl_worlds.tau.retail import catalogue as cat
from muarl_worlds.tau.retail.generated import SOLD_OUT, GeneratedRetail, view
from muarl_worlds.tau.retail.shop import SIZES, make_tables
from muarl_worlds.tau.retail.slots import ADDRESS, IDENTITY, ITEM, ITEMS, OPTION, ORDER, PAYMENT, REASON
from muarl_worlds.tau.retail.tiny_vocabulary import PIECES, TOPICS

# steps that requests share


def _mine(it: Plan) -> Any:
    """The order that a request is about, which must be the user's."""
    order = it.look("get_order_details", order_id=it.order_id)
    it.refuse_unless(order.user_id == it.user.user_id, "order {order_id} is not yours")
    return order


def _mine_and(it: Plan, status: str) -> Any:
    """The user's order, which must have this status."""
    order = _mine(it)
    it.status = order.status
    it.refuse_unless(order.status == status, "order {order_id} is {status}")
    return order


def _by_name(order: Any) -> dict[str, Any]:
    """The items of an order by their names, which stand first in them."""
    return {next(iter(line)): line for line in order.items}


def _meant(it: Plan, order: Any) -> Any:
    """The item of an order that is meant; it is asked for where there are several."""
    there = _by_name(order)
    it.name = next(iter(there)) if len(there) == 1 else it.item
    if it.name not in there:
        it.unavailable(ITEM, there)
    it.number = there[it.name][it.name]
    return there[it.name]


def _offers(product: Any, item: Any) -> dict[str, tuple[str, float]]:
    """What an item may be swapped for: by the one option that is another, the id and price of those on stock."""
    has, found = item.options.split(", "), {}
    for variant in product.variants:
        options = next(iter(variant))
        changed = [value for value in options.split(", ") if value not in has]
        if len(changed) == 1 and variant[options] != SOLD_OUT:
            found[changed[0]] = (str(variant[options]), variant.price)
    return found


def _payer(it: Plan, order: Any) -> Any:
    """Where the wanted payment method stands: in the order, or among all that the user has. Only there a gift card has
    a balance."""
    if it.payment in order and it.payment != "gift_card":
        return order
    return it.look("get_user_details", user_id=it.user.user_id)


def _method(it: Plan, payer: Any, cost: float) -> str:
    """The id of the payment method that the user wants; a gift card must have enough left."""
    there = [s for s in cat.SOURCES if s in payer and (s != "gift_card" or payer.balance >= cost)]
    if it.payment not in there:
        it.unavailable(PAYMENT, there)
    return str(payer[it.payment])


def _swap(it: Plan, order: Any, tool: str, propose: str) -> None:
    """Put another variant of the same product in an item's place. All else is known before the stock is looked up, and
    what is said then begins with the option: so a tiny model need only copy what stands behind it."""
    item, wanted = _meant(it, order), it.option
    payer = _payer(it, order)
    product = it.look("get_product_details", product_id=str(item.product_id))
    there = _offers(product, item)
    it.unavailable_if(wanted not in there, OPTION, there, f"{{option}} {SOLD_OUT}.")
    it.new, price = there.get(wanted, ("", 0.0))
    it.method = _method(it, payer, price - item.price)
    it.write(
        tool,
        order_id=it.order_id,
        item_ids=[str(it.number)],
        new_item_ids=[it.new],
        payment_method_id=it.method,
        propose=propose,
        done="Done.",
    )


# requests about an order


@intent(
    says=("cancel an order", "cancel {order_id}", "cancel {order_id}, {reason}"),
    slots=(ORDER, REASON),
    share=1.6,
    heard=r"\bcancel",
)
def cancel(it: Plan) -> None:
    _mine_and(it, "pending")
    it.write(
        "cancel_pending_order",
        order_id=it.order_id,
        reason=it.reason,
        propose="cancel order {order_id}, {reason}",
        done="Done.",
    )


@intent(
    says=("return an item", "return an item from {order_id}", "return {items} from {order_id}"),
    told="return {items} of {order_id}, with the refund to what it was paid with",
    slots=(ORDER, ITEMS),
    share=1.4,
    heard=r"\breturn",
    name="return",
)
def give_back(it: Plan) -> None:
    order = _mine_and(it, "delivered")
    there = _by_name(order)
    wanted = list(there) if len(there) == 1 else it.items
    if any(name not in there for name in wanted):
        it.unavailable(ITEMS, [[name] for name in there])
    numbers = [there[name][name] for name in wanted]
    it.all = " and ".join(f"{name} {number}" for name, number in zip(wanted, numbers, strict=True))
    it.source = next(source for source in cat.SOURCES if source in order)
    it.paid, it.method = it.source.replace("_", " "), order[it.source]
    it.write(
        "return_delivered_order_items",
        order_id=it.order_id,
        item_ids=[str(number) for number in numbers],
        payment_method_id=it.method,
        propose="return from order {order_id}: {all} refund to {paid} {method}",
        done="Done.",
    )


@intent(
    says=(
        "exchange an item",
        "exchange an item from {order_id}",
        "exchange {item} from {order_id}",
        "exchange {item} from {order_id} for {option}",
        "exchange {item} from {order_id} for {option}, pay with {payment}",
    ),
    told="exchange {item} of {order_id} for {option}, paying any difference with your {payment}",
    slots=(ORDER, ITEM, OPTION, PAYMENT),
    share=1.7,
    heard=r"\bexchang|\breplac(?:e|ing|ement)\b|\bswap",
)
def exchange(it: Plan) -> None:
    _swap(
        it,
        _mine_and(it, "delivered"),
        "exchange_delivered_order_items",
        "{option} {new}: exchange {name} {number} of order {order_id}, pay with {payment} {method}. Shall I go ahead?",
    )


@intent(
    says=(
        "change the payment of an order",
        "change the payment of {order_id}",
        "pay {order_id} with {payment} instead",
    ),
    slots=(ORDER, PAYMENT),
    heard=r"\bpay (?:for )?(?:(?:the|an|my|your) )?(?:order\b|#W)|\b(?:change|modify|update|switch)\b[^.]*\bpayment",
)
def modify_payment(it: Plan) -> None:
    order = _mine_and(it, "pending")
    it.refuse_if(it.payment in order, "it is paid with {payment} already")
    it.method = _method(it, _payer(it, order), sum(line.price for line in order.items))
    it.write(
        "modify_pending_order_payment",
        order_id=it.order_id,
        payment_method_id=it.method,
        propose="change the payment of order {order_id} to {payment} {method}",
        done="Done.",
    )


@intent(
    says=(
        "send an order to a new address",
        "send {order_id} to a new address",
        "send {order_id} to a new address, to {address}",
    ),
    slots=(ORDER, ADDRESS),
    share=0.8,
    heard=r"^(?!.*\b(?:default|profile)\b).*(?:\baddress\b|\bsend\b|\bship\b|\bdeliver to\b)",
)
def modify_address(it: Plan) -> None:
    _mine_and(it, "pending")
    it.write(
        "modify_pending_order_address",
        order_id=it.order_id,
        **plain(it.address),
        propose="send order {order_id} to {address}",
        done="Done.",
    )


@intent(
    says=(
        "change an item",
        "change an item in {order_id}",
        "change {item} in {order_id}",
        "change {item} in {order_id} to {option}",
        "change {item} in {order_id} to {option}, pay with {payment}",
    ),
    told="change {item} of {order_id} to {option}, paying any difference with your {payment}",
    slots=(ORDER, ITEM, OPTION, PAYMENT),
    share=1.5,
    heard=(
        r"\b(?:change|modify|swap|replace)\b(?!(?: (?:the|my|your))?(?: \w+)? (?:payment|address))"
        r"(?!.*\bdefault address\b)"
    ),
)
def modify_items(it: Plan) -> None:
    _swap(
        it,
        _mine_and(it, "pending"),
        "modify_pending_order_items",
        "{option} {new}: change {name} {number} of order {order_id}, pay with {payment} {method}. Shall I go ahead?",
    )


@intent(
    says=(
        "get the price of an item",
        "get the price of an item in {order_id}",
        "get the price of {item} in {order_id}",
    ),
    slots=(ORDER, ITEM),
    share=0.8,
    heard=r"\bprices?\b(?! match)|\bcosts?\b|\bhow much\b",
)
def question(it: Plan) -> None:
    it.line = _meant(it, _mine(it))
    it.price = it.line.price
    it.answer("That is {name} {number}; price {price|plain}.", tell="{price|plain}")


# other requests


@intent(
    says=("get the status of {order_id}", "get the status of an order"),
    slots=(ORDER,),
    share=0.3,
    heard=r"\bstatus\b|\bwhere is\b",
)
def status(it: Plan) -> None:
    it.now = _mine(it).status
    it.answer("Order {order_id} is {now}.", tell="{now}")


@intent(
    says=("change my default address", "change my default address to {address}"),
    slots=(ADDRESS,),
    share=0.5,
    heard=r"\b(?:default|profile)\b.*\baddress\b|\baddress\b.*\b(?:default|profile)\b",
)
def default_address(it: Plan) -> None:
    it.write(
        "modify_user_address",
        user_id=it.user.user_id,
        **plain(it.address),
        propose="change your default address to {address}",
        done="Done.",
    )


TINY = (cancel, give_back, exchange, modify_payment, modify_address, modify_items, question)
SERVICE = Service(
    domain=GeneratedRetail,
    about="retail",
    today="2024-05-15",
    identity=IDENTITY,
    intents=(*TINY, status, default_address),
    tables=make_tables,
    outside=TOPICS,
    open_tools=("get_item_details", "get_product_details", "list_all_product_types"),
    policy_compact=Path("policy_compact.md"),
    tiny_tools=(
        "cancel_pending_order", "exchange_delivered_order_items", "find_user_id_by_name_zip", "get_order_details",
        "get_product_details", "get_user_details", "modify_pending_order_address", "modify_pending_order_items",
        "modify_pending_order_payment", "return_delivered_order_items", "transfer_to_human_agents",
    ),
    tiny_intents=tuple(one.name for one in TINY),
    sizes=tuple(WorldSize(s.name, s.users, s.tasks_per_shop, tiny=s.pooled) for s in SIZES.values()),
    view=view,
    heard_in_proposals=True,
    more_requests=(0.25,),
    variants={"done": 0.77, "unavailable": 0.1, "refuse": 0.08, "outside": 0.04, "impostor": 0.01},
    vocabulary=PIECES,
)  # fmt: skip
