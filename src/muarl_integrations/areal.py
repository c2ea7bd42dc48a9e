"""AReaL: an agent workflow, by its import path.

    trainer.train(workflow="muarl_integrations.areal.MuarlAgent", workflow_kwargs={"user": "agenda"})

AReaL is not imported: it asks for a class with ``run``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from muarl.basics.errors import ConfigError
from muarl_integrations.conversations import Conversations


class MuarlAgent:
    """Plays a row's task with the policy behind AReaL's proxy. ``settings``: the fields of ``Conversations``."""

    def __init__(self, **settings: Any) -> None:
        self._conversations = Conversations(**settings)

    async def run(self, data: Mapping[str, Any], **extra_kwargs: Any) -> float:
        """The reward. Whatever failed outside the policy is raised, since AReaL rejects the trajectory then."""
        base_url = extra_kwargs.get("base_url") or os.environ.get("OPENAI_BASE_URL")  # of AReaL's subprocesses
        key = extra_kwargs.get("api_key") or os.environ.get("OPENAI_API_KEY") or ""
        if not base_url:
            raise ConfigError("base_url: AReaL gave none, and OPENAI_BASE_URL is not set either")
        played = await self._conversations.play(data, base_url=base_url, api_key=key)
        if played.failure is not None:
            raise played.failure.error()
        assert played.reward is not None
        return float(played.reward)
