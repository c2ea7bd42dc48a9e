"""A very small random model of many families: what their config.json would say, and nothing from the network."""

from __future__ import annotations

from typing import Any, cast

import torch
from transformers import PreTrainedModel

from muarl.models.configs import model_class, model_config

VOCAB = 97
COMMON: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
EXPERTS: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
OWN: dict[str, dict[str, Any]] = {
    "qwen3": {},
    "qwen3, biases": {"attention_bias": True},
    "qwen2": {"tie_word_embeddings": True},
    "llama": {"rope_parameters": LLAMA3},
    "llama, biases": {"attention_bias": True, "mlp_bias": True},
    "mistral": {"sliding_window": None},
    "qwen3_moe": {**EXPERTS, "norm_topk_prob": True},
    "qwen3_moe, dense layers": {
        **EXPERTS, "num_hidden_layers": 4, "mlp_only_layers": [3], "decoder_sparse_step": 2, "norm_topk_prob": False,
    },
}  # fmt: skip
"""Of the own path, by family and what is special about the model."""
ROUTED: dict[str, Any] = {
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
}  # fmt: skip
LINEAR: dict[str, Any] = {
    "num_hidden_layers": 4, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
}  # fmt: skip
GENERIC: dict[str, dict[str, Any]] = {
    "qwen3_next": {**LINEAR, **EXPERTS, "shared_expert_intermediate_size": 32},
    "qwen3_5_text": LINEAR,
    "qwen2_moe": {**EXPERTS, "shared_expert_intermediate_size": 32},
    "gpt_oss": {
        "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8, "intermediate_size": 32,
        "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "original_max_position_embeddings": 64,
            "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        },
    },
    "glm4": {},
    "glm4_moe": ROUTED,
    "gemma2": {"sliding_window": 8},
    "gemma3_text": {"sliding_window": 8, "num_hidden_layers": 6},
    "deepseek_v3": {
        **ROUTED, "num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 16, "v_head_dim": 16, "head_dim": 8,
    },
    "nemotron_h": {
        **ROUTED, "num_hidden_layers": 4, "layers_block_type": ["mamba", "mlp", "attention", "moe"],
        "mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16, "n_groups": 2, "chunk_size": 16,
        "moe_shared_expert_intermediate_size": 32,
    },
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "minimax_m2": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "olmo2": {},
    "olmo3": {"sliding_window": 8},
    "phi3": {},
    "smollm3": {},
    "seed_oss": {},
    "granite": {"logits_scaling": 4.0},
    "cohere2": {"sliding_window": 8, "num_hidden_layers": 4},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
}  # fmt: skip
"""Of the generic path, by ``model_type``: all that muarl says it has verified."""


def tiny_family(name: str, fields: dict[str, Any], seed: int = 0) -> PreTrainedModel:
    """A random model with uneven norms and biases, so that one that is forgotten shows. ``name`` begins with its
    ``model_type``."""
    torch.manual_seed(seed)
    config = model_config({"model_type": name.partition(",")[0], **COMMON, **fields})
    model: Any = model_class(config)(config)
    with torch.no_grad():
        for key, value in model.named_parameters():
            if not value.is_floating_point():
                continue
            uneven = "norm" in key and value.ndim == 1
            value.copy_(torch.rand_like(value) + 0.5 if uneven else torch.randn_like(value) * 0.15)
    return cast(PreTrainedModel, model.eval())
