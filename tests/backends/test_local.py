"""What the sections engine and learner say reaches the engine, and what does not go together is refused."""

from __future__ import annotations

import pytest
import torch

from muarl.backends.local import torch_sampler
from muarl.backends.models import load_model
from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.parts import Compute
from muarl.config.scale import adapter_room


@pytest.mark.parametrize(
    ("words", "dtype"),
    [
        ([], torch.float32),
        (["model.dtype=bfloat16"], torch.bfloat16),
        (["engine.dtype=bfloat16"], torch.bfloat16),
        (["engine.dtype=float32", "model.dtype=bfloat16"], torch.float32),
    ],
)
def test_the_number_format_of_generation(words: list[str], dtype: torch.dtype) -> None:
    config = load_config("quickstart", ["model.device=cpu", *words])
    engine = torch_sampler(load_model(config.model), Compute.of(config))
    assert engine._cached.weights.head.dtype == engine._cached.cache.keys[0].dtype == dtype
    assert engine._fixed is None


def test_generation_on_a_gpu_is_in_bfloat16_unless_it_is_said() -> None:
    engine = load_config("quickstart").engine
    assert engine.computes_in("float32", on_gpu=True) == "bfloat16"
    assert engine.computes_in("float32", on_gpu=False) == "float32"
    assert load_config("quickstart", ["engine.dtype=float32"]).engine.computes_in("bfloat16", on_gpu=True) == "float32"


@pytest.mark.parametrize(
    ("words", "room"),
    [
        ([], 0),
        (["learner.lora={rank: 16}"], 0),  # muarl's own engine takes whole weights
        (["engine.kind=vllm"], 0),
        (["engine.kind=vllm", "learner.lora={rank: 16}"], 16),
        (["engine.kind=vllm", "learner.lora={rank: 16}", "engine.lora_rank=32"], 32),
        (["engine.kind=vllm", "learner.lora={rank: 16}", "engine.lora_rank=0"], 0),
        (["engine.kind=vllm", "learner.lora={rank: 16}", "engine.servers=1", "engine.update=nccl"], 0),
        (["engine.kind=vllm", "learner.lora={rank: 16}", "engine.urls=['there:8000']"], 0),
    ],
)
def test_room_for_adapters(words: list[str], room: int) -> None:
    config = load_config("quickstart", words)
    assert adapter_room(config.engine, config.learner) == room


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["engine.kind=vllm", "learner.lora={rank: 16}", "engine.lora_rank=8"], "engine.lora_rank is 8, too little"),
        (
            ["engine.kind=vllm", "engine.servers=1", "engine.update=nccl", "engine.lora_rank=8"],
            "nccl sends all weights",
        ),
        (["engine.kind=vllm", "engine.compile=compile"], "vLLM records its own steps"),
        (["engine.compile=fixed"], "engine.compile"),
    ],
)
def test_what_does_not_go_together(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config("quickstart", words)


def test_graphs_on_a_cpu_are_refused() -> None:
    config = load_config("quickstart", ["model.device=cpu", "engine.compile=cuda-graphs"])
    with pytest.raises(ConfigError, match=r"engine\.compile is cuda-graphs, and the model is on cpu"):
        torch_sampler(load_model(config.model), Compute.of(config))
