"""A checkpoint of the true shape of Qwen3-0.6B with random weights, and a tokenizer of that size: nothing is fetched.

    python benches/true_shape_model.py OUT
    python benches/true_shape_model.py OUT --layers 2          # the same vocabulary over fewer layers: quick to try
    python benches/true_shape_model.py OUT --model Qwen/Qwen3-4B

The tokenizer is a byte-level BPE with Qwen3's control tokens at Qwen3's ids (151,643 to 151,668). Its merges are those
of the policies and tool descriptions of muarl's own worlds; the rest of the vocabulary is filled up with joined pairs
of them, so that it is as large, and as slow to load, as the real one. Ids from 151,669 to 151,935 have no token, as in
the real checkpoint. The same seed gives the same files. `muarl doctor OUT` accepts the folder.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from muarl.environments.registry import find
from muarl.learning.checkpoints import save_policy
from muarl.models.configs import model_class, model_config
from muarl.planning.models import ModelShape, published

BASE_VOCABULARY = 151_643
"""Entries of Qwen3's vocabulary below the control tokens."""
CONTROL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
    "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>",
    "</think>",
)  # fmt: skip
"""Qwen3's control tokens, in the order of their ids."""
MERGED = 6000
"""Most entries that come from the texts."""
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen's tokenizers part a text into words."""
WORLDS = ("retail-generated", "airline-generated")


def world_texts() -> Iterator[str]:
    """Policies and tool descriptions of muarl's worlds at size official."""
    for name in WORLDS:
        domain = find(name).make_domain("official")
        yield domain.policy_text
        for tool in domain.tool_specs():
            yield json.dumps(tool.to_openai(), ensure_ascii=False)


def make_tokenizer(seed: int = 0) -> PreTrainedTokenizerFast:
    """The tokenizer described above."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.NFC()
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trained.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=MERGED, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator(world_texts(), trainer)
    described: dict[str, Any] = json.loads(trained.to_str())
    vocabulary, merges = described["model"]["vocab"], described["model"]["merges"]
    known = sorted(vocabulary, key=vocabulary.__getitem__)
    source = random.Random(seed)
    while len(vocabulary) < BASE_VOCABULARY:
        pair = source.choice(known), source.choice(known)
        if "".join(pair) not in vocabulary:
            vocabulary["".join(pair)] = len(vocabulary)
            merges.append(list(pair))
    tokenizer = Tokenizer.from_str(json.dumps(described))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in CONTROL])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )


def true_shape(layers: int | None = None, model: str = "Qwen/Qwen3-0.6B") -> ModelShape:
    """A published Qwen3's sizes, or those over another number of ``layers``."""
    shape = published(model)
    if shape is None:
        raise SystemExit(f"{model} is no published model that is known here")
    return shape if layers is None else replace(shape, layers=layers)


def make_model(shape: ModelShape, dtype: torch.dtype, seed: int = 0) -> PreTrainedModel:
    """A model of these sizes with random weights."""
    config = model_config(shape.to_config())
    config._attn_implementation = "sdpa"
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        model: PreTrainedModel = model_class(config)(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval()


def end_replies(model: PreTrainedModel, token: int, tokens: float) -> None:
    """Change random weights so that ``token`` comes after about so many others: in one coordinate all embeddings are
    alike and large, so that it is much the same in every hidden state, and the token's own is larger."""
    table, head = (m.weight for m in (model.get_input_embeddings(), model.get_output_embeddings()))
    with torch.no_grad():
        table[:, 0] = 10.0
        ids = torch.randint(0, len(table), (1, 512), device=table.device)
        inner: Any = model.model
        height = float(inner(ids).last_hidden_state[0, :, 0].float().mean())
        head[token, 0] += math.log(len(table) / tokens) / height


def make(
    folder: Path,
    *,
    layers: int | None = None,
    seed: int = 0,
    model: str = "Qwen/Qwen3-0.6B",
    device: str = "cpu",
    reply: float | None = None,
) -> Path:
    """Write the checkpoint, in bfloat16; ``device`` draws the weights. ``reply``: tokens after which replies end, by
    and large; None: practically never."""
    tokenizer = make_tokenizer(seed)
    with torch.device(device):
        made = make_model(true_shape(layers, model), torch.bfloat16, seed)
    if reply is not None:
        end_replies(made, tokenizer.convert_tokens_to_ids("<|im_end|>"), reply)
    return save_policy(folder, made, tokenizer, dtype=torch.bfloat16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--layers", type=int, help="this number of layers instead")
    parser.add_argument("--model", default="Qwen/Qwen3-0.6B", help="the published Qwen3 whose sizes are taken")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = make(arguments.out, layers=arguments.layers, seed=arguments.seed, model=arguments.model)
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    print(f"{folder}: {true_shape(arguments.layers, arguments.model).parameters:,} parameters, {size / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
