"""A caller of a carrier that plays an agenda and holds a phone: goals, facts and patience, and no language model.

It does on the phone what the agent asks for, with the user's tools, and tells what they show; it tries itself whether
its trouble is over. For the rest it is as retail's caller: it reveals details piecemeal, changes its mind when it hears
a proposal, confirms or refuses what is proposed, reminds the agent of what was forgotten, and gives up. It reads the
agent's words and the phone's answers only, never the world.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from muarl.chat import Message, ToolCall
from muarl.domains.base import Task
from muarl.domains.telecom import hearing, phrases
from muarl.domains.telecom.hearing import Step
from muarl.domains.telecom.official import official_agenda
from muarl.errors import ConfigError
from muarl.users.agenda import PATIENCE
from muarl.users.base import UserTurn

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


class AgendaUser:
    """Plays ``task.agenda`` (domains/telecom/generator.py), or a benchmark's task from its scenario.

    Deterministic in (task, seed, what it hears and sees). ConfigError if the task is neither.
    """

    def __init__(self, task: Task, *, seed: int, persona: str | None = None) -> None:
        agenda = task.agenda if task.agenda is not None else official_agenda(task)
        if agenda is None:
            raise ConfigError(
                f"task {task.id} has no agenda: an agenda user plays generated tasks only; use an LLM user"
            )
        self._agenda = agenda
        self._persona: str = persona or agenda["persona"]
        self._rng = random.Random(f"telecom agenda {task.id} {seed}")
        self._open: list[dict[str, Any]] = [dict(r, told=False) for r in agenda["requests"]]
        self._confirmed: list[dict[str, Any]] = []
        self._patience = PATIENCE[self._persona]
        self._wrong_phone = agenda["wrong_phone"]
        self._started = False
        self._asked: set[str] = set()
        self._errand: Errand | None = None
        self._calls = 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Answer the agent's last message, or go on with what it asked for; the first reply is the opening."""
        last = conversation[-1] if conversation else None
        text = (last.content or "") if last is not None else ""
        if not self._started:
            return UserTurn(Message("user", self._opening()))
        if self._errand is not None and last is not None and last.role == "tool":
            return self._go_on(text)
        answer = self._answer(text)
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

    def _opening(self) -> str:
        self._started = True
        sentences = []
        for number, request in enumerate(self._open if self._agenda["upfront"] else self._open[:1]):
            template = phrases.OPENINGS[self._persona] if number == 0 else phrases.ALSO
            sentences.append(phrases.pick(self._rng, template).format(self._wish(request)))
            request["told"] = True
        if "identity" in REVEALS[self._persona]:
            sentences.append(self._identity())
        return " ".join(sentences)

    def _wish(self, request: Mapping[str, Any], full: bool = False) -> str:
        reveal = list(request["wish"]) if full else REVEALS[self._persona]
        return phrases.say_wish(self._rng, request["kind"], request["wish"], reveal)

    def _identity(self) -> str:
        phone, self._wrong_phone = self._wrong_phone or self._agenda["identity"]["phone"], None
        return phrases.say_identity(self._rng, self._agenda["identity"], phone)

    # what is answered

    def _answer(self, text: str) -> str | Errand:
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
            return self._too_much(request, text, acts)
        for slot in ("abroad", "amount", "reason", "bill"):
            if f"ask_{slot}" in acts and "question" in acts and (slot in wish or slot in ("bill", "abroad")):
                return self._tired(f"{slot} of {wish}") or phrases.say_slot(self._rng, slot, wish)
        if "confirm" in acts and "question" in acts and request["kind"] not in ("outside", "question"):
            return self._confirm(request, text)
        if "refuse" in acts:
            return self._settle(request, text)
        if "ask_help" in acts:
            return self._tired() or self._wish(request, full=True)
        if request["kind"] in PROOF:
            return self._see(request)
        if "done" in acts:  # what was confirmed is done; else the agent takes this one as finished unconfirmed
            return self._follow(text) if self._confirmed else self._settle(request, text)
        return self._tired() or self._wish(request, full=True)

    def _request_meant(self, text: str) -> dict[str, Any] | None:
        """The request an agent's message is about: a told one whose kind it speaks of, else the first told one."""
        kinds = hearing.spoken_kinds(text)
        told = [r for r in self._open if r["told"]]
        for request in (*told, *(r for r in self._confirmed if "?" in text)):
            if request["kind"] in kinds:
                return request
        return told[0] if told else None

    def _confirm(self, request: dict[str, Any], text: str) -> str:
        problem = request["kind"] in PROOF
        if problem and not request["wish"]["pays"] and "pay" in hearing.spoken_kinds(text):
            return phrases.pick(self._rng, phrases.REFUSES)
        if self._conflicts(request, text):
            return self._tired() or phrases.pick(self._rng, phrases.CORRECTIONS).format(self._correction(request, text))
        then = request["then"]
        if then is None or (problem and "refuel" not in hearing.spoken_kinds(text)):
            if not problem:
                self._close(request)
                self._confirmed.append(request)
            self._news()
            return self._tired(f"agreed to {text}") or phrases.pick(self._rng, phrases.YES)
        request["then"] = None
        if then.get("drop"):
            self._close(request)
            return self._drop()
        request["wish"] = then
        return phrases.pick(self._rng, phrases.CHANGES).format(phrases.gb(then["amount"]))

    def _conflicts(self, request: Mapping[str, Any], text: str) -> bool:
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

    def _correction(self, request: Mapping[str, Any], text: str) -> str:
        wish = request["wish"]
        if request["kind"] in PROOF and "refuel" in hearing.spoken_kinds(text) and wish["amount"] is not None:
            return phrases.say_wish(self._rng, "refuel", wish, ("amount",))
        return self._wish(request, full=True)

    def _too_much(self, request: dict[str, Any], text: str, acts: set[str]) -> str:
        fallback, request["fallback"] = request["fallback"], None
        if fallback is None:
            return self._settle(request, text)
        if fallback.get("drop"):
            self._close(request)
            return self._drop()
        request["wish"] = fallback
        if "confirm" in acts and not self._conflicts(request, text):
            return self._confirm(request, text)
        return phrases.say_slot(self._rng, "amount", fallback)

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
            return " ".join(said) or text or phrases.pick(self._rng, phrases.DONE)
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
            return phrases.pick(self._rng, phrases.REFUSES)
        request = yield "check_payment_request", {}
        bill = hearing.BILL.search(request)
        if bill is None:
            return phrases.NO_REQUEST
        paid = yield "make_payment", {}
        return f"I have paid bill {bill[0]}." if "has been made" in paid else phrases.NO_REQUEST

    def _see(self, request: dict[str, Any]) -> Errand:
        """The agent has said nothing that asks for anything: see whether the trouble is over."""
        seen = hearing.phone_facts((yield PROOF[request["kind"]], {}))
        if _over(request["kind"], seen):
            return self._report(request, seen, [], True)
        return self._tired() or self._report(request, seen, [], False)

    def _prove(self, trouble: dict[str, Any]) -> Errand:
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

    def _report(self, trouble: dict[str, Any], seen: Mapping[str, str], said: Sequence[str], over: bool | None) -> str:
        if over:
            self._close(trouble)
            return " ".join([*said, phrases.pick(self._rng, phrases.WORKS)])
        facts = {k: v for k, v in seen.items() if k != "mms"}
        told = phrases.say_facts(self._rng, self._persona, facts)
        failed = [phrases.pick(self._rng, phrases.FAILS)] if over is False or not told + "".join(said) else []
        return " ".join([*said, *([told] if told else []), *failed])

    # how it goes on, and how it ends

    def _close(self, request: dict[str, Any]) -> None:
        if request in self._open:
            self._open.remove(request)

    def _drop(self) -> str:
        said = phrases.pick(self._rng, phrases.DROPS)
        return said if self._open else f"{said} {phrases.pick(self._rng, phrases.ENDINGS)}"

    def _settle(self, request: dict[str, Any], text: str) -> str:
        """The agent takes this request as finished: done, refused or answered."""
        self._close(request)
        return self._follow(text)

    def _follow(self, text: str) -> str:
        """Bring up what is left, or end. A caller who does not remind expects the agent to know what was told."""
        if not self._open:
            return phrases.pick(self._rng, phrases.ENDINGS)
        request = self._open[0]
        if request["told"] and not self._agenda["reminds"]:
            return phrases.pick(self._rng, phrases.ENDINGS) if "else" in text.lower() else "OK."
        template = phrases.STILL if request["told"] else phrases.ALSO
        request["told"] = True
        return phrases.pick(self._rng, template).format(self._wish(request))

    def _tired(self, asked: str | None = None) -> str:
        """Lose patience and perhaps give up. What is asked (``asked``) for the first time costs nothing."""
        if asked is not None and asked not in self._asked:
            self._asked.add(asked)
            return ""
        self._patience -= 1
        return phrases.GIVES_UP if self._patience < 0 else ""


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
