"""What checks of tasks must know of the shop: what the policy asks beyond its tools, what scenarios must settle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from muarl.domains.auditing import Occasion, Record
from muarl.domains.task_rules import Arguments, Breach, OpenChoice, TaskRules, settles

_SWAPS = frozenset({"exchange_delivered_order_items", "modify_pending_order_items"})
_PAID = _SWAPS | {"return_delivered_order_items", "modify_pending_order_payment"}

_MISTAKE = re.compile(r"mistake|mistaken|accident|wrong (?:item|order)|did(?:n.t| not) mean", re.IGNORECASE)
_NO_NEED = re.compile(
    r"no longer|no more need|(?:not|n.t|never) (?:need|want)|changed? (?:your|my) mind|any ?more|financial|too (?:much|"
    r"expensive)|cheaper|regret",
    re.IGNORECASE,
)
_REASONS = {"no longer needed": _NO_NEED, "ordered by mistake": _MISTAKE}
_RANKED = re.compile(
    r"\b(?:cheap|expensive|cost|price|larg|bigg?|small|high|low|long|short|few|less|more|most|least|max|min|best|light"
    r"|heav|fanc|bright|similar price)\w*",
    re.IGNORECASE,
)
"""Words that rank the options, so that no name of an option need stand in the text."""
_BEST = re.compile(
    r"\b(?:cheapest|lowest|highest|largest|biggest|smallest|longest|shortest|fewest|easiest|fanciest|lightest|brightest"
    r"|least|most|maxim\w+|minim\w+|prefer|do(?:n.t| not) care)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[a-z0-9]+")


def _order(occasion: Occasion) -> tuple[Record, Mapping[str, Record]] | None:
    order = occasion.of("orders", "order_id")
    user = None if order is None else occasion.record("users", order["user_id"])
    return None if order is None or user is None else (order, user["payment_methods"])


def _original(order: Record) -> str | None:
    return next((p["payment_method_id"] for p in order["payment_history"] if p["transaction_type"] == "payment"), None)


def _payment(original: bool) -> Any:
    def others(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
        found = _order(occasion)
        chosen = str(occasion.arguments.get("payment_method_id"))
        if found is None or chosen not in found[1] or (_original(found[0]) == chosen) != original:
            return
        if original and re.search(
            r"original|same (?:payment|method|card)|paid (?:for )?(?:it )?with", occasion.said, re.I
        ):
            return
        for name, method in found[1].items():
            if name != chosen and not settles(occasion.said, found[1][chosen], method):
                yield {**occasion.arguments, "payment_method_id": name}, f"{name} instead of {chosen}"

    return others


def _pay_with(occasion: Occasion) -> str | None:
    found = _order(occasion)
    method = None if found is None else found[1].get(str(occasion.arguments.get("payment_method_id")))
    if method is None:
        return None
    kind, brand, four = str(method["source"]).replace("_", " "), method.get("brand"), method.get("last_four")
    told = f"{brand} {kind} ending in {four}" if four else "PayPal account" if kind == "paypal" else kind
    return f"For payments and refunds of order {occasion.arguments['order_id']}, you want to use your {told}."


def _reason(silent: bool) -> Any:
    """``silent``: whether the scenario gives no reason and gold takes the one that says least; else where it gives
    both, or only the other one."""

    def others(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
        gold = str(occasion.arguments.get("reason"))
        text = _about(occasion.said, str(occasion.arguments.get("order_id")))
        told = {name for name, words in _REASONS.items() if words.search(text)}
        if told == {gold} or silent != (not told and gold == "no longer needed"):
            return
        for other in _REASONS.keys() - {gold}:
            yield {**occasion.arguments, "reason": other}, f"the reason {other!r} instead of {gold!r}"

    return others


def _about(text: str, order_id: str) -> str:
    """What a text says of an order: the lines and sentences that name it, else all of it."""
    found = [part for part in re.split(r"(?<=[.!?])\s+|\n+", text) if order_id in part]
    return " ".join(found) or text


def _say_reason(occasion: Occasion) -> str | None:
    reason = {"no longer needed": "you no longer need it", "ordered by mistake": "you ordered it by mistake"}.get(
        str(occasion.arguments.get("reason"))
    )
    return None if reason is None else f"If you are asked why you cancel {occasion.arguments['order_id']}: {reason}."


def _variant(occasion: Occasion, item_id: str) -> tuple[Record, Record] | None:
    """A variant with its product."""
    kit = occasion.world.toolkit("assistant") if occasion.world is not None else None
    for _, product in () if kit is None else kit.db["products"].scan():
        if item_id in product["variants"]:
            return product["variants"][item_id], product
    return None


def _told(text: str, option: str, value: Any, product: Record) -> bool:
    """Whether a text names an option, or a word of its value that no other value of that option has."""
    low = text.lower()
    words = set(_WORD.findall(low))
    heads = [w for w in _WORD.findall(option.lower()) if len(w) > 3]
    if any(word.startswith(head[:5]) or (len(word) > 4 and head.startswith(word)) for head in heads for word in words):
        return True
    values = {str(v["options"].get(option)) for v in product["variants"].values()}
    mine = set(_WORD.findall(str(value).lower()))
    rest = {w for other in values - {str(value)} for w in _WORD.findall(other.lower())}
    squeezed = re.sub(r"[^a-z0-9]", "", low)
    plain = re.sub(r"[^a-z0-9]", "", str(value).lower())
    return bool((mine - rest) & words) or mine <= words or (len(plain) > 3 and plain in squeezed)


def _swapped(occasion: Occasion) -> Iterator[tuple[str, str, Record, Record, Record]]:
    """(old id, new id, old options, new options, product) of each swap."""
    for old_id, new_id in zip(
        occasion.arguments.get("item_ids") or (), occasion.arguments.get("new_item_ids") or (), strict=False
    ):
        old, new = _variant(occasion, str(old_id)), _variant(occasion, str(new_id))
        if old is not None and new is not None and old[1]["product_id"] == new[1]["product_id"]:
            yield str(old_id), str(new_id), old[0]["options"], new[0]["options"], old[1]


def _rivals(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
    """Other variants that have every option that the scenario names, and keep as much of the old item as the gold."""
    if _RANKED.search(occasion.said):
        return
    for old_id, new_id, old, new, product in _swapped(occasion):
        named = {o for o, v in new.items() if _told(occasion.said, o, v, product) and v != old.get(o)}
        kept = sum(new[o] == old.get(o) for o in new)
        for other_id, other in product["variants"].items():
            options = other["options"]
            if other_id in (old_id, new_id) or not other["available"] or any(options.get(o) != new[o] for o in named):
                continue
            if sum(options.get(o) == old.get(o) for o in options) >= kept:
                items = [other_id if i == new_id else i for i in occasion.arguments["new_item_ids"]]
                told = ", ".join(f"{o} {v}" for o, v in options.items() if v != new.get(o))
                yield {**occasion.arguments, "new_item_ids": items}, f"{product['name']} {other_id} ({told}) as well"


def _unmentioned(occasion: Occasion) -> Iterator[tuple[Arguments, str]]:
    """Gold items that differ from the old ones in an option of which the scenario says nothing, and which no "cheapest"
    or the like decides."""
    if _BEST.search(occasion.said):
        return
    for old_id, _, old, new, product in _swapped(occasion):
        silent = [o for o, v in new.items() if v != old.get(o) and not _told(occasion.said, o, v, product)]
        known = [o for o, v in new.items() if v != old.get(o) and o not in silent]
        if silent and known:
            told = ", ".join(f"{o} from {old.get(o)} to {new[o]}" for o in silent)
            items = [i for i in occasion.arguments["item_ids"] if i != old_id]
            yield {**occasion.arguments, "item_ids": items}, f"{product['name']}: leave it, since gold changes {told}"


def _accept(occasion: Occasion) -> str | None:
    said = []
    for _, _, old, new, product in _swapped(occasion):
        said += [
            f"the {product['name']} with {o} {v}"
            for o, v in new.items()
            if v != old.get(o) and not _told(occasion.said, o, v, product)
        ]
    return f"You accept {' and '.join(said)} where nothing else fits your wishes." if said else None


def _same_item(occasion: Occasion) -> Breach | None:
    given = occasion.arguments
    for old_id, new_id in zip(given.get("item_ids") or (), given.get("new_item_ids") or (), strict=False):
        if old_id == new_id:
            return Breach(f"item {old_id} is to be replaced by itself, and the policy asks for another option")
    return None


def _elsewhere(occasion: Occasion) -> Breach | None:
    found = _order(occasion)
    chosen = str(occasion.arguments.get("payment_method_id"))
    if found is None or chosen not in found[1]:
        return None
    original = {p["payment_method_id"] for p in found[0]["payment_history"] if p["transaction_type"] == "payment"}
    if chosen in original or found[1][chosen]["source"] == "gift_card":
        return None
    return Breach(f"{chosen} is neither the original payment method of {found[0]['order_id']} nor a gift card")


RETAIL_TASKS = TaskRules(
    breaches={
        "exchange_delivered_order_items": _same_item,
        "modify_pending_order_items": _same_item,
        "return_delivered_order_items": _elsewhere,
    },
    choices=(
        OpenChoice("payment", _PAID, _payment(False), _pay_with),
        OpenChoice("payment", _PAID, _payment(True), _pay_with, weight="note"),
        OpenChoice("reason", frozenset({"cancel_pending_order"}), _reason(False), _say_reason),
        OpenChoice("reason", frozenset({"cancel_pending_order"}), _reason(True), _say_reason, weight="note"),
        OpenChoice("item", _SWAPS, _rivals),
        OpenChoice("unmentioned", _SWAPS, _unmentioned, _accept, tried=False),
    ),
    people=(
        "users",
        {"email": "email", "first_name": "name.first_name", "last_name": "name.last_name", "zip": "address.zip"},
    ),
)
