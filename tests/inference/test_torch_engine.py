"""The engine's samples and log-probabilities are the Hugging Face model's, whatever is batched, cached or evicted."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertLMHeadModel, Qwen3Config, Qwen3ForCausalLM

from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.inference.base import Completion, Sampler, SamplingParams
from muarl.inference.torch_engine import TorchEngine

VOCAB = 61


def tiny(seed: int = 0, **changes: Any) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    settings = dict(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=48,
        max_position_embeddings=512,
        tie_word_embeddings=True,
    )
    model = Qwen3ForCausalLM(Qwen3Config(**{**settings, **changes}))
    scramble(model, seed)
    return model.eval()


def scramble(model: torch.nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            noise = torch.rand(value.shape, generator=generator)
            value.copy_(noise + 0.5 if "norm" in name else (noise - 0.5) * 0.8)


def engine_of(model: torch.nn.Module, **options: Any) -> TorchEngine:
    return TorchEngine(model, **{"max_slots": 8, "max_context": 128, **options})


def prompt_of(length: int, seed: int = 0) -> list[int]:
    rng = random.Random(f"{length} {seed}")
    return [rng.randrange(VOCAB) for _ in range(length)]


@torch.no_grad()
def forced(model: torch.nn.Module, prompt: Sequence[int], ids: Sequence[int], temperature: float = 1.0) -> torch.Tensor:
    """Teacher-forced log-probabilities of ``ids`` after ``prompt`` under the Hugging Face model."""
    logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    return (logits / temperature).log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]


def check(model: torch.nn.Module, prompt: Sequence[int], out: Completion, temperature: float = 1.0) -> None:
    expected = forced(model, prompt, out.ids, temperature)
    torch.testing.assert_close(torch.tensor(out.logprobs), expected, atol=1e-4, rtol=0)


async def together(engine: TorchEngine, prompts: Sequence[Sequence[int]], params: SamplingParams) -> list[Completion]:
    return await asyncio.gather(*(engine.sample(p, params) for p in prompts))


async def play(
    engine: TorchEngine,
    model: torch.nn.Module,
    name: str,
    *,
    turns: int = 4,
    seed: int = 0,
    system: Sequence[int] = (),
    pause: int = 3,
) -> None:
    """A session of several turns, each checked against the model as it is then."""
    rng = random.Random(f"{name} {seed}")
    context = [*system, *prompt_of(rng.randrange(1, 20), seed)]
    for _ in range(turns):
        temperature = rng.choice([1.0, 0.6, 1.5])
        params = SamplingParams(rng.randrange(1, 9), temperature=temperature, stop_ids=(3, 5, 7, 9, 11, 13))
        out = await engine.sample(context, params, session=name)
        check(model, context, out, temperature)
        context += [*out.ids, *prompt_of(rng.randrange(0, 6), rng.random())]
        for _ in range(rng.randrange(pause)):
            await asyncio.sleep(0)
    engine.close_session(name)


def test_it_is_a_sampler() -> None:
    assert isinstance(engine_of(tiny()), Sampler)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0, 0.0])
async def test_logprobs_of_mixed_lengths(temperature: float) -> None:
    model = tiny()
    engine = engine_of(model)
    prompts = [prompt_of(n) for n in (1, 2, 5, 40, 17, 33, 90, 8)]
    for prompt, out in zip(
        prompts, await together(engine, prompts, SamplingParams(12, temperature=temperature)), strict=True
    ):
        assert len(out.ids) == 12
        assert out.finish_reason == "length"
        check(model, prompt, out, temperature or 1.0)


@pytest.mark.parametrize(
    "changes", [{"tie_word_embeddings": False}, {"num_key_value_heads": 4}, {"num_key_value_heads": 1}]
)
async def test_other_shapes(changes: dict[str, Any]) -> None:
    model = tiny(**changes)
    for prompt in ([4], prompt_of(30)):
        check(model, prompt, await engine_of(model).sample(prompt, SamplingParams(10)))


async def test_sessions_of_several_turns_keep_their_cache() -> None:
    model = tiny()
    engine = engine_of(model, max_slots=16)
    system = prompt_of(25)
    await asyncio.gather(*(play(engine, model, f"s{i}", system=system) for i in range(16)))
    assert engine.sessions == 0
    assert engine.stats.reused_tokens > 3 * engine.stats.prefill_tokens
    assert engine.stats.evictions == 0


async def test_only_the_new_suffix_is_computed() -> None:
    model = tiny()
    engine = engine_of(model)
    prompt = prompt_of(30)
    first = await engine.sample(prompt, SamplingParams(5), session="a")
    assert engine.stats.prefill_tokens == 29  # the last prompt token goes through decode
    longer = [*prompt, *first.ids, 1, 2, 3]
    check(model, longer, await engine.sample(longer, SamplingParams(5), session="a"))
    assert engine.stats.prefill_tokens == 29 + 3  # the last sampled id and two of the three new ones
    changed = [*prompt[:20], 60, *prompt[21:]]  # not an extension: cut back to the common prefix
    check(model, changed, await engine.sample(changed, SamplingParams(5), session="a"))
    assert engine.stats.prefill_tokens == 32 + 9


async def test_a_shared_prefix_is_computed_once() -> None:
    model = tiny()
    engine = engine_of(model, max_slots=12)
    system = prompt_of(40)
    groups = [[*system, *prompt_of(12, seed)] for seed in range(3)]
    prompts = [g for g in groups for _ in range(4)]
    for prompt, out in zip(prompts, await together(engine, prompts, SamplingParams(6)), strict=True):
        check(model, prompt, out)
    assert engine.stats.prefill_tokens == 51 + 2 * 11
    again = await engine.sample([*groups[2], 1], SamplingParams(6))  # slots that were left still serve as sources
    check(model, [*groups[2], 1], again)
    assert (
        engine.stats.prefill_tokens == 51 + 2 * 11
    )  # decode cached the prompt's last token, and 1 goes through decode


async def test_eviction_of_idle_sessions() -> None:
    model = tiny()
    engine = engine_of(model, max_slots=3)
    await asyncio.gather(*(play(engine, model, f"s{i}", seed=i, pause=40) for i in range(12)))
    assert engine.stats.evictions > 0
    assert engine.sessions == 0


async def test_weight_updates_between_and_during_turns() -> None:
    model = tiny()
    engine = engine_of(model)
    prompt = prompt_of(30)
    first = await engine.sample(prompt, SamplingParams(5), session="a")
    assert first.version == 0
    scramble(model, 1)
    stale = await engine.sample(prompt, SamplingParams(5))
    assert stale.version == 0  # changes count only once the engine is told
    assert engine.weights_changed() == 1
    longer = [*prompt, *first.ids, 2]
    second = await engine.sample(longer, SamplingParams(5), session="a")
    assert second.version == 1
    check(model, longer, second)

    running = [asyncio.create_task(engine.sample(prompt_of(n), SamplingParams(40))) for n in (4, 9)]
    while engine.stats.decode_steps < 20:
        await asyncio.sleep(0)
    new = {n: p.detach() * 1.1 for n, p in model.named_parameters()}
    assert engine.update_weights(new) == 2
    for n, out in zip((4, 9), await asyncio.gather(*running), strict=True):
        assert (out.version, len(out.ids)) == (2, 40)
        check(model, prompt_of(n), out)
    with pytest.raises(CheckpointError, match="nonsense"):
        engine.update_weights({"nonsense": torch.zeros(1)})


async def test_greedy_equals_hugging_face_generate() -> None:
    model = tiny()
    prompts = [prompt_of(n) for n in (3, 11, 24)]
    outs = await together(engine_of(model), prompts, SamplingParams(20, temperature=0.0))
    for prompt, out in zip(prompts, outs, strict=True):
        expected = model.generate(torch.tensor([prompt]), max_new_tokens=20, do_sample=False, eos_token_id=None)
        assert list(out.ids) == expected[0, len(prompt) :].tolist()


def allowed(probabilities: torch.Tensor, top_k: int, top_p: float) -> dict[int, float]:
    """The restricted distribution, written out the slow way."""
    pairs = sorted(((p, i) for i, p in enumerate(probabilities.tolist())), reverse=True)[: top_k or None]
    total, mass, kept = sum(p for p, _ in pairs), 0.0, {}
    for p, i in pairs:
        if kept and mass >= top_p * total:
            break
        kept[i] = p
        mass += p
    return {i: p / sum(kept.values()) for i, p in kept.items()}


@pytest.mark.parametrize(
    ("top_k", "top_p", "temperature"), [(0, 1.0, 1.0), (0, 1.0, 0.6), (5, 1.0, 1.0), (0, 0.5, 1.0), (8, 0.7, 1.3)]
)
async def test_sampling_frequencies(top_k: int, top_p: float, temperature: float) -> None:
    model = tiny()
    engine = engine_of(model, max_slots=256, seed=5)
    prompt, count = prompt_of(12), 3000
    params = SamplingParams(1, temperature=temperature, top_k=top_k, top_p=top_p)
    outs = await together(engine, [prompt] * count, params)
    with torch.no_grad():
        probabilities = (model(torch.tensor([prompt])).logits[0, -1] / temperature).softmax(-1)
    expected, seen = allowed(probabilities, top_k, top_p), Counter(out.ids[0] for out in outs)
    assert set(seen) <= set(expected)
    common = {i: p for i, p in expected.items() if p * count >= 5}
    square = sum((seen[i] - p * count) ** 2 / (p * count) for i, p in common.items())
    freedom = max(len(common) - 1, 1)
    assert square < freedom + 4 * (2 * freedom) ** 0.5 + 4
    for out in outs[:50]:  # log-probabilities are the untruncated ones
        assert out.logprobs[0] == pytest.approx(float(probabilities[out.ids[0]].log()), abs=1e-4)


async def test_rows_with_different_params_in_one_batch() -> None:
    model = tiny()
    engine = engine_of(model)
    prompt = prompt_of(12)
    kinds = [
        SamplingParams(15, temperature=0.0),
        SamplingParams(15, temperature=0.7, seed=1),
        SamplingParams(15, top_k=1, seed=2),
        SamplingParams(15, temperature=3.0, top_p=1e-6, seed=3),
        SamplingParams(15, seed=4),
        SamplingParams(7, seed=4),
    ]
    outs = await asyncio.gather(*(engine.sample(prompt, k) for k in kinds))
    assert outs[0].ids == outs[2].ids == outs[3].ids
    assert outs[4].ids[:7] == outs[5].ids
    for kind, out in zip(kinds, outs, strict=True):
        check(model, prompt, out, kind.temperature or 1.0)


@pytest.mark.parametrize("temperature", [1e-20, 1e-38, 1e-300, 5e-324])
async def test_a_temperature_of_almost_0_is_greedy_and_harms_no_other_row(temperature: float) -> None:
    model, prompt = tiny(), prompt_of(12)
    greedy, other = SamplingParams(15, temperature=0.0), SamplingParams(15, seed=4)
    alone = [await engine_of(model).sample(prompt, kind) for kind in (greedy, other)]
    kinds = [SamplingParams(15, temperature=temperature), SamplingParams(15, temperature=temperature, top_p=0.5), other]
    engine = engine_of(model)
    cold, restricted, beside = await asyncio.gather(*(engine.sample(prompt, kind) for kind in kinds))
    assert cold.ids == restricted.ids == alone[0].ids
    assert set(cold.logprobs) == {0.0}
    assert beside.ids == alone[1].ids


async def test_seeds_do_not_depend_on_the_batch() -> None:
    model = tiny()
    prompts = [prompt_of(n) for n in (5, 20, 33)]
    params = [SamplingParams(25, seed=s) for s in (0, 1, -(2**80))]
    alone = [await engine_of(model, seed=i).sample(p, k) for i, (p, k) in enumerate(zip(prompts, params, strict=True))]
    busy = engine_of(model, max_slots=64, seed=99)
    noise = [asyncio.create_task(busy.sample(prompt_of(n), SamplingParams(n))) for n in range(1, 50)]
    await asyncio.sleep(0)
    outs = await asyncio.gather(*(busy.sample(p, k) for p, k in zip(prompts, params, strict=True)))
    await asyncio.gather(*noise)
    assert [o.ids for o in outs] == [a.ids for a in alone]
    assert outs[0].ids != (await busy.sample(prompts[0], SamplingParams(25, seed=1))).ids
    unseeded = [await engine_of(model, seed=3).sample(prompts[0], SamplingParams(25)) for _ in range(2)]
    assert unseeded[0].ids == unseeded[1].ids


async def test_stop_ids_and_max_tokens() -> None:
    model = tiny()
    engine = engine_of(model)
    prompt = prompt_of(9)
    free = await engine.sample(prompt, SamplingParams(30, seed=1))
    stop = free.ids[10]
    for stops in ((stop,), (60, *range(50, 58), stop)):
        out = await engine.sample(prompt, SamplingParams(30, seed=1, stop_ids=stops))
        cut = min(free.ids.index(s) for s in stops if s in free.ids)
        assert (out.ids, out.finish_reason) == (free.ids[: cut + 1], "stop")
    short = await engine.sample(prompt, SamplingParams(4, seed=1))
    assert (short.ids, short.finish_reason) == (free.ids[:4], "length")
    full = await engine.sample(prompt_of(100), SamplingParams(28))  # fills max_context to the last place
    assert len(full.ids) == 28
    check(model, prompt_of(100), full)


async def test_long_prompts_are_computed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muarl.inference.torch_engine.PREFILL_TOKENS", 16)
    model = tiny()
    engine = engine_of(model)
    prompts = [prompt_of(n, seed) for seed, n in enumerate((100, 3, 17, 33, 60))]
    for prompt, out in zip(prompts, await together(engine, prompts, SamplingParams(5)), strict=True):
        check(model, prompt, out)


@pytest.mark.parametrize(
    ("prompt", "params", "text"),
    [
        ([1] * 120, SamplingParams(9), "max_context=128"),
        ([], SamplingParams(9), "at least 1"),
        ([1], SamplingParams(0), "at least 1"),
        ([VOCAB], SamplingParams(1), "vocabulary of 61"),
        ([-1], SamplingParams(1), "vocabulary"),
        ([1], SamplingParams(1, temperature=-1.0), "temperature"),
        ([1], SamplingParams(1, temperature=float("nan")), "temperature"),
        ([1], SamplingParams(1, top_p=0.0), "top_p"),
    ],
)
async def test_requests_that_can_never_be_served(prompt: list[int], params: SamplingParams, text: str) -> None:
    engine = engine_of(tiny())
    with pytest.raises(ConfigError, match=text):
        await engine.sample(prompt, params)
    assert len((await engine.sample([1], SamplingParams(2))).ids) == 2


async def test_cancelled_callers_leave_no_trace() -> None:
    model = tiny()
    engine = engine_of(model, max_slots=4)
    tasks = [
        asyncio.create_task(engine.sample(prompt_of(n), SamplingParams(50), session=f"s{n}")) for n in range(1, 13)
    ]
    while engine.stats.decode_steps < 10:
        await asyncio.sleep(0)
    for task in tasks[::2]:  # some running, some waiting
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    for n, out in enumerate(done):
        if n % 2:
            assert isinstance(out, Completion)
            check(model, prompt_of(n + 1), out)
        else:
            assert isinstance(out, asyncio.CancelledError)
    again = await asyncio.wait_for(engine.sample(prompt_of(3), SamplingParams(50), session="s3"), 20)
    check(model, prompt_of(3), again)


async def test_a_failing_step_reaches_every_caller_and_the_engine_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny()
    engine = engine_of(model, max_slots=4)
    with monkeypatch.context() as patch:
        patch.setattr("muarl.models.decoder_cached.decode", lambda *a, **k: 1 / 0)
        outs = await asyncio.gather(
            *(engine.sample(prompt_of(5), SamplingParams(5), session=f"{i}") for i in range(10)), return_exceptions=True
        )
    assert all(isinstance(o, InfrastructureError) and o.boundary == "agent" and "division" in str(o) for o in outs)
    with monkeypatch.context() as patch:
        patch.setattr("muarl.models.decoder_cached.prefill", lambda *a, **k: 1 / 0)
        with pytest.raises(InfrastructureError):
            await engine.sample(prompt_of(20), SamplingParams(5))
    check(model, prompt_of(20), await engine.sample(prompt_of(20), SamplingParams(5)))


async def test_two_requests_of_one_session_at_once() -> None:
    model = tiny()
    engine = engine_of(model)
    prompts = [prompt_of(20), [*prompt_of(20)[:15], 1, 2]]
    outs = await asyncio.gather(*(engine.sample(p, SamplingParams(9), session="same") for p in prompts))
    for prompt, out in zip(prompts, outs, strict=True):
        check(model, prompt, out)
    assert engine.sessions == 1
    engine.close_session("same")
    engine.close_session("never opened")
    assert engine.sessions == 0


@pytest.mark.parametrize("slots", [256, 64])
async def test_two_hundred_sessions_end(slots: int) -> None:
    model = tiny()
    engine = engine_of(model, max_slots=slots)
    system = prompt_of(20)

    async def episode(i: int) -> int:
        context = [*system, i % VOCAB]
        for turn in range(4):
            out = await engine.sample(context, SamplingParams(4 + i % 5, seed=i), session=f"e{i}")
            context += [*out.ids, turn]
        engine.close_session(f"e{i}")
        return len(context)

    lengths = await asyncio.wait_for(asyncio.gather(*(episode(i) for i in range(200))), 60)
    assert lengths == [21 + 4 * (5 + i % 5) for i in range(200)]
    assert engine.sessions == 0
    if slots == 256:
        assert engine.stats.decode_steps <= 60  # at best 32: the longest episode's tokens


def test_one_engine_serves_several_event_loops() -> None:
    model = tiny()
    engine = engine_of(model)
    for _ in range(2):
        check(model, prompt_of(9), asyncio.run(engine.sample(prompt_of(9), SamplingParams(5), session="a")))


def test_other_architectures_are_refused() -> None:
    bert = BertLMHeadModel(
        BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    )
    with pytest.raises(CheckpointError, match=r"'bert' is an encoder"):
        TorchEngine(bert)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-3), (torch.bfloat16, 0.1)])
async def test_cuda_agrees_with_the_cpu(dtype: torch.dtype, tolerance: float) -> None:
    model = tiny()
    engine = engine_of(model, device="cuda", dtype=dtype)
    prompts = [prompt_of(n) for n in (1, 5, 40, 90)]
    for prompt, out in zip(prompts, await together(engine, prompts, SamplingParams(12)), strict=True):
        expected = forced(model, prompt, out.ids)
        torch.testing.assert_close(torch.tensor(out.logprobs), expected, atol=tolerance, rtol=0)
