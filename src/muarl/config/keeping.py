"""The sections of a run configuration about what a run keeps and logs, and what it may spend."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from muarl.config.section import Count, Positive, Section


def switched_on_by_any_key(value: Any) -> Any:
    """A section with the key ``enabled``, which `true`, `false` or any other of its keys switches on or off."""
    if isinstance(value, bool):
        return {"enabled": value}
    if isinstance(value, dict) and value and "enabled" not in value:
        return {**value, "enabled": True}
    return value


class CheckpointsConfig(Section):
    """Which checkpoints of a training run are kept. Always kept: the newest, those that the configuration or a symbolic
    link beside them points to, and those with a file `KEEP` in their folder."""

    keep_last: Positive | None = Field(
        3,
        description="Newest checkpoints to keep; null: all. Keep two or more, in case the newest is damaged.",
    )
    keep_best: Count = Field(
        1,
        description="Checkpoints to keep for their success without violation in validation (let `rl.eval_every` "
        "be a multiple of `rl.checkpoint_every`).",
    )
    keep_every: Count = Field(0, description="Also keep those whose step is a multiple of this; 0: off.")


class BudgetConfig(Section):
    """What `sft`, `train` and `quickstart` may spend at endpoints in all. Once it is spent, running episodes end, a
    checkpoint is written, and the run stops. It can be resumed with a larger budget."""

    max_cost: Annotated[float, Field(gt=0)] | None = Field(
        None, description="US dollars. Needs the endpoints' prices; null: no limit."
    )
    max_tokens: Positive | None = Field(None, description="Tokens, prompts and completions together; null: no limit.")


class WandbConfig(Section):
    """Weights & Biases, beside metrics.jsonl and TensorBoard. `wandb: true`, or any key of this section, switches it
    on. A resumed run continues its own run there."""

    enabled: bool = Field(False, description="Also log to Weights & Biases (`pip install 'muarl[wandb]'`).")
    project: str = Field("muarl", min_length=1, description="Project that the run belongs to.")
    entity: str | None = Field(None, description="Team or user; null: your default.")
    group: str | None = Field(None, description="Group of runs, such as an experiment's seeds.")
    tags: tuple[str, ...] = Field((), description="Tags of the run.")
    mode: Literal["online", "offline", "disabled"] | None = Field(
        None,
        description="`offline` keeps everything in the run folder until `wandb sync`; null: as WANDB_MODE says.",
    )

    @model_validator(mode="before")
    @classmethod
    def _switched_on(cls, value: Any) -> Any:
        return switched_on_by_any_key(value)


class TrackioConfig(Section):
    """Trackio, beside metrics.jsonl and TensorBoard, which every training run writes. `trackio: true` switches it on
    with these defaults, and so does any key of this section. A resumed run continues its own run there."""

    enabled: bool = Field(False, description="Also log to Trackio (`pip install 'muarl[trackio]'`).")
    project: str = Field("muarl", min_length=1, description="Project that the run belongs to.")
    group: str | None = Field(None, description="Group of runs, such as the seeds of one experiment; null: none.")
    space: str | None = Field(
        None,
        description="Hugging Face Space, as `USER/NAME`, that the figures are sent to; null: they stay on this "
        "machine, unless the environment's TRACKIO_SPACE_ID or TRACKIO_SERVER_URL names another place.",
    )

    @model_validator(mode="before")
    @classmethod
    def _switched_on(cls, value: Any) -> Any:
        return switched_on_by_any_key(value)
