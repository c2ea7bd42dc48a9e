"""What a run writes of itself into the model cards of its checkpoints. Nothing in it depends on where or when it runs,
so that runs of the same settings leave the same files."""

from __future__ import annotations

from pathlib import Path

from muarl.config import RunConfig
from muarl.config.sections import UserConfig
from muarl.errors import CheckpointError
from muarl.learning.release import ModelNotes
from muarl.recipes.checkpoint_names import SHIPPED, checkpoint_folder, checkpoint_name

COLD_START = "cold_start"
"""The phase of the cold start's figures and checkpoints."""
OWN_LICENSE = "apache-2.0"
FINE_TUNING = "supervised fine-tuning on demonstrations"


def model_notes(config: RunConfig, begins: Path | None = None) -> ModelNotes:
    """The notes of a training run's checkpoints. ``begins``: the folder that this stage of it begins with, where that
    may not be ``model.checkpoint`` but what an earlier stage of the run has left."""
    spec, rl = config.model.checkpoint, config.rl
    try:
        start = checkpoint_folder(spec)
    except CheckpointError:
        return ModelNotes(thinking=config.model.thinking)  # whoever loads it says what is wrong
    before = "" if begins is None or begins.resolve() == start.resolve() else f"{FINE_TUNING}, then "
    domain = config.domain.name + (f", size {config.domain.size}" if config.domain.generated else "")
    return ModelNotes(
        thinking=config.model.thinking,
        start=start,
        base=checkpoint_name(start) if start.is_dir() else spec,
        methods=(
            (COLD_START, FINE_TUNING),
            ("rl", f"{before}reinforcement learning ({rl.method or 'grpo'}) against {_users(config.user)}"),
        ),
        data=f"conversations in {domain}, seed {config.seed}",
        settings=(
            ("Context", f"{config.model.max_context:,} tokens"),
            ("Longest turn", f"{rl.tokens_per_turn:,} tokens"),
        ),
        license=OWN_LICENSE if spec in SHIPPED else "",
    )


def _users(user: UserConfig) -> str:
    """Who played the users of training, for people."""
    if user.kind == "llm" and user.endpoint is not None:
        return f"users played by {user.endpoint.model}"
    if user.kind == "sampled":
        return "a user model"
    return "scripted users"
