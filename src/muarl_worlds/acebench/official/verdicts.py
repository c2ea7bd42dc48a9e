"""The verdict on an episode of ACEBench, and upstream's headline figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muarl.domains.tasks import Task
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Verdict
from muarl_worlds.acebench.domain import AceBench, AceWorld
from muarl_worlds.acebench.execute import Category, saved
from muarl_worlds.acebench.official import scoring
from muarl_worlds.acebench.official.codec import serialized
from muarl_worlds.acebench.official.prompts import STOP
from muarl_worlds.acebench.official.tasks import CATEGORIES

PART = "END_TO_END"


def score(task: Task, world: AceWorld, episode: Episode) -> Verdict:
    """The verdict on an episode from its live world, however it ended.

    ``reward`` is upstream's end-to-end accuracy in "official" semantics, the fixed one in "fixed". ``audit`` has both,
    and both process accuracies; ``note`` says what is wrong.
    """
    return score_messages(task, world, episode.messages)


def score_messages(task: Task, world: AceWorld, messages: Sequence[Message]) -> Verdict:
    """``score`` of a conversation."""
    data = task.initial_data or {}
    truth, milestones = data["ground_truth"], data["milestones"]
    sent = executed(messages, data["category"])
    official = scoring.official(world.executor.final_state(), sent, truth, milestones)
    fixed = scoring.fixed(saved(world.instances), sent, truth, milestones)
    mine = official if world.domain.semantics == "official" else fixed
    audit = {
        "end_to_end": float(official.valid),
        "process": official.process,
        "fixed_end_to_end": float(fixed.valid),
        "fixed_process": fixed.process,
    }
    notes = (official.error_type,) if mine is official else fixed.errors
    return Verdict(float(mine.valid), {PART: float(mine.valid)}, audit, "; ".join(notes) or None)


def do_nothing(domain: AceBench, task: Task) -> Verdict:
    """The verdict on an agent that never acts."""
    return score_messages(task, domain.world(task), ())


def executed(messages: Sequence[Message], category: Category) -> list[str]:
    """The agent's messages that went to the executor, as texts; native calls as ``[name(key=value, ...)]``.

    Those are, in multi-turn tasks, the ones with calls, and in multi-step tasks all; but not one that ends the
    conversation.
    """
    told = next((i for i, m in enumerate(messages) if m.role == "user"), 0)  # what precedes is a greeting
    said = [(i, m) for i, m in enumerate(messages) if i >= told and m.role == "assistant"]
    out = []
    for number, (place, message) in enumerate(said):
        text = message.content or ""
        native = any(call.raw is None for call in message.tool_calls)
        ended = number > 0 and place == len(messages) - 1 and STOP in text
        if message.tool_calls and not ended:
            out.append(serialized(message.tool_calls) if native else text)
        elif category == "multi_step" and not ended:
            out.append(text)
    return out


def summary(episodes: Iterable[Episode]) -> dict[str, float]:
    """Upstream's figures, rounded as upstream rounds them, and the fixed ones under names with "fixed_".

    Per category "end_to_end_CATEGORY" and "process_CATEGORY"; "agent" is the mean of the two end-to-end figures, where
    a missing category counts 0. Episodes that failed for reasons outside the agent are left out.
    """
    found: dict[str, list[Mapping[str, Any]]] = {category: [] for category in CATEGORIES}
    for episode in episodes:
        category = episode.tags.get("category")
        if episode.stop is not StopReason.INFRASTRUCTURE and episode.verdict is not None and category in found:
            found[category].append(episode.verdict.audit)
    out = figures({c: [(a["end_to_end"], a["process"]) for a in audits] for c, audits in found.items()})
    fixed = figures({c: [(a["fixed_end_to_end"], a["fixed_process"]) for a in audits] for c, audits in found.items()})
    return out | {f"fixed_{name}": value for name, value in fixed.items()}


def figures(scores: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, float]:
    """The figures of (end-to-end, process) pairs by category."""
    out: dict[str, float] = {}
    agent = 0.0
    for category in CATEGORIES:
        rows = scores.get(category, ())
        if rows:
            correct = process = 0.0
            for valid, share in rows:  # one after another, as upstream adds them
                correct += valid
                process += share
            out[f"end_to_end_{category}"] = round(correct / len(rows), 3)
            out[f"process_{category}"] = round(process / len(rows), 3)
        agent += out.get(f"end_to_end_{category}", 0.0)
    out["agent"] = round(agent / len(CATEGORIES), 3)
    return out
