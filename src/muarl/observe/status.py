"""How a run stands, as its status.json says it, and whether the process that wrote so is still there.

A process that was killed (``kill -9``, a power cut, out of memory) cannot say so: its status keeps saying "running".
So a status names the process by machine, number and starting time, and whoever reads it looks whether that one lives.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

RUNNING, FINISHED, INTERRUPTED, FAILED, KILLED = "running", "finished", "interrupted", "failed", "killed"
"""States. The last is never written: it is what a reader makes of "running" where that process is gone."""

ENDED = "ended"

RESUMABLE = ("quickstart", "base", "train", "sft", "sft-user", "train-user", "eval", "coldstart")
"""Commands with ``--resume``."""


def this_process() -> dict[str, Any]:
    """What names this process: ``pid``, ``host``, and ``process``, when it started (None where nobody knows)."""
    pid = os.getpid()
    return {"pid": pid, "host": platform.node(), "process": _started(pid)}


def state_of(status: Mapping[str, Any]) -> str:
    """The state that a status.json tells, "killed" where it says "running" and its process is gone, "unknown" where it
    tells none. A process of another machine is taken at its word, and so is one that nobody can look for."""
    state = str(status.get("state") or "unknown")
    return KILLED if state == RUNNING and _gone(status) else state


def now() -> str:
    """The time as status.json has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def resume_command(command: str | None, folder: Path) -> str | None:
    """What takes a run up again; None for a run that no command of muarl's made."""
    if command not in RESUMABLE:
        return None
    import shlex

    try:
        path = folder.absolute().relative_to(Path.cwd())
    except ValueError:
        path = folder
    return f"muarl {command} --resume {shlex.quote(str(path))}"


def _gone(status: Mapping[str, Any]) -> bool:
    pid, host = status.get("pid"), status.get("host")
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0 or host not in (None, platform.node()):
        return False
    if host is None:  # an older run does not say where it was, so a process of that number may be anyone's
        return False
    started = _started(pid)
    if started is None:
        return not process_exists(pid)
    return status.get("process") not in (None, started)


def process_exists(pid: int) -> bool:
    """Whether there is a process of that number on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is there, and somebody else's
        return True
    return True


def _started(pid: int) -> str | None:
    """When a process started, as text that no other process of that number has; ENDED for one that nobody has waited
    for, None where there is none."""
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None if Path("/proc/self/stat").exists() else _started_elsewhere(pid)
    return ENDED if ticks[0] in "ZX" else f"{_boot()}:{ticks[19]}"


@lru_cache(maxsize=1)
def _boot() -> str:
    """Which start of the machine this is: ticks count from there."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _started_elsewhere(pid: int) -> str | None:
    """The same by ``ps``, where there is no /proc (macOS)."""
    try:
        listing = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return listing.stdout.strip() or None
