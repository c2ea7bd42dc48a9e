"""Samplers that give their memory back while a learner has the GPU: muarl's own engine, and what vLLM is asked for."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.config.load import load_config
from muarl.inference.base import SamplingParams, SleepingSampler
from muarl.inference.torch_engine import TorchEngine
from muarl.inference.vllm.core import VllmCore
from muarl.inference.vllm.settings import VllmSettings, engine_arguments
from muarl.learning.lora import AdaptedWeights, attach, is_adapter, merged_weights
from muarl.learning.settings import LoraSettings
from support.tiny_qwen3 import tiny

GREEDY = SamplingParams(6, temperature=0.0)
LORA = LoraSettings(rank=4, alpha=8.0)


def engine_of(model: Any, **options: Any) -> TorchEngine:
    return TorchEngine(model, max_slots=4, max_context=128, **options)


def prompt_of(length: int) -> list[int]:
    return [(11 * n + length) % 97 for n in range(length)]


@pytest.mark.parametrize("steps", ["none", "fixed"])
async def test_a_sleeping_engine_holds_neither_weights_nor_cache_and_wakes_with_new_weights(steps: str) -> None:
    model = tiny()
    engine, awake = engine_of(model, steps=steps), engine_of(model, steps=steps)
    assert isinstance(engine, SleepingSampler)
    first = await engine.sample(prompt_of(5), GREEDY, session="a")
    held: Any = engine._cached
    kept = [weakref.ref(t) for t in (held.cache.keys[0], held.weights.embedding)]
    del held
    await engine.sleep()
    await engine.sleep()
    gc.collect()
    assert [ref() for ref in kept] == [None, None]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.3)
    for one in (engine, awake):
        await one.update(lambda: model.named_parameters(), 1)
    again = await engine.sample([*prompt_of(5), *first.ids], GREEDY, session="a")
    there = await awake.sample([*prompt_of(5), *first.ids], GREEDY)
    assert again.version == 1 and again.ids == there.ids
    assert again.logprobs == pytest.approx(there.logprobs, abs=1e-5)
    assert again.logprobs != pytest.approx(first.logprobs, abs=1e-3)


async def test_a_request_wakes_an_engine_and_one_under_way_starts_again() -> None:
    model = tiny()
    engine = engine_of(model)
    expected = await engine.sample(prompt_of(7), SamplingParams(30, seed=3))
    running = asyncio.create_task(engine.sample(prompt_of(7), SamplingParams(30, seed=3)))
    while engine.stats.decode_steps < 40:
        await asyncio.sleep(0)
    await engine.sleep()
    assert (await running).ids == expected.ids and not engine.asleep
    await engine.sleep()
    assert (await engine.sample(prompt_of(7), SamplingParams(30, seed=3))).ids == expected.ids


def adapted(seed: int) -> tuple[Any, AdaptedWeights]:
    """A model with an adapter that changes something, and what its learner would send."""
    pytest.importorskip("peft")
    model = tiny()
    attach(model, LORA)
    made = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if is_adapter(name):
                parameter.copy_(torch.rand(parameter.shape, generator=made) - 0.5)
    alone = {n: p.detach() for n, p in model.named_parameters() if is_adapter(n)}

    def whole() -> Any:
        raise AssertionError("nobody asks for all weights")

    return model, AdaptedWeights(whole, lambda: alone, LORA)


async def test_an_adapter_alone_gives_what_all_merged_weights_give() -> None:
    base = tiny()
    before = {n: p.detach().clone() for n, p in base.named_parameters()}
    engine, other = engine_of(base, adapters=True), engine_of(tiny())
    for version in (1, 2):
        model, weights = adapted(version)
        await engine.update(weights, version)
        merged = {n: t.clone() for n, t in merged_weights(model, LORA)}
        await other.update(lambda m=merged: m.items(), version)
        for params in (GREEDY, SamplingParams(20, seed=version)):
            mine, theirs = await engine.sample(prompt_of(9), params), await other.sample(prompt_of(9), params)
            assert mine == theirs and mine.version == version
        for (_, mine_), (_, theirs_) in zip(tensors(engine), tensors(other), strict=True):
            assert torch.equal(mine_, theirs_)
        assert all(torch.equal(p, before[n]) for n, p in base.named_parameters()), "the base stays for the next one"


def tensors(engine: Any) -> list[tuple[str, torch.Tensor]]:
    return [(str(n), w) for n, layer in enumerate(engine._cached.weights.layers) for w in (layer.qkv, layer.down)]


async def test_another_models_adapter_is_refused_and_changes_nothing() -> None:
    engine = engine_of(tiny(), adapters=True)
    before = await engine.sample(prompt_of(4), GREEDY)
    _, weights = adapted(1)
    wrong = {n.replace("layers.1", "layers.7"): t for n, t in weights.adapter().items()}
    with pytest.raises(CheckpointError, match="another model's"):
        await engine.update(AdaptedWeights(weights.whole, lambda: wrong, LORA), 1)
    assert await engine.sample(prompt_of(4), GREEDY) == before


class FakeVllm:
    """What ``VllmCore`` asks of vLLM, noted."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.errored = False

    def __getattr__(self, name: str) -> Any:
        async def note(*args: Any, **options: Any) -> Any:
            self.asked.append(f"{name} {[*args, *options.values()]}")
            return []

        return note


def core(**settings: Any) -> tuple[VllmCore, FakeVllm]:
    fake = FakeVllm()
    return VllmCore(fake, VllmSettings("m", **settings), 100, unfiltered=True), fake


async def test_vllm_sleeps_without_its_weights_and_wakes_weights_first() -> None:
    engine, fake = core(sleep=True)
    await engine.sleep()
    await engine.sleep()
    waiting = asyncio.create_task(engine.sample([1], GREEDY))
    await asyncio.sleep(0)
    assert fake.asked == ["sleep [2]"] and not waiting.done()
    waiting.cancel()
    await engine.load(["w.safetensors"], 1)
    assert [a.split()[0] + a.split()[1] for a in fake.asked[1:]] == [
        "pause_generation['abort',", "wake_up[['weights']]", "collective_rpc['muarl_load',", "wake_up[['kv_cache']]",
        "resume_generation[]",
    ]  # fmt: skip
    fake.asked.clear()
    await engine.load(["w.safetensors"], 2)
    assert not any("wake_up" in a for a in fake.asked)


async def test_vllm_keeps_what_an_adapter_is_put_on_and_wakes_even_for_a_bad_one(tmp_path: Path) -> None:
    engine, fake = core(sleep=True, lora_rank=8)
    await engine.sleep()
    assert fake.asked == ["sleep [1]"]
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.MonkeyPatch.context() as patch:
        request = SimpleNamespace(LoRARequest=lambda name, number, folder: SimpleNamespace(lora_int_id=number))
        patch.setitem(__import__("sys").modules, "vllm", SimpleNamespace())
        patch.setitem(__import__("sys").modules, "vllm.lora", SimpleNamespace())
        patch.setitem(__import__("sys").modules, "vllm.lora.request", request)

        async def refuses(*_: Any) -> None:
            raise ValueError("rank too large")

        patch.setattr(fake, "add_lora", refuses, raising=False)
        with pytest.raises(CheckpointError, match="rank too large"):
            await engine.adapt(str(tmp_path), 1)
    assert fake.asked[-2:] == ["wake_up [['kv_cache']]", "resume_generation []"]
    assert engine.broken is None and engine.version == 0


async def test_vllm_that_cannot_sleep_says_so() -> None:
    engine, _ = core()
    with pytest.raises(ConfigError, match=r"engine\.sleep"):
        await engine.sleep()
    engine, fake = core(sleep=True)

    async def fails(**_: Any) -> None:
        raise RuntimeError("no allocator")

    fake.__dict__["sleep"] = fails
    with pytest.raises(RuntimeError):
        await engine.sleep()
    with pytest.raises(InfrastructureError, match="could not be put to sleep"):
        await engine.sample([1], GREEDY)


def test_what_cannot_sleep_is_refused_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"num_hidden_layers": 2, "num_key_value_heads": 2, "num_attention_heads": 4, "hidden_size": 128}'
    )
    with pytest.raises(ConfigError, match=r"engine\.sleep: vLLM on a CPU"):
        engine_arguments(VllmSettings(str(tmp_path), max_context=64, sleep=True))
    with pytest.raises(ConfigError, match=r"engine\.sleep: with rl\.asynchrony=one_step_off"):
        load_config("quickstart", ["engine.sleep=true", "rl.asynchrony=one_step_off", "rl.practice.repeat=0"])
    with pytest.raises(ConfigError, match=r"servers started separately stay awake"):
        load_config("quickstart", ["engine.kind=vllm", "engine.sleep=true", "engine.urls=[h:1]"])
