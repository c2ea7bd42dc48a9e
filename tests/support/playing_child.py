"""A child of a pool that needs no model: its episodes say which weights they were played with.

``python -m support.playing_child SOCKET WEIGHTS``. What a request's task asks for by its tag ``does`` happens: "fail"
(a Python error), "refuse" (a ConfigError), "die" and "die once" (SIGKILL), "wait" (for ever).
"""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rollout import PlayEpisode
from muarl.types.episode import Episode, StopReason, Verdict
from muarl.workers.processes.child import run


class Stubs:
    """``Players`` whose episodes are worth what the first weight (float32) is."""

    def __init__(self, told: Mapping[str, Any], descriptor: int) -> None:
        if "broken" in told:
            raise ConfigError(str(told["broken"]))
        self._weights = mmap.mmap(descriptor, 0)  # read without torch, so that children start quickly
        self._folder = Path(told["folder"])
        self._taken = (-1, 0.0)
        self._fresh = self._resting = 0

    async def take(self, version: int, *, fresh: bool) -> None:
        self._taken = version, struct.unpack_from("f", self._weights)[0]
        self._fresh += fresh

    async def rest(self) -> None:
        self._resting += 1

    def playing(self, cast: Mapping[str, Any]) -> PlayEpisode:
        async def play(request: RolloutRequest) -> Episode:
            does = request.task.tags.get("does")
            begun = self._folder / f"begun {request.episode_id.replace('/', ' ')}"
            again = begun.exists()
            begun.touch()
            if does == "fail":
                raise KeyError("the table of orders")
            if does == "refuse":
                raise ConfigError("the table of orders is empty")
            if does == "die" or (does == "die once" and not again):
                os.kill(os.getpid(), signal.SIGKILL)
            if does == "wait":
                try:
                    await asyncio.Event().wait()
                finally:
                    (self._folder / "cut off").touch()
            await asyncio.sleep(0)
            version, weight = self._taken
            return Episode(
                request.episode_id,
                request.task.id,
                request.task.domain,
                [],
                StopReason.USER_STOP,
                seed=request.seed,
                group=request.group,
                agent=str(cast["agent"]),
                verdict=Verdict(weight),
                tags={"version": version, "fresh": self._fresh, "rested": self._resting, "pid": os.getpid()},
            )

        return play

    async def aclose(self) -> None:
        (self._folder / f"closed {os.getpid()}").touch()


if __name__ == "__main__":
    run(int(sys.argv[1]), lambda told: Stubs(told, int(sys.argv[2])))
