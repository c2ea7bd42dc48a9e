"""The tensors of a sharded model as checkpoints hold them: each process reads its own rows, and one writes what all
have gathered, a few tensors at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from transformers import PretrainedConfig

from muarl.basics.errors import CheckpointError
from muarl.learning import shards
from muarl.learning.checkpoint_files import WeightReader
from muarl.learning.checkpoints import check_policy
from muarl.learning.stored_tensors import StoredTensors, TensorSource
from muarl.models.weights import as_stored


class ShardedWeights(Protocol):
    """Between a model's tensors, by their names in it, and those of checkpoints."""

    @property
    def shapes(self) -> Mapping[str, torch.Size]:
        """Of all tensors of a checkpoint, in the order in which they are written."""
        ...

    def check(self, folder: Path) -> None:
        """CheckpointError if a checkpoint's tensors are not those of this model."""
        ...

    def read(self, folder: Path, held: Mapping[str, Tensor]) -> None:
        """Fill this process's rows of the model's tensors."""
        ...

    def groups(self) -> Iterator[tuple[str, ...]]:
        """The model's tensors, those together that ``stored`` needs at once."""
        ...

    def stored(self, group: tuple[str, ...], whole: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """A checkpoint's tensors made of a group's whole ones."""
        ...


class OwnWeights:
    """Of a model of the own path; see ``ShardedWeights``. ``shapes``: of its parameters."""

    def __init__(self, family: str, shapes: Mapping[str, torch.Size]) -> None:
        self._family, self._names = family, tuple(shapes)
        empty = ((name, torch.empty(shape, device="meta")) for name, shape in shapes.items())
        self.shapes = {name: tensor.shape for name, tensor in as_stored(empty, family)}

    def check(self, folder: Path) -> None:
        """See ``ShardedWeights``."""
        check_policy(folder)
        theirs = WeightReader(folder).shapes
        known = all(theirs.get(name) == tuple(shape) for name, shape in self.shapes.items())
        if not known or theirs.keys() - self.shapes.keys() - {"lm_head.weight"}:
            raise CheckpointError(f"{folder / 'config.json'}: describes another model than the one being trained")

    def read(self, folder: Path, held: Mapping[str, Tensor]) -> None:
        """See ``ShardedWeights``."""
        found = WeightReader(folder)
        for name in self._names:
            rows, mine = shards.rows_of(held[name]), [(name, shards.local(held[name]))]
            for part, value in as_stored(mine, self._family, rows.start):
                whole = part != name  # an expert of this process's own, and not rows of a tensor
                value.copy_(found.read(part) if whole else found.read(part, rows.start, rows.stop))

    def groups(self) -> Iterator[tuple[str, ...]]:
        """See ``ShardedWeights``."""
        return ((name,) for name in self._names)

    def stored(self, group: tuple[str, ...], whole: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """See ``ShardedWeights``."""
        return as_stored(((name, whole[name]) for name in group), self._family)


class ConvertedWeights:
    """Of a model that ``transformers`` computes; see ``ShardedWeights``. ``folder``: the checkpoint that training began
    with, whose names are kept. The tensors are its parameters and the buffers that checkpoints hold."""

    def __init__(self, config: PretrainedConfig, folder: Path) -> None:
        self._tensors = StoredTensors(config, folder, WeightReader(folder).shapes)
        self._sources: dict[tuple[str, ...], TensorSource] = {source.made: source for source in self._tensors.sources}
        self.shapes = self._tensors.shapes()

    def check(self, folder: Path) -> None:
        """See ``ShardedWeights``."""
        check_policy(folder)
        try:
            self._tensors.plan(folder, WeightReader(folder).shapes)
        except CheckpointError as problem:
            raise CheckpointError(
                f"{folder / 'config.json'}: describes another model than the one being trained, or one that is "
                f"incomplete ({problem})"
            ) from None

    def read(self, folder: Path, held: Mapping[str, Tensor]) -> None:
        """See ``ShardedWeights``."""
        found = WeightReader(folder)
        for source in self._tensors.plan(folder, found.shapes):
            if source.same:
                (stored,), (name,) = source.stored, source.made
                rows = shards.rows_of(held[name])
                shards.local(held[name]).copy_(found.read(stored, rows.start, rows.stop))
                continue
            for name, value in self._tensors.convert(folder, source, found.read).items():
                rows = shards.rows_of(held[name])
                shards.local(held[name]).copy_(value[rows.start : rows.stop])

    def groups(self) -> Iterator[tuple[str, ...]]:
        """See ``ShardedWeights``."""
        return iter(self._sources)

    def stored(self, group: tuple[str, ...], whole: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """See ``ShardedWeights``."""
        return iter(self._tensors.revert(self._sources[group], whole).items())
