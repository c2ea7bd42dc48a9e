"""The learner as one or several processes of the cluster; several share the weights among themselves.

Samples go there, weights go from there to the samplers' machines without passing the driver. A learner that is lost
cannot be replaced: what it learned since the last checkpoint is gone. The run then ends, and says how to continue, or
is resumed from there (runs/context.py: with_restarts).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from muarl.basics.errors import CheckpointError, InfrastructureError, MuarlError
from muarl.models.buckets import Bucket, buckets
from muarl.workers.cluster.calls import answer_now
from muarl.workers.cluster.runtime import find
from muarl.workers.cluster.sampler_actor import GroupMembership, PostedWeights
from muarl.workers.failures import ProcessLost, answering

if TYPE_CHECKING:
    from torch import Tensor

    from muarl.learning.learner import Learner
    from muarl.learning.packing import Sample
    from muarl.learning.settings import LoraSettings
    from muarl.learning.steps import Metrics
    from muarl.workers.cluster.transport import WeightGroup

log = logging.getLogger(__name__)

BUCKET = 256 * 2**20


class BuildLearner(Protocol):
    """Makes process ``rank`` of ``world``, which meet at the address HOST:PORT ("" where they need not meet)."""

    def __call__(self, rank: int, world: int, address: str) -> Learner: ...


class ClusterLearner:
    """A ``Learner`` whose work is done by ``actors``, all of which are told the same. See this module's docstring.

    ``seconds``: that any one thing may take. ``lora``: of the adapters that it trains.
    """

    def __init__(
        self,
        actors: Sequence[Any],
        *,
        seconds: float,
        release: Callable[[], None],
        lora: LoraSettings | None = None,
    ) -> None:
        self._actors, self._seconds, self._release = list(actors), seconds, release
        self._version = 0
        self._asked: dict[Any, int] = {}
        self.weights = RemoteWeights(self, lora)

    @property
    def version(self) -> int:
        """See ``Learner``; as of the last answer."""
        return self._version

    def sft_step(self, samples: Sequence[Sample]) -> Metrics:
        """See ``Learner``."""
        return self._call("sft_step", list(samples))

    def policy_step(self, samples: Sequence[Sample]) -> Metrics:
        """See ``Learner``."""
        return self._call("policy_step", list(samples))

    def save(self, path: Path, extra: Mapping[str, Any] | None = None) -> Path:
        """See ``Learner``. CheckpointError if this machine does not see what the learner's has written."""
        path = Path(path).absolute()
        self._call("save", path, dict(extra or {}))
        if not (path / "config.json").is_file():
            raise CheckpointError(
                f"{path}: the learner wrote its checkpoint there, but this machine does not see it: runs_dir must lie "
                "in a file system that all machines of the cluster share"
            )
        return path

    def load(self, path: Path) -> dict[str, Any]:
        """See ``Learner``."""
        extra: dict[str, Any] = self._call("load", Path(path).absolute())
        return extra

    def close(self) -> None:
        """End the learner's processes."""
        self._release()

    @property
    def first(self) -> Any:
        """The process that has the weights whole, one tensor after another."""
        return self._actors[0]

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """Have every process do the same; what the first answers. MuarlError if one is lost, or says so."""
        self.made()
        self.begin(method, *arguments)
        return self.made()

    def begin(self, method: str, *arguments: Any) -> None:
        """Have every process begin the same."""
        import ray

        shared = [ray.put(a) if isinstance(a, list) and len(self._actors) > 1 else a for a in arguments]
        self._asked = {getattr(a, method).remote(*shared): n for n, a in enumerate(self._actors)}

    def made(self) -> list[Any]:
        """Wait for what was begun; what the first process answers (nothing, if nothing was begun)."""
        import ray

        asked, self._asked = self._asked, {}
        first, waiting = next(iter(asked), None), list(asked)
        while waiting:
            # One at a time: while a lost one is noticed at once, those that wait for it would not answer for long.
            done, waiting = ray.wait(waiting, num_returns=1, timeout=self._seconds)
            if not done:
                raise self._ended(
                    ProcessLost(f"learner {asked[waiting[0]]} did not answer within {self._seconds:.0f} s")
                )
            try:
                answer_now(done[0], self._seconds, f"learner {asked[done[0]]}")
            except ProcessLost as problem:
                raise self._ended(problem) from None
        return [] if first is None else list(ray.get(first))

    def _call(self, method: str, *arguments: Any) -> Any:
        result, self._version = self.ask(method, *arguments)
        return result

    def _ended(self, problem: ProcessLost) -> InfrastructureError:
        return InfrastructureError(
            f"{problem}. What was learned since the last checkpoint went with it. To continue from that checkpoint: "
            "muarl train --resume RUN, with the run's folder",
            boundary="learner",
            retryable=False,
        )


class RemoteWeights:
    """The ``Weights`` of a learner elsewhere: called, they come here; ``publish`` leaves them in the cluster.

    ``lora``: of the adapters that it trains, which can then be published alone.
    """

    def __init__(self, learner: ClusterLearner, lora: LoraSettings | None = None) -> None:
        self._learner, self.lora = learner, lora

    def __call__(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter, whole."""
        import ray

        for reference in self._learner.ask("publish", BUCKET):
            yield from ray.get(reference).tensors()

    async def publish(self, size: int, *, adapter: bool = False) -> list[Any]:
        """References to all weights (or the adapter's alone) in the cluster's object store, as buckets of ``size``
        bytes."""
        return await asyncio.to_thread(self._learner.ask, "publish", size, adapter)

    @property
    def first(self) -> Any:
        """The process that sends them: an actor of ``LearnerActor``."""
        return self._learner.first

    async def send(self, size: int, token: str, *, adapter: bool = False) -> str | None:
        """Send all weights (or the adapter's alone) to the group of this token, and keep them for ``store``; what kept
        them from reaching all of it."""
        (problem,) = await asyncio.to_thread(self._learner.ask, "send", size, adapter, token)
        return cast("str | None", problem)

    def store(self, board: str, version: int, lora: LoraSettings | None) -> None:
        """Have what was sent last put into the object store and on the board. Nobody waits for it."""
        self._learner.first.store.remote(board, version, lora)


class LearnerActor:
    """One process of the learner."""

    def __init__(self, setup: Callable[[], None], build: BuildLearner, rank: int, world: int) -> None:
        setup()
        self._build, self._rank, self._world = build, rank, world
        self._learner: Learner | None = None
        self._store: Any = None
        self._group_store: Any = None
        self._group: WeightGroup | None = None
        self._token = ""
        self._buckets: list[Bucket] = []

    def ready(self) -> None:
        """Answers once the process is there."""

    @answering
    def host(self, seconds: float) -> str:
        """Hold the place where the learner's processes meet; its address."""
        self._store, address = _hosted(seconds)
        return address

    @answering
    def host_group(self, seconds: float) -> str:
        """``host`` for a group of this process and samplers, in place of the last one."""
        if self._group is not None:
            self._group.close()
        self._group, self._token = None, ""
        self._group_store, address = _hosted(seconds)
        return address

    @answering
    def join_group(self, membership: GroupMembership) -> None:
        """Join that group."""
        self._group = membership.join()
        self._token = membership.token

    @answering
    def make(self, address: str) -> tuple[None, int]:
        """Make the learner, together with the others; with its version, as in the next four."""
        from muarl.learning.process_group import LOOPBACK, use_loopback

        if address.startswith(f"{LOOPBACK}:"):
            use_loopback()
        self._learner = self._build(self._rank, self._world, address)
        return None, self._learner.version

    @answering
    def sft_step(self, samples: Sequence[Sample]) -> tuple[Metrics, int]:
        """See ``Learner``, as are the next three."""
        return self._there.sft_step(samples), self._there.version

    @answering
    def policy_step(self, samples: Sequence[Sample]) -> tuple[Metrics, int]:
        return self._there.policy_step(samples), self._there.version

    @answering
    def save(self, path: Path, extra: Mapping[str, Any]) -> tuple[Path, int]:
        return self._there.save(path, extra), self._there.version

    @answering
    def load(self, path: Path) -> tuple[dict[str, Any], int]:
        return self._there.load(path), self._there.version

    @answering
    def publish(self, size: int, adapter: bool = False) -> list[Any]:
        """Put all weights, or the adapter's alone, into the object store; the references (of the first process; the
        others only help)."""
        import ray

        _give_back()
        tensors = self._weights(adapter)
        return [ray.put(bucket) for bucket in buckets(tensors, size)] if self._rank == 0 else _gone_through(tensors)

    @answering
    def send(self, size: int, adapter: bool, token: str) -> list[str | None]:
        """Send all weights, or the adapter's alone, to the group of this token (the first process; the others only
        help), and keep them for ``store``. What kept them from reaching all of it."""
        from muarl.workers.cluster.transport import GroupBroken

        _give_back()
        self._buckets, problem = [], None
        group = self._group if token and token == self._token else None
        tensors = self._weights(adapter)
        if self._rank:
            _gone_through(tensors)
            return [None]
        try:
            for bucket in buckets(tensors, size):
                try:
                    if group is not None:
                        group.send(bucket)
                except GroupBroken as broken:
                    group, problem = None, str(broken)
                self._buckets.append(bucket.on_cpu())
            if group is not None:
                group.end()
        except GroupBroken as broken:
            problem = str(broken)
        return [problem]

    def store(self, board: str, version: int, lora: LoraSettings | None) -> None:
        """Put what was sent last into the object store and on the board, for samplers that come back; if that fails,
        the board says so to them."""
        import ray

        posted = []
        self._buckets.reverse()
        try:
            while self._buckets:
                posted.append(ray.put(self._buckets.pop()))
        except Exception as problem:  # whatever it was, nobody shall wait for these weights
            self._buckets = []
            why = f"the weights of version {version} were not put into the object store: {problem}"
            log.warning("%s", why)
            ray.get(find(board).fail.remote(version, why))
        else:
            ray.get(find(board).post.remote(PostedWeights(version, posted, lora)))

    def _weights(self, adapter: bool) -> Iterable[tuple[str, Tensor]]:
        return cast(Any, self._there).adapter().items() if adapter else self._there.weights()

    @property
    def _there(self) -> Learner:
        if self._learner is None:
            raise MuarlError(f"learner {self._rank} was asked before it was made")
        return self._learner


def _gone_through(weights: Iterable[Any]) -> list[Any]:
    """Help the first process to gather them; nothing of them is kept."""
    for _ in weights:
        pass
    return []


def _give_back() -> None:
    """Let a sampler on the same GPU have what the step before took of it."""
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def _hosted(seconds: float) -> tuple[Any, str]:
    """A store on this machine for processes to meet at, and its address."""
    import ray

    from muarl.learning.process_group import LOOPBACK, host_store

    return host_store(ray.util.get_node_ip_address() or LOOPBACK, deadline=seconds)


def make_learners(
    names: Sequence[str],
    *,
    meet: bool,
    seconds: float,
    release: Callable[[], None],
    lora: LoraSettings | None = None,
) -> ClusterLearner:
    """The learner over started actors of these names, which make themselves ready until ``made`` is asked.

    ``meet``: they work as a group, even if there is only one. ``lora``: see ``ClusterLearner``.
    """
    actors = [find(name) for name in names]
    learner = ClusterLearner(actors, seconds=seconds, release=release, lora=lora)
    address = answer_now(actors[0].host.remote(seconds), seconds, "learner 0") if meet else ""
    learner.begin("make", address)
    return learner
