"""How a vLLM server of ours is started, and what its log says about its end."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from muarl.basics.child import Child
from muarl.basics.errors import InfrastructureError
from muarl.inference.vllm.settings import VllmSettings

TAIL = 64 << 10
REASON = re.compile(r"((?:[A-Za-z_][\w.]*(?:Error|Exception)|error): .+)")
VAGUE = ("Engine core initialization failed", "EngineDeadError", "IncompleteReadError")


def start_server(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
    """A server as a child process, which stops when its lifeline ends. InfrastructureError if it cannot be started."""
    try:
        return Child("a vLLM server", command, environment=environment, log=log)
    except OSError as problem:
        raise InfrastructureError(
            f"a server of vLLM could not be started: {problem}", boundary="agent", retryable=False
        ) from problem


def reason(server: Child) -> str:
    """What a server's log says about its end: the last error in it, else its last line."""
    lines = server.words(TAIL).splitlines()
    errors = [m.group(1) for line in lines if (m := REASON.search(line)) and not any(v in line for v in VAGUE)]
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")
    return (errors[-1] if errors else last)[:500]


def vllm_command(settings: VllmSettings, address: str) -> list[str]:
    """How a vLLM server is started that listens at a socket's path."""
    module = "muarl.inference.vllm.server"
    return [sys.executable, "-m", module, "--lifeline", "--listen", address, "--settings", settings.to_json()]
