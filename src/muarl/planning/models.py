"""Sizes of models, and how many parameters they have."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muarl.basics.errors import CheckpointError, DataError
from muarl.basics.untrusted import read_json_object
from muarl.models.support import DEFAULT_FAMILY, OWN_FAMILIES, OWN_MIXTURES, layer_parts, support_of

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The matrices of a layer, by the last part of their names in a checkpoint."""

MOST_HEADER = 100 << 20
"""Bytes that the header of a file of weights may have, as safetensors itself limits it."""


ATTENTION = PROJECTIONS[:4]


@dataclass(frozen=True, slots=True)
class ExpertBlocks:
    """The feed-forward blocks of a mixture."""

    layers: int
    """How many of its layers have experts."""
    experts: int
    """How many experts each such layer has."""
    chosen: int
    """To how many of them a token goes."""
    inner: int
    """How wide each is inside."""
    normalised: bool = True
    """The chosen ones' shares add up to 1."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a model."""

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocab: int
    tied: bool
    """The output matrix is the embedding."""
    positions: int
    """Its longest context."""
    family: str = DEFAULT_FAMILY
    head_norms: bool = True
    """Query and key heads are normed."""
    biases: int = 0
    """Biases of the projections of one layer."""
    others: int = 0
    """Parameters beyond those of such layers; only then are there layers that the own path does not compute."""
    mixture: ExpertBlocks | None = None
    """Experts, if the own path computes them."""

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
        """(outputs, inputs) of one layer's projections by name, beside which adapters may be: of a mixture those of
        attention."""
        w, f, q, k = self.width, self.feed_forward, self.query, self.key
        sizes = ((q, w), (k, w), (k, w), (w, q), (f, w), (f, w), (w, f))
        return dict(zip(ATTENTION if self.mixture else PROJECTIONS, sizes, strict=False))

    @property
    def matrix_parameters(self) -> int:
        """Numbers in the matrices of all layers, but for experts."""
        dense = 3 * self.width * self.feed_forward
        attention = 2 * self.width * (self.query + self.key)
        if self.mixture is None:
            return self.layers * (attention + dense)
        m = self.mixture
        return self.layers * attention + (self.layers - m.layers) * dense + m.layers * m.experts * self.width

    @property
    def expert_parameters(self) -> int:
        """Parameters of one expert of one layer."""
        return 0 if self.mixture is None else 3 * self.width * self.mixture.inner

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer, of a mixture's where there are some: matrices, two norms, and the norms of query and
        key heads. Of a model whose parameters were counted, a mean layer's."""
        w, norms = self.width, 2 * self.width + 2 * self.head_dim * self.head_norms
        attention = 2 * w * (self.query + self.key) + norms + self.biases + self.others // self.layers
        if self.mixture is None:
            return attention + 3 * w * self.feed_forward
        return attention + self.mixture.experts * (w + self.expert_parameters)

    @property
    def outer_parameters(self) -> int:
        """Parameters outside the layers: embedding, last norm, and the output matrix where it is not the embedding."""
        return self.vocab * self.width * (1 if self.tied else 2) + self.width

    @property
    def parameters(self) -> int:
        """All of them, whether a token needs them or not."""
        experts = 0 if self.mixture is None else self.mixture.layers * self.mixture.experts * self.expert_parameters
        return self.matrix_parameters + experts + self._vectors + self.outer_parameters + self.others

    @property
    def active_parameters(self) -> int:
        """Those that one token is computed with: of a mixture's experts the chosen ones."""
        return round(self.read_parameters(1.0))

    def read_parameters(self, tokens: float) -> float:
        """Those that a step over so many tokens is expected to read, if they choose experts independently."""
        if self.mixture is None:
            return float(self.parameters)
        m = self.mixture
        missed = m.experts * (1.0 - m.chosen / m.experts) ** tokens
        return self.parameters - m.layers * missed * self.expert_parameters

    @property
    def active_feed_forward(self) -> int:
        """Numbers in the matrices that a token meets in one layer's feed-forward block; the mean of all layers."""
        dense = 3 * self.width * self.feed_forward
        if self.mixture is None:
            return dense
        m = self.mixture
        mixed = m.experts * self.width + m.chosen * self.expert_parameters
        return ((self.layers - m.layers) * dense + m.layers * mixed) // self.layers

    @property
    def _vectors(self) -> int:
        """Norms and biases in all layers."""
        return self.layers * (2 * self.width + 2 * self.head_dim * self.head_norms + self.biases)

    def adapter_parameters(self, rank: int, targets: Sequence[str] | None = None) -> int:
        """Parameters of low-rank adapters beside each layer's ``targets`` (None: all projections): two factors each."""
        sizes = (self.matrices[name] for name in targets or PROJECTIONS if name in self.matrices)
        return self.layers * sum(rank * (o + i) for o, i in sizes)

    def to_config(self) -> dict[str, Any]:
        """The same as the fields of a Hugging Face config.json."""
        fields = {
            "architectures": [OWN_FAMILIES[self.family]],
            "model_type": self.family,
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
        if self.mixture is None:
            return fields
        return fields | {
            "num_experts": self.mixture.experts,
            "num_experts_per_tok": self.mixture.chosen,
            "moe_intermediate_size": self.mixture.inner,
            "norm_topk_prob": self.mixture.normalised,
            "mlp_only_layers": list(range(self.layers - self.mixture.layers)),
        }


def _qwen3(size: str, layers: int, width: int, heads: int, feed_forward: int, tied: bool) -> ModelShape:
    return ModelShape(f"Qwen/Qwen3-{size}", layers, width, heads, 8, 128, feed_forward, 151_936, tied, 40_960)


def _qwen3_moe(size: str, layers: int, width: int, heads: int, feed_forward: int, inner: int) -> ModelShape:
    return ModelShape(
        name=f"Qwen/Qwen3-{size}",
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=4,
        head_dim=128,
        feed_forward=feed_forward,
        vocab=151_936,
        tied=False,
        positions=40_960,
        family="qwen3_moe",
        mixture=ExpertBlocks(layers, 128, 8, inner),
    )


def _qwen25(size: str, layers: int, width: int, heads: int, kv_heads: int, feed_forward: int) -> ModelShape:
    tied = size in ("0.5B", "1.5B", "3B")
    head_dim = width // heads
    return ModelShape(
        name=f"Qwen/Qwen2.5-{size}",
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        feed_forward=feed_forward,
        vocab=151_936 if tied else 152_064,
        tied=tied,
        positions=32_768,
        family="qwen2",
        head_norms=False,
        biases=(heads + 2 * kv_heads) * head_dim,
    )


def _llama(size: str, layers: int, width: int, heads: int, feed_forward: int, tied: bool) -> ModelShape:
    return ModelShape(
        name=f"meta-llama/Llama-{size}",
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=8,
        head_dim=width // heads,
        feed_forward=feed_forward,
        vocab=128_256,
        tied=tied,
        positions=131_072,
        family="llama",
        head_norms=False,
    )


PUBLISHED: Mapping[str, ModelShape] = {
    shape.name: shape
    for shape in (
        _qwen3("0.6B", 28, 1024, 16, 3072, True),
        _qwen3("1.7B", 28, 2048, 16, 6144, True),
        _qwen3("4B", 36, 2560, 32, 9728, True),
        _qwen3("8B", 36, 4096, 32, 12288, False),
        _qwen3("14B", 40, 5120, 40, 17408, False),
        _qwen3("32B", 64, 5120, 64, 25600, False),
        _qwen3_moe("30B-A3B", 48, 2048, 32, 6144, 768),
        _qwen3_moe("235B-A22B", 94, 4096, 64, 12288, 1536),
        _qwen25("0.5B", 24, 896, 14, 2, 4864),
        _qwen25("1.5B", 28, 1536, 12, 2, 8960),
        _qwen25("3B", 36, 2048, 16, 2, 11008),
        _qwen25("7B", 28, 3584, 28, 4, 18944),
        _qwen25("14B", 48, 5120, 40, 8, 13824),
        _qwen25("32B", 64, 5120, 40, 8, 27648),
        _qwen25("72B", 80, 8192, 64, 8, 29568),
        _llama("3.2-1B", 16, 2048, 32, 8192, True),
        _llama("3.2-3B", 28, 3072, 24, 8192, True),
        _llama("3.1-8B", 32, 4096, 32, 14336, False),
        _llama("3.1-70B", 80, 8192, 64, 28672, False),
    )
}
"""Published models of the own path by their names on the model hub, with the sizes that their config.json files state
(layers, heads and tied embeddings also in Table 1 of arXiv 2505.09388 for Qwen3 and of 2412.15115 for Qwen2.5)."""


def published(spec: str) -> ModelShape | None:
    """The published model that a checkpoint or its folder is called after: ``Qwen/Qwen3-8B``, ``models/Qwen3-8B``,
    ``Qwen/Qwen2.5-7B-Instruct``."""
    last = spec.rstrip("/").rpartition("/")[2].lower().removesuffix("-instruct")
    return next((s for name, s in PUBLISHED.items() if name.rpartition("/")[2].lower() == last), None)


def shape_from_config(path: Path) -> ModelShape:
    """The sizes that a checkpoint folder's config.json states. CheckpointError if it is missing, or describes a model
    that cannot be used.

    Of a model that the own path does not compute these are its dense layers' sizes as far as it has some; how many
    parameters it has is counted in its weights.
    """
    file = path / "config.json"
    try:
        fields = read_json_object(file)
    except DataError as problem:
        raise CheckpointError(str(problem).rstrip(".")) from None
    support = support_of(fields, file)
    text = fields.get("text_config")
    sizes = {**fields, **text} if isinstance(text, dict) else fields
    try:
        shape = _shape(str(path), support.family, sizes)
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError) as problem:
        raise CheckpointError(f"{file}: not a valid {support.family} configuration: {problem!r}") from None
    if support.path == "own":
        return shape
    return replace(shape, others=_stored_parameters(path) - shape.parameters)


def _shape(name: str, family: str, fields: Mapping[str, Any]) -> ModelShape:
    heads, width = int(_first(fields, "num_attention_heads", "n_head")), int(_first(fields, "hidden_size", "n_embd"))
    kv_heads = int(fields.get("num_key_value_heads") or heads)
    head_dim = int(fields.get("head_dim") or width // heads)
    feed_forward = int(_first({"n_inner": 4 * width} | dict(fields), "intermediate_size", "n_inner"))
    parts = layer_parts(fields)
    biases = (heads + 2 * kv_heads) * head_dim * parts.qkv_bias + width * parts.out_bias
    biases += (2 * feed_forward + width) * parts.feed_forward_bias
    return ModelShape(
        name=name,
        layers=int(_first(fields, "num_hidden_layers", "n_layer")),
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        feed_forward=feed_forward,
        vocab=int(fields["vocab_size"]),
        tied=bool(fields.get("tie_word_embeddings", False)),
        positions=int(fields.get("max_position_embeddings") or fields.get("n_positions") or 32768),
        family=family,
        head_norms=parts.head_norms,
        biases=biases,
        mixture=_mixture(fields) if family in OWN_MIXTURES else None,
    )


def _mixture(fields: Mapping[str, Any]) -> ExpertBlocks | None:
    """The experts that a config.json of the own path describes: in every so many layers, but for those that it lists as
    dense."""
    layers, every = int(fields["num_hidden_layers"]), int(fields.get("decoder_sparse_step", 1))
    experts = int(_first(fields, "num_experts", "num_local_experts"))
    dense = {int(n) for n in fields.get("mlp_only_layers") or () if 0 <= n < layers and (n + 1) % every == 0}
    mixed = layers // every - len(dense)
    if experts < 1 or mixed < 1:
        return None
    chosen, inner = int(fields["num_experts_per_tok"]), int(fields["moe_intermediate_size"])
    if not 1 <= chosen <= experts:
        raise ValueError(f"num_experts_per_tok is {chosen}, of {experts} experts")
    return ExpertBlocks(mixed, experts, chosen, inner, bool(fields.get("norm_topk_prob", False)))


def _first(fields: Mapping[str, Any], name: str, older: str) -> Any:
    """A size by its name, or by the one that some older families have for it."""
    return fields[older] if name not in fields and older in fields else fields[name]


def _stored_parameters(path: Path) -> int:
    """Numbers in the files of weights, by their headers. CheckpointError if there are none or one cannot be read."""
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise CheckpointError(f"{path}: has no safetensors weights")
    count = 0
    for file in files:
        try:
            with file.open("rb") as opened:
                header = json.loads(opened.read(min(int.from_bytes(opened.read(8), "little"), MOST_HEADER)))
            count += sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise CheckpointError(f"{file}: cannot be read ({problem}): copy it again") from None
    return count
