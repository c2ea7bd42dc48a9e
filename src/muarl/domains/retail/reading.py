"""What the scripted expert reads: observations (JSON or compact) into records, and callers' sentences into slots."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.retail import catalogue as cat
from muarl.domains.retail.phrases import PRODUCT_WORDS, SOURCE_WORDS, mentioned, spoken_kinds


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an order. ``price``: dollars, as text with two decimals; ``options`` in lower case."""

    name: str
    item_id: str
    options: tuple[str, ...]
    price: str
    product_id: str


@dataclass(frozen=True, slots=True)
class Order:
    """An order as an observation shows it. ``paid_with``: the id of the payment method. ``owner``: whose it is, by user
    id; empty where that is not shown."""

    order_id: str
    status: str
    items: tuple[Item, ...]
    paid_with: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A user's payment methods and orders."""

    payments: Mapping[str, str]
    """Source ("credit_card", ...) to payment method id."""
    orders: tuple[str, ...]


Variants = tuple[tuple[tuple[str, ...], str | None], ...]
"""Each variant's option values (lower case) and its item id, None if it is not available."""


def read_order(text: str) -> Order:
    """An observation of get_order_details; ValueError if it is none."""
    if text.startswith("{"):
        data = json.loads(text)
        items = tuple(
            Item(
                i["name"].lower(),
                i["item_id"],
                tuple(v.lower() for v in i["options"].values()),
                f"{float(i['price']):.2f}",
                i["product_id"],
            )
            for i in data["items"]
        )
        paid_with = data["payment_history"][0]["payment_method_id"]
        return Order(data["order_id"], data["status"], items, paid_with, data.get("user_id", ""))
    head, *lines = text.split("\n")
    order_id, status = head.split(" ", 1)
    found = [re.fullmatch(r"(.+?) (\d+) at \$([\d.]+) \((.+), product (\d+)\)", line) for line in lines[:-1]]
    items = tuple(Item(m[1], m[2], tuple(m[4].split(", ")), m[3], m[5]) for m in found if m)
    return Order(order_id, status, items, lines[-1].rsplit(" ", 1)[1])


def read_variants(text: str) -> Variants:
    """An observation of get_product_details."""
    if text.startswith("{"):
        variants = json.loads(text)["variants"].values()
        return tuple(
            (tuple(x.lower() for x in v["options"].values()), v["item_id"] if v["available"] else None)
            for v in variants
        )
    offers = re.findall(r"(?:^[^,]*? in |, )(.+?) (\d+|sold out)(?=, |$)", text)
    return tuple((tuple(o.split(", ")), None if number == "sold out" else number) for o, number in offers)


def read_profile(text: str) -> Profile:
    """An observation of get_user_details."""
    if text.startswith("{"):
        data = json.loads(text)
        return Profile({m["source"]: m["id"] for m in data["payment_methods"].values()}, tuple(data["orders"]))
    ids = re.findall(r"\b(?:credit_card|paypal|gift_card)_\d+", text)
    return Profile({i.rsplit("_", 1)[0]: i for i in ids}, tuple(re.findall(r"#W\d+", text)))


@dataclass(slots=True)
class Frame:
    """One request as the expert understands it: its kind and the slots that are known."""

    kind: str
    slots: dict[str, Any] = field(default_factory=dict)


_ADDRESS = re.compile(r"(\d+ [A-Z]\w+ \w+), ((?:Suite|Apt) \d+), ([A-Z]\w+), ([A-Z]{2}) (\d{5})")
_OTHERS = re.compile(
    r"\b(wife|husband|sister|brother|mother|father|son|daughter|friend|neighbou?r|flatmate|colleague|boss)\b"
    r"|\b(belongs to|on (the|his|her|their) account|another (customer|account)|system|admin|authori[sz]ed)\b",
    re.I,
)
_NAME = re.compile(r"\b([A-Z][a-z]+) ([A-Z][a-z]+)(?: and my zip code is|,) (\d{5})\b")


def read_identity(text: str) -> dict[str, str] | None:
    """First name, last name and zip code, where a sentence gives all three."""
    found = _NAME.search(_ADDRESS.sub(" ", text))
    return {"first_name": found[1], "last_name": found[2], "zip": found[3]} if found else None


def speaks_for_others(text: str) -> bool:
    """Whether a caller speaks of other people's things, or poses as the system: a reason to look twice."""
    return _OTHERS.search(text) is not None


def read_slots(text: str) -> dict[str, Any]:
    """Everything in a sentence that can fill a slot. ``described`` is an item that names an order."""
    slots: dict[str, Any] = {}
    address = _ADDRESS.search(text)
    if address:
        keys = ("address1", "address2", "city", "state", "zip")
        slots["address"] = {**dict(zip(keys, address.groups(), strict=True)), "country": "USA"}
        text = _ADDRESS.sub(" ", text)
    orders = re.findall(r"#W\d+", text)
    if orders:
        slots["order_id"] = orders[0]
    described = re.search(r"the order with the (.+?) in it", text)
    if described:
        slots["described"] = described[1]
        text = text.replace(described[0], " ")
    items = mentioned(text, PRODUCT_WORDS)
    if items:
        slots["items"] = sorted(items, key=text.lower().index)
        for word in items:
            text = re.sub(re.escape(word), " ", text, flags=re.IGNORECASE)
    sources = [SOURCE_WORDS[w] for w in SOURCE_WORDS if w in text.lower()]
    if sources:
        slots["payment"] = sources[0]
    reasons = mentioned(text, cat.REASONS)
    if reasons:
        slots["reason"] = reasons[0]
    option = re.search(r"\ban? ([a-z]+) one\b|\bthe same in (.+?)(?=, | please|\.(?: |$)|$)", text)
    if option:
        slots["to"] = [option[1] or option[2]]
    return slots


def read_requests(text: str) -> list[Frame]:
    """The requests that a caller's message brings up, in order."""
    frames = []
    for part in re.split(r"(?:I also|Also, I|I still|You forgot that I)(?= )", text):
        if "talk about" in part:
            frames.append(Frame("outside", {"topic": part.split("talk about", 1)[1].split(".")[0].strip()}))
            continue
        kinds = spoken_kinds(part)
        for kind in ("cancel", "return", "exchange", "modify_payment", "modify_address", "modify_items", "question"):
            if kind in kinds:
                frames.append(Frame(kind, read_slots(part)))
                break
    return frames
