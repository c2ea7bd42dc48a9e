"""Conversations that are led from outside: whoever holds the session is the agent, message by message.

    async with environment.start(task, seed=3) as session:
        while not session.done:
            message = await my_policy(session.messages, session.observation.openai_tools)
            await session.step(message)
        print(session.result.reward)

It is the one conversation loop, with an agent that waits for the outside (``agents.outside``). ``Environment.start``
makes sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, Self

from muarl.agents.outside import OutsideAgent, SaidOutside, SampledTokens, as_message
from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.environments.results import EpisodeFailure, PlayResult, conversation_json, tools_json
from muarl.rollouts.conversation import Conversation
from muarl.rollouts.episode_runner import EpisodeRunner, RolloutRequest
from muarl.types.chat import Message, ToolSpec, to_openai, visible_to_agent
from muarl.types.episode import Episode, StopReason, Verdict


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent is shown."""

    messages: tuple[Message, ...]
    """The messages that came since its last one."""
    system: str
    """What it was told."""
    tools: tuple[ToolSpec, ...]
    """What it may call from now on."""
    done: bool = False
    """The conversation is over, and needs no answer."""

    @property
    def openai_messages(self) -> list[dict[str, Any]]:
        """The new messages in the form of OpenAI's chat API."""
        return [to_openai(message) for message in self.messages]

    @property
    def openai_tools(self) -> list[dict[str, Any]]:
        """The tools in the same form."""
        return tools_json(self.tools)


class Session:
    """One conversation in which the caller is the agent. It begins when it is awaited, or entered as a context.

    A failure of the user's model or of a tool server ends it with a ``failure``, never with a reward: what was said
    outside cannot be taken back, so nothing is tried again.
    """

    def __init__(
        self,
        runner: EpisodeRunner,
        request: RolloutRequest,
        agent: OutsideAgent,
        conversation: Conversation | None = None,
    ) -> None:
        """``conversation``: one that is running, and waits for the agent; None: a new one."""
        self._runner, self._request, self._agent = replace(runner, before_agent=self._note), request, agent
        self._conversation = conversation
        self._play: asyncio.Task[Episode] | None = None
        self._copies = 0

    def _note(self, conversation: Conversation) -> None:
        self._conversation = conversation

    @property
    def task(self) -> Task:
        """The task."""
        return self._request.task

    async def opened(self) -> Session:
        """Begin: the user has spoken, and ``observation`` says what. Harmless where that was done before.

        MuarlError for what cannot be played at all. A failure of the user is told by ``failure``.
        """
        if self._play is None:
            live, runner = self._conversation, self._runner
            self._play = asyncio.ensure_future(runner.play(self._request) if live is None else runner.play_on(live))
            self._play.add_done_callback(lambda _: self._agent.news.set())
        await self._agent.news.wait()
        self._raise_defect()
        return self

    def __await__(self) -> Generator[Any, None, Session]:
        return self.opened().__await__()

    async def step(
        self,
        message: SaidOutside,
        *,
        stop: StopReason | str | None = None,
        tokens: SampledTokens | None = None,
    ) -> Observation:
        """Say the agent's next message, and wait for what comes of it: results of its tool calls, or the user's answer.

        ``message``: a Message, a text, or an assistant message of OpenAI's chat API. Calls that cannot be read are
        answered by an error that the agent sees. ``stop``: how a limit of the caller's own cut the message:
        "turn_length", or "context_full", which end the conversation. ``tokens``: kept with the episode.

        ConfigError for what is no message; then nothing was said. RuntimeError if it is not the agent's turn.
        """
        agent = self._agent
        if not agent.waiting:
            raise RuntimeError("the conversation is over" if self.done else "it is not the agent's turn")
        agent.say(as_message(message), _stop(stop), tokens)
        await agent.news.wait()
        self._raise_defect()
        return self.observation

    def fork(self) -> Session:
        """A copy of the conversation as it is now, which goes on by itself: ``other = await session.fork()``.

        World and user are copied, so that the same message gets the same answer in either. It is closed by itself, too.
        RuntimeError if it is not the agent's turn; ConfigError, which says why, where world or user cannot be copied: a
        tool server's state, a person.
        """
        live = self._conversation
        if live is None or not self.waiting:
            raise RuntimeError("the conversation is over" if self.done else "it is not the agent's turn")
        self._copies += 1
        copy = live.fork(f"{live.name} copy {self._copies}")
        agent = copy.session
        assert isinstance(agent, OutsideAgent)
        copy.agent = agent
        return Session(self._runner, self._request, agent, copy)

    @property
    def observation(self) -> Observation:
        """What came since the agent's last message. RuntimeError before the session is opened."""
        if self._play is None:
            raise RuntimeError("the conversation has not begun: write `session = await environment.start(task)`")
        agent, episode = self._agent, self.episode
        if episode is None:
            return Observation(agent.new if agent.waiting else (), agent.system, agent.tools, self.done)
        observed = sum(message.role != "assistant" for message in agent.heard)
        heard = [message for message in visible_to_agent(episode.messages) if message.role != "assistant"]
        return Observation(tuple(heard[observed:]), agent.system, agent.tools, True)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far as the agent sees it, in the form of OpenAI's chat API, the system prompt first."""
        if self.episode is not None:
            return [dict(message) for message in self.result.messages]
        return conversation_json(self._agent.system, self._agent.heard)

    @property
    def waiting(self) -> bool:
        """Whether it is the agent's turn."""
        return self._agent.waiting and not self.done

    @property
    def done(self) -> bool:
        """Whether the conversation is over: scored, failed, or closed."""
        return self._play is not None and self._play.done()

    @property
    def episode(self) -> Episode | None:
        """The episode, once the conversation is over; None before, and where it was closed before its end."""
        play = self._play
        if play is None or not play.done() or play.cancelled() or play.exception() is not None:
            return None
        return play.result()

    @property
    def failure(self) -> EpisodeFailure | None:
        """What outside the agent broke the conversation off, None where nothing did."""
        return None if self.episode is None else EpisodeFailure.of(self.episode)

    @property
    def result(self) -> PlayResult:
        """What became of it. RuntimeError before it is over, or if it was closed before."""
        if self.episode is None:
            raise RuntimeError("the conversation was closed" if self.done else "the conversation is not over")
        return PlayResult.of(self.episode, self._runner.rules)

    @property
    def verdict(self) -> Verdict:
        """Reward, its parts, and the audit. InfrastructureError if something failed, so that there is none;
        RuntimeError before the conversation is over."""
        failure = self.failure
        if failure is not None:
            raise failure.error()
        episode = self.result.episode
        assert episode is not None and episode.verdict is not None
        return episode.verdict

    async def aclose(self) -> None:
        """End the conversation, where it still runs, and free the world and the user. Harmless afterwards."""
        if self._play is not None and not self._play.done():
            self._play.cancel()
            await asyncio.wait([self._play])

    async def __aenter__(self) -> Self:
        await self.opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _raise_defect(self) -> None:
        """What stopped the loop itself is the caller's to see."""
        play = self._play
        if play is not None and play.done() and not play.cancelled():
            play.result()


def _stop(stop: StopReason | str | None) -> StopReason | None:
    allowed = (StopReason.TURN_LENGTH, StopReason.CONTEXT_FULL, StopReason.EMPTY_REPLY)
    if stop is None or stop in allowed:
        return None if stop is None else StopReason(stop)
    raise ConfigError(f"stop: must be {', '.join(allowed)}, or left out, not {stop!r}")
