"""The section of a run configuration about Weights & Biases."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from muarl.config.section import Section


class WandbConfig(Section):
    """Weights & Biases, beside metrics.jsonl and TensorBoard, which every training run writes. `wandb: true` switches
    it on with these defaults, and so does any key of this section. A resumed run continues its own run there."""

    enabled: bool = Field(False, description="Also log to Weights & Biases (`pip install 'muarl[wandb]'`).")
    project: str = Field("muarl", min_length=1, description="Project that the run belongs to.")
    entity: str | None = Field(None, description="Team or user that owns the project; null: your default.")
    group: str | None = Field(None, description="Group of runs, such as the seeds of one experiment; null: none.")
    tags: tuple[str, ...] = Field((), description="Tags of the run.")
    mode: Literal["online", "offline", "disabled"] | None = Field(
        None,
        description="`offline` keeps everything in the run folder until `wandb sync`; null: as the environment's "
        "WANDB_MODE says.",
    )

    @model_validator(mode="before")
    @classmethod
    def _switched_on_by_any_key(cls, given: Any) -> Any:
        if isinstance(given, bool):
            return {"enabled": given}
        if isinstance(given, dict) and given and "enabled" not in given:
            return {**given, "enabled": True}
        return given
