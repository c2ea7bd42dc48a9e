"""Shaped rewards, to compare with the binary one: format, tool names, milestones. Off unless a run asks for them.

The paper rewards nothing but that the task got done (MUA-RL, section 3); others add terms such as these, which are
easier to earn, and easier to earn without doing the task. What a run learns from is the verdict's reward plus the
weighted terms; scores and reports stay the verdict's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muarl.domains.tasks import Task
from muarl.rewards.checks import acted
from muarl.types.chat import Message
from muarl.types.episode import Episode

PREFIX = "shaped_"
"""How the terms are called in ``Verdict.audit``."""


def terms(task: Task, messages: Sequence[Message]) -> dict[str, float]:
    """The terms of a conversation, each between 0 and 1.

    ``format``: share of the agent's calls that can be read; 1 if it makes none. ``tool_names``: overlap (Jaccard) of
    the names of the agent's calls with those of its gold actions; 1 if there are neither. ``milestones``: share of the
    gold actions, of either side, that were called with the right arguments; 1 if there are none.
    """
    calls = [c for m in messages if m.role == "assistant" for c in m.tool_calls]
    gold = task.actions or ()
    gold_names = {a.name for a in gold if a.requestor == "assistant"}
    names = {c.name for c in calls if c.invalid is None}
    done = acted(messages, gold)
    return {
        "format": sum(c.invalid is None for c in calls) / len(calls) if calls else 1.0,
        "tool_names": len(gold_names & names) / len(gold_names | names) if gold_names | names else 1.0,
        "milestones": sum(done) / len(done) if done else 1.0,
    }


def shaped_reward(episode: Episode, weights: Mapping[str, float]) -> float:
    """The verdict's reward plus the weighted terms. KeyError if a weighted term was not noted in the audit."""
    assert episode.verdict is not None
    noted = episode.verdict.audit
    return episode.reward + sum(weight * noted[PREFIX + name] for name, weight in weights.items() if weight)
