"""Actions of a task made in a fresh world of it, the gold ones or others, and what they are worth."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from muarl.domains.base import Domain, World
from muarl.domains.tasks import Action, Task
from muarl.rewards.judge import Judge
from muarl.rewards.outcome import score
from muarl.rewards.replay import replay
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import StopReason, Verdict


@dataclass(frozen=True, slots=True)
class ReplayedActions:
    """A world after a task's history and some actions. ``messages``: all that was said and called. ``failed``: whether
    one of the actions did."""

    task: Task
    world: World
    messages: Sequence[Message]
    failed: bool

    async def score(
        self, said: str | None = None, stop: StopReason = StopReason.USER_STOP, *, judge: Judge | None = None
    ) -> Verdict:
        """The verdict if the agent ends by saying this (None: that it is done, and all that must be said)."""
        told = " ".join(["Done.", *self.task.communicate_info]) if said is None else said
        return await score(self.task, self.world, [*self.messages, Message("assistant", told)], stop, judge=judge)


@asynccontextmanager
async def replayed(domain: Domain, task: Task, actions: Sequence[Action] = ()) -> AsyncIterator[ReplayedActions]:
    """A world of the task in which these actions are made, each whether or not one before it failed. It is closed in
    the end. ReplayError for a history that cannot be replayed; InfrastructureError where no world can be had."""
    world = domain.world(task)
    messages, failed = list(task.history), False
    try:
        await world.aopen()
        if task.history:
            replay(world, task.history)
        for number, action in enumerate(actions):
            call = call_of(number, action)
            messages.append(Message(action.requestor, None, (call,)))
            async for result in world.answers(action.requestor, [call]):
                said = Message("tool", result.content, tool_call_id=call.id, name=call.name, error=result.error)
                messages.append(said)
                failed |= result.error
        yield ReplayedActions(task, world, messages, failed)
    finally:
        await world.aclose()


def fresh_world(domain: Domain, task: Task) -> World:
    """A world after the task's history, which needs no closing. ReplayError as of ``replayed``."""
    world = domain.world(task)
    if task.history:
        replay(world, task.history)
    return world


def call_of(number: int, action: Action) -> ToolCall:
    """A task's action number ``number`` as a call."""
    return ToolCall(f"gold-{number}", action.name, dict(action.arguments), action.requestor)


async def gold_ending(domain: Domain, task: Task) -> tuple[str, str]:
    """The digest of the state that the gold actions lead to, and the parts of the reward that are lost on somebody who
    makes them and says what is to be said, with commas; empty if there are none."""
    async with replayed(domain, task, task.actions or ()) as done:
        digest, verdict = await done.world.state_digest(), await done.score()
    return digest, ", ".join(name for name, value in verdict.breakdown.items() if value != 1)
