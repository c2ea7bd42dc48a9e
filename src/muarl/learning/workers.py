"""``MultiProcessLearner``: a sharded learner in several processes of this machine, behind the ``Learner`` protocol.

The processes are children of this one and talk to it over socket pairs that they inherit. Every call goes to all of
them at once; it ends when all have answered, when one fails or vanishes, or at the deadline, and in the latter cases
none is left running. Children end by themselves when this process is gone.
"""

from __future__ import annotations

import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from muarl.basics.child import Child, end_all
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.frames import WireError
from muarl.learning.checkpoint_folders import check_kind
from muarl.learning.checkpoints import check_sums
from muarl.learning.lora import AdaptedWeights
from muarl.learning.messages import ERRORS, SETTINGS, SHARDING, Tensors, hear, pack_samples, say
from muarl.learning.packing import Sample
from muarl.learning.process_group import ShardingConfig, host_store, versions
from muarl.learning.settings import LearnerConfig
from muarl.learning.state_files import LearnerProgress, StateReader, global_generators, restore_generators
from muarl.learning.steps import Metrics
from muarl.models.weights import as_stored

GRACE = 10.0
"""Seconds that the others have to report the same problem, or a process to end when asked."""
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
        self._children = [
            Child.module(f"process {rank} of {processes}", "muarl.learning.worker", rank) for rank in range(processes)
        ]
        self._finalizer = weakref.finalize(self, _end, self._children)
        for child in self._children:
            # Also a message in the middle of which the other side stands still must come to an end.
            child.connection.settimeout(self._sharding.deadline)
        threads = max(1, torch.get_num_threads() // processes)
        start = {
            "checkpoint": str(checkpoint),
            "settings": SETTINGS.dump_python(settings, mode="json"),
            "sharding": SHARDING.dump_python(self._sharding, mode="json"),
            "world": processes,
            "address": address,
            "threads": threads if self._sharding.device == "cpu" else None,
            "versions": versions(),
        }
        self._names: list[str] = self._ask("start", start)[0]
        kind = check_kind(Path(checkpoint))
        self._family = None if kind is None else kind.family

    @property
    def version(self) -> int:
        return self._version

    def sft_step(self, samples: Sequence[Sample]) -> Metrics:
        """See ``Stepper.sft_step``."""
        metrics: Metrics = self._ask("sft_step", *pack_samples(samples))[0]
        return metrics

    def policy_step(self, samples: Sequence[Sample]) -> Metrics:
        """See ``Stepper.policy_step``."""
        metrics: Metrics = self._ask("policy_step", *pack_samples(samples))[0]
        return metrics

    def save(self, path: Path, extra: Mapping[str, Any] | None = None) -> Path:
        """See ``ShardedLearner.save``; the random states that are kept are this process's."""
        self._ask("save", (str(path), dict(extra or {}), random.getstate()), global_generators(CPU))
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
        return dict(self._ask("adapter")[1])

    def _whole(self) -> Iterator[tuple[str, Tensor]]:
        return as_stored(self._parameters(), self._family)

    def _parameters(self) -> Iterator[tuple[str, Tensor]]:
        for name in self._names:
            yield name, self._ask("weight", name)[1][name]

    def close(self) -> None:
        """End the processes. Safe to call again, or after a failure."""
        self._finalizer()

    def _ask(self, method: str, argument: Any = None, tensors: Tensors | None = None) -> tuple[Any, Tensors]:
        """Call a method in every process and return the first one's result and tensors."""
        with self._lock:
            if not self._finalizer.alive:
                raise _lost("the learner's processes have ended, here or after an earlier failure: start the run again")
            try:
                return self._call(method, argument, tensors or {})
            except BaseException as problem:
                if type(problem) not in ERRORS.values():
                    self._finalizer()
                raise

    def _call(self, method: str, argument: Any, tensors: Tensors) -> tuple[Any, Tensors]:
        deadline = time.monotonic() + self._sharding.deadline
        for child in self._children:
            with suppress(OSError):  # it has ended; receiving says so
                say(child.connection, {"method": method, "argument": argument}, tensors)
        answers: dict[int, _Answer] = {}
        failure: str | None = None
        while len(answers) < len(self._children):
            left = deadline - time.monotonic()
            waiting = {rank: c for rank, c in enumerate(self._children) if rank not in answers}
            ready = wait([child.connection for child in waiting.values()], max(0.0, left))
            if not ready:
                if failure is not None:
                    break
                ranks = ", ".join(map(str, waiting))
                raise self._gone(
                    method,
                    f"{method} did not end within {self._sharding.deadline:.0f} seconds (learner.deadline) in process "
                    f"{ranks} of {len(self._children)}: raise the deadline if it was still at work.",
                )
            for rank, child in waiting.items():
                if child.connection in ready:
                    answers[rank] = answer = _answer(child)
                    if answer.kind != "done" and failure is None:
                        failure = answer.kind
                        deadline = min(deadline, time.monotonic() + GRACE)
        if failure is None:
            self._version = answers[0].version
            return answers[0].result, answers[0].tensors
        if len(answers) == len(self._children) and all(answer.kind in ERRORS for answer in answers.values()):
            first = answers[min(answers)]
            raise ERRORS[first.kind](first.result)
        # Where one process is lost the others only say that their connection broke: what matters is who was first.
        failed = [rank for rank, answer in sorted(answers.items()) if answer.kind != "done"]
        rank = next((rank for rank in failed if answers[rank].kind == "lost"), failed[0])
        raise self._gone(method, f"{self._children[rank].name} failed in {method}: {answers[rank].result}")

    def _gone(self, method: str, text: str) -> InfrastructureError:
        if method == "start":
            return _lost(text)
        return _lost(
            f"{text}\nWhat was learned since the last checkpoint is lost with it. To continue from there: "
            "`--resume RUN`, with the run's folder"
        )


class _Answer(NamedTuple):
    """What a process answered."""

    kind: str
    """See ``messages``, or "lost"."""
    result: Any
    version: int
    tensors: Tensors


def _answer(child: Child) -> _Answer:
    try:
        value, tensors = hear(child.connection)
        return _Answer(value["kind"], value["result"], value["version"], tensors)
    except (EOFError, OSError, WireError):
        return _Answer("lost", f"it {child.fate()}", 0, {})


def _end(children: Sequence[Child]) -> None:
    """End all children, those that are at work, too."""
    for child in children:
        child.cut_lifeline()
    end_all(children)


def _lost(text: str) -> InfrastructureError:
    return InfrastructureError(f"learner: {text}", boundary="learner", retryable=False)
