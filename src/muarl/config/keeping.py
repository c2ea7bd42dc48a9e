"""The sections of a run configuration about what a run keeps, and what it may spend."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from muarl.config.section import Count, Positive, Section


class CheckpointsConfig(Section):
    """Which checkpoints of a training run stay. Each stage prunes its own, and the newest always stays; so does one
    that the run's configuration or a link beside it points to, and one with a file named `KEEP` in its folder."""

    keep_last: Positive | None = Field(
        3,
        description="So many of the newest stay; null: all. Two or more, so that there is one to go back to should the "
        "newest be damaged.",
    )
    keep_best: Count = Field(
        1,
        description="So many stay besides for their success in validation, where one was held at their step (let "
        "`rl.eval_every` be a multiple of `rl.checkpoint_every`).",
    )
    keep_every: Count = Field(0, description="Those whose step is a multiple of this stay, too; 0: none for that.")


class BudgetConfig(Section):
    """What a training run (`sft`, `train`, `quickstart`) may spend at endpoints: on users and judges, in
    demonstrations, training and evaluations together, resumed or not. Once it is spent no episode begins; those under
    way end, a checkpoint is written, and the run stops. With a larger budget it goes on from there."""

    max_cost: Annotated[float, Field(gt=0)] | None = Field(
        None, description="US dollars. Needs the endpoints' prices; null: no bound."
    )
    max_tokens: Positive | None = Field(
        None, description="The same in tokens, prompts and completions together; null: no bound."
    )
