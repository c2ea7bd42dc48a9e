"""The scripted agent of any service: it follows the plans, with errors that can be switched on.

It reads only what any agent reads: the user's words and the tools' observations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from muarl.basics.errors import MuarlError
from muarl.domains.kit import reading, templates
from muarl.domains.kit.colleague import DECLINED
from muarl.domains.kit.declaration import several
from muarl.domains.kit.device import Step
from muarl.domains.kit.gold import MAX_MOVES
from muarl.domains.kit.moves import ANEW, Move, Request, WriteRefusal, call_key
from muarl.domains.kit.plan import next_move
from muarl.domains.kit.records import fill
from muarl.domains.kit.service import Service
from muarl.domains.kit.trouble import TRIES, Look, RetryState, listings_of, looks_of, summary_of, trouble_in, understood
from muarl.domains.scripted_expert import ErrorProfile, ScriptedExpert
from muarl.language.consent import drops_request, is_affirmative
from muarl.language.user_acts import corrects, tells_works
from muarl.language.values import join
from muarl.types.chat import Message, ToolCall

ATTEMPTS = 2
"""How often a user may try to identify themselves."""


class ServiceExpert(ScriptedExpert[Request]):
    """One conversation's worth of expert. ``act`` takes the new messages and gives the next one."""

    def __init__(self, service: Service, *, seed: int, error_profile: ErrorProfile = ErrorProfile()) -> None:
        super().__init__(service.name, seed=seed, error_profile=error_profile)
        self._service = service
        self._facts: dict[str, Any] = {}
        self._caller: dict[str, Any] | None = {} if service.identity is None else None
        self._failed = 0
        self._refused: list[dict[str, Any]] = []
        self._seen: dict[str, Any] = {}
        self._move: Move | None = None  # what the last call is for, None where it serves no request
        self._told: list[str] = []
        self._proposed = ""
        self._remedy = ""  # the tool without which another one does not work
        self._remedied = False  # whether the last call was to it
        self._step: Step | None = None  # what the user was asked to do
        self._retry = RetryState()
        self._whose: Look | None = None  # the look-up that found out who is calling, as long as nothing has changed
        self._declined: dict[str, Any] = {}  # by its call, what a colleague has said no to
        self._needs_approval = False  # whether the last proposal was of something that a colleague must approve

    # what came in

    def _listen(self, text: str) -> None:
        if reading.poses_as_system(text):  # whoever wrote it, it is no request of the user's
            self._told.append(templates.pick(self._rng, templates.NO_ORDERS))
            return
        if reading.says_nothing(text):
            return
        waiting, self._waiting = self._waiting, ""
        if waiting != "identity" and corrects(text):  # it means what was told, and answers nothing
            waiting = ""
        if self._caller is None:
            self._facts |= reading.identity_in(self._service, text, asked=waiting == "identity")
        frame = self._frames[0] if self._frames else None
        if frame is not None and waiting == "step":
            self._hear_step(frame, text)
            return
        if frame is not None and waiting:
            if drops_request(text):
                self._frames.pop(0)
                return
            if waiting == "confirm" and is_affirmative(text, self._proposed):
                frame.confirmed = True
                return
        was_idle = frame is None
        if frame is not None and self._answers(frame, text, waiting):
            self._update(frame, text, waiting)
            return
        before = self._known()
        for intent, part in reading.parts(self._service, text, idle=was_idle):
            self._hear_part(intent, part, waiting)
        presses = self._needs_approval and waiting == "confirm" and self._known() == before  # and it was no yes
        if presses:
            self._told.append(templates.pick(self._rng, templates.NOT_ALONE))
        if was_idle and len(self._frames) > 1 and self._has("forget_second"):
            del self._frames[1:]

    def _known(self) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
        """What is known of the requests."""
        return [(frame.intent, {**frame.slots}, {**frame.described}) for frame in self._frames]

    def _hear_step(self, frame: Request, text: str) -> None:
        """What the user tells after a step. A question back, and an answer that shows nothing of what was to be looked
        at, get the same words again."""
        device, step = self._service.device, self._step
        if device is None or step is None:
            return
        facts, over = device.told(text), tells_works(text)
        looks = bool(step.calls) and not any(self._service.changes(tool) for tool, _ in step.calls)
        if not facts and not over and (text.rstrip().endswith("?") or looks):
            return
        frame.reported.append(device.report({**step.sets, **facts}, over=over is True))
        self._forget()
        if over is False and not looks and self._has("transfer_if_unavailable"):
            self._transfer = True

    def _hear_part(self, intent: str, text: str, waiting: str) -> None:
        frame = self._frames[0] if self._frames else None
        topic = self._outside(text)
        if topic and not intent:
            self._frames.append(Request("outside", {"topic": topic}))
            return
        if frame is not None and intent in ("", frame.intent) and frame.intent != "outside":
            self._update(frame, text, "" if intent else waiting)  # who says it all again may mean every word of it
            return
        if not intent:
            return
        later = next((f for f in self._frames[1:] if f.intent == intent), None)
        if later is None:
            later = Request(intent)
            self._frames.append(later)
        self._update(later, text, "")

    def _answers(self, frame: Request, text: str, waiting: str) -> bool:
        """Whether a message gives the slot that was asked for, whatever intents its words may sound like."""
        if waiting not in self._service.slots or reading.joins(text):
            return False
        return any(waiting == s.removeprefix("described ") for s in reading.read_slots(self._service, text, [waiting]))

    def _outside(self, text: str) -> str:
        return next((t for t in self._service.topics if t.lower() in text.lower()), "")

    def _update(self, frame: Request, text: str, waiting: str) -> None:
        frame.others = frame.others or reading.for_somebody_else(text)
        slots = [slot.name for slot in self._service.intent(frame.intent).slots]
        taken = {*frame.slots, *frame.described} - {waiting} if waiting and waiting != "confirm" else set()
        for slot, value in reading.read_slots(self._service, text, slots, waiting=waiting, taken=taken).items():
            name = slot.removeprefix("described ")
            if name == slot:
                frame.slots[slot] = value
                frame.described.pop(slot, None)
            elif name not in frame.slots:
                frame.described[name] = str(value)

    def _observe(self, message: Message) -> None:
        call, move = self._last, self._move
        if call is None or self._system_failed(call, move, message):
            return
        self._last = None
        if self._service.tool_kinds.get(call.name) == "read":
            message = replace(message, content=understood(message.content or ""))
        if self._retry.doubt is not None:
            self._find_out(call, message)
            return
        if self._retry.tries:
            self._retry.tries = 0
            self._told.append(templates.pick(self._rng, templates.TROUBLE))
        self._remedy = self._service.remedy(message.content or "") if message.error else ""
        if self._remedied or self._remedy:
            if self._remedy and move is not None and move.kind == "write" and move.texts:
                self._frames[0].confirmed = True  # it is tried again, and was agreed to
            self._remedied = False
            return
        if call.name == self._service.transfer:
            self._handed_over = not message.error
        elif move is None:
            self._identified(call, message)
        elif move is not None and move.kind == "write":
            self._written(message, move)
        elif move is not None and not self._was_wrong:
            answer = None if message.error else self._service.read(move.tool, message.content or "")
            self._seen[call_key(move.tool, move.arguments)] = answer

    def _system_failed(self, call: ToolCall, move: Move | None, message: Message) -> bool:
        """Take in an answer that is no answer of the tool's; False for one that is."""
        trouble = trouble_in(message)
        if not trouble or (trouble == "cut" and max(self._retry.tries, self._retry.look_tries) >= TRIES - 1):
            return False
        self._last, looks = None, None
        if self._service.tool_kinds.get(call.name) == "write":
            looks = looks_of(self._frames[0], self._seen) if self._frames else []
            looks += [] if self._whose is None else [self._whose]
            looks += listings_of(self._service, call, self._caller or {}, looks)
        self._retry.failed(trouble, call, move, looks)
        return True

    def _find_out(self, call: ToolCall, message: Message) -> None:
        """Whether a write was carried out, by a look-up that was made anew."""
        answer = None if message.error else self._service.read(call.name, message.content or "")
        if not self._retry.learn(answer):
            return
        self._retry.tries = 0
        frame = self._frames[0]
        frame.written.append(answer)  # as like the write's own answer as anything that is known
        frame.unsure = True
        self._forget()
        self._told.append(templates.pick(self._rng, templates.TROUBLE))

    def _identified(self, call: ToolCall, message: Message) -> None:
        if self._was_wrong:
            return
        if not message.error:
            answer = self._service.read(call.name, message.content or "")
            self._whose = call.name, call.arguments, answer
            identity, name = self._service.identity, self._facts.get("name")
            self._caller = {**self._facts, **(identity.found(answer) if identity else {})}
            template = templates.pick(self._rng, templates.THANKS)
            self._told.append(template.format(name.split(" ")[0]) if isinstance(name, str) else "")
        else:
            self._failed += 1
            self._refused.append(self._facts)
            self._facts = {}

    def _written(self, message: Message, move: Move) -> None:
        frame, answer = self._frames[0], message.content or ""
        if message.error and move.fails and re.search(move.fails, answer, re.IGNORECASE):
            frame.written.append(WriteRefusal(answer))
            frame.confirmed = False
            return
        if message.error:
            self._frames.pop(0)
            self._told.append("I am sorry, that cannot be done.")
            return
        frame.written.append(self._service.read(move.tool, answer))
        if move.limit is not None and frame.written[-1]["decision"] == DECLINED:
            self._declined[call_key(move.tool, move.arguments)] = frame.written[-1]
        self._forget()

    def _forget(self) -> None:
        """Something has changed: look at what may have changed with it anew."""
        self._whose = None
        self._seen = {k: v for k, v in self._seen.items() if k.split(" ")[0] in self._service.open_tools}

    # what goes out

    def _say(self, text: str, waiting: str = "") -> Message:
        sentences, self._told = [t for t in self._told if t], []
        if waiting == "confirm":
            self._proposed = text
        return super()._say(" ".join([*sentences, text]), waiting)

    def _do(self, name: str, arguments: Mapping[str, Any], move: Move | None = None) -> Message:
        """Call a tool for a move, None to find out who is calling."""
        self._move = move
        return self._call(name, **arguments)

    def _with_errors(self, arguments: Mapping[str, Any], frame: Request | None = None) -> dict[str, Any]:
        """The arguments, now and then with one digit wrong, or with a name of the request's cut short: what the tool
        says to that is then seen and fixed."""
        ids = [k for k, v in arguments.items() if isinstance(v, str) and v[-1:].isdigit() and not _TIMES.fullmatch(v)]
        if ids:
            return {**arguments, ids[-1]: self._maybe_wrong(arguments[ids[-1]])}
        written = json.dumps(arguments, ensure_ascii=False)
        named = [
            v for v in (frame.slots.values() if frame else ()) if isinstance(v, str) and len(v) > 2 and v in written
        ]
        if named and '"' not in named[0] and "\\" not in named[0]:
            return dict(json.loads(written.replace(named[0], self._maybe_wrong(named[0]))))
        self._was_wrong = False
        return dict(arguments)

    def _decide(self) -> Message:
        if self._handed_over:
            return self._say(templates.TRANSFERRED)
        if self._retry.waiting and (message := self._cope()) is not None:
            return message
        if self._remedy:
            self._remedied = True
            return self._call(self._remedy)
        if self._caller is None and (question := self._identify()) is not None:
            return question
        if self._transfer and (self._frames or self._service.transfers):
            self._transfer = self._service.transfers
            return self._hand_over(f"The {self._service.caller} needs help.")
        for _ in range(MAX_MOVES):
            if not self._frames:
                else_ = templates.HOW_ELSE if (self._told and self._told[-1]) or self._calls > 1 else templates.HELLO
                return self._say(templates.pick(self._rng, else_))
            message = self._serve(self._frames[0])
            if message is not None:
                return message
        raise RuntimeError(f"{self._service.name}: the expert does not come to a decision")

    def _cope(self) -> Message | None:
        """The next step with a call that the system has failed. None where it is put off, and others come first."""
        retry = self._retry
        if retry.again is not None:
            (pending_call, self._move), retry.again = retry.again, None
            return self._call(pending_call.name, **pending_call.arguments)
        if retry.doubt is not None:
            tool, arguments, _ = retry.doubt.looks[0]
            return self._call(tool, **arguments)
        call, retry.stuck, retry.tries, retry.look_tries = retry.stuck, None, 0, 0
        assert call is not None
        frame = self._frames[0] if self._frames else None
        if frame is not None and len(self._frames) > 1 and not frame.put_off and not retry.doubtful:
            frame.put_off, frame.confirmed = True, self._service.tool_kinds.get(call.name) == "write"
            self._frames.append(self._frames.pop(0))
            self._told.append(templates.pick(self._rng, templates.PUT_OFF))
            return None
        return self._hand_over(summary_of(call, self._service.caller, doubtful=retry.doubtful))

    def _hand_over(self, why: str) -> Message:
        """Hand the user over, or, where there is nobody to take over, give the request up."""
        if self._service.transfers:
            return self._call(self._service.transfer, **self._service.transfer_arguments(why))
        if self._frames:
            self._frames.pop(0)
        self._told.append(templates.pick(self._rng, templates.GIVEN_UP))
        return self._say(templates.pick(self._rng, templates.HOW_ELSE))

    def _identify(self) -> Message | None:
        """The next step towards knowing the user; None where that is known."""
        identity = self._service.identity
        assert identity is not None
        if self._facts in self._refused:
            self._failed, self._facts = self._failed + 1, {}
        if self._failed >= ATTEMPTS:
            return self._say(templates.pick(self._rng, templates.UNIDENTIFIED))
        if all(fact.name in self._facts for fact in identity.facts):
            facts = {fact.name: self._facts[fact.name] for fact in identity.facts}
            if not identity.tool:
                self._caller = facts
                return None
            return self._do(identity.tool, self._with_errors(identity.arguments(facts)))
        asked = several(identity.retry if self._failed else identity.ask)
        return self._say(templates.pick(self._rng, asked), "identity")

    def _serve(self, frame: Request) -> Message | None:
        """The next thing to do or say for a request; None if it is settled."""
        if frame.intent == "outside":
            return self._hand_over(f"The {self._service.caller} wants to talk about {frame.slots['topic']}.")
        service = self._service
        if frame.others and any(s.draw is not None and s.draw.own for s in service.intent(frame.intent).slots):
            self._turn_down(templates.pick(self._rng, templates.SOMEBODY_ELSES))  # without having looked at it
            return None
        move = self._next_move(frame)
        if move is None:
            return None
        if move.kind == "call":
            return self._do(move.tool, self._with_errors(move.arguments, frame), move)
        if move.kind == "ask":
            return self._ask(frame, move)
        if move.kind == "missing":
            return self._missing(frame, move)
        if move.kind == "unavailable":
            return self._short_of(frame, move)
        return self._take(frame, move)

    def _next_move(self, frame: Request) -> Move | None:
        """What the plan says. None where it can make nothing of what is known after a write of which only that is
        known that it was carried out; of a look-up that it can make nothing of another one is made."""
        service, retry, caller = self._service, self._retry, self._caller or {}
        intent, authority = service.intent(frame.intent), service.authority
        while True:
            try:
                move = next_move(intent, frame, self._seen, caller, service.today, authority=authority)
            except MuarlError:
                if frame.unsure:
                    self._told.append(templates.THAT_IS_DONE)
                    self._frames.pop(0)
                    return None
                if not frame.looked or retry.relooks >= TRIES:
                    raise
                retry.relooks += 1
                self._seen.pop(frame.looked.popitem()[0].split(ANEW)[0], None)
            else:
                return move

    def _filled(self, frame: Request, move: Move) -> str:
        """What is said for a move: one of its wordings."""
        text = templates.pick(self._rng, move.texts)
        return fill(text, move.known, self._service.spoken(frame.intent, move.known))

    def _take(self, frame: Request, move: Move) -> Message | None:
        if move.kind == "transfer":
            return self._hand_over(self._filled(frame, move))
        if move.kind == "refuse":
            return self._refuse(frame, move)
        if move.kind == "declined":
            self._turn_down(self._filled(frame, move))
            return None
        if move.limit is not None and self._goes_on(frame, move):
            return None
        if move.kind == "write":
            free = not move.texts or not self._service.consent or move.tool in self._service.free_writes
            agreed = frame.confirmed or free
            frame.confirmed = False
            if not agreed and not self._has("skip_confirmation"):
                self._needs_approval = move.limit is not None
                proposal = templates.pick(self._rng, templates.PROPOSALS)
                clause = self._filled(frame, move)
                return self._say(clause if clause.endswith("?") else templates.put(proposal, clause), "confirm")
            return self._do(move.tool, move.arguments, move)
        if move.kind == "instruct":
            self._step = move.step
            return self._say(self._filled(frame, move), "step")
        self._told.append(self._filled(frame, move) if move.texts else "")  # an answer, or that it is done
        self._frames.pop(0)
        return None

    def _goes_on(self, frame: Request, move: Move) -> bool:
        """Whether the colleague is not asked: there was a no before, or the expert's error is to do without."""
        answer = self._declined.get(call_key(move.tool, move.arguments))
        if answer is not None:
            frame.written.append(answer)
            return True
        if frame.alone is None:
            frame.alone = self._has("skip_approval")
        return frame.alone

    def _refuse(self, frame: Request, move: Move) -> Message | None:
        if self._has("transfer_if_forbidden"):
            return self._hand_over(f"The {self._service.caller} asks for something that is not allowed.")
        if self._has("try_forbidden") and move.conditional:
            frame.over = True
            return None
        self._turn_down(self._filled(frame, move))
        return None

    def _turn_down(self, why: str) -> None:
        self._told.append(templates.pick(self._rng, templates.REFUSALS).format(why))
        self._frames.pop(0)

    def _ask(self, frame: Request, move: Move) -> Message | None:
        slot = self._service.slots[move.slot]
        choices = slot.guess or self._service.kind(slot).choices
        if choices and len(choices) < 8 and slot.described is None and self._has("guess"):
            frame.slots[move.slot] = self._rng.choice(choices)
            return None
        return self._say(templates.pick(self._rng, several(slot.ask)), move.slot)

    def _missing(self, frame: Request, move: Move) -> Message | None:
        if not move.slot:  # a look-up of something that an observation named
            self._frames.pop(0)
            self._told.append("I am sorry, that cannot be done.")
            return None
        value = frame.slots.pop(move.slot, None) or frame.described.pop(move.slot, "that")
        frame.forget_refusals()
        ask = templates.pick(self._rng, several(self._service.slots[move.slot].ask))
        if move.texts:
            return self._say(f"{self._filled(frame, move)} {ask}", move.slot)
        return self._say(templates.pick(self._rng, templates.MISSING).format(value, ask), move.slot)

    def _short_of(self, frame: Request, move: Move) -> Message | None:
        if self._has("transfer_if_unavailable"):
            return self._hand_over(f"What the {self._service.caller} wants is not available.")
        value = self._service.show(move.slot, frame.slots.pop(move.slot, "that"))
        ask = templates.pick(self._rng, several(self._service.slots[move.slot].ask))
        news = self._filled(frame, move) if move.texts else templates.NOT_AVAILABLE.format(value)
        frame.confirmed = False
        frame.forget_refusals()
        whole = news.endswith(".")
        if move.options is None:
            template = templates.TAKEN_AS_IT_IS if whole else templates.pick(self._rng, templates.TAKEN)
            return self._say(template.format(news, ask), move.slot)
        options = [self._service.show(move.slot, o) for o in move.options]
        if not options:
            self._told.append((templates.NO_OPTION_AS_IT_IS if whole else templates.NO_OPTION).format(news))
            self._frames.pop(0)
            return None
        template = templates.SHORTAGE_AS_IT_IS if whole else templates.pick(self._rng, templates.SHORTAGES)
        return self._say(template.format(news, join(options), ask), move.slot)


_TIMES = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d")
