"""A checkpoint of the true shape of Qwen3-0.6B with random weights, and a tokenizer of that size: nothing is fetched.

    python benches/true_shape_model.py OUT
    python benches/true_shape_model.py OUT --layers 2          # the same vocabulary over fewer layers: quick to try

The tokenizer is a byte-level BPE with Qwen3's control tokens at Qwen3's ids (151,643 to 151,668). Its merges are those
of the policies and tool descriptions of muarl's own worlds; the rest of the vocabulary is filled up with joined pairs
of them, so that it is as large, and as slow to load, as the real one. Ids from 151,669 to 151,935 have no token, as in
the real checkpoint. The same seed gives the same files. `muarl doctor OUT` accepts the folder.
"""

from __future__ import annotations

import argparse
import json
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


def true_shape(layers: int | None = None) -> ModelShape:
    """Qwen3-0.6B's sizes, or those over another number of ``layers``."""
    shape = published("Qwen/Qwen3-0.6B")
    assert shape is not None
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


def make(folder: Path, *, layers: int | None = None, seed: int = 0) -> Path:
    """Write the checkpoint, in bfloat16."""
    tokenizer = make_tokenizer(seed)
    model = make_model(true_shape(layers), torch.bfloat16, seed)
    return save_policy(folder, model, tokenizer, dtype=torch.bfloat16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--layers", type=int, help="layers instead of 28")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = make(arguments.out, layers=arguments.layers, seed=arguments.seed)
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    print(f"{folder}: {true_shape(arguments.layers).parameters:,} parameters, {size / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
