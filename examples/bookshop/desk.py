"""The bookshop's desk: its tools, and worlds of customers, books and orders, made from chance."""

from pathlib import Path
from typing import Any, Literal, get_args

from muarl import Domain, tool
from muarl.kit import Maker

TITLES = ("Emma", "Dune", "Persuasion", "Middlemarch", "Dracula", "Ulysses", "Walden", "Ivanhoe", "Beloved", "Rebecca")
Format = Literal["paperback", "hardback", "audiobook", "ebook"]
FORMATS, IN_STOCK = get_args(Format), "in stock"
PRICES = (7.5, 9.0, 12.5, 14.0, 18.0, 23.5, 64.0, 80.0)


class Bookshop(Domain):
    """Orders of books: found, placed, sent elsewhere, cancelled and refunded."""

    name = "bookshop"
    policy = Path("policy.md")  # beside this file

    @tool
    def find_customer(self, name: str, email: str) -> dict[str, Any]:
        """Find a customer by first and last name and e-mail address."""
        for _, customer in self.db.customers.scan():
            if (customer["name"].lower(), customer["email"]) == (name.lower(), email.lower()):
                return customer
        raise ValueError("no customer has this name and e-mail address")

    @tool
    def list_orders(self, customer_id: str) -> dict[str, Any]:
        """A customer's orders with their titles. An id is such as 'C-1042'."""
        mine = [order for _, order in self.db.orders.scan() if order["customer_id"] == customer_id]
        return {"orders": [{field: order[field] for field in ("title", "order_id")} for order in mine]}

    @tool
    def get_order(self, order_id: str) -> dict[str, Any]:
        """All about an order, such as 'B-1042'."""
        if order_id not in self.db.orders:
            raise ValueError(f"there is no order {order_id}")
        return self.db.orders[order_id]  # this world's own copy: it may be changed freely

    @tool
    def get_book(self, title: str) -> dict[str, Any]:
        """A book's price, and which formats are in stock."""
        if title not in self.db.books:
            raise ValueError(f"there is no book {title}")
        return self.db.books[title]

    @tool(writes=True)
    def order_book(self, customer_id: str, title: str, form: Format) -> dict[str, Any]:
        """Order a book in this format, to be sent to the customer's address."""
        book, customer = self.get_book(title), self.db.customers.get(customer_id)
        if customer is None or book[form] != IN_STOCK:
            raise ValueError(f"{customer_id} cannot order {title} as {form}: look up what is in stock")
        order_id = f"B-{max(int(key[2:]) for key in self.db.orders) + 1}"
        order = {"order_id": order_id, "customer_id": customer_id, "title": title, "form": form, "status": "open"}
        self.db.orders[order_id] = order | {"price": book["price"], "address": customer["address"], "parcel": "none"}
        return self.db.orders[order_id]

    @tool(writes=True)
    def cancel_order(self, order_id: str) -> dict[str, Any]:
        """Cancel an open order."""
        return self._change(order_id, "open", {"status": "cancelled"})

    @tool(writes=True)
    def change_address(self, order_id: str, address: str) -> dict[str, Any]:
        """Send an open order to another house number and street."""
        return self._change(order_id, "open", {"address": address})

    @tool(writes=True)
    def refund_order(self, order_id: str, reason: Literal["damaged", "lost"]) -> dict[str, Any]:
        """Pay back what a shipped order cost."""
        return self._change(order_id, "shipped", {"status": "refunded", "reason": reason})

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a person, with a sentence about the matter."""
        return "Transfer successful"

    def _change(self, order_id: str, status: str, values: dict[str, str]) -> Any:
        order = self.get_order(order_id)
        if order["status"] != status:
            raise ValueError(f"order {order_id} is {order['status']}")
        order.update(values)
        return order


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """The tables of one world; a tiny one takes its names and ids from short lists."""
    rng = make.rng
    tables: dict[str, dict[str, Any]] = {"customers": {}, "books": {}, "orders": {}}
    for title in rng.sample(TITLES, 5 if make.tiny else len(TITLES)):
        stock = rng.sample(FORMATS, rng.randint(1, 3))
        shelf = {form: IN_STOCK if form in stock else "sold out" for form in FORMATS}
        tables["books"][title] = {"title": title, "price": rng.choice(PRICES), **shelf}
    for _ in range(make.people):
        customer = {"customer_id": make.id("customer", "C-", 4), "name": make.name()}
        user = customer["name"].lower().replace(" ", ".")
        customer |= {"email": f"{user.split('.')[0] if make.tiny else user}@example.com", "address": make.street()}
        tables["customers"][customer["customer_id"]] = customer
        for book in rng.sample(list(tables["books"].values()), rng.randint(2, 3)):
            order = {"order_id": make.id("order", "B-", 4), "customer_id": customer["customer_id"]}
            order |= {"title": book["title"], "form": rng.choice(FORMATS), "price": book["price"]}
            order |= {"status": rng.choice(("open", "open", "shipped", "shipped", "cancelled"))}
            parcel = make.id("parcel", "PK-", 4) if order["status"] == "shipped" else "none"
            tables["orders"][order["order_id"]] = order | {"address": customer["address"], "parcel": parcel}
    return tables
