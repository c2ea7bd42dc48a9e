"""Demonstrations: conversations of a scripted expert with simulated users, and how a learner reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from muarl.agents.expert import ExpertAgent
from muarl.conversation import Rules, agent_view
from muarl.domains.base import Domain, Task
from muarl.domains.experts import Habits
from muarl.episode import Episode, StopReason
from muarl.errors import DataError
from muarl.learning.packing import Sample
from muarl.recipes.common import play
from muarl.recipes.setting import Setting
from muarl.tokens import ChatTokens
from muarl.users.base import UserFactory


def demonstrate(
    setting: Setting,
    users: UserFactory,
    tasks: Sequence[Task],
    habits: Habits,
    *,
    seed: int,
    progress: Callable[[Episode, int, int], None] | None = None,
) -> list[Episode]:
    """One scored conversation of the expert for every task; those that broke for reasons of their own are left out."""
    agent = ExpertAgent(habits, setting.generated.expert if setting.generated is not None else None)
    played = asyncio.run(play(setting, agent, users, tasks, 1, seed=seed, label="demonstration", progress=progress))
    return [e for e in played.episodes if e.stop is not StopReason.INFRASTRUCTURE]


def supervised_samples(
    episodes: Sequence[Episode],
    domain: Domain,
    chat: ChatTokens,
    rules: Rules,
    *,
    system: str | None = None,
    other_weight: float = 0.0,
) -> list[Sample]:
    """Demonstrations as samples: weight 1 on what the agent would have sampled, ``other_weight`` on all other tokens.

    What the agent was told stands in the episode; where it does not, it is the domain's tools and ``system``, None for
    the domain's policy. DataError names an episode that is no conversation of an agent.
    """
    samples = []
    for episode in episodes:
        specs = domain.tool_specs() if episode.tools is None else episode.tools
        told = domain.policy_text if system is None else system
        text = told if episode.system is None else episode.system
        try:
            trace = chat.training_tokens(text, specs, agent_view(episode.messages, rules))
        except (ValueError, TypeError) as problem:
            raise DataError(f"demonstration {episode.id!r} cannot be learned from: {problem}") from None
        if not any(trace.loss_mask):
            raise DataError(f"demonstration {episode.id!r}: the agent says nothing in it, so there is nothing to learn")
        samples.append(Sample.supervised(trace.ids, trace.loss_mask, other_weight))
    return samples
