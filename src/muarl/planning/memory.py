"""Bytes: what a learner and a sampler hold, part by part.

The parts are those of muarl's own code: ``learning/learner.py`` over ``models/decoder.py`` on one side,
``inference/torch_engine.py`` or vLLM on the other. Tests compare them with what small models take
(tests/planning/test_memory.py): weights, gradients, optimiser, caches and saved activations to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muarl.planning.models import PROJECTIONS, ExpertBlocks, ModelShape

Reference = Literal["none", "device", "host", "adapter"]
Parts = dict[str, int]
"""Bytes by what they are for, in the order in which they are shown."""

PACKED_FROM = 192
"""Numbers in a layer's keys of one token from which ``models/inference_weights.py`` may pack matrices on a CPU
(``cached_attention.WIDE``)."""
LOGITS_AT_ONCE = 1 << 20
"""Logits that ``models/scoring.py`` makes at a time on a CPU; a GPU takes 256 times as many."""
LOGITS_COPIES = 4
"""Tensors of that size alive at once in its backward pass on a CPU: logits, probabilities, their gradient, and one
temporary. On a GPU there are the logits, and their gradient in the type that is computed with."""
HEAP = {4: 0.75, 2: 0.85}
"""On a CPU: what the C library's heap keeps in pieces between tensors that come and go, as a share of the activations;
by the bytes of the type that is computed in. An estimate: with SmolLM2-135M and glibc 0.5 to 1 were measured
(benches/known_model.py --parts memory), least where oneDNN multiplies float32."""
DURING_UPDATES = {"gathered", "reduced", "casts", "activations", "logits", "heap"}
"""Parts of a learner's memory that it gives back after an update."""

PROCESS = 380 << 20
"""Bytes of a process with Python, PyTorch and transformers before it holds a model, measured on Linux."""
ENTRY = 1250
"""Bytes that an entry of the vocabulary takes in its tokenizer and chat format, measured with 151,669 of them."""


@dataclass(frozen=True, slots=True)
class LearnerSetup:
    """How a learner holds a model, on each of its processes."""

    shards: int = 1
    """Processes that the weights are spread over."""
    trained_bytes: int = 4
    """Bytes of one trained weight, and so of its gradient and each of AdamW's two moments."""
    frozen_bytes: int = 4
    """Bytes of one frozen weight."""
    compute_bytes: int = 4
    """Bytes of one activation."""
    rank: int = 0
    """The rank of adapters beside ``targets``, frozen weights; 0: all weights are trained."""
    targets: tuple[str, ...] = PROJECTIONS
    muon: bool = False
    offload: bool = False
    """Weights, gradients and optimiser lie on the host."""
    reference: Reference = "device"
    """Where the KL term's second model lies ("adapter": it is the model without its adapters)."""
    reference_bytes: int = 4
    """Bytes of one of the second model's weights."""
    start: bool = False
    """The model that training began with stays beside what is trained."""
    recompute: bool = False
    """A layer's activations are made again in the backward pass."""
    tokens: int = 16384
    """Tokens of one micro-batch."""
    on_gpu: bool = True

    @property
    def stream_bytes(self) -> int:
        """Of one number that layers hand on: they add to it in the type that the embedding comes in."""
        if self.shards > 1 or self.offload:
            return self.compute_bytes
        return self.frozen_bytes if self.rank else self.trained_bytes


def activations_per_token_on_gpu(shape: ModelShape, compute_bytes: int, stream_bytes: int) -> int:
    """The same as ``activations_per_token`` where ``models/fused.py`` computes: the layer's input and the middle of it
    as layers hand them on, a norm of each, query and key heads before and after they are turned, values, what attention
    returns, gate, up and their product; all but the first two in the type that is computed with."""
    w, q, k, f = shape.width, shape.query, shape.key, 3 * shape.feed_forward
    small = 4 * (2 + shape.heads)  # norms' scales, log-sum-exp
    if shape.mixture is not None:
        f, more = _mixed(shape, shape.mixture)
        small += more
    return 2 * w * stream_bytes + compute_bytes * (2 * w + 3 * q + 3 * k + f) + small


def activations_per_token(shape: ModelShape, compute_bytes: int) -> int:
    """Bytes that one layer keeps of one token for the backward pass, in ``models/decoder.py``.

    Elements in float32: the layer's input and the middle of it (2 widths), query and key heads before their norms
    (where they have some), what attention reads and returns, and the feed-forward block's gate and up; a norm of each
    and the product are made again (``models/backward.py``). Below float32 they are kept, and the norms keep float32
    copies of what they read and of what they made of it. Of a mixture a layer with experts is meant: see ``_mixed``.
    """
    w, q, k, f = shape.width, shape.query, shape.key, (2 if compute_bytes >= 4 else 3) * shape.feed_forward
    normed = q + k if shape.head_norms else 0
    small = 4 * (2 + shape.heads + (shape.heads + shape.kv_heads) * shape.head_norms)  # norms' scales, log-sum-exp
    if shape.mixture is not None:
        numbers, more = _mixed(shape, shape.mixture)
        f, small = numbers, small + more
    if compute_bytes >= 4:
        return 4 * (2 * w + 2 * q + 2 * k + normed + f) + small
    return compute_bytes * (2 * w + 2 * q + 2 * k + f) + 8 * (2 * w + normed) + small


def _mixed(shape: ModelShape, mixture: ExpertBlocks) -> tuple[int, int]:
    """What ``models/experts.py`` keeps of a token: numbers as it computes, and bytes besides. Of each chosen expert the
    input, gate and up, the gate's SiLU, the product of both, the same weighed, and the weight; in float32 the router's
    probabilities, the chosen ones' and, if they are made to add up to 1, their sum; which they are."""
    chosen = mixture.chosen
    shares = mixture.experts + mixture.normalised * (chosen + 1)
    return chosen * (shape.width + 5 * mixture.inner + 1), 4 * shares + 8 * chosen


def activations(
    shape: ModelShape, tokens: int, compute_bytes: int, recompute: bool, stream_bytes: int | None = None
) -> int:
    """Bytes kept of ``tokens`` tokens in all layers; with ``recompute`` each layer's input, and all of one layer.
    ``stream_bytes``: on a GPU, see ``LearnerSetup``; None: on a CPU."""
    if stream_bytes is None:
        whole, handed = activations_per_token(shape, compute_bytes), compute_bytes
    else:
        whole, handed = activations_per_token_on_gpu(shape, compute_bytes, stream_bytes), stream_bytes
    if not recompute:
        return tokens * shape.layers * whole
    return tokens * (shape.layers * shape.width * handed + whole)


def head_bytes(shape: ModelShape, on_gpu: bool, compute_bytes: int = 4) -> int:
    """Bytes that the output matrix's gradient takes while it is summed up in float32, and besides that logits or, at
    the end and below float32, the same in the type that is computed with."""
    rows = max(64, (256 if on_gpu else 1) * LOGITS_AT_ONCE // shape.vocab)
    matrix, logits = shape.vocab * shape.width, 4 * rows * shape.vocab
    if on_gpu:
        product = matrix * compute_bytes if compute_bytes < 4 else 0
        return 4 * matrix + product + rows * shape.vocab * (4 + compute_bytes)
    narrowed = matrix * compute_bytes + 2 * logits if compute_bytes < 4 else 0
    return 4 * matrix + max(LOGITS_COPIES * logits, narrowed)


def process_memory(shape: ModelShape) -> int:
    """Bytes of this machine's memory that a process takes besides what it computes with."""
    return PROCESS + ENTRY * shape.vocab


def _held(shape: ModelShape, setup: LearnerSetup) -> Parts:
    """Bytes that lie on each process from step to step, wherever they are put."""
    total = shape.parameters
    trained = shape.adapter_parameters(setup.rank, setup.targets) if setup.rank else total
    moments = 2 * trained
    if setup.muon:  # one momentum for the matrices inside the network
        moments -= shape.matrix_parameters
    sizes = {
        "weights": trained * setup.trained_bytes + (total * setup.frozen_bytes if setup.rank else 0),
        "gradients": trained * setup.trained_bytes,
        "optimiser": moments * setup.trained_bytes,
        "reference": total * setup.reference_bytes if setup.reference in ("device", "host") else 0,
    }
    held = {name: -(-size // setup.shards) for name, size in sizes.items()}
    return held | {"start model": total * setup.frozen_bytes if setup.start else 0}


def _on_host(setup: LearnerSetup, name: str) -> bool:
    return setup.reference == "host" if name == "reference" else setup.offload and name != "start model"


def learner_memory(shape: ModelShape, setup: LearnerSetup) -> Parts:
    """Bytes on each of the learner's devices at the peak of an update, by part."""
    parts = {name: size for name, size in _held(shape, setup).items() if not _on_host(setup, name)}
    if setup.shards > 1 or setup.offload:
        # Two layers are whole (one computes, the next arrives), and the embedding with the output matrix stays so.
        parts["gathered"] = (2 * shape.layer_parameters + shape.outer_parameters) * setup.compute_bytes
        if not setup.rank:  # gradients are summed up in float32
            parts["reduced"] = max(shape.layer_parameters, shape.outer_parameters) * (setup.compute_bytes + 4)
    elif setup.compute_bytes < setup.trained_bytes and not setup.rank:
        parts["casts"] = shape.parameters * setup.compute_bytes  # autocast's copies of the weights
    stream = setup.stream_bytes if setup.on_gpu else None
    parts["activations"] = activations(shape, setup.tokens, setup.compute_bytes, setup.recompute, stream)
    parts["logits"] = head_bytes(shape, setup.on_gpu, setup.compute_bytes)
    if stream is not None and setup.recompute:  # the logits are gone before a layer is computed again
        again = setup.tokens * activations_per_token_on_gpu(shape, setup.compute_bytes, stream)
        parts["activations"] -= min(again, parts["logits"])
    if not setup.on_gpu:
        parts["heap"] = int(HEAP[setup.compute_bytes] * parts["activations"])
    return {name: size for name, size in parts.items() if size}


def host_memory(shape: ModelShape, setup: LearnerSetup) -> Parts:
    """Bytes of the host's memory that each learner process takes for what was moved off its device."""
    return {name: size for name, size in _held(shape, setup).items() if size and _on_host(setup, name)}


def cache_per_token(shape: ModelShape, element_bytes: int) -> int:
    """Bytes of keys and values that one token of context takes in all layers."""
    return 2 * shape.layers * shape.key * element_bytes


def torch_engine_memory(
    shape: ModelShape, slots: int, positions: int, element_bytes: int, *, on_gpu: bool = True
) -> Parts:
    """Bytes that ``TorchEngine`` allocates: its copy of the weights, its cache, and what a running batch needs. On a
    CPU a large model's embeddings are counted twice, although not every processor gains by a packed copy of them."""
    # Query and key norms are kept once for each head, and there are tables of cosine and sine.
    gains = shape.layers * (shape.heads + shape.kv_heads - 2) * shape.head_dim * shape.head_norms
    tables = 2 * positions * shape.head_dim
    packed = shape.vocab * shape.width if shape.tied and shape.key >= PACKED_FROM and not on_gpu else 0
    return {
        "weights": (shape.parameters + gains + tables + packed) * element_bytes,
        "cache": slots * positions * cache_per_token(shape, element_bytes),
        "batch": slots * (11 * 8 + 2 * 4) + slots * positions * (8 + 4),
    }


def playing_memory(shape: ModelShape, engine: Parts, processes: int, held_bytes: int) -> Parts:
    """Bytes of ``processes`` children with such an engine each (``engine.processes``), and of the weights, of
    ``held_bytes`` each, that they share."""
    children = {name: size * processes for name, size in engine.items()}
    return children | {"shared weights": shape.parameters * held_bytes, "processes": processes * process_memory(shape)}


@dataclass(frozen=True, slots=True)
class ServerSetup:
    """One vLLM engine."""

    gpus: int = 1
    """GPUs that share its weights."""
    share: float = 0.85
    """The share of their memory that it may take."""
    element_bytes: int = 2
    """Bytes of a weight and of a cached number."""
    cache: int | None = None
    """Bytes of its cache (all GPUs together; None: all that is left)."""
    workspace: int = 3 << 30
    """Bytes of activations and graphs on each GPU, which are assumed."""


def server_memory(shape: ModelShape, setup: ServerSetup, device_bytes: int) -> Parts:
    """Bytes on each GPU of a vLLM engine: weights, workspace, and cache (0 if nothing is left for it: it does not
    start)."""
    weights = -(-shape.parameters * setup.element_bytes // setup.gpus)
    left = int(device_bytes * setup.share) - weights - setup.workspace
    cache = left if setup.cache is None else -(-setup.cache // setup.gpus)
    return {"weights": weights, "workspace": setup.workspace, "cache": max(cache, 0)}


def cached_tokens(shape: ModelShape, setup: ServerSetup, device_bytes: int) -> int:
    """Tokens of context that a vLLM engine can hold at once. Its GPUs split the key/value heads; where there are more
    GPUs than heads each head is held several times."""
    cache = server_memory(shape, setup, device_bytes)["cache"]
    each = 2 * shape.layers * -(-shape.kv_heads // setup.gpus) * shape.head_dim * setup.element_bytes
    return cache // each


def transfer_bytes(shape: ModelShape, element_bytes: int, rank: int = 0) -> int:
    """Bytes of one full set of weights (or of adapters), as it is sent to a sampler."""
    return (shape.adapter_parameters(rank) if rank else shape.parameters) * element_bytes


def checkpoint_bytes(shape: ModelShape, setup: LearnerSetup) -> int:
    """Bytes of one checkpoint: the weights as they are held, and the optimiser's state."""
    held = _held(shape, setup)
    weights = shape.parameters * (setup.frozen_bytes if setup.rank else setup.trained_bytes)
    adapters = shape.adapter_parameters(setup.rank, setup.targets) * 4 if setup.rank else 0
    return weights + adapters + held["optimiser"] * setup.shards
