"""One episode: agent, user and world take turns. This is the only such loop; everything that converses runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from time import perf_counter
from traceback import extract_tb

from muarl.agents.base import Agent, AgentSession, TakesTools
from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.domains.base import World
from muarl.domains.tasks import Task
from muarl.rollouts.rules import Limits, Rules, VoidReply, bugs_named
from muarl.types.chat import Message, Requestor, ToolCall, ToolSpec, visible_to_agent, visible_to_user
from muarl.types.episode import Episode, StopReason, Turn, Usage
from muarl.users.base import HoldsSomething, LeavesTags, User, check_reply

BUGS = (TypeError, AttributeError, NameError, ImportError, NotImplementedError)
"""Exceptions that only a mistake in code raises. Servers, files and models fail with others."""

__all__ = ["Limits", "Rules", "VoidReply", "agent_view", "run_episode"]


def agent_view(messages: Iterable[Message], rules: Rules | None = None) -> list[Message]:
    """What the agent saw and said, of an episode's messages: the input for ``ChatFormat.training_tokens``."""
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

    The user speaks first, after the greeting; where the task has a history, whoever its last message is for continues
    from there. All tool calls of a message are run in order and all results go back to the side that called; text
    beside tool calls reaches nobody else. The episode ends when the user says a stop word, at a limit, or as ``rules``
    say.

    ``system`` and ``tools``: what the agent is told, None for the domain's policy and tools for this task.
    ``episode_id`` must be unique among live episodes. Timings are seconds: "agent", "user", "world", "total".

    A failure outside the policy (InfrastructureError, or an unexpected exception of agent, user or world) gives an
    episode that ends with ``infrastructure``; ``error`` says what failed, ``tags["boundary"]`` whose failure it is,
    ``tags["retryable"]`` whether another try may help (not where an agent's code has a bug, such as a TypeError),
    ``tags["void"]`` that a reply was void rather than missing.
    Tags are the task's, these, and the user's own (users.base.LeavesTags).
    Other MuarlErrors and cancellation pass through.
    """
    started = perf_counter()
    domain = world.domain
    tags = dict(task.tags)
    error = None
    system = domain.policy_for(task) if system is None else system
    tools = domain.specs_for(task) if tools is None else tools
    session: AgentSession | None = None
    rules = rules or Rules()
    with bugs_named(rules, domain.name):
        play = _Play(task, world, user, limits or Limits(), rules)
    try:
        try:
            await _catch_up(world, task.history)
            with play.work_of("world"):
                await world.aopen()
            with play.work_of("agent"):
                session = agent.open(system, tools, seed=seed, session=episode_id)
            with bugs_named(rules, domain.name):
                stop = await play.run(session)
        finally:
            if session is not None:
                session.close()
            if isinstance(user, LeavesTags):
                tags |= user.episode_tags()
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
        self.before, self.first = rules.opening(task)
        self.turns = [Turn(m) for m in self.before]
        self.messages = list(self.before)
        self.seconds = {"agent": 0.0, "user": 0.0, "world": 0.0}
        self.agent_usage, self.user_usage = Usage(), Usage()
        self.errors = self.spoken = 0
        self.steps = 0 if self.before else -1  # the first message, whoever's it is, is no step

    async def run(self, session: AgentSession) -> StopReason:
        new, speaker = agent_view(self.before, self.rules), self.first
        acted = users_calls = agents_calls = 0  # messages; those with calls in a row
        while True:
            ended = None
            if speaker == "user":
                message = await self.user_speaks(session)
                if message.tool_calls:
                    await self.run_calls("user", message.tool_calls)
                    users_calls += 1
                else:
                    new, speaker, users_calls = [*new, message], "assistant", 0
                    if self.rules.user_stops(message, self.steps - 1, self.spoken):
                        ended = StopReason.USER_STOP
            else:
                if acted == self.limits.turns:
                    return StopReason.MAX_TURNS
                acted += 1
                message, ended = await self.agent_acts(session, new)
                if ended is not None and ended is not StopReason.AGENT_STOP:
                    return ended
                calls = () if ended else self.rules.calls_to_run(message)
                new = await self.run_calls("assistant", calls)
                broken_off = self.rules.after_results(new)
                if broken_off is not None:
                    return broken_off
                speaker = "assistant" if calls else "user"
                agents_calls = agents_calls + 1 if calls else 0
                if self.limits.agent_calls is not None and agents_calls > self.limits.agent_calls:
                    return StopReason.MAX_TURNS
            ended = self.limit_reached() or ended
            if ended is not None:
                return ended
            if self.limits.user_calls is not None and users_calls > self.limits.user_calls:
                text = f"the simulated user called tools in {users_calls} messages in a row"
                raise InfrastructureError(text, boundary="user")

    def limit_reached(self) -> StopReason | None:
        if self.limits.tool_errors is not None and self.errors >= self.limits.tool_errors:
            return StopReason.TOOL_ERRORS
        if self.limits.steps is not None and self.steps >= self.limits.steps:
            return StopReason.MAX_TURNS
        return None

    async def agent_acts(self, session: AgentSession, new: Sequence[Message]) -> tuple[Message, StopReason | None]:
        """The agent's next message, and how it ends the episode, if it does."""
        with self.work_of("agent") as work:
            turn = await session.act(new)
        self.agent_usage += turn.usage
        message, stop = self.rules.read_agent(turn.message, turn.stop, self.steps)
        self.steps += 1
        self.add(Turn(message, work.seconds, turn.span, turn.version))
        return message, stop

    async def user_speaks(self, session: AgentSession) -> Message:
        """The user's next message: words to the agent, perhaps with tools for it, or calls of its own tools."""
        with self.work_of("user") as work:
            reply = check_reply(self.user, await self.user.reply(visible_to_user(self.messages)))
        self.user_usage += reply.usage
        message = reply.message
        if reply.tools and isinstance(session, TakesTools):
            with self.work_of("agent"):
                session.offer(reply.tools)
        self.rules.check_user(message)
        self.steps += 1
        self.add(Turn(message, work.seconds))
        if not message.tool_calls:
            self.spoken += 1
            with self.work_of("world"):
                self.world.hear(message)
        return message

    async def run_calls(self, requestor: Requestor, calls: Sequence[ToolCall]) -> list[Message]:
        """Run a message's calls in order; their results."""
        results: list[Message] = []
        for side, several in groupby(calls, key=lambda call: self.side_of(requestor, call)):
            batch = [replace(call, requestor=side) for call in several]
            answers = self.world.answers(side, batch)
            for call in batch:
                with self.work_of("world", f" in tool {call.name}") as work:
                    result = await anext(answers, None)
                    if result is None:
                        raise RuntimeError("the world gave no result")
                self.errors += result.error
                message = Message(
                    "tool",
                    result.content,
                    tool_call_id=call.id,
                    name=call.name,
                    requestor=requestor,
                    error=result.error,
                )
                results.append(message)
                self.add(Turn(message, work.seconds))
            with self.work_of("world"):
                await answers.aclose()  # type: ignore[attr-defined]
        self.steps += bool(results)
        return results

    def side_of(self, requestor: Requestor, call: ToolCall) -> Requestor:
        """Whose tools a call is for."""
        return requestor if requestor == "user" else self.rules.side_of(call, self.world.domain)

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)
        self.messages.append(turn.message)

    @contextmanager
    def work_of(self, boundary: str, where: str = "") -> Iterator[_Work]:
        """Time what happens within, and blame ``boundary`` if something goes wrong that nobody expected."""
        work = _Work()
        started = perf_counter()
        try:
            yield work
        except MuarlError:
            raise
        except Exception as bug:
            line = extract_tb(bug.__traceback__)[-1]
            text = f"unexpected {type(bug).__name__}{where}: {bug} ({Path(line.filename).name}, line {line.lineno})"
            # what an agent's code has wrong it has wrong in every try, and in other episodes
            again = boundary != "agent" or not isinstance(bug, BUGS)
            raise InfrastructureError(text, boundary=boundary, retryable=again) from bug
        finally:
            work.seconds = perf_counter() - started
            self.seconds[boundary] += work.seconds


@dataclass(slots=True)
class _Work:
    """How long one side worked at something."""

    seconds: float = 0.0


async def _catch_up(world: World, history: Sequence[Message]) -> None:
    """Do in a fresh world what was done before the episode begins: the calls that write."""
    for message in history:
        for call in message.tool_calls:
            side: Requestor = "user" if message.role == "user" else "assistant"
            if call.name in world.domain.tool_names(side) and world.domain.kind_of(call.name) == "write":
                await world.acall(side, replace(call, requestor=side))
