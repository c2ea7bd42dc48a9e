"""A small llama as a GGUF file, as llama.cpp's converter writes one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from support.chat_families import CHATML

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def words() -> Tokenizer:
    """A byte-level tokenizer whose merges were learned with digits taken apart, as SmolLM's."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=list(CONTROL), initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator(["Order  12 of  2024\n\n3 costs  7 more,  says the shop"] * 4, trainer)
    return raw


def write_llama(file: Path, *, pre: str = "smollm", kind: str = "F32", architecture: str = "llama") -> LlamaForCausalLM:
    """Write the file; the model that it stands for, but for what quantising takes away."""
    tokenizer = words()
    vocabulary = tokenizer.get_vocab_size()
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=True, rms_norm_eps=1e-5,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    out = gguf.GGUFWriter(file, architecture)
    out.add_name("Tiny")
    out.add_license("apache-2.0")
    out.add_block_count(2)
    out.add_context_length(256)
    out.add_embedding_length(64)
    out.add_feed_forward_length(96)
    out.add_head_count(4)
    out.add_head_count_kv(2)
    out.add_rope_freq_base(10000.0)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(vocabulary)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(pre)
    tokens = [tokenizer.id_to_token(i) for i in range(vocabulary)]
    out.add_token_list(tokens)
    out.add_token_types([gguf.TokenType.CONTROL if t in CONTROL else gguf.TokenType.NORMAL for t in tokens])
    out.add_token_merges(merges(tokenizer))
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_pad_token_id(2)
    out.add_chat_template(CHATML)
    for name, value in model.state_dict().items():
        if name != "lm_head.weight":
            _add(out, name, value.numpy(), kind, config)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return model


def merges(tokenizer: Tokenizer) -> list[str]:
    """The merges, as a GGUF file has them."""
    import json

    found = json.loads(tokenizer.to_str())["model"]["merges"]
    return [m if isinstance(m, str) else " ".join(m) for m in found]


def _add(out: Any, name: str, value: np.ndarray, kind: str, config: LlamaConfig) -> None:
    plain = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if name in plain:
        to = plain[name]
    else:
        _, _, layer, rest = name.split(".", 3)
        to = f"blk.{layer}.{_NAMES[rest.removesuffix('.weight')]}.weight"
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(to.split(".")[-2])
    if heads:  # llama.cpp rotates neighbours, transformers halves
        value = value.reshape(heads, 2, value.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(value.shape)
    if value.ndim == 1 or kind == "F32":
        out.add_tensor(to, value.astype(np.float32))
        return
    quantised = gguf.GGMLQuantizationType[kind]
    out.add_tensor(to, gguf.quants.quantize(value.astype(np.float32), quantised), raw_dtype=quantised)
