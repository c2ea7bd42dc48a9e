"""Conversations that begin as another one did: everything up to one of its agent's turns is replayed from the record,
and only what follows is new.

Nothing is sampled for the beginning: the sampler's recorded ids stand for what it would say, tool calls run again on a
fresh world, and the user hears the same words again. Before each of the agent's turns the context's ids are compared
with the record, so that a conversation goes on from exactly the same place or not at all. A record can be played on
any machine, in any process, and after a restart, for which a copy in memory (``Conversation.fork``) is of no use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muarl.agents.base import Agent, AgentTurn
from muarl.agents.sampled import SampledAgent, SampledSession
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.inference.base import Completion, Sampler, SamplingParams
from muarl.types.chat import Message, ToolSpec
from muarl.types.episode import Episode, TokenTrace, Turn, Usage
from muarl.users.base import HoldsSomething, LeavesTags, Recalls, User, UserTurn, check_reply


@dataclass(frozen=True, slots=True)
class Beginning:
    """What comes before one agent's turn of an episode."""

    of: str
    """The episode's id."""
    turns: tuple[Turn, ...]
    """All turns before it."""
    contexts: tuple[tuple[int, ...], ...]
    """What the sampler saw before each of the agent's turns in them, and before the one that is to be played anew."""
    said: tuple[Completion, ...]
    """What it sampled in each."""

    @property
    def users(self) -> list[Message]:
        """What the user said and did, in order."""
        return [t.message for t in self.turns if t.message.role == "user"]

    @property
    def tag(self) -> dict[str, object]:
        """What an episode's tag ``BRANCH`` says of it."""
        return {"of": self.of, "turn": len(self.turns), "agent_turn": len(self.said)}

    @classmethod
    def of_turn(cls, episode: Episode, turn: int) -> Beginning:
        """What came before ``episode.turns[turn]``, a sampled turn of the agent's. ValueError for any other."""
        trace = episode.tokens
        if trace is None or not 0 <= turn < len(episode.turns) or episode.turns[turn].span is None:
            raise ValueError(f"turn {turn} of {episode.id} is none that a sampler of ours has said")
        spans = [t.span for t in episode.turns[: turn + 1] if t.span is not None]
        versions = [t.version or 0 for t in episode.turns[: turn + 1] if t.span is not None]
        said = tuple(
            Completion(tuple(trace.ids[a:b]), tuple(trace.logprobs[a:b]), "stop", version)
            for (a, b), version in zip(spans[:-1], versions, strict=False)
        )
        contexts = tuple(tuple(_context(trace, a)) for a, _ in spans)
        return cls(episode.id, tuple(episode.turns[:turn]), contexts, said)

    def agent(self, agent: Agent) -> Agent:
        """The agent, which says what is recorded first. ConfigError for one whose tokens are not recorded."""
        if not isinstance(agent, SampledAgent):
            raise ConfigError(f"the agent {agent.name} cannot go on with another's beginning: it records no tokens")
        return _RecallingAgent(self, agent)

    def user(self, user: User) -> User:
        """The user, which says what is recorded first."""
        return _RecallingUser(self, user)


def _context(trace: TokenTrace, end: int) -> Sequence[int]:
    """The ids of the segment that a place lies in, up to it."""
    return trace.ids[max((at for at in trace.restarts if at <= end), default=0) : end]


class _RecallingAgent:
    def __init__(self, beginning: Beginning, agent: SampledAgent) -> None:
        self.name = agent.name
        self._beginning, self._agent = beginning, agent

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> _RecallingSession:
        sampler = _RecallingSampler(self._beginning, self._agent.sampler)
        agent = SampledAgent(sampler, self._agent.chat, self._agent.sampling, name=self.name)
        return _RecallingSession(agent.open(system, tools, seed=seed, session=session), len(self._beginning.said))


class _RecallingSession:
    """A session whose first turns cost nothing."""

    def __init__(self, session: SampledSession, recalled: int) -> None:
        self._session, self._left = session, recalled

    @property
    def tokens(self) -> TokenTrace:
        return self._session.tokens

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        turn = await self._session.act(new)
        if self._left:
            self._left -= 1
            return replace(turn, usage=Usage())
        return turn

    def fork(self, session: str, *, seed: int | None = None) -> _RecallingSession:
        return _RecallingSession(self._session.fork(session, seed=seed), self._left)

    def close(self) -> None:
        self._session.close()


class _RecallingSampler:
    """Gives what is recorded as long as there is something, then what the sampler says."""

    def __init__(self, beginning: Beginning, sampler: Sampler) -> None:
        self._contexts, self._said, self._number = beginning.contexts, beginning.said, 0
        self._of, self._sampler, self.version = beginning.of, sampler, sampler.version

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str | None = None
    ) -> Completion:
        number, self._number = self._number, self._number + 1
        if number < len(self._contexts) and tuple(prompt_ids) != self._contexts[number]:
            raise InfrastructureError(
                f"the conversation does not begin as {self._of} did: before the agent's turn {number} its context is "
                "another one. A tool, or the simulated user, does not do the same a second time",
                boundary="world",
                retryable=False,
            )
        if number < len(self._said):
            return self._said[number]
        return await self._sampler.sample(prompt_ids, params, session=session)

    def close_session(self, session: str) -> None:
        self._sampler.close_session(session)


class _RecallingUser:
    """Says what is recorded as long as there is something."""

    def __init__(self, beginning: Beginning, user: User) -> None:
        self._user, self._left = user, beginning.users

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        if not self._left:
            return await self._user.reply(conversation)
        said = self._left.pop(0)
        if isinstance(self._user, Recalls):
            await self._user.recall(conversation, said)
            return UserTurn(said)
        # It must say the same: with the tools that come with it, if there are any.
        return replace(check_reply(self._user, await self._user.reply(conversation)), usage=Usage())

    def episode_tags(self) -> Mapping[str, Any]:
        return self._user.episode_tags() if isinstance(self._user, LeavesTags) else {}

    def close(self) -> None:
        if isinstance(self._user, HoldsSomething):
            self._user.close()
