"""The section of a run configuration about ``muarl reproduce``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from muarl.config.section import Count, Positive, Section

READ = (
    "retail-generated", "airline-generated", "telecom-generated", "bfcl-generated", "acebench-generated",
    "food-delivery-generated", "hotel-generated", "bank-generated", "insurance-generated",
)  # fmt: skip


class ReproduceConfig(Section):
    """The paper's claims with small models (`muarl reproduce`): which environments each stage sees. The stages' sizes
    are in `base`, `sft`, `rl` and `eval`, whose `tasks` are those of each environment."""

    pretrained: bool = Field(
        False,
        description="The base is `model.checkpoint` as it is, a model that was trained elsewhere such as `smollm2`: no "
        "base is made and `read` is not used. Cold start and RL may then be in the same environments.",
    )
    arms: tuple[Literal["cold", "rl", "both"], ...] = Field(
        ("cold", "rl", "both"), description="Which arms are trained; the base is always there, and `both` needs `cold`."
    )
    further_cold_start: Count = Field(
        0,
        description="Steps of a further cold start on new demonstrations, from where `cold` ended: an arm `more` that "
        "shows what the tokens of RL achieve as demonstrations; 0: no such arm.",
    )
    read: tuple[str, ...] = Field(READ, description="The base reads conversations of wandering agents in these.")
    cold_start: tuple[str, ...] = Field(
        ("food-delivery-generated", "hotel-generated", "bank-generated", "insurance-generated"),
        description="The cold start's demonstrations are of these.",
    )
    rl: tuple[str, ...] = Field(
        ("retail-generated", "airline-generated"), description="Reinforcement learning plays these."
    )
    intents: tuple[str, ...] = Field(
        (),
        description="In the environments of `rl` only tasks with these intents are played, in RL and in evaluations, "
        "such as `cancel`, which all of them must have; empty: all tasks.",
    )
    unseen: tuple[str, ...] = Field(
        ("telecom-generated", "bfcl-generated", "acebench-generated"),
        description="Evaluated besides those of `rl`: no stage but the base has seen them.",
    )
    kept_out: str | None = Field(
        "clinic-generated",
        description="Evaluated, too: not even the base has read it. The tokenizer has its words as tokens, which are "
        "never read. null: none.",
    )
    unseen_tasks: Positive | None = Field(
        None, description="Tasks of each evaluated environment that RL does not play; null: `eval.tasks` of each."
    )
    user_model: str | None = Field(
        None, description="A user model (`muarl sft-user`): all arms are evaluated with it as the user, too."
    )
    user_model_in: tuple[str, ...] = Field(
        ("retail-generated",), description="The environments that the user model has learnt to be a user of."
    )
    user_traits: tuple[Literal["typical", "hard"], ...] = Field(
        (),
        description="All arms are evaluated in the environments of `rl` with users who are as difficult as this, too.",
    )
    user_tasks: Positive | None = Field(
        None, description="Tasks of each environment with `user_model` and `user_traits`; null: `eval.tasks`."
    )
    materials: Positive = Field(
        80, description="Tasks of each environment from which the wandering agents' calls and sentences are drawn."
    )

    @model_validator(mode="after")
    def _apart(self) -> ReproduceConfig:
        if not (self.read or self.pretrained) or not self.cold_start or not self.rl:
            raise ValueError("read, cold_start and rl must each name an environment")
        trained, evaluated = {*self.cold_start, *self.rl}, {*self.unseen, self.kept_out}
        if (both := sorted(set(self.cold_start) & set(self.rl))) and not self.pretrained:
            raise ValueError(f"{both[0]} is in cold_start and in rl: the paper's cold start knows none of RL's worlds")
        if known := sorted(trained & evaluated):
            raise ValueError(f"{known[0]} is trained on, so it cannot be in unseen, nor kept_out")
        if self.kept_out in (*self.unseen, *(() if self.pretrained else self.read)):
            raise ValueError(f"{self.kept_out} is kept_out, so it cannot be in read or unseen")
        if (missing := sorted(trained - {*self.read})) and not self.pretrained:
            raise ValueError(f"{missing[0]} is not in read, so that the model could not write its words")
        if "cold" not in self.arms and ("both" in self.arms or self.further_cold_start):
            later = "the arm both" if "both" in self.arms else "further_cold_start"
            raise ValueError(f"{later} begins where the arm cold ends: add cold to arms")
        return self

    @property
    def evaluated(self) -> tuple[str, ...]:
        """All environments that every arm is evaluated in."""
        return (*self.rl, *self.unseen, *(() if self.kept_out is None else (self.kept_out,)))
