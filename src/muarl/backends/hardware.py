"""What a run would find: GPUs, of the Ray cluster that it names or of this machine, and memory that is free."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muarl.basics.errors import MuarlError
from muarl.planning.assumptions import GIB, GPUS, Assumptions

SECONDS = 60.0
"""That a cluster has to answer a dry run."""

RAY_MARK = Path("ray") / "ray_current_cluster"
"""The file by which Ray's ``auto`` finds the cluster of this machine, below the folder for temporary files."""


@dataclass(frozen=True, slots=True)
class Machines:
    """GPUs that were seen."""

    where: str
    """Who was asked."""
    name: str
    """As the driver or Ray calls them."""
    kind: str | None
    """As the planner calls them, None if it does not know them."""
    gpus: int
    """How many there are on all ``nodes`` together."""
    nodes: int
    gpu_gib: float | None = None
    """A GPU's memory, None if unknown."""
    node_gib: float | None = None
    """A machine's own memory, None if unknown."""

    def assumed(self, assumptions: Assumptions) -> Assumptions:
        """The assumptions with what was seen, but for what somebody has replaced."""
        memory = None if "gpu" in assumptions.replaced else self.gpu_gib
        per_node = -(-self.gpus // self.nodes)
        return assumptions.unless_replaced(
            gpu=self.kind, gpu_gib=memory, node_gib=self.node_gib, gpus_per_node=per_node
        )

    def __str__(self) -> str:
        memory = "" if self.gpu_gib is None else f" with {self.gpu_gib:.0f} GiB"
        unknown = "" if self.kind else "; the planner does not know this kind, and takes h200's speed"
        return f"{self.gpus} x {self.name}{memory} on {self.nodes} machine(s), as {self.where} says{unknown}"


def look(address: str | None) -> Machines | None:
    """The GPUs of a cluster (``cluster.address``), else of this machine; None if none can be seen."""
    machines = None
    if address not in (None, "local") and (address != "auto" or _ray_runs_here()):
        machines = _of_ray(str(address))
    return machines or _of_cuda()


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
    kind = kind_of(first.name)
    count = torch.cuda.device_count()
    return Machines("CUDA", first.name, kind, count, 1, first.total_memory / GIB, pages / GIB)


def free_memory() -> int:
    """Bytes that this process may still take, swap and what the system can drop included; 0 where it does not say."""
    free = 0
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line)
        free = sum(int(fields[name].split()[0]) * 1024 for name in ("MemAvailable", "SwapFree"))
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            used = int(Path("/sys/fs/cgroup/memory.current").read_text())
            stat = dict(line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines())
            free = min(free, int(limit) - used + int(stat.get("inactive_file", 0)) + int(stat.get("active_file", 0)))
    except (OSError, ValueError, KeyError):
        pass  # what is known so far is still true
    if not free and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(free, 0)


def total_memory() -> int:
    """Bytes of memory that this machine, or this process's control group, has; 0 where it does not say."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8").strip()
        return total if limit == "max" else min(total, int(limit))
    except (OSError, ValueError):
        return total


def free_on_device(device: str) -> tuple[bool, int]:
    """Whether a run's device is a GPU, and how many bytes are free on it; 0 where nobody knows."""
    if device == "cpu":
        return False, free_memory()
    import torch

    if not torch.cuda.is_available():
        return False, free_memory()
    try:
        free, _ = torch.cuda.mem_get_info(torch.device("cuda" if device == "auto" else device))
    except (RuntimeError, AssertionError, ValueError):
        return True, 0  # whoever uses the device says what is wrong with it
    return True, int(free)
