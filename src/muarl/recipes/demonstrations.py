"""Demonstrations: conversations of a scripted expert with simulated users, and how a learner reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from muarl.agents.expert import ExpertAgent
from muarl.conversation import Rules, agent_view
from muarl.domains.base import Domain, Task
from muarl.domains.experts import Habits
from muarl.episode import Episode, StopReason, Usage
from muarl.errors import DataError
from muarl.learning.packing import Sample
from muarl.player import requests_for
from muarl.recipes.common import play_requests
from muarl.recipes.ledger import Ledger
from muarl.recipes.setting import Setting
from muarl.recipes.spending import Spending
from muarl.rollout import RolloutEnd
from muarl.tokens import ChatTokens
from muarl.users.base import UserFactory

CONCURRENCY = 256
"""Demonstrations under way at once."""

DEMONSTRATIONS = "demonstrations"
"""Where they lie among a run's episodes; the label of their seeds is the same word in the singular."""


def demonstrate(
    setting: Setting,
    users: UserFactory,
    tasks: Sequence[Task],
    habits: Habits,
    *,
    seed: int,
    progress: Callable[[Episode, int, int], None] | None = None,
    ledger: Ledger | None = None,
    spending: Spending | None = None,
) -> list[Episode]:
    """One scored conversation of the expert for every task; those that broke for reasons of their own are left out.

    ``ledger``: each is kept there as soon as it is final, and what it holds is not played again. ``spending``: enters
    what they cost. BudgetError once the budget is spent.
    """
    setting.check(tasks)
    agent = ExpertAgent(habits, setting.generated.expert if setting.generated is not None else None)
    requests = requests_for(tasks, 1, seed=seed, label="demonstration")
    still = requests
    if ledger is not None:
        ledger.check(requests, agent.name, users.name)
        still = ledger.open(requests)

    def finished(episode: Episode, done: int, total: int) -> None:
        if ledger is not None:
            ledger.keep(episode, Usage())
        if spending is not None:
            spending.add(episode)
        if progress is not None:
            progress(episode, done, total)

    budget = None if spending is None else spending.budget()
    played = asyncio.run(
        play_requests(setting, agent, users, still, concurrency=CONCURRENCY, progress=finished, budget=budget)
    )
    if played.end is not RolloutEnd.COMPLETE and spending is not None:
        raise spending.spent()
    found = played.episodes
    if ledger is not None:
        found = [ledger.kept[r.episode_id] for r in requests]
        ledger.close(found)
    return [e for e in found if e.stop is not StopReason.INFRASTRUCTURE]


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
