"""Whether a cluster's machines have what a run needs of them: room, and the same software, since other versions show as
wrong numbers or not at all. Arithmetic only; no Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muarl.basics.errors import ConfigError

Machine = Mapping[str, float]
"""What a machine has: "CPU", "GPU" (numbers, parts allowed), "memory" (bytes)."""


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Equal processes."""

    name: str
    count: int
    """How many."""
    cpus: float
    """CPUs for each."""
    gpus: float = 0.0
    """GPUs for each."""
    memory: int = 0
    """Bytes of memory for each."""
    setting: str = ""
    """The setting with their number, "" where the number cannot be chosen."""

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
    demands = sorted(bundles(parts), key=lambda b: (b.get("GPU", 0), b.get("CPU", 0), b.get("memory", 0)), reverse=True)
    for needs in demands:
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
    asked = "; ".join(f"{p.count} x {p.name} of {_in_words(p.needs)}" for p in parts)
    there = "; ".join(_in_words(m) for m in machines) or "nothing"
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


def _in_words(amounts: Machine) -> str:
    said = [f"{amounts[k]:g} {k}{'s' if amounts[k] != 1 else ''}" for k in ("CPU", "GPU") if amounts.get(k)]
    if amounts.get("memory"):
        said.append(f"{amounts['memory'] / 2**30:.1f} GiB of memory")
    return " and ".join(said) or "nothing"


Software = Mapping[str, str]


def probe() -> Callable[[], dict[str, str]]:
    """A function that says what this process would run: versions of python, ray, torch and muarl, a digest of muarl's
    source files, and why muarl cannot be imported, if it cannot.

    Functions within functions travel by value, so that it runs where there is another muarl or none.
    """

    def software() -> dict[str, str]:
        import hashlib
        import platform
        from importlib import import_module, metadata
        from pathlib import Path

        versions = {"python": ".".join(platform.python_version_tuple()[:2])}
        for name in ("ray", "torch"):
            try:
                versions[name] = metadata.version(name).partition("+")[0]
            except metadata.PackageNotFoundError:
                versions[name] = "none"
        try:
            muarl = import_module("muarl")  # whichever is there
            root = Path(str(muarl.__file__)).parent
            digest = hashlib.sha256()
            for path in sorted(p for package in root.parent.glob("muarl*") for p in package.rglob("*.py")):
                digest.update(path.relative_to(root.parent).as_posix().encode() + b"\0" + path.read_bytes())
            versions["muarl"] = str(getattr(muarl, "__version__", "unknown"))
            versions["source"] = digest.hexdigest()[:12]
        except Exception as problem:
            versions["muarl"] = "none"
            versions["problem"] = f"{type(problem).__name__}: {problem}"
        return versions

    return software


def check_same(here: Software, there: Sequence[tuple[str, Software]]) -> None:
    """ConfigError names the first of ``there`` (machine, software) that differs from ``here``, and how."""
    for name, software in there:
        if software.get("muarl") == "none":
            why = software.get("problem", "")
            raise ConfigError(
                f"cluster.address: {name} has no muarl that can be imported ({why}): install muarl {here['muarl']} in "
                "the environment in which `ray start` runs there"
            )
        differs = [k for k in ("muarl", "python", "ray", "torch") if software.get(k) != here.get(k)]
        if differs:
            theirs = ", ".join(f"{k} {software.get(k)}" for k in differs)
            ours = ", ".join(f"{k} {here.get(k)}" for k in differs)
            raise ConfigError(
                f"cluster.address: {name} has {theirs}, and this machine {ours}: install the same on both"
            )
        if software.get("source") != here.get("source"):
            raise ConfigError(
                f"cluster.address: {name} has muarl {software['muarl']} with other source files than this machine "
                f"({software.get('source')} there, {here.get('source')} here): install the same commit on both"
            )


def named(node: Mapping[str, Any]) -> str:
    """A machine's name in messages, from what Ray says of it."""
    address, host = node.get("NodeManagerAddress"), node.get("NodeManagerHostname")
    return f"the node {host} ({address})" if host and host != address else f"the node {address}"
