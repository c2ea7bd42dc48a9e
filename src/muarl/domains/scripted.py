"""What the scripted experts share: they hear, observe, and then take one step, with bad habits if they have any.

They read only what any agent reads: the caller's words and the tools' observations. What they say and do depends on the
order in which they draw from their random numbers, so that a change of that order changes every demonstration.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from muarl.chat import Message, ToolCall
from muarl.domains.experts import Habits

TRANSFER = "transfer_to_human_agents"
TRANSFERRED = "You are being transferred to a human agent. Please hold on."


_TAKEN_BACK = re.compile(r"yes\b.*?\b(?:wait|stop|hold on|scratch that)\b[^.!?]*[.!?]\s*(?=\S)", re.I | re.S)


def second_thoughts(text: str) -> str:
    """What a caller says who takes a yes back in the same breath, without that yes; any other text as it is."""
    return _TAKEN_BACK.sub("", text, count=1) if _TAKEN_BACK.match(text) else text


class Frame(Protocol):
    """One request as an expert understands it: its kind and the slots that are known."""

    kind: str
    slots: dict[str, Any]


AnyFrame = TypeVar("AnyFrame")
SomeFrame = TypeVar("SomeFrame", bound=Frame)


class ScriptedExpert(Generic[AnyFrame]):
    """One conversation's worth of expert. A subclass writes ``_listen``, ``_observe`` and ``_decide``."""

    def __init__(self, name: str, *, seed: int, habits: Habits) -> None:
        """``name``: what sets its random numbers apart from other domains'."""
        self._rng = random.Random(f"{name} expert {seed}")
        self._habits = habits
        self._frames: list[AnyFrame] = []  # what the caller wants, the request that is being served first
        self._last: ToolCall | None = None  # the call whose observation is awaited
        self._waiting = ""  # what the caller was asked for
        self._outcome = ""  # what became of a request, not said yet
        self._calls = 0
        self._slipped = False  # whether the last call was wrong on purpose
        self._handed_over = False
        self._transfer = self._has("needless_transfer")

    def _has(self, habit: str) -> bool:
        return self._rng.random() < getattr(self._habits, habit)

    def act(self, new: Sequence[Message]) -> Message:
        """Take in what came (user and tool messages) and answer: one call or one sentence, never both."""
        for message in new:
            if message.role == "user":
                self._listen(message.content or "")
            elif message.role == "tool":
                self._observe(message)
        return self._decide()

    def _listen(self, text: str) -> None:
        """Take in what the caller says."""
        raise NotImplementedError

    def _observe(self, message: Message) -> None:
        """Take in what a tool answers."""
        raise NotImplementedError

    def _decide(self) -> Message:
        """The next step."""
        raise NotImplementedError

    def _say(self, text: str, waiting: str = "") -> Message:
        self._waiting, self._last = waiting, None
        return Message("assistant", text)

    def _call(self, tool: str, /, **arguments: Any) -> Message:
        self._calls += 1
        self._last = ToolCall(f"call_{self._calls}", tool, arguments)
        return Message("assistant", None, (self._last,))

    def _hand_over(self, why: str) -> Message:
        return self._call(TRANSFER, summary=why)

    def _slip(self, value: str) -> str:
        """An id, number or password, now and then a wrong one: the tool's error is then seen and mended."""
        self._slipped = not self._slipped and self._has("slip")
        if not self._slipped:
            return value
        return value[:-1] + (str((int(value[-1]) + 1) % 10) if value[-1:].isdigit() else "")

    def _answer(self, text: str) -> Message:
        """The last word on the first request."""
        self._frames.pop(0)
        return self._say(text if self._frames else f"{text} Anything else?")

    def _what_else(self) -> Message:
        """What is said when nothing is left to be done."""
        outcome, self._outcome = self._outcome, ""
        return self._say(f"{outcome} Anything else?" if outcome else "How can I help you?")


class SlotExpert(ScriptedExpert[SomeFrame]):
    """An expert that asks for the slots of a request one by one, proposes what it will write, and waits for a yes.

    ``ask``, ``propose``, ``refuse``: what it says, by slot and by kind. ``guesses``: what one that guesses takes for
    granted. ``writes``: the tool by kind. ``caller``: what it calls the other side. ``plain``: a slot whose value may
    sound like a request of its own.
    """

    ask: ClassVar[Mapping[str, str]]
    propose: ClassVar[Mapping[str, str]]
    refuse: ClassVar[Mapping[str, str]]
    guesses: ClassVar[Mapping[str, Any]]
    writes: ClassVar[Mapping[str, str]]
    caller: ClassVar[str] = "customer"
    plain: ClassVar[str]

    # what came in

    def _listen(self, text: str) -> None:
        text = second_thoughts(text)
        self._hear_who(text)
        lower = text.lower()
        waiting, self._waiting = self._waiting, ""
        frames = self._requests_in(text)
        frame = self._frames[0] if self._frames else None
        if frame is not None and waiting and lower.startswith(("never mind", "no, forget")):
            self._frames.pop(0)
            frame = None
        elif waiting == "confirm" and frame is not None:
            if lower.startswith("yes"):
                frame.slots["confirmed"] = True
                return
            if not frames or frames[0].kind == frame.kind or lower.startswith(("actually", "wait", "sorry")):
                self._update(frame, {**(frames[0].slots if frames else {}), **self._slots_in(text)})
                return
        if waiting in self.ask and frame is not None:
            if not frames or frames[0].kind == frame.kind or waiting == self.plain:
                self._update(frame, self._slots_in(text))
                return
        self._take_up(frames)
        if len(self._frames) > 1 and frame is None and self._has("forget_second"):
            del self._frames[1:]

    def _hear_who(self, text: str) -> None:
        """Take in who is calling, if a text says so."""
        raise NotImplementedError

    def _requests_in(self, text: str) -> list[SomeFrame]:
        raise NotImplementedError

    def _slots_in(self, text: str) -> Mapping[str, Any]:
        raise NotImplementedError

    def _take_up(self, frames: Sequence[SomeFrame]) -> None:
        """Remember requests, except those that are known already."""
        known = [(f.kind, f.slots) for f in self._frames]
        self._frames += [f for f in frames if (f.kind, f.slots) not in known]

    def _update(self, frame: SomeFrame, slots: Mapping[str, Any]) -> None:
        """Note what was said about a request. Who has given a reservation's number need not describe it."""
        for slot, value in slots.items():
            if slot != "described" or "reservation_id" not in frame.slots:
                frame.slots[slot] = value

    # what goes out

    def _ask(self, slot: str) -> Message:
        return self._say(self.ask[slot], slot)

    def _missing(self, slots: dict[str, Any], *names: str) -> Message | None:
        """A question about the first slot that is not known, guesses put aside; None if all are."""
        for name in names:
            if name not in slots:
                if not self._may_guess(slots, name) or not self._has("guess"):
                    return self._ask(name)
                slots[name] = self.guesses[name]
        return None

    def _may_guess(self, slots: Mapping[str, Any], name: str) -> bool:
        return name in self.guesses

    def _refuse(self, frame: SomeFrame) -> Message:
        """What is done about a request that the policy forbids."""
        if self._has("transfer_if_forbidden"):
            return self._hand_over(f"The {self.caller} asks for something that is not allowed.")
        return self._answer(self.refuse[frame.kind])

    def _write(self, frame: SomeFrame, proposal: Sequence[Any], **arguments: Any) -> Message:
        """Propose, or do it if the caller has agreed (or nobody asks)."""
        if "confirmed" not in frame.slots and not self._has("skip_confirmation"):
            return self._say(f"{self.propose[frame.kind].format(*proposal)}. Shall I go ahead?", "confirm")
        frame.slots["confirmed"] = True
        return self._call(self.writes[frame.kind], **arguments)
