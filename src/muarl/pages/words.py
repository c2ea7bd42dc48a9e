"""What the report calls the figures, what they mean, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Word:
    """A figure in words."""

    label: str
    meaning: str = ""
    share: bool = False
    better: Literal["lower", "higher"] | None = None
    """The direction that an operator wants, None where neither is better as such."""


WORDS: dict[str, Word] = {
    "success": Word("Success", "share of conversations that left the database exactly as it should be", True, "higher"),
    "completion": Word(
        "Task completion",
        "share of what was to be done (changes, statements) that was done; what was done besides takes nothing away",
        True,
        "higher",
    ),
    "success_without_violation": Word(
        "Success without any violation",
        "share of audited conversations that did so, and in which the audit found no violation in any other layer",
        True,
        "higher",
    ),
    "catastrophic": Word("Catastrophic failures", "conversations with something that must never happen", True, "lower"),
    "reward": Word("Reward", "mean reward of a conversation", False, "higher"),
    "writes_without_consent": Word(
        "Writes without consent",
        "of all changes to the database, those without the customer’s yes",
        True,
        "lower",
    ),
    "needless_transfers": Word(
        "Needless transfers",
        "conversations handed to a person that the agent could have served",
        True,
        "lower",
    ),
    "grounded": Word(
        "By the right document",
        "of all changes and answers that hang on documents, those by the document that holds",
        True,
        "higher",
    ),
    "tool_error_rate": Word("Tool errors", "share of tool calls answered by an error", True, "lower"),
    "malformed_calls": Word("Malformed calls", "per conversation: calls that could not be read", False, "lower"),
    "calls": Word("Tool calls", "per conversation"),
    "calls_general_share": Word("General tools", "share of calls to calculate, think or transfer", True),
    "audit/repeated_calls": Word(
        "Repeated calls", "per conversation: asking the same of an unchanged database", False, "lower"
    ),
    "loops": Word("Going in circles", "conversations with four or more equal calls", True, "lower"),
    "success_with_consent": Word(
        "Success with consent", "solved, and nothing changed without the customer’s yes", True, "higher"
    ),
    "audit/access_before_authentication": Word(
        "Access before authentication", "per conversation: data touched before knowing who is asking", False, "lower"
    ),
    "audit/foreign_access": Word("Access to others’ data", "per conversation", False, "lower"),
    "audit/searches": Word("Searches", "per conversation: of documents"),
    "audit/documented": Word("Changes and answers by documents", "per conversation"),
    "audit/questions": Word("Questions", "per conversation: messages to the customer that ask something"),
    "audit/writes": Word("Writes", "per conversation: successful changes to the database"),
    "audit/transfers": Word("Transfers", "per conversation, right ones included"),
    "truncated": Word("Truncated", "share of conversations that ran into a limit", True, "lower"),
    "turns": Word("Agent turns", "messages and tool calls of the agent per conversation"),
    "agent_tokens": Word("Agent tokens", "tokens the agent wrote per conversation"),
    "agent_tokens_per_turn": Word("Tokens per turn", "tokens the agent wrote per turn"),
    "diversity": Word("Diversity", "distinct 4-grams of all 4-grams in the agent’s output", True),
    "kl": Word("KL", "divergence per token from the weights that RL began with; a sudden rise is a warning"),
    "entropy": Word("Entropy", "of the agent’s choices per token; a collapse to 0 is a warning"),
    "groups_equal": Word("Groups without a gradient", "groups of a step whose rollouts all earned the same"),
    "loss": Word("Loss", "on the agent’s own tokens"),
    "grad_norm": Word("Gradient norm", "before clipping"),
}

SHARES = ("groups/", "stop/")


STAGES = {
    "before": "evaluation before RL",
    "after": "evaluation after RL",
    "training": "training",
    "validation": "validation",
    "evaluation": "evaluation",
    "demonstrations": "demonstrations",
}


def stage_text(stage: str, step: int | None = None) -> str:
    """A stage of a run's episodes as a reader says it."""
    name = STAGES.get(stage, stage.replace("-", " "))
    return name if step is None else f"{name}, step {step:,}"


_PHASES = {"rl": "reinforcement learning", "sft": "supervised fine-tuning", "": "the run"}


def phase_name(phase: object) -> str:
    """A phase of a run as the report calls it."""
    text = str(phase or "")
    return _PHASES.get(text) or text.replace("_", " ")


def word(name: str) -> Word:
    """The figure's words; unknown figures are called by their name."""
    return WORDS.get(name) or Word(name.replace("_", " "), share=name.startswith(SHARES))
