"""Regular expressions of strangers, counted by Python's own ``re`` within a time limit.

``re`` cannot be stopped in the process that it runs in, and the ``regex`` package, which can, neither compiles every
pattern in bounded time nor finds the same (its ``\\w`` leaves out "₂"). So a small process of its own does the
counting (``matching_process.py``). Patterns without any operator but ``|``, ``.``, ``^`` and ``$`` take time in
proportion to the text, and are counted here.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from muarl.errors import InfrastructureError
from muarl.retrieval.search import SearchError

SECONDS = 1.0
"""Processor time for one pattern over all documents; an honest one takes milliseconds."""
PATIENCE = 30.0
"""Seconds of the clock after which the process is taken for dead, however busy the machine may be."""
_OPERATORS = frozenset("*+?{}[]()\\")


class Matching:
    """Counts matches. One object serves all collections of this process; the process it starts ends with this one."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._sent: dict[Hashable, int] = {}

    def counts(self, key: Hashable, texts: Sequence[str], pattern: str, *, ignore_case: bool) -> list[int]:
        """How often a pattern matches in each of the texts; what is no regular expression is looked for as it stands.

        ``key`` names the texts, which are sent to the process once. SearchError if it takes too long, or cannot be
        compiled for its size.
        """
        flags = re.IGNORECASE if ignore_case else re.NOFLAG
        if not _OPERATORS & set(pattern):
            wanted = re.compile(pattern, flags)
            return [len(wanted.findall(text)) for text in texts]
        with self._lock:
            answer = self._asked(key, texts, {"pattern": pattern, "flags": int(flags), "seconds": self.seconds})
        if "counts" in answer:
            return list(answer["counts"])
        raise SearchError(
            f"the search was stopped after {self.seconds:g} s: the pattern backtracks too much; use a simpler one"
            if "timeout" in answer
            else str(answer["error"])
        )

    def close(self) -> None:
        """End the process; it is started again when needed."""
        process, self._process, self._sent = self._process, None, {}
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()

    def _asked(self, key: Hashable, texts: Sequence[str], question: dict[str, Any]) -> dict[str, Any]:
        for last in (False, True):
            try:
                process = self._started()
                if key not in self._sent:
                    number = len(self._sent)
                    _write(process, {"keep": number, "texts": list(texts)})
                    self._sent[key] = number
                _write(process, {"count": self._sent[key], **question})
                found: dict[str, Any] = json.loads(_line(process))
                return found
            except TimeoutError:
                self.close()
                return {"timeout": True}
            except (OSError, ValueError) as problem:  # somebody has killed it
                self.close()
                if last:
                    raise InfrastructureError(
                        f"the process that matches regular expressions does not work: {problem}", boundary="world"
                    ) from None
        raise AssertionError

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid():  # a forked process needs one of its own
            script = Path(__file__).with_name("matching_process.py")
            command = [sys.executable, "-I", "-S", str(script)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})
            self._owner, self._sent = os.getpid(), {}
            atexit.register(self.close)
        return self._process


def _write(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def _line(process: subprocess.Popen[bytes]) -> bytes:
    """A whole line of the process's answer. TimeoutError if none comes."""
    assert process.stdout is not None
    parts: list[bytes] = []
    until = time.monotonic() + PATIENCE
    while not parts or not parts[-1].endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise TimeoutError
        parts.append(os.read(process.stdout.fileno(), 1 << 16))
        if not parts[-1]:
            raise OSError("it has ended")
    return b"".join(parts)


MATCHING = Matching()
"""The one of this process."""
