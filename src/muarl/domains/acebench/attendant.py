"""What the scripted expert does whatever it is asked: hear, observe, look up, ask, propose, refuse.

It reads only what any agent reads: the caller's words and the tools' observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.chat import Message, ToolCall
from muarl.domains.acebench import reading
from muarl.domains.acebench.gold import WRITES
from muarl.domains.acebench.reading import Frame
from muarl.domains.experts import Habits
from muarl.domains.scripted import TRANSFER, TRANSFERRED, SlotExpert

ASK: Mapping[str, str] = {
    "to": "Who should get it?",
    "text": "What should the message say?",
    "room": "Memory is full, which message would you like to delete?",
    "number": "Which message is it?",
    "from": "Whose message is it?",
    "title": "What is the title?",
    "note": "What should the reminder say?",
    "time": "At what time?",
    "merchant": "Which merchant is it?",
    "product": "Which dish would you like?",
    "quantity": "How many would you like?",
    "reservation_id": "Which reservation is it?",
    "origin": "From where do you fly?",
    "destination": "Where do you fly to?",
    "via": "In which city would you like to change?",
    "date": "Which date would you like?",
    "cabin": "Which cabin would you like?",
    "bags": "How many bags do you have?",
    "payment": "Cash or bank?",
    "reason": "What is the reason?",
}
PROPOSE: Mapping[str, str] = {
    "send": 'I will send {} the message "{}"',
    "delete": "I will delete message {}",
    "remind": 'I will add the reminder "{}" at {} saying "{}"',
    "forget": 'I will delete the reminder "{}"',
    "order": "I will order {} x {} at {} yuan from {}",
    "book": "I will book {} to {} on {} {} in {} at {} yuan, with {}, pay with {}",
    "connect": "I will book {} to {} on {} {} in {} at {} yuan, with {} on each flight, pay with {}",
    "move": "I will change {} to {} {}",
    "cabin": "I will change {} to {}, pay with {}",
    "bags": "I will add {} to {}, pay with {}",
    "cancel": "I will cancel {}",
}
REFUSE: Mapping[str, str] = {
    "snoop": "I cannot show messages of other people.",
    "lend": "I cannot use accounts of other people.",
    "fewer_bags": "I cannot remove bags.",
    "destination": "I cannot change the destination.",
    "compensation": "I cannot offer compensation for this.",
}
IDENTITY: Mapping[tuple[str, ...], str] = {
    ("name",): "May I have your name?",
    ("password",): "May I have your password?",
    ("name", "password"): "May I have your name and password?",
    ("user_id", "password"): "May I have your user id and password?",
}
WRONG_PASSWORD = "The password is not right. Please check your password."
WRONG_TRAVELLER = "I could not find you. Please check your user id and password."
GUESSES: Mapping[str, Any] = {"quantity": 1, "payment": "bank", "bags": 1, "room": "the oldest message"}
"""What a guessing expert takes for granted."""

FIXES: Mapping[str, str] = {"device": "login_device", "wifi": "turn_on_wifi"}
"""What mends a refusal of the phone."""

CHANGING = ("get_earliest", "get_latest", "search_", "view_", "get_reservation_details")
"""What look-ups begin with whose answers a write may change."""


class Attendant(SlotExpert[Frame]):
    """One conversation: ``act`` takes the new messages and gives the next one; ``_serve`` is the subclass's."""

    ask, propose, refuse, guesses, writes = ASK, PROPOSE, REFUSE, GUESSES, WRITES
    caller = "caller"
    plain = "room"

    def __init__(self, *, seed: int, habits: Habits = Habits()) -> None:
        super().__init__("acebench", seed=seed, habits=habits)
        self._who: dict[str, str] = {}
        self._not_found = ""
        self._seen: dict[tuple[str, ...], Any] = {}
        self._fix = ""
        self._open = False
        self._total = ""
        self._detailed = False

    # what came in

    def _hear_who(self, text: str) -> None:
        self._who |= reading.read_identity(text)

    def _requests_in(self, text: str) -> list[Frame]:
        return reading.read_requests(text)

    def _slots_in(self, text: str) -> Mapping[str, Any]:
        return reading.read_slots(text)

    def _take_up(self, frames: Sequence[Frame]) -> None:
        """Remember requests; one that tells more of a request that is known already only adds to it."""
        for frame in frames:
            for known in self._frames:
                if known.kind == frame.kind and all(known.slots.get(k, v) == v for k, v in frame.slots.items()):
                    known.slots.update(frame.slots)
                    break
            else:
                self._frames.append(frame)

    def _update(self, frame: Frame, slots: Mapping[str, Any]) -> None:
        super()._update(frame, slots)
        frame.settle()

    def _observe(self, message: Message) -> None:
        call, text = self._last, message.content or ""
        if call is None:
            return
        self._detailed = self._detailed or text.startswith(("{", "["))
        why = reading.refusal(text, error=message.error)
        if why is not None and why in FIXES:
            self._fix = FIXES[why]
        elif call.name in FIXES.values():
            self._fix = ""
        elif call.name == TRANSFER:
            self._handed_over = True
        elif call.name in ("login_food_platform", "get_user_details") and why not in (None, "known"):
            if not self._slipped:
                self._who.pop("password", None)
                self._not_found = WRONG_PASSWORD if call.name == "login_food_platform" else WRONG_TRAVELLER
        elif call.name == "login_food_platform":
            self._open = True
        elif call.name == "get_user_details":
            self._seen[call.name, call.arguments["user_id"]] = (text, why)
        elif call.name in WRITES.values():
            self._wrote(call, text, why)
        else:
            self._seen[key_of(call)] = (text, why)

    def _wrote(self, call: ToolCall, text: str, why: str | None) -> None:
        """What became of a write."""
        frame = self._frames[0] if self._frames else Frame("")
        if why is None:
            self._succeeded(call, text, frame)
        elif why in ("full", "balance", "missing", "account"):
            self._open = self._open and why != "account"
            if why != "account":
                frame.slots["hitch"] = why
                frame.slots.pop("confirmed", None) if why != "full" else None
        elif self._frames:
            self._frames.pop(0)
            self._outcome = "I cannot do that."

    def _succeeded(self, call: ToolCall, text: str, frame: Frame) -> None:
        self._seen = {key: seen for key, seen in self._seen.items() if not key[0].startswith(CHANGING)}
        if call.name == "delete_message" and frame.kind != "delete":
            frame.slots.pop("hitch", None)
            frame.slots["room_made"] = True
            return
        if call.name == "add_food_delivery_order":
            self._total = reading.read_total(text)
        if call.name == "reserve_flight" and len(frame.slots.get("numbers", ())) > 1:
            frame.slots["numbers"] = frame.slots["numbers"][1:]
            return
        if self._frames:
            self._frames.pop(0)
        self._outcome = "Done."

    # what goes out

    def _decide(self) -> Message:
        if self._handed_over:
            return self._say(TRANSFERRED)
        if self._fix:
            return self._call(self._fix)
        if not self._frames:
            return self._what_else()
        if self._transfer:
            return self._hand_over("The caller needs help.")
        return self._serve(self._frames[0])

    def _serve(self, frame: Frame) -> Message:
        """The next step towards what the first request asks for."""
        raise NotImplementedError

    # steps that requests share

    def _identity(self, *slots: str) -> Message | None:
        """A question about who the caller is, None if that is known."""
        missing = tuple(s for s in slots if s not in self._who)
        if not missing:
            return None
        said, self._not_found = self._not_found, ""
        return self._say(said or IDENTITY[slots if "user_id" in missing else missing], "identity")

    def _look(self, name: str, **arguments: Any) -> Message | tuple[str, str | None]:
        """An observation (its text, and what kept the tool from answering), or the call that brings it."""
        known = self._seen.get((name, *map(str, arguments.values())))
        return self._call(name, **arguments) if known is None else known

    def _try_anyway(self, frame: Frame) -> bool:
        """Whether a forbidden request is served all the same."""
        if "forced" not in frame.slots:
            frame.slots["forced"] = self._has("try_forbidden")
        return bool(frame.slots["forced"])

    def _unavailable(self, slots: dict[str, Any], slot: str, text: str) -> Message:
        """What was asked for cannot be had: another ``slot`` is asked for."""
        if self._has("transfer_if_unavailable"):
            return self._hand_over("What the caller wants is not available.")
        slots.pop(slot, None)
        slots.pop("hitch", None)
        slots.pop("confirmed", None)
        return self._say(text, slot)


def key_of(call: ToolCall) -> tuple[str, ...]:
    """What an observation is kept under."""
    return (call.name, *map(str, call.arguments.values()))
