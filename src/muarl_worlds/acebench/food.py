"""The food delivery platform of ACEBench (Chinese form: chinese.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from pydantic import BaseModel, Field

from muarl.domains.tooling import tool
from muarl_worlds.acebench.phone import BaseApi
from muarl_worlds.acebench.scenario import plain_copy


class OrderItem(BaseModel):
    """A dish of an order."""

    product: str = Field(description="Name of the product, as the menu has it.")
    quantity: int = Field(default=1, description="How many of it.")


class FoodPlatform(BaseApi):
    """Accounts with balances, merchants with menus, and orders. ``logged_in_users``: whose accounts are open."""

    saved: ClassVar[tuple[str, ...]] = ("users", "logged_in_users", "orders")

    def __init__(self) -> None:
        self.users: dict[str, Any] = self._initial("users")
        self.merchant_list: dict[str, Any] = self._initial("merchant_list")
        self.logged_in_users: list[Any] = []
        self.orders: list[dict[str, Any]] = []

    def load(self, config: Mapping[str, Any]) -> None:
        """Wi-Fi is off, the device logged in and nobody on the platform unless said otherwise."""
        super().load(config)
        self.logged_in_users = plain_copy(config.get("logged_in_users", []))

    @tool(writes=True)
    def login_food_platform(self, username: str, password: str) -> Any:
        """Log a user in to the food platform. Wi-Fi must be on.

        Args:
            username: Name of the user, such as 'Eve'.
            password: The user's password.
        """
        if self.wifi == False:  # noqa: E712
            return self._no("food_no_wifi")
        if username not in self.users:
            return self._no("food_no_user")
        if self.users[username]["password"] != password:
            return self._no("food_password")
        if username in self.logged_in_users:
            return self._no("food_in_already", username)
        self.logged_in_users.append(username)
        return self._yes("food_in", username)

    @tool
    def view_logged_in_users(self) -> Any:
        """Show who is logged in to the food platform."""
        if not self.logged_in_users:
            return self._no("food_nobody")
        return {"status": True, "logged_in_users": self.logged_in_users}

    @tool
    def check_balance(self, user_name: str) -> Any:
        """Tell how much money a user has on the food platform, in yuan.

        Args:
            user_name: Name of the user.
        """
        return self.users[user_name]["balance"] if user_name in self.users else 0.0

    @tool(writes=True)
    def add_food_delivery_order(self, username: str, merchant_name: str, items: list[OrderItem]) -> Any:
        """Order food from one merchant. The user must be logged in to the food platform and have enough money.

        Args:
            username: Name of the user who orders and pays.
            merchant_name: Name of the merchant.
            items: What is ordered.
        """
        if username not in self.logged_in_users:
            return self._no("food_not_in", username)
        if merchant_name not in self.merchant_list:
            return self._no("no_merchant")
        total: Any = 0.0
        lines = []
        for item in cast(Any, items):  # plain objects
            product, quantity = item.get("product"), item.get("quantity", 1)
            if not isinstance(quantity, int) or quantity <= 0:
                return self._no("bad_quantity", quantity, product)
            menu = self.merchant_list[merchant_name]["menu"]
            dish = next((d for d in menu if d["product"] == product), None)
            if dish is None:
                return self._no("no_product", product, merchant_name)
            total += dish["price"] * quantity
            lines.append({"product": product, "quantity": quantity, "price_per_unit": dish["price"]})
        if not self._can_pay(username, total):
            return self._no("food_balance")
        self.users[username]["balance"] -= total
        self.orders.append(
            {"user_name": username, "merchant_name": merchant_name, "items": lines, "total_price": total}
        )
        return self._yes("ordered", merchant_name, total)

    def _can_pay(self, username: str, total: float) -> bool:
        return not total > self.users[username]["balance"]

    @tool
    def get_products(self, merchant_name: str) -> Any:
        """Show a merchant's menu with prices in yuan.

        Args:
            merchant_name: Name of the merchant.
        """
        merchant = self.merchant_list.get(merchant_name)
        return merchant["menu"] if merchant else self._no("no_such_merchant", merchant_name)

    @tool
    def view_orders(self, user_name: str) -> Any:
        """Show all orders of a user.

        Args:
            user_name: Name of the user.
        """
        found = [order for order in self.orders if order["user_name"] == user_name]
        return {"status": True, "orders": found} if found else self._no("no_orders")

    @tool
    def search_orders(self, keyword: str) -> Any:
        """Find the orders whose merchant or one of whose products contains a word, in any case.

        Args:
            keyword: What the name must contain.
        """
        found = [order for order in self.orders if self._mentions(order, keyword)]
        return {"status": True, "orders": found} if found else self._no("no_matching_orders")

    def _mentions(self, order: Mapping[str, Any], keyword: str) -> bool:
        return keyword.lower() in order["merchant_name"].lower() or any(
            keyword.lower() in item["product"].lower() for item in order.get("items", [])
        )
