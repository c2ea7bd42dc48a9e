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
from typing import Any, cast

import torch
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from muarl.basics.errors import CheckpointError
from muarl.learning.checkpoint_files import (
    MANIFEST,
    WeightReader,
    WeightWriter,
    read_json,
    stored_shapes,
    verify,
    whole_folder,
)
from muarl.learning.checkpoint_folders import STEP, check_kind, list_checkpoints
from muarl.learning.release import CARD, ModelNotes, write_release
from muarl.learning.state_files import StateReader, TrainerState, write_tensors, write_values
from muarl.learning.stored_tensors import StoredTensors
from muarl.models.configs import empty_model, model_class, model_config, quiet_transformers
from muarl.models.support import support_of
from muarl.models.weights import as_stored, family_of, stored_weights

READ_BESIDES = (
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json",
    "adapter_config.json",
)  # fmt: skip


@dataclass(slots=True)
class Policy:
    """A model with its tokenizer, and the folder that holds the same weights: first the one they came from, then the
    checkpoint of what was trained last."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    path: Path

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter by the name that checkpoints have, tied ones once; read from the folder if the model has no
        memory for them."""
        own = as_stored(self.model.named_parameters(), family_of(self.model))
        if self.model.device.type != "meta":
            yield from ((name, parameter.detach()) for name, parameter in own)
            return
        stored = WeightReader(self.path)
        if support_of(self.model.config).path == "own":
            yield from ((name, stored.read(name)) for name, _ in own)
            return
        names = {name for name, _ in self.model.named_parameters()}
        tensors = StoredTensors(self.model.config, self.path, stored.shapes)
        for source in tensors.sources:
            made = tensors.convert(self.path, source, stored.read)
            matching = ((name, value) for name, value in made.items() if name in names)
            yield from as_stored(matching, family_of(self.model))


def save_policy(
    path: Path,
    model: PreTrainedModel,
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
    model: PreTrainedModel,
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
    stored = stored_weights(model, weights or model.named_parameters())
    with whole_folder(path) as folder:
        write_config(folder, model.config, kind)
        writer = WeightWriter(folder, {n: t.shape for n, t in stored.items()}, kind)
        for name, tensor in stored.items():
            writer.add(name, tensor)
        writer.finish()
        write_release(folder, tokenizer, notes)
        if trainer is not None:
            write_tensors(folder, trainer.tensors)
            write_values(folder, trainer.values)
        yield folder


def write_config(folder: Path, config: PretrainedConfig, dtype: torch.dtype) -> None:
    """Write ``config.json`` for weights of this type."""
    written = model_config(config.to_dict())
    written.architectures = [model_class(config).__name__]
    written.dtype = dtype
    written.save_pretrained(folder)


def load_policy(
    path: Path,
    *,
    dtype: torch.dtype | None = torch.float32,
    device: torch.device | str = "cpu",
    weights: bool = True,
    tokenizer: PreTrainedTokenizerFast | None = None,
) -> Policy:
    """Read a checkpoint folder. ``dtype`` None keeps the stored type. ``weights`` False leaves the model on the
    device "meta", without memory: enough where others read the folder themselves. ``tokenizer`` is the folder's, where
    it has been read already.

    Everything is checked before any weight is read, the weights' sums included; CheckpointError names the file, the
    field and the remedy.
    """
    path = Path(path)
    config: Any = check_policy(path)
    check_sums(path, state=False, contents=weights)
    tokenizer = tokenizer or load_tokenizer(path)
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if largest >= config.vocab_size:
        raise CheckpointError(
            f"{path / 'tokenizer.json'}: has token ids up to {largest}, but config.json says vocab_size="
            f"{config.vocab_size}: use the tokenizer that this model was trained with"
        )
    if not weights:
        return Policy(empty_model(config), tokenizer, path)
    model = _read_model(path, config, dtype)
    model.to(torch.device(device))  # type: ignore[arg-type]
    return Policy(model, tokenizer, path)


def _read_model(path: Path, config: PretrainedConfig, dtype: torch.dtype | None) -> PreTrainedModel:
    """The model with the folder's weights. CheckpointError if some of its tensors are not there."""
    kind: Any = model_class(config)
    with quiet_transformers():
        model, report = kind.from_pretrained(
            path, config=config, dtype=dtype or "auto", local_files_only=True, output_loading_info=True
        )
    lacking = [*report["missing_keys"], *(str(entry[0]) for entry in report["mismatched_keys"])]
    if lacking:
        raise CheckpointError(
            f"{path}: the weights lack {sorted(lacking)[0]!r} ({len(lacking)} tensors in all), or it has another shape "
            "than config.json says: the checkpoint is incomplete, make or copy it again"
        )
    return cast(PreTrainedModel, model)


def check_policy(path: Path) -> PretrainedConfig:
    """Check a checkpoint folder without reading its weights: files, architecture, names and shapes of all tensors.
    Returns its config. CheckpointError names the first thing wrong. (The tensors of models that transformers computes
    are compared by it, as it reads them.)"""
    path = Path(path)
    if not path.is_dir():
        raise CheckpointError(f"{path}: no such checkpoint folder: give the path of a folder with config.json")
    support = check_kind(path)
    fields = read_json(path / "config.json")
    shapes = dict(stored_shapes(path))
    _check_depth(path, fields, shapes)
    try:
        config = model_config(fields)
        model = empty_model(config)
    except CheckpointError as problem:
        raise CheckpointError(f"{path / 'config.json'}: {problem}") from None
    except Exception as problem:  # whatever a malformed field makes transformers raise
        kind = fields.get("model_type")
        raise CheckpointError(f"{path / 'config.json'}: not a valid {kind} configuration: {problem}") from problem
    _check_architecture(path, fields, model)
    if support is not None and support.path == "own":
        _check_tensors(path, model, shapes)
    if not (path / "tokenizer.json").is_file():
        raise CheckpointError(f"{path / 'tokenizer.json'}: missing: copy the model's tokenizer files into the folder")
    for name in READ_BESIDES:
        if (path / name).exists():
            read_json(path / name)  # transformers reads them too, without bounds
    return config


def _check_architecture(path: Path, fields: Mapping[str, Any], model: PreTrainedModel) -> None:
    """CheckpointError if the weights are of another class than one that predicts tokens."""
    named, needed = fields.get("architectures") or [], type(model).__name__
    whole = fields.get("model_type") != getattr(model.config, "model_type", None)  # of which only the text is computed
    if named and needed not in named and not whole:
        kind = fields.get("model_type")
        raise CheckpointError(
            f"{path / 'config.json'}: architectures is {named}, but {needed} is needed for model_type {kind!r}: "
            "choose a causal language model, and its own config.json"
        )


def _check_tensors(path: Path, model: PreTrainedModel, stored: dict[str, tuple[Path, tuple[int, ...]]]) -> None:
    """CheckpointError if a folder's tensors are not those of the model, by name and shape."""
    for name, parameter in as_stored(model.named_parameters(), family_of(model)):
        if name not in stored:
            raise CheckpointError(
                f"{path}: the weights lack {name!r}: the checkpoint is incomplete, make or copy it again"
            )
        file, shape = stored.pop(name)
        if shape != tuple(parameter.shape):
            raise CheckpointError(
                f"{file}: {name!r} has shape {shape}, but config.json asks for {tuple(parameter.shape)}: "
                "config.json and weights are not of one model"
            )
    stored.pop("lm_head.weight", None)  # some writers store the tied matrix twice
    if stored:
        name, (file, _) = next(iter(stored.items()))
        raise CheckpointError(f"{file}: {name!r} is no part of the model that config.json describes")


def _check_depth(path: Path, fields: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """CheckpointError if config.json asks for more layers than there are weights of: a model of a billion layers would
    take all memory, even without weights."""
    asked = fields.get("num_hidden_layers")
    if not isinstance(asked, int):
        return
    layers = {name.split(".")[2] for name in stored if name.startswith("model.layers.")}
    if asked > (len(layers) or len(stored)):
        lacking = next(n for n in range(len(layers) + 1) if str(n) not in layers)
        raise CheckpointError(
            f"{path}: the weights lack 'model.layers.{lacking}.' of the {asked:,} layers that config.json asks for: "
            "the checkpoint is incomplete, make or copy it again"
        )


def check_whole(path: Path) -> None:
    """Check that training can continue from a checkpoint: everything is there, and is what was written. CheckpointError
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
        with quiet_transformers():
            return PreTrainedTokenizerFast.from_pretrained(str(path), local_files_only=True)
    except Exception as problem:  # tokenizers raises bare Exception
        raise CheckpointError(f"{path / 'tokenizer.json'}: cannot be read: {problem}") from problem
