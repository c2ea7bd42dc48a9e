"""A sampler as a process of the cluster, and the board that says where the newest weights are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.inference.base import Completion, PolicySampler, SamplingParams, SleepingSampler, Weights
from muarl.models.buckets import Bucket
from muarl.workers.cluster.calls import answer
from muarl.workers.cluster.runtime import find
from muarl.workers.failures import Failure, ProcessLost, answering

if TYPE_CHECKING:
    from torch import Tensor

    from muarl.learning.settings import LoraSettings
    from muarl.workers.cluster.transport import GroupKind, WeightGroup

BuildSampler = Callable[[], PolicySampler]


@dataclass(frozen=True, slots=True)
class PostedWeights:
    """References to the weights of a version."""

    version: int
    buckets: list[Any]
    lora: LoraSettings | None = None
    """They are those of an adapter alone."""


class Board:
    """Where the newest weights are to be had: a small actor beside the driver, with references, not weights."""

    def __init__(self) -> None:
        self._newest: PostedWeights | Failure | None = None
        self._coming = 0
        self._news = asyncio.Event()
        self._news.set()

    async def clear(self, version: int) -> None:
        """Weights of this version are on their way: let the old ones be freed, and have those who ask wait."""
        self._newest, self._coming = None, version
        self._news.clear()

    async def post(self, newest: PostedWeights) -> None:
        """From now on these, unless newer ones are on their way already."""
        if newest.version >= self._coming:
            self._newest = newest
            self._news.set()

    async def fail(self, version: int, why: str) -> None:
        """Weights of this version will not come here: who waits for them, or asks later, is told why."""
        if version >= self._coming:
            self._newest = Failure.of(InfrastructureError(why, boundary="agent"))
            self._news.set()

    async def newest(self) -> PostedWeights | Failure | None:
        """What was posted last, None if the samplers' own checkpoint is the newest."""
        await self._news.wait()
        return self._newest


@dataclass(frozen=True, slots=True)
class GroupMembership:
    """One process's place in a group of ``transport``."""

    token: str
    """The group's token."""
    kind: GroupKind
    address: str
    """The group's store."""
    rank: int
    """The process's number in the group."""
    world: int
    """How many processes the group has."""
    device: str
    seconds: float

    def join(self) -> WeightGroup:
        """Join the group. MuarlError if that fails."""
        import torch

        from muarl.workers.cluster.transport import GroupBroken, join_group

        try:
            return join_group(
                self.kind,
                self.address,
                self.rank,
                self.world,
                device=torch.device(self.device),
                seconds=self.seconds,
            )
        except GroupBroken as problem:
            raise MuarlError(f"a process did not join the group: {problem}") from None


class SamplerActor:
    """A sampler in a process of its own. ``build`` makes it, after ``setup``, when it is first asked for: an error in
    an actor's constructor would come back as Ray's, without its words. ``board``: the board's name."""

    def __init__(self, setup: Callable[[], None], build: BuildSampler, board: str, seconds: float) -> None:
        setup()
        self._build = build
        self._sampler: PolicySampler | None = None
        self._board, self._seconds = board, seconds
        self._version: int | None = None  # not known to be the newest
        self._moving = asyncio.Lock()
        self._membership: GroupMembership | None = None
        self._group: WeightGroup | None = None

    async def ready(self) -> None:
        """Answers once it can sample."""
        return await self.refresh(0)

    @answering
    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, session: str | None) -> Completion:
        """See ``Sampler``."""
        sampler = self._sampler
        if sampler is None or self._version is None:
            sampler = await self._catch_up()
        return await sampler.sample(prompt_ids, params, session=session)

    async def close_session(self, session: str) -> None:
        """See ``Sampler``."""
        if self._sampler is not None:
            self._sampler.close_session(session)

    @answering
    async def sleep(self) -> None:
        """See ``SleepingSampler``."""
        async with self._moving:  # it would wake with weights of which only some have come
            if isinstance(self._sampler, SleepingSampler):
                await self._sampler.sleep()

    @answering
    async def refresh(self, version: int) -> None:
        """Take the newest weights, which are at least of this version."""
        await self._catch_up(version)

    # ---- weights that come directly from the learner

    async def group_token(self) -> str | None:
        """The token of the group that this process is in; None: of none, as after a restart."""
        return None if self._membership is None or self._group is None else self._membership.token

    @answering
    async def join_group(self, membership: GroupMembership) -> None:
        """Join a group, in place of another."""
        self._leave_group()
        self._group = await asyncio.to_thread(membership.join)
        self._membership = membership

    async def receive(self, token: str, version: int, lora: LoraSettings | None) -> str | None:
        """Take the weights that the group's learner sends now, as ``version``; why not, if that fails. They can then
        still be had from the board."""
        async with self._moving:
            group = self._group
            if group is None or self._membership is None or self._membership.token != token:
                return "this sampler is in no such group"
            try:
                if self._sampler is None:
                    self._sampler = self._build()
                await self._sampler.update(_weights(group.receive, lora), version)
            except Exception as problem:  # whatever it was, the others must not wait for it
                group.fail(f"a sampler did not take the weights: {problem}")
                self._leave_group()
                return str(problem)
            self._version = version
            return None

    def _leave_group(self) -> None:
        if self._group is not None:
            self._group.close()
        self._group = self._membership = None

    # ---- weights from the board

    async def _catch_up(self, version: int = 0) -> PolicySampler:
        newest = None
        if not self._has(version):
            # Not under the lock: while this waits for the board, weights may come directly.
            newest = await answer(find(self._board).newest.remote(), self._seconds, "the board of weights")
        async with self._moving:
            if self._sampler is None:
                self._sampler = self._build()
            if self._has(version):
                return self._sampler
            if newest is None:
                self._version = 0
                return self._sampler
            got = await _fetched(newest.buckets, self._seconds)
            tensors = _weights(lambda: (one for bucket in got for one in bucket.tensors()), newest.lora)
            await self._sampler.update(tensors, newest.version)
            self._version = newest.version
            return self._sampler

    def _has(self, version: int) -> bool:
        return self._version is not None and self._version >= version


def _weights(tensors: Callable[[], Iterable[tuple[str, Tensor]]], lora: LoraSettings | None) -> Weights:
    """What was sent, as samplers take it."""
    if lora is None:
        return tensors
    from muarl.learning.lora import AdaptedWeights

    def whole() -> Iterator[tuple[str, Tensor]]:
        raise MuarlError("only the adapter was sent, and this sampler wants all weights")

    return AdaptedWeights(whole, lambda: dict(tensors()), lora)


async def _fetched(references: Sequence[Any], seconds: float) -> list[Bucket]:
    """The buckets themselves, from wherever they are. InfrastructureError if they cannot be had."""
    try:
        got = await answer(asyncio.gather(*(_one(r) for r in references)), seconds, "the owner of the weights")
    except ProcessLost as problem:
        raise InfrastructureError(f"the newest weights cannot be fetched: {problem}", boundary="agent") from None
    return list(got)


async def _one(reference: Any) -> Bucket:
    bucket: Bucket = await reference
    return bucket
