"""A tiny model that continues in other worlds: its words are kept, and the pieces of the new worlds are added.

The vocabulary is that of the new run's worlds alone: pieces of others would only cost time, and whoever wants to keep
them names their worlds, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from muarl.basics.errors import CheckpointError
from muarl.chat_formats.qwen3 import CONTROL_TOKENS
from muarl.learning.checkpoints import Policy
from muarl.models.configs import model_class, model_config
from muarl.recipes.tiny import SPARE, with_pieces

LARGEST = 100_000
"""Tokens of a tiny model's vocabulary, at most."""
_SPARE = re.compile(re.escape(SPARE).replace(r"\{\}", r"\d+"))


def check_extendable(policy: Policy) -> None:
    """CheckpointError unless the checkpoint is one of ``muarl base``'s kind: a small vocabulary with our control tokens
    over a BPE of bytes, and tied embeddings."""
    tokenizer, config = policy.tokenizer, cast(Any, policy.model.config)
    vocabulary = tokenizer.get_vocab()
    small = len(vocabulary) <= LARGEST and config.tie_word_embeddings and config.vocab_size == len(vocabulary)
    if not small or any(token not in vocabulary for token in CONTROL_TOKENS):
        raise CheckpointError(
            f"base.checkpoint: {policy.path}: only a checkpoint that `muarl base` made can be continued with other "
            "words; train a pretrained model as it is (muarl sft, muarl train)"
        )


def extended_tokenizer(
    tokenizer: PreTrainedTokenizerFast, pieces: Sequence[str], spare: int
) -> PreTrainedTokenizerFast:
    """The words of a tokenizer with these pieces as its added tokens, instead of those that it had."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    return with_pieces(Tokenizer.from_str(json.dumps(state | {"added_tokens": []})), pieces, spare)


def extended_model(policy: Policy, tokenizer: PreTrainedTokenizerFast, seed: int) -> PreTrainedModel:
    """The model for another vocabulary: rows of its embeddings for tokens that it knows are kept. New pieces take over
    those of spare tokens, which it has learned to copy; when there is none left, they are drawn as ``like_pieces``
    says."""
    before, after = policy.tokenizer.get_vocab(), tokenizer.get_vocab()
    rows = cast(Tensor, cast(Any, policy.model).model.embed_tokens.weight).detach()
    old = learned_pieces(policy.tokenizer)
    generator = torch.Generator().manual_seed(seed)
    table = like_pieces(rows[old], len(after), generator)
    spare = spare_tokens(policy.tokenizer)
    learned, left = before.keys() - set(policy.tokenizer.convert_ids_to_tokens(spare)), iter(spare)
    for token, place in sorted(after.items(), key=lambda item: item[1]):
        row = before[token] if token in learned else next(left, None)
        if row is not None:
            table[place] = rows[row]
    config = model_config(policy.model.config.to_dict() | {"vocab_size": len(after)})
    config._attn_implementation = "sdpa"
    model: Any = model_class(config)(config)
    with torch.no_grad():
        other_parameters = {name: p for name, p in policy.model.named_parameters() if "embed_tokens" not in name}
        for name, parameter in model.named_parameters():
            parameter.copy_(other_parameters.get(name, table))
    return cast(PreTrainedModel, model)


def learned_pieces(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """The ids of the pieces that texts have: added tokens, but no control tokens and no spare ones."""
    added = tokenizer.get_added_vocab()
    return sorted(i for token, i in added.items() if token not in CONTROL_TOKENS and not _SPARE.fullmatch(token))


def spare_tokens(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """The ids of the tokens that stand in no text."""
    return sorted(i for token, i in tokenizer.get_added_vocab().items() if _SPARE.fullmatch(token))


def like_pieces(rows: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """``count`` random rows with mean and spread, dimension by dimension, of the rows [pieces, width] of pieces: as far
    from one another as those are, and as near to what all have in common."""
    return rows.mean(0) + rows.std(0) * torch.randn(count, rows.shape[1], generator=generator)
