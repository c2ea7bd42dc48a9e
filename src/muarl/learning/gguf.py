"""GGUF files as checkpoints: read once by ``transformers``, kept as a Hugging Face folder with plain weights.

Quantised weights become the floats that they stand for, so the model is the one that llama.cpp runs, not the one that
was quantised. What ``transformers`` 5.23 gets wrong is set right here: it does not know that the vocabulary of SmolLM
("pre" of the tokenizer: smollm) takes digits apart from white space before them, so that "a  1" became other tokens.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from muarl.basics.errors import CheckpointError
from muarl.models.support import support_of

_SPLITS_KNOWN = frozenset({"", "default", "gpt-2"})
"""Names of pre-tokenizers that are those of GPT-2."""


@dataclass(frozen=True, slots=True)
class GgufFile:
    """What a GGUF file says of itself."""

    architecture: str
    name: str
    license: str
    pre_tokenizer: str
    quantisation: tuple[str, ...]
    """Its tensors' types, the most frequent first."""


def describe_gguf(file: Path) -> GgufFile:
    """Read a file's header. CheckpointError if it is no GGUF file, is cut off, or ``gguf`` is not installed."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise CheckpointError("GGUF files are read by the package gguf: pip install gguf") from None
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file")
    try:
        reader = GGUFReader(file)
        kinds = Counter(tensor.tensor_type.name for tensor in reader.tensors)
        header = GgufFile(
            architecture=_text(reader, "general.architecture"),
            name=_text(reader, "general.name"),
            license=_text(reader, "general.license"),
            pre_tokenizer=_text(reader, "tokenizer.ggml.pre"),
            quantisation=tuple(kind for kind, _ in kinds.most_common()),
        )
    except Exception as problem:  # whatever a damaged file makes the reader raise
        raise CheckpointError(f"{file}: is no whole GGUF file ({type(problem).__name__}: {problem})") from None
    if not header.architecture:
        raise CheckpointError(f"{file}: the field general.architecture, which says the model's family, is missing")
    return header


def import_gguf(
    file: Path,
    folder: Path,
    *,
    base: str = "",
    tokenizer: Path | None = None,
    dtype: Literal["float32", "bfloat16"] = "float32",
) -> str:
    """Write the model of a GGUF file as a checkpoint folder, whole or not at all.

    ``base``: what it is called in its model card; empty: as the file says. ``tokenizer``: a folder with the model's own
    tokenizer files instead of what the file holds. Returns what should be known of the result, empty if nothing.
    CheckpointError names what cannot be used, before any weight is read.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    from muarl.learning.checkpoints import load_tokenizer, saved_policy
    from muarl.learning.release import CARD, ModelNotes

    header = describe_gguf(file)
    place: dict[str, Any] = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        try:
            config = AutoConfig.from_pretrained(**place)
            support_of(config, file)
            own: Any = load_tokenizer(tokenizer) if tokenizer else AutoTokenizer.from_pretrained(**place)
            notice = "" if tokenizer else _split_as_learned(own.backend_tokenizer, header.pre_tokenizer)
            quantised = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
        except (ValueError, KeyError, NotImplementedError, ImportError, OSError) as problem:
            raise CheckpointError(
                f"{file}: transformers cannot read this {header.architecture} model ({problem}). Get the model as a "
                "Hugging Face folder instead"
            ) from problem
        plain = {k: v for k, v in config.to_dict().items() if k != "quantization_config"}
        model = AutoModelForCausalLM.from_config(type(config).from_dict(plain), dtype=getattr(torch, dtype))
        model.load_state_dict(quantised.state_dict())
        del quantised
    finally:
        if bars:
            logging.enable_progress_bar()
    if len(own) > model.get_input_embeddings().num_embeddings:
        raise CheckpointError(
            f"{file}: the tokenizer has more tokens than the model knows: give its own by --tokenizer"
        )
    name = base or header.name or file.stem
    with saved_policy(folder, model, own, notes=ModelNotes(base=name, license=header.license)) as staging:
        (staging / CARD).write_text(_card(name, header), encoding="utf-8")
    return notice


def _card(name: str, header: GgufFile) -> str:
    license_line = f"license: {header.license}\n" if header.license else ""
    return (
        f"---\nlibrary_name: transformers\n{license_line}---\n\n# {name}, from a GGUF file\n\nThe weights are what "
        f"the file's numbers ({', '.join(header.quantisation)}) stand for, written out by `muarl model`: those of the "
        "quantised model, not those that it was made from.\n"
    )


def _split_as_learned(tokenizer: Any, pre: str) -> str:
    """Make a byte-level tokenizer part texts as its merges were learned. What to know where that is not known."""
    from tokenizers import pre_tokenizers

    if pre == "smollm":
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        return ""
    if not isinstance(tokenizer.pre_tokenizer, pre_tokenizers.ByteLevel) or pre in _SPLITS_KNOWN:
        return ""
    return (
        f"transformers does not know how {pre!r} vocabularies part a text into words, and takes GPT-2's way: some "
        "texts become other tokens than the model learned. Give the folder of the model's own tokenizer by --tokenizer"
    )


def _text(reader: Any, key: str) -> str:
    field = reader.get_field(key)
    return "" if field is None else str(field.contents())
