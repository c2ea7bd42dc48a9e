"""Families of the generic path (and in the sampler mixtures of the own one): muarl equals plain transformers, one
document at a time."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
import torch

from models.test_own_path import documents_of
from muarl.inference.base import Completion, SamplingParams
from muarl.inference.torch_engine import TorchEngine
from muarl.models.generic import GenericPath
from muarl.models.path import path_of
from muarl.models.support import VERIFIED_FAMILIES, support_of
from support.tiny_families import GENERIC, OWN, VOCAB, tiny_family

FAMILIES = {**OWN, **GENERIC}
RECURRENT = ("nemotron_h", "qwen3_next", "qwen3_5_text", "lfm2")


def plain(model: Any) -> Any:
    """A copy that attends as the plain code of its class says. (With "sdpa" some releases leave out Gemma 2's caps.)"""
    own = copy.deepcopy(model)
    own.set_attn_implementation("eager")
    assert own.config._attn_implementation == "eager"
    return own


def alone(model: Any, ids: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """Log-probabilities of a document's tokens but the first, by transformers."""
    logits = model(ids[None], use_cache=False).logits[0, :-1].float() / temperature
    return logits.log_softmax(-1).gather(1, ids[1:, None])[:, 0]


def test_what_is_called_verified_is_what_is_tested_here() -> None:
    assert set(VERIFIED_FAMILIES) == set(GENERIC)


@pytest.mark.parametrize("name", GENERIC)
def test_packed_documents_equal_transformers_one_by_one(name: str) -> None:
    model = tiny_family(name, GENERIC[name])
    path = path_of(model)
    assert isinstance(path, GenericPath) and path.support == support_of(model.config.to_dict())
    ids, positions, documents = documents_of([[7, 30, 2], [40]])
    select = (documents >= 0) & (positions > 0)
    select[0, 3] = False
    found, entropy = path.token_logprobs(ids, positions, documents, select, 0.8)
    own = plain(model)
    expected = torch.cat([alone(own, ids[r, documents[r] == n], 0.8) for r, n in ((0, 0), (0, 1), (0, 2), (1, 0))])
    expected = expected[torch.arange(len(expected)) != 2]
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert bool((entropy > 0).all())
    weights = torch.rand(found.shape, generator=torch.Generator().manual_seed(3))
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    ours = torch.autograd.grad((found * weights).sum(), [p for _, p in named], allow_unused=True)
    wanted = [p for p in own.parameters() if p.requires_grad]
    theirs = torch.autograd.grad((expected * weights).sum(), wanted, allow_unused=True)
    for (key, _), a, b in zip(named, ours, theirs, strict=True):
        assert (a is None) == (b is None), key
        if a is not None and b is not None:
            # Relative to the tensor's largest entry: deep recurrent layers have gradients of a few thousand.
            assert float((a - b).abs().max()) <= 1e-4 * max(1.0, float(b.abs().max())), key


async def sample(engine: TorchEngine, prompts: list[list[int]], **sessions: Any) -> list[Completion]:
    wanted = [
        engine.sample(prompt, SamplingParams(4 + n, seed=n, stop_ids=(5,)), session=sessions.get(f"s{n}"))
        for n, prompt in enumerate(prompts)
    ]
    return list(await asyncio.gather(*wanted))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow if n in ("qwen3_next", "qwen3_5_text") else ())  # as nemotron_h, dearer
        for n in (*GENERIC, "qwen3_moe", "qwen3_moe, dense layers")
    ],
)
def test_the_sampler_agrees_with_the_learner(name: str) -> None:
    """Rows of different lengths that decode together, a common prefix, a second turn, and new weights."""
    model = tiny_family(name, FAMILIES[name])
    engine = TorchEngine(model, max_slots=4, max_context=128)
    ids = torch.randint(6, VOCAB, (40,), generator=torch.Generator().manual_seed(2)).tolist()
    prompts = [ids[:20], ids[:12], ids[:30], ids[:20]]
    sessions = {f"s{n}": f"episode {n}" for n in range(4)}

    async def turns() -> list[tuple[list[int], Completion]]:
        first = await sample(engine, prompts, **sessions)
        later = [[*p, *s.ids, 9, 8, 7] for p, s in zip(prompts, first, strict=True)]
        reused = engine.stats.reused_tokens
        second = await sample(engine, later, **sessions)
        if name not in RECURRENT:
            assert engine.stats.reused_tokens > reused + sum(map(len, prompts)), "the first turn was not kept"
        return [*zip(prompts, first, strict=True), *zip(later, second, strict=True)]

    for seed in (0, 7):
        if seed:
            with torch.no_grad():
                other = tiny_family(name, FAMILIES[name], seed).state_dict()
                for key, value in model.state_dict().items():
                    value.copy_(other[key])
            engine.weights_changed()
        own = plain(model)
        for prompt, sampled in asyncio.run(turns()):
            whole = torch.tensor([*prompt, *sampled.ids])
            with torch.no_grad():
                expected = alone(own, whole)[len(prompt) - 1 :]
            torch.testing.assert_close(torch.tensor(sampled.logprobs), expected, atol=2e-4, rtol=1e-4)
            assert 5 not in sampled.ids[:-1]


def test_a_seed_decides_whatever_else_is_sampled() -> None:
    model = tiny_family("gpt_oss", GENERIC["gpt_oss"])
    prompts = [list(range(10, 10 + n)) for n in (9, 17, 5)]
    together = asyncio.run(sample(TorchEngine(model, max_slots=4, max_context=64), prompts))
    fewer = asyncio.run(sample(TorchEngine(model, max_slots=1, max_context=64), prompts))
    assert [s.ids for s in together] == [s.ids for s in fewer]


def test_activations_may_be_made_again() -> None:
    model = tiny_family("gemma2", GENERIC["gemma2"])
    path = path_of(model)
    ids, positions, documents = documents_of([[12, 9]])
    select = (documents >= 0) & (positions > 0)
    gradients = []
    for recompute in (False, True):
        logprobs, _ = path.token_logprobs(ids, positions, documents, select, recompute=recompute)
        gradients.append(torch.autograd.grad(logprobs.sum(), list(model.parameters())))
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_nothing_selected_gives_empty_results() -> None:
    model = tiny_family("olmo2", GENERIC["olmo2"])
    ids, positions, documents = documents_of([[5]])
    logprobs, entropy = path_of(model).token_logprobs(ids, positions, documents, torch.zeros_like(ids).bool())
    assert logprobs.shape == entropy.shape == (0,)
    logprobs.sum().backward()
