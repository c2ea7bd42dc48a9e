"""A server process that is ours: started with a lifeline and a log, ended with everything that it started."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from muarl.basics.errors import InfrastructureError
from muarl.inference.vllm.settings import VllmSettings

TAIL = 64 << 10
REASON = re.compile(r"((?:[A-Za-z_][\w.]*(?:Error|Exception)|error): .+)")
VAGUE = ("Engine core initialization failed", "EngineDeadError", "IncompleteReadError")


class ServerProcess:
    """A child in a session of its own. Its standard input is the lifeline: it stops when ours is closed or lost."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        try:
            with open(log, "wb") as out:
                self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **environment},
                    start_new_session=True,
                )
        except OSError as problem:
            raise InfrastructureError(
                f"a server of vLLM could not be started: {problem}", boundary="agent", retryable=False
            ) from problem

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._process.poll()

    def reason(self) -> str:
        """What its log says about its end: the last error in it, else its last line."""
        try:
            with open(self.log, "rb") as file:
                file.seek(max(0, self.log.stat().st_size - TAIL))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return "its log is gone"
        found = [m.group(1) for line in lines if (m := REASON.search(line)) and not any(v in line for v in VAGUE)]
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")
        return (found[-1] if found else last)[:500]

    def ask_to_stop(self) -> None:
        """Close its lifeline."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def stop(self, grace: float) -> None:
        """Ask it to stop, wait ``grace`` seconds, then kill all of its session."""
        self.ask_to_stop()
        until = time.monotonic() + grace
        while self.ended is None and time.monotonic() < until:
            time.sleep(0.02)
        self.kill()

    def kill(self) -> None:
        """Kill it and everything that it started."""
        with contextlib.suppress(OSError):  # its group is its own: it is a session's leader
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        self.ask_to_stop()


def vllm_command(settings: VllmSettings, address: str) -> list[str]:
    """How a vLLM server is started that listens at a socket's path."""
    module = "muarl.inference.vllm.server"
    return [sys.executable, "-m", module, "--lifeline", "--listen", address, "--settings", settings.to_json()]
