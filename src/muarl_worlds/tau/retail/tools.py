# ruff: noqa: A002, E501 (the interface's own names and lines)
"""TAU2 retail's 16 tools, over plain records.

The docstrings are the tools' interface, word for word as TAU2 gives it to models (sierra-research/tau2-bench, MIT
licence, Copyright Sierra Research): they are part of what the benchmark measures. What the tools do is written anew.

In "official" semantics the order of checks, the error texts and two oddities are TAU2's: ``modify_pending_order_items``
gives every item the last variant's price and options, and wrong types meet Python's own errors. "fixed" repairs both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from muarl.domains.base import Domain
from muarl.domains.tooling import tool
from muarl_worlds.tau.calculator import calculate
from muarl_worlds.tau.retail.task_rules import RETAIL_TASKS

Record = dict[str, Any]


class UserAddress(BaseModel):
    """An address as TAU2 checks it. The class name stands in its error texts."""

    address1: str
    address2: str
    city: str
    country: str
    state: str
    zip: str


def _payment(kind: str, amount: float, method_id: str) -> Record:
    return {"transaction_type": kind, "amount": float(amount), "payment_method_id": method_id}


def _add_to_gift_card(method: Record, amount: float) -> None:
    """Change a gift card's balance, rounded to cents; other methods are settled outside the database."""
    if method["source"] == "gift_card":
        method["balance"] = round(method["balance"] + amount, 2)


def _too_few(wanted: Any, order: Record) -> Any:
    """The first of the wanted item ids that the order holds less often than asked for, as a list of one, or []."""
    held = [item["item_id"] for item in order["items"]]
    return next(([i] for i in wanted if wanted.count(i) > held.count(i)), [])


class RetailTools(Domain):
    """The tools. Writes take their records by ``self.db.table[key]``, reads only peek at them."""

    task_rules = RETAIL_TASKS

    def _peek(self, table: str, key: Any, missing: str) -> Record:
        records = self.db[table]
        if key not in records:
            raise ValueError(missing)
        return records.peek(key)

    def _order(self, order_id: str) -> Record:
        if order_id not in self.db.orders:
            raise ValueError("Order not found")
        return self.db.orders[order_id]

    def _method(self, user_id: str, method_id: str, *, change: bool = True) -> Record:
        """A user's payment method, this world's own copy if it is to be changed."""
        user = self._peek("users", user_id, "User not found")
        if method_id not in user["payment_methods"]:
            raise ValueError("Payment method not found")
        return (self.db.users[user_id] if change else user)["payment_methods"][method_id]

    def _swaps(self, order: Record, item_ids: Any, new_item_ids: Any, *, differ: bool) -> tuple[float, list[Record]]:
        """What a swap of items costs, unrounded (may be negative), and the new variants. ValueError if one is not to be had."""
        cost: float = 0
        variants = []
        for item_id, new_id in zip(item_ids, new_item_ids, strict=False):
            if differ and item_id == new_id:
                raise ValueError("The new item id should be different from the old item id")
            item = next((i for i in order["items"] if i["item_id"] == item_id), None)
            if item is None:
                raise ValueError(f"Item {item_id} not found")
            offered = self._peek("products", item["product_id"], "Product not found")["variants"]
            if new_id not in offered:
                raise ValueError("Variant not found")
            if not offered[new_id]["available"]:
                raise ValueError(f"New item {new_id} not found or available")
            variants.append(offered[new_id])
            cost += offered[new_id]["price"] - item["price"]
        return cost, variants

    @tool(kind="generic")
    def calculate(self, expression: str) -> str:
        """
        Calculate the result of a mathematical expression.

        Args:
            expression: The mathematical expression to calculate, such as '2 + 2'. The expression can contain numbers, operators (+, -, *, /), parentheses, and spaces.
        """
        return calculate(expression)

    @tool(writes=True)
    def cancel_pending_order(self, order_id: str, reason: str) -> Record:
        """Cancel a pending order. If the order is already processed or delivered,
        it cannot be cancelled. The agent needs to explain the cancellation detail
        and ask for explicit user confirmation (yes/no) to proceed. If the user confirms,
        the order status will be changed to 'cancelled' and the payment will be refunded.
        The refund will be added to the user's gift card balance immediately if the payment
        was made using a gift card, otherwise the refund would take 5-7 business days to process.
        The function returns the order details after the cancellation.

        Args:
            order_id: The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.
            reason: The reason for cancellation, which should be either 'no longer needed' or 'ordered by mistake'.
        """
        order = self._order(order_id)
        if order["status"] != "pending":
            raise ValueError("Non-pending order cannot be cancelled")
        if reason not in {"no longer needed", "ordered by mistake"}:
            raise ValueError("Invalid reason")
        refunds = []
        for entry in order["payment_history"]:  # refunds among them are refunded too, as TAU2 does
            method_id = entry["payment_method_id"]
            refunds.append(_payment("refund", entry["amount"], method_id))
            _add_to_gift_card(self._method(order["user_id"], method_id), entry["amount"])
        order["status"] = "cancelled"
        order["cancel_reason"] = reason
        order["payment_history"].extend(refunds)
        return order

    @tool(writes=True)
    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Record:
        """Exchange items in a delivered order to new items of the same product type.
        For a delivered order, return or exchange can be only done once by the agent.
        The agent needs to explain the exchange detail and ask for explicit user confirmation (yes/no) to proceed.

        Args:
            order_id: The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.
            item_ids: The item ids to be exchanged, each such as '1008292230'. There could be duplicate items in the list.
            new_item_ids: The item ids to be exchanged for, each such as '1008292230'.
                         There could be duplicate items in the list. Each new item id should match the item id
                         in the same position and be of the same product.
            payment_method_id: The payment method id to pay or receive refund for the item price difference,
                             such as 'gift_card_0000000' or 'credit_card_0000000'. These can be looked up
                             from the user or order details.
        """
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise ValueError("Non-delivered order cannot be exchanged")
        for item_id in _too_few(item_ids, order):
            raise ValueError(f"Number of {item_id} not found.")
        if len(item_ids) != len(new_item_ids):
            raise ValueError("The number of items to be exchanged should match.")
        cost = round(self._swaps(order, item_ids, new_item_ids, differ=False)[0], 2)
        method = self._method(order["user_id"], payment_method_id, change=False)
        if method["source"] == "gift_card" and method["balance"] < cost:
            raise ValueError("Insufficient gift card balance to pay for the price difference")
        order["status"] = "exchange requested"
        order["exchange_items"] = sorted(item_ids)
        order["exchange_new_items"] = sorted(new_item_ids)
        order["exchange_payment_method_id"] = payment_method_id
        order["exchange_price_difference"] = cost
        return order

    @tool
    def find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:
        """Find user id by first name, last name, and zip code. If the user is not found, the function
        will return an error message. By default, find user id by email, and only call this function
        if the user is not found by email or cannot remember email.

        Args:
            first_name: The first name of the customer, such as 'John'.
            last_name: The last name of the customer, such as 'Doe'.
            zip: The zip code of the customer, such as '12345'.
        """
        for user_id, user in self.db.users.scan():
            name = user["name"]
            if name["first_name"].lower() == first_name.lower() and name["last_name"].lower() == last_name.lower():
                if user["address"]["zip"] == zip:
                    return user_id
        raise ValueError("User not found")

    @tool
    def find_user_id_by_email(self, email: str) -> str:
        """Find user id by email. If the user is not found, the function will return an error message.

        Args:
            email: The email of the user, such as 'something@example.com'.
        """
        for user_id, user in self.db.users.scan():
            if user["email"].lower() == email.lower():
                return user_id
        raise ValueError("User not found")

    @tool
    def get_order_details(self, order_id: str) -> Record:
        """Get the status and details of an order.

        Args:
            order_id: The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.
        """
        return self._peek("orders", order_id, "Order not found")

    @tool
    def get_product_details(self, product_id: str) -> Record:
        """Get the inventory details of a product.

        Args:
            product_id: The product id, such as '6086499569'. Be careful the product id is different from the item id.
        """
        return self._peek("products", product_id, "Product not found")

    @tool
    def get_item_details(self, item_id: str) -> Record:
        """Get the inventory details of an item.

        Args:
            item_id: The item id, such as '6086499569'. Be careful the item id is different from the product id.
        """
        for _, product in self.db.products.scan():
            if item_id in product["variants"]:
                return product["variants"][item_id]
        raise ValueError("Item not found")

    @tool
    def get_user_details(self, user_id: str) -> Record:
        """Get the details of a user, including their orders.

        Args:
            user_id: The user id, such as 'sara_doe_496'.
        """
        return self._peek("users", user_id, "User not found")

    @tool
    def list_all_product_types(self) -> str:
        """List the name and product id of all product types.
        Each product type has a variety of different items with unique item ids and options.
        There are only 50 product types in the store.
        """
        return json.dumps({p["name"]: p["product_id"] for _, p in self.db.products.scan()}, sort_keys=True)

    @tool(writes=True)
    def modify_pending_order_address(
        self, order_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> Record:
        """Modify the shipping address of a pending order. The agent needs to explain the modification detail and ask for explicit user confirmation (yes/no) to proceed.

        Args:
            order_id: The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.
            address1: The first line of the address, such as '123 Main St'.
            address2: The second line of the address, such as 'Apt 1' or ''.
            city: The city, such as 'San Francisco'.
            state: The state, such as 'CA'.
            country: The country, such as 'USA'.
            zip: The zip code, such as '12345'.
        """
        order = self._order(order_id)
        if "pending" not in order["status"]:
            raise ValueError("Non-pending order cannot be modified")
        address = UserAddress(address1=address1, address2=address2, city=city, state=state, country=country, zip=zip)
        order["address"] = address.model_dump()
        return order

    @tool(writes=True)
    def modify_pending_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Record:
        """Modify items in a pending order to new items of the same product type. For a pending order, this function can only be called once. The agent needs to explain the exchange detail and ask for explicit user confirmation (yes/no) to proceed.

        Args:
            order_id: The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.
            item_ids: The item ids to be modified, each such as '1008292230'. There could be duplicate items in the list.
            new_item_ids: The item ids to be modified for, each such as '1008292230'. There could be duplicate items in the list. Each new item id should match the item id in the same position and be of the same product.
            payment_method_id: The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'. These can be looked up from the user or order details.
        """
        order = self._order(order_id)
        if order["status"] != "pending":
            raise ValueError("Non-pending order cannot be modified")
        for item_id in _too_few(item_ids, order):
            raise ValueError(f"{item_id} not found")
        if len(item_ids) != len(new_item_ids):
            raise ValueError("The number of items to be exchanged should match")
        cost, variants = self._swaps(order, item_ids, new_item_ids, differ=True)
        method = self._method(order["user_id"], payment_method_id)
        if method["source"] == "gift_card" and method["balance"] < cost:
            raise ValueError("Insufficient gift card balance to pay for the new item")
        kind = "payment" if cost > 0 else "refund"
        order["payment_history"].append(_payment(kind, abs(cost), payment_method_id))
        _add_to_gift_card(method, -cost)
        if self.semantics == "official":
            variants = variants[-1:] * len(variants)  # TAU2 gives all items what belongs to the last
        self._put_variants(order, item_ids, new_item_ids, variants)
        order["status"] = "pending (item modified)"
        return order

    def _put_variants(self, order: Record, item_ids: Any, new_item_ids: Any, variants: Sequence[Record]) -> None:
        for item_id, new_id, variant in zip(item_ids, new_item_ids, variants, strict=False):
            item = next((i for i in order["items"] if i["item_id"] == item_id), None)
            if item is None:
                raise ValueError(f"Item {item_id} not found")
            item["item_id"] = new_id
            item["price"] = variant["price"]
            item["options"] = dict(variant["options"])

    @tool(writes=True)
    def modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> Record:
        """Modify the payment method of a pending order. The agent needs to explain the modification detail and ask for explicit user confirmation (yes/no) to proceed.

        Args:
            order_id: The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.
            payment_method_id: The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'. These can be looked up from the user or order details.
        """
        order = self._order(order_id)
        if "pending" not in order["status"]:
            raise ValueError("Non-pending order cannot be modified")
        method = self._method(order["user_id"], payment_method_id)
        history = order["payment_history"]
        if len(history) != 1 or history[0]["transaction_type"] != "payment":
            raise ValueError("There should be exactly one payment for a pending order")
        old_id, amount = history[0]["payment_method_id"], history[0]["amount"]
        if old_id == payment_method_id:
            raise ValueError("The new payment method should be different from the current one")
        if method["source"] == "gift_card" and method["balance"] < amount:
            raise ValueError("Insufficient gift card balance to pay for the order")
        history += [_payment("payment", amount, payment_method_id), _payment("refund", amount, old_id)]
        _add_to_gift_card(method, -amount)
        _add_to_gift_card(self._method(order["user_id"], old_id), amount)
        return order

    @tool(writes=True)
    def modify_user_address(
        self, user_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> Record:
        """Modify the default address of a user. The agent needs to explain the modification detail and ask for explicit user confirmation (yes/no) to proceed.

        Args:
            user_id: The user id, such as 'sara_doe_496'.
            address1: The first line of the address, such as '123 Main St'.
            address2: The second line of the address, such as 'Apt 1' or ''.
            city: The city, such as 'San Francisco'.
            state: The state, such as 'CA'.
            country: The country, such as 'USA'.
            zip: The zip code, such as '12345'.
        """
        self._peek("users", user_id, "User not found")
        user = self.db.users[user_id]
        address = UserAddress(address1=address1, address2=address2, city=city, state=state, country=country, zip=zip)
        user["address"] = address.model_dump()
        return user

    @tool(writes=True)
    def return_delivered_order_items(self, order_id: str, item_ids: list[str], payment_method_id: str) -> Record:
        """Return some items of a delivered order.
        The order status will be changed to 'return requested'.
        The agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed.
        The user will receive follow-up email for how and where to return the item.

        Args:
            order_id: The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.
            item_ids: The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list.
            payment_method_id: The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'.
                             These can be looked up from the user or order details.
        """
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise ValueError("Non-delivered order cannot be returned")
        method = self._method(order["user_id"], payment_method_id, change=False)
        original = order["payment_history"][0]["payment_method_id"]
        if method["source"] != "gift_card" and payment_method_id != original:
            raise ValueError("Payment method should be the original payment method")
        for _ in _too_few(item_ids, order):
            raise ValueError("Some item not found")
        order["status"] = "return requested"
        order["return_items"] = sorted(item_ids)
        order["return_payment_method_id"] = payment_method_id
        return order

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """
        Transfer the user to a human agent, with a summary of the user's issue.
        Only transfer if
         -  the user explicitly asks for a human agent
         -  given the policy and the available tools, you cannot solve the user's issue.

        Args:
            summary: A summary of the user's issue.
        """
        return "Transfer successful"
