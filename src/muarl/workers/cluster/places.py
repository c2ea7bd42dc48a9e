"""What a run needs of a cluster's machines, and whether they have it. Arithmetic only; no Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from muarl.basics.errors import ConfigError

Machine = Mapping[str, float]
"""What a machine has: "CPU", "GPU" (numbers, parts allowed), "memory" (bytes)."""


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """``count`` equal processes: CPUs, GPUs and bytes of memory for each. ``setting``: the setting with their number,
    "" where the number cannot be chosen."""

    name: str
    count: int
    cpus: float
    gpus: float = 0.0
    memory: int = 0
    setting: str = ""

    @property
    def needs(self) -> dict[str, float]:
        """What one of them needs, as Ray wants to hear it."""
        needs = {"CPU": self.cpus, "GPU": self.gpus, "memory": float(self.memory)}
        return {k: v for k, v in needs.items() if v > 0}


def bundles(parts: Sequence[ProcessGroup]) -> list[dict[str, float]]:
    """What each process needs, in order."""
    return [part.needs for part in parts for _ in range(part.count)]


def fits(parts: Sequence[ProcessGroup], machines: Sequence[Machine]) -> bool:
    """Whether all processes find a place: the largest first, each on the first machine that has room."""
    left = [dict(m) for m in machines]
    wanted = sorted(bundles(parts), key=lambda b: (b.get("GPU", 0), b.get("CPU", 0), b.get("memory", 0)), reverse=True)
    for needs in wanted:
        for machine in left:
            if all(machine.get(k, 0.0) + 1e-9 >= v for k, v in needs.items()):
                for k, v in needs.items():
                    machine[k] -= v
                break
        else:
            return False
    return True


def check_fits(parts: Sequence[ProcessGroup], machines: Sequence[Machine]) -> None:
    """ConfigError says what is asked for, what there is, and what would fit."""
    if fits(parts, machines):
        return
    asked = "; ".join(f"{p.count} x {p.name} of {_told(p.needs)}" for p in parts)
    there = "; ".join(_told(m) for m in machines) or "nothing"
    noun = "machine has" if len(machines) == 1 else f"{len(machines)} machines have"
    raise ConfigError(f"cluster: the run asks for {asked}. The cluster's {noun} {there}. {_advice(parts, machines)}")


def _advice(parts: Sequence[ProcessGroup], machines: Sequence[Machine]) -> str:
    """Numbers that would fit, none of which could be larger: taken away first where most processes are, then given
    back where what was lacking was something else."""
    now = list(parts)
    while not fits(now, machines):
        able = [p for p in now if p.setting and p.count > 1]
        if not able:
            alone = [p for p in now if not fits([replace(p, count=1)], machines)]
            if alone:
                return f"Not even one {alone[0].name} has a place on any machine."
            return "Not even one process of each kind has a place: ask for less for each, or add a machine."
        most = max(able, key=lambda p: p.count)
        now[now.index(most)] = replace(most, count=most.count - 1)
    for n, part in enumerate(parts):
        for count in range(now[n].count + 1, part.count + 1):
            larger = [*now[:n], replace(part, count=count), *now[n + 1 :]]
            now = larger if fits(larger, machines) else now
    changed = [f"{p.setting}={p.count}" for p, before in zip(now, parts, strict=True) if p != before]
    return f"What would fit: {' '.join(changed)}."


def _told(amounts: Machine) -> str:
    said = [f"{amounts[k]:g} {k}{'s' if amounts[k] != 1 else ''}" for k in ("CPU", "GPU") if amounts.get(k)]
    if amounts.get("memory"):
        said.append(f"{amounts['memory'] / 2**30:.1f} GiB of memory")
    return " and ".join(said) or "nothing"
