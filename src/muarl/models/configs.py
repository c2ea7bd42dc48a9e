"""A model's configuration and its empty model, the same under every release of transformers that muarl works with; and
``transformers`` without its progress bars and warnings.

From release 5 on ``rope_parameters`` says everything about rotary positions; before, ``rope_theta`` and
``rope_scaling`` did, and ``rope_parameters`` was silently ignored: a model would compute with wrong positions.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
import transformers
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from transformers import PretrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING
from transformers.utils import logging as transformers_logging

from muarl.basics.errors import CheckpointError
from muarl.models.support import DEFAULT_FAMILY

ROPE_PARAMETERS = int(transformers.__version__.partition(".")[0]) >= 5
"""Whether the installed transformers reads ``rope_parameters``."""


def model_config(fields: Mapping[str, Any]) -> PretrainedConfig:
    """The configuration that these fields of a ``config.json`` describe, whichever release wrote them; without
    ``model_type`` that of ``DEFAULT_FAMILY``. Of a model that reads images or sound too, the part that reads text.

    CheckpointError for a family that the installed transformers does not know. Whatever transformers raises for fields
    that are malformed passes through."""
    own = _floats(dict(fields))  # a copy: some releases write into what they are given
    family = own.pop("model_type", DEFAULT_FAMILY)
    if family not in CONFIG_MAPPING:
        raise CheckpointError(
            f"model_type {family!r} is not known to transformers {transformers.__version__}, and code that comes with "
            "a checkpoint is never run: install a newer transformers, or serve the model with vLLM and name it as "
            "endpoint:MODEL@URL"
        )
    config = CONFIG_MAPPING[family].from_dict(own if ROPE_PARAMETERS else _with_older_names(own))
    text = config.get_text_config(decoder=True)
    return text if type(text) is not type(config) and causal_class(text) is not None else config


def _floats(value: Any) -> Any:
    """A copy with numbers that JSON does not have, as transformers writes them: {"__float__": "Infinity"}."""
    if isinstance(value, dict):
        if value.keys() == {"__float__"}:
            return float(value["__float__"])
        return {key: _floats(inner) for key, inner in value.items()}
    return [_floats(inner) for inner in value] if isinstance(value, list) else copy.deepcopy(value)


def causal_class(config: PretrainedConfig) -> type[PreTrainedModel] | None:
    """The class that computes such a model as a causal language model; None if there is none."""
    architecture = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    return cast("type[PreTrainedModel] | None", architecture[0] if isinstance(architecture, tuple) else architecture)


def model_class(config: PretrainedConfig) -> type[PreTrainedModel]:
    """``causal_class``, or CheckpointError."""
    architecture = causal_class(config)
    if architecture is None or not architecture.__name__.endswith(("ForCausalLM", "LMHeadModel")):
        raise CheckpointError(
            f"model_type {config.model_type!r} is no causal language model to transformers {transformers.__version__}: "
            "choose one that is, or the text model of this family"
        )
    return architecture


def _with_older_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(fields)
    rope = dict(out.pop("rope_parameters", None) or {})
    for name in ("rope_theta", "partial_rotary_factor"):
        if name in rope:
            out[name] = rope.pop(name)
    if rope.get("rope_type", "default") != "default":
        out["rope_scaling"] = rope
    return out


def rotary_base(config: PretrainedConfig) -> float:
    """The base of the rotary frequencies (theta)."""
    described: Any = config
    return float(described.rope_parameters["rope_theta"] if ROPE_PARAMETERS else described.rope_theta)


def empty_model(config: PretrainedConfig) -> PreTrainedModel:
    """The model on the device "meta", without memory for its weights. Tied weights are one parameter, which not every
    release sees to there."""
    with torch.device("meta"):
        model = model_class(config)(config)
    return _tied(model)


def bare_model(config: PretrainedConfig) -> PreTrainedModel:
    """As ``empty_model``, but with its buffers (frequencies, scales, masks), which its class computes when it is made
    and no checkpoint has to hold."""
    # What the hook returns is registered instead, though its type says that it returns nothing.
    handle = register_module_parameter_registration_hook(cast(Any, _without_memory))
    try:
        model = model_class(config)(config)
    finally:
        handle.remove()
    return _tied(model)


def _without_memory(_module: nn.Module, _name: str, parameter: nn.Parameter | None) -> nn.Parameter | None:
    if parameter is None:
        return None
    return nn.Parameter(parameter.to("meta"), requires_grad=parameter.requires_grad)


def _tied(model: PreTrainedModel) -> PreTrainedModel:
    if getattr(model.config, "tie_word_embeddings", False):
        cast(Any, model.get_output_embeddings()).weight = cast(Any, model.get_input_embeddings()).weight
    return model


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Within the block, only its errors are shown."""
    before = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(before)
        if bars:
            transformers_logging.enable_progress_bar()
