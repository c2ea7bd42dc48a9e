"""One episode: agent, user and world take turns. This is the only such loop; everything that converses runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from time import perf_counter

from muarl.agents.base import Agent, AgentSession, TakesTools
from muarl.chat import (
    STOP_WORDS,
    Message,
    Requestor,
    ToolCall,
    ToolSpec,
    is_stop,
    visible_to_agent,
    visible_to_user,
)
from muarl.domains.base import Task, World
from muarl.episode import Episode, StopReason, Turn, Usage
from muarl.errors import InfrastructureError, MuarlError
from muarl.rules import DONE, PASSED_ON, Limits, Rules, VoidReply
from muarl.users.base import HoldsSomething, User

__all__ = ["DONE", "Limits", "Rules", "VoidReply", "agent_view", "run_episode"]


def agent_view(messages: Iterable[Message], rules: Rules | None = None) -> list[Message]:
    """What the agent saw and said, of an episode's messages: the input for ``ChatTokens.training_tokens``."""
    seen = visible_to_agent(messages)
    if not (rules or Rules()).greeting_in_context:
        told = next((i for i, m in enumerate(seen) if m.role != "assistant"), len(seen))
        return seen[told:]
    return seen


async def run_episode(
    task: Task,
    world: World,
    agent: Agent,
    user: User,
    limits: Limits | None = None,
    *,
    seed: int = 0,
    episode_id: str = "episode",
    group: str | None = None,
    rules: Rules | None = None,
    user_name: str | None = None,
    system: str | None = None,
    tools: Sequence[ToolSpec] | None = None,
) -> Episode:
    """Play one episode to its end and return it unscored. The world is opened here, and closed by whoever scores it.

    The user speaks first, after the greeting; where the task has a history, whoever its last message is for goes on
    from there. All tool calls of a message are run in order and all results go back to the side that called; text
    beside tool calls reaches nobody else. The episode ends when the user says a stop word, at a transfer (see Rules),
    or at a limit.

    ``system`` and ``tools``: what the agent is told, None for the domain's policy and tools for this task.
    ``episode_id`` must be unique among live episodes. Timings are seconds: "agent", "user", "world", "total".

    A failure outside the policy (InfrastructureError, or an unexpected exception of agent, user or world) gives an
    episode that ends with ``infrastructure``; ``error`` says what failed, ``tags["boundary"]`` whose failure it is,
    ``tags["retryable"]`` whether another try may help, ``tags["void"]`` that a reply was void rather than missing.
    Other MuarlErrors and cancellation pass through.
    """
    started = perf_counter()
    domain = world.domain
    tags = dict(task.tags)
    error = None
    system = domain.policy_for(task) if system is None else system
    tools = domain.specs_for(task) if tools is None else tools
    session: AgentSession | None = None
    play = _Play(task, world, user, limits or Limits(), rules or Rules())
    try:
        try:
            await _catch_up(world, task.history)
            await play.open_world()
            with _blamed("agent"):
                session = agent.open(system, tools, seed=seed, session=episode_id)
            stop = await play.run(session)
        finally:
            if session is not None:
                session.close()
            if isinstance(user, HoldsSomething):
                user.close()
    except InfrastructureError as failure:
        stop, error = StopReason.INFRASTRUCTURE, f"{failure.boundary}: {failure}"
        if failure.usage is not None and failure.boundary == "user":
            play.user_usage += failure.usage
        elif failure.usage is not None and failure.boundary == "agent":
            play.agent_usage += failure.usage
        tags |= {"boundary": failure.boundary, "retryable": failure.retryable}
        if isinstance(failure, VoidReply):
            tags["void"] = True
    play.seconds["total"] = perf_counter() - started
    return Episode(
        id=episode_id,
        task_id=task.id,
        domain=task.domain,
        turns=play.turns,
        stop=stop,
        seed=seed,
        group=group,
        agent=agent.name,
        user=user_name or type(user).__name__,
        tokens=None if session is None else session.tokens,
        tags=tags,
        timings=play.seconds,
        agent_usage=play.agent_usage,
        user_usage=play.user_usage,
        error=error,
        system=system,
        tools=tuple(tools),
    )


class _Play:
    """The state of one run of the loop."""

    def __init__(self, task: Task, world: World, user: User, limits: Limits, rules: Rules) -> None:
        self.world, self.user, self.limits, self.rules = world, user, limits, rules
        self.before = list(task.history)
        if not self.before and not rules.solo:
            self.before = [Message("assistant", rules.greeting)]
        self.turns = [Turn(m) for m in self.before]
        self.messages = list(self.before)
        self.seconds = {"agent": 0.0, "user": 0.0, "world": 0.0}
        self.agent_usage, self.user_usage = Usage(), Usage()
        self.errors = 0
        self.steps = -1 if rules.solo and not self.before else 0  # its first message is part of the start
        self.spoken = 0
        self.users_own = frozenset(world.domain.tool_names("user")) if rules.solo else frozenset()

    async def open_world(self) -> None:
        """Start what the world needs."""
        started = perf_counter()
        try:
            with _blamed("world"):
                await self.world.aopen()
        finally:
            self.seconds["world"] += perf_counter() - started

    async def run(self, session: AgentSession) -> StopReason:
        new, speaker = self.opening()
        acted = in_a_row = agents_in_a_row = 0
        while True:
            ended = None
            if speaker == "user":
                message = await self.user_speaks(session)
                if message.tool_calls:
                    await self.run_calls("user", message.tool_calls)
                    in_a_row += 1
                else:
                    new, speaker, in_a_row = [*new, message], "assistant", 0
                    ended = StopReason.USER_STOP if self.stops(message) else None
            else:
                if acted == self.limits.turns:
                    return StopReason.MAX_TURNS
                acted += 1
                message, ended = await self.agent_acts(session, new)
                if ended is not None and ended is not StopReason.AGENT_STOP:
                    return ended
                calls = () if ended is StopReason.AGENT_STOP else self.to_run(message)
                new, transferred = await self.run_calls("assistant", calls)
                if transferred and self.rules.transfer_ends:
                    return StopReason.TRANSFER
                if self.rules.fatal and any((m.content or "").startswith(self.rules.fatal) for m in new):
                    return StopReason.BROKEN_CALL
                speaker = "assistant" if calls else "user"
                agents_in_a_row = agents_in_a_row + 1 if calls else 0
                if self.limits.agent_calls is not None and agents_in_a_row > self.limits.agent_calls:
                    return StopReason.MAX_TURNS
            reached = self.limit_reached()
            if reached is not None or ended is not None:
                return reached or ended  # type: ignore[return-value]
            if self.limits.user_calls is not None and in_a_row > self.limits.user_calls:
                text = f"the simulated user called tools in {in_a_row} messages in a row"
                raise InfrastructureError(text, boundary="user")

    def opening(self) -> tuple[list[Message], Requestor]:
        """What the agent has not heard yet, and who is to act first."""
        if not self.before:
            return [], "assistant"
        last = self.before[-1]
        to_user = last.role == "assistant" or (last.role == "tool" and last.requestor == "user")
        return agent_view(self.before, self.rules), "user" if to_user and not self.rules.solo else "assistant"

    def limit_reached(self) -> StopReason | None:
        if self.limits.tool_errors is not None and self.errors >= self.limits.tool_errors:
            return StopReason.TOOL_ERRORS
        if self.limits.steps is not None and self.steps >= self.limits.steps:
            return StopReason.MAX_TURNS
        return None

    def stops(self, message: Message) -> bool:
        """Whether a user's message without calls ends the conversation."""
        self.spoken += 1
        if (self.spoken == 1 and not self.rules.first_may_stop) or self.steps <= self.rules.stop_after:
            return False
        return is_stop(message, self.rules.stop_words)

    async def agent_acts(self, session: AgentSession, new: Sequence[Message]) -> tuple[Message, StopReason | None]:
        started = perf_counter()
        try:
            with _blamed("agent"):
                turn = await session.act(new)
        finally:
            spent = perf_counter() - started
            self.seconds["agent"] += spent
        self.agent_usage += turn.usage
        message, stop = turn.message, turn.stop
        if self.rules.one_call and len(message.tool_calls) > 1:
            message = replace(message, tool_calls=message.tool_calls[:1])
        if self.rules.lenient and stop in PASSED_ON:
            stop = None
        if stop in (None, StopReason.EMPTY_REPLY):
            broken = self.what_is_broken(message, "agent")
            stop = broken if self.rules.broken == "ends" else broken or stop
        if self.rules.solo and stop is None:
            message, stop = _alone(message)
        may_stop = self.rules.agent_may_stop and stop is None and self.steps >= self.rules.stop_after
        if may_stop and any(word in (message.content or "") for word in self.rules.stop_words):
            stop = StopReason.AGENT_STOP
        self.steps += 1
        self.add(Turn(message, spent, turn.span, turn.version))
        return message, stop

    def what_is_broken(self, message: Message, side: str) -> StopReason | None:
        """The end that a message with nothing in it, or with a call that can't be read, brings; see Rules.broken."""
        unreadable = next((c.invalid for c in message.tool_calls if c.invalid is not None), None)
        empty = self.is_void(message)
        if self.rules.lenient or (not empty and (unreadable is None or self.rules.broken == "answered")):
            return None
        if self.rules.broken == "aborts":
            what = "said nothing" if empty else f"wrote a tool call that cannot be read: {unreadable}"
            raise VoidReply(f"the {side} {what}", boundary=side)
        return StopReason.EMPTY_REPLY if empty else StopReason.BROKEN_CALL

    def is_void(self, message: Message) -> bool:
        """Whether there is nothing in a message."""
        if self.rules.lenient or (self.rules.broken == "ends" and message.content is not None):
            return False
        return not message.tool_calls and not (message.content or "").strip()

    async def user_speaks(self, session: AgentSession) -> Message:
        """The user's next message: words to the agent, perhaps with tools for it, or calls of its own tools."""
        started = perf_counter()
        try:
            with _blamed("user"):
                reply = await self.user.reply(visible_to_user(self.messages))
        finally:
            spent = perf_counter() - started
            self.seconds["user"] += spent
        self.user_usage += reply.usage
        message = reply.message
        if reply.tools and isinstance(session, TakesTools):
            with _blamed("agent"):
                session.offer(reply.tools)
        if self.is_void(message):
            raise InfrastructureError("the simulated user said nothing", boundary="user")
        if self.rules.broken == "aborts":
            self.what_is_broken(message, "user")
        self.steps += 1
        self.add(Turn(message, spent))
        if not message.tool_calls:
            with _blamed("world"):
                self.world.hear(message)
        return message

    def to_run(self, message: Message) -> tuple[ToolCall, ...]:
        """The calls of an agent's message that are run."""
        if self.rules.lenient and any(c.invalid is not None for c in message.tool_calls):
            return tuple(c for c in message.tool_calls if c.invalid is None and self.rules.broken == "skips")
        return message.tool_calls

    async def run_calls(self, requestor: Requestor, calls: Sequence[ToolCall]) -> tuple[list[Message], bool]:
        """Run a message's calls in order; their results, and whether one of them was a transfer that succeeded."""
        results: list[Message] = []
        transferred = False
        sides = ["user" if c.name in self.users_own else requestor for c in calls]
        for side, several in groupby(zip(calls, sides, strict=True), key=lambda pair: pair[1]):
            batch = [replace(call, requestor=side) for call, _ in several]
            answers = self.world.answers(side, batch)
            for call in batch:
                started = perf_counter()
                try:
                    with _blamed("world", f" in tool {call.name}"):
                        result = await anext(answers, None)
                        if result is None:
                            raise RuntimeError("the world gave no result")
                finally:
                    spent = perf_counter() - started
                    self.seconds["world"] += spent
                self.errors += result.error
                counts = not result.error or self.rules.transfer_ends == "any"
                transferred |= counts and call.name in self.rules.transfer_tools
                results.append(
                    Message(
                        "tool",
                        result.content,
                        tool_call_id=call.id,
                        name=call.name,
                        requestor=requestor,
                        error=result.error,
                    )
                )
                self.add(Turn(results[-1], spent))
            with _blamed("world"):
                await answers.aclose()  # type: ignore[attr-defined]
        self.steps += bool(results)
        return results, transferred

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)
        self.messages.append(turn.message)


def _alone(message: Message) -> tuple[Message, StopReason | None]:
    """What an agent without a user may say: calls, one of which may be ``done``, which leaves only a stop word."""
    if not message.tool_calls:
        raise VoidReply("an agent that works alone can only call tools, and this one spoke", boundary="agent")
    if any(c.name == DONE.name for c in message.tool_calls):
        return replace(message, content=STOP_WORDS[0], tool_calls=()), StopReason.AGENT_STOP
    if STOP_WORDS[0] in (message.content or ""):  # done, with calls still waiting: TAU2 breaks off
        raise VoidReply(f"the agent wrote {STOP_WORDS[0]} beside a tool call", boundary="agent")
    return message, None


async def _catch_up(world: World, history: Sequence[Message]) -> None:
    """Do in a fresh world what was done before the episode begins: the calls that write."""
    for message in history:
        for call in message.tool_calls:
            side: Requestor = "user" if message.role == "user" else "assistant"
            if call.name in world.domain.tool_names(side) and world.domain.kind_of(call.name) == "write":
                await world.acall(side, replace(call, requestor=side))


@contextmanager
def _blamed(boundary: str, where: str = "") -> Iterator[None]:
    """Whose failure it is if something that nobody expected goes wrong within."""
    try:
        yield
    except MuarlError:
        raise
    except Exception as bug:
        raise InfrastructureError(f"unexpected {type(bug).__name__}{where}: {bug}", boundary=boundary) from bug
