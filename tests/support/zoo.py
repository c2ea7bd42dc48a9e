"""A zoo's ticket office: a small environment that passes every check, for tests that break it in one place each."""

from __future__ import annotations

from pathlib import Path

ZOO = '''
"""The ticket office of a zoo."""

import random
import re

from muarl import Action, Database, Domain, Environment, Message, Task, ToolCall, tool
from muarl.domains.auditing import AuditRules
from muarl.language.consent import is_affirmative
from muarl.users.scripted import ScriptedUser


class Office(Domain):
    """Tickets, which can be moved to another day or cancelled."""

    name = "zoo"
    policy = "You sell tickets. Look a ticket up, say what you will do, and wait for a yes. Used ones stay as they are."
    audit = AuditRules(spoken={"move": ("change",)})

    @tool
    def look(self, ticket: str) -> dict:
        """Look a ticket up.

        ticket: its number, such as 'T-104'.
        """
        if ticket not in self.db["tickets"]:
            raise ValueError(f"there is no ticket {ticket}")
        return self.db["tickets"][ticket]

    @tool(writes=True)
    def move(self, ticket: str, day: str) -> dict:
        """Move a ticket to another day.

        ticket: its number, such as 'T-104'.
        day: the new day.
        """
        found = self.look(ticket)
        found["day"] = day
        return found

    @tool(writes=True)
    def cancel(self, ticket: str) -> dict:
        """Cancel a ticket.

        ticket: its number, such as 'T-104'.
        """
        found = self.look(ticket)
        found["day"] = "cancelled"
        return found

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the visitor over to a colleague.

        summary: what it is about.
        """
        return "done"


DAYS = ("Monday", "Tuesday", "Friday", "Sunday")


def make_task(split: str, index: int, seed: int = 0) -> Task:
    """Task ``index`` of a split."""
    rng = random.Random(f"zoo {split} {index} {seed}")
    day, other = rng.sample(DAYS, 2)
    ticket = f"T-{('train', 'validation', 'test').index(split)}{rng.randrange(10**6):06}"
    used = rng.random() < 0.05
    if rng.random() < 0.5:
        request, action = f"Please move my ticket to {other}.", Action("move", {"ticket": ticket, "day": other})
    else:
        request, action = "Please cancel my ticket.", Action("cancel", {"ticket": ticket})
    answers = ("Yes, please.",)
    if action.name == "move" and not used and rng.random() < 0.4:
        answers = (f"No, wait, move it to {day}.", *answers)
        action = Action("move", {"ticket": ticket, "day": day})
        day = next(one for one in DAYS if one not in (day, other))
    return Task(
        id=f"zoo-{split}-{seed}-{index}",
        domain="zoo",
        scenario=f"You have the ticket {ticket}. You say: {request}",
        actions=() if used else (action,),
        database=Database({"tickets": {ticket: {"id": ticket, "day": "used" if used else day}}}),
        agenda={"lines": (request, f"It has the number {ticket}.", *answers)},
        tags={"intent": "used" if used else action.name, "split": split},
    )


def visitor(task: Task, *, seed: int, persona: str | None = None) -> ScriptedUser:
    """A visitor who says these lines."""
    return ScriptedUser(task.agenda["lines"])


class Clerk:
    """Asks for the number, looks it up, proposes, waits for a yes, does it."""

    def __init__(self, *, seed, error_profile):
        self.hasty = random.Random(seed).random() < error_profile.skip_confirmation
        self.day, self.call = "", None

    def act(self, new):
        """The next step."""
        text = new[-1].content or ""
        if new[-1].role == "tool":
            return self.served(text)
        if self.call is not None and self.call.name != "look":
            yes, moved = is_affirmative(text), re.search(r"to (\\w+)\\.", text)
            call, self.call = self.call, None
            if yes:
                return self.do(call)
            if moved is None:
                return Message("assistant", "Then I leave it. Anything else?")
            self.day, self.call = moved[1], ToolCall("2", "move", {**call.arguments, "day": moved[1]})
            return Message("assistant", f"I will move {call.arguments['ticket']} to {self.day}. Shall I go ahead?")
        moved = re.search(r"to (\\w+)\\.", text)
        self.day = moved[1] if moved else self.day
        number = re.search(r"T-\\d+", text)
        if number is None:
            return Message("assistant", "What is the number of the ticket?")
        self.call = ToolCall("1", "look", {"ticket": number[0]})
        return Message("assistant", None, (self.call,))

    def served(self, text):
        """What follows a result."""
        if self.call is None or "Error" in text:
            self.call = None
            return Message("assistant", "It is done. Anything else?")
        if "used" in text:
            self.call = None
            return Message("assistant", "It has been used, so that I cannot change it. Anything else?")
        ticket = self.call.arguments["ticket"]
        if self.day:
            said, self.call = f"move {ticket} to {self.day}", ToolCall("2", "move", {"ticket": ticket, "day": self.day})
        else:
            said, self.call = f"cancel {ticket}", ToolCall("2", "cancel", {"ticket": ticket})
        if self.hasty:
            call, self.call = self.call, None
            return self.do(call)
        return Message("assistant", f"I will {said}. Shall I go ahead?")

    def do(self, call):
        """The write."""
        return Message("assistant", None, (call,))


ZOO = Environment(name="zoo", domain=Office, tasks=make_task, rule_based_user=visitor, expert=Clerk)
'''
"""The environment as its author's file, ``zoo.py:ZOO``."""


def write_zoo(folder: Path, *changes: tuple[str, str]) -> str:
    """Write the file with changes, each a text in it and what stands there instead; the reference to name it by."""
    text = ZOO
    for old, new in changes:
        assert text.count(old) == 1, f"{text.count(old)} times in the file: {old}"
        text = text.replace(old, new)
    path = folder / "zoo.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}:ZOO"
