"""What a configuration asks of its model, against what that model allows. Light: nothing is loaded."""

from __future__ import annotations

from pathlib import Path

from muarl.backends.memory_estimate import local_folder
from muarl.basics.errors import ConfigError
from muarl.basics.untrusted import read_json_object
from muarl.config import RunConfig
from muarl.learning.checkpoint_kinds import check_kind


def check_supported(config: RunConfig, *, sampling: bool) -> None:
    """ConfigError, with the setting to change, if the model cannot be sampled from in the way that is asked, where it
    is to sample. CheckpointError if it cannot be used at all."""
    folder = local_folder(config.model.checkpoint)
    if folder is None:
        return
    support = check_kind(folder)
    if support is None:
        return
    named = f"model_type {support.family!r} of {folder}"
    if sampling and config.engine.kind == "torch" and not support.sampling:
        raise ConfigError(
            f"engine.kind is torch, and {named} is computed by transformers ({support.reason}), whose state muarl's "
            "engine cannot keep: set engine.kind=vllm"
        )
    if sampling and config.engine.kind == "vllm" and not config.engine.urls and _reads_more_than_text(folder):
        raise ConfigError(
            f"engine.kind is vllm, which would start the whole of {named}, while muarl computes the part of it that "
            "reads text: set engine.kind=torch, or begin with a checkpoint that `muarl sft` has made of it, which is "
            "that part alone"
        )
    compiled = config.engine.kind == "torch" and config.engine.compile not in ("auto", "none")
    if sampling and compiled and not support.fixed_steps:
        raise ConfigError(
            f"engine.compile is {config.engine.compile}, and decode steps of {named} cannot be recorded "
            f"({support.unrecorded}): set engine.compile=none"
        )


def _reads_more_than_text(folder: Path) -> bool:
    """Whether a checkpoint's model has a part for text beside others, such as for images."""
    return isinstance(read_json_object(folder / "config.json").get("text_config"), dict)
