"""Sizes of dense Qwen3 models, and how many parameters they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.errors import CheckpointError, DataError
from muarl.untrusted import read_json_object

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The matrices of a layer, by the last part of their names in a checkpoint."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a dense Qwen3. ``tied``: the output matrix is the embedding. ``positions``: its longest context."""

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocab: int
    tied: bool
    positions: int

    @property
    def query(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def key(self) -> int:
        """Width of all key (or value) heads together."""
        return self.kv_heads * self.head_dim

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """(outputs, inputs) of one layer's projections by name."""
        w, f, q, k = self.width, self.feed_forward, self.query, self.key
        sizes = ((q, w), (k, w), (k, w), (w, q), (f, w), (f, w), (w, f))
        return dict(zip(PROJECTIONS, sizes, strict=True))

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer: the projections, two norms, and the norms of query and key heads."""
        return sum(o * i for o, i in self.matrices.values()) + 2 * self.width + 2 * self.head_dim

    @property
    def outer_parameters(self) -> int:
        """Parameters outside the layers: embedding, last norm, and the output matrix where it is not the embedding."""
        return self.vocab * self.width * (1 if self.tied else 2) + self.width

    @property
    def parameters(self) -> int:
        return self.layers * self.layer_parameters + self.outer_parameters

    def adapter_parameters(self, rank: int, targets: Sequence[str] | None = None) -> int:
        """Parameters of low-rank adapters beside each layer's ``targets`` (None: all projections): two factors each."""
        sizes = (self.matrices[name] for name in targets or PROJECTIONS)
        return self.layers * sum(rank * (o + i) for o, i in sizes)

    def to_config(self) -> dict[str, Any]:
        """The same as the fields of a Hugging Face config.json."""
        return {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "num_hidden_layers": self.layers,
            "hidden_size": self.width,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.feed_forward,
            "vocab_size": self.vocab,
            "tie_word_embeddings": self.tied,
            "max_position_embeddings": self.positions,
        }


def _qwen3(size: str, layers: int, width: int, heads: int, feed_forward: int, tied: bool) -> ModelShape:
    return ModelShape(f"Qwen/Qwen3-{size}", layers, width, heads, 8, 128, feed_forward, 151_936, tied, 40_960)


PUBLISHED: Mapping[str, ModelShape] = {
    shape.name: shape
    for shape in (
        _qwen3("0.6B", 28, 1024, 16, 3072, True),
        _qwen3("1.7B", 28, 2048, 16, 6144, True),
        _qwen3("4B", 36, 2560, 32, 9728, True),
        _qwen3("8B", 36, 4096, 32, 12288, False),
        _qwen3("14B", 40, 5120, 40, 17408, False),
        _qwen3("32B", 64, 5120, 64, 25600, False),
    )
}
"""The dense Qwen3 models by their names on the model hub, with the sizes that their config.json files state (layers,
heads and tied embeddings also in Table 1 of arXiv 2505.09388)."""


def published(spec: str) -> ModelShape | None:
    """The published model that a checkpoint or its folder is called after: ``Qwen/Qwen3-8B``, ``models/Qwen3-8B``."""
    last = spec.rstrip("/").rpartition("/")[2].lower()
    return next((s for name, s in PUBLISHED.items() if name.rpartition("/")[2].lower() == last), None)


def shape_from_config(path: Path) -> ModelShape:
    """The sizes that a checkpoint folder's config.json states. CheckpointError if it is missing or of another kind."""
    file = path / "config.json"
    try:
        fields = read_json_object(file)
    except DataError as problem:
        raise CheckpointError(str(problem).rstrip(".")) from None
    if fields.get("model_type") != "qwen3":
        raise CheckpointError(
            f"{file}: model_type is {fields.get('model_type')!r}, but only 'qwen3' can be trained: choose a Qwen3 "
            "checkpoint"
        )
    try:
        heads = int(fields["num_attention_heads"])
        width = int(fields["hidden_size"])
        return ModelShape(
            name=str(path),
            layers=int(fields["num_hidden_layers"]),
            width=width,
            heads=heads,
            kv_heads=int(fields.get("num_key_value_heads") or heads),
            head_dim=int(fields.get("head_dim") or width // heads),
            feed_forward=int(fields["intermediate_size"]),
            vocab=int(fields["vocab_size"]),
            tied=bool(fields.get("tie_word_embeddings", False)),
            positions=int(fields.get("max_position_embeddings", 32768)),
        )
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError) as problem:
        raise CheckpointError(f"{file}: not a valid Qwen3 configuration: {problem!r}") from None
