"""The section of a run configuration about reinforcement learning, and the settings that ``rl.method`` stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from muarl.config.section import Count, Positive, Section
from muarl.learning.loss_options import PolicyLossOptions
from muarl.signs import SignName


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
        0.0, description="Penalty for a policy violation, such as a write without consent."
    )
    communication: Annotated[float, Field(ge=0)] = Field(
        0.0, description="Penalty where required information was not said."
    )
    safety: Annotated[float, Field(ge=0)] = Field(
        0.0, description="Penalty for a crossed boundary, such as another customer's data."
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


class PracticeConfig(Section):
    """Which training tasks are played (docs/training.md#practising-what-fails). Default: all that are drawn."""

    adaptive: bool = Field(
        False,
        description="Prefer kinds of tasks (intent and difficulty) whose groups are likely to have differing "
        "rewards. Needs `rl.asynchrony=synchronous`.",
    )
    candidates: Annotated[int, Field(ge=2)] = Field(4, description="Adaptive: tasks drawn for each one played.")
    floor: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        0.25,
        description="Adaptive: share of the tasks chosen regardless of kind.",
    )
    half_life: Annotated[float, Field(gt=0.0)] = Field(
        10.0, description="Adaptive: steps after which an observation counts half."
    )
    repeat: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.0,
        description="Maximum share of a step's tasks that repeat earlier ones whose rollouts did not all succeed. "
        "Needs `rl.asynchrony=synchronous` and `first_look=0`.",
    )
    max_repeats: Positive = Field(3, description="Repeat: maximum repetitions of a task.")
    first_look: Count = Field(
        0,
        description="Rollouts of a group that are played first: if all succeed, another task takes the group's "
        "place; 0: off. Needs `rl.asynchrony=synchronous`.",
    )
    looks: Positive = Field(3, description="First look: maximum draws of tasks in a step.")

    @property
    def active(self) -> bool:
        """Whether tasks are played otherwise than as they are drawn."""
        return self.chooses or self.first_look > 0

    @property
    def chooses(self) -> bool:
        """Whether a step's tasks depend on how earlier ones went."""
        return self.adaptive or self.repeat > 0


class BranchConfig(Section):
    """Rollouts that begin as another one of their group did (docs/credit.md); each turn has its own advantage."""

    stems: Count = Field(
        0,
        description="Rollouts of a group played from the start; the others copy one of them up to one of its "
        "turns. 0: off. Needs `rl.asynchrony=synchronous`.",
    )


class RlSteps(Section):
    """What a step of reinforcement learning plays."""

    method: Literal["grpo", "dr_grpo", "dapo", "gspo", "rloo"] | None = Field(
        None,
        description="Sets `ratio`, `advantage`, `loss_aggregation`, the clips, `dynamic_sampling` and, for "
        "`dapo`, `kl_coef`; explicit keys override it. null: the defaults, which are GRPO's.",
    )
    steps: Count = Field(30, description="Training steps.")
    tasks_per_step: Positive = Field(32, description="Tasks in one step.")
    group_size: Annotated[int, Field(ge=2)] = Field(8, description="Rollouts of each task.")
    min_group: Annotated[int, Field(ge=2)] | None = Field(
        None,
        description="Fewest scored rollouts of a group; smaller groups are dropped; null: three quarters of "
        "`group_size`.",
    )
    seed: int = Field(2, description="Seed of the training tasks.")
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = Field(1.0, description="Nucleus sampling in rollouts; 1: off.")


class RlConfig(PolicyLossOptions, RlSteps):
    """Reinforcement learning: groups of rollouts a task, advantages within the group, clipped policy gradient."""

    optimizer: Literal["adamw", "muon"] = Field(
        "adamw", description="`muon`: Muon for the matrices, AdamW for the rest."
    )
    lr: Annotated[float, Field(gt=0)] = Field(5e-4, description="Learning rate of AdamW after warm-up.")
    matrix_lr: Annotated[float, Field(gt=0)] = Field(
        0.005, description="Learning rate of the matrices under `optimizer: muon` after warm-up."
    )
    warmup: Count = Field(5, description="Steps over which the learning rate rises from 0.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "constant", description="What the learning rate does after warm-up."
    )
    weight_decay: Annotated[float, Field(ge=0)] = Field(0.0, description="AdamW weight decay.")
    advantage: Literal["group_std", "group_mean", "leave_one_out"] = Field(
        "group_std",
        description="Reward minus the group's mean, divided by its standard deviation (`group_std`, GRPO) or not "
        "(`group_mean`, Dr.GRPO), or minus the mean of the others (`leave_one_out`, RLOO).",
    )
    credit: Literal["outcome", "state"] = Field(
        "outcome",
        description="Compare turns with the group's outcomes, or (`state`) with rollouts in which the world was "
        "as far (docs/credit.md). `state` needs `rl.asynchrony=synchronous`.",
    )
    reward_basis: Literal["task", "database"] = Field(
        "task",
        description="Reward of training tasks: all components, or (`database`, MUA-RL) the final database alone. "
        "Evaluations always use all.",
    )
    shaping: ShapingConfig = Field(default_factory=ShapingConfig)
    layers: LayersConfig = Field(default_factory=LayersConfig)
    practice: PracticeConfig = Field(default_factory=PracticeConfig)
    branch: BranchConfig = Field(default_factory=BranchConfig)
    drop_zero_variance: bool = Field(True, description="Drop groups whose rollouts all have the same reward.")
    dynamic_sampling: bool = Field(
        False, description="Draw further tasks until `tasks_per_step` groups have differing rewards (DAPO)."
    )
    grad_clip: Annotated[float, Field(gt=0)] = Field(1.0, description="Largest norm of the gradient.")
    asynchrony: Literal["synchronous", "one_step_off", "bounded"] = Field(
        "synchronous",
        description="`synchronous`: rollout and update alternate. `one_step_off`: the next step is played during "
        "the update. `bounded`: rollouts run ahead by at most `staleness` updates.",
    )
    staleness: Positive = Field(
        1,
        description="Under `bounded`: maximum updates between sampling a token and training on it.",
    )
    patience: Annotated[float, Field(gt=0)] = Field(
        1800.0,
        description="Seconds without a finished episode after which an asynchronous run ends.",
    )
    eval_every: Count = Field(0, description="Evaluate on validation tasks every N steps; 0: never.")
    checkpoint_every: Count = Field(10, description="Write a checkpoint every N steps; 0: only at the end.")
    save_episodes: Literal["all", "some", "none"] = Field(
        "some",
        description="Episodes kept for `muarl view`. `some`: 64 of the first and last step and of those with a "
        "checkpoint.",
    )

    rollouts_only: bool = Field(
        False,
        description="Play and keep all episodes, learn nothing (see `rl.replay`).",
    )
    replay: str | None = Field(
        None,
        description="Learn from recorded episodes only: RUN, RUN:STEP or FILE with token ids (docs/credit.md).",
    )

    stop_on: tuple[SignName, ...] = Field(
        (),
        description="Signs that end a failing training with a checkpoint and exit code 3, such as "
        "`[kl-runs-away]` (docs/training.md).",
    )

    @field_validator("stop_on", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        """One name, or several with commas between, may be given as text."""
        return [part.strip() for part in value.split(",")] if isinstance(value, str) else value

    @property
    def reward(self) -> str:
        """What a policy learns from: "outcome" of the task alone, or what is added to it: "shaping", "layers" or both,
        joined by " and "."""
        shaped = any(self.shaping.model_dump().values())
        added = [name for name, on in (("shaping", shaped), ("layers", self.layers.active)) if on]
        return " and ".join(added) or "outcome"

    @model_validator(mode="after")
    def _group(self) -> RlConfig:
        if self.min_group is not None and self.min_group > self.group_size:
            raise ValueError(f"min_group ({self.min_group}) is larger than group_size ({self.group_size})")
        return self

    @model_validator(mode="after")
    def _halves(self) -> RlConfig:
        if self.rollouts_only and self.replay is not None:
            raise ValueError("rollouts_only learns nothing, and replay plays nothing: choose one")
        if self.rollouts_only and self.asynchrony != "synchronous":
            raise ValueError(f"rollouts_only needs no learner to run ahead of, and asynchrony is {self.asynchrony}")
        return self

    @model_validator(mode="after")
    def _branch(self) -> RlConfig:
        stems = self.branch.stems
        if stems and not 2 <= stems < self.group_size:
            raise ValueError(f"branch.stems ({stems}) must be at least 2, and smaller than group_size")
        if stems and self.asynchrony != "synchronous":
            raise ValueError(f"branch.stems follows the steps one by one, and asynchrony is {self.asynchrony}")
        if stems and self.practice.first_look:
            raise ValueError("branch.stems plays groups its own way, and so does practice.first_look: set one to 0")
        return self

    @model_validator(mode="after")
    def _credit(self) -> RlConfig:
        if self.credit != "outcome" and self.asynchrony != "synchronous":
            raise ValueError(f"credit={self.credit} follows the steps one by one, and asynchrony is {self.asynchrony}")
        return self

    @model_validator(mode="after")
    def _practice(self) -> RlConfig:
        if self.practice.active and self.asynchrony != "synchronous":
            own = self.practice
            key, off = ("adaptive", "false") if own.adaptive else ("repeat" if own.repeat else "first_look", "0")
            raise ValueError(
                f"practice.{key} follows the steps one by one, and asynchrony is {self.asynchrony}: set one of them "
                f"back (practice.{key}={off}, or asynchrony=synchronous)"
            )
        if self.practice.repeat and self.practice.first_look:
            raise ValueError(
                "practice.repeat plays whole groups again, and practice.first_look does not: set one of them to 0"
            )
        if self.practice.first_look >= self.group_size:
            raise ValueError(
                f"practice.first_look ({self.practice.first_look}) must be smaller than group_size ({self.group_size})"
            )
        return self


GRPO: Mapping[str, Any] = {
    "ratio": "token",
    "advantage": "group_std",
    "loss_aggregation": "token_mean",
    "clip_low": 0.2,
    "clip_high": 0.2,
    "dynamic_sampling": False,
}

METHODS: Mapping[str, Mapping[str, Any]] = {
    "grpo": GRPO,  # arXiv 2402.03300
    "dr_grpo": {**GRPO, "advantage": "group_mean", "loss_aggregation": "dr_grpo"},  # arXiv 2503.20783
    "dapo": {**GRPO, "clip_high": 0.28, "dynamic_sampling": True, "kl_coef": 0.0},  # arXiv 2503.14476
    "gspo": {  # arXiv 2507.18071
        **GRPO, "ratio": "sequence", "loss_aggregation": "sequence_mean", "clip_low": 3e-4, "clip_high": 4e-4,
    },
    "rloo": {**GRPO, "advantage": "leave_one_out"},  # arXiv 2402.14740
}  # fmt: skip
"""Method to keys of the ``rl`` section."""


def with_method(values: dict[str, Any]) -> dict[str, Any]:
    """One layer of a configuration (a file, or all overrides), with what its ``rl.method`` stands for written out. Keys
    that the layer names itself win; an unknown method is left to the checks of the section."""
    rl = values.get("rl")
    name = rl.get("method") if isinstance(rl, dict) else None
    method = METHODS.get(name) if isinstance(name, str) else None
    return values if rl is None or method is None else {**values, "rl": {**method, **rl}}
