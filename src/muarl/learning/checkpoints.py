"""Checkpoints: Hugging Face folders (safetensors, config.json, tokenizer files), with the trainer's state beside them.

A checkpoint is written into a temporary folder next to its place, with a manifest of its files' sums, and then renamed,
so that a folder with a checkpoint's name is always a whole one. What may befall it later is found when it is read.
Nothing is pickled: tensors go to safetensors, everything else to JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import logging as transformers_logging

from muarl.errors import CheckpointError
from muarl.learning.checkpoint_files import WeightReader, WeightWriter, read_json, stored_shapes, whole_folder
from muarl.learning.checkpoint_kinds import ARCHITECTURE, check_kind
from muarl.learning.checkpoint_paths import STEP
from muarl.learning.checkpoint_paths import checkpoint_path as checkpoint_path
from muarl.learning.checkpoint_paths import latest_checkpoint as latest_checkpoint
from muarl.learning.checkpoint_paths import list_checkpoints as list_checkpoints
from muarl.learning.manifest import MANIFEST, verify
from muarl.learning.release import CARD, ModelNotes, write_release
from muarl.learning.state_files import StateReader, TrainerState, write_tensors, write_values

READ_BESIDES = (
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json",
    "adapter_config.json",
)  # fmt: skip


@dataclass(slots=True)
class Policy:
    """A model with its tokenizer, and the folder that holds the same weights: first the one they came from, then the
    checkpoint of what was trained last."""

    model: Qwen3ForCausalLM
    tokenizer: PreTrainedTokenizerFast
    path: Path

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter by name, tied ones once; read from the folder if the model has no memory for them."""
        own = self.model.named_parameters()
        if self.model.device.type != "meta":
            yield from ((name, parameter.detach()) for name, parameter in own)
            return
        stored = WeightReader(self.path)
        for name, _ in own:
            yield name, stored.read(name)


def save_policy(
    path: Path,
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    trainer: TrainerState | None = None,
    *,
    dtype: torch.dtype | None = None,
    notes: ModelNotes | None = None,
) -> Path:
    """Write a checkpoint folder, whole or not at all, replacing one that is there.

    ``dtype``: stores the weights in this type (default: as they are; only then is resuming exact). ``notes``: for the
    model card, and what is written for other programs.
    """
    with saved_policy(path, model, tokenizer, trainer, dtype=dtype, notes=notes):
        return Path(path)


@contextmanager
def saved_policy(
    path: Path,
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    trainer: TrainerState | None = None,
    *,
    dtype: torch.dtype | None = None,
    weights: Iterable[tuple[str, Tensor]] | None = None,
    notes: ModelNotes | None = None,
) -> Iterator[Path]:
    """As ``save_policy``, with room to put more into the folder before it takes its place. ``weights``: what to store
    instead of the model's own parameters."""
    kind = dtype or next(model.parameters()).dtype
    found = dict(weights or model.named_parameters())
    with whole_folder(path) as folder:
        write_config(folder, model.config, kind)
        writer = WeightWriter(folder, {n: t.shape for n, t in found.items()}, kind)
        for name, tensor in found.items():
            writer.add(name, tensor)
        writer.finish()
        write_release(folder, tokenizer, notes)
        if trainer is not None:
            write_tensors(folder, trainer.tensors)
            write_values(folder, trainer.values)
        yield folder


def write_config(folder: Path, config: Qwen3Config, dtype: torch.dtype) -> None:
    """Write ``config.json`` for weights of this type."""
    written = Qwen3Config.from_dict(config.to_dict())
    written.architectures = [ARCHITECTURE]
    written.dtype = dtype
    written.save_pretrained(folder)


def load_policy(
    path: Path,
    *,
    dtype: torch.dtype | None = torch.float32,
    device: torch.device | str = "cpu",
    weights: bool = True,
) -> Policy:
    """Read a Qwen3 checkpoint folder. ``dtype`` None keeps the stored type. ``weights`` False leaves the model on the
    device "meta", without memory: enough where others read the folder themselves.

    Everything is checked before any weight is read, the weights' sums included; CheckpointError names the file, the
    field and the remedy.
    """
    path = Path(path)
    config = check_policy(path)
    check_sums(path, state=False, contents=weights)
    tokenizer = load_tokenizer(path)
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if largest >= config.vocab_size:
        raise CheckpointError(
            f"{path / 'tokenizer.json'}: has token ids up to {largest}, but config.json says vocab_size="
            f"{config.vocab_size}: use the tokenizer that this model was trained with"
        )
    if not weights:
        with torch.device("meta"):
            return Policy(Qwen3ForCausalLM(config), tokenizer, path)
    with _quiet_transformers():
        model = Qwen3ForCausalLM.from_pretrained(path, config=config, dtype=dtype or "auto", local_files_only=True)
    model.to(torch.device(device))  # type: ignore[arg-type]
    return Policy(model, tokenizer, path)


def check_policy(path: Path) -> Qwen3Config:
    """Check a checkpoint folder without reading its weights: files, architecture, names and shapes of all tensors.
    Returns its config. CheckpointError names the first thing wrong."""
    path = Path(path)
    if not path.is_dir():
        raise CheckpointError(f"{path}: no such checkpoint folder: give the path of a folder with config.json")
    check_kind(path)
    fields = read_json(path / "config.json")
    named = fields.get("architectures") or [ARCHITECTURE]
    if ARCHITECTURE not in named:
        raise CheckpointError(f"{path / 'config.json'}: architectures is {named}, but {ARCHITECTURE} is needed")
    found = dict(stored_shapes(path))
    _check_depth(path, fields, found)
    try:
        config = Qwen3Config.from_dict(fields)
        with torch.device("meta"):
            model = Qwen3ForCausalLM(config)
    except Exception as problem:  # whatever a malformed field makes transformers raise
        raise CheckpointError(f"{path / 'config.json'}: not a valid Qwen3 configuration: {problem}") from problem
    for name, parameter in model.named_parameters():
        if name not in found:
            raise CheckpointError(
                f"{path}: the weights lack {name!r}: the checkpoint is incomplete, make or copy it again"
            )
        file, shape = found.pop(name)
        if shape != tuple(parameter.shape):
            raise CheckpointError(
                f"{file}: {name!r} has shape {shape}, but config.json asks for {tuple(parameter.shape)}: "
                "config.json and weights are not of one model"
            )
    found.pop("lm_head.weight", None)  # some writers store the tied matrix twice
    if found:
        name, (file, _) = next(iter(found.items()))
        raise CheckpointError(f"{file}: {name!r} is no part of the model that config.json describes")
    if not (path / "tokenizer.json").is_file():
        raise CheckpointError(f"{path / 'tokenizer.json'}: missing: copy the model's tokenizer files into the folder")
    for name in READ_BESIDES:
        if (path / name).exists():
            read_json(path / name)  # transformers reads them too, without bounds
    return config


def _check_depth(path: Path, fields: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """CheckpointError if config.json asks for more layers than there are weights of: a model of a billion layers would
    take all memory, even without weights."""
    layers = {name.split(".")[2] for name in found if name.startswith("model.layers.")}
    asked = fields.get("num_hidden_layers")
    if isinstance(asked, int) and asked > len(layers):
        lacking = next(n for n in range(len(layers) + 1) if str(n) not in layers)
        raise CheckpointError(
            f"{path}: the weights lack 'model.layers.{lacking}.' of the {asked:,} layers that config.json asks for: "
            "the checkpoint is incomplete, make or copy it again"
        )


def load_trainer_state(path: Path) -> TrainerState:
    """The whole trainer's state of a checkpoint folder. CheckpointError if there is none, or of another format."""
    return StateReader(path).whole()


def check_whole(path: Path) -> None:
    """Check that training can go on from a checkpoint: everything is there, and is what was written. CheckpointError
    names the first thing wrong. All files are read, about a second for each GB."""
    check_policy(path)
    StateReader(path)
    check_sums(path)


def check_sums(path: Path, *, state: bool = True, contents: bool = True) -> None:
    """Check a checkpoint's files against its manifest, where it has one. Without ``state`` only what is read to use the
    model; without ``contents`` only sizes. CheckpointError names the file, and a checkpoint that may do instead."""

    def weights_only(name: str) -> bool:
        return name.startswith("model") and name.endswith((".safetensors", ".index.json"))

    def not_the_card(name: str) -> bool:
        return name != CARD  # people may edit it

    try:
        # Weights may have been laid out in other files since: that they are all there is checked by their names.
        verify(path, contents=contents, only=not_the_card if state else weights_only, missing_ok=not state)
    except CheckpointError as problem:
        raise CheckpointError(f"{problem}: {_instead(path)}") from None


def _instead(path: Path) -> str:
    """What can be done about a damaged checkpoint."""
    step = STEP.fullmatch(path.name)
    others = [p for n, p in list_checkpoints(path.parent) if step is not None and n < int(step[1])]
    for other in reversed(others):
        try:
            check_policy(other)
            verify(other, contents=False)
        except CheckpointError:
            continue
        return f"copy it again if there is a copy, or use the checkpoint before it, {other}"
    return f"copy it again if there is a copy, or remove {path / MANIFEST} if the file was changed on purpose"


def load_tokenizer(path: Path) -> PreTrainedTokenizerFast:
    """The folder's tokenizer. CheckpointError if it cannot be read."""
    try:
        with _quiet_transformers():
            return PreTrainedTokenizerFast.from_pretrained(str(path), local_files_only=True)
    except Exception as problem:  # tokenizers raises bare Exception
        raise CheckpointError(f"{path / 'tokenizer.json'}: cannot be read: {problem}") from problem


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    before = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(before)
        if bars:
            transformers_logging.enable_progress_bar()
