"""Search by regular expressions, with the orders and counts of TAU2, and a time limit.

Patterns are strangers', and are counted by Python's own ``re``, which cannot be stopped in the process that it runs in;
the ``regex`` package, which can, neither compiles every pattern in bounded time nor finds the same (its ``\\w`` leaves
out "₂"). So a small process of its own does the counting (``matching_process.py``). Patterns without any operator but
``|``, ``.``, ``^`` and ``$`` take time in proportion to the text times the pattern, and are counted here if that
product is small.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import selectors
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from muarl.basics.errors import InfrastructureError
from muarl.retrieval.documents import Knowledge, OverlaidKnowledge
from muarl.retrieval.search import Hit, Search, SearchError

SECONDS = 1.0
"""Processor time for one pattern over all documents; an honest one takes milliseconds."""
PATIENCE = 30.0
"""Seconds of the clock after which the process is taken for dead, however busy the machine may be."""
KEPT = 64
"""Collections that the process keeps; the one that was not searched for longest is sent again when needed."""
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""Environment variables without which some Pythons do not start. The process gets no others, so no keys."""
_OPERATORS = frozenset("*+?{}[]()\\")
LITTLE = 1 << 25
"""Characters of a pattern times those of the texts, up to which it is counted in this process: about 0.2 s at worst,
where each of many alternatives is tried at every place."""


class MatchCounter:
    """Counts matches. One object serves all collections of this process; the process it starts ends with this one."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = self._numbers = 0
        self._sent: OrderedDict[Hashable, int] = OrderedDict()
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def counts(self, key: Hashable, texts: Sequence[str], pattern: str, *, ignore_case: bool) -> list[int]:
        """How often a pattern matches in each of the texts; what is no regular expression is looked for as it stands.

        ``key`` names the texts, which are sent to the process once. SearchError if it takes too long, or cannot be
        compiled for its size.
        """
        flags = re.IGNORECASE if ignore_case else re.NOFLAG
        if not _OPERATORS & set(pattern) and len(pattern) * sum(map(len, texts)) <= LITTLE:
            searched = re.compile(pattern, flags)
            return [len(searched.findall(text)) for text in texts]
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
        process, self._process, self._sent = self._process, None, OrderedDict()
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()

    def _asked(self, key: Hashable, texts: Sequence[str], question: dict[str, Any]) -> dict[str, Any]:
        for last in (False, True):
            try:
                process = self._started()
                self._send(process, key, texts)
                _write(process, {"count": self._sent[key], **question})
                answer: dict[str, Any] = json.loads(_line(process))
                return answer
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

    def _send(self, process: subprocess.Popen[bytes], key: Hashable, texts: Sequence[str]) -> None:
        """Give the process the texts, unless it has them."""
        if key not in self._sent:
            if len(self._sent) >= KEPT:
                _write(process, {"drop": self._sent.popitem(last=False)[1]})
            self._numbers += 1
            _write(process, {"keep": self._numbers, "texts": list(texts)})
            self._sent[key] = self._numbers
        self._sent.move_to_end(key)

    def _renew_lock(self) -> None:
        """In a forked process, where nobody may be left to give the lock back."""
        self._lock = threading.Lock()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid():  # a forked process needs one of its own
            script = Path(__file__).with_name("matching_process.py")
            command = [sys.executable, "-I", "-S", "-W", "ignore", str(script)]
            environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
            self._owner, self._sent = os.getpid(), OrderedDict()
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
    with selectors.DefaultSelector() as selector:  # select() takes no file numbers above 1023
        selector.register(process.stdout, selectors.EVENT_READ)
        while not parts or not parts[-1].endswith(b"\n"):
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError
            parts.append(os.read(process.stdout.fileno(), 1 << 16))
            if not parts[-1]:
                raise OSError("it has ended")
    return b"".join(parts)


MATCHING = MatchCounter()
"""The one of this process."""


class GrepSearch(Search):
    """Ranks documents by how often a regular expression matches in them. Titles are not searched.

    ``case_sensitive``: whether case counts.
    """

    def __init__(self, knowledge: Knowledge, *, case_sensitive: bool = False) -> None:
        self.knowledge, self.case_sensitive = knowledge, case_sensitive

    def search(self, query: str, top_k: int = 10) -> list[Hit]:
        """The documents with the most matches, and their number. What is no regular expression is searched for as it
        stands. SearchError for a pattern that takes too long."""
        if not query.strip():
            return []
        counts = zip(self.knowledge.documents, self._counts(self.knowledge, query), strict=True)
        hits = (Hit(document, float(count)) for document, count in counts if count)
        return sorted(hits, key=lambda hit: hit.score, reverse=True)[:top_k]

    def _counts(self, knowledge: Knowledge, query: str) -> list[int]:
        """How often it matches in each document."""
        if isinstance(knowledge, OverlaidKnowledge):  # the base's texts are there already
            counts = dict(enumerate(self._counts(knowledge.base, query) if knowledge.base.documents else ()))
            counts |= zip(knowledge.changed, self._counts(knowledge.own, query), strict=True)
            return list(counts.values())
        texts = knowledge.index("texts", lambda: tuple(d.content for d in knowledge.documents))
        return MATCHING.counts(knowledge.key, texts, query, ignore_case=not self.case_sensitive)
