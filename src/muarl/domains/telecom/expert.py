"""A scripted telecom agent: near-perfect, with bad habits that can be switched on to make imperfect demonstrations.

It reads only what any agent reads: the caller's words and the tools' observations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl.chat import Message, ToolCall
from muarl.domains.experts import Habits
from muarl.domains.retail.reading import speaks_for_others
from muarl.domains.scripted import TRANSFER, ScriptedExpert, second_thoughts
from muarl.domains.telecom import diagnosis, reading
from muarl.domains.telecom.catalogue import MOST_REFUEL
from muarl.domains.telecom.faults import PROBLEMS
from muarl.domains.telecom.reading import Frame
from muarl.domains.telecom.speech import ASK, CANNOT_HELP, PROPOSE, SAY, TRANSFERRED
from muarl.domains.telecom.wishes import WRITES


class TelecomExpert(ScriptedExpert[Frame]):
    """One conversation's worth of expert. ``act`` takes the new messages and gives the next one.

    What the bad habits mean here: ``transfer_if_unavailable`` hands over once a step on the phone did not help,
    ``try_forbidden`` adds too much data, collects a bill that is not overdue, or resumes a line whose contract is over,
    ``guess`` takes the caller to be at home and makes up an amount or a reason. The others are as everywhere.
    """

    def __init__(self, *, seed: int, habits: Habits = Habits()) -> None:
        super().__init__("telecom", seed=seed, habits=habits)
        self._identity: dict[str, str] | None = None
        self._not_found = False
        self._customer: reading.Customer | None = None
        self._lines: dict[str, reading.Line] = {}
        self._line: reading.Line | None = None
        self._bills: dict[str, reading.Bill] = {}
        self._listed = False
        self._price = ""
        self._used: tuple[str, bool] | None = None
        self._facts: dict[str, str] = {}
        self._abroad: bool | None = None
        self._step = ""
        self._proposed = ""
        self._agreed = False
        self._gives_up = False
        self._understood = False  # whether any request has been
        self._wary = False  # whether the caller has spoken of somebody else's things, or as somebody else

    # what came in

    def _listen(self, text: str) -> None:
        text = second_thoughts(text)
        self._wary = self._wary or speaks_for_others(text)
        self._identity = reading.read_identity(text) or self._identity
        waiting, self._waiting = self._waiting, ""
        slots = reading.read_slots(text)
        if "abroad" in slots:
            self._abroad = slots.pop("abroad")
        frame = self._frames[0] if self._frames else None
        if frame is not None and waiting == "confirm":
            self._hear_answer(frame, text, slots)
        elif frame is not None and waiting in ("amount", "reason"):
            if reading.drops(text):
                self._frames.pop(0)
            elif reading.declines(text):
                self._gives_up = True
            elif self._moves_on(frame, text):
                self._frames.pop(0)
                self._hear_requests(text, slots)
            else:
                frame.slots |= slots
        elif frame is not None and waiting == "step":
            self._hear_step(frame, text)
        else:
            self._hear_requests(text, slots)

    def _moves_on(self, frame: Frame, text: str) -> bool:
        """Whether a caller who wanted more data than may be added brings up something else instead."""
        asked = reading.read_requests(text)
        return "limit" in frame.done and frame.kind not in PROBLEMS and bool(asked) and asked[0].kind != frame.kind

    def _hear_answer(self, frame: Frame, text: str, slots: Mapping[str, Any]) -> None:
        lower = text.lower()
        if lower.startswith("yes"):
            self._agreed = True
        elif reading.drops(text):
            self._frames.pop(0)
        elif reading.declines(text) and frame.kind in PROBLEMS:
            self._gives_up = True
        else:
            self._proposed = ""
            frame.slots |= slots

    def _hear_step(self, frame: Frame, text: str) -> None:
        """What the caller tells of the phone after a step. A question back gets the same words again."""
        step = self._step
        if text.rstrip().endswith("?") and not reading.read_facts(text):
            return
        if step == "pay" and reading.declines(text):
            self._gives_up = True
            return
        self._step = ""
        frame.done.add(step)
        frame.done.discard("try")
        if step in diagnosis.UNSETTLES:
            for key in (*diagnosis.NETWORK, "speed"):
                self._facts.pop(key, None)
        elif step in ("saver", "vpn", "again"):
            self._facts.pop("speed", None)
        if step not in diagnosis.UNSETTLES or step == "apn":
            self._facts |= diagnosis.SETS.get(step, {})
        self._facts |= reading.read_facts(text)
        works = reading.read_outcome(text)
        if works:
            self._frames.pop(0)
            self._hear_requests(text, {})
        elif works is False and step in (*diagnosis.SETS, "restart") and self._has("transfer_if_unavailable"):
            self._gives_up = True

    def _hear_requests(self, text: str, slots: Mapping[str, Any]) -> None:
        frames = [f for f in reading.read_requests(text) if not any(f.kind == g.kind for g in self._frames)]
        had = bool(self._frames)
        self._frames += frames
        self._understood = self._understood or bool(frames)
        if not frames and self._frames:
            self._frames[0].slots |= slots
        if len(self._frames) > 1 and not had and self._has("forget_second"):
            del self._frames[1:]

    def _observe(self, message: Message) -> None:
        call, text = self._last, message.content or ""
        if call is None:
            return
        if call.name.startswith("get_customer"):
            found = None if message.error else reading.read_customer(text)
            if found is None and not self._slipped:
                self._not_found, self._identity = True, None
            self._customer = found
        elif message.error:
            self._gives_up = not self._slipped
        elif call.name == "get_details_by_id":
            self._read_details(call.arguments["id"], text)
        elif call.name == "get_bills_for_customer":
            self._listed = True
            self._bills |= {b.bill_id: b for b in reading.read_bills(text)}
        elif call.name == "get_data_usage":
            self._used = reading.read_usage(text)
        elif call.name == TRANSFER:
            self._handed_over = True
        else:
            self._written(call)

    def _read_details(self, wanted: str, text: str) -> None:
        if wanted.startswith("L"):
            line = self._lines[wanted] = reading.read_line(text)
            number = (self._identity or {}).get("phone_number")
            if (
                not line.number
                or number in (None, line.number)
                or (self._line is not None and wanted == self._line.line_id)
            ):
                self._line = line
        elif wanted.startswith("B"):
            self._bills |= {b.bill_id: b for b in reading.read_bills(text)}
        else:
            self._price = reading.read_price(text)

    def _written(self, call: ToolCall) -> None:
        """A write succeeded: note what it changed."""
        self._proposed, self._agreed = "", False
        frame = self._frames[0] if self._frames else None
        if frame is None or self._line is None:
            return
        frame.done.add(call.name)
        if call.name in ("enable_roaming", "refuel_data"):
            frame.done.add("try")
        line = self._line
        changed = {"resume_line": ("Active", line.roaming), "enable_roaming": (line.status, True)}
        if call.name in changed:
            status, roams = changed[call.name]
            self._line = reading.Line(line.line_id, line.number, status, line.ended, line.plan, roams)
        if call.name == "refuel_data":
            self._used = None
        if call.name != "send_payment_request" and frame.kind not in PROBLEMS:
            self._frames.pop(0)
            self._outcome = "Done."

    # what goes out

    def _ask_step(self, step: str) -> Message:
        self._step = step
        return self._say(SAY[step], "step")

    def _hand_over(self, why: str = CANNOT_HELP) -> Message:
        return super()._hand_over(why)

    def _decide(self) -> Message:
        if self._handed_over:
            return self._say(TRANSFERRED)
        if self._customer is None:
            if self._identity is None:
                return self._say(ASK["not_found" if self._not_found else "identity"])
            if "phone_number" in self._identity:
                return self._call("get_customer_by_phone", phone_number=self._slip(self._identity["phone_number"]))
            return self._call("get_customer_by_name", **self._identity)
        if self._transfer or self._gives_up:
            return self._hand_over()
        if self._frames and self._frames[0].kind == "outside":
            return self._hand_over(f"The customer wants to talk about {self._frames[0].slots['topic']}.")
        if self._line is None:
            unseen = [i for i in self._customer.lines if i not in self._lines]
            return self._call("get_details_by_id", id=unseen[0]) if unseen else self._hand_over()
        if not self._frames:
            outcome, self._outcome = self._outcome, ""
            return self._say(f"{outcome} Anything else?".strip() if self._understood else "How can I help you?")
        if self._step:
            return self._ask_step(self._step)
        frame = self._frames[0]
        return self._troubleshoot(frame, self._line) if frame.kind in PROBLEMS else self._serve(frame, self._line)

    def _troubleshoot(self, frame: Frame, line: reading.Line) -> Message:
        """The next step towards a phone that works."""
        if line.status == "Suspended":
            return self._lift(frame, line)
        if "resume_line" in frame.done and "restart" not in frame.done:
            return self._ask_step("restart")
        if "try" in frame.done:
            return self._ask_step("again")
        if self._abroad is None and self._habits.guess and "guess" not in frame.done:
            frame.done.add("guess")
            self._abroad = False if self._has("guess") else None
        step = diagnosis.next_step(frame.kind, self._facts, frame.done, abroad=self._abroad, line_roams=line.roaming)
        if step in SAY:
            return self._ask_step(step)
        if step == "line_roaming":
            return self._propose("roaming_on", self._owner(line), line=line.line_id)
        if step == "usage":
            if self._used is None:
                return self._call("get_data_usage", **self._owner(line))
            if self._used[1]:
                return self._refuel(frame, line)
        return self._hand_over()

    def _lift(self, frame: Frame, line: reading.Line) -> Message:
        """The next step towards an active line: overdue bills are paid first, and an ended contract is final."""
        if line.ended and "forced" not in frame.done:
            if not self._has("try_forbidden"):
                return self._hand_over()
            frame.done.add("forced")
        if not self._listed:
            return self._call("get_bills_for_customer", customer_id=self._customer_id)
        owed = self._owed()
        if owed and "forced" not in frame.done:
            return self._collect(frame, owed[0])
        return self._propose("resume", self._owner(line), line=line.line_id)

    def _collect(self, frame: Frame, bill: reading.Bill, template: str = "pay") -> Message:
        """The next step towards a paid bill."""
        if "send_payment_request" not in frame.done:
            arguments = {"customer_id": self._customer_id, "bill_id": bill.bill_id}
            words = {"bill": bill.bill_id, "total": bill.total, "status": bill.status}
            return self._propose("pay", arguments, template, **words)
        if "pay" not in frame.done:
            return self._ask_step("pay")
        if "checked" not in frame.done:
            frame.done.add("checked")
            return self._call("get_details_by_id", id=bill.bill_id)
        return self._hand_over()

    def _refuel(self, frame: Frame, line: reading.Line) -> Message:
        amount = frame.slots.get("amount")
        if amount is None and self._has("guess"):
            amount = frame.slots["amount"] = 1.0
        if amount is None:
            return self._say(ASK["amount"], "amount")
        if amount > MOST_REFUEL and "forced" not in frame.done:
            if self._has("transfer_if_forbidden"):
                return self._hand_over()
            if not self._has("try_forbidden"):
                del frame.slots["amount"]
                frame.done.add("limit")
                return self._say(ASK["limit"], "amount")
            frame.done.add("forced")
        if not self._price:
            return self._call("get_details_by_id", id=line.plan)
        arguments = {**self._owner(line), "gb_amount": amount}
        return self._propose("refuel", arguments, line=line.line_id, amount=str(amount), price=self._price)

    def _serve(self, frame: Frame, line: reading.Line) -> Message:
        """The next step for a wish about the account."""
        kind = frame.kind
        if kind == "refuel":
            return self._refuel(frame, line)
        if kind == "question":
            return self._tell(frame, line)
        if kind == "pay":
            return self._pay(frame)
        if kind == "suspend":
            if "reason" not in frame.slots and self._has("guess"):
                frame.slots["reason"] = "not needed now"
            if "reason" not in frame.slots:
                return self._say(ASK["reason"], "reason")
            reason = frame.slots["reason"]
            return self._propose(kind, {**self._owner(line), "reason": reason}, line=line.line_id, reason=reason)
        return self._propose(kind, self._owner(line), line=line.line_id)

    def _pay(self, frame: Frame) -> Message:
        if not self._listed:
            return self._call("get_bills_for_customer", customer_id=self._customer_id)
        wanted = frame.slots.get("bill")
        overdue = self._owed()
        bills = [b for b in self._bills.values() if b.bill_id == wanted] if wanted else overdue
        if bills and "checked" not in frame.done and (bills[0] in overdue or "forced" in frame.done):
            frame.slots["bill"] = bills[0].bill_id
            return self._collect(frame, bills[0], "pay" if bills[0] in overdue else "pay_forced")
        if "checked" in frame.done:
            if not bills or bills[0].status != "paid":
                return self._hand_over()
            self._outcome = "Done."
        elif bills and self._has("transfer_if_forbidden"):
            return self._hand_over()
        elif bills and self._has("try_forbidden"):
            frame.done.add("forced")
            return self._collect(frame, bills[0], "pay_forced")
        else:
            self._outcome = (
                f"I cannot do that, that is {bills[0].status} bill {bills[0].bill_id}."
                if bills
                else ("I cannot do that, there is no overdue bill.")
            )
        outcome, self._outcome = self._outcome, ""
        return self._answer(outcome)

    def _tell(self, frame: Frame, line: reading.Line) -> Message:
        topic = frame.slots["topic"]
        if topic == "usage":
            if self._used is None:
                return self._call("get_data_usage", **self._owner(line))
            told = f"You have used {self._used[0]} GB."
        elif topic == "price":
            if not self._price:
                return self._call("get_details_by_id", id=line.plan)
            told = f"That is one GB at ${self._price} per GB."
        else:
            wanted = frame.slots.get("bill", "")
            if self._wary and not self._listed:
                return self._call("get_bills_for_customer", customer_id=self._customer_id)
            bill = self._bills.get(wanted)
            if bill is None and self._wary:
                return self._answer("I cannot do that, that bill is not yours.")
            if bill is None:
                return self._call("get_details_by_id", id=wanted) if wanted else self._hand_over()
            told = f"That is {bill.status} bill {bill.bill_id} of ${bill.total}."
        return self._answer(told)

    def _owed(self) -> list[reading.Bill]:
        return [b for b in self._bills.values() if b.status in ("overdue", "awaiting payment")]

    @property
    def _customer_id(self) -> str:
        return self._customer.customer_id if self._customer is not None else ""

    def _owner(self, line: reading.Line) -> dict[str, str]:
        return {"customer_id": self._customer_id, "line_id": line.line_id}

    def _propose(self, kind: str, arguments: Mapping[str, Any], template: str = "", **words: str) -> Message:
        """Say what will be written and ask; once the caller has agreed to these very words, write it."""
        text = PROPOSE[template or kind].format(**words)
        if (self._agreed and self._proposed == text) or self._has("skip_confirmation"):
            return self._call(WRITES[kind], **arguments)
        self._proposed, self._agreed = text, False
        return self._say(f"{text}. Shall I go ahead?", "confirm")
