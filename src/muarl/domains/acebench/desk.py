"""ACEBench's classes as the domain of generated tasks: native tool calls, mended semantics, worlds of our own.

Beside ACEBench's tools there is one to transfer to a human agent, which its policies speak of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.domains.acebench.domain import AceBench, toolbox
from muarl.domains.acebench.worlds import Family, World
from muarl.domains.base import Renderer, Task, tool
from muarl.errors import DataError

CLASSES: Mapping[Family, tuple[str, ...]] = {
    "phone": ("BaseApi", "MessageApi", "ReminderApi", "FoodPlatform"),
    "travel": ("Travel",),
}
"""The classes that a phone and a travel desk are made of."""

HELPERS = ("authenticate_user", "update_balance", "process_refund", "calculate_price_difference")
"""Tools of ACEBench's that are parts of others, or show what others hide: they are not offered."""


class GeneratedAce(AceBench):
    """Generated phones and travel desks, in English.

    A task offers the tools of its classes. ``tools``: only these, beside the transfer; None: all but ``HELPERS``.
    ``policies``: by family, in place of one ``policy`` for both.
    """

    def __init__(
        self,
        *,
        policy: str = "none",
        policies: Mapping[Family, str] | None = None,
        tools: Sequence[str] | None = None,
        render: Renderer | None = None,
    ) -> None:
        offered = [n for n in toolbox("en") if n not in HELPERS] if tools is None else tools
        transfer = GeneratedAce.transfer_to_human_agents.__name__
        super().__init__("en", policy=policy, tools=[*offered, transfer], render=render)
        self._policies = policies

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the conversation over to a human agent.

        Args:
            summary: What it is about.
        """
        return "Transfer successful"

    def policy_for(self, task: Task) -> str:
        """The policy for a phone, or for a travel desk."""
        return self.policy_text if self._policies is None else self._policies[family_of(task)]


def initial_data(world: World) -> dict[str, Any]:
    """A generated world as AceBench wants it in a task."""
    config = {"BaseApi": world.state["BaseApi"]} if world.family == "phone" else {}
    return {"classes": list(CLASSES[world.family]), "config": config, "state": world.state}


def family_of(task: Task) -> Family:
    """Whether a task is about a phone or a travel desk. DataError if it says nothing of its world."""
    if task.initial_data is None:
        raise DataError(f"task {task.id!r} was not generated: it says nothing of its world")
    return "travel" if "Travel" in task.initial_data["classes"] else "phone"
