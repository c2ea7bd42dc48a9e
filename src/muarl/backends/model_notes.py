"""What a run writes of itself into the model cards of its checkpoints. Nothing in it depends on where or when it runs,
so that runs of the same settings leave the same files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muarl.backends.checkpoint_names import SHIPPED, checkpoint_folder, checkpoint_name
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.config.rl import RlConfig
from muarl.config.rollout import RolloutConfig
from muarl.config.section import UserConfig
from muarl.config.sections import DomainConfig, ModelConfig, RunConfig
from muarl.environments.benchmark_training import benchmarks_learned
from muarl.environments.registry import find
from muarl.learning.release import ModelNotes

COLD_START = "cold_start"
"""The phase of the cold start's figures and checkpoints."""
RL = "rl"
"""The same of reinforcement learning."""
USER_RL = "user_rl"
"""The same of a user model's."""
OWN_LICENSE = "apache-2.0"
FINE_TUNING = "supervised fine-tuning on demonstrations"


@dataclass(frozen=True, slots=True)
class NotedRun:
    """What model cards tell of a run."""

    model: ModelConfig
    rollout: RolloutConfig
    domains: tuple[DomainConfig, ...]
    user: UserConfig
    rl: RlConfig
    """Read only where there is reinforcement learning."""
    seed: int
    demonstrations: Path | None = None
    """The file that a cold start learns from, if it does from one."""

    @classmethod
    def of(cls, config: RunConfig) -> NotedRun:
        """That of a configuration."""
        file = config.sft.demonstrations_file
        return cls(config.model, config.rollout, config.domains, config.user, config.rl, config.seed, file)

    def notes(self, phases: Sequence[str], begins: Path | None = None) -> ModelNotes:
        """The notes of a training run's checkpoints, of these ``phases`` of it (COLD_START, RL, USER_RL).

        ``begins``: the folder that they begin with, where that may not be ``model.checkpoint`` but what an earlier
        stage of the run has left."""
        model = self.model
        spec = model.checkpoint
        plain = ModelNotes(
            thinking=model.thinking,
            earlier_thoughts=model.earlier_thoughts,
            chat_format=model.chat_format,
            tool_text=model.tool_text,
        )
        try:
            start = checkpoint_folder(spec)
        except CheckpointError:
            return plain  # whoever loads it says what is wrong
        methods: list[tuple[str, str]] = []
        if COLD_START in phases:
            methods.append((COLD_START, FINE_TUNING))
        if RL in phases:
            before = "" if begins is None or begins.resolve() == start.resolve() else f"{FINE_TUNING}, then "
            method = self.rl.method or "grpo"
            methods.append((RL, f"{before}reinforcement learning ({method}) against {_users(self.user)}"))
        if USER_RL in phases:
            method = self.rl.method or "grpo"
            methods.append((USER_RL, f"reinforcement learning ({method}) as a user model, against a fixed agent"))
        shown = self.demonstrations if COLD_START in phases else None
        recorded = self.rl.replay if RL in phases else None
        return replace(
            plain,
            start=start,
            base=checkpoint_name(start) if start.is_dir() else spec,
            methods=tuple(methods),
            data=f"conversations in {' and '.join(map(_place, self.domains))}, seed {self.seed}",
            settings=(
                ("Context", f"{model.max_context:,} tokens"),
                ("Longest turn", f"{self.rollout.tokens_per_turn:,} tokens"),
            ),
            benchmarks=benchmarks_learned((domain.name for domain in self.domains), shown, recorded),
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
