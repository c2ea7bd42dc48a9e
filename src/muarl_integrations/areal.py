"""AReaL: an agent workflow, by its import path.

    trainer.train(workflow="muarl_integrations.areal.MuarlAgent", workflow_kwargs={"user": "agenda"})

AReaL is not imported: it asks for a class with ``run``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from muarl.accounts.metrics import agent_messages
from muarl.basics.errors import ConfigError
from muarl.environments.results import PlayResult
from muarl_integrations.conversations import Conversations
from muarl_integrations.turn_values import TurnValues, turn_values


class MuarlAgent:
    """Plays a row's task with the policy behind AReaL's proxy. ``settings``: the fields of ``Conversations``.

    ``by_turn``: every response gets a reward of its own: what the world's state gained by it (``turn_values``). With
    ``turn_discount`` 1, what follows a response then adds up to the task's reward less what the state was worth before.
    """

    def __init__(self, *, by_turn: bool = False, **settings: Any) -> None:
        self._conversations = Conversations(**settings)
        self._values = turn_values() if by_turn else None

    async def run(self, data: Mapping[str, Any], **extra_kwargs: Any) -> float | dict[str, float]:
        """The reward; by turn, those of the responses by their names. Whatever failed outside the policy is raised,
        since AReaL rejects the trajectory then."""
        base_url = extra_kwargs.get("base_url") or os.environ.get("OPENAI_BASE_URL")  # of AReaL's subprocesses
        key = extra_kwargs.get("api_key") or os.environ.get("OPENAI_API_KEY") or ""
        if not base_url:
            raise ConfigError("base_url: AReaL gave none, and OPENAI_BASE_URL is not set either")
        played = await self._conversations.play(data, base_url=base_url, api_key=key)
        if played.failure is not None:
            raise played.failure.error()
        assert played.reward is not None
        reward = float(played.reward)
        return reward if self._values is None else self._by_turn(self._values, data, played, reward)

    def _by_turn(
        self, values: TurnValues, data: Mapping[str, Any], played: PlayResult, reward: float
    ) -> float | dict[str, float]:
        """Rewards by response; the whole one where the world's progress is not known, or responses have no names."""
        gains = values.gains(self._conversations.task(data), played.episode, reward)
        turns = [] if played.episode is None else agent_messages(played.episode)
        names = [turn.response for turn in turns if turn.response is not None]
        if not gains or not len(gains) == len(turns) == len(names) == len({*names}):
            return reward
        return dict(zip(names, gains, strict=True))
