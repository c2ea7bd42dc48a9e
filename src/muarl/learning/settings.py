"""What a learner is told: which loss, which optimiser, how much at once, in which precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from muarl.errors import ConfigError
from muarl.learning.corrections import Correction
from muarl.learning.losses import Aggregation, KLEstimator, Ratio
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Strategy
from muarl.learning.release import ModelNotes

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The matrices of a Qwen3 layer that adapters may be put beside."""

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class PolicyLossConfig:
    """The policy step. Defaults are MUA-RL's published ones, except that token_mean is global over the batch.

    ``ratio`` "token" or "sequence" (GSPO); ``clip_low`` / ``clip_high``, ``dual_clip``, ``aggregation``,
    ``constant_length``: see ``losses.policy_gradient_loss``. ``kl_coef`` 0 switches the reference model off;
    ``kl_importance``: see ``losses.kl_terms``. ``temperature``: the sampling temperature, at which all
    log-probabilities are taken. ``old_logprobs``: "sampler" trusts the samples' own, "recompute" makes them again with
    the weights before the step, and ``correction`` then weighs sampler against those. ``minibatches``: optimiser
    updates in one pass over the batch, each with its own normaliser; ``epochs``: passes.
    """

    ratio: Ratio = "token"
    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float | None = 3.0
    aggregation: Aggregation = "token_mean"
    constant_length: int | None = None
    kl_coef: float = 0.001
    kl_estimator: KLEstimator = "k3"
    kl_importance: bool = False
    temperature: float = 1.0
    old_logprobs: Literal["sampler", "recompute"] = "sampler"
    correction: Correction = field(default_factory=Correction)
    epochs: int = 1
    minibatches: int = 1

    def __post_init__(self) -> None:
        if self.aggregation == "dr_grpo" and not self.constant_length:
            raise ConfigError("policy.constant_length: aggregation dr_grpo needs the number of tokens to divide by")
        if not self.temperature > 0:
            raise ConfigError(f"policy.temperature: must be above 0, got {self.temperature}")
        if self.epochs < 1 or self.minibatches < 1:
            raise ConfigError("policy.epochs and policy.minibatches must be at least 1")
        if self.old_logprobs not in ("sampler", "recompute"):
            raise ConfigError(f"policy.old_logprobs: {self.old_logprobs!r} is not one of sampler, recompute")
        if self.correction.active and self.old_logprobs == "sampler":
            raise ConfigError("policy.correction: needs old_logprobs recompute; to the sampler's own there is no gap")


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """Train adapters instead of the model (LoRA, Hu et al. 2021, 2106.09685): beside each matrix W of ``targets`` a
    product B A of ``rank``, so that W x + (alpha / rank) B A x is computed. A begins random, B at 0. ConfigError for a
    rank below 1, or targets that a layer does not have."""

    rank: int = 16
    alpha: float = 32.0
    targets: tuple[str, ...] = PROJECTIONS

    def __post_init__(self) -> None:
        if self.rank < 1 or not self.alpha > 0:
            raise ConfigError(f"lora: rank {self.rank} and alpha {self.alpha} must be above 0")
        wrong = sorted(set(self.targets) - set(PROJECTIONS))
        if wrong or not self.targets:
            raise ConfigError(f"lora.targets: {', '.join(wrong) or 'none'}: choose from {', '.join(PROJECTIONS)}")


@dataclass(frozen=True, slots=True)
class LearnerConfig:
    """``token_budget``: places (rows x length) in one micro-batch: the memory knob. ``packing``: see ``packing.pack``.
    ``entropy``: measure it over the loss tokens of policy steps. ``precision`` "bfloat16" computes in it, while the
    weights that are trained stay as they are held (one process: as loaded; sharded: float32). ``recompute`` makes
    activations again in the backward pass, which trades time for memory. ``lora``: train adapters only. ``seed``
    orders the minibatches and begins the adapters. ``notes``: for the model cards of its checkpoints."""

    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    policy: PolicyLossConfig = field(default_factory=PolicyLossConfig)
    token_budget: int = 16384
    packing: Strategy = "sorted"
    row_length: int | None = None
    entropy: bool = True
    precision: Precision = "float32"
    recompute: bool = False
    lora: LoraSettings | None = None
    seed: int = 0
    notes: ModelNotes = field(default_factory=ModelNotes)
