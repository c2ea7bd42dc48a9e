"""The words of the tiny airline that the tiny model's tokenizer makes one token each (recipes/tiny.py)."""

from __future__ import annotations

from muarl_worlds.tau.airline import catalogue as cat

PIECES = (
    "Done. ", ". ", " bags", " bags with ", " paid pay with ",
    '", "cabin": "', '", "flights": [{"flight_number": "', '", "date": "', '"}], "payment_id": "',
    '", "total_baggages": ', ', "nonfree_baggages": ', ', "payment_id": "', '", "passengers": [{"first_name": "',
    '", "last_name": "', '", "dob": "', '"}]}}\n', '", "amount": ', "}}\n",
)  # fmt: skip
"""What joins sentences, and the arguments of calls whose arguments are numbers or lists of objects."""


def entities() -> list[str]:
    """What must be one token wherever it stands: ids, names, places, days, prices and cabins of the tiny world."""
    pieces: list[str] = [*cat.RESERVATIONS, *cat.FLIGHTS, *cat.CODES, *cat.PAST, *cat.FUTURE, *cat.BIRTHDAYS]
    pieces += [str(price) for prices in cat.PRICES.values() for price in prices]
    pieces += [i for source in cat.SOURCES[:2] for i in cat.PAYMENT_IDS[source]]
    pieces += [*cat.FIRST_NAMES, *cat.LAST_NAMES, *(f"{n.lower()}_" for n in (*cat.FIRST_NAMES, *cat.LAST_NAMES))]
    pieces += [*cat.NUMBERS, *map(str, range(10)), "100"]
    pieces += [*cat.CABINS, "basic economy", *cat.MEMBERSHIPS, *cat.REASONS[:3]]
    pieces += ["credit card", "credit card ", "gift card", "gift card "]
    return list(dict.fromkeys(pieces))
