"""What a run writes of itself into the model cards of its checkpoints. Nothing in it depends on where or when it runs,
so that runs of the same settings leave the same files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muarl.backends.checkpoint_names import SHIPPED, checkpoint_folder, checkpoint_name
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.config import RunConfig
from muarl.config.sections import DomainConfig, UserConfig
from muarl.environments.registry import find
from muarl.learning.release import ModelNotes

COLD_START = "cold_start"
"""The phase of the cold start's figures and checkpoints."""
RL = "rl"
"""The same of reinforcement learning."""
OWN_LICENSE = "apache-2.0"
FINE_TUNING = "supervised fine-tuning on demonstrations"


def model_notes(config: RunConfig, phases: Sequence[str], begins: Path | None = None) -> ModelNotes:
    """The notes of a training run's checkpoints, of these ``phases`` of it (COLD_START, RL). ``begins``: the folder
    that they begin with, where that may not be ``model.checkpoint`` but what an earlier stage of the run has left."""
    spec = config.model.checkpoint
    try:
        start = checkpoint_folder(spec)
    except CheckpointError:
        return ModelNotes(  # whoever loads it says what is wrong
            thinking=config.model.thinking,
            earlier_thoughts=config.model.earlier_thoughts,
            chat_format=config.model.chat_format,
            tool_text=config.model.tool_text,
        )
    methods: list[tuple[str, str]] = []
    if COLD_START in phases:
        methods.append((COLD_START, FINE_TUNING))
    if RL in phases:
        before = "" if begins is None or begins.resolve() == start.resolve() else f"{FINE_TUNING}, then "
        learned = f"reinforcement learning ({config.rl.method or 'grpo'})"
        methods.append((RL, f"{before}{learned} against {_users(config.user)}"))
    return ModelNotes(
        thinking=config.model.thinking,
        earlier_thoughts=config.model.earlier_thoughts,
        chat_format=config.model.chat_format,
        tool_text=config.model.tool_text,
        start=start,
        base=checkpoint_name(start) if start.is_dir() else spec,
        methods=tuple(methods),
        data=f"conversations in {' and '.join(map(_place, config.domains))}, seed {config.seed}",
        settings=(
            ("Context", f"{config.model.max_context:,} tokens"),
            ("Longest turn", f"{config.rollout.tokens_per_turn:,} tokens"),
        ),
        license=OWN_LICENSE if spec in SHIPPED else "",
    )


def _place(domain: DomainConfig) -> str:
    """The environment, and its size if it comes in several. Of code that nobody has named here, only what it is called:
    a run is exported without it."""
    try:
        environment = find(domain.name)
    except ConfigError:
        return domain.name.rpartition("/")[2]
    return environment.name + (f", size {domain.size}" if environment.sizes else "")


def _users(user: UserConfig) -> str:
    """Who played the users of training, for people."""
    if user.kind == "llm" and user.endpoint is not None:
        return f"users played by {user.endpoint.model}"
    if user.kind == "sampled":
        return "a user model"
    return "scripted users"
