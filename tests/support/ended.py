"""Processes that have ended, where a test runs what they would run."""

from __future__ import annotations


class Ended:
    """Stands for a process that has ended."""

    def __init__(self, code: int) -> None:
        self.returncode = code

    def poll(self) -> int | None:
        return self.returncode
