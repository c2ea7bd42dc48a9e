"""The models of a run: the one that is trained or evaluated, and clients of those behind endpoints."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.basics.event_loop import event_loop
from muarl.basics.extras import require

if TYPE_CHECKING:  # torch and transformers take seconds to import, and not every recipe has a model in this process
    from transformers import PreTrainedTokenizerFast

    from muarl.chat_formats.base import ChatFormat
    from muarl.chat_formats.guarded import HuggingFaceTokenizer
    from muarl.config.section import EndpointConfig as EndpointSection
    from muarl.config.sections import ModelConfig
    from muarl.endpoints.client import Endpoint
    from muarl.inference.base import PolicySampler
    from muarl.learning.checkpoints import Policy


log = logging.getLogger(__name__)


def make_endpoint(section: EndpointSection) -> Endpoint:
    """The client of an endpoint section. ConfigError if it names no model."""
    from muarl.endpoints.client import Endpoint
    from muarl.endpoints.config import endpoint_config

    return Endpoint(endpoint_config(section.model_dump()))


def load_model(config: ModelConfig, *, weights: bool = True, chats: bool = True) -> Policy:
    """The model and tokenizer that a run starts from. CheckpointError names what is wrong with the folder, ConfigError
    with the device. ``weights`` False: without memory for them, where only other processes need them. ``chats`` False:
    its chat format is not asked for."""
    check = partial(check_chat_format, config=config) if chats else None
    return _load(config.checkpoint, config.device, config.held, weights=weights, check=check)


def _load(
    checkpoint: str,
    device: str,
    held: Literal["float32", "bfloat16"],
    *,
    weights: bool = True,
    check: Callable[[Path], PreTrainedTokenizerFast | None] | None = None,
) -> Policy:
    """See ``load_model``. ``check``: looks at the folder, and gives the tokenizer that it read."""
    import torch

    from muarl.learning.checkpoint_folders import check_kind
    from muarl.learning.checkpoints import load_policy

    name = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    try:
        chosen = torch.device(name)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ConfigError(f"model.device: {name!r} cannot be used on this machine; see `muarl doctor`") from None
    folder = checkpoint_folder(checkpoint)
    support = check_kind(folder)
    if support is not None and support.notice:
        log.warning("%s: %s", folder, support.notice)
    tokenizer = None if check is None else check(folder)
    return load_policy(folder, dtype=getattr(torch, held), device=chosen, weights=weights, tokenizer=tokenizer)


def check_chat_format(folder: Path, config: ModelConfig) -> PreTrainedTokenizerFast | None:
    """Check, before any weight is read, that the checkpoint's chat format is known and thinks as it is to, and say what
    should be known of it. Returns the tokenizer that was read for it. Left to whoever loads it: files that cannot be
    read."""
    from muarl.chat_formats.choice import check_thinking, choice_of
    from muarl.learning.checkpoints import load_tokenizer

    if not (folder / "tokenizer.json").is_file():
        return None
    try:
        tokenizer = load_tokenizer(folder)
    except CheckpointError:
        return None
    try:
        choice = choice_of(tokenizer, config.chat_format)
        check_thinking(choice.family, config.thinking)
    except CheckpointError as problem:
        raise CheckpointError(f"{folder}: {problem}") from None
    if choice.notice:
        log.warning("%s: %s", folder, choice.notice)
    return tokenizer


def model_format(tokenizer: HuggingFaceTokenizer, config: ModelConfig) -> ChatFormat:
    """The chat format of a run's model. CheckpointError as in ``chat_format``."""
    from muarl.chat_formats.choice import chat_format

    return chat_format(
        tokenizer,
        config.chat_format,
        thinking=config.thinking,
        earlier_thoughts=config.earlier_thoughts,
        tool_text=config.tool_text,
    )


def load_checkpoint(
    checkpoint: str | Path = "base",
    *,
    device: str = "auto",
    dtype: Literal["float32", "bfloat16"] = "float32",
) -> Policy:
    """The ``.model`` and the ``.tokenizer`` of a checkpoint.

    ``checkpoint``: a folder in Hugging Face's format with a causal language model in it, a run (its newest checkpoint),
    or one shipped with muarl, such as "base".

    ``device``: "auto" for a GPU where there is one, "cpu", "cuda:1". MissingExtra without the extra ``train``;
    CheckpointError names what is wrong with the folder, ConfigError with the device."""
    require("train", f"the checkpoint {checkpoint}")
    if dtype not in ("float32", "bfloat16"):
        raise ConfigError(f"dtype must be float32 or bfloat16, not {dtype!r}")
    return _load(str(checkpoint), device, dtype)


@contextmanager
def closed(engine: PolicySampler) -> Iterator[None]:
    """Close an engine behind the block, so that the next one finds its memory free."""
    with event_loop() as loop:
        loop.closes(engine)
        yield
