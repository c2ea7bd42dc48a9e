"""What a learner is told: which loss, which optimiser, how much at once, in which precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from muarl.basics.errors import ConfigError
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Strategy
from muarl.learning.release import ModelNotes

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The matrices of a layer of the own path; models of other families have others, or only some of them."""

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """Train adapters instead of the model (LoRA, Hu et al. 2021, 2106.09685): beside each matrix W of ``targets`` a
    product B A of ``rank``, so that W x + (alpha / rank) B A x is computed. A begins random, B at 0. ConfigError for a
    rank below 1 or no targets."""

    rank: int = 16
    alpha: float = 32.0
    targets: tuple[str, ...] = PROJECTIONS

    def __post_init__(self) -> None:
        if self.rank < 1 or not self.alpha > 0:
            raise ConfigError(f"lora: rank {self.rank} and alpha {self.alpha} must be above 0")
        if not self.targets:
            raise ConfigError(f"lora.targets: none: choose from {', '.join(PROJECTIONS)}, or your model's own matrices")


@dataclass(frozen=True, slots=True)
class LearnerConfig:
    """What a learner is told: optimiser, policy loss, and how much it computes at once."""

    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    policy: PolicyLossConfig = field(default_factory=PolicyLossConfig)
    token_budget: int = 16384
    """Places (rows x length) in one micro-batch: the memory knob."""
    packing: Strategy = "sorted"
    """See ``packing.pack``."""
    row_length: int | None = None
    entropy: bool = True
    """Measure it over the loss tokens of policy steps."""
    precision: Precision = "float32"
    """What it computes in; the weights that are trained stay as they are held (one process: as loaded; sharded:
    float32)."""
    recompute: bool = False
    """Make activations again in the backward pass, which trades time for memory."""
    lora: LoraSettings | None = None
    """Train adapters only."""
    seed: int = 0
    """Orders the minibatches and begins the adapters."""
    start_kl: int = 0
    """Episodes of a policy step on which the divergence from the start weights is measured where it is not in the loss
    and they are at hand (``Stepper._start_at_hand``); 0: none."""
    notes: ModelNotes = field(default_factory=ModelNotes)
    """For the model cards of its checkpoints."""
