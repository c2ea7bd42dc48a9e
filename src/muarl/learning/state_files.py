"""The trainer's state as files of a checkpoint: optimiser, counts and random states, whole or in parts.

``trainer.json`` holds what JSON can hold. Tensors are in ``trainer.safetensors``, or in one file for each process that
took part, ``trainer-00002-of-00008.safetensors``: there a tensor may be some rows of the whole, and the file's header
says which. A reader asks for any rows of any tensor, so a state made by eight processes serves one, or three.

A fingerprint (``tensor_sum``, ``combined_fingerprint``) is a number for a model's weights that can be computed from
their parts: by it is found out whether a run is resumed with the reference model (or the base under an adapter) that it
began with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from muarl.basics.errors import CheckpointError
from muarl.learning.checkpoint_files import read_json, save_tensors


def parse_random(state: Any) -> tuple[Any, ...]:
    """The state of a ``random.Random`` (or of the module ``random``), from what JSON made of it. TypeError or
    ValueError if it is malformed."""
    version, numbers, gauss = state
    return (int(version), tuple(int(n) for n in numbers), gauss)


def global_generators(device: torch.device) -> dict[str, Tensor]:
    """The states of PyTorch's own generators, which everything in the process draws from."""
    tensors = {"random/torch": torch.get_rng_state()}
    if device.type == "cuda":
        tensors["random/cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def restore_generators(tensors: Mapping[str, Tensor], device: torch.device) -> None:
    """Undo ``global_generators``; what is missing stays as it is."""
    if "random/torch" in tensors:
        torch.set_rng_state(tensors["random/torch"])
    if device.type == "cuda" and "random/cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random/cuda"], device)


CHUNK = 1 << 22


def tensor_sum(name: str, part: Tensor, first: int = 0) -> int:
    """A checksum of a tensor's elements from number ``first`` on, in bfloat16; the sums of a whole's parts add up
    modulo 2**64. So it does not depend on how the tensor is sharded or how exactly it is held."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])
    flat = part.detach().reshape(-1)
    total = 0
    for start in range(0, flat.numel(), CHUNK):
        bits = flat[start : start + CHUNK].to(torch.bfloat16).view(torch.int16).to(torch.int64)
        place = torch.arange(start, start + bits.numel(), device=bits.device) + (first + seed)
        mixed = (place * -7046029254386353131) ^ (place >> 7)  # 64-bit golden ratio; integers wrap
        total += int(((bits & 0xFFFF) * (mixed | 1)).sum())
    return total % (1 << 64)


def combined_fingerprint(sums: Mapping[str, int]) -> str:
    """One hexadecimal number for all tensors' sums."""
    text = "\n".join(f"{name} {sums[name] % (1 << 64)}" for name in sorted(sums))
    return hashlib.sha256(text.encode()).hexdigest()


FORMAT = 2
VALUES = "trainer.json"
TENSORS = "trainer.safetensors"
ROWS = "rows"
OPTIMIZER = "optimizer/"
"""What the names of the optimiser's tensors begin with."""


@dataclass(frozen=True, slots=True)
class TrainerState:
    """What resuming needs beyond the weights."""

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors by name."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What JSON can hold."""


@dataclass(frozen=True, slots=True)
class _Part:
    file: Path
    start: int
    shape: tuple[int, ...]


def write_values(folder: Path, values: Mapping[str, Any]) -> None:
    """Write ``trainer.json``."""
    text = json.dumps({"format": FORMAT, **values}, indent=1, allow_nan=False)
    (folder / VALUES).write_text(text, encoding="utf-8")


def write_tensors(
    folder: Path,
    tensors: Mapping[str, Tensor],
    *,
    rank: int = 0,
    world: int = 1,
    rows: Mapping[str, tuple[int, int]] | None = None,
) -> str:
    """Write one process's tensors; returns the file's name. ``rows``: for those that are parts, the first row and the
    rows of the whole."""
    name = TENSORS if world == 1 else f"trainer-{rank + 1:05d}-of-{world:05d}.safetensors"
    save_tensors(folder / name, tensors, {ROWS: json.dumps(rows or {})})
    return name


@dataclass(frozen=True, slots=True)
class LearnerProgress:
    """What ``trainer.json`` says of a learner: versions and updates so far, the order of minibatches to come, the state
    of Python's generator, the fingerprint of what the run began with, and what the recipe keeps."""

    version: int
    updates: int
    order: tuple[Any, ...]
    python: tuple[Any, ...]
    start: str | None
    extra: dict[str, Any]

    def values(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "updates": self.updates,
            "reference": self.start,
            "random": {"learner": list(self.order), "python": list(self.python)},
            "extra": self.extra,
        }

    @classmethod
    def parse(cls, path: Path, values: Mapping[str, Any], start: str | None) -> LearnerProgress:
        """From ``values()`` in the checkpoint ``path``. CheckpointError if they are malformed, or if the run began with
        something else than ``start`` (None: not checked)."""
        try:
            states = values["random"]
            progress = cls(
                int(values["version"]),
                int(values["updates"]),
                parse_random(states["learner"]),
                parse_random(states["python"]),
                values["reference"],
                dict(values["extra"]),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise CheckpointError(f"{path / VALUES}: malformed: {problem!r}") from problem
        if start is not None and progress.start != start:
            raise CheckpointError(
                f"{path / VALUES}: reference: the run's reference model was another one: resume from the same start "
                "checkpoint that the run began with"
            )
        return progress


class StateReader:
    """Reads a checkpoint's trainer state. CheckpointError if there is none, it is of another format, or incomplete."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        if not (self.path / VALUES).is_file():
            raise CheckpointError(
                f"{self.path}: has no {VALUES}, so training cannot be resumed from it: start a new run from its "
                "weights instead"
            )
        values = read_json(self.path / VALUES)
        if values.pop("format", None) != FORMAT:
            raise CheckpointError(f"{self.path / VALUES}: format is not {FORMAT}: made by another muarl version")
        self.values: dict[str, Any] = values
        self._parts: dict[str, list[_Part]] = {}
        self._rows: dict[str, int] = {}
        for file in self._files():
            self._read_header(file)
        for name, parts in self._parts.items():
            parts.sort(key=lambda p: p.start)
            if name in self._rows and not self._complete(parts, self._rows[name]):
                raise CheckpointError(f"{self.path}: the parts of {name!r} do not make a whole: copy the folder again")

    @property
    def names(self) -> Iterable[str]:
        return self._parts.keys()

    def shape(self, name: str) -> torch.Size:
        """Of the whole tensor."""
        first = self._parts[name][0].shape
        return torch.Size((self._rows[name], *first[1:]) if name in self._rows else first)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Tensor:
        """Rows ``start`` to ``stop`` of a tensor, from whichever files hold them; a scalar is always whole."""
        shape = self.shape(name)
        if not shape:
            return self._slice(self._parts[name][0].file, name, None)
        stop = shape[0] if stop is None else stop
        pieces = []
        for part in self._parts[name]:
            low, high = max(start, part.start), min(stop, part.start + part.shape[0])
            if low < high:
                pieces.append(self._slice(part.file, name, (low - part.start, high - part.start)))
        if not pieces:
            return self._slice(self._parts[name][0].file, name, (0, 0))
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces)

    def _files(self) -> list[Path]:
        if (self.path / TENSORS).is_file():
            return [self.path / TENSORS]
        files = sorted(self.path.glob("trainer-*-of-*.safetensors"))
        expected = [self.path / f"trainer-{n + 1:05d}-of-{len(files):05d}.safetensors" for n in range(len(files))]
        if not files or files != expected:
            raise CheckpointError(
                f"{self.path}: {TENSORS} or one of the parts trainer-*-of-*.safetensors is missing, so training cannot "
                "be resumed from it: copy the folder again, or start a new run from its weights"
            )
        return files

    def _read_header(self, file: Path) -> None:
        try:
            with safe_open(file, framework="pt") as stored:
                rows = json.loads((stored.metadata() or {}).get(ROWS, "{}"))
                for name in stored.keys():  # noqa: SIM118 (not a dict)
                    shape = tuple(stored.get_slice(name).get_shape())
                    start, whole = (int(n) for n in rows.get(name, (0, -1)))
                    if whole >= 0:
                        self._rows[name] = whole
                    elif name in self._parts:
                        continue  # the same in every process
                    self._parts.setdefault(name, []).append(_Part(file, start, shape))
        except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as problem:
            raise CheckpointError(f"{file}: cannot be read: {problem}") from problem

    @staticmethod
    def _complete(parts: list[_Part], rows: int) -> bool:
        at = 0
        for part in parts:
            if not part.shape or (part.start != at and part.shape[0]):
                return False
            at += part.shape[0]
        return at == rows

    @staticmethod
    def _slice(file: Path, name: str, rows: tuple[int, int] | None) -> Tensor:
        try:
            with safe_open(file, framework="pt") as stored:
                tensor: Tensor = stored.get_tensor(name) if rows is None else stored.get_slice(name)[rows[0] : rows[1]]
                return tensor
        except (SafetensorError, OSError) as problem:
            raise CheckpointError(f"{file}: cannot be read: {problem}") from problem
