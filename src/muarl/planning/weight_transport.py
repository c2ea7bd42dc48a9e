"""How a run's weights get from its learner to its samplers, as its configuration says. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muarl.config.parts import Compute
from muarl.config.scale import sends_adapter

Kind = Literal["object_store", "broadcast", "ipc", "local"]
WORDS = {
    "object_store": "through the cluster's object store (the machines' own memory)",
    "broadcast": "by torch.distributed from the learner's first process to all samplers",
    "ipc": "through one buffer that learner and samplers see",
}
TOOLS = {"broadcast": ("gloo", "NCCL"), "ipc": ("shared memory", "CUDA IPC")}


@dataclass(frozen=True, slots=True)
class WeightTransport:
    """How weights travel from the learner to the samplers."""

    kind: Kind
    """How weights travel on a cluster, or "local": without one, as ``why`` says."""
    why: str
    """What decided it."""
    adapter: bool = False
    """An adapter travels alone."""
    on_gpu: bool = False
    """They go from GPU to GPU."""

    @property
    def direct(self) -> bool:
        """Whether they need not pass the object store."""
        return self.kind in ("broadcast", "ipc")

    @property
    def text(self) -> str:
        """In words."""
        what = "the adapter alone" if self.adapter else "all weights"
        if self.kind == "local":
            return f"{what}, {self.why}"
        tool = f" ({TOOLS[self.kind][self.on_gpu]})" if self.kind in TOOLS else ""
        return f"{what}, {WORDS[self.kind]}{tool}: {self.why}"


def weight_transport(compute: Compute) -> WeightTransport | None:
    """How this run's weights reach its samplers; None where the sampler reads the learner's own memory."""
    if compute.clustered:
        return cluster_transport(compute)
    if compute.engine.kind == "vllm":
        return vllm_transport(compute)
    if compute.learner.kind == "fsdp":
        return WeightTransport("local", "one tensor after another from the learner's processes to this one")
    return None


def cluster_transport(compute: Compute) -> WeightTransport:
    """How weights travel between a cluster's processes."""
    c = compute.cluster
    alone = sends_adapter(compute.engine, compute.learner, clustered=True)
    on_gpu = c.learner_gpus > 0 and c.sampler_gpus > 0 and compute.model.device != "cpu"
    if c.update != "auto":
        return WeightTransport(c.update, f"cluster.update={c.update}", alone, on_gpu)
    if alone:
        return WeightTransport("object_store", "an adapter is little", alone)
    if compute.engine.kind == "vllm":
        return WeightTransport("object_store", "vLLM's own processes read them from this machine's memory")
    if not on_gpu:
        return WeightTransport("object_store", "learner and samplers do not both have GPUs")
    if not c.shares_gpus:
        return WeightTransport("broadcast", "learner and samplers have GPUs of their own", on_gpu=True)
    if c.fits_one_gpu and compute.learner.processes == 1 and not c.spread:
        return WeightTransport("ipc", "learner and samplers have parts of a GPU", on_gpu=True)
    return WeightTransport("object_store", "learner and samplers may share some GPUs and not others")


def vllm_transport(compute: Compute) -> WeightTransport:
    """How weights travel to vLLM's engines on this machine, or wherever ``engine.urls`` says."""
    engine = compute.engine
    alone = sends_adapter(engine, compute.learner, clustered=False)
    if engine.update != "auto":
        return WeightTransport("local", f"engine.update={engine.update}", alone)
    if engine.urls:
        how = "over the connection" if engine.update_folder is None else "as files in engine.update_folder"
    elif engine.update_folder is not None:
        how = "as files in engine.update_folder"
    elif engine.servers and compute.learner.kind == "torch" and not alone:
        how = "by NCCL if learner and servers have GPUs of their own, otherwise as files in this machine's memory"
    else:
        how = "as files in this machine's memory"
    return WeightTransport("local", how, alone)
