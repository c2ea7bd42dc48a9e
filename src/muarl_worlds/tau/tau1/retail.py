# ruff: noqa: A002, E501 (the interface's own names and lines)
"""TAU1 retail's 16 tools, over plain records.

The descriptions are the tools' interface, word for word as TAU1 gives it to models (sierra-research/tau-bench, MIT
licence, Copyright Sierra): they are part of what the benchmark measures. What the tools do is written anew; the order
of checks and of changes is TAU1's, since a call that fails half way leaves its first half in "official" semantics.
"""

from __future__ import annotations

from typing import Any

from muarl.domains.tooling import tool
from muarl_worlds.tau.retail.task_rules import RETAIL_TASKS
from muarl_worlds.tau.tau1.world import Record, Schema, Tau1Domain, calculate, interface, text

ORDER_ID = text("The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.")
USER_ID = text("The user id, such as 'sara_doe_496'.")
ADDRESS = {
    "address1": text("The first line of the address, such as '123 Main St'."),
    "address2": text("The second line of the address, such as 'Apt 1' or ''."),
    "city": text("The city, such as 'San Francisco'."),
    "state": text("The state, such as 'CA'."),
    "country": text("The country, such as 'USA'."),
    "zip": text("The zip code, such as '12345'."),
}
METHOD = text(
    "The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'. These can be looked up from the user or order details."
)


def items(description: str) -> Schema:
    """A list of item ids."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _payment(kind: str, amount: Any, method_id: str) -> Record:
    return {"transaction_type": kind, "amount": amount, "payment_method_id": method_id}


def _add(method: Record, amount: Any) -> None:
    """Change a gift card's balance, rounded to cents."""
    method["balance"] += amount
    method["balance"] = round(method["balance"], 2)


def _first_too_few(wanted: Any, order: Record) -> list[Any]:
    """The first of the wanted item ids that the order holds less often than asked for, as a list of one, or []."""
    held = [item["item_id"] for item in order["items"]]
    return next(([i] for i in wanted if wanted.count(i) > held.count(i)), [])


class Tau1Retail(Tau1Domain):
    """TAU1's shop. Its options are those of ``Tau1Domain``."""

    name = "retail"
    tables = ("orders", "products", "users")
    task_rules = RETAIL_TASKS

    def _methods(self, order: Record, *, change: bool = False) -> Record:
        """The payment methods of the order's user."""
        found: Record = self._record("users", order["user_id"], "user not found", change=change)["payment_methods"]
        return found

    def _variant(self, product_id: str, item_id: Any) -> Record:
        found: Record = self._record("products", product_id, "product not found")["variants"][item_id]
        return found

    def _cost(self, order: Record, item_ids: Any, new_item_ids: Any) -> Any:
        """What a swap of items costs: integer 0 if none are swapped. ValueError if a new item is not to be had."""
        cost: Any = 0
        for item_id, new_id in zip(item_ids, new_item_ids, strict=False):
            item = [i for i in order["items"] if i["item_id"] == item_id][0]  # noqa: RUF015 (its error is shown)
            offered = self._record("products", item["product_id"], "product not found")["variants"]
            if not (new_id in offered and offered[new_id]["available"]):
                raise ValueError(f"new item {new_id} not found or available")
            cost += offered[new_id]["price"] - item["price"]
        return cost

    @tool(kind="generic")
    @interface(
        "Calculate the result of a mathematical expression.",
        expression=text(
            "The mathematical expression to calculate, such as '2 + 2'. The expression can contain numbers, operators (+, -, *, /), parentheses, and spaces."
        ),
    )
    def calculate(self, expression: Any) -> str:
        return calculate(expression)

    @tool(writes=True)
    @interface(
        "Cancel a pending order. If the order is already processed or delivered, it cannot be cancelled. The agent needs to explain the cancellation detail and ask for explicit user confirmation (yes/no) to proceed. If the user confirms, the order status will be changed to 'cancelled' and the payment will be refunded. The refund will be added to the user's gift card balance immediately if the payment was made using a gift card, otherwise the refund would take 5-7 business days to process. The function returns the order details after the cancellation.",
        order_id=ORDER_ID,
        reason=text(
            "The reason for cancellation, which should be either 'no longer needed' or 'ordered by mistake'.",
            enum=("no longer needed", "ordered by mistake"),
        ),
    )
    def cancel_pending_order(self, order_id: Any, reason: Any) -> Record:
        order = self._record("orders", order_id, "order not found", change=True)
        if order["status"] != "pending":
            raise ValueError("non-pending order cannot be cancelled")
        if reason not in ["no longer needed", "ordered by mistake"]:
            raise ValueError("invalid reason")
        refunds = []
        for payment in order["payment_history"]:
            method_id = payment["payment_method_id"]
            refunds.append(_payment("refund", payment["amount"], method_id))
            if "gift_card" in method_id:
                _add(self._methods(order, change=True)[method_id], payment["amount"])
        order["status"] = "cancelled"
        order["cancel_reason"] = reason
        order["payment_history"].extend(refunds)
        return order

    @tool(writes=True)
    @interface(
        "Exchange items in a delivered order to new items of the same product type. For a delivered order, return or exchange can be only done once by the agent. The agent needs to explain the exchange detail and ask for explicit user confirmation (yes/no) to proceed.",
        order_id=ORDER_ID,
        item_ids=items(
            "The item ids to be exchanged, each such as '1008292230'. There could be duplicate items in the list."
        ),
        new_item_ids=items(
            "The item ids to be exchanged for, each such as '1008292230'. There could be duplicate items in the list. Each new item id should match the item id in the same position and be of the same product."
        ),
        payment_method_id=METHOD,
    )
    def exchange_delivered_order_items(
        self, order_id: Any, item_ids: Any, new_item_ids: Any, payment_method_id: Any
    ) -> Record:
        order = self._record("orders", order_id, "order not found", change=True)
        if order["status"] != "delivered":
            raise ValueError("non-delivered order cannot be exchanged")
        for item_id in _first_too_few(item_ids, order):
            raise ValueError(f"{item_id} not found")
        if len(item_ids) != len(new_item_ids):
            raise ValueError("the number of items to be exchanged should match")
        cost = round(self._cost(order, item_ids, new_item_ids), 2)
        if payment_method_id not in self._methods(order):
            raise ValueError("payment method not found")
        method = self._methods(order)[payment_method_id]
        if method["source"] == "gift_card" and method["balance"] < cost:
            raise ValueError("insufficient gift card balance to pay for the price difference")
        order["status"] = "exchange requested"
        order["exchange_items"] = sorted(item_ids)
        order["exchange_new_items"] = sorted(new_item_ids)
        order["exchange_payment_method_id"] = payment_method_id
        order["exchange_price_difference"] = cost
        return order

    @tool
    @interface(
        "Find user id by email. If the user is not found, the function will return an error message.",
        email=text("The email of the user, such as 'something@example.com'."),
    )
    def find_user_id_by_email(self, email: Any) -> str:
        for user_id, user in self.db.users.scan():
            if user["email"].lower() == email.lower():
                return user_id
        raise ValueError("user not found")

    @tool
    @interface(
        "Find user id by first name, last name, and zip code. If the user is not found, the function will return an error message. By default, find user id by email, and only call this function if the user is not found by email or cannot remember email.",
        first_name=text("The first name of the customer, such as 'John'."),
        last_name=text("The last name of the customer, such as 'Doe'."),
        zip=text("The zip code of the customer, such as '12345'."),
    )
    def find_user_id_by_name_zip(self, first_name: Any, last_name: Any, zip: Any) -> str:
        for user_id, user in self.db.users.scan():
            name = user["name"]
            if name["first_name"].lower() == first_name.lower() and name["last_name"].lower() == last_name.lower():
                if user["address"]["zip"] == zip:
                    return user_id
        raise ValueError("user not found")

    @tool
    @interface("Get the status and details of an order.", order_id=ORDER_ID)
    def get_order_details(self, order_id: Any) -> Record:
        return self._record("orders", order_id, "order not found")

    @tool
    @interface(
        "Get the inventory details of a product.",
        product_id=text(
            "The product id, such as '6086499569'. Be careful the product id is different from the item id."
        ),
    )
    def get_product_details(self, product_id: Any) -> Record:
        return self._record("products", product_id, "product not found")

    @tool
    @interface("Get the details of a user, including their orders.", user_id=USER_ID)
    def get_user_details(self, user_id: Any) -> Record:
        return self._record("users", user_id, "user not found")

    @tool
    @interface(
        "List the name and product id of all product types. Each product type has a variety of different items with unique item ids and options. There are only 50 product types in the store."
    )
    def list_all_product_types(self) -> Record:
        return dict(sorted((p["name"], p["product_id"]) for _, p in self.db.products.scan()))

    @tool(writes=True)
    @interface(
        "Modify the shipping address of a pending order. The agent needs to explain the modification detail and ask for explicit user confirmation (yes/no) to proceed.",
        order_id=ORDER_ID,
        **ADDRESS,
    )
    def modify_pending_order_address(
        self, order_id: Any, address1: Any, address2: Any, city: Any, state: Any, country: Any, zip: Any
    ) -> Record:
        order = self._record("orders", order_id, "order not found", change=True)
        if order["status"] != "pending":
            raise ValueError("non-pending order cannot be modified")
        order["address"] = {
            "address1": address1, "address2": address2, "city": city, "state": state, "country": country, "zip": zip
        }  # fmt: skip
        return order

    @tool(writes=True)
    @interface(
        "Modify items in a pending order to new items of the same product type. For a pending order, this function can only be called once. The agent needs to explain the exchange detail and ask for explicit user confirmation (yes/no) to proceed.",
        order_id=ORDER_ID,
        item_ids=items(
            "The item ids to be modified, each such as '1008292230'. There could be duplicate items in the list."
        ),
        new_item_ids=items(
            "The item ids to be modified for, each such as '1008292230'. There could be duplicate items in the list. Each new item id should match the item id in the same position and be of the same product."
        ),
        payment_method_id=METHOD,
    )
    def modify_pending_order_items(
        self, order_id: Any, item_ids: Any, new_item_ids: Any, payment_method_id: Any
    ) -> Record:
        order = self._record("orders", order_id, "order not found", change=True)
        if order["status"] != "pending":
            raise ValueError("non-pending order cannot be modified")
        for item_id in _first_too_few(item_ids, order):
            raise ValueError(f"{item_id} not found")
        if len(item_ids) != len(new_item_ids):
            raise ValueError("the number of items to be exchanged should match")
        cost = self._cost(order, item_ids, new_item_ids)
        if payment_method_id not in self._methods(order):
            raise ValueError("payment method not found")
        method = self._methods(order)[payment_method_id]
        if method["source"] == "gift_card" and method["balance"] < cost:
            raise ValueError("insufficient gift card balance to pay for the new item")
        kind = "payment" if cost > 0 else "refund"
        order["payment_history"].append(_payment(kind, abs(cost), payment_method_id))
        if method["source"] == "gift_card":
            _add(self._methods(order, change=True)[payment_method_id], -cost)
        for item_id, new_id in zip(item_ids, new_item_ids, strict=False):
            item = [i for i in order["items"] if i["item_id"] == item_id][0]  # noqa: RUF015 (its error is shown)
            variant = self._variant(item["product_id"], new_id)
            item["item_id"] = new_id
            item["price"] = variant["price"]
            item["options"] = dict(variant["options"])
        order["status"] = "pending (item modified)"
        return order

    @tool(writes=True)
    @interface(
        "Modify the payment method of a pending order. The agent needs to explain the modification detail and ask for explicit user confirmation (yes/no) to proceed.",
        order_id=ORDER_ID,
        payment_method_id=METHOD,
    )
    def modify_pending_order_payment(self, order_id: Any, payment_method_id: Any) -> Record:
        order = self._record("orders", order_id, "order not found", change=True)
        if order["status"] != "pending":
            raise ValueError("non-pending order cannot be modified")
        if payment_method_id not in self._methods(order):
            raise ValueError("payment method not found")
        history = order["payment_history"]
        if len(history) > 1 or history[0]["transaction_type"] != "payment":
            raise ValueError("there should be exactly one payment for a pending order")
        old_id, amount = history[0]["payment_method_id"], history[0]["amount"]
        if old_id == payment_method_id:
            raise ValueError("the new payment method should be different from the current one")
        method = self._methods(order)[payment_method_id]
        if method["source"] == "gift_card" and method["balance"] < amount:
            raise ValueError("insufficient gift card balance to pay for the order")
        history += [_payment("payment", amount, payment_method_id), _payment("refund", amount, old_id)]
        if method["source"] == "gift_card":
            _add(self._methods(order, change=True)[payment_method_id], -amount)
        if "gift_card" in old_id:
            _add(self._methods(order, change=True)[old_id], amount)
        return order

    @tool(writes=True)
    @interface(
        "Modify the default address of a user. The agent needs to explain the modification detail and ask for explicit user confirmation (yes/no) to proceed.",
        user_id=USER_ID,
        **ADDRESS,
    )
    def modify_user_address(
        self, user_id: Any, address1: Any, address2: Any, city: Any, state: Any, country: Any, zip: Any
    ) -> Record:
        user = self._record("users", user_id, "user not found", change=True)
        user["address"] = {
            "address1": address1, "address2": address2, "city": city, "state": state, "country": country, "zip": zip
        }  # fmt: skip
        return user

    @tool(writes=True)
    @interface(
        "Return some items of a delivered order. The order status will be changed to 'return requested'. The agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed. The user will receive follow-up email for how and where to return the item.",
        order_id=ORDER_ID,
        item_ids=items(
            "The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list."
        ),
        payment_method_id=METHOD,
    )
    def return_delivered_order_items(self, order_id: Any, item_ids: Any, payment_method_id: Any) -> Record:
        order = self._record("orders", order_id, "order not found", change=True)
        if order["status"] != "delivered":
            raise ValueError("non-delivered order cannot be returned")
        if payment_method_id not in self._methods(order):
            raise ValueError("payment method not found")
        original = order["payment_history"][0]["payment_method_id"]
        if "gift_card" not in payment_method_id and payment_method_id != original:
            raise ValueError("payment method should be either the original payment method or a gift card")
        for _ in _first_too_few(item_ids, order):
            raise ValueError("some item not found")
        order["status"] = "return requested"
        order["return_items"] = sorted(item_ids)
        order["return_payment_method_id"] = payment_method_id
        return order

    @tool(kind="generic")
    @interface(
        "Use the tool to think about something. It will not obtain new information or change the database, but just append the thought to the log. Use it when complex reasoning or some cache memory is needed.",
        thought=text("A thought to think about."),
    )
    def think(self, thought: Any) -> str:
        return ""

    @tool(kind="generic")
    @interface(
        "Transfer the user to a human agent, with a summary of the user's issue. Only transfer if the user explicitly asks for a human agent, or if the user's issue cannot be resolved by the agent with the available tools.",
        summary=text("A summary of the user's issue."),
    )
    def transfer_to_human_agents(self, summary: Any) -> str:
        return "Transfer successful"
