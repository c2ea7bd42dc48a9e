"""A scripted retail agent: near-perfect, with bad habits that can be switched on to make imperfect demonstrations.

It reads only what any agent reads: the caller's words and the tools' observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.chat import Message
from muarl.domains.experts import Habits
from muarl.domains.retail import reading
from muarl.domains.retail.reading import Frame, Item
from muarl.domains.retail.wishes import WRITES
from muarl.domains.scripted import TRANSFER, TRANSFERRED, ScriptedExpert, second_thoughts

ASK: Mapping[str, str] = {
    "order_id": "Which order is it?",
    "items": "Which item is it?",
    "to": "Which option would you like?",
    "reason": "Is it no longer needed or ordered by mistake?",
    "payment": "Which payment method should I use?",
    "address": "What is the new address?",
}
NEEDS: Mapping[str, Sequence[str]] = {
    "cancel": ("reason",),
    "return": ("items",),
    "exchange": ("items", "to", "payment"),
    "modify_items": ("items", "to", "payment"),
    "modify_payment": ("payment",),
    "modify_address": ("address",),
    "question": ("items",),
}
PROPOSE: Mapping[str, str] = {
    "cancel": "I will cancel order {} {}",
    "return": "I will return from order {}: {}",
    "exchange": "I will exchange in order {}: {}",
    "modify_items": "I will change in order {}: {}",
    "modify_payment": "I will change the payment of order {} {}",
    "modify_address": "I will send order {} {}",
}
STATUS: Mapping[str, str] = {"return": "delivered", "exchange": "delivered"}


class RetailExpert(ScriptedExpert[Frame]):
    """One conversation's worth of expert. ``act`` takes the new messages and gives the next one."""

    def __init__(self, *, seed: int, habits: Habits = Habits()) -> None:
        super().__init__("retail", seed=seed, habits=habits)
        self._identity: dict[str, str] | None = None
        self._user_id: str | None = None
        self._not_found = False
        self._orders: dict[str, reading.Order] = {}
        self._variants: dict[str, reading.Variants] = {}
        self._profile: reading.Profile | None = None
        self._wary = False  # whether the caller has spoken of somebody else's things, or as somebody else

    # what came in

    def _listen(self, text: str) -> None:
        text = second_thoughts(text)
        self._wary = self._wary or reading.speaks_for_others(text)
        lower = text.lower()
        self._identity = reading.read_identity(text) or self._identity
        waiting, self._waiting = self._waiting, ""
        frames = reading.read_requests(text)
        frame = self._frames[0] if self._frames else None
        if waiting == "confirm" and frame is not None:
            if lower.startswith("yes"):
                frame.slots["confirmed"] = True
                return
            if lower.startswith(("never mind", "no, forget")):
                self._frames.pop(0)
                frame = None
            elif not frames or frames[0].kind == frame.kind or lower.startswith(("actually", "wait", "sorry")):
                self._update(frame, {**(frames[0].slots if frames else {}), **reading.read_slots(text)})
                return
        elif waiting == "to" and lower.startswith(("never mind", "no, forget")):
            self._frames.pop(0)
            frame = None
        if waiting in ASK and frame is not None and (not frames or ("I want" in text and waiting == "to")):
            self._update(frame, reading.read_slots(text))
            return
        if waiting == "reason" and frames and frames[0].kind != self._frames[0].kind:
            self._frames.pop(0)  # who gives no reason, and asks for something else, has moved on
        self._frames += [f for f in frames if not any(f.kind == g.kind and f.slots == g.slots for g in self._frames)]
        if len(self._frames) > 1 and frame is None and self._has("forget_second"):
            del self._frames[1:]

    def _update(self, frame: Frame, slots: Mapping[str, Any]) -> None:
        for slot, value in slots.items():
            if slot == "described" and "order_id" in frame.slots:
                continue
            frame.slots[slot] = value

    def _observe(self, message: Message) -> None:
        call, text = self._last, message.content or ""
        if call is None:
            return
        if message.error:
            if call.name == "find_user_id_by_name_zip" and not self._slipped:
                self._not_found, self._identity = True, None
            elif call.name in WRITES.values() and self._frames:
                self._frames.pop(0)
                self._outcome = "I cannot do that."
            elif call.name == "get_order_details" and not self._slipped and self._frames:
                self._frames[0].slots.pop("order_id", None)
            return
        if call.name.startswith("find_user_id"):
            self._user_id = text
        elif call.name == "get_order_details":
            self._orders[call.arguments["order_id"]] = reading.read_order(text)
        elif call.name == "get_product_details":
            self._variants[call.arguments["product_id"]] = reading.read_variants(text)
        elif call.name == "get_user_details":
            self._profile = reading.read_profile(text)
        elif call.name == TRANSFER:
            self._handed_over = True
        elif call.name in WRITES.values():
            self._orders.pop(call.arguments["order_id"], None)
            self._frames.pop(0)
            self._outcome = "Done."

    # what goes out

    def _decide(self) -> Message:
        if self._handed_over:
            return self._say(TRANSFERRED)
        if self._user_id is None:
            if self._identity is None:
                return self._say(
                    "I could not find you. Please check your name and zip code."
                    if self._not_found
                    else "May I have your name and zip code?"
                )
            return self._call(
                "find_user_id_by_name_zip", **{**self._identity, "zip": self._slip(self._identity["zip"])}
            )
        if self._transfer:
            return self._hand_over("The customer needs help.")
        if not self._frames:
            return self._what_else()
        frame = self._frames[0]
        if frame.kind == "outside":
            return self._hand_over(f"The customer wants to talk about {frame.slots['topic']}.")
        order = self._find_order(frame)
        if isinstance(order, Message):
            return order
        return self._serve(frame, order)

    def _find_order(self, frame: Frame) -> reading.Order | Message:
        """The order a request is about, or the next step towards it."""
        slots = frame.slots
        if "order_id" not in slots:
            if "described" not in slots:
                return self._say(ASK["order_id"], "order_id")
            if self._profile is None:
                return self._call("get_user_details", user_id=self._user_id)
            for order_id in self._profile.orders:
                if order_id not in self._orders:
                    return self._call("get_order_details", order_id=order_id)
                if any(i.name == slots["described"] for i in self._orders[order_id].items):
                    slots["order_id"] = order_id
                    break
            else:
                del slots["described"]
                return self._say(ASK["order_id"], "order_id")
        order_id = slots["order_id"]
        if self._wary and self._profile is None:
            return self._call("get_user_details", user_id=self._user_id)
        foreign = self._wary and self._profile is not None and order_id not in self._profile.orders
        if order_id not in self._orders and not foreign:
            return self._call("get_order_details", order_id=self._slip(order_id))
        if foreign or self._orders[order_id].owner not in ("", self._user_id):
            return self._answer(f"I cannot do that, order {order_id} is not yours.")
        return self._orders[order_id]

    def _serve(self, frame: Frame, order: reading.Order) -> Message:
        kind, slots = frame.kind, frame.slots
        if kind != "question" and order.status != STATUS.get(kind, "pending") and "forced" not in slots:
            if self._has("transfer_if_forbidden"):
                return self._hand_over("The customer asks for something that is not allowed.")
            if not self._has("try_forbidden"):
                return self._answer(f"I cannot do that, order {order.order_id} is {order.status}.")
            slots["forced"] = True
        for slot in NEEDS[kind]:
            if slot in slots:
                continue
            if slot == "items" and len(order.items) == 1:
                slots["items"] = [order.items[0].name]
            elif slot == "reason" and self._has("guess"):
                slots["reason"] = "no longer needed"
            elif slot == "payment" and kind != "modify_payment" and self._has("guess"):
                slots["payment"] = order.paid_with.rsplit("_", 1)[0]
            else:
                return self._say(ASK[slot], slot)
        items = [i for n in slots.get("items", ()) for i in order.items if i.name == n]
        if "items" in slots and len(items) != len(slots["items"]):
            del slots["items"]
            return self._say(ASK["items"], "items")
        if kind == "question":
            return self._answer(f"That is {items[0].name} {items[0].item_id} at ${items[0].price}.")
        return self._write(frame, order, items)

    def _write(self, frame: Frame, order: reading.Order, items: Sequence[Item]) -> Message:
        kind, slots = frame.kind, frame.slots
        arguments: dict[str, Any] = {"order_id": order.order_id}
        parts = []
        if items and "items" in NEEDS[kind]:
            arguments["item_ids"] = [i.item_id for i in items]
            parts.append(" and ".join(f"{i.name} {i.item_id}" for i in items))
        if "to" in NEEDS[kind]:
            product = items[0].product_id
            if product not in self._variants:
                return self._call("get_product_details", product_id=product)
            new = self._wanted(items[0], slots["to"][0], self._variants[product])
            if new is None:
                return self._not_available(frame, items[0])
            arguments["new_item_ids"] = [new]
            parts.append(f"{'for' if kind == 'exchange' else 'to'} {slots['to'][0]} {new}")
        if "reason" in NEEDS[kind]:
            arguments["reason"] = slots["reason"]
            parts.append(f"({slots['reason']})")
        if "address" in NEEDS[kind]:
            a = slots["address"]
            arguments |= a
            parts.append(f"to {a['address1']}, {a['address2']}, {a['city']}, {a['state']} {a['zip']}")
        if kind in ("return", "exchange", "modify_items", "modify_payment"):
            source = slots.get("payment", order.paid_with.rsplit("_", 1)[0])
            if order.paid_with.startswith(source):
                method = order.paid_with
            elif self._profile is None:
                return self._call("get_user_details", user_id=self._user_id)
            else:
                method = self._profile.payments.get(source, "")
                if not method:
                    del slots["payment"]
                    return self._say(ASK["payment"], "payment")
            arguments["payment_method_id"] = method
            # The method's name stands right before its id, as in the compact observations.
            verb = {"return": "refund to", "modify_payment": "to"}.get(kind, "pay with")
            parts.append(f"{verb} {method.rsplit('_', 1)[0].replace('_', ' ')} {method}")
        if "confirmed" not in slots and not self._has("skip_confirmation"):
            return self._say(f"{PROPOSE[kind].format(order.order_id, ' '.join(parts))}. Shall I go ahead?", "confirm")
        return self._call(WRITES[kind], **arguments)

    def _wanted(self, item: Item, to: str, variants: reading.Variants) -> str | None:
        """The id of the available variant that differs from the item in this one option, or None."""
        for options, item_id in variants:
            changed = [o for o in options if o not in item.options]
            if to in options and len(changed) <= 1 and item_id is not None:
                return item_id
        return None

    def _not_available(self, frame: Frame, item: Item) -> Message:
        wanted = frame.slots.pop("to")[0]
        if self._has("transfer_if_unavailable"):
            return self._hand_over("The wanted option is not available.")
        variants = self._variants[item.product_id]
        offers = [o for options, number in variants if number is not None for o in options if o not in item.options]
        offers = list(dict.fromkeys(o for o in offers if o != wanted))
        offered = f"Available are {' and '.join(offers)} ones. Which one would you like?"
        return self._say(f"I am sorry, {wanted} is not available. {offered}", "to")
