"""Child processes: how they are started, what they said last, and that none outlives its parent.

``Child`` is the parent's side. A child has a session of its own, so that an interrupt at the keyboard is its parent's
to handle, and whatever it starts ends with it. Its standard input is its lifeline, which ends when the parent does,
however that comes; the child notices by a ``Lifeline``.

Two other kinds of children have little of this process's environment, and talk by their pipes alone: servers of MCP
(``domains/mcp/pipes.py``), of which every byte is counted, and the search that counts matches (``retrieval/grep.py``).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

GRACE = 5.0
"""Seconds that a process has to end when asked, or to be gone once its connection is."""
TAIL = 2000
"""Bytes of a child's last words that are told."""


class Child:
    """A process that runs ``command``, started at once. OSError if it cannot be.

    ``name``: in messages. ``environment``: variables besides this process's. ``log``: the file that takes what it
    writes, None: one without a name. ``descriptors``: of files that it inherits. ``connection``: this end of a socket
    pair, closed to ask the child to end; None: its lifeline is.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
        descriptors: Sequence[int] = (),
        connection: socket.socket | None = None,
    ) -> None:
        self.name, self._connection = name, connection
        self._log = tempfile.TemporaryFile() if log is None else open(log, "w+b")  # noqa: SIM115 (closed by `end`)
        try:
            self._process = subprocess.Popen(
                list(command),
                pass_fds=descriptors,
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except BaseException:
            self._log.close()
            raise

    @classmethod
    def module(
        cls,
        name: str,
        module: str,
        *arguments: object,
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
    ) -> Child:
        """``python -m module FILE_DESCRIPTOR *arguments``: the descriptor is of the socket by which it talks with this
        process, whose end is ``connection``."""
        mine, theirs = socket.socketpair()
        with theirs:
            return cls(
                name,
                [sys.executable, "-m", module, str(theirs.fileno()), *map(str, arguments)],
                environment={"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **(environment or {})},
                descriptors=[theirs.fileno(), *descriptors],
                connection=mine,
            )

    @property
    def connection(self) -> socket.socket:
        """This end of its socket pair."""
        assert self._connection is not None, f"{self.name} has no connection"
        return self._connection

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._process.poll()

    def words(self, size: int = TAIL) -> str:
        """The last ``size`` bytes of what it wrote."""
        descriptor = self._log.fileno()
        # Where the child writes stays as it is: it has the same place in the file.
        output = os.pread(descriptor, size, max(0, os.fstat(descriptor).st_size - size))
        return output.decode(errors="replace").strip()

    def fate(self) -> str:
        """How it ended, and its last words: what follows its name in a message. It has a moment to end."""
        try:
            code = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        said = self.words()
        return f"{how}; its last words: {said}" if said else how

    def cut_lifeline(self) -> None:
        """Close its standard input, as the end of this process would."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def ask_to_end(self) -> None:
        """Close the connection, or where there is none the lifeline."""
        if self._connection is None:
            self.cut_lifeline()
            return
        with suppress(OSError):  # at once, not when an event loop comes to it
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def end(self, seconds: float = GRACE) -> None:
        """Ask it to end, and kill it with all that it started if it has not after ``seconds``. Safe to call again."""
        if self._log.closed:  # it was ended before
            return
        self.ask_to_end()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, seconds))
        kill_group(self.pid)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self.cut_lifeline()
        self._log.close()


def end_all(children: Iterable[Child], seconds: float = GRACE) -> None:
    """End children, all at once."""
    running = [*children]
    for child in running:
        child.ask_to_end()
    until = time.monotonic() + seconds
    for child in running:
        child.end(until - time.monotonic())


def kill_group(leader: int) -> None:
    """Kill the process group of this leader, if there is any of it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


class Lifeline:
    """The child's side: notices the end of whoever started this process.

    From then this process has ``grace`` seconds to stop before everything in its group is killed; with 0 it ends at
    once, whatever it is doing.
    """

    def __init__(self, grace: float = 0.0) -> None:
        self._grace = grace
        self._ended = False
        self._then: list[Callable[[], object]] = []
        threading.Thread(target=self._watch, daemon=True, name="lifeline").start()

    def then(self, work: Callable[[], object]) -> None:
        """Call it at the end, at once if that has come."""
        self._then.append(work)
        if self._ended:
            work()

    def _watch(self) -> None:
        with suppress(OSError):
            while os.read(0, 1):
                pass
        if not self._grace:
            os._exit(1)
        self._ended = True
        killer = threading.Timer(self._grace, lambda: os.killpg(0, signal.SIGKILL))
        killer.daemon = True
        killer.start()
        for work in list(self._then):
            with suppress(RuntimeError):  # its loop has ended already
                work()
