"""A shop with two orders, and users of fixed lines: for tests that need no tokenizer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.types.chat import Message
from muarl.users.base import UserTurn


class Toy(Domain):
    """A shop with two orders."""

    name: ClassVar[str] = "toy"
    policy = "Be kind. Cancel only pending orders."
    database: ClassVar[Any] = {
        "orders": {"#W12": {"id": "#W12", "status": "pending"}, "#W13": {"id": "#W13", "status": "shipped"}}
    }

    @tool
    def look(self, order_id: str) -> str:
        """Look up an order.

        order_id: the order
        """
        return str(self.db["orders"][order_id]["status"])

    @tool(writes=True)
    def cancel(self, order_id: str) -> str:
        """Cancel an order.

        order_id: the order
        """
        if self.db["orders"][order_id]["status"] != "pending":
            raise ValueError("Non-pending order cannot be cancelled")
        self.db["orders"][order_id]["status"] = "cancelled"
        return "done"

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand over.

        summary: what it is about
        """
        return "Transfer successful"


def toy_task(task_id: str = "t1", **tags: Any) -> Task:
    return Task(id=task_id, domain="toy", scenario="Cancel #W12.", actions=(), tags=tags)


class Lines:
    """A user that says its lines and then the stop word; a line may be a Message, an exception, or seconds."""

    name = "lines"

    def __init__(self, *lines: Any, stop: str | None = "###STOP###") -> None:
        self.lines, self.heard = [*lines, *([stop] if stop else [])], []

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        self.heard.append(list(conversation))
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        if isinstance(line, Exception):
            raise line
        if isinstance(line, float):
            await asyncio.sleep(line)
            return await self.reply(conversation)
        return UserTurn(line if isinstance(line, Message) else Message("user", line))
