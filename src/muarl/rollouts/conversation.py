"""One episode: agent, user and world take turns. This is the only such loop; everything that converses runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from typing import TYPE_CHECKING

from muarl.agents.base import Agent, AgentSession, Forks, TakesTools
from muarl.basics.errors import ConfigError, InfrastructureError, MuarlError
from muarl.domains.base import World
from muarl.domains.tasks import Task
from muarl.rollouts.rules import Limits, Rules, VoidReply, bugs_named
from muarl.types.chat import Message, Requestor, ToolCall, ToolSpec, visible_to_agent, visible_to_user
from muarl.types.episode import FAULTS, Episode, StopReason, Turn, Usage
from muarl.users.base import HoldsSomething, LeavesTags, User, check_reply, fork_user

if TYPE_CHECKING:  # most worlds never fail
    from muarl.domains.faults.layer import FaultLayer

BUGS = (TypeError, AttributeError, NameError, ImportError, NotImplementedError)
"""Exceptions that only a mistake in code raises. Servers, files and models fail with others."""

__all__ = ["Conversation", "Limits", "Rules", "VoidReply", "agent_view", "run_episode"]


def agent_view(messages: Iterable[Message], rules: Rules | None = None) -> list[Message]:
    """What the agent saw and said, of an episode's messages: the input for ``ChatFormat.training_tokens``."""
    seen = visible_to_agent(messages)
    if not (rules or Rules()).greeting_in_context:
        first_heard = next((i for i, m in enumerate(seen) if m.role != "assistant"), len(seen))
        return seen[first_heard:]
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
    before_agent: Callable[[Conversation], None] | None = None,
    faults: FaultLayer | None = None,
) -> Episode:
    """Play one episode to its end and return it unscored. The world is opened here, and closed by whoever scores it.

    The user speaks first, after the greeting; where the task has a history, whoever its last message is for continues
    from there. All tool calls of a message are run in order and all results go back to the side that called; text
    beside tool calls reaches nobody else. The episode ends when the user says a stop word, at a limit, or as ``rules``
    say.

    ``system`` and ``tools``: what the agent is told, None for the domain's policy and tools for this task.
    ``episode_id`` must be unique among live episodes. Timings are seconds: "agent", "user", "world", "total".
    ``before_agent`` is called whenever it is the agent's turn, and may copy the conversation (``Conversation.fork``).
    ``faults``: what this episode's tools do wrong (``domains.faults``), each noted with the message of its
    result, and counted by kind in the tag "system_faults"; None: nothing.

    A failure outside the policy (InfrastructureError, or an unexpected exception of agent, user or world) gives an
    episode that ends with ``infrastructure``; ``error`` says what failed, ``tags["boundary"]`` whose failure it is,
    ``tags["retryable"]`` whether another try may help (not where an agent's code has a bug, such as a TypeError),
    ``tags["void"]`` that a reply was void rather than missing.
    Tags are the task's, these, and the user's own (users.base.LeavesTags).
    Other MuarlErrors and cancellation pass through.
    """
    conversation = Conversation(
        task,
        world,
        agent,
        user,
        limits or Limits(),
        rules or Rules(),
        seed=seed,
        name=episode_id,
        group=group,
        user_name=user_name or type(user).__name__,
        system=world.domain.policy_for(task) if system is None else system,
        tools=tuple(world.domain.specs_for(task) if tools is None else tools),
        faults=faults,
    )
    return await conversation.play(before_agent)


class Conversation:
    """One running conversation: who takes part in it, what was said so far, and whose turn it is.

    ``play`` carries it to its end; ``fork`` copies it where it is the agent's turn.
    """

    def __init__(
        self,
        task: Task,
        world: World,
        agent: Agent,
        user: User,
        limits: Limits,
        rules: Rules,
        *,
        seed: int,
        name: str,
        group: str | None,
        user_name: str,
        system: str,
        tools: tuple[ToolSpec, ...],
        faults: FaultLayer | None = None,
    ) -> None:
        self.task, self.world, self.agent, self.user = task, world, agent, user
        self.limits, self.rules = limits, rules
        self.seed, self.name, self.group, self.user_name = seed, name, group, user_name
        self.system, self.tools, self.faults = system, tools, faults
        self.session: AgentSession | None = None
        with bugs_named(rules, world.domain.name):
            self.before, self.speaker = rules.opening(task)
        self.new = agent_view(self.before, rules)
        self.turns = [Turn(m) for m in self.before]
        self.messages = list(self.before)
        self.seconds = {"agent": 0.0, "user": 0.0, "world": 0.0}
        self.agent_usage, self.user_usage = Usage(), Usage()
        self.errors = self.spoken = 0
        self.steps = 0 if self.before else -1  # the first message, whoever's it is, is no step
        self.acted = self.users_calls = self.agents_calls = 0  # messages; those with calls in a row

    def fork(self, name: str, *, seed: int | None = None) -> Conversation:
        """A copy that goes on by itself, where it is the agent's turn: of world, user and the agent's session.

        Played on alone it gives what the original gives, id for id; with a ``seed``, the agent's replies from here on
        are drawn anew by that one. ``name`` must be unique among live episodes. What never changes (task, rules,
        messages) and what serves many (models, connections) is shared. The copy's world is closed by whoever scores it.

        ConfigError names who cannot be copied: a world on a server, a person, an agent of another's that has no
        ``fork``.
        """
        session = self.session
        if session is None or self.speaker != "assistant":
            raise RuntimeError("a conversation can be copied where it is the agent's turn")
        if not isinstance(session, Forks):
            raise ConfigError(f"the agent {self.agent.name} cannot be copied: its sessions have no method fork")
        new = copy(self)
        new.name, new.seed = name, self.seed if seed is None else seed
        new.world = self.world.fork()
        new.faults = None if self.faults is None else self.faults.fork()
        new.user = fork_user(self.user, self.task, self.messages)
        new.session = session.fork(name, seed=seed)
        new.new, new.turns, new.messages = [*self.new], [*self.turns], [*self.messages]
        new.seconds = dict.fromkeys(self.seconds, 0.0)
        new.agent_usage, new.user_usage = Usage(), Usage()
        return new

    async def play(self, before_agent: Callable[[Conversation], None] | None = None) -> Episode:
        """Play it, or play it on, to its end; see ``run_episode``."""
        started = perf_counter()
        tags = dict(self.task.tags)
        error = None
        try:
            try:
                if self.session is None:
                    if self.faults is not None:
                        self.faults.check(self.world)
                    await _catch_up(self.world, self.task.history)
                    with self.work_of("world"):
                        await self.world.aopen()
                    with self.work_of("agent"):
                        self.session = self.agent.open(self.system, self.tools, seed=self.seed, session=self.name)
                with bugs_named(self.rules, self.world.domain.name):
                    stop = await self.run(self.session, before_agent)
            finally:
                if self.session is not None:
                    self.session.close()
                for side in (self.session, self.user):
                    tags |= side.episode_tags() if isinstance(side, LeavesTags) else {}
                if isinstance(self.user, HoldsSomething):
                    self.user.close()
        except InfrastructureError as failure:
            stop, error = StopReason.INFRASTRUCTURE, f"{failure.boundary}: {failure}"
            if failure.usage is not None and failure.boundary == "user":
                self.user_usage += failure.usage
            elif failure.usage is not None and failure.boundary == "agent":
                self.agent_usage += failure.usage
            tags |= {"boundary": failure.boundary, "retryable": failure.retryable}
            if isinstance(failure, VoidReply):
                tags["void"] = True
        if self.faults is not None:
            tags[FAULTS] = dict(Counter(fault.kind for message in self.messages for fault in message.faults))
        self.seconds["total"] = perf_counter() - started
        return Episode(
            id=self.name,
            task_id=self.task.id,
            domain=self.task.domain,
            turns=self.turns,
            stop=stop,
            seed=self.seed,
            group=self.group,
            agent=self.agent.name,
            user=self.user_name,
            tokens=None if self.session is None else self.session.tokens,
            tags=tags,
            timings=self.seconds,
            agent_usage=self.agent_usage,
            user_usage=self.user_usage,
            error=error,
            system=self.system,
            tools=self.tools,
        )

    async def run(self, session: AgentSession, before_agent: Callable[[Conversation], None] | None) -> StopReason:
        """Take turns until the conversation ends."""
        while True:
            ended = None
            if self.speaker == "user":
                message = await self.user_speaks(session)
                if message.tool_calls:
                    await self.run_calls("user", message.tool_calls)
                    self.users_calls += 1
                else:
                    self.new, self.speaker, self.users_calls = [*self.new, message], "assistant", 0
                    if self.rules.user_stops(message, self.steps - 1, self.spoken):
                        ended = StopReason.USER_STOP
            else:
                if self.acted == self.limits.turns:
                    return StopReason.MAX_TURNS
                if before_agent is not None:
                    before_agent(self)
                message, ended = await self.agent_acts(session, self.new)
                self.acted += 1
                if ended is not None and ended is not StopReason.AGENT_STOP:
                    return ended
                calls = () if ended else self.rules.calls_to_run(message)
                self.new = await self.run_calls("assistant", calls)
                broken_off = self.rules.after_results(self.new)
                if broken_off is not None:
                    return broken_off
                self.speaker = "assistant" if calls else "user"
                self.agents_calls = self.agents_calls + 1 if calls else 0
                if self.limits.agent_calls is not None and self.agents_calls > self.limits.agent_calls:
                    return StopReason.MAX_TURNS
            ended = self.limit_reached() or ended
            if ended is not None:
                return ended
            if self.limits.user_calls is not None and self.users_calls > self.limits.user_calls:
                text = f"the simulated user called tools in {self.users_calls} messages in a row"
                raise InfrastructureError(text, boundary="user")

    def limit_reached(self) -> StopReason | None:
        """The limit that the conversation has come to, None for none."""
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
        self.add(Turn(message, work.seconds, turn.span, turn.version, response=turn.response))
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
            faults = self.faults
            answers = self.world.answers(side, batch) if faults is None else faults.answers(self.world, side, batch)
            for call in batch:
                with self.work_of("world", f" in tool {call.name}") as work:
                    result = await anext(answers, None)
                    if result is None:
                        raise RuntimeError("the world gave no result")
                message = Message(
                    "tool",
                    result.content,
                    tool_call_id=call.id,
                    name=call.name,
                    requestor=requestor,
                    error=result.error,
                    faults=result.faults,
                )
                # A system that fails is no error of the agent's: who calls it for ever comes to the limit of turns.
                self.errors += message.error and message.failed is None
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
