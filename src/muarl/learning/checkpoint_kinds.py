"""Which checkpoints can be used at all: dense Qwen3 with plain weights. Light: looked at before torch is imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.errors import CheckpointError, DataError
from muarl.untrusted import read_json_object

MODEL_TYPE = "qwen3"
ARCHITECTURE = "Qwen3ForCausalLM"
ADAPTER = "adapter_config.json"


def check_kind(path: Path) -> None:
    """CheckpointError, with the remedy, if a folder's config.json is no dense Qwen3's, its weights are quantised, or it
    holds an adapter alone. A folder without config.json is left to those who read it."""
    config = path / "config.json"
    if not config.is_file():
        if (path / ADAPTER).is_file():
            raise CheckpointError(_adapter_alone(path))
        return
    fields = _read(config)
    if fields.get("model_type") != MODEL_TYPE:
        raise CheckpointError(
            f"{config}: model_type is {_short(fields.get('model_type'))}, but only {MODEL_TYPE!r} ({ARCHITECTURE}) can "
            "be trained: choose a Qwen3 checkpoint"
        )
    quantised = fields.get("quantization_config")
    if quantised:
        how = quantised.get("quant_method") if isinstance(quantised, Mapping) else None
        raise CheckpointError(
            f"{config}: the weights are quantised ({_short(how or 'quantization_config')}), and muarl computes with "
            "plain ones: take the checkpoint that they were quantised from. To use this one as it is, serve it with "
            "vLLM and name it as endpoint:MODEL@URL"
        )


def _adapter_alone(path: Path) -> str:
    """What is missing beside an adapter, and how to get it."""
    try:
        base = _read(path / ADAPTER).get("base_model_name_or_path")
    except CheckpointError:
        base = None
    above = path.absolute().parent
    if (above / "config.json").is_file():
        return f"{path}: is a LoRA adapter alone. The model that it is merged into is the folder above, {above}"
    named = f" {_short(base)}" if base else ""
    return (
        f"{path}: is a LoRA adapter alone: config.json, weights and tokenizer of its base model are missing. Merge it "
        f"into its base{named} first (peft: PeftModel.from_pretrained(base, adapter).merge_and_unload(), then "
        "save_pretrained of model and tokenizer), and give that folder"
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json_object(path)
    except DataError as problem:
        raise CheckpointError(str(problem).rstrip(".")) from None


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else f"{shown[:80]}..."
