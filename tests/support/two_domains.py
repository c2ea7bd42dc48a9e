"""Two small environments of one's own: lamps that are switched on, and doors that are locked. Their tasks have the same
ids and their domains the same name, so that nothing but the environment tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

SOURCE = '''
from muarl.types.chat import Message, ToolCall
from muarl.domains.tasks import Action, Task
from muarl.domains.base import Domain
from muarl.domains.tooling import tool
from muarl.environments.environment import Environment
from muarl.users.base import UserTurn

ROOMS = ("hall", "attic", "study")


class Lamps(Domain):
    name = "house"
    policy = "Switch on what you are told."
    database = {"lamps": {room: {"on": False} for room in ROOMS}}

    @tool(kind="write")
    def switch_on(self, room: str) -> str:
        """Switch a lamp on.

        Args:
            room: Where it is.
        """
        self.db["lamps"][room]["on"] = True
        return "on"


class Doors(Domain):
    name = "house"
    policy = "Lock what you are told."
    database = {"doors": {room: {"locked": False} for room in ROOMS}}

    @tool(kind="write")
    def lock(self, room: str) -> str:
        """Lock a door.

        Args:
            room: Where it is.
        """
        self.db["doors"][room]["locked"] = True
        return "locked"


class Says:
    def __init__(self, room):
        self.lines = [f"The {room}, please.", "Thanks. ###STOP###"]

    async def reply(self, conversation):
        return UserTurn(Message("user", self.lines.pop(0) if self.lines else "###STOP###"))


class Serves:
    def __init__(self, call):
        self.call = call

    def act(self, new):
        said = new[-1].content or ""
        room = next((r for r in ROOMS if r in said), None)
        if new[-1].role == "user" and room:
            return Message("assistant", None, (ToolCall("c0", self.call, {"room": room}),))
        return Message("assistant", "Done.")


def tasks_of(call):
    def tasks(split, index, seed):
        room = ROOMS[(index + seed) % len(ROOMS)]
        number = f"{split}-{seed}-{index}"
        actions = (Action(call, {"room": room}),)
        return Task(number, "house", f"You want the {room}.", actions, agenda={"room": room}, tags={"intent": call})

    return tasks


def user(task, *, seed, persona=None):
    return Says(task.agenda["room"])


LAMPS = Environment(
    name="lamps", domain=Lamps, tasks=tasks_of("switch_on"), rule_based_user=user,
    expert=lambda *, seed, error_profile=None: Serves("switch_on"),
)
DOORS = Environment(
    name="doors", domain=Doors, tasks=tasks_of("lock"), rule_based_user=user,
    expert=lambda *, seed, error_profile=None: Serves("lock"),
)
'''


def write_house(folder: Path) -> tuple[str, str]:
    """The file of both in a folder; the references to them, approved."""
    from muarl.environments.registry import approve

    file = folder / "house.py"
    file.write_text(SOURCE)
    return approve(f"{file}:LAMPS"), approve(f"{file}:DOORS")


def listed(references: Sequence[str], *weights: float) -> str:
    """The setting ``domain`` with these."""
    import json

    entries: list[Any] = [{"name": name, "weight": weight} for name, weight in zip(references, weights, strict=True)]
    return f"domain={json.dumps(entries)}"
