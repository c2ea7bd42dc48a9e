"""What a run's model is, before anything of it is loaded: its folder and sizes, and what it allows. Light: needs no
torch."""

from __future__ import annotations

from pathlib import Path

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.basics.untrusted import read_json_object
from muarl.config.scale import EngineConfig
from muarl.config.section import UserConfig
from muarl.learning.checkpoint_folders import check_kind
from muarl.planning.models import ModelShape, published, shape_from_config


def local_folder(spec: str) -> Path | None:
    """The folder of a checkpoint on this machine, None if it is only a published model's name. CheckpointError if it is
    neither."""
    path = Path(spec).expanduser()
    if (path / "config.json").is_file():
        return path
    if not path.exists() and published(spec) is not None:
        return None
    return checkpoint_folder(spec)


def model_shape(spec: str) -> ModelShape:
    """The sizes of a checkpoint: of its config.json, or of the published model of that name."""
    folder = local_folder(spec)
    shape = published(spec) if folder is None else shape_from_config(folder)
    if shape is None:
        raise CheckpointError(f"{spec}: neither a checkpoint on this machine nor the name of a published model")
    return shape


def user_model_shape(user: UserConfig) -> ModelShape | None:
    """The sizes of the model that plays the user in this process; None if none does. CheckpointError if it is not on
    this machine."""
    return model_shape(user.checkpoint) if user.kind == "sampled" and user.checkpoint is not None else None


def check_present(spec: str) -> None:
    """CheckpointError, with the command that gets it, if a checkpoint's name is a published model's that is not on this
    machine."""
    if local_folder(spec) is None:
        raise CheckpointError(
            f"{spec}: is not on this machine. Fetch it first, such as by `hf download {spec} --local-dir {spec}`, or "
            "set model.checkpoint to its folder"
        )


def check_supported(spec: str, engine: EngineConfig, *, sampling: bool) -> None:
    """ConfigError, with the setting to change, if the model cannot be sampled from in the way that is asked, where it
    is to sample. CheckpointError if it cannot be used at all."""
    folder = local_folder(spec)
    if folder is None:
        return
    support = check_kind(folder)
    if support is None:
        return
    named = f"model_type {support.family!r} of {folder}"
    if sampling and engine.kind == "torch" and not support.sampling:
        raise ConfigError(
            f"engine.kind is torch, and {named} is computed by transformers ({support.reason}), whose state muarl's "
            "engine cannot keep: set engine.kind=vllm"
        )
    if sampling and engine.kind == "vllm" and not engine.urls and _reads_more_than_text(folder):
        raise ConfigError(
            f"engine.kind is vllm, which would start the whole of {named}, while muarl computes the part of it that "
            "reads text: set engine.kind=torch, or begin with a checkpoint that `muarl sft` has made of it, which is "
            "that part alone"
        )
    compiled = engine.kind == "torch" and engine.compile not in ("auto", "none")
    if sampling and compiled and not support.fixed_steps:
        raise ConfigError(
            f"engine.compile is {engine.compile}, and decode steps of {named} cannot be recorded "
            f"({support.unrecorded}): set engine.compile=none"
        )


def _reads_more_than_text(folder: Path) -> bool:
    """Whether a checkpoint's model has a part for text beside others, such as for images."""
    return isinstance(read_json_object(folder / "config.json").get("text_config"), dict)
