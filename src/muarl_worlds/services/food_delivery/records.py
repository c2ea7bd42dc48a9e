"""What the tools of the food delivery service answer, field by field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from muarl.domains.schema import Date, Id, Money, TypedDict, Volatile, record

Status = Literal["placed", "preparing", "on the way", "delivered", "cancelled"]
Zone = Literal["north", "south", "east", "west"]
Fault = Literal["missing", "wrong dish", "damaged"]
CustomerId = Annotated[str, Id("C-", 5)]
OrderId = Annotated[str, Id("F-", 5)]
RestaurantId = Annotated[str, Id("R-", 3)]
DishId = Annotated[str, Id("D-", 4)]
AddressId = Annotated[str, Id("A-", 4)]
PaymentId = Annotated[str, Id("P-", 4)]


@record("address_id")
class Address(TypedDict):
    """A saved delivery address. ``zone``: the part of town."""

    address_id: AddressId
    label: Annotated[str, Field(description="what the customer calls it: home, work, parents, studio")]
    street: str
    zone: Zone


@record("payment_id")
class Payment(TypedDict):
    payment_id: PaymentId
    kind: Literal["visa", "mastercard", "wallet", "gift card"]


@record("customer_id")
class Customer(TypedDict):
    customer_id: CustomerId
    name: str
    phone: str
    addresses: list[Address]
    payments: list[Payment]


@record()
class Item(TypedDict):
    dish_id: DishId
    name: str
    quantity: Annotated[int, Field(ge=1)]
    price: Annotated[float, Field(ge=0, description="US dollars for one")]
    refunded: bool


@record("order_id")
class OrderLine(TypedDict):
    """An order in a list."""

    order_id: OrderId
    restaurant: str
    ordered_on: Date
    status: Status
    total: Money


@record()
class Orders(TypedDict):
    orders: list[OrderLine]


@record("order_id")
class Order(TypedDict):
    """``delivered_on``: null until it is delivered. ``eta_minutes``: null once it is. ``total``: with fee and tip."""

    order_id: OrderId
    customer_id: CustomerId
    restaurant_id: RestaurantId
    restaurant: str
    ordered_on: Date
    delivered_on: Date | None
    status: Status
    items: list[Item]
    delivery_fee: Money
    tip: Money
    total: Money
    address_id: AddressId
    instruction: str
    payment_id: PaymentId
    eta_minutes: Annotated[int | None, Volatile]
    refunded: Money


@record("restaurant_id")
class Restaurant(TypedDict):
    """``zones``: the parts of town that it delivers to. ``minimum``: the smallest order in dollars."""

    restaurant_id: RestaurantId
    name: str
    cuisine: str
    open: bool
    zones: list[Zone]
    delivery_fee: Money
    minimum: Money


@record()
class Restaurants(TypedDict):
    restaurants: list[Restaurant]


@record("dish_id")
class Dish(TypedDict):
    dish_id: DishId
    name: str
    price: Money
    available: bool


@record()
class Menu(TypedDict):
    restaurant_id: RestaurantId
    dishes: list[Dish]
