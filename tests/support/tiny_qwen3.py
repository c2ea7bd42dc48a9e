"""A very small random Qwen3, dense or a mixture."""

from __future__ import annotations

from typing import Any, cast

import torch
from transformers import Qwen3ForCausalLM

from muarl.models.configs import model_class, model_config


def tiny(tied: bool = True, seed: int = 0, **changes: object) -> Qwen3ForCausalLM:
    """A random Qwen3 with uneven norms, so that a forgotten gain shows; ``model_type`` "qwen3_moe" makes a mixture."""
    torch.manual_seed(seed)
    settings = dict(
        vocab_size=97,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=48,
        max_position_embeddings=512,
        tie_word_embeddings=tied,
    )
    config = model_config({**settings, **changes})
    model: Any = model_class(config)(config)
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(torch.rand_like(value) + 0.5 if "norm" in name else torch.randn_like(value) * 0.15)
    return cast(Qwen3ForCausalLM, model.eval())
