"""What became of one conversation, as a trainer needs it: a reward, or whose failure it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.basics.errors import InfrastructureError
from muarl.rollouts.conversation import agent_view
from muarl.rollouts.rules import Rules
from muarl.types.chat import Message, ToolSpec, to_openai
from muarl.types.episode import Episode, StopReason, Usage


@dataclass(frozen=True, slots=True)
class EpisodeFailure:
    """Something outside the policy broke a conversation off, which must then count for nothing: it is no reward of
    0."""

    boundary: str
    """Whose failure it is: "agent" (the policy's endpoint), "user", "judge" or "world" (a tool server)."""
    retryable: bool
    """Whether another try may help."""
    text: str
    void: bool = False
    """The boundary's model answered, but what it wrote voids the attempt by a benchmark's rules."""

    @classmethod
    def of(cls, episode: Episode) -> EpisodeFailure | None:
        """The failure that ended an episode, None where there was none."""
        if episode.stop is not StopReason.INFRASTRUCTURE:
            return None
        tags = episode.tags
        return cls(tags["boundary"], bool(tags["retryable"]), episode.error or "", bool(tags.get("void")))

    def error(self) -> InfrastructureError:
        """The same as an exception."""
        return InfrastructureError(self.text, boundary=self.boundary, retryable=self.retryable)

    def to_json(self) -> dict[str, Any]:
        """A plain dict of the fields."""
        return {"boundary": self.boundary, "retryable": self.retryable, "text": self.text, "void": self.void}


@dataclass(frozen=True, slots=True)
class PlayResult:
    """What became of one conversation."""

    task_id: str
    reward: float | None
    """None where it must not count, and ``failure`` then says why."""
    parts: Mapping[str, float]
    """The parts of the reward, by component."""
    failure: EpisodeFailure | None
    stop: StopReason
    """Why it ended."""
    messages: Sequence[Mapping[str, Any]]
    """The conversation as the agent saw it, in OpenAI's form, the system prompt first."""
    tools: Sequence[Mapping[str, Any]]
    """The tools that the agent was offered."""
    usage: Mapping[str, Usage]
    """Tokens and requests of "agent" and "user"."""
    seconds: float
    """Seconds of wall time."""
    audit: Mapping[str, float] = field(default_factory=dict)
    episode: Episode | None = field(default=None, repr=False)
    """All there is to know, both sides' messages included."""

    @classmethod
    def of(cls, episode: Episode, rules: Rules | None = None) -> PlayResult:
        """What a scored episode says. ``rules``: those that it was played by."""
        verdict = episode.verdict
        failure = EpisodeFailure.of(episode)
        counts = verdict is not None and failure is None
        return cls(
            task_id=episode.task_id,
            reward=verdict.reward if verdict is not None and counts else None,
            parts=dict(verdict.breakdown) if verdict is not None and counts else {},
            failure=failure,
            stop=episode.stop,
            messages=conversation_json(episode.system, agent_view(episode.messages, rules)),
            tools=[tool.to_openai() for tool in episode.tools or ()],
            usage={"agent": episode.agent_usage, "user": episode.user_usage},
            seconds=episode.timings.get("total", 0.0),
            audit=dict(verdict.audit) if verdict is not None and counts else {},
            episode=episode,
        )

    def to_json(self) -> dict[str, Any]:
        """A plain dict of the fields, but for the episode."""
        return {
            "task_id": self.task_id,
            "reward": self.reward,
            "parts": dict(self.parts),
            "failure": None if self.failure is None else self.failure.to_json(),
            "stop": self.stop.value,
            "messages": list(self.messages),
            "tools": list(self.tools),
            "usage": {side: usage.to_json() for side, usage in self.usage.items()},
            "seconds": self.seconds,
            "audit": dict(self.audit),
        }


def conversation_json(system: str | None, messages: Iterable[Message]) -> list[dict[str, Any]]:
    """A conversation in OpenAI's form."""
    first = [{"role": "system", "content": system}] if system else []
    return [*first, *map(to_openai, messages)]


def tools_json(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Tools in OpenAI's form."""
    return [tool.to_openai() for tool in tools]
