"""Demonstrations: conversations of a scripted expert with simulated users, and how a learner reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muarl.accounts.budgets import RolloutEnd
from muarl.basics.errors import DataError
from muarl.basics.event_loop import event_loop
from muarl.chat_formats.base import ChatFormat
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.places import Places, Users
from muarl.environments.play import local_executor
from muarl.learning.packing import Sample
from muarl.rollouts.conversation import agent_view
from muarl.rollouts.episode_runner import requests_for
from muarl.rollouts.rollout import rollout
from muarl.runs.results_store import ResultsStore
from muarl.runs.spending import Spending
from muarl.types.episode import Episode, TokenTrace, Usage

Segments = tuple[Sample, ...]
"""A conversation to learn from: one sample, or one for each context that was written anew."""

CONCURRENCY = 256
"""Max concurrent demonstrations."""

DEMONSTRATIONS = "demonstrations"
"""Where they lie among a run's episodes; the label of their seeds is the same word in the singular."""


def demonstrate(
    places: Places,
    users: Users,
    tasks: Sequence[Task],
    error_profile: ErrorProfile,
    *,
    seed: int,
    progress: Callable[[Episode, int, int], None] | None = None,
    results: ResultsStore | None = None,
    spending: Spending | None = None,
) -> list[Episode]:
    """One scored conversation of the expert for every task; those that broke for reasons of their own are left out.

    ``results``: each is kept there as soon as it is final, and what it holds is not played again. ``spending``: enters
    what they cost. BudgetError once the budget is spent.
    """
    places.check(tasks)
    agent = places.experts(error_profile)
    requests = requests_for(tasks, 1, seed=seed, label="demonstration")
    still = requests
    if results is not None:
        results.check(requests, agent.name, users.name)
        still = results.open(requests)

    def finished(episode: Episode, done: int, total: int) -> None:
        if results is not None:
            results.keep(episode, Usage())
        if spending is not None:
            spending.add(episode)
        if progress is not None:
            progress(episode, done, total)

    budget = None if spending is None else spending.budget()
    with event_loop() as loop:
        executor = local_executor(places, agent, users, CONCURRENCY)
        played = loop.run(rollout(still, executor, budget=budget, progress=finished))
    if played.end is not RolloutEnd.COMPLETE and spending is not None:
        raise spending.spent()
    episodes = played.episodes
    if results is not None:
        episodes = [results.kept[r.episode_id] for r in requests]
        results.close(episodes)
    return [e for e in episodes if e.learnable]


def supervised_samples(
    episodes: Sequence[Episode],
    places: Places,
    chat: ChatFormat,
    *,
    other_weight: float = 0.0,
) -> list[Segments]:
    """Demonstrations as samples: weight 1 on what the agent would have sampled, ``other_weight`` on all other tokens,
    but for contexts that are written anew (where the chat format drops earlier thoughts): those tokens have been
    weighed before.

    What the agent was told stands in the episode; where it does not, it is its domain's tools and policy. DataError
    names an episode that is no conversation of an agent.
    """
    samples = []
    for episode in episodes:
        place = places.of(episode)
        specs = place.domain.tool_specs() if episode.tools is None else episode.tools
        policy_text = place.domain.policy_text if place.system is None else place.system
        text = policy_text if episode.system is None else episode.system
        try:
            trace = chat.training_tokens(text, specs, agent_view(episode.messages, place.rules))
        except (ValueError, TypeError) as problem:
            raise DataError(f"demonstration {episode.id!r} cannot be learned from: {problem}") from None
        if not any(trace.loss_mask):
            raise DataError(f"demonstration {episode.id!r}: the agent says nothing in it, so there is nothing to learn")
        samples.append(segments_of(trace, other_weight))
    return samples


def segments_of(trace: TokenTrace, other_weight: float = 0.0) -> Segments:
    """The samples of one conversation, as in ``supervised_samples``."""
    first, *later = trace.segments()
    samples = [Sample.supervised(first.ids, first.loss_mask, other_weight)]
    for part in later:
        context_length = part.loss_mask.index(True)
        weights = [0.0] * context_length + [1.0 if m else other_weight for m in part.loss_mask[context_length:]]
        samples.append(Sample(part.ids, weights))
    return tuple(samples)
