"""Waiting for events rather than for a clock: a test ends as soon as what it waits for is so, however busy the machine.

``PATIENCE`` only bounds a wait for what never comes; no test may pass or fail by how long something takes.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 120.0
"""Seconds after which a test gives up."""


def in_threads(work: Callable[[int], Any], count: int = 8) -> None:
    """``work(0)``, ``work(1)`` and so on, each in a thread of its own, to their ends."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def alive(pid: int) -> bool:
    """Whether a process of this machine still runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(true: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Block until ``true()`` is. AssertionError after ``seconds``."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


async def happened(true: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Let other tasks run until ``true()`` is. AssertionError after ``seconds``."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.001)


async def settled(rounds: int = 200) -> None:
    """Let other tasks of this loop run as far as they get without waiting for a clock or another thread."""
    for _ in range(rounds):
        await asyncio.sleep(0)
