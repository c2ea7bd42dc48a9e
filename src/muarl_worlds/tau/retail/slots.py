"""What a shop's users tell, and how they say it: kinds of values, and the details of their requests."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muarl.domains.kit.declaration import (
    Draw,
    DrawContext,
    Fact,
    Identity,
    RecordDescription,
    Slot,
    names,
    of,
    pattern,
    words,
)
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record, plain
from muarl.domains.kit.records import rows as records_of
from muarl.language.values import Mention, ValueKind, person_kind
from muarl_worlds.tau import people
from muarl_worlds.tau.retail import catalogue as cat
from muarl_worlds.tau.retail.shop import make_address, size_for

PRODUCTS = tuple(name.lower() for name in cat.PRODUCTS)
OPTIONS = tuple(dict.fromkeys(v for product in cat.PRODUCTS.values() for values in product.values() for v in values))


def _any_of(values: Iterable[str]) -> str:
    return "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))


_PRODUCT = re.compile(rf"(?<!\w)(?:{_any_of(PRODUCTS)})(?!\w)", re.IGNORECASE)
_WITH_ITEM = re.compile(
    rf"\b(?:the |my )?(?:order|one) (?:with|containing|that (?:has|contains|includes)) (?:(?:the|an?|my) )?"
    rf"({_any_of(PRODUCTS)})(?!\w)(?: in it)?",
    re.IGNORECASE,
)
_LETTERS = tuple(value for value in OPTIONS if len(value) == 1)
_OPTION = re.compile(
    rf"(?<!\w)(?:(?i:{_any_of(value for value in OPTIONS if value not in _LETTERS)})|{_any_of(_LETTERS)})(?!['\w])"
)
_BY_SPELLING = {value.lower(): value for value in OPTIONS}
_ADDRESS = re.compile(
    r"(\d+ [A-Z]\w+(?: [A-Z]\w+)*), ((?:Suite|Apt)\.? \d+), ([A-Z]\w+(?: [A-Z]\w+)*), ([A-Z]{2}),? (\d{5})(?!\d)"
)
_ZIP = re.compile(r"(?<![\w#.$-])(?<![A-Z]{2} )(?<![A-Z]{2}, )\d{5}(?![\w-])")
_PERSON = person_kind(people.FIRST_NAMES)


def say_address(address: Mapping[str, str]) -> str:
    """An address in one line."""
    return f"{address['address1']}, {address['address2']}, {address['city']}, {address['state']} {address['zip']}"


def _addresses_in(text: str) -> list[Mention]:
    return [
        Mention(
            {"address1": m[1], "address2": m[2], "city": m[3], "country": "USA", "state": m[4], "zip": m[5]},
            m.start(),
            m.end(),
        )
        for m in _ADDRESS.finditer(text)
    ]


def _zips_in(text: str) -> list[Mention]:
    return [Mention(m[0], m.start(), m.end()) for m in _ZIP.finditer(text)]


def _names_in(text: str) -> list[Mention]:
    parts = [(m.value.split(" ", 1), m) for m in _PERSON.find(text)]
    return [Mention({"first_name": first, "last_name": last}, m.start, m.end) for (first, last), m in parts]


def _described_in(text: str) -> list[Mention]:
    return [Mention(m[1].lower(), m.start(), m.end()) for m in _WITH_ITEM.finditer(text)]


def _all_items_in(text: str) -> list[Mention]:
    """All products that a text names, in the order of the alphabet, as one value."""
    found = list(_PRODUCT.finditer(text))
    named = sorted({m[0].lower() for m in found})
    return [Mention(named, found[0].start(), found[-1].end())] if found else []


def _options_in(text: str) -> list[Mention]:
    return [Mention(_BY_SPELLING[m[0].lower()], m.start(), m.end()) for m in _OPTION.finditer(text)]


def _say_option(value: Any, rng: random.Random | None) -> str:
    """An option as the object of a swap: "a blue one", but "the same in 1.7 litres"."""
    return f"{'an' if value[0] in 'aeiou' else 'a'} {value} one" if value.isalpha() else f"the same in {value}"


NAME_KIND = ValueKind("full name", lambda value, rng: f"{value['first_name']} {value['last_name']}", _names_in, 2)
ZIP_KIND = ValueKind("zip code", lambda value, rng: str(value), _zips_in, 1)
DESCRIBED_KIND = ValueKind("order", lambda value, rng: f"the order with the {value} in it", _described_in, 3)
ITEMS_KIND = ValueKind("items", lambda value, rng: " and ".join(f"the {name}" for name in value), _all_items_in, 4)
OPTION_KIND = ValueKind("option", _say_option, _options_in, 5, choices=OPTIONS, own=True)
ADDRESS_KIND = ValueKind("address", lambda value, rng: say_address(value), _addresses_in, 1)
PAYMENT_KIND = words({"credit_card": "credit card", "paypal": "paypal", "gift_card": "gift card"})
REASON_KIND = words(
    {"no longer needed": "it is no longer needed", "ordered by mistake": "it was ordered by mistake"}, own=True
)

IDENTITY = Identity(
    tool="find_user_id_by_name_zip",
    table="users",
    key="user_id",
    facts=(
        Fact(
            "name",
            NAME_KIND,
            tells="My name is {name}.",
            asked=r"(?:first|last|full|your) (?:and last )?name|e-?mail|who am i (?:speaking|talking)",
        ),
        Fact("zip", ZIP_KIND, tells="My zip code is {zip}.", field="address.zip", wrong=True, asked=r"\bzip\b"),
    ),
    ask="May I have your name and zip code?",
    retry="I could not find you. Please check your name and zip code.",
    say=("I am {name}, {zip}.", "My name is {name} and my zip code is {zip}.", "{name}, {zip}."),
)


# what may be wished for


def _orders(drawn: DrawContext) -> Iterable[Record]:
    """The orders, each with an item that is in no other order of the same user, if there is one."""
    # Plain ones, as wrapping them takes longer.
    orders = drawn.wanted(plain(drawn.tables.orders).values())
    counts = Counter((order["user_id"], item["name"]) for order in orders for item in order["items"])
    for order in orders:
        alone = [item["name"].lower() for item in order["items"] if counts[order["user_id"], item["name"]] == 1]
        yield Record({**order, "item": alone[0] if alone else None})


def _order_with(it: Plan, item: str) -> Sequence[str]:
    """The user's order with an item in it, by looking through them."""
    for number in it.look("get_user_details", user_id=it.user.user_id).orders:
        if any(item in line for line in it.look("get_order_details", order_id=number).items):
            return [number]
    return []


def _lines(drawn: DrawContext) -> Iterable[Record]:
    return [Record({**plain(item), "name": item.name.lower()}) for item in drawn.order_id.items]


def _some_items(drawn: DrawContext) -> Iterable[list[str]]:
    """One item of an order, or two."""
    listed = sorted(item.name.lower() for item in drawn.order_id.items)
    return [[name] for name in listed] + [[one, other] for one in listed for other in listed if one < other]


def _other_options(drawn: DrawContext) -> Iterable[str]:
    """What an item may be swapped for: its product's variants that differ in one option, on stock or not."""
    item, found = drawn.item, []
    for variant in records_of(drawn.tables.products[item.product_id].variants):
        changed = [value for name, value in plain(variant.options).items() if item.options[name] != value]
        found += changed if len(changed) == 1 else []
    return found


def _sources(drawn: DrawContext) -> Iterable[str]:
    return [method.source for method in records_of(drawn.user.payment_methods)]


def _new_addresses(drawn: DrawContext) -> Iterable[dict[str, str]]:
    order = drawn.slots.get("order_id")
    rng = random.Random(f"addresses {drawn.user.user_id} {order and order.order_id}")
    return [make_address(rng, size_for(len(records_of(drawn.tables.users)))) for _ in range(4)]


_CHANGES = ("Actually, I want {}.", "Wait, I changed my mind. I want {}.", "Sorry, no. I want {}.")

ORDER = Slot(
    "order_id",
    pattern(r"#W\d{7}", exact=True),
    ask="Which order is it?",
    phrase="order {}",
    say=("It is order {}.", "Order {}."),
    draw=Draw(_orders, "order_id", own=True, table="orders", key="order_id", mark="payment_history"),
    described=RecordDescription(
        kind=DESCRIBED_KIND,
        match="item",
        phrase="{}",
        say="I do not remember. It is {}.",
        find=_order_with,
        share=0.05,
    ),
    asked=r"which (?:of your )?orders?\b|order (?:id|number)|number of (?:the|your) order",
)
ITEM = Slot(
    "item",
    names(PRODUCTS),
    ask="Which item is it?",
    phrase="the {}",
    say=("It is the {} please.", "I mean the {} please."),
    draw=of(_lines, "name"),
    asked=r"(?:which|what) (?:items?|products?)\b",
)
ITEMS = Slot(
    "items",
    ITEMS_KIND,
    ask="Which item is it?",
    say=("It is {} please.", "I mean {} please."),
    change=("Actually, I want to return only {}.", "Wait, I changed my mind. Only {} please."),
    draw=of(_some_items),
    asked=r"(?:which|what) (?:items?|products?)\b",
)
OPTION = Slot(
    "option",
    OPTION_KIND,
    ask="Which option would you like?",
    say=("I want {}.", "Give me {} please."),
    change=_CHANGES,
    draw=of(_other_options),
    cue=r"(?:for|to|into|in|want|me|it)(?: an?| the)?",
    asked=(
        r"(?:which|what) (?:new )?(?:options?|one|variants?|colou?rs?|sizes?|materials?|woods?)"
        r"|(?:like|want) instead"
    ),
)
PAYMENT = Slot(
    "payment",
    PAYMENT_KIND,
    ask="Which payment method should I use?",
    say=("Use my {} please.", "With my {} please."),
    draw=of(_sources),
    asked=(
        r"(?:which|what) payment|payment method (?:should|would|do)|pay(?:ing)? with\?"
        r"|how would you like to pay|(?:credit card|paypal|gift card) or"
    ),
)
REASON = Slot(
    "reason",
    REASON_KIND,
    ask="Is it no longer needed or ordered by mistake?",
    say="{}.",
    change=("Actually, {}.", "Wait, I changed my mind. In truth {}.", "Sorry, no. In truth {}."),
    asked=r"(?:what|which|your|the).{0,20} reason\b|\bwhy\b|no longer needed or",
    guess=("no longer needed",),
)
ADDRESS = Slot(
    "address",
    ADDRESS_KIND,
    ask="What is the new address?",
    say="{}.",
    change=("Actually, send it to {}.", "Wait, I changed my mind. Send it to {}.", "Sorry, no. Send it to {}."),
    draw=of(_new_addresses),
    asked=r"(?:what|which)[^.?]*\baddress|new address\?|address, please|where (?:should|shall|do)[^?]*\b(?:send|ship)",
)
