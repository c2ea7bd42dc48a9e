"""A server like muarl.inference.vllm.server whose engine is three lines long, for tests of everything around vLLM.

Run as a program: ``python fake_vllm.py ADDRESS [--fail WORDS]``; the token comes from the environment.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import safe_open

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.inference.base import Completion, SamplingParams
from muarl.inference.requests import EngineStats

SLOW, CRASH, HANG, REFUSE = 9001, 9002, 9003, 9004
"""As a prompt's last id: wait for ever, end the process, block it, refuse."""


class FakeCore:
    """Answers with this process's id, what the weights hold, and the adapter's length; counts what was cancelled."""

    broken = None

    def __init__(self) -> None:
        self.version = 0
        self.stats = EngineStats()
        self.value = 0.0
        self.adapter = b""

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams) -> Completion:
        self.stats.requests += 1
        if prompt_ids[-1] == REFUSE:
            raise ConfigError("max_tokens: too many")
        if prompt_ids[-1] == CRASH:
            os._exit(3)
        if prompt_ids[-1] == HANG:
            time.sleep(600)
        if prompt_ids[-1] == SLOW:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                self.stats.evictions += 1
                raise
        return Completion((os.getpid(), len(self.adapter)), (-self.value, -0.5), "stop", self.version)

    async def load(self, paths: Sequence[str], version: int) -> None:
        names: list[str] = []
        for path in paths:
            with safe_open(path, framework="numpy") as file:
                names += file.keys()
                if "value" in file.keys():  # noqa: SIM118
                    self.value = float(file.get_tensor("value").sum())
        if "value" not in names:
            raise CheckpointError("the weights lack value")
        self.version, self.adapter = version, b""

    async def adapt(self, folder: str, version: int) -> None:
        self.adapter = (Path(folder) / "adapter_model.safetensors").read_bytes()
        self.version = version

    async def join(self, info: Mapping[str, Any]) -> None:
        raise ConfigError("no NCCL here")

    async def receive(self, parts: AsyncIterator[Mapping[str, Any]], version: int) -> None:
        self.value = float(sum([len(part["names"]) async for part in parts]))
        self.version = version

    async def sleep(self) -> None:
        self.value = -1.0

    async def check(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


def main() -> int:
    from muarl.basics.child import Lifeline
    from muarl.inference.vllm.server import GRACE, TOKEN, bind, serve

    if "--fail" in sys.argv:
        sys.stderr.write("INFO: loading\nRuntimeError: " + sys.argv[-1] + "\nINFO: bye\n")
        return 1
    lifeline = Lifeline(GRACE)
    asyncio.run(serve(FakeCore(), bind(sys.argv[1]), os.environ[TOKEN], lifeline))
    return 0


if __name__ == "__main__":
    sys.exit(main())
