"""Predicted bytes against what small models take on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import PreTrainedModel

import muarl.models.decoder as fast_path
from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoints import load_tokenizer
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Batch, Sample, pack
from muarl.learning.settings import LearnerConfig
from muarl.learning.steps import selected_logprobs
from muarl.models import cached_attention
from muarl.models.path import path_of
from muarl.models.scoring import linear_logprobs
from muarl.planning import memory
from muarl.planning.memory import LearnerSetup, ServerSetup
from muarl.planning.models import PUBLISHED, ExpertBlocks, ModelShape
from support.tiny_qwen3 import tiny

SIZES = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=32, intermediate_size=200)


EXPERTS = dict(model_type="qwen3_moe", num_experts=6, num_experts_per_tok=2, moe_intermediate_size=40)
MIXTURES = {"dense": {}, "mixture": EXPERTS, "mixture, normalised": {**EXPERTS, "norm_topk_prob": True}}


def shape_of(model: PreTrainedModel) -> ModelShape:
    c: Any = model.config
    normed = c.model_type in ("qwen3", "qwen3_moe")
    mixture = None
    if c.model_type == "qwen3_moe":
        sizes = c.num_hidden_layers, c.num_experts, c.num_experts_per_tok, c.moe_intermediate_size
        mixture = ExpertBlocks(*sizes, c.norm_topk_prob)
    return ModelShape(
        "small", c.num_hidden_layers, c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim,
        c.intermediate_size, c.vocab_size, c.tie_word_embeddings, c.max_position_embeddings,
        c.model_type, normed, mixture=mixture,
    )  # fmt: skip


def samples(count: int, length: int, seed: int = 0) -> list[Sample]:
    """Documents that share no beginnings, every token of which is predicted."""
    source = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 97, (count, length), generator=source).tolist()
    return [Sample.sampled(i, [True] * length, [-1.0] * length, 1.0) for i in ids]


def size_of(tensors: object) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("layers", "tied"), [("dense", True), ("dense", False), ("mixture", False)], ids=["tied", "untied", "mixture"]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_weights_gradients_and_optimiser_to_the_byte(
    layers: str, tied: bool, dtype: torch.dtype, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(tied, **SIZES, **MIXTURES[layers]).to(dtype)
    shape = shape_of(model)
    settings = LearnerConfig(
        optimizer=OptimizerConfig(kind=kind),  # type: ignore[arg-type]
        policy=PolicyLossConfig(kl_coef=0.01),
        precision="float32" if dtype == torch.float32 else "bfloat16",
    )
    learner = TorchLearner(model, None, settings)  # type: ignore[arg-type]
    seen: list[int] = []
    step = learner.optimizer.step
    monkeypatch.setattr(
        learner.optimizer, "step", lambda: (seen.append(size_of(p.grad for p in model.parameters())), step())[1]
    )
    learner.policy_step(samples(2, 20))
    parts = memory.learner_memory(
        shape,
        LearnerSetup(
            trained_bytes=dtype.itemsize,
            compute_bytes=dtype.itemsize,
            reference_bytes=dtype.itemsize,
            muon=kind == "muon",
        ),
    )
    assert parts["weights"] == size_of(model.parameters())
    assert parts["gradients"] == seen[0]
    state = {k: v for k, v in learner.optimizer.tensors().items() if not k.endswith("/step")}
    assert parts["optimiser"] == size_of(state.values())
    assert learner.reference is not None
    assert parts["reference"] == size_of(learner.reference.parameters())


class Keeping:
    """Every tensor that an operation keeps for the backward pass, or that is kept to make such a one again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, own: set[int]) -> None:
        self.stores: dict[int, torch.UntypedStorage] = {}
        self.own = own
        hooks = torch.autograd.graph.saved_tensors_hooks

        class Seen(hooks):
            def __init__(inner, keep: Any, give: Any) -> None:
                super().__init__(lambda tensor: self.note(keep(tensor)), give)

        self.everywhere = Seen(lambda tensor: tensor, lambda tensor: tensor)
        monkeypatch.setattr(torch.autograd.graph, "saved_tensors_hooks", Seen)

    def note(self, kept: Any) -> Any:
        for tensor in [kept] if isinstance(kept, torch.Tensor) else kept[1]:
            if isinstance(tensor, torch.Tensor) and (store := tensor.untyped_storage()).data_ptr() not in self.own:
                self.stores[store.data_ptr()] = store
        return kept


def kept(model: PreTrainedModel, length: int, *, recompute: bool, autocast: bool) -> int:
    """Bytes of all tensors that a forward pass over four documents keeps for the backward pass, parameters apart."""
    rows = pack(Batch.of(samples(4, length)), token_budget=1 << 20)
    with pytest.MonkeyPatch.context() as patch:
        keeping = Keeping(patch, {p.untyped_storage().data_ptr() for p in model.parameters()})
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast), keeping.everywhere:
            scores = selected_logprobs(path_of(model), rows[0], entropy=True, recompute=recompute)
    assert scores.logprobs.requires_grad
    return sum(store.nbytes() for store in keeping.stores.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("kind", MIXTURES)
def test_activations_of_one_more_layer_to_the_byte(
    dtype: torch.dtype, recompute: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_path, "FUSE_BELOW", 0)  # as in large models: no joined copies of small weights
    low = dtype == torch.bfloat16
    models = [tiny(num_hidden_layers=n, **SIZES, **MIXTURES[kind]).to(dtype) for n in (3, 4)]
    each = [kept(m, 64, recompute=recompute, autocast=low) for m in models]
    shape = shape_of(models[1])
    if recompute:
        expected = 4 * 64 * shape.width * dtype.itemsize
        assert (
            memory.activations(shape, 256, dtype.itemsize, True)
            - memory.activations(shape_of(models[0]), 256, dtype.itemsize, True)
            == expected
        )
    else:
        expected = 4 * 64 * memory.activations_per_token(shape, dtype.itemsize)
    assert each[1] - each[0] == expected


def test_of_small_projections_that_are_joined_only_the_values_are_kept() -> None:
    """Where beginnings are shared, attention keeps the values as they come: not as a part of the joint product."""
    model = tiny(model_type="llama", **SIZES)
    common = samples(1, 200)[0].ids
    documents = [
        Sample.sampled([*common, *s.ids], [False] * 200 + [True] * 40, [-1.0] * 240, 1.0)
        for s in samples(3, 40, seed=1)
    ]
    rows = pack(Batch.of(documents), token_budget=1 << 20, share=True)[0]
    assert rows.layout is not None and rows.layout.prefixes
    with pytest.MonkeyPatch.context() as patch:
        keeping = Keeping(patch, {p.untyped_storage().data_ptr() for p in model.parameters()})
        with keeping.everywhere:
            selected_logprobs(path_of(model), rows, entropy=True)
    shape, tokens = shape_of(model), len(rows.layout.tokens)
    sizes = [store.nbytes() for store in keeping.stores.values()]
    assert sizes.count(4 * tokens * shape.key) >= 2 * shape.layers  # keys and values
    assert 4 * tokens * (shape.query + 2 * shape.key) not in sizes


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_all_activations_within_a_tenth(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_path, "FUSE_BELOW", 0)
    model = tiny(num_hidden_layers=6, **SIZES).to(dtype)
    measured = kept(model, 128, recompute=False, autocast=dtype == torch.bfloat16)
    predicted = memory.activations(shape_of(model), 4 * 128, dtype.itemsize, False)
    assert predicted == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tied", [True, False])
def test_the_engine_s_weights_and_cache_to_the_byte(dtype: torch.dtype, tied: bool) -> None:
    model = tiny(tied, **SIZES).to(dtype)
    engine = TorchEngine(model, max_slots=5, max_context=48)
    parts = memory.torch_engine_memory(shape_of(model), 5, 48, dtype.itemsize)
    w, cache, state = engine._cached.weights, engine._cached.cache, engine._state
    held = [w.embedding, w.norm, w.cos, w.sin, *([] if w.tied else [w.head])]
    for layer in w.layers:
        held += [layer.before_attention, layer.qkv, layer.gain, layer.out, layer.before_mlp, layer.gate_up, layer.down]
    assert parts["weights"] == size_of(held)
    assert parts["cache"] == size_of([*cache.keys, *cache.values])
    assert parts["batch"] == size_of([state._ints, state._floats, state._ids, state._logprobs])
    assert parts["cache"] == 5 * 48 * memory.cache_per_token(shape_of(model), dtype.itemsize)


def test_a_cpu_holds_tied_embeddings_of_a_large_model_twice() -> None:
    """Packed, as the output matrix; small models' as they are."""
    assert memory.PACKED_FROM == cached_attention.WIDE
    for key, tied, packed in ((192, True, 1), (192, False, 0), (64, True, 0)):
        shape = ModelShape("wide", 1, 512, key // 64, key // 64, 64, 200, 16384, tied, 64)
        here, there = (
            memory.torch_engine_memory(shape, 2, 64, 4, on_gpu=on_gpu)["weights"] for on_gpu in (False, True)
        )
        assert here - there == packed * 16384 * 512 * 4


@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.slow)])
def test_the_peak_at_the_output_matrix_within_a_tenth(dtype: torch.dtype) -> None:
    shape = ModelShape("wide", 1, 512, 4, 2, 32, 200, 16384, True, 64)
    source = torch.Generator().manual_seed(0)
    hidden = torch.randn(300, shape.width, generator=source).to(dtype).requires_grad_()
    weight = torch.randn(shape.vocab, shape.width, generator=source).to(dtype).requires_grad_()
    targets = torch.randint(0, shape.vocab, (300,), generator=source)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        linear_logprobs(hidden, weight, targets)[0].sum().backward()
    results: Any = profile.profiler
    held = peak = 0
    for event in sorted(results.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    assert memory.head_bytes(shape, False, dtype.itemsize) == pytest.approx(peak, rel=0.1)


def test_shards_divide_what_is_sharded_and_nothing_else() -> None:
    shape = PUBLISHED["Qwen/Qwen3-8B"]
    one, eight = (memory.learner_memory(shape, LearnerSetup(shards=n, tokens=1000)) for n in (1, 8))
    for name in ("weights", "gradients", "optimiser", "reference"):
        assert eight[name] == -(-one[name] // 8)
    assert eight["activations"] == one["activations"]
    assert eight["gathered"] > 0
    assert "gathered" not in one


def test_what_is_moved_to_the_host_is_counted_there() -> None:
    shape = PUBLISHED["Qwen/Qwen3-8B"]
    setup = LearnerSetup(shards=4, offload=True, reference="host", reference_bytes=2)
    held = memory.host_memory(shape, setup)
    assert held == {
        "weights": shape.parameters,
        "gradients": shape.parameters,
        "optimiser": 2 * shape.parameters,
        "reference": -(-shape.parameters // 2),
    }
    assert not held.keys() & memory.learner_memory(shape, setup).keys()


def test_adapters_leave_little_to_train() -> None:
    shape = PUBLISHED["Qwen/Qwen3-8B"]
    parts = memory.learner_memory(shape, LearnerSetup(rank=16, reference="adapter", frozen_bytes=2, compute_bytes=2))
    assert parts["weights"] == 2 * shape.parameters + 4 * shape.adapter_parameters(16)
    assert parts["optimiser"] == 2 * 4 * shape.adapter_parameters(16)
    assert "reference" not in parts


def test_a_server_s_cache_is_what_weights_and_workspace_leave() -> None:
    shape = PUBLISHED["Qwen/Qwen3-32B"]
    device = 139 << 30
    parts = memory.server_memory(shape, ServerSetup(gpus=2, share=0.9), device)
    assert sum(parts.values()) == int(device * 0.9)
    # Two GPUs hold four of the eight key/value heads each.
    assert memory.cached_tokens(shape, ServerSetup(gpus=2, share=0.9), device) == parts["cache"] // (
        2 * 64 * 4 * 128 * 2
    )
    assert memory.cached_tokens(shape, ServerSetup(gpus=1, share=0.4), device) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_checkpoint_s_tensors_to_the_byte(dtype: torch.dtype, tmp_path: Path) -> None:
    model = tiny(**SIZES).to(dtype)
    tokenizer = load_tokenizer(checkpoint_folder("base"))
    precision = "float32" if dtype == torch.float32 else "bfloat16"
    settings = LearnerConfig(policy=PolicyLossConfig(kl_coef=0.0), precision=precision)  # type: ignore[arg-type]
    learner = TorchLearner(model, tokenizer, settings)
    learner.policy_step(samples(2, 20))
    stored = 0
    for file in learner.save(tmp_path / "step-1").glob("*.safetensors"):
        for name, tensor in load_file(file).items():
            stored += 0 if name.endswith("/step") or name.startswith("random/") else size_of([tensor])
    setup = LearnerSetup(trained_bytes=dtype.itemsize, frozen_bytes=dtype.itemsize)
    assert stored == memory.checkpoint_bytes(shape_of(model), setup)


@pytest.mark.parametrize(
    ("model", "tokens", "recompute", "peak"),
    [
        ("Qwen/Qwen3-0.6B", 16384, False, 33.2),
        ("Qwen/Qwen3-0.6B", 16384, True, 13.7),
        ("Qwen/Qwen3-0.6B", 32768, False, 52.0),
        ("Qwen/Qwen3-1.7B", 16384, False, 65.5),
        ("Qwen/Qwen3-1.7B", 16384, True, 34.3),
        ("Qwen/Qwen3-4B", 2048, True, 68.8),
        ("Qwen/Qwen3-4B", 8192, True, 71.5),
    ],
)
def test_a_learner_on_a_gpu_is_planned_within_a_tenth_of_what_was_measured(
    model: str, tokens: int, recompute: bool, peak: float
) -> None:
    """``peak``: GiB on an H100, by benches/gpu.py (docs/benchmarks.md, "On a GPU")."""
    setup = memory.LearnerSetup(compute_bytes=2, reference="none", recompute=recompute, tokens=tokens)
    planned = sum(memory.learner_memory(PUBLISHED[model], setup).values()) / 2**30
    assert planned == pytest.approx(peak, rel=0.1)
