"""The same replies through every way into muarl: played natively, said from outside, or by the stub of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muarl.agents.base import AgentTurn
from muarl.agents.expert import ExpertAgent
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.endpoints.replies import read_tool_call
from muarl.environments.environment import Environment
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.chat import Message, ToolCall, to_openai
from muarl.types.episode import Episode
from muarl.users.scripted import ScriptedUserFactory
from support.fake_openai import Answer, completion

BROKEN = read_tool_call("broken", "find", '{"id": ')
"""A call as a model may write it: its arguments are no JSON."""


@dataclass(frozen=True)
class Outcome:
    """What must be the same whichever way the replies came: reward, parts, why it ended, and what was said by whom."""

    reward: float | None
    parts: Mapping[str, float]
    stop: str
    said: Sequence[tuple[Any, ...]]

    @classmethod
    def of(cls, episode: Episode) -> Outcome:
        verdict = episode.verdict
        said = [(m.role, m.content, m.name, m.error, m.requestor) for m in episode.messages if m.role != "assistant"]
        return cls(verdict and verdict.reward, dict(verdict.breakdown) if verdict else {}, episode.stop.value, said)


class Replies:
    """An agent that says the same messages in the episodes of a task, by the task's id, and ends with words."""

    name = "replies"

    def __init__(self, by_session: Mapping[str, Sequence[Message]]) -> None:
        self.by_session = by_session

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> _Reading:
        return _Reading(self.by_session[session.strip("/").partition("#")[0]])


class _Reading:
    tokens = None

    def __init__(self, messages: Sequence[Message]) -> None:
        self._left = list(messages)

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        await asyncio.sleep(0)
        return AgentTurn(self._left.pop(0) if self._left else Message("assistant", "Anything else?"))

    def close(self) -> None:
        """Nothing is held."""


def written(environment: Environment, tasks: Sequence[Task], seed: int = 5) -> dict[str, list[Message]]:
    """What an expert that makes mistakes says about each task: some with a call that cannot be read, some not
    to the end."""
    profile = ErrorProfile(skip_confirmation=0.3, needless_transfer=0.2, wrong_id=0.3)
    agent = ExpertAgent(profile, make=environment.needed_expert())
    said = {}
    for number, (task_id, episode) in enumerate(natively(environment, tasks, agent, seed).items()):
        messages = [replace(m, reasoning=None) for m in episode.messages if m.role == "assistant"][1:]
        if number % 3 == 1:
            messages.insert(1, Message("assistant", None, tool_calls=(BROKEN,)))
        if number % 4 == 2:
            del messages[len(messages) // 2 :]
        said[task_id] = messages
    return said


def natively(
    environment: Environment, tasks: Sequence[Task], agent: Any, seed: int, users: Any = None, judge: Any = None
) -> dict[str, Episode]:
    """The episodes of an agent, by task, as muarl's own evaluations play them."""
    size = tasks[0].origin.address.size
    place = environment.place(size, judge=judge, mode="native" if environment.is_benchmark else "auto")
    runner = place.runner(agent, place.users(users), retries=0)
    requests = [request for task in tasks for request in place.requests([task], 1, seed, "")]
    played = asyncio.run(rollout(requests, LocalExecutor(runner.play))).episodes  # type: ignore[union-attr]
    return {episode.task_id: episode for episode in played}


async def from_outside(
    environment: Environment,
    task: Task,
    replies: Sequence[Message],
    seed: int,
    form: Callable[[Message], Any] = to_openai,
    **options: Any,
) -> Episode:
    """The episode of a session in which these replies are said, in some form."""
    left = list(replies)
    async with environment.start(task, seed=seed, **options) as session:
        while not session.done:
            await session.step(form(left.pop(0)) if left else "Anything else?")
        assert session.episode is not None
        return session.episode


def stub(by_model: Mapping[str, Sequence[Message]]) -> Callable[[dict[str, Any]], Answer]:
    """A server whose models say the replies under their names, by how often they have spoken in the conversation."""

    def answer(body: dict[str, Any]) -> Answer:
        roles = [m["role"] for m in body["messages"]]
        spoken = roles[roles.index("user") :].count("assistant")  # a greeting before it was never said
        replies = by_model[body["model"]]
        sent = to_openai(replies[spoken]) if spoken < len(replies) else {"content": "Anything else?"}
        return completion(sent["content"], tool_calls=sent.get("tool_calls", ()), name=f"response-{spoken}")

    return answer


def texts(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What a conversation in OpenAI's form says, for comparison; of calls the names alone, since one that cannot be
    read goes to a server without its arguments."""
    names = [[call["function"]["name"] for call in m.get("tool_calls", ())] for m in messages]
    return [(m["role"], m.get("content"), called) for m, called in zip(messages, names, strict=True)]


def by_gold(tasks: Sequence[Task]) -> tuple[dict[str, list[Message]], ScriptedUserFactory]:
    """What an agent says that does what is right in each task, and users that do their part of it: of a benchmark,
    whose users models play. Some stop half way, and some write a call that cannot be read."""
    said, lines = {}, {}
    for number, task in enumerate(tasks):
        made = [ToolCall(f"c{n}", a.name, a.arguments, a.requestor) for n, a in enumerate(task.actions or ())]
        own = [Message("assistant", None, tool_calls=(c,)) for c in made if c.requestor == "assistant"]
        theirs: list[str | Message] = [Message("user", None, tool_calls=(c,)) for c in made if c.requestor == "user"]
        if number % 5 == 1:
            own.insert(1, Message("assistant", None, tool_calls=(BROKEN,)))
        said[task.id] = own[: len(own) // 2] if number % 4 == 2 else own
        lines[task.id] = ["I need help.", *theirs, "Yes, please.", "###STOP###"]
    return said, ScriptedUserFactory(lines)


def readable(replies: Mapping[str, Sequence[Message]]) -> dict[str, list[Message]]:
    """The replies without calls that cannot be read, for protocols that have no way to send one."""
    return {
        name: [m for m in messages if not any(call.invalid for call in m.tool_calls)]
        for name, messages in replies.items()
    }
