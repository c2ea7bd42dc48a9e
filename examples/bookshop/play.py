"""Three agents serve the same customer of the bookshop: one that does nothing, a hasty one and a careful one.

    python examples/bookshop/play.py

The hasty agent and the careful one leave the same database behind and earn the same reward. The audit tells them apart:
the hasty one writes without asking first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from shop import Bookshop, make_task

from muarl.agents.base import Agent, AgentTurn
from muarl.agents.idle import IdleAgent
from muarl.audit.figures import audit
from muarl.chat import Message, ToolCall, ToolSpec
from muarl.conversation import run_episode
from muarl.domains.base import Task
from muarl.episode import Episode
from muarl.rewards.gold import check_tasks
from muarl.rewards.outcome import score
from muarl.users.scripted import ScriptedUserFactory


class Puppet:
    """An agent that says and does fixed things, whatever it hears. A real agent reads ``new``."""

    tokens = None  # no sampler of ours drives it

    def __init__(self, name: str, messages: Sequence[Message]) -> None:
        self.name = name
        self._messages = list(messages)

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> Puppet:
        return Puppet(self.name, self._messages)  # one per episode

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        return AgentTurn(self._messages.pop(0) if self._messages else Message("assistant", "Anything else?"))

    def close(self) -> None:
        """Nothing is held."""


def puppets(task: Task) -> list[Agent]:
    """The three agents for this task; the last two know the gold action."""
    action = (task.actions or ())[0]
    order_id = action.arguments["order_id"]

    def say(text: str) -> Message:
        return Message("assistant", text)

    def call(name: str, **arguments: object) -> Message:
        return Message("assistant", None, (ToolCall(f"call-{name}", name, arguments),))

    which, look = say("Which order is it?"), call("get_order", order_id=order_id)
    details = ", ".join(str(value) for name, value in action.arguments.items() if name != "order_id")
    propose = say(f"For order {order_id} I will {action.name.replace('_', ' ')}: {details}. Shall I go ahead?")
    write, done = call(action.name, **action.arguments), say("Done. Anything else?")
    return [
        IdleAgent(),
        Puppet("hasty", [which, write, done]),
        Puppet("careful", [which, look, propose, write, done]),
    ]


async def play(domain: Bookshop, task: Task, agent: Agent) -> Episode:
    """One conversation, scored: the one loop that training, evaluation and chat run too."""
    world = domain.world(task)  # fresh, in microseconds
    make_user = ScriptedUserFactory()  # says the lines in the task's agenda
    episode = await run_episode(task, world, agent, make_user(task, seed=0), user_name=make_user.name)
    verdict = await score(task, world, episode.messages, episode.stop)
    found = audit(episode, task, domain.kind_of, Bookshop.audit)
    episode.verdict = replace(verdict, audit=found)
    return episode


def main() -> None:
    domain = Bookshop()
    task = make_task("test", 0)
    check_tasks(domain, [task])  # do its gold actions work?
    print(f"The customer: {task.scenario}\n")
    for agent in puppets(task):
        episode = asyncio.run(play(domain, task, agent))
        print(f"--- {agent.name}")
        for message in episode.messages:
            calls = ", ".join(f"{c.name}({dict(c.arguments)})" for c in message.tool_calls)
            print(f"{message.role:>9}: {message.content or calls}")
        assert episode.verdict is not None
        print(f"ended by {episode.stop}, reward {episode.reward:g}, {dict(episode.verdict.breakdown)}")
        print(f"writes without consent: {episode.verdict.audit['writes_without_consent']:g}\n")


if __name__ == "__main__":
    main()
