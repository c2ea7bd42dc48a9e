"""What users of the food delivery service want, how they say it, and how each request is served by the policy."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.kit.declaration import intent
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.service import Service
from muarl_worlds.services.food_delivery.slots import (
    AMOUNT,
    DISH,
    FAULT,
    IDENTITY,
    INSTRUCTION,
    LABEL,
    MEAL,
    NEW_DISH,
    ORDER,
    PAYMENT,
    QUANTITY,
    REASON,
    RESTAURANT,
)
from muarl_worlds.services.food_delivery.tools import TODAY, FoodDelivery
from muarl_worlds.services.food_delivery.world import make_tables

# fmt: off
# Wordings stand side by side, and rules below each other.

def own_order(it: Plan) -> None:
    """The customer's order."""
    it.o = it.look("get_order", order_id=it.order)
    it.refuse_unless(it.o.customer_id == it.user.customer_id, "order {order} is not on your account")


@intent(
    says=["cancel {order}, {reason}", "cancel {order}", "call off {order}", "cancel {order} because {reason}",
          "stop {order} before it goes out", "cancel one of my orders", "cancel an order, {reason}"],
    slots=[ORDER, REASON], share=1.4,
    because=["I know it is short notice.", "Dinner turned out differently today.",
             "I hope it is not too late for that."],
)
def cancel_order(it: Plan) -> None:
    own_order(it)
    it.refuse_unless(
        it.o.status == "placed",
        "order {order} is already {o.status}, and only orders that the restaurant has not begun can be cancelled",
    )
    it.write(
        "cancel_order", order_id=it.order, reason=it.reason,
        propose=["cancel order {order} from {o.restaurant} ({reason}) and refund {o.total|money}",
                 "cancel {order}, your order from {o.restaurant}, reason: {reason}; you get {o.total|money} back"],
        done=["Order {order} is cancelled and {o.total|money} will be refunded.",
              "I have cancelled order {order}; the refund is {o.total|money}."],
    )


@intent(
    says=["swap {dish} for {new_dish} in {order}", "replace {dish} with {new_dish} in {order}",
          "swap a dish in {order}", "replace {dish} in {order}", "swap {dish} in {order} for something else",
          "swap {dish} for {new_dish}", "exchange a dish"],
    slots=[ORDER, DISH, NEW_DISH], share=1.4,
    because=["My daughter does not eat that.", "I only noticed it after I had pressed the button.",
             "We had that yesterday already."],
)
def replace_item(it: Plan) -> None:
    own_order(it)
    it.refuse_unless(
        it.o.status == "placed",
        "order {order} is already {o.status}, so that its dishes can no longer be changed",
    )
    it.item = it.pick(it.o.items, name=it.dish) or it.unavailable(DISH, [r.name for r in it.o.items])
    it.menu = it.look("get_menu", restaurant_id=it.o.restaurant_id)
    it.new = it.pick(it.menu.dishes, name=it.new_dish, available=True) or it.unavailable(
        NEW_DISH, [r.name for r in it.menu.dishes if r.available and r.name != it.dish]
    )
    it.write(
        "replace_item", order_id=it.order, dish_id=it.item.dish_id, new_dish_id=it.new.dish_id,
        propose=["replace the {dish} in order {order} with the {new_dish} at {new.price|money}",
                 "replace {dish} ({item.price|money}) by {new_dish} ({new.price|money}) in order {order}"],
        done=["Done: order {order} now has the {new_dish}.",
              "The {dish} has been replaced; order {order} comes with the {new_dish}."],
    )


@intent(
    says=["have {order} delivered to {label}", "change the address of {order} to {label}",
          "send {order} to {label} instead", "change the delivery address of {order}",
          "have {order} delivered somewhere else", "change the delivery address of an order"],
    slots=[ORDER, LABEL], share=1.3,
    because=["I am not where I thought I would be tonight.", "I picked the wrong one in the app."],
    heard=(r"\baddress of\b|\bdelivery address\b|\b(?:send|bring|deliver|redirect) (?:order|my order|it"
           r"|an order)[^.]* to\b|\border\b[^.,]* delivered (?:to|somewhere)"),
)
def change_address(it: Plan) -> None:
    own_order(it)
    it.refuse_unless(
        it.o.status in ("placed", "preparing"),
        "order {order} is already {o.status}, so that its address can no longer be changed",
    )
    it.found = it.look("find_restaurants", name=it.o.restaurant)
    it.place = it.pick(it.found.restaurants, restaurant_id=it.o.restaurant_id) or it.refuse(
        "the restaurant does not deliver any more"
    )
    it.address = it.pick(it.user.addresses, lambda r: r.zone in it.place.zones, label=it.label) or it.unavailable(
        LABEL, [r.label for r in it.user.addresses if r.zone in it.place.zones and r.address_id != it.o.address_id]
    )
    it.write(
        "change_delivery_address", order_id=it.order, address_id=it.address.address_id,
        propose=["change the delivery address of order {order} to {label} ({address.street})",
                 "change where order {order} goes: it will be delivered to {label}, {address.street}"],
        done=["Order {order} will now go to {label}.", "Done, the courier brings order {order} to {address.street}."],
    )


@intent(
    says=["set the instruction {instruction} for {order}", "leave a note for the courier on {order}: {instruction}",
          "tell the courier of {order} something", "add a delivery instruction to {order}",
          "tell the courier of {order}: {instruction}", "add a delivery instruction"],
    slots=[ORDER, INSTRUCTION],
    because=["The baby is asleep.", "The bell does not work too well.", "I am in meetings all afternoon."],
)
def set_instruction(it: Plan) -> None:
    own_order(it)
    it.refuse_if(it.o.status in ("delivered", "cancelled"), "order {order} is already {o.status}")
    it.write(
        "set_delivery_instruction", order_id=it.order, instruction=it.instruction,
        propose=["set the instruction '{instruction}' for the courier of order {order}",
                 "set '{instruction}' as the delivery instruction of order {order}"],
        done=["The courier of order {order} will see the instruction '{instruction}'.",
              "The instruction is set for order {order}."],
    )


@intent(
    says=["add a tip of {amount} to {order}", "tip the courier of {order} {amount}", "add a tip to {order}",
          "tip the courier of one of my orders", "tip the courier {amount}"],
    slots=[ORDER, AMOUNT],
    because=["They were so friendly.", "It was pouring outside and they still came on time.",
             "I forgot to do it in the app."],
)
def add_tip(it: Plan) -> None:
    own_order(it)
    it.refuse_if(it.o.status == "cancelled", "order {order} was cancelled, so that nobody can be tipped for it")
    it.refuse_if(it.amount > 20, "a tip of {amount} is above the limit of $20")
    it.write(
        "add_tip", order_id=it.order, amount=it.amount,
        propose=["add a tip of {amount|money} to order {order}",
                 "add {amount|money} for the courier to order {order} from {o.restaurant}"],
        done=["The courier of order {order} gets {amount|money}.",
              "Done, {amount|money} is added as a tip; the new total is {result.total|money}."],
    )


@intent(
    says=["get a refund for {dish} in {order}, {fault}", "get my money back for {dish} of {order}",
          "ask for a refund of {dish} in {order}", "get a refund for a dish in {order}",
          "get a refund for something in {order}, {fault}", "get a refund for a dish"],
    slots=[ORDER, DISH, FAULT], share=1.5,
    because=["I was really looking forward to it.", "This is the second time in a month.",
             "I have already thrown it away."],
    heard=r"\brefund|\bmoney back\b|\breimburse",
)
def refund_item(it: Plan) -> None:
    own_order(it)
    it.refuse_unless(
        it.o.status == "delivered",
        "order {order} is {o.status}, and only delivered dishes can be refunded",
    )
    it.refuse_if(
        it.o.delivered_on < "2026-03-13",
        "order {order} was delivered on {o.delivered_on|date}, which is more than one day ago",
    )
    it.refuse_if(
        it.fault == "taste",
        "a dish can be refunded if it was missing, wrong or damaged, but not for its taste",
    )
    it.item = it.pick(it.o.items, name=it.dish) or it.unavailable(DISH, [r.name for r in it.o.items])
    it.refuse_if(it.item.refunded, "the {dish} of order {order} has been refunded already")
    it.transfer_if(it.item.price > 20, "The customer wants a refund of more than $20 for one dish ({dish} in {order}).")
    it.write(
        "refund_item", order_id=it.order, dish_id=it.item.dish_id, reason=it.fault,
        propose=["refund the {dish} of order {order} ({fault}) at {item.price|money} each",
                 "refund {dish} in order {order}, reason: {fault}"],
        done=["The {dish} of order {order} is refunded; {result.refunded|money} goes back in all.",
              "I have refunded the {dish}; you will see {result.refunded|money} for order {order}."],
    )


@intent(
    says=["order {quantity} {meal} from {restaurant} to {label}, paid with {payment}",
          "order {quantity} {meal} from {restaurant}, delivered to {label}",
          "order {quantity} {meal} from {restaurant}",
          "order some {meal} from {restaurant}",
          "order dinner from {restaurant}",
          "place a new order"],
    slots=[RESTAURANT, MEAL, QUANTITY, LABEL, PAYMENT],
    share=1.6,
    because=["The app keeps crashing on me.", "We are starving.", "Friends are coming over in a while."],
    heard=(r"\b(?:place|make) (?:a|an|a new|another) order\b|(?<!my )(?<!the )\border (?:\d|two|three|four|some"
           r"|a portion|dinner|lunch|from)|\bget dinner from\b"),
)
def place_order(it: Plan) -> None:
    it.found = it.look("find_restaurants", name=it.restaurant)
    it.place = it.pick(it.found.restaurants, name=it.restaurant) or it.unavailable(
        RESTAURANT, [r.name for r in it.found.restaurants]
    )
    it.refuse_if(not it.place.open, "{restaurant} is closed at the moment")
    it.menu = it.look("get_menu", restaurant_id=it.place.restaurant_id)
    it.dish = it.pick(it.menu.dishes, name=it.meal, available=True) or it.unavailable(
        MEAL, [r.name for r in it.menu.dishes if r.available]
    )
    it.address = it.pick(it.user.addresses, lambda r: r.zone in it.place.zones, label=it.label) or it.unavailable(
        LABEL, [r.label for r in it.user.addresses if r.zone in it.place.zones]
    )
    it.method = it.pick(it.user.payments, kind=it.payment) or it.unavailable(
        PAYMENT, [r.kind for r in it.user.payments]
    )
    it.refuse_if(
        it.dish.price * it.quantity < it.place.minimum,
        "the order would be below the minimum of {place.minimum|money} of {restaurant}",
    )
    it.write(
        "place_order", customer_id=it.user.customer_id, restaurant_id=it.place.restaurant_id, dish_id=it.dish.dish_id,
        quantity=it.quantity, address_id=it.address.address_id, payment_id=it.method.payment_id,
        propose=[("place an order for {quantity} x {meal} at {dish.price|money} from {restaurant}, delivered to "
                  "{label}, paid with {payment}"),
                 ("place this order at {restaurant}: {quantity} x {meal} ({dish.price|money} each) to {label}, "
                  "charged to {payment}")],
        done=["Your order {result.order_id} is placed; the total is {result.total|money}.",
              "Order {result.order_id} is on its way to the kitchen, {result.total|money} in all."],
    )


@intent(
    says=["know how much {order} was in total", "find out the total of {order}", "check how much I paid for {order}",
          "know how much one of my orders was"],
    slots=[ORDER], share=0.8,
    because=["I am going through my expenses.", "My flatmate owes me half of it."],
)
def ask_total(it: Plan) -> None:
    own_order(it)
    it.answer(
        ["The total of order {order} from {o.restaurant} is {o.total|money}.",
         "Order {order} came to {o.total|money} in all."],
        tell="{o.total|plain}",
    )


SERVICE = Service(
    domain=FoodDelivery, about="a food delivery service", today=TODAY, identity=IDENTITY,
    intents=(cancel_order, replace_item, change_address, set_instruction, add_tip, refund_item, place_order, ask_total),
    tables=make_tables,
    outside=("a courier who was rude", "an allergic reaction to a dish", "becoming a courier",
             "a charge that I do not recognise", "a job in a restaurant", "food that made me ill"),
    open_tools=("find_restaurants", "get_menu"),
    tiny_tools=("identify_customer", "list_orders", "get_order", "get_menu", "cancel_order", "replace_item", "add_tip",
                "refund_item", "transfer_to_human_agents"),
    policy_compact=Path("policy_compact.md"),
    texts=("instruction",),
)
