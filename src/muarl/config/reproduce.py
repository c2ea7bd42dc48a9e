"""The section of a run configuration about ``muarl reproduce``."""

from __future__ import annotations

from pydantic import Field, model_validator

from muarl.config.section import Positive, Section

READ = (
    "retail-generated", "airline-generated", "telecom-generated", "bfcl-generated", "acebench-generated",
    "food-delivery-generated", "hotel-generated", "bank-generated", "insurance-generated",
)  # fmt: skip


class ReproduceConfig(Section):
    """The paper's claims with small models (`muarl reproduce`): which environments each stage sees. The stages' sizes
    are in `base`, `sft`, `rl` and `eval`, whose `tasks` are those of each environment."""

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
    kept_out: str = Field(
        "clinic-generated",
        description="Evaluated, too: not even the base has read it. The tokenizer has its words as tokens, which are "
        "never read.",
    )
    user_model: str | None = Field(
        None, description="A user model (`muarl sft-user`): all arms are evaluated with it as the user, too."
    )
    user_model_in: tuple[str, ...] = Field(
        ("retail-generated",), description="The environments that the user model has learnt to be a user of."
    )
    materials: Positive = Field(
        80, description="Tasks of each environment from which the wandering agents' calls and sentences are drawn."
    )

    @model_validator(mode="after")
    def _apart(self) -> ReproduceConfig:
        trained = {*self.cold_start, *self.rl}
        if not self.read or not self.cold_start or not self.rl:
            raise ValueError("read, cold_start and rl must each name an environment")
        if both := sorted(set(self.cold_start) & set(self.rl)):
            raise ValueError(f"{both[0]} is in cold_start and in rl: the paper's cold start knows none of RL's worlds")
        if known := sorted(trained & {*self.unseen, self.kept_out}):
            raise ValueError(f"{known[0]} is trained on, so it cannot be in unseen, nor kept_out")
        if self.kept_out in (*self.read, *self.unseen):
            raise ValueError(f"{self.kept_out} is kept_out, so it cannot be in read or unseen")
        if missing := sorted(trained - {*self.read}):
            raise ValueError(f"{missing[0]} is not in read, so that the model could not write its words")
        return self

    @property
    def evaluated(self) -> tuple[str, ...]:
        """All environments that every arm is evaluated in."""
        return (*self.rl, *self.unseen, self.kept_out)
