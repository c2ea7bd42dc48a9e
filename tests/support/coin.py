"""A scored environment of one choice: the customer tosses a coin and wants heads.

What the agent says decides nothing, so that with any model every episode is right or wrong by its seed alone, groups
differ, and every step moves the weights. Few of its words are needed for that, which keeps training short.

The fixture ``coin`` (recipes/conftest.py) lets the recipes' small configuration play it in place of retail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.environments.environment import Environment
from muarl.environments.registry import approve
from muarl.rollouts.rules import Rules
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import StopReason
from muarl.users.base import UserTurn

REFERENCE = "support.coin:COIN"
SETTING = f"domain.name={REFERENCE}"


class Hand(Domain):
    """The customer's side: what lies in the hand."""

    name = "coin"
    database = {"coin": {"c": {"up": "nothing"}}}

    @tool(writes=True)
    def toss(self, side: str) -> str:
        """Toss the coin.

        side: what comes up.
        """
        self.db["coin"]["c"]["up"] = side
        return side


class Coin(Domain):
    """The agent looks on."""

    name = "coin"
    policy = "Say heads or tails."
    database = {"throws": {}}
    user_toolkit = Hand
    audit = AuditRules()

    @tool
    def look(self) -> str:
        """Look at the hand."""
        return "It is closed."


class Customer:
    """Asks twice, tosses, and goes."""

    def __init__(self, seed: int) -> None:
        toss = ToolCall("c0", "toss", {"side": ("tails", "heads")[seed % 2]}, requestor="user")
        self.turns = [
            Message("user", "Heads or tails?"),
            Message("user", "Are you sure?"),
            Message("user", None, (toss,)),
            Message("user", "Thanks. ###STOP###"),
        ]

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        return UserTurn(self.turns.pop(0))


class Expert:
    """Says one side."""

    def act(self, new: Sequence[Message]) -> Message:
        return Message("assistant", "Heads.")


class AnythingGoes(Rules):
    """Whatever the agent writes is something said, cut off or not: a model that can hardly speak may play."""

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        return message, None

    def calls_to_run(self, message: Message) -> tuple[ToolCall, ...]:
        return ()


def make_task(split: str, index: int, seed: int) -> Task:
    """Task ``index`` of a split."""
    number = f"coin-{split}-{seed}-{index}"
    wanted = Action("toss", {"side": "heads"}, requestor="user")
    return Task(number, "coin", f"You toss coin {number} for heads.", (wanted,), tags={"intent": "toss"})


def customer(task: Task, *, seed: int, persona: str | None = None) -> Customer:
    return Customer(seed)


def expert(*, seed: int, error_profile: Any) -> Expert:
    return Expert()


COIN = Environment(
    name="coin", domain=Coin, tasks=make_task, rule_based_user=customer, expert=expert, rules=AnythingGoes()
)


def allow() -> None:
    """Let this process play it."""
    approve(REFERENCE)
