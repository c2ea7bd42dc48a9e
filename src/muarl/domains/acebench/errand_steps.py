"""What the scripted expert does about a phone's requests, one step at a time."""

from __future__ import annotations

import re
from typing import Any

from muarl.chat import Message
from muarl.domains.acebench import reading
from muarl.domains.acebench.attendant import Attendant
from muarl.domains.acebench.errands import REQUEST, TASKS
from muarl.domains.acebench.reading import Frame

NEED_NAME = ("send", "read", "snoop", "lend")
"""Requests for which one must know who the caller is."""


class ErrandSteps(Attendant):
    """Messages, reminders, food."""

    def _errand(self, frame: Frame) -> Message:
        kind, slots = frame.kind, frame.slots
        by_name = "source" in slots or re.match("the message (from|about) ", slots.get("which", ""))
        if kind in ("order", "balance", "todo"):
            asked = self._identity("name", "password")
        elif kind in NEED_NAME or (kind in ("delete", "remind") and by_name):
            asked = self._identity("name")
        else:
            asked = None
        if asked is not None:
            return asked
        return {
            "send": self._send,
            "delete": self._delete,
            "remind": self._remind,
            "read": self._read,
            "snoop": self._snoop,
            "order": self._order,
            "lend": self._lend,
            "todo": self._todo,
            "note": self._note,
            "forget": self._forget,
            "balance": self._balance,
        }[kind](frame)

    # messages

    def _send(self, frame: Frame) -> Message:
        slots = frame.slots
        if slots.get("hitch") == "missing":
            stranger = slots["to"]
            return self._unavailable(slots, "to", f"I am sorry, I cannot find {stranger}. Who should get it?")
        missing = self._missing(slots, "to", "text")
        if missing is not None:
            return missing
        text = slots["text"].replace("()", self._total) if self._total else slots["text"]
        if slots.get("hitch") == "full":
            return self._make_room(slots)
        me = self._who["name"]
        return self._write(frame, (slots["to"], text), sender_name=me, receiver_name=slots["to"], message=text)

    def _make_room(self, slots: dict[str, Any]) -> Message:
        if "room" not in slots:
            if "which" in slots:
                slots["room"] = slots.pop("which")
            else:
                missing = self._missing(slots, "room")
                if missing is not None:
                    return missing
        found = self._number(slots["room"])
        if isinstance(found, Message):
            return found
        if found is None:
            del slots["room"]
            return self._ask("room")
        return self._call("delete_message", message_id=found)

    def _number(self, which: str) -> int | Message | None:
        """The number of the message that is meant, None if there is none, or the next step towards it."""
        kind, me = which.removeprefix("the ").removeprefix("message ").split(" ")[0], self._who.get("name", "")
        if kind in ("oldest", "latest"):
            look = self._look("get_earliest_message_id" if kind == "oldest" else "get_latest_message_id")
        elif kind == "from":
            look = self._look("view_messages_between_users", sender_name=which.split("from ")[1], receiver_name=me)
        else:
            look = self._look("search_messages", user_name=me, keyword=which.split("about ")[1])
        if isinstance(look, Message):
            return look
        text, why = look
        if why is not None:
            return None
        return reading.read_number(text) if kind in ("oldest", "latest") else reading.read_messages(text)[0][0]

    def _delete(self, frame: Frame) -> Message:
        slots = frame.slots
        if "which" not in slots:
            return self._ask("number")
        found = self._number(slots["which"])
        if isinstance(found, Message):
            return found
        if found is None:
            del slots["which"]
            return self._say("I cannot find that message. Which message is it?", "number")
        return self._write(frame, (found,), message_id=found)

    def _read(self, frame: Frame) -> Message:
        slots = frame.slots
        missing = self._missing(slots, "from")
        if missing is not None:
            return missing
        look = self._look(
            "view_messages_between_users", sender_name=slots["from"], receiver_name=slots.get("reader", self._me())
        )
        if isinstance(look, Message):
            return look
        text, why = look
        if why is not None:
            return self._answer(f"There is no message from {slots['from']}.")
        return self._answer(f'{slots["from"]} says "{reading.read_messages(text)[0][1]}".')

    def _me(self) -> str:
        return self._who["name"]

    def _snoop(self, frame: Frame) -> Message:
        if self._me() in (frame.slots.get("from"), frame.slots.get("reader")) or self._try_anyway(frame):
            return self._read(frame)
        return self._refuse(frame)

    # reminders

    def _remind(self, frame: Frame) -> Message:
        slots = frame.slots
        if "source" in slots and "note" not in slots:
            look = self._look("view_messages_between_users", sender_name=slots["source"], receiver_name=self._me())
            if isinstance(look, Message):
                return look
            if look[1] is not None:
                del slots["source"]
                return self._ask("note")
            slots["note"] = reading.read_messages(look[0])[0][1]
        missing = self._missing(slots, "title", "time", "note")
        if missing is not None:
            return missing
        proposal = slots["title"], slots["time"], slots["note"]
        return self._write(frame, proposal, title=slots["title"], description=slots["note"], time=slots["time"])

    def _reminder(self, slots: dict[str, Any]) -> reading.Reminder | Message:
        missing = self._missing(slots, "title")
        if missing is not None:
            return missing
        look = self._look("view_reminder_by_title", title=slots["title"])
        if isinstance(look, Message):
            return look
        if look[1] is not None:
            del slots["title"]
            return self._say("I cannot find that reminder. What is the title?", "title")
        return reading.read_reminder(look[0])

    def _note(self, frame: Frame) -> Message:
        found = self._reminder(frame.slots)
        return found if isinstance(found, Message) else self._answer(f'It says "{found.note}".')

    def _forget(self, frame: Frame) -> Message:
        found = self._reminder(frame.slots)
        if isinstance(found, Message):
            return found
        return self._write(frame, (found.title,), reminder_id=found.number)

    def _todo(self, frame: Frame) -> Message:
        """The tasks become requests of their own."""
        found = self._reminder(frame.slots)
        if isinstance(found, Message):
            return found
        tasks = TASKS.match(found.note)
        if tasks is None:
            return self._answer(f'It says "{found.note}".')
        order = {"quantity": int(tasks[1]), "product": tasks[2], "merchant": tasks[3]}
        self._frames[:1] = [Frame("order", order), Frame("send", {"to": tasks[4], "text": tasks[5]})]
        return self._errand(self._frames[0])

    # food

    def _log_in(self) -> Message | None:
        if self._open:
            return None
        return self._call("login_food_platform", username=self._me(), password=self._slip(self._who["password"]))

    def _balance(self, frame: Frame) -> Message:
        look = self._log_in() or self._look("check_balance", user_name=self._me())
        if isinstance(look, Message):
            return look
        return self._answer(f"Your balance is {look[0].removesuffix('.0')} yuan.")

    def _lend(self, frame: Frame) -> Message:
        if frame.slots.get("account") == self._me():
            frame.kind = "order"
            return self._errand(frame)
        if self._try_anyway(frame):
            frame.kind = "order"
            return self._errand(frame)
        return self._refuse(frame)

    def _order(self, frame: Frame) -> Message:
        slots = frame.slots
        if "source" in slots and "merchant" not in slots:
            look = self._look("view_messages_between_users", sender_name=slots["source"], receiver_name=self._me())
            if isinstance(look, Message):
                return look
            texts = [] if look[1] is not None else [text for _, text in reading.read_messages(look[0])]
            found = next((m for m in map(REQUEST.fullmatch, texts) if m), None)
            if found is not None:
                slots |= {"quantity": int(found[1]), "product": found[2], "merchant": found[3]}
        step = self._log_in() or self._missing(slots, "merchant")
        if step is not None:
            return step
        look = self._look("get_products", merchant_name=slots["merchant"])
        if isinstance(look, Message):
            return look
        if look[1] is not None:
            gone = slots["merchant"]
            return self._unavailable(slots, "merchant", f"I am sorry, {gone} is not available. Which other merchant?")
        menu = reading.read_menu(look[0])
        if "cheapest" in slots:
            slots["product"] = min(menu, key=lambda dish: float(menu[dish]))
        missing = self._missing(slots, "product")
        if missing is not None:
            return missing
        if slots["product"] not in menu:
            offers = " and ".join(menu)
            sorry = f"I am sorry, {slots['product']} is not available. There is {offers}."
            return self._unavailable(slots, "product", f"{sorry} Which dish would you like?")
        if slots.get("hitch") == "balance":
            return self._unavailable(slots, "product", "Insufficient balance. Which other dish would you like?")
        missing = self._missing(slots, "quantity")
        if missing is not None:
            return missing
        dish = slots["product"]
        return self._write(
            frame,
            (slots["quantity"], dish, menu[dish], slots["merchant"]),
            username=self._me(),
            merchant_name=slots["merchant"],
            items=[{"product": dish, "quantity": slots["quantity"]}],
        )
