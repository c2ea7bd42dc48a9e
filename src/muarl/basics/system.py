"""What ran the run: versions of software, and the memory that the run took."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from muarl.basics.version import __version__

LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "renderers", "numpy", "aiohttp", "vllm", "ray")


def versions() -> dict[str, Any]:
    """Versions of python, muarl, the libraries that are installed, and the platform. No paths, no environment."""
    out: dict[str, Any] = {
        "muarl": _version("muarl") or "unknown",
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": usable_cores(),
    }
    out.update({name: v for name in LIBRARIES if (v := _version(name)) is not None})
    if commit := git_commit():
        out["git"] = commit
    return out


def _version(name: str) -> str | None:
    return __version__ if name == "muarl" else _installed(name)


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def usable_cores() -> float:
    """How many cores this process may use: its affinity, and the limit of its control group if that is lower."""
    try:
        cores = float(len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS
        cores = float(os.cpu_count() or 1)
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return cores if quota == "max" else min(cores, int(quota) / int(period))
    except (OSError, ValueError):
        return cores


def shared_memory() -> Path | None:
    """This machine's shared memory, where it looks like a folder that can be written to."""
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and os.access(folder, os.W_OK) else None


def git_commit() -> str | None:
    """The commit of muarl's own checkout, "+changes" if its files were changed; None where muarl is not in a checkout.

    A package installed inside somebody else's repository is not tracked there, so that commit is never taken.
    """
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(here), *words], capture_output=True, text=True, timeout=5, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    commit = git("rev-parse", "HEAD")
    if commit is None:
        return None
    changed = git("status", "--porcelain", "--untracked-files=no")
    return f"{commit}+changes" if changed else commit


def peak_memory_bytes() -> int:
    """Peak resident memory of this process and its children, in bytes.

    This process's own peak, plus the own peaks of its living descendants (Linux); or the largest finished child's peak,
    if that was more. (A finished child's figure includes what its parent held at the fork, so it is never added.)
    """
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes on macOS, KiB on Linux
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    finished = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    return int(max(own + sum(_high_water(pid) for pid in _descendants(os.getpid())), finished))


def _descendants(pid: int) -> list[int]:
    """Living descendants by /proc; empty where there is none."""
    descendants: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in map(int, listing.read_text().split()):
                descendants += [child, *_descendants(child)]
        except OSError:  # it ended meanwhile
            continue
    return descendants


def _high_water(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
