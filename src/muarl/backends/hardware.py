"""Which GPUs a run would find: of the Ray cluster that it names, or of this machine; what a dry run plans with."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muarl.basics.errors import MuarlError
from muarl.config import RunConfig
from muarl.planning.assumptions import GIB, GPUS, Assumptions

SECONDS = 60.0
"""That a cluster has to answer a dry run."""

RAY_MARK = Path("ray") / "ray_current_cluster"
"""The file by which Ray's ``auto`` finds the cluster of this machine, below the folder for temporary files."""


@dataclass(frozen=True, slots=True)
class Machines:
    """GPUs that were seen. ``where``: who was asked. ``name``: as the driver or Ray calls them, ``kind``: as the
    planner does, None if it does not know them. ``gpus`` on ``nodes`` machines. ``gpu_gib``, ``node_gib``: a GPU's
    memory and a machine's own, None if unknown."""

    where: str
    name: str
    kind: str | None
    gpus: int
    nodes: int
    gpu_gib: float | None = None
    node_gib: float | None = None

    def assumed(self, assumptions: Assumptions) -> Assumptions:
        """The assumptions with what was seen, but for what somebody has replaced."""
        memory = None if "gpu" in assumptions.given else self.gpu_gib
        per_node = -(-self.gpus // self.nodes)
        return assumptions.unless_given(gpu=self.kind, gpu_gib=memory, node_gib=self.node_gib, gpus_per_node=per_node)

    def __str__(self) -> str:
        memory = "" if self.gpu_gib is None else f" with {self.gpu_gib:.0f} GiB"
        unknown = "" if self.kind else "; the planner does not know this kind, and takes h200's speed"
        return f"{self.gpus} x {self.name}{memory} on {self.nodes} machine(s), as {self.where} says{unknown}"


def look(config: RunConfig) -> Machines | None:
    """The GPUs of the cluster that the configuration names, else of this machine; None if none can be seen."""
    address = config.cluster.address
    found = None
    if address not in (None, "local") and (address != "auto" or _ray_runs_here()):
        found = _of_ray(str(address))
    return found or _of_cuda()


def of_resources(nodes: Sequence[Mapping[str, float]]) -> Machines | None:
    """The GPUs among the resources that Ray's nodes name; of the most frequent kind where there are several."""
    having = [node for node in nodes if node.get("GPU", 0) >= 1]
    if not having:
        return None
    marks = Counter(m.partition(":")[2] for node in having for m in node if m.startswith("accelerator_type:"))
    name = marks.most_common(1)[0][0] if marks else "GPU of a kind that Ray does not name"
    memory = min(node.get("memory", 0.0) for node in having) / GIB or None
    small = 39.0 if "40G" in name else None
    gpus = int(sum(node["GPU"] for node in having))
    return Machines("Ray", name, kind_of(name), gpus, len(having), small, memory)


def kind_of(name: str) -> str | None:
    """The planner's name of a GPU, such as "h100" for "NVIDIA H100 80GB HBM3"."""
    return next((kind for kind in GPUS if kind in name.lower()), None)


def _ray_runs_here() -> bool:
    folder = Path(os.environ.get("RAY_TMPDIR") or "/tmp")
    return bool(os.environ.get("RAY_ADDRESS")) or (folder / RAY_MARK).is_file()


def _of_ray(address: str) -> Machines | None:
    try:
        from muarl.workers.cluster.runtime import resources_of

        return of_resources(resources_of(address, SECONDS))
    except MuarlError:
        return None  # a run says in full why a cluster cannot be joined; one that is not up yet is no mistake


def _of_cuda() -> Machines | None:
    import torch

    if not torch.cuda.is_available():
        return None
    first = torch.cuda.get_device_properties(0)
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = kind_of(first.name)
    count = torch.cuda.device_count()
    return Machines("CUDA", first.name, found, count, 1, first.total_memory / GIB, pages / GIB)
