"""What muarl can do with a model, told from the fields of its config.json, and which releases of ``transformers`` each
path works with. Light: no torch, nothing loaded.

Two paths compute a model. The *own* path (``decoder``, ``decoder_cached``) is fast and knows one kind of layer, which
several families share. The *generic* path (``generic``, ``generic_cached``) runs the classes of ``transformers``: exact
for every family, and slower. Who asks what a model allows asks ``support_of``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from muarl.basics.errors import CheckpointError

GENERIC_NEEDS = "5.17"
"""The oldest release with which the generic path passes its tests: before, classes kept some families' recurrent state
in other ways, and described masks otherwise. The own path needs no more than pyproject.toml asks for."""


def too_old_for_generic() -> str:
    """Why the installed transformers cannot run the generic path, and what to do; empty if it can, or if there is
    none here: others will run it."""
    try:
        here = version("transformers")
    except PackageNotFoundError:
        return ""
    if _numbers(here) >= _numbers(GENERIC_NEEDS):
        return ""
    return (
        f"models of this kind are computed by transformers, of release {GENERIC_NEEDS} or later, and {here} is "
        f"installed: pip install 'transformers>={GENERIC_NEEDS}'"
    )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release)[:2])


PathKind = Literal["own", "generic"]

DEFAULT_FAMILY = "qwen3"
"""The family of the small models that muarl makes itself."""
OWN_FAMILIES: Mapping[str, str] = {
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
}
"""Families whose layers the own path computes, by ``model_type``, with their class in ``transformers``."""
OWN_MIXTURES = frozenset({"qwen3_moe"})
"""Those of them whose feed-forward blocks are mixtures of experts."""
VERIFIED_FAMILIES = (
    "cohere2", "deepseek_v3", "gemma2", "gemma3_text", "glm4", "glm4_moe", "gpt_oss", "granite", "lfm2", "minimax_m2",
    "mixtral", "nemotron_h", "olmo2", "olmo3", "phi3", "qwen2_moe", "qwen3_5_text", "qwen3_next", "seed_oss",
    "smollm3",
)  # fmt: skip
"""Families of the generic path that tests/models/test_families.py compares with ``transformers``."""
ROPE_TYPES = ("default", "linear", "llama3", "yarn")
"""Ways of scaling rotary positions that depend on no length: their frequencies are the model's own for ever."""
LENGTH_DEPENDENT = ("dynamic", "longrope")
"""Ways of scaling under which the same tokens mean something else in a longer context."""
NOT_CAUSAL = frozenset({
    "albert", "bert", "bert-generation", "big_bird", "camembert", "convbert", "data2vec-text", "deberta", "deberta-v2",
    "distilbert", "electra", "ernie", "megatron-bert", "modernbert", "mpnet", "rembert", "reformer", "roberta",
    "roberta-prelayernorm", "roc_bert", "roformer", "xlm", "xlm-roberta", "xlm-roberta-xl", "xlnet", "xmod",
})  # fmt: skip
"""Encoders: a token sees those behind it, so that nothing can be sampled from them token by token."""
OWN_STATE = frozenset({"falcon_mamba", "mamba", "mamba2", "rwkv", "xlstm"})
"""Families whose classes keep their state in a cache of their own kind, which muarl's engine cannot hold."""


@dataclass(frozen=True, slots=True)
class Support:
    """What muarl can do with one model. LoRA adapters, and a learner sharded over processes, are possible
    everywhere."""

    family: str
    """Its ``model_type``."""
    path: PathKind
    """Which one computes it."""
    reason: str
    """Why not the own path (empty on it)."""
    verified: bool
    """Its family is compared with ``transformers`` by the test suite."""

    @property
    def prefix_sharing(self) -> bool:
        """Beginnings that documents have in common are computed once."""
        return self.path == "own"

    @property
    def packing(self) -> Literal["flat", "rows"]:
        """How documents of a micro-batch are kept apart: "flat" in one run of tokens without padding, "rows" one a row,
        with others of about its length."""
        return "flat" if self.path == "own" else "rows"

    @property
    def sampling(self) -> bool:
        """muarl's engine can generate with it."""
        return self.family not in OWN_STATE

    @property
    def fixed_steps(self) -> bool:
        """Its decode steps can be recorded (CUDA graphs)."""
        return not self.unrecorded

    @property
    def unrecorded(self) -> str:
        """Why decode steps cannot be recorded; empty if they can."""
        if self.path == "generic":
            return self.reason
        return "which experts a token goes to changes the sizes of products" if self.family in OWN_MIXTURES else ""

    @property
    def notice(self) -> str:
        """What a run says at its start; empty for the own path."""
        if self.path == "own":
            return ""
        checked = "" if self.verified else " This family is not in muarl's test suite: compare a few outputs first."
        return (
            f"Models of type {self.family!r} are computed by transformers: exact, and slower than the own path of "
            f"{', '.join(OWN_FAMILIES)} ({self.reason}).{checked}"
        )


def support_of(config: Any, where: object = "config.json") -> Support:
    """The support of a model by its configuration: the fields of a config.json, or a configuration of ``transformers``.

    CheckpointError, which begins with ``where`` and says family, reason and remedy, for a model that cannot be used.
    """
    family = _get(config, "model_type")
    if not isinstance(family, str) or not family:
        raise CheckpointError(
            f"{where}: model_type is {_short(family)}, which says no family: give the config.json that belongs to the "
            "weights"
        )
    problem = _refused(config, family)
    if problem is not None:
        raise CheckpointError(f"{where}: {problem}")
    reason = off_the_own_path(config)
    if reason and (problem := too_old_for_generic()):
        raise CheckpointError(f"{where}: model_type {_short(family)} ({reason}): {problem}")
    return Support(family, "generic" if reason else "own", reason, not reason or family in VERIFIED_FAMILIES)


@dataclass(frozen=True, slots=True)
class LayerParts:
    """What a family's layers have besides norms and matrices: norms of query and key heads; biases of queries, keys
    and values, of attention's output, and of the feed-forward block."""

    head_norms: bool
    qkv_bias: bool
    out_bias: bool
    feed_forward_bias: bool


def layer_parts(config: Any) -> LayerParts:
    """The parts of a model's layers, for families of the own path."""
    family, configured = _get(config, "model_type"), bool(_get(config, "attention_bias", False))
    # Mistral has none, and Qwen2 the first kind, whatever is asked.
    asked = configured and family in ("qwen3", "qwen3_moe", "llama")
    return LayerParts(
        family in ("qwen3", "qwen3_moe"),
        asked or family == "qwen2",
        asked,
        family == "llama" and bool(_get(config, "mlp_bias", False)),
    )


def off_the_own_path(config: Any) -> str:
    """What about a model the own path does not compute; empty if it computes all of it."""
    family = str(_get(config, "model_type"))
    if family not in OWN_FAMILIES:
        return "another kind of layer"
    rope = _rope(config)
    differs = {
        "attention_dropout": bool(_get(config, "attention_dropout", 0)),
        f"hidden_act {_get(config, 'hidden_act', 'silu')}": _get(config, "hidden_act", "silu") != "silu",
        "sliding-window layers": _slides(config, family),
        "experts in tensors of their own, before release 5 of transformers": family in OWN_MIXTURES
        and not _holds_experts_together(),
        f"rope_type {_rope_type(rope)}": _rope_type(rope) not in ROPE_TYPES,
        "rotary positions on a part of each head": _get(config, "partial_rotary_factor", 1.0) != 1.0
        or rope.get("partial_rotary_factor", 1.0) != 1.0,
    }
    return ", ".join(name for name, is_so in differs.items() if is_so)


def _refused(config: Any, family: str) -> str | None:
    """Why a model cannot be used at all, and what to do."""
    quantised = _get(config, "quantization_config")
    if quantised:
        how = quantised.get("quant_method") if isinstance(quantised, Mapping) else None
        return (
            f"the weights are quantised ({_short(how or 'quantization_config')}), and muarl computes with plain ones: "
            "take the checkpoint that they were quantised from. To use this one as it is, serve it with vLLM and name "
            "it as endpoint:MODEL@URL"
        )
    if _get(config, "is_encoder_decoder") is True:
        return f"model_type {_short(family)} has an encoder and a decoder: choose a causal (decoder-only) model"
    if family in NOT_CAUSAL:
        return f"model_type {_short(family)} is an encoder, which samples no tokens: choose a causal model"
    kind = _rope_type(_rope(config))
    if kind in LENGTH_DEPENDENT:
        return (
            f"model_type {_short(family)} with rope_type {kind!r}: its rotary frequencies depend on the length of the "
            "context, so that sampler and learner would disagree about the same tokens: use a checkpoint with "
            f"rope_type {', '.join(ROPE_TYPES[:-1])} or {ROPE_TYPES[-1]}, or remove the scaling for contexts within "
            "the original length"
        )
    return None


def _rope(config: Any) -> Mapping[str, Any]:
    rope = _get(config, "rope_parameters") or _get(config, "rope_scaling")
    return rope if isinstance(rope, Mapping) else {}


def _rope_type(rope: Mapping[str, Any]) -> str:
    return str(rope.get("rope_type") or rope.get("type") or "default")


def _slides(config: Any, family: str) -> bool:
    """Whether some layer sees only the last tokens. Its absence means what it means to ``transformers``."""
    if family == "qwen3_moe":  # all layers or none
        return bool(_get(config, "use_sliding_window", False)) and _get(config, "sliding_window", 4096) is not None
    types = _get(config, "layer_types")
    if types:
        return any(kind != "full_attention" for kind in types)
    if family == "mistral":
        return _get(config, "sliding_window", 4096) is not None
    if not _get(config, "use_sliding_window", False) or _get(config, "sliding_window", 4096) is None:
        return False
    first, layers = _get(config, "max_window_layers", 28), _get(config, "num_hidden_layers", 32)
    return not (isinstance(first, int) and isinstance(layers, int)) or first < layers


@cache
def _holds_experts_together() -> bool:
    """Whether the installed transformers holds all experts of a layer in one tensor; yes where there is none."""
    try:
        return int(metadata.version("transformers").partition(".")[0]) >= 5
    except metadata.PackageNotFoundError:
        return True


def _get(config: Any, name: str, default: Any = None) -> Any:
    return config.get(name, default) if isinstance(config, Mapping) else getattr(config, name, default)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]}..."
