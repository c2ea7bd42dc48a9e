"""The words of the tiny shop that the tiny model's tokenizer makes one token each (recipes/tiny.py)."""

from __future__ import annotations

from muarl_worlds.tau import people
from muarl_worlds.tau.retail import catalogue as cat

STATUSES = ("pending", "delivered", "processed", "cancelled")
TOPICS = ("a price match", "a job in your store", "a complaint about a courier")
"""What only a person can help with."""
PIECES = (
    "Done. ", ". ", " and ", "and ", ", ", "the order with the ", " in it", "in it", "the ", "a ", "an ", "one",
    "one please.", " please.", "please.", "from ", "in ", "instead", "already", "is not available", "is sold out",
    "There is nothing else to offer instead. ", "900.00", "; orders [", "]", "Error: User not found",
    "Transfer successful", "talk to somebody about ", *TOPICS, "The customer wants to talk about ",
    "The customer needs help.", *STATUSES, "exchange requested", "return requested", "pending (item modified)", "USA",
)  # fmt: skip
"""What joins sentences and items, how users say values, and what tools answer with."""


def entities() -> list[str]:
    """What must be one token wherever it stands: ids, names, places, prices, products and options of the tiny shop."""
    products = list(cat.PRODUCTS)[:16]
    pieces: list[str] = [*cat.ORDER_IDS, *cat.ITEM_IDS, *people.ZIPS]
    pieces += [f"; price {price}" for price in cat.PRICES]  # so that a price stands right behind its item's id
    pieces += [i for ids in cat.PAYMENT_IDS.values() for i in ids]
    pieces += [cat.product_id(name) for name in products]
    pieces += [
        *people.FIRST_NAMES,
        *people.LAST_NAMES,
        *(f"{n.lower()}_" for n in (*people.FIRST_NAMES, *people.LAST_NAMES)),
    ]
    pieces += [str(n) for n in range(1000, 1040)]
    pieces += [*people.STREETS, *people.UNITS, *(c for c, _ in people.CITIES), *(s for _, s in people.CITIES)]
    words = [name.lower() for name in products]
    words += [v for name in products for v in next(iter(cat.PRODUCTS[name].values()))]
    words += ["paypal", "credit card", "gift card", *cat.REASONS]
    # A word with its space is another token, so that in "mug 7117010" the id stands right behind its key.
    pieces += [w + end for w in words for end in ("", " ")]
    return list(dict.fromkeys(pieces))
