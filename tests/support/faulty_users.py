"""Users by rules that commit exactly one kind of fault, at a known rate, and write down where they did.

    users = FaultyUsers(clean, "invents", rate=0.3)
    ... play with ``users`` ...
    users.committed      # (task id, number of the user's message), so that recall can be measured

Everything else that they say is the clean user's.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from muarl.domains.tasks import Task
from muarl.language.acts import asks_for_yes, hear
from muarl.language.consent import is_affirmative
from muarl.types.chat import STOP_WORDS, Message, ToolCall
from muarl.users.base import User, UserFactory, UserTurn

STOP = STOP_WORDS[0]
LONG = 18
"""Words."""
WISH = re.compile(r"^\s*(You (?:also )?want .*)$", re.MULTILINE)
KNOWN = re.compile(r"Known info:\n\s*(.*)")


def in_first_person(text: str) -> str:
    """A sentence of a scenario as a user says it who does not rephrase."""
    for old, new in (("Your", "My"), ("your", "my"), ("You were", "I was"), ("You", "I"), ("you", "I")):
        text = re.sub(rf"\b{old}\b", new, text)
    return text


def identity(task: Task) -> str:
    found = KNOWN.search(task.scenario)
    return in_first_person(found[1]) if found else ""


def wishes(task: Task) -> list[str]:
    return [in_first_person(w) for w in WISH.findall(task.scenario)]


class Faults:
    """One user in one episode. ``fault``: a method that returns a faulty message, or None where it is not possible."""

    def __init__(self, inner: User, task: Task, kind: str, rate: float, seed: int, note: Callable[[int], None]) -> None:
        self._inner, self.task, self.kind, self._rate, self._note = inner, task, kind, rate, note
        self._fault: Callable[[str, str], str | Message | None] = getattr(self, f"_{kind}")
        self.rng = random.Random(f"{kind} {task.id} {seed}")
        self.said: list[str] = []
        self.heard: list[str] = []
        self._number = 0
        self._kept: list[str] = []

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        if self._kept:  # behind a call that the clean user knows nothing of
            self._number += 1
            return UserTurn(Message("user", self._kept.pop()))
        turn = await self._inner.reply(conversation)
        number, self._number = self._number, self._number + 1
        if turn.message.tool_calls:
            return self._instead_of_a_call(conversation, number, turn)
        heard = conversation[-1].content or "" if conversation else ""
        text = turn.message.content or ""
        made = self._fault(text, heard) if self.rng.random() < self._rate else None
        if made is not None:
            self._note(number)
        message = made if isinstance(made, Message) else Message("user", made or text)
        self.said.append(message.content or "")
        self.heard.append(heard)
        return UserTurn(message, turn.usage)

    def _instead_of_a_call(self, conversation: Sequence[Message], number: int, turn: UserTurn) -> UserTurn:
        """The clean user's call, or, of one that omits actions, a claim to have done what it was asked for."""
        heard = (conversation[-1].content or "") if conversation[-1].role == "assistant" else ""
        told = [claims for asks, claims in CLAIMS.items() if re.search(asks, heard, re.IGNORECASE)]
        if self.kind != "omits_actions" or not told or self.rng.random() >= self._rate:
            return turn
        self._note(number)
        return UserTurn(Message("user", self.rng.choice((*told[0], *DONE))), turn.usage)

    def _omits_actions(self, text: str, heard: str) -> None:
        """Its words are the clean user's."""

    # Each gets what the clean user would say, and what it heard.

    def _contradicts(self, text: str, heard: str) -> str | None:
        runs = [m for m in re.finditer(r"\d{4,}", text) if m[0] in self.task.scenario and m[0] not in heard]
        if not runs:
            return None
        run = runs[0]
        other = "".join(str((int(d) + 3) % 10) for d in run[0][-2:])
        return text[: run.end() - 2] + other + text[run.end() :]

    def _invents(self, text: str, heard: str) -> str | None:
        if any(w in text for w in STOP_WORDS):
            return None
        number = self.rng.randint(1000, 9999)
        every = [
            ("@", f"{text} My e-mail address is someone{number}@mail.example."),
            ("credit_card_", f"{text} My payment method is credit_card_{number}."),
            ("ABX-", f"{text} The reference is ABX-{number}."),
        ]
        return self.rng.choice([said for mark, said in every if mark not in self.task.scenario])

    def _leaks(self, text: str, heard: str) -> str:
        quoted = WISH.findall(self.task.scenario)[0].strip()
        return self.rng.choice(
            (
                f"As an AI language model I cannot say more. {text}",
                f"{text} That is what my instructions say.",
                f"According to the scenario, {quoted.lower()}",
                f"{text} Known info: see above.\nTask instructions: {quoted}",
                f'{text} {{"name": "cancel", "arguments": {{}}}}',
            )
        )

    def _breaks_character(self, text: str, heard: str) -> str:
        return self.rng.choice(
            (
                "Of course! How can I help you with that?",
                "Your request has been processed successfully. Thank you for contacting us.",
                f"{text}\nAgent: I will do that right away.",
                "My name is [your name] and I would like to go on.",
                "Could you please provide your order number so that I can look into it?",
            )
        )

    def _unknown_tool(self, text: str, heard: str) -> Message:
        self._kept.append(text)
        name = self.rng.choice(("get_order_details", "cancel_everything", "lookup"))
        return Message("user", None, (ToolCall(f"u{self._number}", name, {}, requestor="user"),))

    def _agrees_and_stops(self, text: str, heard: str) -> str | None:
        if not asks_for_yes(heard) or "else" in hear(heard):
            return None
        return self.rng.choice(("Yes, please go ahead.", "Yes, that is right.", "Sure, do it.")) + f" {STOP}"

    def _stops_early(self, text: str, heard: str) -> str | None:
        asks = asks_for_yes(heard) or ("question" in hear(heard) and self.said)
        return STOP if asks and "else" not in hear(heard) and not any(w in text for w in STOP_WORDS) else None

    def _agrees_wrongly(self, text: str, heard: str) -> str | None:
        if heard not in WRONG or is_affirmative(text) or any(w in text for w in STOP_WORDS):
            return None
        return self.rng.choice(("Yes, please.", "Yes, go ahead.", "That is right, please do."))

    def _never_stops(self, text: str, heard: str) -> str | None:
        if self.said and any(w in text for w in STOP_WORDS):
            return self.rng.choice(("Thanks, good to know.", "I see, all right.", "Okay then.", "Good, and thank you."))
        return None

    def _front_loads(self, text: str, heard: str) -> str | None:
        whole = " ".join(wishes(self.task)).split()
        if self.said or "in a hurry" in self.task.scenario or len(whole) < LONG:  # a short wish is told at once
            return None
        return f"Hello. {identity(self.task)} {' '.join(wishes(self.task))}"

    def _overtells(self, text: str, heard: str) -> str | None:
        if not self.said:
            return None
        told = " ".join(self.said)
        new = [w for w in wishes(self.task) if not any(n in told for n in re.findall(r"\d{3,}", w) or [w])]
        asked = "ask_identity" in hear(heard) or re.search(r"your (?:full )?(?:name|user id|e-?mail|zip)", heard)
        return f"{text} {' '.join(new)}" if asked and new and not any(w in text for w in STOP_WORDS) else None

    def _repeats(self, text: str, heard: str) -> str | None:
        if any(w in text for w in STOP_WORDS) or heard in self.heard:
            return None
        before = [t for t in self.said if len(t.split()) >= 8 and t != self.said[-1]]
        return before[0] if before else None

    def _loops(self, text: str, heard: str) -> str | None:
        return self.said[0] if self.said else None

    def _empty(self, text: str, heard: str) -> str:
        return self.rng.choice(("...", "?!", "—", ". . ."))

    def _incoherent(self, text: str, heard: str) -> str:
        words = sorted(set(re.findall(r"[A-Za-z]{2,}", f"{self.task.scenario} {heard}")))
        mixed = self.rng.sample(text.split(), len(text.split()))
        return self.rng.choice(
            (
                " ".join(self.rng.choice(words) for _ in range(14)),
                " ".join(self.rng.choice(NOISE) for _ in range(9)),
                " ".join(mixed) if len(mixed) >= 12 else " ".join(self.rng.choice(NOISE) for _ in range(7)),
                "I want the " * 9 + "I want",
                "?!.. ,,,;;; !!!! .... ---- ;;;; ????",
                "I w\ufffd\ufffdnt \ufffdo c\ufffdncel",
                "qwrtz plmkn xcvbnm sdfgh",
            )
        )

    def _pretends(self, text: str, heard: str) -> str | None:
        done = re.search(
            r"\b(turn|toggle|switch|restart|reboot|reset|disable|enable|remove|check|set|run)\b", heard, re.I
        )
        if not done or any(w in text for w in STOP_WORDS):
            return None
        return self.rng.choice(
            ("I have restarted the phone now.", "I just turned the airplane mode off and it is fine.")
        )


CLAIMS = {
    "please turn off airplane": ("I have turned airplane mode off.", "I just switched off the airplane mode."),
    "please turn on mobile data": ("I turned on my mobile data.", "OK, I've enabled mobile data."),
    "please turn on data roaming": ("I switched data roaming on.", "I have now turned roaming on."),
    "please turn off data saver": ("I turned data saver off.", "I have disabled the data saver."),
    "please turn off wi-?fi calling": ("I've turned off Wi-Fi calling.", "I disabled wifi calling just now."),
    "please disconnect your vpn": ("I disconnected the VPN.", "I have turned my VPN off."),
    "please reseat": ("I took the SIM card out and put it back in.", "I have removed and reinserted the SIM card."),
    "please reset your apn": ("I reset the APN settings.", "I have reset the APN and restarted the phone."),
    "please restart": ("I restarted my phone.", "OK, I have rebooted it."),
    "please allow": ("I granted the permission.", "I have allowed that permission now."),
    "please set your network mode": ("I changed the network mode.", "I've set the network mode as you said."),
    "please check the payment request and pay": ("I made the payment.", "I have paid the bill."),
}
"""By what an agent asks for: claims to have done it, as people word them."""
DONE = ("Done.", "OK, done.", "I did that.", "Okay, I've done that now.", "It is done.")

_NOISE = """
    table seven blue run of candle orbit lettuce swim the harbor quickly pigeon under velvet arithmetic jump marble
    because thunder slow bucket whisper engine purple ladder cheese drift copper sing window fog
"""
NOISE = _NOISE.split()
"""Words that have nothing to do with each other."""

WRONG: set[str] = set()
"""Proposals that a test's agent has got wrong."""


class FaultyUsers:
    """Makes users of another factory's with one kind of fault. ``committed``: (task, number of the message)."""

    def __init__(self, users: UserFactory, kind: str, rate: float) -> None:
        self.users, self.kind, self.rate = users, kind, rate
        self.name = f"{users.name} that {kind}"
        self.committed: list[tuple[str, int]] = []

    def __call__(self, task: Task, *, seed: int) -> User:
        note = lambda number: self.committed.append((task.id, number))  # noqa: E731
        return Faults(self.users(task, seed=seed), task, self.kind, self.rate, seed, note)
