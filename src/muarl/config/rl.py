"""The section of a run configuration about reinforcement learning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from muarl.config.section import Count, Positive, Section


class ShapingConfig(Section):
    """Terms added to the binary reward that a policy learns from (rewards/shaped.py); scores stay binary."""

    format: Annotated[float, Field(ge=0)] = Field(0.0, description="Weight of the share of calls that can be read.")
    tool_names: Annotated[float, Field(ge=0)] = Field(
        0.0, description="Weight of the overlap between the tools called and those of the gold actions."
    )
    milestones: Annotated[float, Field(ge=0)] = Field(
        0.0, description="Weight of the share of gold actions that were made."
    )


class LayersConfig(Section):
    """What the audit's layers take from the reward that a policy learns from (rewards/layered.py); scores stay binary.

    A layer is violated once for an episode, however often its rules were broken.
    """

    policy: Annotated[float, Field(ge=0)] = Field(
        0.0, description="Penalty where policy was broken, such as a write without consent."
    )
    communication: Annotated[float, Field(ge=0)] = Field(
        0.0, description="Penalty where something was not said that had to be said."
    )
    safety: Annotated[float, Field(ge=0)] = Field(
        0.0, description="Penalty where a boundary was crossed, such as another customer's data."
    )
    gates: tuple[Literal["policy", "communication", "safety"], ...] = Field(
        (), description="Layers whose violation makes the reward 0, before penalties."
    )

    @property
    def active(self) -> bool:
        """Whether any of it is on."""
        return bool(self.policy or self.communication or self.safety or self.gates)

    @property
    def penalties(self) -> dict[str, float]:
        """The penalty of each layer."""
        return {"policy": self.policy, "communication": self.communication, "safety": self.safety}


class RlConfig(Section):
    """Reinforcement learning: groups of rollouts a task, advantages within the group, clipped policy gradient."""

    method: Literal["grpo", "dr_grpo", "dapo", "gspo", "rloo"] | None = Field(
        None,
        description="Sets `ratio`, `advantage`, `loss_aggregation`, the clips, `dynamic_sampling` and, for `dapo`, "
        "`kl_coef` as in that method; keys set explicitly override it. null: only the keys, whose defaults are GRPO's.",
    )
    steps: Count = Field(30, description="Training steps; each rolls out, scores and updates once.")
    tasks_per_step: Positive = Field(32, description="Tasks in one step.")
    group_size: Annotated[int, Field(ge=2)] = Field(8, description="Rollouts of each task.")
    min_group: Annotated[int, Field(ge=2)] | None = Field(
        None,
        description="Fewest scored rollouts of a group, after infrastructure failures are excluded; smaller groups "
        "are dropped; null: three quarters of `group_size`.",
    )
    seed: int = Field(2, description="Seed of the training tasks; another one gives other tasks.")
    temperature: Annotated[float, Field(gt=0.0, le=2.0)] = Field(1.0, description="Sampling temperature of rollouts.")
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = Field(1.0, description="Nucleus sampling in rollouts; 1: off.")
    lr: Annotated[float, Field(gt=0)] = Field(5e-4, description="Learning rate of AdamW after warm-up.")
    warmup: Count = Field(5, description="Steps over which the learning rate rises from 0.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "constant", description="What the learning rate does after warm-up."
    )
    weight_decay: Annotated[float, Field(ge=0)] = Field(0.0, description="AdamW weight decay.")
    clip_low: Annotated[float, Field(gt=0)] = Field(0.2, description="How far a probability ratio may fall below 1.")
    clip_high: Annotated[float, Field(gt=0)] = Field(
        0.2, description="How far it may rise above 1. DAPO's clip-higher: 0.28."
    )
    dual_clip: Annotated[float, Field(gt=1)] | None = Field(
        3.0, description="Bound on the loss of tokens with a negative advantage and a large ratio; null: none."
    )
    ratio: Literal["token", "sequence"] = Field(
        "token",
        description="Ratio of each token (GRPO) or of the whole episode, length-normalised (GSPO; it then wants much "
        "smaller clips).",
    )
    kl_coef: Annotated[float, Field(ge=0)] = Field(
        0.001, description="Weight of the divergence from the reference model in the loss; 0: no reference model."
    )
    kl_estimator: Literal["k1", "k2", "k3"] = Field("k3", description="Estimator of that divergence.")
    loss_aggregation: Literal["token_mean", "sequence_mean", "dr_grpo"] = Field(
        "token_mean",
        description="`token_mean`: one mean over all sampled tokens of the step. `sequence_mean`: mean within each "
        "episode, then over episodes. `dr_grpo`: sum over each episode, divided by a constant length.",
    )
    advantage: Literal["group_std", "group_mean", "leave_one_out"] = Field(
        "group_std",
        description="`group_std`: reward minus the group's mean, divided by the group's standard deviation (GRPO). "
        "`group_mean`: not divided (Dr.GRPO). `leave_one_out`: minus the mean of the others, not divided (RLOO).",
    )
    reward_basis: Literal["task", "database"] = Field(
        "task",
        description="Reward of training tasks. `task`: all components of the task, such as required information or "
        "calls. `database`: the final database state alone (MUA-RL). Validation and evaluation always use all "
        "components.",
    )
    shaping: ShapingConfig = Field(default_factory=ShapingConfig)
    layers: LayersConfig = Field(default_factory=LayersConfig)
    drop_zero_variance: bool = Field(True, description="Drop groups whose rollouts all have the same reward.")
    dynamic_sampling: bool = Field(
        False, description="Draw further tasks until `tasks_per_step` groups have differing rewards (DAPO)."
    )
    minibatches: Positive = Field(1, description="Optimiser steps that the episodes of one training step are split in.")
    epochs: Positive = Field(1, description="Passes over the episodes of one training step.")
    grad_clip: Annotated[float, Field(gt=0)] = Field(1.0, description="Largest norm of the gradient.")
    max_turns: Positive = Field(
        30,
        description="Maximum agent turns in an episode; then it ends with `max_turns`. At least 100 on TAU2's own "
        "tasks, which are long; BFCL and ACEBench use their own limits.",
    )
    tokens_per_turn: Positive = Field(256, description="Maximum tokens of one agent turn; then `turn_length`.")
    max_tool_errors: Positive = Field(10, description="Tool errors after which an episode ends with `tool_errors`.")
    concurrency: Positive = Field(256, description="Maximum concurrent episodes.")
    asynchrony: Literal["synchronous", "one_step_off", "bounded"] = Field(
        "synchronous",
        description="`synchronous`: rollout and update alternate. `one_step_off`: the next step's episodes are played "
        "during the update on this step's. `bounded`: rollouts run ahead continuously, by at most `staleness` updates.",
    )
    staleness: Positive = Field(
        1,
        description="Under `bounded`: maximum number of updates between sampling a token and training on it. After "
        "`step` updates, at most (staleness + step + 1) x `tasks_per_step` groups have been used, are waiting or are "
        "running.",
    )
    patience: Annotated[float, Field(gt=0)] = Field(
        1800.0,
        description="Seconds without a finished episode after which an asynchronous run that waits for one ends.",
    )
    correction: Literal["none", "token", "sequence"] = Field(
        "none",
        description="Truncated importance sampling of the gap between the sampler's policy and the learner's before "
        "the update: a weight for each token, or one for each episode. The clipped ratio is then taken to the learner.",
    )
    correction_cap: Annotated[float, Field(gt=0)] = Field(2.0, description="Largest such weight.")
    sequence_mask: tuple[float, float] | None = Field(
        None,
        description="`[low, high]`: episodes whose mean ratio of learner to sampler (geometric, over tokens) lies "
        "outside are left out of the loss; null: none.",
    )
    pack_tokens: Positive = Field(16384, description="Tokens in one forward and backward pass of the update.")
    eval_every: Count = Field(0, description="Evaluate on validation tasks every N steps; 0: never.")
    checkpoint_every: Count = Field(10, description="Write a checkpoint every N steps; 0: only at the end.")
    save_episodes: Literal["all", "some", "none"] = Field(
        "some",
        description="Which episodes are kept for `muarl view`. `some`: the first 64 of the first and last step and of "
        "those with a checkpoint. `all`: about 10 kB an episode.",
    )

    @model_validator(mode="after")
    def _group(self) -> RlConfig:
        if self.min_group is not None and self.min_group > self.group_size:
            raise ValueError(f"min_group ({self.min_group}) is larger than group_size ({self.group_size})")
        if self.sequence_mask is not None and not 0 <= self.sequence_mask[0] < 1 < self.sequence_mask[1]:
            raise ValueError(f"sequence_mask must be two bounds around 1, not {list(self.sequence_mask)}")
        return self
