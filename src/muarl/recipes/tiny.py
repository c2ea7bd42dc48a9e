"""The tiny model that muarl trains on two cores: its tokenizer and its architecture.

The architecture is Qwen3's. The tokenizer is a byte-level BPE like Qwen3's, so that it can write any text, with one
addition that makes learning from scratch feasible: every id, name and option of a tiny world, and the fixed pieces of
chat format, tool calls and stock phrases, are single tokens. Copying an id is then a one-token induction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from muarl.chat_formats.qwen3 import CONTROL_TOKENS
from muarl.environments.environment import Environment
from muarl.models.configs import model_class, model_config
from muarl.models.support import DEFAULT_FAMILY
from muarl.recipes.tiny_pieces import untangled
from muarl.types.chat import ToolSpec

EMBEDDING_SPREAD = 0.1
"""Standard deviation of fresh embeddings. At the usual 0.02, what all ids have in common soon outweighs what tells one
from another, and ids are never copied right."""
WORD_PIECES = 900
"""Size of the byte-level BPE below the added tokens: 256 bytes and the words of the training texts."""
WORD_PIECES_BY_WORDS = 4000
"""The same where sentences and tools' names are read as words."""
CALL_PIECES = ('\n{"name": "', '", "arguments": {"', '": "', '": ["', '", "', '"], "', '"}}\n', '"]}}\n')
"""What calls have in common, whatever the tool."""
SPARE = "<|spare_{}|>"
"""Tokens that stand in no text."""


def system_pieces(policy: str, tools: Sequence[ToolSpec]) -> list[str]:
    """The chat format's fixed text around turns: system block and roles."""
    pieces = [f"system\n{policy}\n\n", "user\n", "assistant\n", "<think>\n\n</think>\n\n", "user"]
    pieces += ["# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"]
    pieces += ["You are provided with function signatures within <tools></tools> XML tags:\n<tools>"]
    pieces += ["\n" + json.dumps(t.to_openai(), ensure_ascii=False) for t in tools]
    pieces += ["\n</tools>\n\nFor each function call, return a json object with function name and arguments within "]
    return [*pieces, " XML tags:\n", '\n{"name": <function-name>, "arguments": <args-json-object>}\n']


def format_pieces(policy: str, tools: Sequence[ToolSpec]) -> list[str]:
    """The chat format's fixed text: system block and tool calls."""
    pieces = system_pieces(policy, tools)
    joints = set()
    for tool in tools:
        names = list(tool.parameters["properties"])
        lists = {n for n in names if tool.parameters["properties"][n].get("type") == "array"}
        for name in names:
            opening = f'"{name}": ["' if name in lists else f'"{name}": "'
            pieces.append(f'\n{{"name": "{tool.name}", "arguments": {{{opening}')
            joints |= {f'", {opening}', f'"], {opening}'}
    pieces += [*sorted(joints), '"}}\n', '"]}}\n', '", "']
    return list(dict.fromkeys(pieces))


def pieces_of(world: Environment) -> list[str]:
    """All that becomes one token each for a generated domain's tiny size: its words, and the format's."""
    domain = world.make_domain()
    pieces = [*world.entities(), *format_pieces(domain.policy_text, domain.tool_specs()), *world.phrases()]
    return list(dict.fromkeys(pieces))


def value_pieces_of(world: Environment) -> list[str]:
    """What becomes one token each where sentences and tools' names are read as words: values, and the system block."""
    domain = world.make_domain()
    return [*world.entities(), *system_pieces(domain.policy_text, domain.tool_specs()), *CALL_PIECES]


def pieces_of_all(worlds: Sequence[Environment], texts: Iterable[str], *, words: bool = False) -> list[str]:
    """The pieces of one environment, or of several: then so that in ``texts`` none reaches into another's values.
    ``words``: see ``make_tokenizer``."""
    of = value_pieces_of if words else pieces_of
    pieces = list(dict.fromkeys(piece for world in worlds for piece in of(world)))
    if len(worlds) < 2:
        return pieces
    return untangled(pieces, list(dict.fromkeys(value for world in worlds for value in world.entities())), texts)


def make_tokenizer(
    worlds: Environment | Sequence[Environment], texts: Sequence[str], spare: int = 0, *, words: bool = False
) -> PreTrainedTokenizerFast:
    """Train the tokenizer: BPE over the words of ``texts`` (a word keeps its space); the pieces of all environments are
    added tokens, and so are ``spare`` more.

    ``words``: only values and the system block are pieces; sentences and tools' names, split at underscores, are words.
    """
    pieces = pieces_of_all([worlds] if isinstance(worlds, Environment) else worlds, texts, words=words)
    tokenizer = Tokenizer(models.BPE())
    splits = r"[^\W_]+ ?|_+ ?|[^\w\s]+ ?|\s+" if words else r"\w+ ?|[^\w\s]+ ?|\s+"
    word = pre_tokenizers.Split(Regex(splits), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [word, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=WORD_PIECES_BY_WORDS if words else WORD_PIECES,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    probe = Tokenizer.from_str(tokenizer.to_str())
    probe.add_tokens([AddedToken(p, normalized=False) for p in pieces])
    tokenizer.train_from_iterator(_between_pieces(probe, set(pieces), texts), trainer)
    return with_pieces(tokenizer, pieces, spare)


def with_pieces(tokenizer: Tokenizer, pieces: Sequence[str], spare: int = 0) -> PreTrainedTokenizerFast:
    """A tokenizer of words with the control tokens, these pieces and ``spare`` more tokens added to it."""
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in CONTROL_TOKENS])
    tokenizer.add_tokens([AddedToken(p, normalized=False) for p in (*pieces, *map(SPARE.format, range(spare)))])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )


def _between_pieces(probe: Tokenizer, pieces: set[str], texts: Iterable[str]) -> Iterable[str]:
    """What is left of the texts between the pieces: only that needs word tokens."""
    for text in texts:
        last = 0
        encoding = probe.encode(text, add_special_tokens=False)
        for start, end in encoding.offsets:
            if text[start:end] in pieces:
                if text[last:start]:
                    yield text[last:start]
                last = end
        if text[last:]:
            yield text[last:]


def make_model(
    vocabulary: int, *, hidden: int = 128, layers: int = 3, heads: int = 4, seed: int = 0, words: bool = False
) -> PreTrainedModel:
    """A tiny model with random weights: feed-forward 2x ``hidden``, half as many key/value heads, tied embeddings.
    Where it reads ``words`` it has room for twice as many tokens."""
    import torch

    torch.manual_seed(seed)
    fields = dict(
        model_type=DEFAULT_FAMILY,
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=max(1, heads // 2),
        head_dim=hidden // heads,
        max_position_embeddings=4096 if words else 2048,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
    )
    config = model_config(fields)
    config._attn_implementation = "sdpa"
    model: Any = model_class(config)(config)
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(EMBEDDING_SPREAD / cast(Any, config).initializer_range)
    return cast(PreTrainedModel, model)
