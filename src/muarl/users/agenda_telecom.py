"""A caller of a carrier that plays an agenda and holds a phone: goals, facts and patience, and no language model.

It does on the phone what the agent asks for, with the user's tools, and tells what they show; it tries itself whether
its trouble is over. For the rest it is as retail's caller: it reveals details piecemeal, changes its mind when it hears
a proposal, confirms or refuses what is proposed, reminds the agent of what was forgotten, and gives up. It reads the
agent's words and the phone's answers only, never the world.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar

from muarl.chat import Message, ToolCall
from muarl.domains.base import Task
from muarl.domains.telecom import hearing, phrases
from muarl.domains.telecom.hearing import Step
from muarl.domains.telecom.official import official_agenda
from muarl.users.base import UserTurn
from muarl.users.caller import Caller, Phrases, Request

REVEALS: Mapping[str, Sequence[str]] = {
    "terse": ("amount",),
    "chatty": ("amount", "reason", "abroad"),
    "confused": (),
    "impatient": ("amount", "reason", "abroad", "identity"),
}
"""What each persona tells at once; the rest is told when asked."""
LOOKS_AGAIN = ("chatty", "impatient")
"""Who tells what the network status shows, unasked, where a step did not help."""
ASKS_HOW = 0.3
"""How often a confused caller asks how to do what was asked, for each new thing."""
TOO_TECHNICAL = ("sim", "apn", "mode", "grant")

PROOF: Mapping[str, str] = {"no_service": "check_status_bar", "mobile_data": "run_speed_test", "mms": "can_send_mms"}
"""The tool that shows whether a problem is solved."""
SWITCHES: Mapping[str, tuple[str, str]] = {
    "airplane": ("check_network_status", "toggle_airplane_mode"),
    "data": ("check_network_status", "toggle_data"),
    "roaming": ("check_network_status", "toggle_roaming"),
    "saver": ("check_data_restriction_status", "toggle_data_saver_mode"),
    "wifi_calling": ("check_wifi_calling_status", "toggle_wifi_calling"),
    "wifi": ("check_wifi_status", "toggle_wifi"),
    "vpn": ("check_vpn_status", "disconnect_vpn"),
}
"""Each switch: the tool that shows it, and the one that turns it over."""

Errand = Generator[tuple[str, dict[str, Any]], str, str]
"""Yields (tool, arguments), is sent the tool's text, and returns what is then said to the agent."""


class AgendaUser(Caller):
    """Plays ``task.agenda`` (domains/telecom/generator.py), or a benchmark's task from its scenario.

    Deterministic in (task, seed, what it hears and sees). ConfigError if the task is neither.
    """

    words: ClassVar[Phrases] = phrases
    reveals = REVEALS
    template_first = "always"
    restated = "{}"

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        agenda = task.agenda if task.agenda is not None else official_agenda(task)
        super().__init__(task, seed=seed, persona=persona, agenda=agenda, label="telecom agenda")
        self._wrong_phone = self._agenda["wrong_phone"]
        self._errand: Errand | None = None
        self._calls = 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Answer the agent's last message, or go on with what it asked for; the first reply is the opening."""
        last = conversation[-1] if conversation else None
        text = (last.content or "") if last is not None else ""
        if self._errand is not None and last is not None and last.role == "tool":
            return self._go_on(text)
        answer = self._hear(text) if self._started else self._opening()
        self._started = True
        if isinstance(answer, str):
            return UserTurn(Message("user", answer))
        self._errand = answer
        return self._go_on(None)

    def _go_on(self, result: str | None) -> UserTurn:
        assert self._errand is not None
        try:
            name, arguments = next(self._errand) if result is None else self._errand.send(result)
        except StopIteration as end:
            self._errand = None
            return UserTurn(Message("user", end.value))
        self._calls += 1
        call = ToolCall(f"user_{self._calls}", name, arguments, "user")
        return UserTurn(Message("user", None, (call,)))

    # what is told

    def _say(self, request: Mapping[str, Any], slots: Sequence[str]) -> str:
        return phrases.say_wish(self._rng, request["kind"], request["wish"], slots)

    def _identity(self) -> str:
        phone, self._wrong_phone = self._wrong_phone or self._agenda["identity"]["phone"], None
        return phrases.say_identity(self._rng, self._agenda["identity"], phone)

    # what is answered

    def _hear(self, text: str) -> str | Errand:
        acts, steps = hearing.hear(text), hearing.instructions(text)
        if "transferred" in acts:
            return "###TRANSFER###"
        if "ask_identity" in acts and not steps:
            return self._tired("identity" if self._wrong_phone is None else "wrong identity") or self._identity()
        if steps:
            return self._do(steps)
        request = self._request_meant(text)
        if request is None:
            return self._follow(text)
        if request["answer"] is not None and request["answer"] in text:
            return self._settle(request, text)
        wish = request["wish"]
        if "limit" in acts and request["kind"] == "refuel":
            return self._unavailable(request, text, proposed="confirm" in acts)
        for slot in ("abroad", "amount", "reason", "bill"):
            if f"ask_{slot}" in acts and "question" in acts and (slot in wish or slot in ("bill", "abroad")):
                return self._tired(f"{slot} of {wish}") or phrases.say_slot(self._rng, slot, wish)
        if "confirm" in acts and "question" in acts and request["kind"] not in ("outside", "question"):
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, text)
        if "ask_help" in acts:
            return self._restate(request)
        if request["kind"] in PROOF:
            return self._see(request)
        return self._hear_done(request, text) if "done" in acts else self._restate(request)

    def _request_meant(self, text: str) -> Request | None:
        """The request an agent's message is about: a told one whose kind it speaks of, else the first told one."""
        kinds = hearing.spoken_kinds(text)
        told = [r for r in self._open if r["told"]]
        for request in (*told, *(r for r in self._confirmed if "?" in text)):
            if request["kind"] in kinds:
                return request
        return told[0] if told else None

    def _confirm(self, request: Request, text: str) -> str:
        kinds = hearing.spoken_kinds(text)
        if request["kind"] in PROOF:
            if not request["wish"]["pays"] and "pay" in kinds:
                return self._pick(phrases.REFUSES)
            if "refuel" not in kinds and not self._conflicts(request, text):
                return self._agree(request, text)  # only a price changes its mind
        return super()._confirm(request, text)

    def _agree(self, request: Request, text: str) -> str:
        if request["kind"] not in PROOF:
            self._close(request)
            self._confirmed.append(request)
        self._news()
        return self._tired(f"agreed to {text}") or self._pick(phrases.YES)

    def _say_change(self, request: Request, old: Mapping[str, Any]) -> str:
        return self._pick(phrases.CHANGES).format(phrases.gb(request["wish"]["amount"]))

    def _conflicts(self, request: Request, text: str) -> bool:
        """True if an agent's proposal is not the wish: something else, another amount, bill, reason or number."""
        kind, wish = request["kind"], request["wish"]
        kinds = hearing.spoken_kinds(text)
        if kind in PROOF:
            allowed = {"refuel", "roaming_on"} if kind != "no_service" else {"pay", "resume"}
            if kinds and not kinds & allowed:
                return True
        elif kind not in kinds:
            return True
        if "refuel" in kinds and hearing.proposed_amount(text) != wish.get("amount"):
            return True
        if "bill" in wish and wish["bill"] not in text:
            return True
        numbers = hearing.PHONE_NUMBER.findall(text)
        return bool(numbers) and self._agenda["identity"]["phone"] not in numbers

    def _correction(self, request: Request, text: str) -> str:
        wish = request["wish"]
        if request["kind"] in PROOF and "refuel" in hearing.spoken_kinds(text) and wish["amount"] is not None:
            return phrases.say_wish(self._rng, "refuel", wish, ("amount",))
        return self._whole(request)

    def _accept(self, request: Request, text: str, *, proposed: bool) -> str:
        return self._settle(request, text)

    def _say_instead(self, request: Request, old: Mapping[str, Any]) -> str:
        return phrases.say_slot(self._rng, "amount", request["wish"])

    # what is done on the phone

    def _do(self, steps: Sequence[Step]) -> str | Errand:
        technical = next((s for s in steps if s[0] in TOO_TECHNICAL or s == ("set", "vpn off")), None)
        if self._persona == "confused" and technical is not None and f"how {technical}" not in self._asked:
            self._asked.add(f"how {technical}")
            if self._rng.random() < ASKS_HOW:
                return phrases.HOW
        changing = any(s[0] not in ("read", "try") for s in steps)
        topic = f"{'changes' if changing else 'steps'} {steps}"
        if changing and topic not in self._asked:
            self._news()
        return self._tired(topic) or self._carry_out(steps)

    def _news(self) -> None:
        """Something has changed, so it is no nuisance to look and to try again."""
        self._asked -= {a for a in self._asked if a.startswith(("steps [('read'", "steps [('try'"))}

    def _carry_out(self, steps: Sequence[Step]) -> Errand:
        """Take the steps one by one; then tell what was seen, and whether the trouble is over if anything changed."""
        seen: dict[str, str] = {}
        said: list[str] = []
        changed = False
        for kind, what in steps:
            if kind == "read":
                seen |= hearing.phone_facts((yield what, _ARGUMENTS.get(what, {})))
                continue
            changed = True
            if kind == "pay":
                said.append((yield from self._pay()))
            elif kind == "set":
                name, state = what.split(" ")
                seen |= yield from self._switch(name, state)
            else:
                for name, arguments in _writes(kind, what):
                    yield name, arguments
        trouble = next((r for r in self._open if r["told"] and r["kind"] in PROOF), None)
        if trouble is None or (said and not trouble["wish"]["pays"]):
            text = phrases.say_facts(self._rng, self._persona, seen)
            return " ".join(said) or text or self._pick(phrases.DONE)
        if not changed or said:
            over = _over(trouble["kind"], seen)
            return self._report(trouble, seen, said, over)
        return (yield from self._prove(trouble))

    def _switch(self, name: str, state: str) -> Generator[tuple[str, dict[str, Any]], str, dict[str, str]]:
        """Bring a switch to a state. A look comes first, since the phone's tools only turn switches over."""
        look, turn = SWITCHES[name]
        facts = hearing.phone_facts((yield look, {}))
        if facts.get(name) == state:
            return {name: state}
        if name == "vpn" and state == "on":
            turn = "connect_vpn"
        return {name: state, **hearing.phone_facts((yield turn, {}))}

    def _pay(self) -> Errand:
        trouble = next((r for r in self._open if r["told"] and r["kind"] in PROOF), None)
        if trouble is not None and not trouble["wish"]["pays"]:
            return self._pick(phrases.REFUSES)
        request = yield "check_payment_request", {}
        bill = hearing.BILL.search(request)
        if bill is None:
            return phrases.NO_REQUEST
        paid = yield "make_payment", {}
        return f"I have paid bill {bill[0]}." if "has been made" in paid else phrases.NO_REQUEST

    def _see(self, request: Request) -> Errand:
        """The agent has said nothing that asks for anything: see whether the trouble is over."""
        seen = hearing.phone_facts((yield PROOF[request["kind"]], {}))
        if _over(request["kind"], seen):
            return self._report(request, seen, [], True)
        return self._tired() or self._report(request, seen, [], False)

    def _prove(self, trouble: Request) -> Errand:
        """Try whether the trouble is over, and tell."""
        kind = trouble["kind"]
        proof = hearing.phone_facts((yield PROOF[kind], {}))
        over = _over(kind, proof)
        facts: dict[str, str] = {}
        if not over and self._persona in LOOKS_AGAIN:
            facts = hearing.phone_facts((yield "check_network_status", {}))
        if kind == "mobile_data":
            facts |= {"speed": proof.get("speed", "none")}
        return self._report(trouble, facts, [], over)

    def _report(self, trouble: Request, seen: Mapping[str, str], said: Sequence[str], over: bool | None) -> str:
        if over:
            self._close(trouble)
            return " ".join([*said, self._pick(phrases.WORKS)])
        facts = {k: v for k, v in seen.items() if k != "mms"}
        told = phrases.say_facts(self._rng, self._persona, facts)
        failed = [self._pick(phrases.FAILS)] if over is False or not told + "".join(said) else []
        return " ".join([*said, *([told] if told else []), *failed])


_ARGUMENTS: Mapping[str, dict[str, Any]] = {"check_app_permissions": {"app_name": "messaging"}}


def _writes(kind: str, what: str) -> list[tuple[str, dict[str, Any]]]:
    """The tools behind a step that is no switch."""
    tools: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "sim": [("reseat_sim_card", {})],
        "apn": [("reset_apn_settings", {})],
        "reboot": [("reboot_device", {})],
        "mode": [("set_network_mode_preference", {"mode": what})],
        "grant": [("grant_app_permission", {"app_name": "messaging", "permission": what})],
    }
    return tools.get(kind, [])


def _over(kind: str, facts: Mapping[str, str]) -> bool | None:
    """Whether a problem is solved, None if the facts do not tell."""
    if kind == "no_service":
        return None if "signal" not in facts else facts["signal"] != "none"
    if kind == "mobile_data":
        return None if "speed" not in facts else facts["speed"] == "excellent"
    return None if "mms" not in facts else facts["mms"] == "on"
