"""The tools of a food delivery service's support desk, on a small database of customers, restaurants and orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from muarl.domains.base import Domain
from muarl.domains.kit.people import made_id
from muarl.domains.tooling import tool
from muarl_worlds.services.food_delivery.records import Customer, Fault, Menu, Order, Orders, Restaurants

TODAY = "2026-03-14"


class FoodDelivery(Domain):
    """Support for a food delivery service."""

    name: ClassVar[str] = "food-delivery"
    policy: ClassVar[Path | str] = Path("policy.md")

    def _order(self, order_id: str) -> Any:
        if order_id not in self.db.orders:
            raise ValueError(f"order {order_id} not found")
        return self.db.orders[order_id]

    def _customer(self, customer_id: str) -> Any:
        if customer_id not in self.db.customers:
            raise ValueError(f"customer {customer_id} not found")
        return self.db.customers.peek(customer_id)

    def _menu(self, restaurant_id: str) -> Any:
        if restaurant_id not in self.db.restaurants:
            raise ValueError(f"restaurant {restaurant_id} not found")
        return self.db.restaurants.peek(restaurant_id)

    @tool
    def identify_customer(self, name: str, phone: str) -> Customer:
        """Find the customer by full name and telephone number.

        name: first and last name, such as 'Ada Lind'
        phone: the number on the account, such as '415-555-0192'
        """
        for _, customer in self.db.customers.scan():
            if customer["name"].lower() == name.strip().lower() and customer["phone"] == phone.strip():
                return customer
        raise ValueError("no customer with this name and telephone number")

    @tool
    def list_orders(self, customer_id: str) -> Orders:
        """The customer's orders, newest first, without their details.

        customer_id: the customer, such as 'C-12345'
        """
        self._customer(customer_id)
        own = [o for _, o in self.db.orders.scan() if o["customer_id"] == customer_id]
        fields = ("order_id", "restaurant", "ordered_on", "status", "total")
        own.sort(key=lambda o: (o["ordered_on"], o["order_id"]), reverse=True)
        return {"orders": [{f: o[f] for f in fields} for o in own]}  # type: ignore[misc]

    @tool
    def get_order(self, order_id: str) -> Order:
        """All details of an order.

        order_id: the order, such as 'F-12345'
        """
        return self._order(order_id)

    @tool
    def find_restaurants(self, name: str | None = None, cuisine: str | None = None) -> Restaurants:
        """Restaurants by name or cuisine; all of them if neither is given.

        name: a restaurant's name or a part of it
        cuisine: such as 'Thai'
        """
        found: list[Any] = []
        for _, r in self.db.restaurants.scan():
            named = name is None or name.lower() in r["name"].lower()
            if named and (cuisine is None or cuisine.lower() == r["cuisine"].lower()):
                found.append({k: v for k, v in r.items() if k != "dishes"})
        return {"restaurants": found}

    @tool
    def get_menu(self, restaurant_id: str) -> Menu:
        """A restaurant's dishes with prices, and whether they can be had today.

        restaurant_id: the restaurant, such as 'R-123'
        """
        return {"restaurant_id": restaurant_id, "dishes": list(self._menu(restaurant_id)["dishes"].values())}

    @tool(writes=True)
    def place_order(
        self, customer_id: str, restaurant_id: str, dish_id: str, quantity: int, address_id: str, payment_id: str
    ) -> Order:
        """Place a new order of one dish, for delivery today.

        customer_id: the customer who orders
        restaurant_id: the restaurant
        dish_id: the dish, such as 'D-1234'
        quantity: how many of it
        address_id: one of the customer's saved addresses, such as 'A-1234'
        payment_id: one of the customer's saved payment methods, such as 'P-1234'
        """
        customer, restaurant = self._customer(customer_id), self._menu(restaurant_id)
        dish = restaurant["dishes"].get(dish_id)
        if dish is None or not dish["available"]:
            raise ValueError(f"dish {dish_id} cannot be had at {restaurant['name']} today")
        if not restaurant["open"]:
            raise ValueError(f"{restaurant['name']} is closed")
        if quantity < 1:
            raise ValueError("quantity must be at least 1")
        _owned(customer["addresses"], "address_id", address_id)
        _owned(customer["payments"], "payment_id", payment_id)
        order_id = made_id("F-", 5, customer_id, dish_id, quantity, address_id, payment_id)
        item = {"dish_id": dish_id, "name": dish["name"], "quantity": quantity, "price": dish["price"]}
        order: Any = {
            "order_id": order_id,
            "customer_id": customer_id,
            "restaurant_id": restaurant_id,
            "restaurant": restaurant["name"],
            "ordered_on": TODAY,
            "delivered_on": None,
            "status": "placed",
            "items": [{**item, "refunded": False}],
            "delivery_fee": restaurant["delivery_fee"],
            "tip": 0.0,
            "total": 0.0,
            "address_id": address_id,
            "instruction": "none",
            "payment_id": payment_id,
            "eta_minutes": 40,
            "refunded": 0.0,
        }
        self.db.orders[order_id] = _summed(order)
        return order

    @tool(writes=True)
    def cancel_order(
        self, order_id: str, reason: Literal["changed plans", "ordered by mistake", "takes too long"]
    ) -> Order:
        """Cancel an order and refund it in full. The software refuses once the courier has it.

        order_id: the order
        reason: why
        """
        order = self._order(order_id)
        if order["status"] not in ("placed", "preparing"):
            raise ValueError(f"order {order_id} is {order['status']} and cannot be cancelled")
        order |= {"status": "cancelled", "refunded": order["total"], "eta_minutes": None}
        return order

    @tool(writes=True)
    def replace_item(self, order_id: str, dish_id: str, new_dish_id: str) -> Order:
        """Replace a dish of an order by another one of the same restaurant, in the same quantity.

        order_id: the order
        dish_id: the dish that is in the order
        new_dish_id: the dish that is wanted instead
        """
        order = self._order(order_id)
        if order["status"] != "placed":
            raise ValueError(f"order {order_id} is {order['status']} and its dishes can no longer be changed")
        item = _owned(order["items"], "dish_id", dish_id)
        dish = self._menu(order["restaurant_id"])["dishes"].get(new_dish_id)
        if dish is None or not dish["available"]:
            raise ValueError(f"dish {new_dish_id} cannot be had at {order['restaurant']} today")
        item |= {"dish_id": new_dish_id, "name": dish["name"], "price": dish["price"]}
        return _summed(order)

    @tool(writes=True)
    def change_delivery_address(self, order_id: str, address_id: str) -> Order:
        """Have an order brought to another saved address of the customer. Impossible once the courier has it.

        order_id: the order
        address_id: the saved address
        """
        order = self._order(order_id)
        if order["status"] not in ("placed", "preparing"):
            raise ValueError(f"order {order_id} is {order['status']} and its address can no longer be changed")
        _owned(self.db.customers.peek(order["customer_id"])["addresses"], "address_id", address_id)
        order["address_id"] = address_id
        return order

    @tool(writes=True)
    def set_delivery_instruction(
        self,
        order_id: str,
        instruction: Literal[
            "leave at the door", "hand it to me", "do not ring the bell", "call on arrival", "leave with a neighbour"
        ],
    ) -> Order:
        """Tell the courier what to do on arrival.

        order_id: the order
        instruction: what the courier should do
        """
        order = self._order(order_id)
        if order["status"] in ("delivered", "cancelled"):
            raise ValueError(f"order {order_id} is already {order['status']}")
        order["instruction"] = instruction
        return order

    @tool(writes=True)
    def add_tip(self, order_id: str, amount: float) -> Order:
        """Add a tip for the courier to what has been tipped already; it is charged to the order's payment method.

        order_id: the order
        amount: US dollars
        """
        order = self._order(order_id)
        if order["status"] == "cancelled":
            raise ValueError(f"order {order_id} is cancelled")
        if amount <= 0:
            raise ValueError("amount must be above 0")
        order["tip"] = round(order["tip"] + amount, 2)
        return _summed(order)

    @tool(writes=True)
    def refund_item(self, order_id: str, dish_id: str, reason: Fault) -> Order:
        """Refund one dish of a delivered order, in its whole quantity, to the order's payment method.

        order_id: the order
        dish_id: the dish
        reason: what was wrong with it
        """
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise ValueError(f"order {order_id} is {order['status']}: only delivered dishes can be refunded")
        item = _owned(order["items"], "dish_id", dish_id)
        if item["refunded"]:
            raise ValueError(f"dish {dish_id} of order {order_id} has been refunded already")
        item["refunded"] = True
        order["refunded"] = round(order["refunded"] + item["price"] * item["quantity"], 2)
        return order

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a person.

        summary: what it is about, in one sentence
        """
        return "Transfer successful"


def _owned(records: Any, key: str, wanted: str) -> Any:
    """The record with this id. ValueError if it is not among them."""
    for one in records:
        if one[key] == wanted:
            return one
    raise ValueError(f"{key} {wanted} not found")


def _summed(order: Any) -> Any:
    """The order with its total brought up to date."""
    dishes = sum(i["price"] * i["quantity"] for i in order["items"])
    order["total"] = round(dishes + order["delivery_fee"] + order["tip"], 2)
    return order
