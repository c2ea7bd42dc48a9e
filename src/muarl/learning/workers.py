"""``MultiProcessLearner``: a sharded learner in several processes of this machine, behind the ``Learner`` protocol.

The processes are children of this one and talk to it over socket pairs that they inherit. Every call goes to all of
them at once; it ends when all have answered, when one fails or vanishes, or at the deadline, and in the latter cases
none is left running. Children end by themselves when this process is gone.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError, MuarlError
from muarl.learning.checkpoint_folders import check_kind
from muarl.learning.checkpoints import check_sums
from muarl.learning.lora import AdaptedWeights
from muarl.learning.packing import Sample
from muarl.learning.process_group import ShardingConfig, host_store, versions
from muarl.learning.settings import LearnerConfig
from muarl.learning.state_files import LearnerProgress, StateReader, global_generators, restore_generators
from muarl.learning.steps import Metrics
from muarl.models.weights import as_stored

ERRORS: dict[str, type[Exception]] = {
    "CheckpointError": CheckpointError,
    "ConfigError": ConfigError,
    "MuarlError": MuarlError,
    "ValueError": ValueError,
}
"""What a child may raise that leaves the group as it was, so that it continues."""
GRACE = 10.0
"""Seconds that the others have to report the same problem, or a process to end when asked."""
TAIL = 2000
CPU = torch.device("cpu")


class MultiProcessLearner:
    """``processes`` children, each a ``ShardedLearner`` on ``checkpoint``; see there. ``port``: of their meeting place
    on the loopback interface, 0 for any. Use it from one thread at a time.

    Errors of the learner itself (ConfigError, CheckpointError, ValueError) pass through, and it can be used further.
    InfrastructureError, with the process's number and its last words, if one fails otherwise, ends, or does not answer
    within ``sharding.deadline`` seconds: all are then ended, and the learner is of no more use.
    """

    def __init__(
        self,
        checkpoint: Path,
        settings: LearnerConfig,
        sharding: ShardingConfig | None = None,
        *,
        processes: int = 2,
        port: int = 0,
    ) -> None:
        if processes < 1:
            raise ConfigError(f"learner.processes: must be at least 1, got {processes}")
        self._sharding = sharding or ShardingConfig()
        if self._sharding.device == "cuda" and processes > torch.cuda.device_count():
            raise ConfigError(
                f"learner.processes is {processes}, and there are {torch.cuda.device_count()} GPUs: each needs its own"
            )
        self._version = 0
        self._lora = settings.lora
        self._lock = threading.Lock()
        store, address = host_store(port=port)
        self._store = store
        self._children = [_Child(rank, self._sharding.deadline) for rank in range(processes)]
        self._finalizer = weakref.finalize(self, _end, self._children)
        threads = max(1, torch.get_num_threads() // processes)
        start = {
            "checkpoint": str(checkpoint),
            "settings": settings,
            "sharding": self._sharding,
            "world": processes,
            "address": address,
            "threads": threads if self._sharding.device == "cpu" else None,
            "versions": versions(),
        }
        self._names: list[str] = self._ask("start", start)
        kind = check_kind(Path(checkpoint))
        self._family = None if kind is None else kind.family

    @property
    def version(self) -> int:
        return self._version

    def sft_step(self, samples: Sequence[Sample]) -> Metrics:
        """See ``Stepper.sft_step``."""
        metrics: Metrics = self._ask("sft_step", list(samples))
        return metrics

    def policy_step(self, samples: Sequence[Sample]) -> Metrics:
        """See ``Stepper.policy_step``."""
        metrics: Metrics = self._ask("policy_step", list(samples))
        return metrics

    def save(self, path: Path, extra: Mapping[str, Any] | None = None) -> Path:
        """See ``ShardedLearner.save``; the random states that are kept are this process's."""
        generators = {name: state.numpy().tobytes() for name, state in global_generators(CPU).items()}
        self._ask("save", (str(path), dict(extra or {}), random.getstate(), generators))
        return Path(path)

    def load(self, path: Path) -> dict[str, Any]:
        """See ``ShardedLearner.load``; also restores this process's random states."""
        state = StateReader(path)
        check_sums(Path(path))
        self._ask("load", str(path))
        progress = LearnerProgress.parse(Path(path), state.values, None)
        random.setstate(progress.python)
        restore_generators({n: state.read(n) for n in state.names if n.startswith("random/")}, CPU)
        return progress.extra

    @property
    def weights(self) -> Callable[[], Iterator[tuple[str, Tensor]]]:
        """Called, it gives every parameter whole, on the CPU, named as ``Weights`` says, gathered one at a time as it
        is asked for. With adapters it is an ``AdaptedWeights``."""
        return self._whole if self._lora is None else AdaptedWeights(self._whole, self._adapter, self._lora)

    def _adapter(self) -> dict[str, Tensor]:
        found = self._ask("adapter", None)
        return {
            n: torch.frombuffer(bytearray(data), dtype=torch.float32).view(shape) for n, (shape, data) in found.items()
        }

    def _whole(self) -> Iterator[tuple[str, Tensor]]:
        return as_stored(self._parameters(), self._family)

    def _parameters(self) -> Iterator[tuple[str, Tensor]]:
        for name in self._names:
            kind, shape, data = self._ask("weight", name)
            yield name, torch.frombuffer(bytearray(data), dtype=getattr(torch, kind)).view(shape)

    def close(self) -> None:
        """End the processes. Safe to call again, or after a failure."""
        self._finalizer()

    def _ask(self, method: str, argument: Any) -> Any:
        """Call a method in every process and return the first one's result."""
        with self._lock:
            if not self._finalizer.alive:
                raise _lost("the learner's processes have ended, here or after an earlier failure: start the run again")
            try:
                return self._call(method, argument)
            except BaseException as problem:
                if type(problem) not in ERRORS.values():
                    self._finalizer()
                raise

    def _call(self, method: str, argument: Any) -> Any:
        deadline = time.monotonic() + self._sharding.deadline
        for child in self._children:
            child.send(method, argument)
        answers: dict[int, tuple[str, Any, int]] = {}
        failure: str | None = None
        while len(answers) < len(self._children):
            left = deadline - time.monotonic()
            waiting = [c for c in self._children if c.rank not in answers]
            ready = wait([c.connection for c in waiting], max(0.0, left))
            if not ready:
                if failure is not None:
                    break
                ranks = ", ".join(str(c.rank) for c in waiting)
                raise self._gone(
                    method,
                    f"{method} did not end within {self._sharding.deadline:.0f} seconds (learner.deadline) in process "
                    f"{ranks} of {len(self._children)}: raise the deadline if it was still at work.",
                )
            for child in waiting:
                if child.connection in ready:
                    answers[child.rank] = child.receive(method)
                    if answers[child.rank][0] != "done" and failure is None:
                        failure = answers[child.rank][0]
                        deadline = min(deadline, time.monotonic() + GRACE)
        if failure is None:
            _, result, self._version = answers[0]
            return result
        kinds = {kind for kind, _, _ in answers.values()}
        if len(answers) == len(self._children) and kinds <= ERRORS.keys():
            kind, text, _ = answers[min(answers)]
            raise ERRORS[kind](text)
        rank, (kind, text, _) = next((r, a) for r, a in sorted(answers.items()) if a[0] != "done")
        # Where one process is lost the others only say that their connection broke: what matters is who was first.
        vanished = [(r, a) for r, a in sorted(answers.items()) if a[0] == "lost"]
        if vanished:
            rank, (kind, text, _) = vanished[0]
        raise self._gone(method, f"process {rank} of {len(self._children)} failed in {method}: {text}")

    def _gone(self, method: str, text: str) -> InfrastructureError:
        if method == "start":
            return _lost(text)
        return _lost(
            f"{text}\nWhat was learned since the last checkpoint is lost with it. To continue from there: "
            "`--resume RUN`, with the run's folder"
        )


class _Child:
    """One process, its end of a socket pair, and a file with what it says on standard error."""

    def __init__(self, rank: int, patience: float) -> None:
        self.rank = rank
        mine, theirs = socket.socketpair()
        # Also a message in the middle of which the other side stands still must come to an end.
        limit = struct.pack("ll", int(patience), int(patience % 1 * 1e6))
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            mine.setsockopt(socket.SOL_SOCKET, option, limit)
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `end`)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        try:
            # A session of its own: an interrupt at the keyboard is this process's to handle, not each child's.
            self.process = subprocess.Popen(
                [sys.executable, "-m", "muarl.learning.worker", str(theirs.fileno()), str(rank)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=self.log,
                env=environment,
                start_new_session=True,
            )
        finally:
            theirs.close()
        self.connection = Connection(mine.detach())

    def send(self, method: str, argument: Any) -> None:
        try:
            self.connection.send((method, argument))
        except OSError:
            pass  # it has ended; receiving says so

    def receive(self, method: str) -> tuple[str, Any, int]:
        """(kind, result or text, version): kind is "done", the name of an exception, or "lost"."""
        try:
            answer: tuple[str, Any, int] = self.connection.recv()
            return answer
        except (EOFError, OSError):
            return "lost", self._last_words(), 0

    def _last_words(self) -> str:
        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        how = f"it was killed by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
        self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, self.log.tell() - TAIL))
        said = self.log.read().decode(errors="replace").strip()
        return f"{how}; its last words: {said}" if said else how

    def end(self, until: float) -> None:
        self.connection.close()
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def _end(children: Sequence[_Child]) -> None:
    """End all children: a moment for those that are idle, then by force."""
    for child in children:
        if child.process.poll() is None:
            child.process.terminate()
    until = time.monotonic() + GRACE / 2
    for child in children:
        child.end(until)


def _lost(text: str) -> InfrastructureError:
    return InfrastructureError(f"learner: {text}", boundary="learner", retryable=False)
