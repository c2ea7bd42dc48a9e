"""A scripted agent for any described scenario: it follows the procedures, with bad habits that can be switched on.

It reads only what any agent reads: the caller's words and the tools' observations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muarl.chat import Message
from muarl.domains.desk import compact, reading, wording
from muarl.domains.desk.procedure import Frame, Move, call_key, next_move
from muarl.domains.desk.spec import Script, Step
from muarl.domains.desk.terms import fill, join
from muarl.domains.experts import Habits
from muarl.domains.scripted import TRANSFER, ScriptedExpert

ATTEMPTS = 2
"""How often a caller may try to identify themselves."""


class DeskExpert(ScriptedExpert[Frame]):
    """One conversation's worth of expert. ``act`` takes the new messages and gives the next one."""

    def __init__(self, script: Script, *, seed: int, habits: Habits = Habits()) -> None:
        super().__init__(script.name, seed=seed, habits=habits)
        self._script = script
        self._facts: dict[str, Any] = {}
        self._caller: dict[str, Any] | None = None
        self._failed = 0
        self._refused: list[dict[str, Any]] = []
        self._seen: dict[str, Any] = {}
        self._move: Move | None = None  # what the last call is for, None where it serves no request
        self._told: list[str] = []

    # what came in

    def _listen(self, text: str) -> None:
        if self._caller is None:
            self._facts |= reading.identity_in(self._script, text)
        waiting, self._waiting = self._waiting, ""
        frame = self._frames[0] if self._frames else None
        if frame is not None and waiting:
            if _drops(text):
                self._frames.pop(0)
                return
            if waiting == "confirm" and _agrees(text):
                frame.confirmed = True
                return
        was_idle = frame is None
        if frame is not None and self._answers(frame, text, waiting):
            self._update(frame, text, waiting)
            return
        for intent, part in reading.parts(self._script, text, idle=was_idle):
            self._hear_part(intent, part, waiting)
        if was_idle and len(self._frames) > 1 and self._has("forget_second"):
            del self._frames[1:]

    def _hear_part(self, intent: str, text: str, waiting: str) -> None:
        frame = self._frames[0] if self._frames else None
        topic = self._outside(text)
        if topic and not intent:
            self._frames.append(Frame("outside", {"topic": topic}))
            return
        if frame is not None and intent in ("", frame.intent) and frame.intent != "outside":
            self._update(frame, text, "" if intent else waiting)  # who says it all again may mean every word of it
            return
        if not intent:
            return
        later = next((f for f in self._frames[1:] if f.intent == intent), None)
        if later is None:
            later = Frame(intent)
            self._frames.append(later)
        self._update(later, text, "")

    def _answers(self, frame: Frame, text: str, waiting: str) -> bool:
        """Whether a message gives the slot that was asked for, whatever intents its words may sound like."""
        if waiting not in self._script.spec.slots or reading.joins(text):
            return False
        return any(waiting == s.removeprefix("described ") for s in reading.read_slots(self._script, text, [waiting]))

    def _outside(self, text: str) -> str:
        return next((t for t in self._script.spec.outside if t.lower() in text.lower()), "")

    def _update(self, frame: Frame, text: str, waiting: str) -> None:
        slots = self._script.spec.intents[frame.intent].slots
        taken = {*frame.slots, *frame.described} - {waiting} if waiting and waiting != "confirm" else set()
        for slot, value in reading.read_slots(self._script, text, slots, waiting=waiting, taken=taken).items():
            name = slot.removeprefix("described ")
            if name == slot:
                frame.slots[slot] = value
                frame.described.pop(slot, None)
            elif name not in frame.slots:
                frame.described[name] = str(value)

    def _observe(self, message: Message) -> None:
        call, move = self._last, self._move
        if call is None:
            return
        self._last = None
        if call.name == TRANSFER:
            self._handed_over = not message.error
        elif call.name == self._script.spec.identify.tool and move is None:
            self._identified(message)
        elif move is not None and move.kind == "write":
            self._written(message, move)
        elif move is not None and not self._slipped:
            self._seen[call_key(move.tool, move.args)] = None if message.error else compact.read(message.content or "")

    def _identified(self, message: Message) -> None:
        if self._slipped:
            return
        if not message.error:
            found = compact.read(message.content or "")
            self._caller = found if isinstance(found, dict) else {}
            template = wording.pick(self._rng, wording.THANKS)
            self._told.append(
                template.format(str(self._facts.get("name", "")).split(" ")[0]) if "name" in self._facts else ""
            )
        else:
            self._failed += 1
            self._refused.append(self._facts)
            self._facts = {}

    def _written(self, message: Message, move: Move) -> None:
        frame = self._frames[0]
        if message.error:
            self._frames.pop(0)
            self._told.append("I am sorry, that cannot be done.")
            return
        frame.written[move.step] = compact.read(message.content or "")
        frame.confirmed = False
        self._seen = {k: v for k, v in self._seen.items() if k.split(" ")[0] in self._script.spec.open_tools}

    # what goes out

    def _say(self, text: str, waiting: str = "") -> Message:
        told, self._told = [t for t in self._told if t], []
        return super()._say(" ".join([*told, text]), waiting)

    def _do(self, name: str, arguments: Mapping[str, Any], move: Move | None = None) -> Message:
        """Call a tool for a move, None to find out who is calling."""
        self._move = move
        return self._call(name, **arguments)

    def _slipping(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, now and then with one digit wrong: the tool's error is then seen and mended."""
        ids = [k for k, v in arguments.items() if isinstance(v, str) and v[-1:].isdigit() and not _TIMES.fullmatch(v)]
        if not ids:
            self._slipped = False
            return dict(arguments)
        return {**arguments, ids[-1]: self._slip(arguments[ids[-1]])}

    def _decide(self) -> Message:
        if self._handed_over:
            return self._say(wording.TRANSFERRED)
        if self._caller is None:
            return self._identify()
        if self._transfer:
            return self._hand_over("The customer needs help.")
        for _ in range(40):
            if not self._frames:
                else_ = wording.HOW_ELSE if (self._told and self._told[-1]) or self._calls > 1 else wording.HELLO
                return self._say(wording.pick(self._rng, else_))
            message = self._serve(self._frames[0])
            if message is not None:
                return message
        raise RuntimeError(f"{self._script.name}: the expert does not come to a decision")

    def _identify(self) -> Message:
        identify = self._script.spec.identify
        if self._facts in self._refused:
            self._failed, self._facts = self._failed + 1, {}
        if self._failed >= ATTEMPTS:
            return self._say(wording.pick(self._rng, wording.UNIDENTIFIED))
        if all(f in self._facts for f in identify.fields):
            return self._do(identify.tool, self._slipping({f: self._facts[f] for f in identify.fields}))
        return self._say(wording.pick(self._rng, identify.retry if self._failed else identify.ask), "identity")

    def _serve(self, frame: Frame) -> Message | None:
        """The next thing to do or say for a request; None if it is settled."""
        if frame.intent == "outside":
            return self._hand_over(f"The customer wants to talk about {frame.slots['topic']}.")
        move = next_move(self._script, frame, self._seen, self._caller or {})
        step = self._script.spec.intents[frame.intent].steps[move.step] if move.step >= 0 else None
        spoken = {s: self._script.show(s, v) for s, v in move.known.items() if s in self._script.spec.slots}

        def filled(texts: Sequence[str]) -> str:
            return fill(wording.pick(self._rng, texts), move.known, spoken)

        if move.kind == "call":
            return self._do(move.tool, self._slipping(move.args), move)
        if move.kind == "ask":
            return self._ask(frame, move)
        if move.kind == "missing":
            return self._missing(frame, move)
        if move.kind == "unavailable":
            return self._short_of(frame, move)
        if move.kind == "finished":
            self._finish(frame, move)
            return None
        assert step is not None
        return self._take(frame, move, step, filled)

    def _take(self, frame: Frame, move: Move, step: Step, filled: Callable[[Sequence[str]], str]) -> Message | None:
        if move.kind == "transfer":
            return self._hand_over(filled([step.transfer or ""]))
        if move.kind == "refuse":
            if self._has("transfer_if_forbidden"):
                return self._hand_over("The customer asks for something that is not allowed.")
            if self._has("try_forbidden") and step.pick is None:
                frame.over = True
                return None
            self._told.append(wording.pick(self._rng, wording.REFUSALS).format(filled([step.refuse or ""])))
            self._frames.pop(0)
            return None
        if move.kind == "answer":
            self._told.append(filled(step.answer or ()))
            self._frames.pop(0)
            return None
        if not frame.confirmed and not self._has("skip_confirmation"):
            return self._say(wording.put(wording.pick(self._rng, wording.PROPOSALS), filled(step.propose)), "confirm")
        return self._do(move.tool, move.args, move)

    def _finish(self, frame: Frame, move: Move) -> None:
        """Tell what was done, in the words of the last step that wrote."""
        steps = self._script.spec.intents[frame.intent].steps
        known = dict(move.known)
        last = max(frame.written)
        known.setdefault("result", frame.written[last])
        spoken = {s: self._script.show(s, v) for s, v in known.items() if s in self._script.spec.slots}
        self._told.append(fill(wording.pick(self._rng, steps[last].done), known, spoken))
        self._frames.pop(0)

    def _ask(self, frame: Frame, move: Move) -> Message | None:
        spec = self._script.spec.slots[move.slot]
        choices = self._script.kinds[spec.kind].choices
        if choices and len(choices) < 8 and spec.described is None and self._has("guess"):
            frame.slots[move.slot] = self._rng.choice(choices)
            return None
        return self._say(wording.pick(self._rng, spec.ask), move.slot)

    def _missing(self, frame: Frame, move: Move) -> Message | None:
        if not move.slot:  # a look-up of something that an observation named
            self._frames.pop(0)
            self._told.append("I am sorry, that cannot be done.")
            return None
        spec = self._script.spec.slots[move.slot]
        value = frame.slots.pop(move.slot, None) or frame.described.pop(move.slot, "that")
        template = wording.pick(self._rng, wording.MISSING)
        return self._say(template.format(value, wording.pick(self._rng, spec.ask)), move.slot)

    def _short_of(self, frame: Frame, move: Move) -> Message | None:
        if self._has("transfer_if_unavailable"):
            return self._hand_over("What the customer wants is not available.")
        value = self._script.show(move.slot, frame.slots.pop(move.slot, "that"))
        options = [self._script.show(move.slot, o) for o in move.options]
        frame.confirmed = False
        if not options:
            self._told.append(wording.NO_OPTION[0].format(value))
            self._frames.pop(0)
            return None
        ask = wording.pick(self._rng, self._script.spec.slots[move.slot].ask)
        return self._say(wording.pick(self._rng, wording.SHORTAGES).format(value, join(options), ask), move.slot)


_TIMES = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d")


def _agrees(text: str) -> bool:
    lower = text.lower().lstrip()
    return lower.startswith(("yes", "sure", "go ahead", "absolutely", "ok", "correct", "that is right", "that's right"))


def _drops(text: str) -> bool:
    lower = text.lower()
    return any(words in lower for words in ("never mind", "forget it", "leave it as it is", "leave it."))
