"""The own path equals the Hugging Face model (logits, log-probabilities, entropies, gradients), padded or packed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, Qwen3ForCausalLM

from muarl.basics.errors import CheckpointError
from muarl.models import decoder
from muarl.models.layout import plan_layout
from muarl.models.path import path_of
from muarl.models.support import support_of
from support.tiny_qwen3 import tiny


def batch(lengths: list[list[int]], width: int, left: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """ids, positions, documents for rows of documents with the given lengths."""
    ids = torch.randint(0, 97, (len(lengths), width), generator=torch.Generator().manual_seed(1))
    positions, documents = torch.zeros_like(ids), torch.full_like(ids, -1)
    for row, sizes in enumerate(lengths):
        at = width - sum(sizes) if left else 0
        for number, size in enumerate(sizes):
            positions[row, at : at + size] = torch.arange(size)
            documents[row, at : at + size] = number
            at += size
    return ids, positions, documents


def reference(model: Qwen3ForCausalLM, ids: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
    """HF logits, each document alone; zero at padding."""
    out = torch.zeros(*ids.shape, model.config.vocab_size)
    for row in range(ids.shape[0]):
        for number in documents[row][documents[row] >= 0].unique().tolist():
            where = documents[row] == number
            out[row, where] = model(ids[row, where][None]).logits[0]
    return out


LAYOUTS = {
    "one length": ([[20], [20]], 20, False),
    "padded right": ([[20], [5], [1]], 20, False),
    "padded left": ([[20], [5], [13]], 20, True),
    "packed": ([[7, 30, 2], [15, 15, 15], [50]], 50, False),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tied", [True, False])
def test_logits_equal_hugging_face(layout: str, tied: bool) -> None:
    model = tiny(tied)
    ids, positions, documents = batch(*LAYOUTS[layout])
    with torch.no_grad():
        hidden = decoder.hidden_states(model, ids, positions, documents)
        expected = reference(model, ids, documents)
    real = documents >= 0
    torch.testing.assert_close(model.lm_head(hidden)[real], expected[real], atol=2e-5, rtol=1e-4)
    assert hidden[~real].abs().sum() == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("recompute", [False, True])
def test_selected_logprobs_entropy_and_gradients(layout: str, temperature: float, recompute: bool) -> None:
    model = tiny()
    ids, positions, documents = batch(*LAYOUTS[layout])
    chance = torch.rand(ids.shape, generator=torch.Generator().manual_seed(2))
    select = (chance < 0.4) & (documents >= 0) & (positions > 0)
    logprob, entropy = decoder.token_logprobs(
        model, ids, positions, documents, select, temperature, recompute=recompute
    )
    logp = (reference(model, ids, documents) / temperature).log_softmax(-1)
    before = logp.roll(1, 1)[select]
    expected = before.gather(1, ids[select][:, None])[:, 0]
    expected_entropy = -(before.exp() * before).sum(-1)
    torch.testing.assert_close(logprob, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(entropy, expected_entropy, atol=1e-5, rtol=1e-5)

    weights = torch.rand(logprob.shape, generator=torch.Generator().manual_seed(3))
    parameters = list(model.parameters())
    ours = torch.autograd.grad((logprob * weights).sum() + 0.3 * entropy.sum(), parameters)
    theirs = torch.autograd.grad((expected * weights).sum() + 0.3 * expected_entropy.sum(), parameters)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)


def test_gradient_of_logprobs_alone() -> None:
    model = tiny()
    ids, positions, documents = batch(*LAYOUTS["packed"])
    select = (documents >= 0) & (positions > 0)
    logprob, entropy = decoder.token_logprobs(model, ids, positions, documents, select, entropy=False)
    assert entropy.abs().sum() == 0
    ours = torch.autograd.grad(logprob.sum(), list(model.parameters()))
    logp = reference(model, ids, documents).log_softmax(-1).roll(1, 1)[select].gather(1, ids[select][:, None])
    for a, b in zip(ours, torch.autograd.grad(logp.sum(), list(model.parameters())), strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)


def test_autocast_to_bfloat16_stays_close() -> None:
    model = tiny()
    ids, positions, documents = batch(*LAYOUTS["packed"])
    select = (documents >= 0) & (positions > 0)
    exact, _ = decoder.token_logprobs(model, ids, positions, documents, select)
    with torch.autocast("cpu", torch.bfloat16):
        rough, _ = decoder.token_logprobs(model, ids, positions, documents, select)
    rough.sum().backward()
    torch.testing.assert_close(rough, exact, atol=0.1, rtol=0)
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in model.parameters())


def test_many_documents_of_mixed_lengths_use_few_rectangles() -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(30, 400, (64,), generator=generator).tolist()
    documents = torch.cat([torch.full((n,), i) for i, n in enumerate(sizes)])[None]
    layout = plan_layout(documents)
    area = sum(rows * length for rows, length in layout.blocks)
    assert area <= 1.3 * sum(sizes) and len(layout.blocks) <= 12
    assert layout.pack is not None
    assert torch.equal(layout.pack[layout.unpack], torch.arange(sum(sizes)))


def test_selecting_what_nothing_predicts_is_an_error() -> None:
    model = tiny()
    ids, positions, documents = batch([[5, 5]], 12)
    for column in (0, 5, 11):
        select = torch.zeros_like(ids, dtype=torch.bool)
        select[0, column] = True
        with pytest.raises(ValueError, match="first token"):
            decoder.token_logprobs(model, ids, positions, documents, select)


def test_nothing_selected_gives_empty_results() -> None:
    model = tiny()
    ids, positions, documents = batch([[5, 5]], 12)
    logprob, entropy = decoder.token_logprobs(model, ids, positions, documents, torch.zeros_like(ids, dtype=torch.bool))
    assert logprob.shape == entropy.shape == (0,)
    logprob.sum().backward()


def test_other_architectures_are_refused_by_name() -> None:
    other = GPTNeoXForCausalLM(
        GPTNeoXConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    )
    with pytest.raises(CheckpointError, match=r"'gpt_neox'.*qwen3.*generic path"):
        decoder.shape_of(other)
    adapted = tiny()
    adapted.model.layers[0].mlp.up_proj = torch.nn.Sequential(torch.nn.Linear(32, 48))
    with pytest.raises(CheckpointError, match="up_proj"):
        decoder.shape_of(adapted)


SCALED = {
    "default": {},
    "linear": {"factor": 4.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 16},
    "llama3": {
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", SCALED)
def test_scaled_rotary_positions_equal_hugging_face(kind: str) -> None:
    """Without the cache and with it, beyond the length that the scaling began with."""
    from muarl.models.decoder_cached import KVCache, decode, prefill
    from muarl.models.inference_weights import InferenceWeights

    model = tiny(rope_parameters={"rope_type": kind, "rope_theta": 10000.0, **SCALED[kind]})
    ids, positions, documents = batch([[60]], 60)
    with torch.no_grad():
        expected = model(ids).logits
        torch.testing.assert_close(
            model.lm_head(decoder.hidden_states(model, ids, positions, documents)), expected, atol=2e-5, rtol=1e-4
        )
        weights = InferenceWeights(model, device=torch.device("cpu"), dtype=torch.float32, max_positions=64)
        cache = KVCache(weights.shape, 1, 64, weights.device, weights.dtype)
        slot = torch.tensor([0])
        prefill(weights, cache, [ids[0, :-1]], slot, torch.tensor([0]), span=64)
        last = decode(weights, cache, ids[0, -1:], slot, torch.tensor([59]), span=64, rows=0)
        torch.testing.assert_close(model.lm_head(last), expected[0, -1:], atol=2e-5, rtol=1e-4)
    plain = tiny(rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    assert (kind == "default") == torch.equal(plain(ids).logits, expected), "the scaling is not without effect"


VARIANTS: dict[str, dict[str, Any]] = {
    "sliding-window layers": {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
    "hidden_act gelu": {"hidden_act": "gelu"},
    "a part of each head": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
    },
}


@pytest.mark.parametrize("named", VARIANTS)
def test_variants_that_the_own_path_does_not_compute_take_the_generic_one(named: str) -> None:
    """By their config.json already; and what is then computed is right, packed and with a cache."""
    from muarl.inference.base import SamplingParams
    from muarl.inference.torch_engine import TorchEngine

    model = tiny(**VARIANTS[named])
    for config in (model.config, model.config.to_dict(), {"model_type": "qwen3", **VARIANTS[named]}):
        support = support_of(config)
        assert support.path == "generic" and named in support.reason and named in support.notice
    with pytest.raises(CheckpointError, match=f"{named}.*does not compute"):
        decoder.shape_of(model)
    path = path_of(model)
    ids, positions, documents = batch(*LAYOUTS["packed"])
    select = (documents >= 0) & (positions > 0)
    expected = reference(model, ids, documents).log_softmax(-1).roll(1, 1)[select].gather(1, ids[select][:, None])
    found, _ = path.token_logprobs(ids, positions, documents, select)
    torch.testing.assert_close(found, expected[:, 0], atol=1e-4, rtol=1e-4)
    engine = TorchEngine(model, max_slots=2, max_context=64)
    prompt = ids[2, :30].tolist()
    sampled = asyncio.run(engine.sample(prompt, SamplingParams(12, seed=1)))
    whole = torch.tensor([[*prompt, *sampled.ids]])
    with torch.no_grad():
        logp = model(whole).logits[0, 29:-1].log_softmax(-1)
    torch.testing.assert_close(
        torch.tensor(sampled.logprobs), logp.gather(1, whole[0, 30:, None])[:, 0], atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("dynamic", {"factor": 2.0}),
        (
            "longrope",
            {
                "factor": 2.0, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4,
                "original_max_position_embeddings": 256,
            },
        ),
    ],
)  # fmt: skip
def test_positions_that_depend_on_the_length_are_refused(kind: str, more: dict[str, object]) -> None:
    from muarl.inference.torch_engine import TorchEngine

    rope = {"rope_type": kind, "rope_theta": 1e4, **more}
    model = tiny(rope_parameters=rope)
    for config in (
        model.config,
        {"model_type": "qwen3", "rope_parameters": rope},
        {"model_type": "gpt_neox", "rope_scaling": {"type": kind, **more}},
    ):
        with pytest.raises(CheckpointError, match=rf"config\.json: .*{kind}.*length of the context.*use a checkpoint"):
            support_of(config)
    with pytest.raises(CheckpointError, match=kind):
        path_of(model)
    with pytest.raises(CheckpointError, match=kind):
        TorchEngine(model, max_slots=1, max_context=64)
