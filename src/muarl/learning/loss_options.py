"""The options of the policy loss, each declared once: in a run's configuration they are keys of ``rl:``, and the loss
takes them as one object. Needs no torch."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Aggregation = Literal["token_mean", "sequence_mean", "dr_grpo"]
KLEstimator = Literal["k1", "k2", "k3"]
Ratio = Literal["token", "sequence"]
Correction = Literal["none", "token", "sequence"]

Count = Annotated[int, Field(ge=1)]
AboveZero = Annotated[float, Field(gt=0)]


class PolicyLossOptions(BaseModel):
    """What a person chooses of the policy step. Defaults are MUA-RL's published ones, except that ``token_mean`` is
    global over the batch. The formulas are in ``losses`` and ``corrections``."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    temperature: Annotated[float, Field(gt=0.0, le=2.0)] = Field(
        1.0, description="Sampling temperature of rollouts and of all log-probabilities."
    )
    ratio: Ratio = Field(
        "token",
        description="Ratio of each token (GRPO) or of the whole episode, length-normalised (GSPO; needs much "
        "smaller clips).",
    )
    clip_low: AboveZero = Field(0.2, description="How far a probability ratio may fall below 1.")
    clip_high: AboveZero = Field(0.2, description="How far it may rise above 1. DAPO's clip-higher: 0.28.")
    dual_clip: Annotated[float, Field(gt=1)] | None = Field(
        3.0, description="Bound on the loss of tokens with a negative advantage and a large ratio; null: none."
    )
    loss_aggregation: Aggregation = Field(
        "token_mean",
        description="`token_mean`: over all sampled tokens of the step. `sequence_mean`: within each episode, "
        "then over episodes. `dr_grpo`: sum over each episode, divided by a constant length.",
    )
    kl_coef: Annotated[float, Field(ge=0)] = Field(
        0.001, description="Weight of the divergence from the reference model in the loss; 0: no reference model."
    )
    kl_estimator: KLEstimator = Field("k3", description="Estimator of that divergence.")
    entropy_coef: Annotated[float, Field(ge=-1, le=1)] = Field(
        0.0,
        description="Weight of the policy's entropy: above 0 rewarded, below 0 penalised.",
    )
    correction: Correction = Field(
        "none",
        description="Truncated importance sampling between the sampler's policy and the learner's: a weight for "
        "each token or each episode.",
    )
    correction_cap: AboveZero = Field(2.0, description="Largest such weight.")
    sequence_mask: tuple[float, float] | None = Field(
        None,
        description="`[low, high]`: leave out episodes whose mean ratio of learner to sampler (geometric, over "
        "tokens) lies outside.",
    )
    minibatches: Count = Field(1, description="Optimiser steps per training step.")
    epochs: Count = Field(1, description="Passes over the episodes of one training step.")

    @model_validator(mode="after")
    def _mask_contains_one(self) -> Self:
        if self.sequence_mask is not None and not 0 <= self.sequence_mask[0] < 1 < self.sequence_mask[1]:
            raise ValueError(f"sequence_mask must be two bounds around 1, not {list(self.sequence_mask)}")
        return self

    @property
    def corrects(self) -> bool:
        """Whether anything is done about the gap between sampler and learner (``corrections``)."""
        return self.correction != "none" or self.sequence_mask is not None


class PolicyLossConfig(PolicyLossOptions):
    """The policy loss, GRPO and its variants: ratio, clips, divergence, aggregation. Each field is described.

    ``PolicyLossOptions`` are what a person chooses; the others follow from the rest of a run.

    pydantic's ValidationError, a ValueError, names an option that means nothing, alone or beside another.
    """

    constant_length: Count | None = Field(
        None, description="The number of tokens that `dr_grpo` divides by, usually the longest episode."
    )
    kl_importance: bool = Field(
        False, description="Weigh the divergence's terms by the importance ratio to the policy that sampled."
    )
    old_logprobs: Literal["sampler", "recompute"] = Field(
        "sampler",
        description="`sampler`: trust the log-probabilities that came with the samples. `recompute`: make them again "
        "with the weights before the step; a correction then weighs the sampler's against those.",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.loss_aggregation == "dr_grpo" and self.constant_length is None:
            raise ValueError("constant_length: loss_aggregation dr_grpo needs the number of tokens to divide by")
        if self.corrects and self.old_logprobs == "sampler":
            raise ValueError("correction needs old_logprobs=recompute: there is no gap to the sampler's own")
        return self
