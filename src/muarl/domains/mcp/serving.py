"""A scripted agent for the MCP scenarios: near-perfect, with bad habits that can be switched on.

It reads only what any agent reads: the caller's words and the tools' answers. A scenario's expert says in ``serve``
what a request needs, as straight code: ``look`` something up, ``need`` a detail, ``refuse``, or return what to write or
to answer. Where something is still to be asked or looked up, ``serve`` is left and run again from its beginning once
that is known.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from muarl.chat import Message, ToolCall
from muarl.domains.experts import Habits
from muarl.domains.mcp.talk import Frame, Talk

Call = tuple[str, Mapping[str, Any]]
_WANTS = re.compile(r"\bI (?:also |still )?(?:want|need|would like)\b")


@dataclass(frozen=True, slots=True)
class Write:
    """What is to be written once the caller agrees: the calls, and the proposal in words."""

    proposal: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Say:
    """What answers a request, without anything being written."""

    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look-up showed."""

    text: str
    error: bool = False


class _Leave(Exception):
    """``serve`` is left, since something has to be said or called first."""

    def __init__(self, message: Message) -> None:
        self.message = message


class DeskExpert:
    """One conversation's worth of expert. ``act`` takes the new messages and gives the next one."""

    talk: ClassVar[Talk]
    guesses: ClassVar[Mapping[str, str]] = {}
    """What an expert with the habit of guessing fills in, by slot."""

    def __init__(self, *, seed: int, habits: Habits = Habits()) -> None:
        self._rng = random.Random(f"desk expert {seed}")
        self._habits = habits
        self._frames: list[Frame] = []
        self._seen: dict[str, Seen] = {}
        self._pending: list[tuple[ToolCall, str]] = []
        self._queue: list[Call] = []
        self._waiting = ""
        self._outcome = ""
        self._calls = 0
        self._gives_up = self._has("needless_transfer")

    def serve(self, frame: Frame) -> Write | Say:
        """What a request needs. Implemented by each scenario."""
        raise NotImplementedError

    def slipped(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The arguments of a look-up with a slip in them, None where none is made."""
        return None

    def act(self, new: Sequence[Message]) -> Message:
        """Take in what came (user and tool messages) and answer: one call or one sentence, never both."""
        for message in new:
            if message.role == "user":
                self._listen(message.content or "")
            elif message.role == "tool":
                self._observe(message)
        return self._decide()

    # what a scenario's ``serve`` is written with

    def look(self, name: str, **arguments: Any) -> Seen:
        """The answer to a look-up; ``serve`` is left for it if it has not been made yet."""
        key = f"{name} {json.dumps(arguments, sort_keys=True)}"
        if key not in self._seen:
            slip = self.slipped(name, arguments) if self._has("slip") else None
            raise _Leave(self._call(name, slip or arguments, "" if slip else key))
        return self._seen[key]

    def need(self, frame: Frame, slot: str) -> str:
        """A detail of the request; the caller is asked for it if it is not known."""
        if slot not in frame.slots:
            if slot in self.guesses and self._has("guess"):
                frame.slots[slot] = self.guesses[slot]
            else:
                raise _Leave(self._say(self.talk.slots[slot].ask, slot))
        return str(frame.slots[slot])

    def refuse(self, frame: Frame, why: str) -> None:
        """The policy forbids it. Returns only for an expert that does it all the same."""
        if frame.slots.get("forced") or self._has("try_forbidden"):
            frame.slots["forced"] = True
            return
        if self._has("transfer_if_forbidden"):
            self._close(frame, "I am sorry, I cannot help you with that.")
        self._close(frame, f"I cannot do that, {why}.")

    def gone(self, frame: Frame, slot: str, what: str, ask: str = "", options: Sequence[str] = ()) -> NoReturn:
        """What the caller wants is not to be had (or taken already): say so, and ask for something else."""
        frame.slots.pop(slot, None)
        if self._has("transfer_if_unavailable"):
            self._close(frame, "I am sorry, I cannot help you with that.")
        offer = f" There are {' and '.join(options)}." if options else ""
        raise _Leave(self._say(f"I am sorry, {what}.{offer} {ask or self.talk.slots[slot].ask}", f"gone {slot}"))

    def propose(self, frame: Frame, *calls: Call, **more: str) -> Write:
        """The scenario's proposal for this intent, and the calls that follow it."""
        slots = {**frame.slots, **more}
        return Write(self.talk.fill(self.talk.intents[frame.intent].propose, slots, list(slots)), calls)

    # the conversation

    def _has(self, habit: str) -> bool:
        return self._rng.random() < getattr(self._habits, habit)

    def _listen(self, text: str) -> None:
        lower = text.lower()
        waiting, self._waiting = self._waiting, ""
        frame = self._frames[0] if self._frames else None
        if frame is not None and waiting and lower.startswith(("never mind", "no, forget", "forget it")):
            self._frames.pop(0)
            self._outcome = "Fine, it stays as it is."
            return
        frames = self.talk.requests_in(text)
        if waiting == "confirm" and frame is not None:
            if lower.startswith("yes"):
                frame.slots["confirmed"] = True
                return
            if not frames or frames[0].intent == frame.intent or lower.startswith(("actually", "wait", "sorry")):
                frame.slots |= self.talk.slots_in(text, self.talk.of_intent(frame.intent))
                return
        found = {} if frame is None else self.talk.slots_in(text, self.talk.of_intent(frame.intent))
        slot = waiting.removeprefix("gone ")
        answers = slot in found and not _WANTS.search(text)
        if waiting and frame is not None and (answers or not frames or frames[0].intent == frame.intent):
            frame.slots |= {slot: found[slot]} if slot in found else found
            return
        known = [(f.intent, f.slots) for f in self._frames]
        self._frames += [f for f in frames if (f.intent, f.slots) not in known]
        if len(self._frames) > 1 and frame is None and self._has("forget_second"):
            del self._frames[1:]

    def _observe(self, message: Message) -> None:
        if not self._pending:
            return
        _, key = self._pending.pop(0)
        if key == "write":
            self._seen.clear()
            if message.error:
                self._queue.clear()
            if not self._queue and self._frames:
                self._frames.pop(0)
                self._outcome = "I cannot do that." if message.error else "Done."
        elif key:
            self._seen[key] = Seen(message.content or "", message.error)

    def _decide(self) -> Message:
        if self._queue:
            return self._call(*self._queue.pop(0), "write")
        if not self._frames:
            outcome, self._outcome = self._outcome, ""
            return self._say(f"{outcome} Anything else?" if outcome else "How can I help you?")
        frame = self._frames[0]
        try:
            if self._gives_up:
                self._gives_up = False
                self._close(frame, "I am sorry, I cannot help you with that.")
            step = self.serve(frame)
            if isinstance(step, Say):
                self._close(frame, step.text)
            if not frame.slots.get("confirmed") and not self._has("skip_confirmation"):
                return self._say(f"{step.proposal}. Shall I go ahead?", "confirm")
        except _Leave as leave:
            return leave.message
        self._queue = list(step.calls)
        return self._call(*self._queue.pop(0), "write")

    def _close(self, frame: Frame, text: str) -> NoReturn:
        self._frames.remove(frame)
        before, self._outcome = (f"{self._outcome} " if self._outcome else ""), ""
        raise _Leave(self._say(f"{before}{text}{'' if self._frames else ' Anything else?'}"))

    def _say(self, text: str, waiting: str = "") -> Message:
        before, self._outcome = (f"{self._outcome} " if self._outcome and waiting else ""), ""
        self._waiting = waiting
        return Message("assistant", f"{before}{text}")

    def _call(self, name: str, arguments: Mapping[str, Any], key: str) -> Message:
        self._calls += 1
        call = ToolCall(f"call_{self._calls}", name, dict(arguments))
        self._pending.append((call, key))
        return Message("assistant", None, (call,))
